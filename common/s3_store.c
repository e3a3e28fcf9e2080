/*
 * The object store over S3: one HTTP request a call, one attempt, signed at the moment it is sent.
 *
 * Only what spec 3.9 names is used: no conditional PUT, no LIST for correctness, no read after write. An answer goes
 * through three hands: http.c says whether it is whole, s3_error.c what a bad one means, and the call's own finish()
 * what a good one holds (and whether it is one: an ETag can differ, a 200 can carry an error).
 *
 * Integrity (spec 3.9): a body goes with Content-MD5, which the service checks, and a returned ETag of 32 hex digits
 * must be that MD5. Under SSE-KMS an ETag is opaque by AWS's rule and isn't compared; any other shape is noted at debug.
 *
 * The clock: a service refuses a signature whose time is more than 15 minutes off. Its answer carries its Date; the
 * difference is kept and added from then on, and the refused call is told as retriable. A HEAD's answer has no body to
 * name the reason, so there a 403 whose Date is that far off is taken for it.
 *
 * Sources: Amazon S3 API Reference, PutObject, GetObject, HeadObject, DeleteObject, "Common response headers" (ETag).
 */
#include "common/s3_store.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/hex.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/s3_internal.h"

#define CONNECT_TIMEOUT_MS 5000
#define CONNECTIONS_MAX    64
#define SHOWN_MAX          240 /* of a key in a message, so that what is wrong with it still fits */
#define SKEW_MS            (15 * 60 * 1000)
#define ERROR_LIMIT        (64u << 10) /* room for an <Error> where only a small object is expected */

static void free_call(struct store_call *call)
{
    free(call->key);
    free(call->text);
    free(call);
}

/* Takes the service's Date for the time, if it is further off than `tolerance` from what the call was signed with. */
static bool learn_clock(struct s3_store *store, const struct store_call *call, const char *date, int64_t tolerance_ms)
{
    time_t theirs = date[0] != '\0' ? curl_getdate(date, NULL) : -1;
    int64_t offset = (int64_t)theirs * 1000 - clock_wall().v;

    if (theirs < 0 ||
        (offset - call->clock_offset_ms < tolerance_ms && call->clock_offset_ms - offset < tolerance_ms)) {
        return false;
    }
    store->clock_offset_ms = offset;
    log_line(LOG_WARN, NULL,
             "the object store's clock is %" PRId64
             " s %s ours, and it refuses what we sign: its time is used from now "
             "on (check the clock of this machine)",
             (offset < 0 ? -offset : offset) / 1000, offset < 0 ? "behind" : "ahead of");
    return true;
}

static void explain(const struct store_call *call, const struct http_response *response, struct error *error)
{
    struct s3_fault fault;
    bool named = s3_fault_read(response->body, response->body_size, &fault);

    s3_error_classify(call->operation, call->key, response, &fault, error);
    if (s3_fault_is_skew(&fault)) {
        learn_clock(call->store, call, response->date, 1);
    } else if (!named && response->status == 403 && learn_clock(call->store, call, response->date, SKEW_MS)) {
        error_set(error, QS_ERROR_STATUS, "%s %s: 403, and the clocks differ", store_operation_name(call->operation),
                  call->key);
        error->status = response->status;
    }
}

/* A gateway on a plain address has no bucket.address in any name server. */
static void explain_transport(const struct store_call *call, struct error *error)
{
    bool maybe_style = error->code == QS_ERROR_TRANSPORT && !call->store->target.settings->path_style;

    error_set(error, error->code, "%s %s: %s%s", store_operation_name(call->operation), call->key, error->message,
              maybe_style ? " (check QUEEN_S3_ENDPOINT; a gateway mostly wants QUEEN_S3_PATH_STYLE=true)" : "");
    if (error->code == QS_ERROR_BODY) {
        error->retriable = false;
    }
}

/* Takes the call out of the store first: what its callback does to the store is then no business of ours. */
static void conclude(struct store_call *call, struct error *error, struct http_response *response)
{
    struct s3_store *store = call->store;

    TAILQ_REMOVE(&store->calls, call, link);
    if (store->observe != NULL) {
        store->observe(store->argument, call->operation, response->status);
    }
    call->finish(call, error, response);
    free_call(call);
}

static void on_answer(void *argument, const struct error *transport, struct http_response *response)
{
    struct store_call *call = argument;
    struct error error = *transport;

    if (error.code != QS_OK) {
        explain_transport(call, &error);
    } else if (response->status < 200 || response->status >= 300) {
        explain(call, response, &error);
        if (call->missing_is_good && error.code == QS_ERROR_NOT_FOUND) {
            error_clear(&error);
        }
    }
    conclude(call, &error, response);
}

static void on_not_sent(void *argument)
{
    struct store_call *call = argument;
    struct http_response none = {.retry_after_ms = -1};
    struct error error;

    error_set(&error, QS_ERROR_NO_MEMORY, "%s %s: out of memory, or OpenSSL can't sign",
              store_operation_name(call->operation), call->key);
    conclude(call, &error, &none);
}

struct store_call *s3_call_new(struct object_store *store, enum store_operation operation, const char *key,
                               void *argument)
{
    struct store_call *call = memory_new(1, sizeof *call);

    call->store = (struct s3_store *)store;
    call->operation = operation;
    call->key = memory_format("%.*s%s", SHOWN_MAX, key, strlen(key) > SHOWN_MAX ? "..." : "");
    call->argument = argument;
    TAILQ_INSERT_TAIL(&call->store->calls, call, link);
    return call;
}

struct store_call *s3_call_start(struct store_call *call, const struct s3_request *request, size_t body_limit,
                                 int64_t stall_ms)
{
    struct s3_store *store = call->store;
    struct s3_signed sealed;

    struct wall_ms now = {clock_wall().v + store->clock_offset_ms};
    call->clock_offset_ms = store->clock_offset_ms;
    if (s3_request_sign(&store->target, request, now, &sealed)) {
        struct http_request_options options = {.method = request->method,
                                               .url = sealed.url,
                                               .headers = (const char *const *)sealed.headers,
                                               .header_count = sealed.header_count,
                                               .stall_timeout_ms = stall_ms,
                                               .body_limit = body_limit};
        if (request->body != NULL) {
            options.pieces = request->body->pieces;
            options.piece_count = request->body->piece_count;
            options.body_size = request->body->size;
        }
        call->request = http_start(store->http, &options, on_answer, call);
    }
    s3_signed_free(&sealed);
    if (call->request == NULL) {
        timer_set(reactor_timers(store->reactor), &call->failed, reactor_now(store->reactor), on_not_sent, call);
    }
    return call;
}

void s3_finish_done(struct store_call *call, struct error *error, struct http_response *response)
{
    if (error->code == QS_OK && call->check_etag) {
        s3_check_etag(call, response->etag, error);
    }
    call->tell.done(call->argument, error);
}

bool s3_is_md5(const char *text, const char *rest)
{
    return strspn(text, "0123456789abcdefABCDEF") == 32 && strncmp(text + 32, rest, strlen(rest)) == 0;
}

void s3_check_etag(const struct store_call *call, const char *etag, struct error *error)
{
    char md5[33];

    *hex_write(md5, call->md5, sizeof call->md5) = '\0';
    if (call->store->target.settings->sse == SSE_KMS || strlen(etag) != 32 || !s3_is_md5(etag, "")) {
        log_line(LOG_DEBUG, NULL, "%s %s: the ETag \"%s\" isn't one to compare with the MD5",
                 store_operation_name(call->operation), call->key, etag);
    } else if (strcasecmp(etag, md5) != 0) {
        error_set(error, QS_ERROR_INTEGRITY, "%s %s: the ETag %s isn't the MD5 %s of what was sent",
                  store_operation_name(call->operation), call->key, etag, md5);
    }
}

static struct store_call *s3_put(struct object_store *store, const char *key, const char *content_type,
                                 const struct object_body *body, store_done *done, void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_PUT, key, argument);
    struct s3_request request = {
        .method = "PUT", .key = key, .content_type = content_type, .body = body, .check_md5 = true, .encrypt = true};

    memcpy(call->md5, body->md5, sizeof call->md5);
    call->check_etag = true;
    call->finish = s3_finish_done;
    call->tell.done = done;
    return s3_call_start(call, &request, ERROR_LIMIT, S3_STALL_MS);
}

static void finish_head(struct store_call *call, struct error *error, struct http_response *response)
{
    struct head_answer answer = {.size = response->content_length, .etag = response->etag};

    call->tell.head(call->argument, error, error->code == QS_OK ? &answer : NULL);
}

static struct store_call *s3_head(struct object_store *store, const char *key, store_head_done *done, void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_HEAD, key, argument);
    struct s3_request request = {.method = "HEAD", .key = key};

    call->finish = finish_head;
    call->tell.head = done;
    return s3_call_start(call, &request, ERROR_LIMIT, S3_STALL_MS);
}

/* The body's bytes change hands; so do those of an error, in which nobody is interested. */
static void finish_get(struct store_call *call, struct error *error, struct http_response *response)
{
    if (error->code == QS_OK && response->body_size > call->size_limit) {
        error_refuse(error, QS_ERROR_BODY, "get %s: %zu bytes, more than the %zu that are read", call->key,
                     response->body_size, call->size_limit);
    }
    if (error->code != QS_OK) {
        call->tell.get(call->argument, error, NULL, 0);
        return;
    }
    char *bytes = response->body;
    response->body = NULL;
    call->tell.get(call->argument, error, bytes, response->body_size);
}

static struct store_call *s3_get(struct object_store *store, const char *key, size_t size_limit, store_get_done *done,
                                 void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_GET, key, argument);
    struct s3_request request = {.method = "GET", .key = key};

    call->size_limit = size_limit;
    call->finish = finish_get;
    call->tell.get = done;
    return s3_call_start(call, &request, size_limit > ERROR_LIMIT ? size_limit : ERROR_LIMIT, S3_STALL_MS);
}

/* 206 and exactly what was asked for. A gateway that knows no ranges answers 200 with everything, which is right where
 * that is what was asked for. */
static void finish_get_range(struct store_call *call, struct error *error, struct http_response *response)
{
    if (error->code == QS_OK &&
        (response->body_size != call->size_limit || (response->status != 206 && call->position != 0))) {
        error_set(error, QS_ERROR_BODY, "get %s: status %d with %zu bytes, not the %zu from byte %" PRIu64 " on",
                  call->key, response->status, response->body_size, call->size_limit, call->position);
    }
    finish_get(call, error, response);
}

struct store_call *s3_store_get_range(struct object_store *store, const char *key, uint64_t position, size_t size,
                                      store_get_done *done, void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_GET, key, argument);
    char range[64];
    struct s3_request request = {.method = "GET", .key = key, .range = range};

    snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, position, position + size - 1);
    call->size_limit = size;
    call->position = position;
    call->finish = finish_get_range;
    call->tell.get = done;
    return s3_call_start(call, &request, size > ERROR_LIMIT ? size : ERROR_LIMIT, S3_STALL_MS);
}

static struct store_call *s3_remove(struct object_store *store, const char *key, store_done *done, void *argument)
{
    struct store_call *call = s3_call_new(store, STORE_DELETE, key, argument);
    struct s3_request request = {.method = "DELETE", .key = key};

    call->missing_is_good = true;
    call->finish = s3_finish_done;
    call->tell.done = done;
    return s3_call_start(call, &request, ERROR_LIMIT, S3_STALL_MS);
}

static void s3_cancel(struct object_store *object_store, struct store_call *call)
{
    struct s3_store *store = (struct s3_store *)object_store;

    if (call->request != NULL) {
        http_cancel(call->request);
    }
    timer_cancel(reactor_timers(store->reactor), &call->failed);
    TAILQ_REMOVE(&store->calls, call, link);
    free_call(call);
}

static void s3_destroy(struct object_store *object_store)
{
    struct s3_store *store = (struct s3_store *)object_store;

    for (struct store_call *call = TAILQ_FIRST(&store->calls), *next; call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        s3_cancel(object_store, call);
    }
    http_client_destroy(store->http);
    s3_target_free(&store->target);
    free(store);
}

void s3_store_set_credentials(struct object_store *object_store, const char *access_key, const char *secret_key,
                              const char *session_token)
{
    s3_target_set_credentials(&((struct s3_store *)object_store)->target, access_key, secret_key, session_token);
}

static const struct object_store_operations operations = {.put = s3_put,
                                                          .head = s3_head,
                                                          .get = s3_get,
                                                          .list = s3_list,
                                                          .remove = s3_remove,
                                                          .multipart_create = s3_multipart_create,
                                                          .multipart_part = s3_multipart_part,
                                                          .multipart_complete = s3_multipart_complete,
                                                          .multipart_abort = s3_multipart_abort,
                                                          .cancel = s3_cancel,
                                                          .destroy = s3_destroy};

struct object_store *s3_store_create(struct reactor *reactor, const struct settings *settings, store_observe *observe,
                                     void *argument, struct error *error)
{
    struct http_client_options options = {
        .ca_file = settings->ca_file, .connect_timeout_ms = CONNECT_TIMEOUT_MS, .connections_max = CONNECTIONS_MAX};
    struct http_client *http = http_client_create(reactor, &options, error);

    if (http == NULL) {
        return NULL;
    }
    struct s3_store *store = memory_new(1, sizeof *store);
    store->store.operations = &operations;
    store->reactor = reactor;
    store->http = http;
    store->observe = observe;
    store->argument = argument;
    TAILQ_INIT(&store->calls);
    s3_target_init(&store->target, settings);
    return &store->store;
}
