/*
 * Records on their way into segments: a batch of the producer's, for loads and the live load.
 *
 * Records of one partition gather until a segment is full, as they would in a producer's batch; gather_flush() writes
 * what is left, in the order in which the partitions' first records came.
 */
#ifndef DEVBROKER_GATHER_H
#define DEVBROKER_GATHER_H

#include "broker.h"

struct gathered {
    struct slice payload; /* borrowed until it is flushed */
    uint64_t id[2];       /* the transaction id's 128 bits */
};

struct gather_lane {
    struct gather_lane *next;
    struct slice name;
    uint64_t hash;
    struct gathered *records;
    size_t count;
    size_t capacity;
    bool waiting; /* it is in gather.waiting */
};

struct gather {
    struct broker *broker;
    struct slice queue;
    size_t segment_records;
    bool has_next_ts; /* else the clock's */
    int64_t next_ts_us;
    int64_t time_step_us;
    struct gather_lane **buckets;
    size_t bucket_count;
    size_t lane_count;
    struct gather_lane **waiting;
    size_t waiting_count;
    size_t waiting_capacity;
};

void gather_start(struct gather *gather, struct broker *broker, const char *queue, int64_t segment_records);
/* The transaction id is made from number, the same for the same number. */
void gather_add(struct gather *gather, struct slice partition, struct slice payload, uint64_t number);
void gather_flush(struct gather *gather);
void gather_end(struct gather *gather); /* without a flush */

#endif
