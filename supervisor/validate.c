/* Settings that no pool can run with: validate.h. */
#include "supervisor/validate.h"

#include "supervisor/shard.h"

/* What the specification has and this version hasn't yet is refused, never half done. */
static int check_supported(const struct settings *settings, struct error *error)
{
    if (settings->connectors != NULL) {
        return error_set(error, QS_ERROR_INPUT,
                         "QUEEN_S3_CONNECTORS=%s: not supported by this version, expected to be unset",
                         settings->connectors);
    }
    return 0;
}

static int check_memory(const struct settings *settings, struct error *error)
{
    size_t workers = (size_t)settings->workers;

    if (!settings->all_queues && settings->queue_count < workers) {
        workers = settings->queue_count;
    }
    return shard_check_memory((uint64_t)settings->memory_bytes, workers, error);
}

int validate_settings(const struct settings *settings, struct error *error)
{
    int code = check_supported(settings, error);

    return code != 0 ? code : check_memory(settings, error);
}
