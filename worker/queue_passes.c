/*
 * The queue driver: discovery passes (spec 3.3). An incremental pass every DISCOVERY_INTERVAL; the first, and every 30th,
 * is a full enumeration, which from the second on runs beside the incremental ones and delays none. Pages travel with
 * those of the worker's other queues.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/queue_internal.h"

#define FULL_EVERY      30
#define CLOCK_BEHIND_US 60000000
#define STILL_EXTRA_MS  1000 /* beyond SAFE_GUARD: then a lease refresh moves a 2.x broker's safeTime (spec 3.3) */

static void pass_page(void *argument, const struct error *error, struct broker_us safe_time, bool degraded,
                      const struct changed_entry *entry);

static void pass_sending(void *argument)
{
    struct pass_slot *slot = argument;
    window_pass_call(slot->queue->engine, &slot->pass);
}

static void slot_drop(struct queue *queue, struct pass_slot *slot)
{
    if (slot->active)
        discovery_withdraw(queue->host->discovery, &slot->request);
    free(slot->request.after);
    slot->request.after = NULL;
    slot->active = false;
}

static void pass_start(struct queue *queue, struct pass_slot *slot, bool full)
{
    bool has_since;
    struct broker_us since;
    slot->queue = queue;
    slot->active = true;
    window_pass_begin(queue->engine, &slot->pass, full, &has_since, &since);
    memset(&slot->request, 0, sizeof slot->request);
    slot->request.queue = (struct name){queue->name, queue->name_size};
    slot->request.has_since = has_since;
    slot->request.since = since;
    slot->request.sending = pass_sending;
    slot->request.page = pass_page;
    slot->request.argument = slot;
    discovery_ask(queue->host->discovery, &slot->request);
}

/* A 2.x broker's clock stands still while nothing is written, and a lease refresh is a write. */
static void nudge_clock(struct queue *queue)
{
    struct broker_us safe_time;
    struct mono_ms now = queue->world->now(queue->world);
    if (!window_safe_time(queue->engine, &safe_time))
        return;
    if (safe_time.v != queue->seen_safe_time) {
        queue->seen_safe_time = safe_time.v;
        queue->safe_time_moved = now;
    }
    int64_t still = now.v - queue->safe_time_moved.v;
    if (still >= queue->host->settings->safe_guard_ms + STILL_EXTRA_MS && window_holds_records(queue->engine) &&
        now.v - queue->lease.written.v >= 1000)
        lease_refresh(queue);
}

static void note_progress(struct queue *queue)
{
    struct broker_us safe_time;
    if (queue->commit.step != COMMIT_IDLE || !window_is_through(queue->engine))
        return;
    queue->fresh = queue->world->now(queue->world);
    if (window_safe_time(queue->engine, &safe_time))
        queue->through = safe_time.v;
    if (!queue->lease.unsure)
        queue_fault_over(queue);
}

/* Of a start: what comes while it runs is told as lost. A node that lags, or one that is degraded, is behind by less. */
static void note_clock(struct queue *queue)
{
    struct broker_us safe_time;
    char end[CLOCK_TEXT_SIZE];
    if (queue->told_clock || queue->committed_end == INT64_MIN || !window_safe_time(queue->engine, &safe_time))
        return;
    queue->told_clock = true;
    int64_t behind = queue->committed_end - safe_time.v;
    if (behind <= CLOCK_BEHIND_US)
        return;
    clock_format_broker((struct broker_us){queue->committed_end}, end);
    log_line(LOG_ERROR, queue->name,
             "the broker's clock is %" PRId64
             " s behind %s, where the last window ended: what it stamps until then is in no "
             "window any more",
             behind / 1000000, end);
}

static void pass_end(struct queue *queue, struct pass_slot *slot)
{
    slot_drop(queue, slot);
    window_pass_end(queue->engine, &slot->pass);
    note_clock(queue);
    nudge_clock(queue);
    note_progress(queue);
    queue_step(queue);
}

static void note_degraded(struct queue *queue, bool degraded)
{
    if (degraded && !queue->told_degraded)
        log_line(LOG_WARN, queue->name,
                 "safeTime is degraded: every window closes 30 s behind until the broker's role may see every session "
                 "(GRANT pg_read_all_stats)");
    queue->told_degraded = degraded;
}

/* What was read of a queue that is deleted can't be read again: it is written before the queue is given up. */
static void queue_gone(struct pass_slot *slot, struct broker_us safe_time)
{
    struct queue *queue = slot->queue;
    slot_drop(queue, slot);
    if (queue->commit.step == COMMIT_IDLE && !window_holds_records(queue->engine)) {
        queue_stop(queue, "the broker has no queue of this name (for this tenant)");
        return;
    }
    log_limited(&queue->other_limit, queue->world->now(queue->world), LOG_WARN, queue->name,
                "the broker has no queue of this name any more: what was read of it is written");
    window_queue_gone(queue->engine, safe_time);
    queue->force_close = true;
    queue_step(queue);
}

static void pass_page(void *argument, const struct error *error, struct broker_us safe_time, bool degraded,
                      const struct changed_entry *entry)
{
    struct pass_slot *slot = argument;
    struct queue *queue = slot->queue;
    if (entry == NULL) {
        queue_stop(queue, "discovery: %s", error->message);
        return;
    }
    if (entry->status == CHANGED_UNKNOWN_QUEUE) {
        queue_gone(slot, safe_time);
        return;
    }
    if (entry->status != CHANGED_OK) {
        queue->full_again = queue->full_again || slot->pass.full;
        slot_drop(queue, slot); /* the next tick begins another pass */
        if (entry->status == CHANGED_PASSING) {
            queue_fault(queue, "discovery: the broker has a passing fault of this queue; it is asked again");
            log_limited(&queue->other_limit, queue->world->now(queue->world), LOG_WARN, queue->name, "%s",
                        queue->fault);
        }
        return;
    }
    note_degraded(queue, degraded);
    window_pass_page(queue->engine, &slot->pass, safe_time, entry->partitions, entry->count);
    if (entry->next == NULL) {
        pass_end(queue, slot);
        return;
    }
    free(slot->request.after);
    slot->request.after = memory_copy_text(entry->next);
    discovery_ask(queue->host->discovery, &slot->request);
    queue_step(queue);
}

/* Ticks fall on whole multiples of the interval, so that the queues of a worker ask together. */
static void tick_next(struct queue *queue);

static void tick(void *argument)
{
    struct queue *queue = argument;
    tick_next(queue);
    if (queue->draining)
        return;
    bool full_due = queue->pass_count > 0 && queue->pass_count % FULL_EVERY == 0;
    if (!queue->full.active && (full_due || queue->full_again || window_wants_full_pass(queue->engine))) {
        queue->full_again = false;
        pass_start(queue, &queue->full, true);
        queue->pass_count++;
    }
    if (!queue->incremental.active) {
        pass_start(queue, &queue->incremental, false);
        queue->pass_count++;
    }
}

static void tick_next(struct queue *queue)
{
    int64_t interval = queue->host->settings->discovery_interval_ms;
    struct mono_ms now = queue->world->now(queue->world);
    struct mono_ms next = {(now.v / interval + 1) * interval};
    timer_set(queue->world->timers, &queue->tick, next, tick, queue);
}

void passes_begin(struct queue *queue)
{
    queue->state = queue->commit.redo ? QUEUE_RECOVERING : QUEUE_RUNNING;
    queue->pass_count = 0;
    queue->full_again = false;
    queue->told_clock = false;
    queue->seen_safe_time = INT64_MIN;
    queue->safe_time_moved = queue->world->now(queue->world);
    queue_fault_over(queue);
    queue->host->changed(queue->host, queue);
    tick(queue);
}

void passes_drop(struct queue *queue)
{
    timer_cancel(queue->world->timers, &queue->tick);
    slot_drop(queue, &queue->incremental);
    slot_drop(queue, &queue->full);
}
