/*
 * What the files of the S3 store share: the store, a call under way, and how one is started. Nobody else includes this.
 */
#ifndef COMMON_S3_INTERNAL_H
#define COMMON_S3_INTERNAL_H

#include <sys/queue.h>

#include "common/http.h"
#include "common/object_store.h"
#include "common/s3_error.h"
#include "common/s3_request.h"
#include "common/timers.h"

TAILQ_HEAD(s3_calls, store_call);

struct s3_store {
    struct object_store store; /* first: an object_store * is an s3_store * */
    struct s3_target target;
    struct reactor *reactor;
    struct http_client *http;
    store_observe *observe;
    void *argument;
    int64_t clock_offset_ms; /* what the service's clock is ahead of ours; 0 until it complained */
    struct s3_calls calls;
};

struct store_call {
    TAILQ_ENTRY(store_call) link;
    struct s3_store *store;
    enum store_operation operation;
    char *key; /* owned, for messages; a list's is its prefix */
    struct http_request *request;
    struct timer failed;     /* where nothing could be sent */
    int64_t clock_offset_ms; /* the store's when it was signed */
    /* 404 is as good as 2xx: what is to go has gone. */
    bool missing_is_good;
    bool check_etag;
    uint8_t md5[16];
    size_t size_limit; /* of a range: its size */
    uint64_t position; /* of a range */
    uint64_t part_count;
    /* A body that is this call's own: the list of parts. */
    char *text;
    struct iovec piece;
    struct object_body body;
    /* Reads a good answer and tells the caller; or, with an error, only tells. May change *error. */
    void (*finish)(struct store_call *call, struct error *error, struct http_response *response);
    union store_tell tell;
    void *argument;
};

/* Of an answer that is XML. A list of 1000 keys of 1024 bytes, each byte encoded as three, is below it. */
#define S3_XML_LIMIT (8u << 20)

struct store_call *s3_call_new(struct object_store *store, enum store_operation operation, const char *key,
                               void *argument);
/* Sends it. body_limit: of the answer; stall_ms: how long no byte may move. The call is whole in either case: what goes
 * wrong here reaches its callback. */
struct store_call *s3_call_start(struct store_call *call, const struct s3_request *request, size_t body_limit,
                                 int64_t stall_ms);
#define S3_STALL_MS 60000

/* For operations whose good answer says nothing more. */
void s3_finish_done(struct store_call *call, struct error *error, struct http_response *response);
/* Compares an ETag that looks like an MD5 with the body's, where the call asks for it. */
void s3_check_etag(const struct store_call *call, const char *etag, struct error *error);
/* Whether text is 32 hex digits followed by `rest`. */
bool s3_is_md5(const char *text, const char *rest);

/* s3_list.c */
struct store_call *s3_list(struct object_store *store, const char *prefix, const char *after_token,
                           store_list_done *done, void *argument);
/* s3_multipart.c */
struct store_call *s3_multipart_create(struct object_store *store, const char *key, const char *content_type,
                                       store_created_done *done, void *argument);
struct store_call *s3_multipart_part(struct object_store *store, const char *key, const char *upload_id,
                                     uint32_t number, uint64_t position, const struct object_body *body,
                                     store_part_done *done, void *argument);
struct store_call *s3_multipart_complete(struct object_store *store, const char *key, const char *upload_id,
                                         const struct object_part *parts, size_t count, store_done *done,
                                         void *argument);
struct store_call *s3_multipart_abort(struct object_store *store, const char *key, const char *upload_id,
                                      store_done *done, void *argument);

#endif
