/*
 * Gathering records into segments; see gather.h for the contract.
 */
#include "gather.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

#define ID_SIZE 32

void gather_start(struct gather *gather, struct broker *broker, const char *queue, int64_t segment_records)
{
    *gather = (struct gather){.broker = broker, .queue = slice_of(queue), .bucket_count = 1024};
    gather->segment_records = (size_t)segment_records;
    gather->buckets = memory_take(gather->bucket_count, sizeof(struct gather_lane *));
    /* The queue is there even if no record ever comes. */
    store_write_lock(&broker->store);
    store_take_queue(&broker->store, gather->queue);
    store_unlock(&broker->store);
}

static void grow_buckets(struct gather *gather)
{
    size_t wanted = gather->bucket_count * 2;
    struct gather_lane **buckets = memory_take(wanted, sizeof(struct gather_lane *));

    for (size_t i = 0; i < gather->bucket_count; i++) {
        struct gather_lane *lane = gather->buckets[i];

        while (lane != NULL) {
            struct gather_lane *next = lane->next;

            lane->next = buckets[lane->hash & (wanted - 1)];
            buckets[lane->hash & (wanted - 1)] = lane;
            lane = next;
        }
    }
    free(gather->buckets);
    gather->buckets = buckets;
    gather->bucket_count = wanted;
}

static struct gather_lane *take_lane(struct gather *gather, struct slice name)
{
    uint64_t hash = slice_hash(name, 0);
    struct gather_lane *lane = gather->buckets[hash & (gather->bucket_count - 1)];

    while (lane != NULL && (lane->hash != hash || !slice_equal(lane->name, name))) {
        lane = lane->next;
    }
    if (lane != NULL) {
        return lane;
    }
    if (gather->lane_count++ >= gather->bucket_count) {
        grow_buckets(gather);
    }
    lane = memory_take(1, sizeof *lane);
    lane->name = slice_copy(name);
    lane->hash = hash;
    lane->next = gather->buckets[hash & (gather->bucket_count - 1)];
    gather->buckets[hash & (gather->bucket_count - 1)] = lane;
    return lane;
}

static void write_hex(char *to, uint64_t bits)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < 16; i++) {
        to[i] = hex[bits >> (60 - i * 4) & 15];
    }
}

static void flush_lane(struct gather *gather, struct gather_lane *lane)
{
    struct store *store = &gather->broker->store;
    struct record *records = memory_take(lane->count, sizeof *records);
    char *ids = memory_take(lane->count, ID_SIZE);
    struct queue *queue;
    struct partition *partition;
    int64_t ts_us = gather->next_ts_us;

    for (size_t i = 0; i < lane->count; i++) {
        write_hex(ids + i * ID_SIZE, lane->records[i].id[0]);
        write_hex(ids + i * ID_SIZE + 16, lane->records[i].id[1]);
        records[i] = (struct record){{ids + i * ID_SIZE, ID_SIZE}, lane->records[i].payload};
    }
    store_write_lock(store);
    queue = store_take_queue(store, gather->queue);
    partition = store_take_partition(store, queue, lane->name);
    if (gather->has_next_ts) {
        gather->next_ts_us += gather->time_step_us;
        clock_note_stamp(ts_us);
    } else {
        ts_us = clock_stamp();
    }
    store_append(store, queue, partition, partition->next_offset, ts_us, records, lane->count);
    store_unlock(store);
    lane->count = 0;
    free(records);
    free(ids);
}

void gather_add(struct gather *gather, struct slice partition, struct slice payload, uint64_t number)
{
    struct gather_lane *lane = take_lane(gather, partition);
    struct slice seed = {(const char *)&number, sizeof number};

    if (!lane->waiting) {
        gather->waiting = memory_room(gather->waiting, gather->waiting_count, &gather->waiting_capacity,
                                      sizeof(struct gather_lane *));
        gather->waiting[gather->waiting_count++] = lane;
        lane->waiting = true;
    }
    lane->records = memory_room(lane->records, lane->count, &lane->capacity, sizeof *lane->records);
    lane->records[lane->count++] = (struct gathered){payload, {slice_hash(seed, 5), slice_hash(seed, 6)}};
    if (lane->count >= gather->segment_records) {
        flush_lane(gather, lane);
    }
}

void gather_flush(struct gather *gather)
{
    for (size_t i = 0; i < gather->waiting_count; i++) {
        if (gather->waiting[i]->count > 0) {
            flush_lane(gather, gather->waiting[i]);
        }
        gather->waiting[i]->waiting = false;
    }
    gather->waiting_count = 0;
}

void gather_end(struct gather *gather)
{
    for (size_t i = 0; i < gather->bucket_count; i++) {
        while (gather->buckets[i] != NULL) {
            struct gather_lane *lane = gather->buckets[i];

            gather->buckets[i] = lane->next;
            free(lane->records);
            free((void *)(uintptr_t)lane->name.at);
            free(lane);
        }
    }
    free(gather->buckets);
    free(gather->waiting);
}
