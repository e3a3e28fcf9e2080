/*
 * The objects of one window on their way up (spec 2.1, 3.5): one under the merged layout, one a partition under
 * per-partition, a bounded number of them at a time. The keys depend on the plan and the intent alone, so a window that
 * is redone after a crash in the middle goes to the same keys.
 */
#ifndef WORKER_WINDOW_OBJECTS_H
#define WORKER_WINDOW_OBJECTS_H

#include "common/lake/manifest.h"
#include "worker/window.h"
#include "worker/world.h"

struct window_objects;

struct window_objects_request {
    const char *subject;       /* the queue's name; stays */
    const char *escaped_queue; /* stays */
    const char *prefix;        /* stays */
    struct window_shape shape;
    struct window_bounds bounds;
    const struct window_plan *plan; /* stays */
    uint64_t threshold;
    void (*failed)(void *argument, const struct error *error); /* told of each failure that will be retried */
    /* All are up, or one was refused. */
    void (*done)(void *argument, const struct error *error);
    void *argument;
};

struct window_totals {
    uint64_t records;
    uint64_t bytes;
    uint64_t partitions;
    struct broker_us min_ts;
    struct broker_us max_ts;
};

/* NULL and *error where a key would be too long. */
struct window_objects *window_objects_start(struct world *world, const struct window_objects_request *request,
                                            struct error *error);
/* What went up, for the manifest; theirs until window_objects_destroy(), names point into the plan. After done(). */
struct manifest_object *window_objects_list(struct window_objects *objects, size_t *count,
                                            struct window_totals *totals);
/* Cancels what is under way; no callback afterwards. NULL is nothing. */
void window_objects_destroy(struct window_objects *objects);

#endif
