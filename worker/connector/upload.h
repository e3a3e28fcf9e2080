/*
 * An object put, or removed, with its attempts (seed, "How it works"; spec 5.2): the delay before attempt n is the first one doubled
 * with each, with 20 percent jitter and a cap of 60 seconds. Transport errors, 5xx, 408 and 429 are tried again; any
 * other status ends it at once, unless it is tried for ever.
 */
#ifndef WORKER_CONNECTOR_UPLOAD_H
#define WORKER_CONNECTOR_UPLOAD_H

#include <stdint.h>

#include "worker/connector/bucket.h"

#define SINK_DELAY_CAP_MS 60000

struct sink_upload;

struct sink_upload_options {
    const char *key; /* copied */
    const char *content_type;
    const struct object_body *body; /* borrowed until done or cancelled; NULL: the object is removed */
    uint32_t max_attempts;          /* 0: for ever, whatever the answer */
    int64_t second_delay_ms;        /* before attempt 2; doubled before each further one */
};

/* error: clear where the object is up, or gone, else what the last attempt said. Here and below it leaves the key to
 * whoever tells of it. */
typedef void sink_upload_done(void *argument, const struct error *error);
/* Told of an attempt that failed and is followed by another, after delay_ms. */
typedef void sink_upload_again(void *argument, const struct error *error, uint32_t attempt, int64_t delay_ms);

/* again may be NULL. The upload is gone once done() has begun. */
struct sink_upload *sink_upload_start(struct reactor *reactor, struct sink_bucket *bucket,
                                      const struct sink_upload_options *options, sink_upload_again *again,
                                      sink_upload_done *done, void *argument);
/* No further attempt: one under way goes on, a delay ends at once. done() may run within this call. */
void sink_upload_last(struct sink_upload *upload);
/* done() will not run. */
void sink_upload_cancel(struct sink_upload *upload);

/* The delay before attempt `attempt` (2, 3, …); random: 64 of them. */
int64_t sink_upload_delay(int64_t second_delay_ms, uint32_t attempt, uint64_t random);

#endif
