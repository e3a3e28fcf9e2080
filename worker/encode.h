/*
 * Turns runs into the bytes of one object (spec 2.2) on a thread, and hands them over in pieces while it goes on.
 *
 * Small objects come whole: up to `threshold` compressed bytes wait in memory, and done() gets them in pieces for one
 * PUT. When they outgrow it, parts of exactly OBJECT_PART_SIZE (the last one smaller) are handed to part() in order, at
 * most ENCODE_PARTS_AHEAD of them unreleased at a time: the encoder waits for encode_part_release(). All callbacks come
 * from the loop, never from within a call.
 *
 * The bytes depend on the runs and on the shape alone: not on the threshold, the number of threads or the timing.
 */
#ifndef WORKER_ENCODE_H
#define WORKER_ENCODE_H

#include <stdbool.h>

#include "common/error.h"
#include "common/lake/key.h"
#include "common/object_store.h"
#include "worker/run.h"

#define ENCODE_PARTS_AHEAD 3

struct encoder;
struct encode_job;

struct encode_part {
    uint8_t *bytes; /* the job's, until released */
    size_t size;
    uint8_t md5[16];
};

struct encode_result {
    /* One PUT: pieces are there, and stay until encode_end(). Multipart: piece_count is 0, all went to part(). */
    const struct iovec *pieces;
    size_t piece_count;
    uint8_t md5[16]; /* of the whole object; only where piece_count > 0 */
    uint64_t bytes;
    uint8_t sha256[32];
    uint64_t records;
    uint64_t partitions; /* runs with at least one record */
    struct broker_us min_ts;
    struct broker_us max_ts;
};

struct encode_handlers {
    void (*part)(void *argument, struct encode_part *part);
    /* Once, after the last part(). error->code 0: result is there, until encode_end(). Otherwise result is NULL. */
    void (*done)(void *argument, const struct error *error, const struct encode_result *result);
    /* Optional: the encoder is about to call its source's next(), and is done with what it had before. Several such calls
     * may be told as one. */
    void (*asked)(void *argument);
};

struct encoder_operations {
    /* source must stay until encode_end(). NULL only if out of memory. */
    struct encode_job *(*start)(struct encoder *encoder, const struct window_shape *shape, struct run_source *source,
                                uint64_t threshold, const struct encode_handlers *handlers, void *argument);
    void (*release)(struct encoder *encoder, struct encode_job *job, struct encode_part *part);
    /* Ends a job, finished or not, and frees what it holds; no callback afterwards, and when it returns no thread
     * touches the source any more (a next() that waits must have been woken by the caller before). */
    void (*end)(struct encoder *encoder, struct encode_job *job);
};

struct encoder {
    const struct encoder_operations *operations;
    bool threaded; /* next() is called on a thread of its own, where it may wait for the loop */
};

/* Bytes that a job may hold beside its source, with one compression thread: for the budget. */
uint64_t encode_memory(const struct window_shape *shape, uint64_t text_size, uint64_t threshold);

#endif
