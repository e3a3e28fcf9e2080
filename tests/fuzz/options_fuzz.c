/*
 * Any bytes as [plugin_config]: they are accepted whole, with values in their bounds, or refused with a reason that
 * is told.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/connector/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool right)
{
    if (!right) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sink_options options;
    struct error error;
    enum sink_refusal refusal = sink_options_parse((const char *)data, size, &options, &error);

    if (refusal == SINK_ACCEPTED) {
        expect(options.store.bucket[0] != '\0' && options.store.endpoint != NULL && options.path_template[0] != '\0');
        expect(options.store.region != NULL || options.store.file_root != NULL);
        expect((options.store.access_key == NULL) == (options.store.secret_key == NULL));
        expect(options.limits.max_size > 0 && options.limits.max_size <= SINK_OBJECT_MAX);
        expect(options.limits.rotation == SINK_BY_SIZE || options.limits.max_messages > 0);
        expect(options.max_attempts > 0 && options.retry_delay_ms >= 0 && options.max_file_age_ms >= 0);
        expect((options.durability == SINK_SPOOLED) == (options.spool_dir != NULL));
    } else {
        expect(refusal == SINK_REFUSED || refusal == SINK_UNREADABLE);
        expect(error.message[0] != '\0');
        expect(options.store.bucket == NULL);
    }
    sink_options_free(&options);
    return 0;
}
