/*
 * What an object that is up already holds (spec 3.5: a redo that finds something of its window lost must not shrink what
 * is there). It is read whole, and described from its own content.
 */
#ifndef WORKER_DESCRIBE_H
#define WORKER_DESCRIBE_H

#include "common/error.h"
#include "common/lake/key.h"
#include "common/lake/object_source.h"

/* Offsets of one partition that it holds, first to last without a hole. */
struct described_span {
    struct name partition;
    int64_t first;
    int64_t last;
};

struct object_description {
    uint64_t bytes;
    uint64_t records;
    uint8_t sha256[32];
    struct broker_us min_ts;
    struct broker_us max_ts;
    uint64_t partitions;
    struct described_span *spans; /* in the object's order, one or more a partition */
    size_t span_count;
};

/* error->code: 0; QS_ERROR_NOT_FOUND or QS_ERROR_FORBIDDEN: nothing is there; QS_ERROR_BODY, not retriable: what is there
 * isn't a whole object of that window; else a failure of reading. The description is valid during the callback. */
typedef void describe_done(void *argument, const struct error *error, const struct object_description *description);

struct describer;
struct describe_call;

struct describer_operations {
    /* As the calls of object_store.h: the callback runs once, later, from the loop. */
    struct describe_call *(*start)(struct describer *describer, const char *key, const struct window_shape *shape,
                                   const struct window_bounds *bounds, describe_done *done, void *argument);
    void (*cancel)(struct describer *describer, struct describe_call *call);
};

struct describer {
    const struct describer_operations *operations;
};

/* The reading itself: holds every record against the window's bounds and the order of 2.2. bytes and sha256 are left to
 * the caller, who has the bytes. On success the caller frees with describe_free(). */
int describe_object(const struct object_source *source, const struct window_shape *shape,
                    const struct window_bounds *bounds, struct object_description *description, struct error *error);
void describe_free(struct object_description *description);

#endif
