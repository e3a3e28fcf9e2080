/*
 * The queue driver: a queue's life, from the first claim to the clean stop. queue.h says what it promises,
 * queue_internal.h where the rest of it is.
 */
#include "worker/queue.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/queue_internal.h"

#define DRAIN_WEIGHT  1048576  /* a stop finishes a window that holds so much … */
#define DRAIN_OPEN_US 10000000 /* … or that has been open so long and holds anything (spec 3.10) */
#define SHED_BYTES    16777216
#define SHED_SHARE    8 /* and at most this part of the budget: what is dropped has to be read again */

struct queue *queue_create(struct queue_host *host, const char *name, uint32_t number, bool from_log_start)
{
    struct queue *queue = memory_new(1, sizeof *queue);
    const char *sink = host->settings->sink;
    queue->host = host;
    queue->world = host->world;
    queue->name = memory_copy_text(name);
    queue->name_size = strlen(name);
    queue->number = number;
    queue->from_log_start = from_log_start;
    lake_escape_name((struct name){queue->name, queue->name_size}, queue->escaped);
    queue->lease_key = document_key(sink, queue->escaped, "lease");
    queue->intent_key = document_key(sink, queue->escaped, "intent");
    queue->committed_key = document_key(sink, queue->escaped, "committed");
    queue->lease.expired = true;
    queue->committed_k = -1;
    queue->committed_end = INT64_MIN;
    queue->checkpoint_k = -1;
    queue->through = INT64_MIN;
    queue->average_record = 1024;
    queue->ratio_percent = 400;
    queue->incremental.queue = queue->full.queue = queue;
    return queue;
}

/* Everything that is under way, but the lease. */
static void drop_work(struct queue *queue)
{
    timer_cancel(queue->world->timers, &queue->restart_timer);
    origin_drop(queue);
    commit_drop(queue);
    checkpoint_drop(queue);
    if (queue->engine != NULL) {
        passes_drop(queue);
        reads_drop(queue);
    }
    window_destroy(queue->engine);
    queue->engine = NULL;
    queue->force_close = false;
}

void queue_destroy(struct queue *queue)
{
    if (queue == NULL)
        return;
    drop_work(queue);
    lease_drop(queue);
    free(queue->lease.value);
    intent_free(&queue->intent);
    free(queue->held);
    free(queue->lease_key);
    free(queue->intent_key);
    free(queue->committed_key);
    free(queue->name);
    free(queue);
}

void queue_start(struct queue *queue)
{
    lease_claim(queue);
}

/* ---- failures ---- */

static void fault_write(struct queue *queue, const char *format, va_list arguments)
{
    vsnprintf(queue->fault, sizeof queue->fault, format, arguments);
    queue->fault_at = queue->world->wall(queue->world);
}

void queue_fault(struct queue *queue, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fault_write(queue, format, arguments);
    va_end(arguments);
}

void queue_fault_over(struct queue *queue)
{
    queue->fault[0] = '\0';
}

void queue_note(struct queue *queue, struct log_limit *limit, const char *what, const struct error *error)
{
    queue_fault(queue, "%.64s: %s", what, error->message);
    log_limited(limit, queue->world->now(queue->world), LOG_WARN, queue->name, "%s", queue->fault);
}

static void claim_again(void *argument)
{
    lease_claim(argument);
}

static void drained(struct queue *queue)
{
    if (queue->drained_told)
        return;
    queue->drained_told = true;
    queue->state = QUEUE_DRAINED;
    queue->host->changed(queue->host, queue);
    queue->host->drained(queue->host, queue);
}

static void stopped(struct queue *queue)
{
    if (queue->draining) {
        drained(queue);
        return;
    }
    timer_set(queue->world->timers, &queue->restart_timer, world_after(queue->world, QUEUE_RETRY_MS), claim_again,
              queue);
}

void queue_stop(struct queue *queue, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fault_write(queue, format, arguments);
    va_end(arguments);
    log_line(LOG_ERROR, queue->name, "stopped, tried again in %d s: %s", QUEUE_RETRY_MS / 1000, queue->fault);
    drop_work(queue);
    queue->state = QUEUE_STOPPED;
    lease_release(queue, stopped);
    queue->host->changed(queue->host, queue);
}

void queue_lose(struct queue *queue, const char *holder)
{
    log_line(LOG_WARN, queue->name, "the lease went to instance %s: tried again in %" PRId64 " ms", holder,
             queue->host->settings->lease_ttl_ms);
    queue_fault(queue, "the lease went to instance %s", holder);
    queue->host->precondition_lost++;
    drop_work(queue);
    lease_drop(queue);
    lease_held_by(queue, holder);
    queue->state = QUEUE_LOST;
    queue->host->changed(queue->host, queue);
    if (queue->draining)
        drained(queue);
    else
        timer_set(queue->world->timers, &queue->restart_timer,
                  world_after(queue->world, queue->host->settings->lease_ttl_ms), claim_again, queue);
}

/* ---- the clean stop ---- */

static void drain_release(struct queue *queue)
{
    drop_work(queue);
    lease_release(queue, drained);
}

/* Decides once about the window being filled; true if it is now in the commit sequence. */
static bool drain_close(struct queue *queue)
{
    uint64_t weight;
    int64_t open_us;
    if (queue->drain_decided || queue->engine == NULL || queue->commit.redo)
        return false;
    queue->drain_decided = true;
    window_closable(queue->engine, &weight, &open_us);
    bool worth = weight >= DRAIN_WEIGHT || (weight > 0 && open_us >= DRAIN_OPEN_US);
    if (!worth || !window_close(queue->engine, true, &queue->commit.plan))
        return false;
    commit_begin(queue);
    return true;
}

static bool awaits_checkpoint(const struct queue *queue)
{
    return queue->checkpoint_put != NULL && !queue->checkpoint_failing;
}

static void drain_step(struct queue *queue)
{
    if (queue->commit.step != COMMIT_IDLE || awaits_checkpoint(queue) || queue->lease.releasing || queue->drained_told)
        return;
    if (drain_close(queue))
        return;
    if (queue->committed_since_checkpoint && queue->engine != NULL) {
        checkpoint_write(queue);
        if (awaits_checkpoint(queue))
            return;
    }
    drain_release(queue);
}

void queue_drain(struct queue *queue)
{
    if (queue->draining)
        return;
    queue->draining = true;
    if (!queue->lease.held && !queue->lease.releasing) {
        drain_release(queue); /* a claim may be under way */
        return;
    }
    if (queue->engine != NULL) {
        passes_drop(queue);
        reads_drop(queue);
    }
    drain_step(queue);
}

/* ---- what can be done now ---- */

static void close_if_due(struct queue *queue)
{
    while (queue->engine != NULL && queue->commit.step == COMMIT_IDLE &&
           window_close(queue->engine, queue->force_close, &queue->commit.plan)) {
        queue->force_close = false;
        commit_begin(queue);
    }
}

/* Whatever found it, a read, a page or the end of a pass: it is told before the window that carries it is closed. */
static void tell_lost(struct queue *queue)
{
    size_t count;
    struct lost_range *lost = window_lost(queue->engine, &count);
    size_t first = count;
    while (first > 0 && !lost[first - 1].told)
        first--;
    for (size_t i = first; i < count; i++) {
        lost[i].told = true;
        log_limited(&queue->lost_limit, queue->world->now(queue->world), LOG_ERROR, queue->name,
                    "lost: partition %.*s offsets %" PRId64 " to %" PRId64 " %s", (int)lost[i].partition_size,
                    lost[i].partition, lost[i].from, lost[i].to,
                    lost[i].misdated
                        ? "came with a ts that lies in a window that is closed: the broker's clock was set back"
                        : "were deleted before they were read");
    }
}

void queue_step(struct queue *queue)
{
    if (queue->engine != NULL)
        tell_lost(queue);
    if (queue->draining) {
        drain_step(queue);
        return;
    }
    if (queue->engine == NULL || !queue->lease.held)
        return;
    close_if_due(queue);
    if (queue->engine != NULL)
        reads_step(queue);
}

void queue_poke(struct queue *queue)
{
    if (queue->wants_room)
        queue_step(queue);
}

/* ---- memory ---- */

uint64_t queue_buffered(const struct queue *queue)
{
    uint64_t buffered = queue->engine != NULL ? window_buffered_weight(queue->engine) : 0;
    return buffered + queue->commit.plan.weight;
}

bool queue_give_memory(struct queue *queue)
{
    if (queue->commit.step != COMMIT_IDLE)
        return true; /* its window is on its way up */
    if (queue->engine == NULL || queue->draining)
        return false;
    if (window_compact(queue->engine))
        return true;
    if (queue->world->encoder->threaded && queue->commit.redo &&
        queue_buffered(queue) > queue->world->budget->limit / 4 && window_survey(queue->engine)) {
        log_line(LOG_INFO, queue->name,
                 "window %" PRId64 " doesn't fit into memory: it is redone partition by partition",
                 queue->intent.bounds.k);
        return true;
    }
    if (window_close(queue->engine, true, &queue->commit.plan)) {
        commit_begin(queue);
        return true;
    }
    size_t share = queue->world->budget->limit / SHED_SHARE;
    if (!window_shed(queue->engine, share < SHED_BYTES ? share : SHED_BYTES))
        return false;
    window_compact(queue->engine);
    return true;
}

/* ---- what is told ---- */

const char *queue_name(const struct queue *queue)
{
    return queue->name;
}

/* Its own failure, else that of the calls it shares with others. */
static void report_fault(const struct queue *queue, struct report_queue *report)
{
    struct wall_ms at = queue->fault_at;
    const char *fault = queue->fault;
    if (fault[0] == '\0' && queue->engine != NULL)
        fault = discovery_error(queue->host->discovery, &at);
    if (fault[0] == '\0')
        return;
    report->error_wall_ms = at.v;
    snprintf(report->error, sizeof report->error, "%.*s", (int)sizeof report->error - 1, fault);
}

void queue_report(struct queue *queue, struct report_queue *report)
{
    memset(report, 0, sizeof *report);
    report->queue = queue->number;
    report->state = (uint32_t)queue->state;
    report->windows_committed = queue->windows_committed;
    report->records_written = queue->records_written;
    memcpy(report->bytes_written, queue->bytes_written, sizeof report->bytes_written);
    report->records_lost = queue->records_lost;
    report->fetch_ok = queue->fetch_ok;
    report->fetch_error = queue->fetch_error;
    report->partitions = queue->engine != NULL ? window_partition_count(queue->engine) : 0;
    report->buffer_bytes = queue_buffered(queue);
    report->k = queue->committed_k;
    report->end_us = queue->committed_end;
    report->through_us = queue->through;
    report->checkpoint_k = queue->checkpoint_k;
    report->fresh_mono_ms = queue->fresh.v;
    report->held_before = queue->lease.held_before;
    report->standby = queue->lease.standby;
    report_fault(queue, report);
    snprintf(report->holder, sizeof report->holder, "%s", queue->lease.holder);
}
