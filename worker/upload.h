/*
 * One object on its way up: encoding, one PUT or a multipart upload, and every retry in between (spec 3.5, 3.9). Small
 * objects go up in one PUT; larger ones in parts while the rest is still being compressed. What passes is tried for ever;
 * what is refused is told, and the multipart upload aborted.
 */
#ifndef WORKER_UPLOAD_H
#define WORKER_UPLOAD_H

#include "worker/world.h"

struct upload;

struct upload_request {
    const char *subject; /* the queue's name, for log lines; stays */
    const char *key;
    struct window_shape shape;
    struct run_source *source;      /* stays */
    void (*rewind)(void *argument); /* sets the source back to its beginning, for another attempt */
    void (*asked)(void *argument);  /* as in encode.h; may be NULL */
    void (*stop)(void *argument);   /* wakes a source that waits, before its job is ended; may be NULL */
    uint64_t threshold;
    void (*failed)(void *argument, const struct error *error); /* told of each failure that will be retried */
    /* The object is up (error->code 0; result valid during the callback), or was refused. The upload is over and frees
     * itself. */
    void (*done)(void *argument, const struct error *error, const struct encode_result *result);
    void *argument;
};

struct upload *upload_start(struct world *world, const struct upload_request *request);
/* No callback afterwards; an open multipart upload is aborted, best effort. */
void upload_cancel(struct upload *upload);

/* A small object in memory, put with the same retries. bytes are the put's from now on (malloc). failed() may cancel it. */
struct small_put;
struct small_put *small_put_start(struct world *world, const char *subject, const char *key, const char *content_type,
                                  char *bytes, size_t size, void (*failed)(void *argument, const struct error *error),
                                  void (*done)(void *argument, const struct error *error), void *argument);
void small_put_cancel(struct small_put *put);

#endif
