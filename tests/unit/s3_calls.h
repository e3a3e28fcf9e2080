/*
 * Calls of an object store made one at a time, for the tests of the S3 store: against a script, and against a gateway.
 */
#ifndef TESTS_UNIT_S3_CALLS_H
#define TESTS_UNIT_S3_CALLS_H

#include "common/object_store.h"
#include "common/reactor.h"

#define CALL_KEYS_MAX 2000

/* What the last call came to. */
struct call_outcome {
    int calls;
    struct error error;
    uint64_t size;
    char etag[256];
    char *bytes;     /* of a get */
    char text[1024]; /* an upload's id, a part's ETag, a list's token */
    char *keys[CALL_KEYS_MAX];
    uint64_t sizes[CALL_KEYS_MAX];
    size_t key_count;
};

extern struct call_outcome outcome;
extern struct reactor *call_reactor;
extern struct object_store *call_store;

/* Forgets what the last call left. */
void calls_clear(void);
/* Runs the loop until the call's callback has run, once; returns its error. */
const struct error *call_wait(const struct store_call *call);

/* A body of two pieces with its MD5, valid until the next one. */
const struct object_body *call_body(const void *bytes, size_t size);

const struct error *call_put(const char *key, const void *bytes, size_t size);
const struct error *call_head(const char *key);
const struct error *call_get(const char *key, size_t limit);
const struct error *call_get_range(const char *key, uint64_t position, size_t size);
const struct error *call_list(const char *prefix, const char *after);
const struct error *call_remove(const char *key);
const struct error *call_create(const char *key);
const struct error *call_part(const char *key, const char *upload, uint32_t number, const void *bytes, size_t size);
const struct error *call_complete(const char *key, const char *upload, const struct object_part *parts, size_t count);
const struct error *call_abort(const char *key, const char *upload);

#endif
