/* An object put, or removed, with its attempts: upload.h. */
#include "worker/connector/upload.h"

#include <stdlib.h>
#include <sys/random.h>

#include "common/memory.h"

#define JITTER_PERCENT 20

struct sink_upload {
    struct reactor *reactor;
    struct sink_bucket *bucket;
    struct sink_upload_options options;
    char *key;
    sink_upload_again *again;
    sink_upload_done *done;
    void *argument;
    uint32_t attempts; /* begun */
    bool last;
    struct bucket_call *call;
    struct timer timer; /* until the next attempt */
    struct error error; /* of the attempt before */
};

int64_t sink_upload_delay(int64_t second_delay_ms, uint32_t attempt, uint64_t random)
{
    int64_t delay = second_delay_ms < SINK_DELAY_CAP_MS ? second_delay_ms : SINK_DELAY_CAP_MS;

    for (uint32_t i = 2; i < attempt && delay < SINK_DELAY_CAP_MS; i++) {
        delay *= 2;
    }
    delay = delay < SINK_DELAY_CAP_MS ? delay : SINK_DELAY_CAP_MS;
    int64_t spread = delay * JITTER_PERCENT / 100;
    delay += (int64_t)(random % (uint64_t)(2 * spread + 1)) - spread;
    return delay < SINK_DELAY_CAP_MS ? delay : SINK_DELAY_CAP_MS;
}

static uint64_t random_bits(void)
{
    uint64_t bits = 0;

    /* Where the kernel has none yet, all uploads of this machine wait alike, once. */
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        bits = (uint64_t)clock_mono().v;
    }
    return bits;
}

static void upload_free(struct sink_upload *upload)
{
    free(upload->key);
    free(upload);
}

static void conclude(struct sink_upload *upload)
{
    sink_upload_done *done = upload->done;
    void *argument = upload->argument;
    struct error error = upload->error;
    const char *operation = upload->options.body != NULL ? "PutObject" : "DeleteObject";

    if (error.code != QS_OK && error.status != 0 && !error.retriable) {
        error_prefix(&error, "S3 %s returned non-retriable status %d", operation, error.status);
    } else if (error.code != QS_OK) {
        error_prefix(&error, "S3 %s failed, attempt %u", operation, upload->attempts);
    }
    upload_free(upload);
    done(argument, &error);
}

static void on_attempt(void *argument, const struct error *error);

static void attempt(void *argument)
{
    struct sink_upload *upload = argument;

    upload->attempts++;
    if (upload->options.body == NULL) {
        upload->call = sink_bucket_remove(upload->bucket, upload->key, on_attempt, upload);
    } else {
        upload->call = sink_bucket_put(upload->bucket, upload->key, upload->options.content_type, upload->options.body,
                                       on_attempt, upload);
    }
}

static void on_attempt(void *argument, const struct error *error)
{
    struct sink_upload *upload = argument;
    bool for_ever = upload->options.max_attempts == 0;

    upload->call = NULL;
    upload->error = *error;
    store_error_drop_key(&upload->error, upload->key);
    if (error->code == QS_OK || upload->last || (!for_ever && !error->retriable) ||
        (!for_ever && upload->attempts >= upload->options.max_attempts)) {
        conclude(upload);
        return;
    }
    uint32_t next = upload->attempts < UINT32_MAX ? upload->attempts + 1 : UINT32_MAX;
    int64_t delay = sink_upload_delay(upload->options.second_delay_ms, next, random_bits());
    struct mono_ms at = {clock_mono().v + delay};
    timer_set(reactor_timers(upload->reactor), &upload->timer, at, attempt, upload);
    if (upload->again != NULL) {
        upload->again(upload->argument, &upload->error, upload->attempts, delay);
    }
}

struct sink_upload *sink_upload_start(struct reactor *reactor, struct sink_bucket *bucket,
                                      const struct sink_upload_options *options, sink_upload_again *again,
                                      sink_upload_done *done, void *argument)
{
    struct sink_upload *upload = memory_new(1, sizeof *upload);

    upload->reactor = reactor;
    upload->bucket = bucket;
    upload->options = *options;
    upload->key = memory_copy_text(options->key);
    upload->again = again;
    upload->done = done;
    upload->argument = argument;
    attempt(upload);
    return upload;
}

void sink_upload_last(struct sink_upload *upload)
{
    upload->last = true;
    if (upload->call == NULL) {
        timer_cancel(reactor_timers(upload->reactor), &upload->timer);
        conclude(upload);
    }
}

void sink_upload_cancel(struct sink_upload *upload)
{
    if (upload->call != NULL) {
        sink_bucket_cancel(upload->bucket, upload->call);
    }
    timer_cancel(reactor_timers(upload->reactor), &upload->timer);
    upload_free(upload);
}
