/*
 * The three documents that a queue has in the broker's kv (spec 3.5), as they are spelled and read: by the sink, and by
 * `recover`. Times in them are integers of microseconds, but tEnd of the pointer is a string: the broker's retention reads
 * it. Reading takes what the original wrote too.
 */
#ifndef COMMON_LAKE_DOCUMENTS_H
#define COMMON_LAKE_DOCUMENTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/lake/key.h"

/* `s3:<sink>:<escaped queue>:<which>`, which being "intent", "committed" or "lease"; malloc. */
char *document_key(const char *sink, const char *escaped_queue, const char *which);

/* ---- committed ---- */

struct lake_pointer {
    int64_t k; /* 0: nothing is committed, and the queue begins at end (spec 3.4, 3) */
    struct broker_us end;
    const char *manifest; /* its key, "" with k 0 */
    uint64_t records;
    uint64_t bytes;
    struct wall_ms at;
};

/* JSON text; malloc. */
char *pointer_format(const struct lake_pointer *pointer);
/* k and end alone: all that a reader goes by. False where it is no pointer. */
bool pointer_read(const cJSON *value, int64_t *k, struct broker_us *end);

/* ---- intent ---- */

struct lake_intent {
    struct window_bounds bounds;
    struct window_shape shape;
    char *prefix;
    char *writer; /* "" where the intent doesn't say */
};

char *intent_format(const struct window_bounds *bounds, const struct window_shape *shape, const char *prefix);
/* Align and prefix are the settings' where the intent doesn't say. False where it is no intent; *intent, which has to be
 * zeroed or read before, is left as it was then, or partly read. */
bool intent_read(const cJSON *value, const struct settings *settings, struct lake_intent *intent);
void intent_free(struct lake_intent *intent);

/* ---- lease ---- */

char *lease_format(const char *instance, const char *incarnation, struct wall_ms since);

#endif
