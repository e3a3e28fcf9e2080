/*
 * The log in memory: queues, partitions, segments.
 *
 * A segment's records are kept as the exact text that a fetch answers, each with a comma before it, so an answer is
 * slices of segments and copies nothing. Segments are counted references: retention and deletion take them out of
 * the log while an answer is still sending them.
 *
 * Nothing that was ever written is freed before the queue's end: what retention, a hole or a deletion took away stays
 * here for the oracle (GET /_dev/log?deleted=true), out of every reader's sight.
 *
 * One lock, many readers. Every function here says which side it wants; the caller takes it.
 */
#ifndef DEVBROKER_STORE_H
#define DEVBROKER_STORE_H

#include "system.h"

#include <pthread.h>
#include <stdatomic.h>

#include "index.h"
#include "text.h"

struct segment {
    atomic_size_t references;
    int64_t base_offset;
    int64_t ts_us;
    uint32_t count;
    char *text;        /* count records, each `,{"offset":…}`; behind starts in the same memory */
    uint32_t starts[]; /* count + 1 positions in text, each at a record's comma */
};

struct hole { /* offsets that can't be read, both inclusive */
    int64_t from;
    int64_t to;
};

struct partition {
    struct partition *next; /* in its bucket, or among the dead */
    struct slice name;
    uint64_t hash;
    int64_t serial; /* creation order over all queues; its UUID is made from it */
    struct segment **segments;
    size_t segment_count;
    size_t segment_capacity;
    int64_t next_offset;
    int64_t log_start;
    int64_t last_ts_us;
    int64_t last_write_at_us; /* coarse in 1.x, exact in 2.x */
    struct hole *holes;
    size_t hole_count;
    int64_t chosen_id; /* set by /_dev/set-id: stands in for serial in the UUID; 0 is none */
};

struct queue {
    struct queue *next;
    struct slice name;
    int64_t serial;
    struct partition **buckets;
    size_t bucket_count; /* a power of two */
    size_t partition_count;
    struct index by_name;
    struct index by_write;
    struct index by_creation;
    struct partition *dead; /* earlier lives of its partitions */
    int64_t record_count;   /* ever written */
    bool retention_enabled;
    int64_t retention_seconds;
    struct slice retention_sink_hold; /* .at NULL: none */
    int64_t retention_sink_hold_max_seconds;
};

struct record {
    struct slice transaction_id;
    struct slice payload;
};

struct store {
    pthread_rwlock_t lock;
    struct queue *queues; /* in creation order */
    struct queue *dead;
    int64_t next_serial;
    bool version_2;
    pthread_mutex_t changed_lock; /* for those that wait for records */
    pthread_cond_t changed;
    uint64_t change_count;
};

void store_start(struct store *store, bool version_2);
void store_end(struct store *store);
void store_read_lock(struct store *store);
void store_write_lock(struct store *store);
void store_unlock(struct store *store);
/* Waits until something is appended after change_count was read, at most until then. No lock is held. */
uint64_t store_change_count(struct store *store);
void store_wait_change(struct store *store, uint64_t seen, int64_t wait_ms);

/* Reading; NULL when there is none. */
struct queue *store_find_queue(const struct store *store, struct slice name);
struct partition *store_find_partition(const struct queue *queue, struct slice name);
size_t store_find_segment(const struct partition *partition, int64_t offset); /* the first that ends behind offset */
/* The first offset at or after offset that no hole covers, and in *until the first one after it that a hole covers. */
int64_t store_skip_holes(const struct partition *partition, int64_t offset, int64_t *until);
void store_write_id(const struct partition *partition, char to[36]);

/* Writing: found, or created. */
struct queue *store_take_queue(struct store *store, struct slice name);
struct partition *store_take_partition(struct store *store, struct queue *queue, struct slice name);
/* One segment of dense offsets from offset on (at or above the watermark; a gap stays a gap). count > 0. */
void store_append(struct store *store, struct queue *queue, struct partition *partition, int64_t offset, int64_t ts_us,
                  const struct record *records, size_t count);
void store_add_hole(struct partition *partition, int64_t from, int64_t to);
void store_set_log_start(struct partition *partition, int64_t log_start);
void store_delete_partition(struct queue *queue, struct partition *partition);
void store_delete_queue(struct store *store, struct queue *queue);
/* Deletes whole segments with ts below before_us; returns how many records went. */
int64_t store_expire(struct queue *queue, int64_t before_us);

void segment_keep(struct segment *segment);
void segment_release(struct segment *segment);

#endif
