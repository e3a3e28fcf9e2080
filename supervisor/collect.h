/*
 * What the workers told of themselves (spec 4.3): the pool's queues with their last known state, and totals that never
 * go down. A worker's totals count from its start; when it is dead, and its socket read to its end, they are folded into
 * the past, and its replacement counts on top. No series ever vanishes.
 *
 * Memory is the supervisor's own and small: running out of it ends the process.
 */
#ifndef SUPERVISOR_COLLECT_H
#define SUPERVISOR_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/report.h"

struct queue_totals {
    uint64_t windows_committed;
    uint64_t records_written;
    uint64_t bytes_written[FORMAT_COUNT];
    uint64_t records_lost;
    uint64_t fetch_ok;
    uint64_t fetch_error;
};

struct collected_queue {
    char *name;
    size_t worker;
    bool from_log_start;     /* it appeared while the pool ran (spec 4.1) */
    struct mono_ms assigned; /* to this pool; moves on while it is another instance's (spec 3.11) */
    struct mono_ms fresh;    /* the last commit, or "read all, nothing buffered"; 0: never */
    bool held;               /* some worker of this pool has had its lease */
    bool standby;            /* another instance has had it since before that */
    struct queue_totals past;
    struct queue_totals live;
    struct report_queue last; /* as last reported, with what a restarted worker doesn't know yet kept from before */
    bool reported;
};

/* Totals of one worker, or of all dead ones. */
struct worker_totals {
    uint64_t precondition_lost;
    uint64_t window_records[REPORT_HISTOGRAM_BUCKETS + 1];
    double window_records_sum;
    uint64_t window_bytes[REPORT_HISTOGRAM_BUCKETS + 1];
    double window_bytes_sum;
};

struct request_series {
    int32_t operation; /* enum store_operation */
    int32_t code;
    uint64_t past;
    uint64_t *live; /* by worker */
};

struct collected_worker {
    struct worker_totals live;
    uint64_t buffer_bytes;
    bool has_safe_time;
    int64_t safe_time_us;
    int64_t safe_time_mono_ms;
};

struct collect {
    struct collected_queue *queues; /* by number; pointers into it hold until the next collect_add_queue() */
    size_t queue_count;
    size_t queue_capacity;
    void *by_name; /* a tree of struct name_entry */
    struct collected_worker *workers;
    size_t worker_limit;
    struct worker_totals past;
    struct request_series *requests;
    size_t request_count;
    size_t request_capacity;
};

void collect_init(struct collect *collect, size_t worker_limit);
void collect_free(struct collect *collect);

/* Takes in a queue that isn't there yet; returns its number. */
uint32_t collect_add_queue(struct collect *collect, const char *name, size_t worker, bool from_log_start,
                           struct mono_ms now);
bool collect_has_queue(const struct collect *collect, const char *name);

/* A report from that worker. One on a queue that isn't its own is ignored. */
void collect_queue(struct collect *collect, size_t worker, const struct report_queue *report, struct mono_ms now);
void collect_worker(struct collect *collect, size_t worker, const struct report_worker *report);
/* The worker is dead and has been read to its end. */
void collect_fold(struct collect *collect, size_t worker);

/* Sums of past and live. */
struct queue_totals collect_queue_totals(const struct collected_queue *queue);
struct worker_totals collect_totals(const struct collect *collect);
uint64_t collect_requests(const struct collect *collect, const struct request_series *series);

/* How far a queue's lake is behind the broker's now (spec 3.11), never below 0; false where it isn't known. */
bool collect_lag_us(const struct collect *collect, const struct collected_queue *queue, struct mono_ms now,
                    int64_t *lag_us);

#endif
