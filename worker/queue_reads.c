/*
 * The queue driver: fetching (spec 3.3). Lowest frontier first, several partitions a call, several calls at a time. Each
 * call reserves what its answer is expected to weigh; an answer that outgrows that takes more where there is room and is
 * otherwise given up and asked for again, smaller or with more reserved. Only a call that is alone, when nothing can be
 * given back any more, may pass the budget: one record may exceed a share by itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/queue_internal.h"

#define CALL_WEIGHT_MAX    16777216u /* aimed at: so large that a call's own cost is nothing beside it */
#define CALL_RESERVE_MAX   75497472u /* the broker's ceiling and a segment (spec 1.2) */
#define ENTRY_OVERHEAD     512
#define RESERVE_LEAST      16384u
#define RESERVE_SHARE      32 /* and at most this part of the budget: a small one still holds several answers */
#define PROBES_MAX         64
#define PROBE_WEIGHT       16384
#define OUTGROWN_DOUBLINGS 7
#define OUTGROWN_PAUSE_MS  10
#define RATIO_PERCENT_MAX  6400
#define HOLE_AGAIN_MS      3500 /* three times over at least 10 s (spec 3.8) */
#define ENCODE_SHARE       4    /* of the budget may be kept free for writing a window */

/* ---- partitions held back for a while ---- */

static void held_ready(void *argument);

static void held_schedule(struct queue *queue)
{
    struct mono_ms first = {INT64_MAX};
    for (size_t i = 0; i < queue->held_count; i++)
        if (queue->held[i].ready.v < first.v)
            first = queue->held[i].ready;
    if (queue->held_count > 0)
        timer_set(queue->world->timers, &queue->held_timer, first, held_ready, queue);
}

static void held_ready(void *argument)
{
    struct queue *queue = argument;
    struct mono_ms now = queue->world->now(queue->world);
    for (size_t i = queue->held_count; i-- > 0;) {
        if (queue->held[i].ready.v > now.v)
            continue;
        struct partition *partition = queue->held[i].partition;
        queue->held[i] = queue->held[--queue->held_count];
        window_read_ready(queue->engine, partition);
    }
    held_schedule(queue);
    queue_step(queue);
}

static void hold(struct queue *queue, const struct window_read *read, enum window_read_result why)
{
    static const char *const reasons[] = {[WINDOW_READ_HOLE] = "is missing",
                                          [WINDOW_READ_EMPTY] = "can't be read",
                                          [WINDOW_READ_FAULT] = "isn't given out by the broker for now"};
    struct retry retry = {window_read_failures(read->partition) > 0 ? window_read_failures(read->partition) - 1 : 0};
    int64_t delay = why == WINDOW_READ_HOLE ? HOLE_AGAIN_MS : retry_delay(&retry, queue->world, NULL, RETRY_CAP_MS);
    queue_fault(queue, "partition %.*s: offset %" PRId64 " %s; it is asked again", (int)read->name.size,
                read->name.bytes, read->offset, reasons[why]);
    if (why != WINDOW_READ_HOLE)
        log_limited(why == WINDOW_READ_EMPTY ? &queue->other_limit : &queue->fetch_limit,
                    queue->world->now(queue->world), LOG_WARN, queue->name, "%s", queue->fault);
    queue->held = memory_grow(queue->held, &queue->held_capacity, queue->held_count + 1, sizeof *queue->held);
    queue->held[queue->held_count++] = (struct held_partition){read->partition, world_after(queue->world, delay)};
    held_schedule(queue);
}

/* ---- what a read is expected to bring ---- */

static uint64_t read_weight(const struct queue *queue, const struct window_read *read)
{
    if (read->probe)
        return PROBE_WEIGHT;
    uint64_t wanted = (uint64_t)window_read_weight(queue->engine, read);
    if (wanted > CALL_WEIGHT_MAX)
        wanted = CALL_WEIGHT_MAX;
    uint64_t unread = (uint64_t)read->unread;
    uint64_t all =
        unread > UINT64_MAX / (queue->average_record + 1) / 2 ? UINT64_MAX / 2 : unread * queue->average_record;
    return all < wanted ? all : wanted;
}

static uint32_t max_bytes_for(const struct queue *queue, uint64_t weight)
{
    uint64_t bytes = weight * 100 / queue->ratio_percent;
    if (bytes < 1)
        return 1;
    return bytes > QUEEN_FETCH_BYTES_MAX ? QUEEN_FETCH_BYTES_MAX : (uint32_t)bytes;
}

static void learn(struct queue *queue, const struct read_call *call, const struct fetch_answer *answer)
{
    size_t body = answer->block->body_size;
    size_t records = answer->block->record_count;
    if (records == 0)
        return;
    uint64_t average = body / records + 1;
    queue->average_record = (queue->average_record * 3 + average) / 4 + 1;
    uint64_t asked = 0;
    for (size_t i = 0; i < call->count; i++) {
        const struct fetch_entry *entry = &answer->entries[i];
        if (entry->record_count == 0 || (int64_t)entry->record_count >= call->reads[i].unread || call->reads[i].probe)
            return; /* not cut by max_bytes: it says nothing about the ratio */
        asked += call->max_bytes[i];
    }
    if (asked == 0)
        return;
    uint64_t ratio = (uint64_t)body * 100 / asked;
    ratio = ratio < 100 ? 100 : ratio;
    ratio = ratio > RATIO_PERCENT_MAX ? RATIO_PERCENT_MAX : ratio;
    queue->ratio_percent = (queue->ratio_percent * 3 + ratio) / 4;
}

/* ---- answers ---- */

static void call_end(struct queue *queue, struct read_call *call)
{
    struct read_call **link = &queue->reads;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    queue->read_count--;
    free(call->reads);
    free(call->max_bytes);
    free(call);
}

static void read_again(void *argument)
{
    struct queue *queue = argument;
    queue->reading_paused = false;
    queue_step(queue);
}

/* Of several calls that fail the one that was told to wait longest decides. */
static void pause_reading(struct queue *queue, int64_t delay)
{
    queue->reading_paused = true;
    timer_extend(queue->world->timers, &queue->read_timer, world_after(queue->world, delay), read_again, queue);
}

/* An answer outgrew what was reserved for it: records are larger than they were taken for. The next calls ask for less and
 * reserve more, after a pause that keeps a small budget from having the same answer sent again and again. */
static void outgrown(struct queue *queue)
{
    if (queue->short_of_room < OUTGROWN_DOUBLINGS)
        queue->short_of_room++;
    if (queue->average_record < CALL_WEIGHT_MAX)
        queue->average_record *= 2;
    queue->ratio_percent = queue->ratio_percent < RATIO_PERCENT_MAX / 2 ? queue->ratio_percent * 2 : RATIO_PERCENT_MAX;
    pause_reading(queue, (int64_t)OUTGROWN_PAUSE_MS << queue->short_of_room);
}

static void call_failed(struct queue *queue, struct read_call *call, const struct error *error)
{
    for (size_t i = 0; i < call->count; i++)
        window_read_failed(queue->engine, &call->reads[i]);
    call_end(queue, call);
    if (error->code == QS_ERROR_NO_ROOM) {
        outgrown(queue);
        return;
    }
    queue->fetch_error++;
    if (!error->retriable) {
        queue_stop(queue, "fetch: %s", error->message);
        return;
    }
    queue_note(queue, &queue->fetch_limit, "fetch", error);
    pause_reading(queue, retry_delay(&queue->read_retry, queue->world, error, RETRY_CAP_MS));
}

static void call_answered(struct queue *queue, struct read_call *call, const struct fetch_answer *answer)
{
    queue->fetch_ok++;
    queue->read_retry.failures = 0;
    if (queue->short_of_room > 0)
        queue->short_of_room--;
    learn(queue, call, answer);
    for (size_t i = 0; i < call->count; i++) {
        struct window_read *read = &call->reads[i];
        enum window_read_result result = window_read_done(queue->engine, read, &answer->entries[i], answer->block);
        if (result != WINDOW_READ_DONE)
            hold(queue, read, result);
    }
    block_release(answer->block);
    call_end(queue, call);
    /* Whether there is no such queue any more, as an entry may say, discovery decides. */
    queue_step(queue);
}

static void call_done(void *argument, const struct error *error, struct fetch_answer *answer)
{
    struct read_call *call = argument;
    struct queue *queue = call->queue;
    call->call = NULL;
    if (error->code != QS_OK)
        call_failed(queue, call, error);
    else
        call_answered(queue, call, answer);
}

/* ---- calls ---- */

static void call_add(struct queue *queue, struct read_call *call, size_t *capacity, const struct window_read *read,
                     uint64_t weight_limit)
{
    size_t bytes_capacity = *capacity;
    call->reads = memory_grow(call->reads, capacity, call->count + 1, sizeof *call->reads);
    call->max_bytes = memory_grow(call->max_bytes, &bytes_capacity, call->count + 1, sizeof *call->max_bytes);
    uint64_t weight = read_weight(queue, read);
    weight = weight < weight_limit ? weight : weight_limit;
    call->reads[call->count] = *read;
    call->max_bytes[call->count] = read->probe ? 1 : max_bytes_for(queue, weight);
    if (call->count == 0 && read->largest)
        call->max_bytes[0] = QUEEN_FETCH_BYTES_MAX;
    call->reads[call->count].first = call->count == 0 && call->max_bytes[0] == QUEEN_FETCH_BYTES_MAX;
    call->weight += weight + ENTRY_OVERHEAD + read->name.size;
    call->count++;
}

/* Takes reads for one call from the engine; NULL where there is none. */
static struct read_call *call_gather(struct queue *queue, uint64_t weight_limit)
{
    struct window_read read;
    size_t capacity = 0;
    if (!window_next_read(queue->engine, &read))
        return NULL;
    struct read_call *call = memory_new(1, sizeof *call);
    call->queue = queue;
    do {
        call_add(queue, call, &capacity, &read, weight_limit);
        if (read.probe && call->count >= PROBES_MAX)
            break;
    } while (call->weight < weight_limit && call->count < QUEEN_FETCH_ENTRIES_MAX &&
             window_next_read(queue->engine, &read));
    return call;
}

static void call_give_back(struct queue *queue, struct read_call *call)
{
    for (size_t i = 0; i < call->count; i++)
        window_read_failed(queue->engine, &call->reads[i]);
    free(call->reads);
    free(call->max_bytes);
    free(call);
}

static uint64_t reserve_least(const struct queue *queue)
{
    uint64_t share = queue->world->budget->limit / RESERVE_SHARE;
    return share < RESERVE_LEAST ? share : RESERVE_LEAST;
}

static uint64_t call_reserve(const struct queue *queue, const struct read_call *call)
{
    /* Estimates are generous, and grow with each answer that outgrew them. */
    uint64_t reserve = call->weight + call->weight / 2 + reserve_least(queue);
    if (queue->short_of_room > 0)
        reserve = queue->short_of_room > 4 ? CALL_RESERVE_MAX : reserve << queue->short_of_room;
    return reserve < CALL_RESERVE_MAX ? reserve : CALL_RESERVE_MAX;
}

static void call_send(struct queue *queue, struct read_call *call, size_t reserved)
{
    struct fetch_request_entry *entries = memory_new(call->count, sizeof *entries);
    for (size_t i = 0; i < call->count; i++)
        entries[i] = (struct fetch_request_entry){
            {queue->name, queue->name_size}, call->reads[i].name, call->reads[i].offset, call->max_bytes[i]};
    struct fetch_request request = {entries, call->count, queue->world->budget, reserved, call->alone};
    call->next = queue->reads;
    queue->reads = call;
    queue->read_count++;
    call->call = queue->world->queen->operations->fetch(queue->world->queen, &request, call_done, call);
    free(entries);
}

static uint64_t weight_limit(const struct queue *queue)
{
    /* A full call each for the calls that may be under way, and never more than a quarter of what is free. */
    uint64_t limit = (uint64_t)queue->host->settings->target_bytes / (uint64_t)queue->host->settings->fetch_concurrency;
    uint64_t room = budget_room(queue->world->budget) / 4;
    if (limit > CALL_WEIGHT_MAX)
        limit = CALL_WEIGHT_MAX;
    if (limit > room)
        limit = room;
    return limit > reserve_least(queue) ? limit : reserve_least(queue);
}

/* Nothing can be given back: one read by itself, whatever it weighs (spec 4.1: one record may exceed a share). */
static bool call_alone(struct queue *queue)
{
    struct read_call *call = call_gather(queue, 0);
    if (call == NULL)
        return false;
    call->alone = true;
    uint64_t reserve = call_reserve(queue, call) < 1048576 ? call_reserve(queue, call) : 1048576;
    budget_force(queue->world->budget, reserve);
    call_send(queue, call, reserve);
    return true;
}

/* What writing a window will need beside it. It is kept free while none is written, and while the last one is only
 * being committed: the encoder takes what it needs at once, and where blocks had filled the budget by then, the parts
 * would stand on top of it. */
static uint64_t encode_room(const struct queue *queue)
{
    const struct settings *settings = queue->host->settings;
    struct window_shape shape = {settings->format, settings->compression, settings->layout, settings->align};
    if (queue->commit.step == COMMIT_UPLOAD)
        return 0; /* taken already */
    uint64_t need = encode_memory(&shape, (uint64_t)settings->target_bytes, queue->host->multipart_threshold);
    uint64_t most = queue->world->budget->limit / ENCODE_SHARE;
    return need < most ? need : most;
}

/* Sends one call if there is something to read and room for it. Reading ahead takes what is free, down to half of the
 * budget, and pushes nothing out: what it read would push out what others read, round and round, and no window would be
 * any nearer. */
static bool call_try(struct queue *queue)
{
    bool ahead = window_is_held_up(queue->engine);
    if (ahead && budget_room(queue->world->budget) < queue->world->budget->limit / 2) {
        queue->wants_room = true;
        return false;
    }
    struct read_call *call = call_gather(queue, weight_limit(queue));
    if (call == NULL)
        return false;
    uint64_t reserve = call_reserve(queue, call);
    if (reserve + encode_room(queue) <= budget_room(queue->world->budget) &&
        budget_take(queue->world->budget, reserve)) {
        call_send(queue, call, reserve);
        return true;
    }
    queue->wants_room = true;
    call_give_back(queue, call); /* before anything that may end the engine */
    if (ahead || queue->read_count > 0)
        return false; /* what is held back decides, or what is under way: it gives back what it reserved too much */
    size_t room = budget_room(queue->world->budget);
    if (queue->host->relieve(queue->host, queue)) /* what is free at once is used at once: nobody is poked for it */
        return queue->engine != NULL && budget_room(queue->world->budget) > room;
    return call_alone(queue);
}

void reads_step(struct queue *queue)
{
    queue->wants_room = false;
    while (!queue->reading_paused && !queue->draining &&
           queue->read_count < (size_t)queue->host->settings->fetch_concurrency && call_try(queue)) {
        /* as many as may be under way */
    }
}

void reads_drop(struct queue *queue)
{
    while (queue->reads != NULL) {
        struct read_call *call = queue->reads;
        queue->world->queen->operations->cancel(queue->world->queen, call->call);
        for (size_t i = 0; i < call->count; i++)
            window_read_failed(queue->engine, &call->reads[i]);
        call_end(queue, call);
    }
    queue->reading_paused = false;
    queue->held_count = 0;
    timer_cancel(queue->world->timers, &queue->read_timer);
    timer_cancel(queue->world->timers, &queue->held_timer);
}
