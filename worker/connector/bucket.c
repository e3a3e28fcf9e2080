/*
 * The bucket of a sink (bucket.h). Credentials of the chain are asked for at the first call and again some minutes
 * before they end; calls wait only while there are none that are good.
 */
#include "worker/connector/bucket.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "common/file_store.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/s3_store.h"
#include "worker/connector/credentials.h"

#define RENEW_BEFORE_MS 300000 /* AWS gives new ones at least five minutes before the old ones end */
#define RENEW_AGAIN_MS  30000  /* after a search that failed, while the old ones are still good */
#define EXPIRED_MS      1000   /* so close to their end they are not used any more */

TAILQ_HEAD(bucket_calls, bucket_call);

enum bucket_operation { BUCKET_PUT, BUCKET_HEAD, BUCKET_REMOVE };

struct bucket_call {
    TAILQ_ENTRY(bucket_call) link;
    struct sink_bucket *bucket;
    enum bucket_operation operation;
    char *key;
    const char *content_type;
    const struct object_body *body;
    store_done *done;
    store_head_done *head_done; /* of a BUCKET_HEAD, instead of done */
    void *argument;
    struct store_call *store_call; /* NULL: waits for credentials */
};

struct sink_bucket {
    struct reactor *reactor;
    struct object_store *store;
    struct credential_chain *chain; /* NULL: the keypair of the options, or a directory */
    bool searching;
    bool signs; /* the store has credentials */
    struct wall_ms expires;
    struct mono_ms search_after;
    struct bucket_calls waiting;
    struct bucket_calls running;
};

void sink_error_reword(struct error *error)
{
    static const struct {
        const char *variable;
        const char *option;
    } names[] = {{"QUEEN_S3_ENDPOINT", "endpoint"},
                 {"QUEEN_S3_REGION", "region"},
                 {"QUEEN_S3_BUCKET", "bucket"},
                 {"QUEEN_S3_PREFIX", "prefix"},
                 {"QUEEN_S3_ACCESS_KEY", "access_key_id"},
                 {"QUEEN_S3_SECRET_KEY", "secret_access_key"},
                 {"QUEEN_S3_PATH_STYLE", "path_style"},
                 {" (queen-s3 policy prints what it needs)", ""}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t size = strlen(names[i].variable);
        size_t room = strlen(names[i].option); /* never more than what it stands for */
        for (char *at = strstr(error->message, names[i].variable); at != NULL; at = strstr(at, names[i].variable)) {
            memcpy(at, names[i].option, room);
            memmove(at + room, at + size, strlen(at + size) + 1);
        }
    }
}

bool sink_bucket_body(const struct sink_options *options, const struct sink_body *body, struct object_body *out)
{
    *out = (struct object_body){.pieces = body->pieces, .piece_count = body->count, .size = body->size};
    if (options->store.file_root != NULL) {
        return true;
    }
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context != NULL && EVP_DigestInit_ex(context, EVP_md5(), NULL) == 1;
    for (size_t i = 0; i < body->count && good; i++) {
        good = EVP_DigestUpdate(context, body->pieces[i].iov_base, body->pieces[i].iov_len) == 1;
    }
    good = good && EVP_DigestFinal_ex(context, out->md5, NULL) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

static void call_free(struct bucket_call *call)
{
    free(call->key);
    free(call);
}

/* Tells whose call it was, and frees it. */
static void finish(struct bucket_call *call, const struct error *error, const struct head_answer *answer)
{
    if (call->operation == BUCKET_HEAD) {
        call->head_done(call->argument, error, answer);
    } else {
        call->done(call->argument, error);
    }
    call_free(call);
}

static void on_head(void *argument, const struct error *error, const struct head_answer *answer)
{
    struct bucket_call *call = argument;
    struct sink_bucket *bucket = call->bucket;
    struct error told = *error;

    TAILQ_REMOVE(&bucket->running, call, link);
    /* What was refused may have been taken away: the next call asks anew. */
    if (bucket->chain != NULL && (told.status == 400 || told.status == 401 || told.status == 403)) {
        bucket->signs = false;
    }
    sink_error_reword(&told);
    finish(call, &told, answer);
}

static void on_done(void *argument, const struct error *error)
{
    on_head(argument, error, NULL);
}

static void start(struct bucket_call *call)
{
    struct sink_bucket *bucket = call->bucket;
    const struct object_store_operations *operations = bucket->store->operations;

    TAILQ_INSERT_TAIL(&bucket->running, call, link);
    switch (call->operation) {
    case BUCKET_PUT:
        call->store_call = operations->put(bucket->store, call->key, call->content_type, call->body, on_done, call);
        break;
    case BUCKET_HEAD: call->store_call = operations->head(bucket->store, call->key, on_head, call); break;
    case BUCKET_REMOVE: call->store_call = operations->remove(bucket->store, call->key, on_done, call); break;
    }
}

static void on_found(void *argument, const struct error *error, struct sink_credentials *found)
{
    struct sink_bucket *bucket = argument;
    struct bucket_call *call;

    bucket->searching = false;
    bucket->search_after.v = reactor_now(bucket->reactor).v + (error->code != QS_OK ? RENEW_AGAIN_MS : 0);
    if (error->code == QS_OK) {
        s3_store_set_credentials(bucket->store, found->access_key, found->secret_key, found->session_token);
        bucket->signs = true;
        bucket->expires = found->expires;
        sink_credentials_free(found);
    } else {
        log_line(LOG_WARN, NULL, "%s", error->message);
    }
    /* A callback may add calls: those begin another search, behind these. */
    struct bucket_calls waiting = TAILQ_HEAD_INITIALIZER(waiting);
    TAILQ_CONCAT(&waiting, &bucket->waiting, link);
    while ((call = TAILQ_FIRST(&waiting)) != NULL) {
        TAILQ_REMOVE(&waiting, call, link);
        if (error->code == QS_OK) {
            start(call);
        } else {
            finish(call, error, NULL);
        }
    }
}

static void search(struct sink_bucket *bucket)
{
    if (!bucket->searching) {
        bucket->searching = true;
        credential_chain_search(bucket->chain, on_found, bucket);
    }
}

/* True where there are credentials that are good for now. */
static bool can_sign(struct sink_bucket *bucket)
{
    if (bucket->chain == NULL) {
        return true;
    }
    int64_t left = bucket->expires.v == INT64_MAX ? INT64_MAX : bucket->expires.v - clock_wall().v;
    bool good = bucket->signs && left > EXPIRED_MS;
    if (!good || (left < RENEW_BEFORE_MS && reactor_now(bucket->reactor).v >= bucket->search_after.v)) {
        search(bucket);
    }
    return good;
}

static struct bucket_call *call_start(struct bucket_call *call)
{
    if (can_sign(call->bucket)) {
        start(call);
    } else {
        TAILQ_INSERT_TAIL(&call->bucket->waiting, call, link);
    }
    return call;
}

static struct bucket_call *call_new(struct sink_bucket *bucket, const char *key, store_done *done, void *argument)
{
    struct bucket_call *call = memory_new(1, sizeof *call);

    call->bucket = bucket;
    call->key = memory_copy_text(key);
    call->done = done;
    call->argument = argument;
    return call;
}

struct bucket_call *sink_bucket_put(struct sink_bucket *bucket, const char *key, const char *content_type,
                                    const struct object_body *body, store_done *done, void *argument)
{
    struct bucket_call *call = call_new(bucket, key, done, argument);

    call->content_type = content_type;
    call->body = body;
    return call_start(call);
}

struct bucket_call *sink_bucket_head(struct sink_bucket *bucket, const char *key, store_head_done *done, void *argument)
{
    struct bucket_call *call = call_new(bucket, key, NULL, argument);

    call->operation = BUCKET_HEAD;
    call->head_done = done;
    return call_start(call);
}

struct bucket_call *sink_bucket_remove(struct sink_bucket *bucket, const char *key, store_done *done, void *argument)
{
    struct bucket_call *call = call_new(bucket, key, done, argument);

    call->operation = BUCKET_REMOVE;
    return call_start(call);
}

void sink_bucket_cancel(struct sink_bucket *bucket, struct bucket_call *call)
{
    if (call->store_call != NULL) {
        bucket->store->operations->cancel(bucket->store, call->store_call);
        TAILQ_REMOVE(&bucket->running, call, link);
    } else {
        TAILQ_REMOVE(&bucket->waiting, call, link);
    }
    call_free(call);
}

static void drop_all(struct sink_bucket *bucket, struct bucket_calls *calls)
{
    struct bucket_call *call;

    while ((call = TAILQ_FIRST(calls)) != NULL) {
        sink_bucket_cancel(bucket, call);
    }
}

/* What a crash left unpublished. Where it can't be removed, it is only in the way. */
static void remove_remains(const struct settings *store)
{
    struct error error;

    if (file_store_clean(store->file_root, store->bucket, &error) != 0) {
        sink_error_reword(&error);
        log_line(LOG_WARN, NULL, "%s", error.message);
    }
}

struct sink_bucket *sink_bucket_open(struct reactor *reactor, const struct sink_options *options,
                                     settings_lookup *lookup, void *lookup_argument, struct error *error)
{
    struct sink_bucket *bucket = memory_new(1, sizeof *bucket);
    const struct settings *store = &options->store;

    bucket->reactor = reactor;
    TAILQ_INIT(&bucket->waiting);
    TAILQ_INIT(&bucket->running);
    error_clear(error);
    if (store->file_root != NULL) {
        bucket->store = file_store_create(reactor, store->file_root, store->bucket, NULL, NULL, error);
        remove_remains(store);
    } else {
        bucket->store = s3_store_create(reactor, store, NULL, NULL, error);
        if (bucket->store != NULL && store->access_key == NULL) {
            bucket->chain = credential_chain_create(reactor, store->region, lookup, lookup_argument, error);
        }
    }
    if (error->code != QS_OK) {
        sink_error_reword(error);
        sink_bucket_close(bucket);
        return NULL;
    }
    return bucket;
}

void sink_bucket_close(struct sink_bucket *bucket)
{
    if (bucket == NULL) {
        return;
    }
    drop_all(bucket, &bucket->waiting);
    drop_all(bucket, &bucket->running);
    credential_chain_destroy(bucket->chain);
    if (bucket->store != NULL) {
        bucket->store->operations->destroy(bucket->store);
    }
    free(bucket);
}
