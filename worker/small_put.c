/* A small object in memory (a manifest, a checkpoint), put until it is there: upload.h. */
#include <openssl/evp.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/retry.h"
#include "worker/upload.h"

struct small_put {
    struct world *world;
    const char *subject;
    char *key;
    const char *content_type;
    char *bytes;
    struct iovec piece;
    struct object_body body;
    struct store_call *call;
    struct timer timer;
    struct retry retry;
    struct log_limit limit;
    void (*failed)(void *argument, const struct error *error);
    void (*done)(void *argument, const struct error *error);
    void *argument;
};

static void put_free(struct small_put *put)
{
    free(put->key);
    free(put->bytes);
    free(put);
}

void small_put_cancel(struct small_put *put)
{
    if (put == NULL)
        return;
    if (put->call != NULL)
        put->world->store->operations->cancel(put->world->store, put->call);
    timer_cancel(put->world->timers, &put->timer);
    put_free(put);
}

static void put_done(void *argument, const struct error *error);

static void put_send(void *argument)
{
    struct small_put *put = argument;
    put->call =
        put->world->store->operations->put(put->world->store, put->key, put->content_type, &put->body, put_done, put);
}

static void put_done(void *argument, const struct error *error)
{
    struct small_put *put = argument;
    put->call = NULL;
    if (error->code != QS_OK && error->retriable) {
        struct error plain = *error;
        store_error_drop_key(&plain, put->key);
        log_limited(&put->limit, put->world->now(put->world), LOG_WARN, put->subject, "upload of %s: %s", put->key,
                    plain.message);
        timer_set(put->world->timers, &put->timer,
                  world_after(put->world, retry_delay(&put->retry, put->world, error, RETRY_CAP_MS)), put_send, put);
        if (put->failed != NULL)
            put->failed(put->argument, error);
        return;
    }
    void (*done)(void *, const struct error *) = put->done;
    void *done_argument = put->argument;
    put_free(put);
    done(done_argument, error);
}

struct small_put *small_put_start(struct world *world, const char *subject, const char *key, const char *content_type,
                                  char *bytes, size_t size, void (*failed)(void *argument, const struct error *error),
                                  void (*done)(void *argument, const struct error *error), void *argument)
{
    struct small_put *put = memory_new(1, sizeof *put);
    *put = (struct small_put){.world = world,
                              .subject = subject,
                              .key = memory_copy_text(key),
                              .content_type = content_type,
                              .bytes = bytes,
                              .piece = {bytes, size},
                              .failed = failed,
                              .done = done,
                              .argument = argument};
    put->body.pieces = &put->piece;
    put->body.piece_count = 1;
    put->body.size = size;
    EVP_Digest(bytes, size, put->body.md5, NULL, EVP_md5(), NULL);
    put_send(put);
    return put;
}
