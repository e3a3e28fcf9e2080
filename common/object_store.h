/*
 * An object store as a table of functions: S3, a directory (spec 3.9), and the simulator's.
 *
 * Every call is asynchronous and one attempt, as in queen_api.h: it returns at once, its callback runs exactly once,
 * later, from the loop; a cancelled call's callback never runs. Keys are whole object keys (prefix and all), bytes as
 * spec 2.1 spells them, not yet URL-encoded. Request memory that is named "borrowed" must stay until the callback has
 * run or the call is cancelled; all else is read during the call.
 *
 * Errors: QS_ERROR_NOT_FOUND, QS_ERROR_FORBIDDEN, and retriable or not by the list of spec 3.9.
 */
#ifndef COMMON_OBJECT_STORE_H
#define COMMON_OBJECT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/error.h"

struct object_store;
struct store_call;

/* Bytes in pieces, one after the other; borrowed. */
struct object_body {
    const struct iovec *pieces;
    size_t piece_count;
    uint64_t size;   /* of all pieces */
    uint8_t md5[16]; /* of all pieces */
};

struct head_answer {
    uint64_t size;
    const char *etag; /* without quotes; "" where there is none */
};

struct listed_object {
    const char *key;
    uint64_t size;
};

typedef void store_done(void *argument, const struct error *error);
typedef void store_head_done(void *argument, const struct error *error, const struct head_answer *answer);
/* Whole object in memory: manifests and checkpoints. The bytes are the callee's to free(). */
typedef void store_get_done(void *argument, const struct error *error, char *bytes, size_t size);
/* One page, in key order; next: the token of the page after, NULL at the end. Valid during the callback. */
typedef void store_list_done(void *argument, const struct error *error, const struct listed_object *objects,
                             size_t count, const char *next);
typedef void store_created_done(void *argument, const struct error *error, const char *upload_id);
typedef void store_part_done(void *argument, const struct error *error, const char *etag);

/* Whom a call tells: for who makes a store. */
union store_tell {
    store_done *done;
    store_head_done *head;
    store_get_done *get;
    store_list_done *list;
    store_created_done *created;
    store_part_done *part;
};

struct object_part {
    uint32_t number; /* 1-based */
    const char *etag;
};

struct object_store_operations {
    /* One PutObject with Content-MD5; an ETag that looks like an MD5 and differs is QS_ERROR_INTEGRITY. */
    struct store_call *(*put)(struct object_store *store, const char *key, const char *content_type,
                              const struct object_body *body, store_done *done, void *argument);
    struct store_call *(*head)(struct object_store *store, const char *key, store_head_done *done, void *argument);
    /* size_limit: a larger object is QS_ERROR_BODY, not retriable. */
    struct store_call *(*get)(struct object_store *store, const char *key, size_t size_limit, store_get_done *done,
                              void *argument);
    struct store_call *(*list)(struct object_store *store, const char *prefix, const char *after_token,
                               store_list_done *done, void *argument);
    struct store_call *(*remove)(struct object_store *store, const char *key, store_done *done, void *argument);
    struct store_call *(*multipart_create)(struct object_store *store, const char *key, const char *content_type,
                                           store_created_done *done, void *argument);
    /* position: bytes of the object before this part. */
    struct store_call *(*multipart_part)(struct object_store *store, const char *key, const char *upload_id,
                                         uint32_t number, uint64_t position, const struct object_body *body,
                                         store_part_done *done, void *argument);
    /* Whole only if the answer's body says so (a 200 can carry an error, spec 3.9), and an ETag of the form hex-<n>
     * must have n == count. QS_ERROR_NOT_FOUND: no such upload (it may have completed before). */
    struct store_call *(*multipart_complete)(struct object_store *store, const char *key, const char *upload_id,
                                             const struct object_part *parts, size_t count, store_done *done,
                                             void *argument);
    struct store_call *(*multipart_abort)(struct object_store *store, const char *key, const char *upload_id,
                                          store_done *done, void *argument);
    void (*cancel)(struct object_store *store, struct store_call *call);
    void (*destroy)(struct object_store *store);
};

struct object_store {
    const struct object_store_operations *operations;
};

enum store_operation {
    STORE_PUT,
    STORE_GET,
    STORE_HEAD,
    STORE_LIST,
    STORE_DELETE,
    STORE_MULTIPART_CREATE,
    STORE_MULTIPART_PART,
    STORE_MULTIPART_COMPLETE,
    STORE_MULTIPART_ABORT,
    STORE_OPERATION_COUNT
};

/* "put", "get" … as spec 3.9 spells `op` in metrics. */
const char *store_operation_name(enum store_operation operation);

/* For a line that names the key itself: of "put KEY: 503" this leaves "put: 503". What doesn't begin so stays. */
void store_error_drop_key(struct error *error, const char *key);

/* Told of each request that ended: code is the HTTP status, 0 for no answer. A directory counts 200, 404 or 500. */
typedef void store_observe(void *argument, enum store_operation operation, int code);

#define OBJECT_PART_SIZE 16777216u

#endif
