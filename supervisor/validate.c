/* Settings that no pool can run with: validate.h. */
#include "supervisor/validate.h"

#include <stdlib.h>

#include "common/memory.h"
#include "supervisor/shard.h"

/* Below it the broker's largest answer doesn't fit (spec 3.1). */
#define ROOMY_MEMORY_BYTES ((int64_t)256 << 20)

int validate_settings(const struct settings *settings, struct error *error)
{
    return shard_check_memory((uint64_t)settings->memory_bytes, settings_queue_workers(settings), error);
}

struct telling {
    validate_tell *tell;
};

static void tell_unknown(void *argument, const char *name, const char *meant)
{
    const struct telling *telling = argument;
    char *line =
        memory_format("%s: unknown setting in the environment, ignored%s%s%s", name,
                      meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "", meant != NULL ? "?" : "");

    telling->tell(line);
    free(line);
}

void validate_hints(const struct settings *settings, validate_tell *tell)
{
    struct telling telling = {tell};

    settings_tell_unknown(tell_unknown, &telling);
    if (settings != NULL && settings->memory_bytes < ROOMY_MEMORY_BYTES) {
        char *line =
            memory_format("QUEEN_S3_MEMORY_MB=%lld: below 256 the broker's largest answer does not fit, and the "
                          "budget is not held when it comes",
                          (long long)(settings->memory_bytes >> 20));
        tell(line);
        free(line);
    }
}
