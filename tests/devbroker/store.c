/*
 * The log in memory; see store.h for the contract. Rendering of records is in segment.c.
 */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "segment.h"

#define COARSE_US INT64_C(1000000)

void store_start(struct store *store, bool version_2)
{
    pthread_rwlockattr_t attributes;
    pthread_condattr_t monotonic;

    *store = (struct store){.version_2 = version_2, .next_serial = 1};
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&store->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    pthread_mutex_init(&store->changed_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&store->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void store_read_lock(struct store *store)
{
    pthread_rwlock_rdlock(&store->lock);
}

void store_write_lock(struct store *store)
{
    pthread_rwlock_wrlock(&store->lock);
}

void store_unlock(struct store *store)
{
    pthread_rwlock_unlock(&store->lock);
}

uint64_t store_change_count(struct store *store)
{
    uint64_t count;

    pthread_mutex_lock(&store->changed_lock);
    count = store->change_count;
    pthread_mutex_unlock(&store->changed_lock);
    return count;
}

void store_wait_change(struct store *store, uint64_t seen, int64_t wait_ms)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(wait_ms / 1000);
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&store->changed_lock);
    while (store->change_count == seen && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&store->changed, &store->changed_lock, &until);
    }
    pthread_mutex_unlock(&store->changed_lock);
}

static void store_announce(struct store *store)
{
    pthread_mutex_lock(&store->changed_lock);
    store->change_count++;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->changed_lock);
}

struct queue *store_find_queue(const struct store *store, struct slice name)
{
    struct queue *queue = store->queues;

    while (queue != NULL && !slice_equal(queue->name, name)) {
        queue = queue->next;
    }
    return queue;
}

struct queue *store_take_queue(struct store *store, struct slice name)
{
    struct queue *queue = store_find_queue(store, name);
    struct queue **link = &store->queues;

    if (queue != NULL) {
        return queue;
    }
    queue = memory_take(1, sizeof *queue);
    queue->name = slice_copy(name);
    queue->serial = store->next_serial++;
    queue->bucket_count = 16;
    queue->buckets = memory_take(queue->bucket_count, sizeof(struct partition *));
    queue->by_name.order = INDEX_BY_NAME;
    queue->by_write.order = INDEX_BY_WRITE;
    queue->by_creation.order = INDEX_BY_CREATION;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = queue;
    return queue;
}

static struct partition *find_hashed(const struct queue *queue, struct slice name, uint64_t hash)
{
    struct partition *partition = queue->buckets[hash & (queue->bucket_count - 1)];

    while (partition != NULL && (partition->hash != hash || !slice_equal(partition->name, name))) {
        partition = partition->next;
    }
    return partition;
}

struct partition *store_find_partition(const struct queue *queue, struct slice name)
{
    return find_hashed(queue, name, slice_hash(name, 0));
}

static void grow_buckets(struct queue *queue)
{
    size_t wanted = queue->bucket_count * 2;
    struct partition **buckets = memory_take(wanted, sizeof(struct partition *));

    for (size_t i = 0; i < queue->bucket_count; i++) {
        struct partition *partition = queue->buckets[i];

        while (partition != NULL) {
            struct partition *next = partition->next;
            struct partition **bucket = &buckets[partition->hash & (wanted - 1)];

            partition->next = *bucket;
            *bucket = partition;
            partition = next;
        }
    }
    free(queue->buckets);
    queue->buckets = buckets;
    queue->bucket_count = wanted;
}

struct partition *store_take_partition(struct store *store, struct queue *queue, struct slice name)
{
    uint64_t hash = slice_hash(name, 0);
    struct partition *partition = find_hashed(queue, name, hash);
    struct partition **bucket;

    if (partition != NULL) {
        return partition;
    }
    if (queue->partition_count >= queue->bucket_count) {
        grow_buckets(queue);
    }
    partition = memory_take(1, sizeof *partition + name.size + 1);
    if (name.size > 0) {
        memcpy(partition + 1, name.at, name.size);
    }
    partition->name = (struct slice){(const char *)(partition + 1), name.size};
    partition->hash = hash;
    partition->serial = store->next_serial++;
    partition->last_ts_us = INT64_MIN;
    partition->last_write_at_us = INT64_MIN;
    bucket = &queue->buckets[hash & (queue->bucket_count - 1)];
    partition->next = *bucket;
    *bucket = partition;
    queue->partition_count++;
    index_add(&queue->by_name, partition, 0);
    index_add(&queue->by_creation, partition, partition->serial);
    return partition;
}

/* 1.x refreshes lastWriteAt at most once a second, and its stamp is not quite the segment's: some microseconds before
 * it, or, with deduplication, up to 0.3 ms after. */
static void refresh_last_write(const struct store *store, struct queue *queue, struct partition *partition,
                               int64_t ts_us)
{
    int64_t wanted = ts_us;

    if (!store->version_2) {
        if (partition->last_write_at_us != INT64_MIN && ts_us - partition->last_write_at_us <= COARSE_US) {
            return;
        }
        wanted += (int64_t)((partition->hash ^ (uint64_t)ts_us) % 306) - 5;
    }
    if (wanted > partition->last_write_at_us) {
        partition->last_write_at_us = wanted;
        index_add(&queue->by_write, partition, wanted);
    }
}

void store_append(struct store *store, struct queue *queue, struct partition *partition, int64_t offset, int64_t ts_us,
                  const struct record *records, size_t count)
{
    if (ts_us < partition->last_ts_us) {
        ts_us = partition->last_ts_us;
    }
    partition->segments = memory_room(partition->segments, partition->segment_count, &partition->segment_capacity,
                                      sizeof(struct segment *));
    partition->segments[partition->segment_count++] = segment_render(offset, ts_us, records, count);
    if (partition->segment_count == 1 && offset > partition->next_offset) {
        partition->log_start = offset;
    }
    partition->next_offset = offset + (int64_t)count;
    partition->last_ts_us = ts_us;
    queue->record_count += (int64_t)count;
    refresh_last_write(store, queue, partition, ts_us);
    store_announce(store);
}

size_t store_find_segment(const struct partition *partition, int64_t offset)
{
    size_t low = 0;
    size_t high = partition->segment_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct segment *segment = partition->segments[middle];

        if (segment->base_offset + (int64_t)segment->count <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int64_t store_skip_holes(const struct partition *partition, int64_t offset, int64_t *until)
{
    bool moved = true;

    *until = INT64_MAX;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < partition->hole_count; i++) {
            if (offset >= partition->holes[i].from && offset <= partition->holes[i].to) {
                offset = partition->holes[i].to + 1;
                moved = true;
            }
        }
    }
    for (size_t i = 0; i < partition->hole_count; i++) {
        if (partition->holes[i].from > offset && partition->holes[i].from < *until) {
            *until = partition->holes[i].from;
        }
    }
    return offset;
}

void store_add_hole(struct partition *partition, int64_t from, int64_t to)
{
    partition->holes = memory_resize(partition->holes, partition->hole_count + 1, sizeof *partition->holes);
    partition->holes[partition->hole_count++] = (struct hole){from, to};
}

void store_set_log_start(struct partition *partition, int64_t log_start)
{
    if (log_start > partition->next_offset) {
        log_start = partition->next_offset;
    }
    if (log_start > partition->log_start) {
        partition->log_start = log_start;
    }
}

int64_t store_expire(struct queue *queue, int64_t before_us)
{
    int64_t deleted = 0;

    for (size_t i = 0; i < queue->bucket_count; i++) {
        for (struct partition *partition = queue->buckets[i]; partition != NULL; partition = partition->next) {
            int64_t log_start = partition->log_start;

            for (size_t at = store_find_segment(partition, log_start);
                 at < partition->segment_count && partition->segments[at]->ts_us < before_us; at++) {
                log_start = partition->segments[at]->base_offset + (int64_t)partition->segments[at]->count;
            }
            deleted += log_start - partition->log_start;
            store_set_log_start(partition, log_start);
        }
    }
    return deleted;
}

void store_delete_partition(struct queue *queue, struct partition *partition)
{
    struct partition **link = &queue->buckets[partition->hash & (queue->bucket_count - 1)];

    while (*link != partition) {
        link = &(*link)->next;
    }
    *link = partition->next;
    queue->partition_count--;
    index_drop(&queue->by_name, partition);
    index_drop(&queue->by_write, partition);
    index_drop(&queue->by_creation, partition);
    partition->next = queue->dead;
    queue->dead = partition;
}

void store_delete_queue(struct store *store, struct queue *queue)
{
    struct queue **link = &store->queues;

    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    for (size_t i = 0; i < queue->bucket_count; i++) {
        while (queue->buckets[i] != NULL) {
            struct partition *partition = queue->buckets[i];

            queue->buckets[i] = partition->next;
            partition->next = queue->dead;
            queue->dead = partition;
        }
    }
    queue->partition_count = 0;
    index_free(&queue->by_name);
    index_free(&queue->by_write);
    index_free(&queue->by_creation);
    queue->next = store->dead;
    store->dead = queue;
}

void store_write_id(const struct partition *partition, char to[36])
{
    static const char hex[] = "0123456789abcdef";
    int64_t serial = partition->chosen_id != 0 ? partition->chosen_id : partition->serial;
    struct slice seed = {(const char *)&serial, sizeof serial};
    const uint64_t halves[2] = {slice_hash(seed, 1), slice_hash(seed, 2)};
    size_t at = 0;

    for (size_t i = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20) {
            to[at++] = '-';
        }
        to[at++] = hex[halves[i / 16] >> (i % 16 * 4) & 15];
    }
    to[14] = '4';
    to[19] = 'a';
}

static void free_partitions(struct partition *partition)
{
    while (partition != NULL) {
        struct partition *next = partition->next;

        for (size_t i = 0; i < partition->segment_count; i++) {
            segment_release(partition->segments[i]);
        }
        free(partition->segments);
        free(partition->holes);
        free(partition);
        partition = next;
    }
}

static void free_queues(struct queue *queue)
{
    while (queue != NULL) {
        struct queue *next = queue->next;

        for (size_t i = 0; i < queue->bucket_count; i++) {
            free_partitions(queue->buckets[i]);
        }
        free_partitions(queue->dead);
        index_free(&queue->by_name);
        index_free(&queue->by_write);
        index_free(&queue->by_creation);
        free(queue->buckets);
        free((void *)(uintptr_t)queue->retention_sink_hold.at);
        free((void *)(uintptr_t)queue->name.at);
        free(queue);
        queue = next;
    }
}

void store_end(struct store *store)
{
    free_queues(store->queues);
    free_queues(store->dead);
    pthread_rwlock_destroy(&store->lock);
    pthread_mutex_destroy(&store->changed_lock);
    pthread_cond_destroy(&store->changed);
}
