/*
 * See collect.h. Totals of one worker are taken as the larger of what is known and what is reported, so that even a
 * worker that miscounts can't make a counter fall.
 */
#include "supervisor/collect.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

/* In the tree by a pointer of its own: the array of queues moves when it grows. */
struct name_entry {
    char *name;
};

static int compare_names(const void *one, const void *other)
{
    return strcmp(((const struct name_entry *)one)->name, ((const struct name_entry *)other)->name);
}

static void raise_to(uint64_t *known, uint64_t reported)
{
    if (reported > *known) {
        *known = reported;
    }
}

void collect_init(struct collect *collect, size_t worker_limit)
{
    *collect = (struct collect){.worker_limit = worker_limit};
    collect->workers = memory_new(worker_limit + 1, sizeof *collect->workers);
}

void collect_free(struct collect *collect)
{
    tdestroy(collect->by_name, free);
    for (size_t i = 0; i < collect->queue_count; i++) {
        free(collect->queues[i].name);
    }
    for (size_t i = 0; i < collect->request_count; i++) {
        free(collect->requests[i].live);
    }
    free(collect->queues);
    free(collect->workers);
    free(collect->requests);
    *collect = (struct collect){0};
}

uint32_t collect_add_queue(struct collect *collect, const char *name, size_t worker, bool from_log_start,
                           struct mono_ms now)
{
    struct name_entry *entry = memory_new(1, sizeof *entry);
    struct collected_queue *queue;

    collect->queues = memory_grow(collect->queues, &collect->queue_capacity, collect->queue_count + 1, sizeof *queue);
    queue = &collect->queues[collect->queue_count];
    *queue = (struct collected_queue){.worker = worker, .from_log_start = from_log_start, .assigned = now};
    queue->name = memory_copy_text(name);
    queue->last.k = -1;
    queue->last.through_us = INT64_MIN;
    queue->last.checkpoint_k = -1;
    entry->name = queue->name;
    (void)tsearch(entry, &collect->by_name, compare_names);
    return (uint32_t)collect->queue_count++;
}

bool collect_has_queue(const struct collect *collect, const char *name)
{
    char *searched = (char *)(uintptr_t)name; /* only compared with */

    return tfind(&(struct name_entry){searched}, &collect->by_name, compare_names) != NULL;
}

/* Gauges come as they are, but for what a worker that has just begun can't know yet. */
static void take_state(struct collected_queue *queue, const struct report_queue *report)
{
    struct report_queue before = queue->last;

    queue->last = *report;
    queue->last.error[sizeof queue->last.error - 1] = '\0';
    if (report->k < 0) {
        queue->last.k = before.k;
        queue->last.end_us = before.end_us;
    }
    if (report->through_us == INT64_MIN) {
        queue->last.through_us = before.through_us;
    }
    if (report->checkpoint_k < 0) {
        queue->last.checkpoint_k = before.checkpoint_k;
    }
    if (report->state == QUEUE_CLAIMING && report->partitions == 0) {
        queue->last.partitions = before.partitions;
    }
}

void collect_queue(struct collect *collect, size_t worker, const struct report_queue *report, struct mono_ms now)
{
    struct collected_queue *queue;

    if (report->queue >= collect->queue_count || collect->queues[report->queue].worker != worker) {
        return;
    }
    queue = &collect->queues[report->queue];
    raise_to(&queue->live.windows_committed, report->windows_committed);
    raise_to(&queue->live.records_written, report->records_written);
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        raise_to(&queue->live.bytes_written[i], report->bytes_written[i]);
    }
    raise_to(&queue->live.records_lost, report->records_lost);
    raise_to(&queue->live.fetch_ok, report->fetch_ok);
    raise_to(&queue->live.fetch_error, report->fetch_error);
    take_state(queue, report);
    queue->reported = true;
    queue->held = queue->held || report->held_before;
    queue->standby = report->standby && !queue->held;
    if (queue->standby) {
        queue->assigned = now;
    }
    if (report->fresh_mono_ms > queue->fresh.v) {
        queue->fresh.v = report->fresh_mono_ms;
    }
}

static struct request_series *find_series(struct collect *collect, int32_t operation, int32_t code)
{
    struct request_series *series;

    for (size_t i = 0; i < collect->request_count; i++) {
        if (collect->requests[i].operation == operation && collect->requests[i].code == code) {
            return &collect->requests[i];
        }
    }
    collect->requests =
        memory_grow(collect->requests, &collect->request_capacity, collect->request_count + 1, sizeof *series);
    series = &collect->requests[collect->request_count++];
    *series = (struct request_series){.operation = operation, .code = code};
    series->live = memory_new(collect->worker_limit + 1, sizeof *series->live);
    return series;
}

void collect_worker(struct collect *collect, size_t worker, const struct report_worker *report)
{
    struct collected_worker *known = &collect->workers[worker];

    known->buffer_bytes = report->buffer_bytes;
    if (report->has_safe_time) {
        known->has_safe_time = true;
        known->safe_time_us = report->safe_time_us;
        known->safe_time_mono_ms = report->safe_time_mono_ms;
    }
    raise_to(&known->live.precondition_lost, report->precondition_lost);
    for (size_t i = 0; i <= REPORT_HISTOGRAM_BUCKETS; i++) {
        raise_to(&known->live.window_records[i], report->window_records[i]);
        raise_to(&known->live.window_bytes[i], report->window_bytes[i]);
    }
    if (report->window_records_sum > known->live.window_records_sum) {
        known->live.window_records_sum = report->window_records_sum;
    }
    if (report->window_bytes_sum > known->live.window_bytes_sum) {
        known->live.window_bytes_sum = report->window_bytes_sum;
    }
    for (uint32_t i = 0; i < report->request_count_used && i < REPORT_CODES_MAX; i++) {
        const struct report_request_count *count = &report->request_counts[i];

        if (count->operation >= 0 && count->operation < STORE_OPERATION_COUNT) {
            raise_to(&find_series(collect, count->operation, count->code)->live[worker], count->count);
        }
    }
}

static void add_queue_totals(struct queue_totals *sum, const struct queue_totals *more)
{
    sum->windows_committed += more->windows_committed;
    sum->records_written += more->records_written;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        sum->bytes_written[i] += more->bytes_written[i];
    }
    sum->records_lost += more->records_lost;
    sum->fetch_ok += more->fetch_ok;
    sum->fetch_error += more->fetch_error;
}

static void add_worker_totals(struct worker_totals *sum, const struct worker_totals *more)
{
    sum->precondition_lost += more->precondition_lost;
    for (size_t i = 0; i <= REPORT_HISTOGRAM_BUCKETS; i++) {
        sum->window_records[i] += more->window_records[i];
        sum->window_bytes[i] += more->window_bytes[i];
    }
    sum->window_records_sum += more->window_records_sum;
    sum->window_bytes_sum += more->window_bytes_sum;
}

void collect_fold(struct collect *collect, size_t worker)
{
    struct collected_worker *dead = &collect->workers[worker];

    for (size_t i = 0; i < collect->queue_count; i++) {
        struct collected_queue *queue = &collect->queues[i];

        if (queue->worker == worker) {
            add_queue_totals(&queue->past, &queue->live);
            queue->live = (struct queue_totals){0};
            queue->last.buffer_bytes = 0;
        }
    }
    for (size_t i = 0; i < collect->request_count; i++) {
        collect->requests[i].past += collect->requests[i].live[worker];
        collect->requests[i].live[worker] = 0;
    }
    add_worker_totals(&collect->past, &dead->live);
    dead->live = (struct worker_totals){0};
    dead->buffer_bytes = 0;
}

struct queue_totals collect_queue_totals(const struct collected_queue *queue)
{
    struct queue_totals sum = queue->past;

    add_queue_totals(&sum, &queue->live);
    return sum;
}

struct worker_totals collect_totals(const struct collect *collect)
{
    struct worker_totals sum = collect->past;

    for (size_t i = 0; i < collect->worker_limit; i++) {
        add_worker_totals(&sum, &collect->workers[i].live);
    }
    return sum;
}

uint64_t collect_requests(const struct collect *collect, const struct request_series *series)
{
    uint64_t sum = series->past;

    for (size_t i = 0; i < collect->worker_limit; i++) {
        sum += series->live[i];
    }
    return sum;
}

/* As that worker last knew it, moved on by the monotonic clock; false where it never knew. */
static bool broker_now(const struct collect *collect, size_t worker, struct mono_ms now, struct broker_us *broker)
{
    const struct collected_worker *known = &collect->workers[worker];

    if (!known->has_safe_time) {
        return false;
    }
    broker->v = known->safe_time_us + (now.v - known->safe_time_mono_ms) * 1000;
    return true;
}

bool collect_lag_us(const struct collect *collect, const struct collected_queue *queue, struct mono_ms now,
                    int64_t *lag_us)
{
    struct broker_us broker = {0};

    if (queue->last.through_us == INT64_MIN || !broker_now(collect, queue->worker, now, &broker)) {
        return false;
    }
    *lag_us = broker.v > queue->last.through_us ? broker.v - queue->last.through_us : 0;
    return true;
}
