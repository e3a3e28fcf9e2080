/*
 * The window engine: what is buffered, what a window takes of it, and when it closes (spec 3.3). window.h says what it
 * promises, window_internal.h how it is laid out.
 *
 * Records are counted into the window in the order of their ts, over all partitions, by a merge that never goes past the
 * smallest frontier or the ceiling: whatever is below those is whole, so the counted set only grows at its end, and each
 * record is looked at once. The merge stops by itself where the target is reached (the records of one ts are never
 * split). A close takes exactly what is counted.
 */
#include "worker/window.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/name.h"
#include "worker/window_internal.h"

#define RECORD_WEIGHT_FIXED 64
#define NULL_PAYLOAD_WEIGHT 4

struct window_engine *window_create(const struct window_settings *settings)
{
    struct window_engine *engine = memory_new(1, sizeof *engine);
    engine->settings = *settings;
    for (int kind = 0; kind < HEAP_KINDS; kind++)
        engine->heaps[kind].kind = (enum heap_kind)kind;
    engine->previous_end = engine->first_end = TIME_UNKNOWN;
    engine->safe_time = TIME_UNKNOWN;
    engine->page_safe_time = TIME_UNKNOWN;
    engine->counted_through = TIME_UNKNOWN;
    return engine;
}

static void partition_free(struct partition *partition)
{
    if (partition->buffer != NULL)
        for (size_t i = partition->buffer->head; i < partition->buffer->count; i++)
            block_release(partition->buffer->extents[i].extent.block);
    if (partition->buffer != NULL)
        free(partition->buffer->extents);
    free(partition->buffer);
    free(partition->seek);
    free(partition->trouble);
    free(partition->survey);
    free(partition->name);
    free(partition);
}

void window_destroy(struct window_engine *engine)
{
    if (engine == NULL)
        return;
    for (size_t i = 0; i < engine->table.capacity; i++)
        if (engine->table.slots[i] != NULL)
            partition_free(engine->table.slots[i]);
    free(engine->table.slots);
    for (int kind = 0; kind < HEAP_KINDS; kind++)
        heap_free(&engine->heaps[kind]);
    for (size_t i = 0; i < engine->lost_count; i++)
        free(engine->lost[i].partition);
    free(engine->lost);
    free(engine->members);
    free(engine->suspects);
    free(engine->life_bounds);
    window_clear_positions(engine);
    free(engine);
}

void window_start_earliest(struct window_engine *engine)
{
    engine->from_log_start = true;
}

void window_start_after(struct window_engine *engine, struct broker_us end)
{
    engine->previous_end = engine->first_end = end.v;
}

void window_start_redo(struct window_engine *engine, struct broker_us start, struct broker_us end)
{
    engine->previous_end = engine->first_end = start.v;
    engine->redo = true;
    engine->redo_end = end.v;
}

/* ---- partitions ---- */

bool partition_is_behind(const struct partition *partition)
{
    return partition->seek != NULL || partition->position < partition->watermark ||
           (partition->trouble != NULL && partition->trouble->suspect);
}

struct trouble *partition_trouble(struct partition *partition)
{
    if (partition->trouble == NULL)
        partition->trouble = memory_new(1, sizeof *partition->trouble);
    return partition->trouble;
}

void partition_place(struct window_engine *engine, struct partition *partition)
{
    bool behind = partition_is_behind(partition);
    int64_t unread = behind && partition->seek == NULL && partition->position < partition->watermark
                         ? partition->watermark - partition->position
                         : 0;
    engine->unread += unread - partition->unread;
    partition->unread = unread;
    bool suspect = partition->trouble != NULL && partition->trouble->suspect;
    if (behind)
        heap_put(&engine->heaps[HEAP_BLOCKING], partition);
    else
        heap_take(&engine->heaps[HEAP_BLOCKING], partition);
    if (behind && !partition->in_flight && !partition->held_back && !suspect)
        heap_put(&engine->heaps[HEAP_READY], partition);
    else
        heap_take(&engine->heaps[HEAP_READY], partition);
    if (partition_next_ts(partition) != TIME_NONE)
        heap_put(&engine->heaps[HEAP_MERGE], partition);
    else
        heap_take(&engine->heaps[HEAP_MERGE], partition);
}

static int64_t minimum_frontier(const struct window_engine *engine)
{
    const struct partition *lowest = heap_top(&engine->heaps[HEAP_BLOCKING]);
    int64_t frontier = engine->safe_time;
    if (lowest != NULL && lowest->frontier < frontier)
        frontier = lowest->frontier;
    return frontier;
}

/* ---- what is buffered ---- */

uint64_t record_weight(const struct record *record, size_t name_size)
{
    uint64_t payload = record->flags & RECORD_PAYLOAD_NULL ? NULL_PAYLOAD_WEIGHT : record->payload_size;
    return RECORD_WEIGHT_FIXED + record->transaction_id_raw + name_size + payload;
}

static const struct record *held_record(const struct held_extent *held, size_t index)
{
    return held->extent.block->records + held->extent.first + index;
}

struct broker_us record_ts(const struct held_extent *held, size_t index)
{
    return held_record(held, index)->ts;
}

int64_t partition_next_ts(const struct partition *partition)
{
    const struct buffer *buffer = partition->buffer;
    if (buffer == NULL || buffer->counted >= buffer->count)
        return TIME_NONE;
    return record_ts(&buffer->extents[buffer->counted], buffer->counted_records).v;
}

void block_use(struct block *block, uint64_t weight)
{
    block_retain(block);
    block->live += weight;
}

/* The records are no longer buffered, but the reference stays with whoever took them over. */
void block_unuse(struct block *block, uint64_t weight)
{
    block->live -= weight < block->live ? weight : block->live;
}

void block_spend(struct block *block, uint64_t weight)
{
    block_unuse(block, weight);
    block_release(block);
}

void buffer_discard(struct window_engine *engine, struct partition *partition)
{
    struct buffer *buffer = partition->buffer;
    if (buffer == NULL || buffer->head < buffer->count)
        return;
    free(buffer->extents);
    free(buffer);
    partition->buffer = NULL;
    heap_take(&engine->heaps[HEAP_MERGE], partition);
}

/* ---- counting records into the window ---- */

static int64_t align_boundary(const struct window_engine *engine)
{
    int64_t unit = lake_align_unit_us(engine->settings.align);
    if (unit == 0 || engine->previous_end == TIME_UNKNOWN)
        return TIME_NONE;
    struct broker_us previous = {engine->previous_end};
    return lake_align_floor(engine->settings.align, previous).v + unit;
}

/* min(smallest frontier, safeTime - guard): how far the log is whole and settled. */
static int64_t settled_through(const struct window_engine *engine)
{
    if (engine->safe_time == TIME_UNKNOWN)
        return TIME_UNKNOWN;
    int64_t settled = engine->safe_time - engine->settings.guard_us;
    int64_t frontier = minimum_frontier(engine);
    return frontier < settled ? frontier : settled;
}

/* A window never holds two lives of one partition (spec 3.4, 4). */
static int64_t next_life(const struct window_engine *engine)
{
    int64_t ts = TIME_NONE;
    for (size_t i = 0; i < engine->life_bound_count; i++)
        if (engine->life_bounds[i].ts < ts)
            ts = engine->life_bounds[i].ts;
    return ts;
}

/* The largest T_k that everything but size allows. */
static int64_t close_bound(const struct window_engine *engine)
{
    if (engine->redo) {
        int64_t frontier = minimum_frontier(engine);
        return frontier < engine->redo_end ? frontier : engine->redo_end;
    }
    int64_t bound = settled_through(engine);
    if (align_boundary(engine) < bound)
        bound = align_boundary(engine);
    if (next_life(engine) < bound)
        bound = next_life(engine);
    return bound;
}

/* Intervals proven empty are stepped over in memory: no object, no commit (spec 3.3). */
static void step_over_empty(struct window_engine *engine)
{
    if (engine->redo || engine->counted_records > 0)
        return;
    int64_t limit = settled_through(engine);
    const struct partition *next = heap_top(&engine->heaps[HEAP_MERGE]);
    if (next != NULL && partition_next_ts(next) < limit)
        limit = partition_next_ts(next);
    if (limit <= engine->previous_end)
        return;
    int64_t end = engine->previous_end;
    struct broker_us at = {limit};
    if (engine->settings.align != ALIGN_NONE)
        end = lake_align_floor(engine->settings.align, at).v;
    else
        end += (limit - end) / engine->settings.max_window_us * engine->settings.max_window_us;
    if (end > engine->previous_end)
        engine->previous_end = end;
}

void window_count_member(struct window_engine *engine, struct partition *partition)
{
    if (partition->member)
        return;
    partition->member = true;
    engine->members =
        memory_grow(engine->members, &engine->member_capacity, engine->member_count + 1, sizeof(struct partition *));
    engine->members[engine->member_count++] = partition;
}

static void count_record(struct window_engine *engine, struct buffer *buffer, const struct held_extent *held,
                         size_t name_size)
{
    engine->counted_weight += record_weight(held_record(held, buffer->counted_records), name_size);
    engine->counted_records++;
    if (++buffer->counted_records == held->extent.count) {
        buffer->counted++;
        buffer->counted_records = 0;
    }
}

/* Counts records of the partition at the top of the merge while their ts stays at or below `through`, the ts of the
 * partition after it (then they are next in order over all), and below `bound`. */
static void count_from(struct window_engine *engine, struct partition *partition, int64_t through, int64_t bound)
{
    struct buffer *buffer = partition->buffer;
    while (buffer->counted < buffer->count) {
        const struct held_extent *held = &buffer->extents[buffer->counted];
        int64_t ts = record_ts(held, buffer->counted_records).v;
        if (ts > through || ts >= bound)
            return;
        if (!engine->redo && !engine->full && ts > engine->counted_through &&
            engine->counted_weight >= (uint64_t)engine->settings.target_weight) {
            engine->full = true;
            engine->full_at = ts;
            return;
        }
        window_count_member(engine, partition);
        count_record(engine, buffer, held, partition->name_size);
        if (ts > engine->counted_through)
            engine->counted_through = ts;
    }
}

static int64_t second_ts(const struct partition_heap *heap)
{
    int64_t ts = TIME_NONE;
    for (size_t i = 2; i <= 3 && i <= heap->count; i++)
        if (partition_next_ts(heap->items[i]) < ts)
            ts = partition_next_ts(heap->items[i]);
    return ts;
}

static void count_records(struct window_engine *engine, int64_t bound)
{
    struct partition_heap *heap = &engine->heaps[HEAP_MERGE];
    for (struct partition *top = heap_top(heap); top != NULL; top = heap_top(heap)) {
        if (engine->full && engine->full_at < bound)
            bound = engine->full_at;
        if (partition_next_ts(top) >= bound)
            return;
        count_from(engine, top, second_ts(heap), bound);
        if (partition_next_ts(top) == TIME_NONE)
            heap_take(heap, top);
        else
            heap_put(heap, top);
    }
}

/* Brings the count up to what may be closed now. */
static void advance(struct window_engine *engine)
{
    prune_life_bounds(engine);
    if (engine->previous_end == TIME_UNKNOWN) {
        const struct partition *first = heap_top(&engine->heaps[HEAP_MERGE]);
        if (first == NULL || partition_next_ts(first) >= close_bound(engine))
            return;
        struct broker_us ts = {partition_next_ts(first)};
        engine->previous_end = lake_align_floor(engine->settings.align, ts).v;
    }
    step_over_empty(engine);
    count_records(engine, close_bound(engine));
}

/* ---- closing ---- */

/* The partition that holds the close back isn't just being read: its reads bring nothing. */
static bool lowest_is_stuck(const struct window_engine *engine)
{
    const struct partition *lowest = heap_top(&engine->heaps[HEAP_BLOCKING]);
    return lowest != NULL && (lowest->held_back || (lowest->trouble != NULL && lowest->trouble->suspect));
}

/* MAX_WINDOW_MS. While the log is still being read up to the present, a cut here would fall where an answer happened to
 * end: catching up is cut by size and alignment alone, unless the lowest partition is stuck. Less than a window behind is
 * the present: where answers take longer than the next page, something is always unread, and windows have to close. */
static bool time_is_up(const struct window_engine *engine)
{
    int64_t settled = settled_through(engine);
    if (settled == TIME_UNKNOWN || settled - engine->previous_end < engine->settings.max_window_us)
        return false;
    int64_t present = engine->safe_time - engine->settings.guard_us;
    return settled > present - engine->settings.max_window_us || lowest_is_stuck(engine);
}

/* T_k, or TIME_UNKNOWN where the window isn't due. */
static int64_t closing_time(const struct window_engine *engine, bool force)
{
    int64_t bound = close_bound(engine);
    if (engine->redo) {
        bool whole = engine->safe_time != TIME_UNKNOWN && engine->safe_time >= engine->redo_end;
        return whole && bound >= engine->redo_end ? engine->redo_end : TIME_UNKNOWN;
    }
    /* A partition that appeared since can hold the bound below what is counted already: then it is waited for. */
    if (engine->counted_records == 0 || bound <= engine->counted_through)
        return TIME_UNKNOWN;
    if (engine->full)
        return engine->full_at <= bound ? engine->full_at : TIME_UNKNOWN;
    if (force || bound == align_boundary(engine) || bound == next_life(engine) || time_is_up(engine) ||
        engine->counted_weight >= (uint64_t)engine->settings.target_weight)
        return bound;
    return TIME_UNKNOWN;
}

int compare_partitions(const void *a, const void *b)
{
    const struct partition *left = *(const struct partition *const *)a;
    const struct partition *right = *(const struct partition *const *)b;
    return name_compare((struct name){left->name, left->name_size}, (struct name){right->name, right->name_size});
}

bool window_close(struct window_engine *engine, bool force, struct window_plan *plan)
{
    advance(engine);
    int64_t end = closing_time(engine, force);
    if (end == TIME_UNKNOWN)
        return false;
    memset(plan, 0, sizeof *plan);
    plan->start.v = engine->previous_end;
    plan->end.v = end;
    plan->records = engine->counted_records;
    plan->weight = engine->counted_weight;
    if (engine->survey)
        survey_plan(engine, plan);
    else
        plan_build(engine, plan);
    if (plan->records > 0)
        window_plan_take_lost(engine, plan);
    engine->previous_end = end;
    engine->redo = false;
    engine->survey = false;
    engine->member_count = 0;
    engine->counted_records = 0;
    engine->counted_weight = 0;
    engine->counted_through = TIME_UNKNOWN;
    engine->full = false;
    spread_rebuild(engine);
    return true;
}

void window_closable(struct window_engine *engine, uint64_t *weight, int64_t *open_us)
{
    advance(engine);
    *weight = engine->redo ? 0 : engine->counted_weight;
    *open_us = engine->safe_time != TIME_UNKNOWN && engine->previous_end != TIME_UNKNOWN
                   ? engine->safe_time - engine->previous_end
                   : 0;
}

/* ---- what it knows ---- */

uint64_t window_buffered_weight(const struct window_engine *engine)
{
    return engine->buffered_weight;
}

bool window_safe_time(const struct window_engine *engine, struct broker_us *safe_time)
{
    safe_time->v = engine->safe_time;
    return engine->safe_time != TIME_UNKNOWN;
}

bool window_holds_records(const struct window_engine *engine)
{
    return engine->counted_records > 0 || heap_top(&engine->heaps[HEAP_MERGE]) != NULL;
}

bool window_is_through(const struct window_engine *engine)
{
    return engine->safe_time != TIME_UNKNOWN && heap_top(&engine->heaps[HEAP_BLOCKING]) == NULL &&
           !window_holds_records(engine) && !engine->redo;
}

size_t window_partition_count(const struct window_engine *engine)
{
    return engine->table.count;
}

static int64_t first_wanted(const struct window_engine *engine, const struct partition *partition)
{
    const struct buffer *buffer = partition->buffer;
    int64_t first = partition->position;
    size_t at = buffer != NULL ? buffer->head : 0;
    while (buffer != NULL && at < buffer->count && buffer->extents[at].life != partition->life)
        at++; /* a life that is over can't be read again */
    if (buffer != NULL && at < buffer->count)
        first = held_record(&buffer->extents[at], 0)->offset;
    if (partition->trouble != NULL && partition->trouble->has_gap && partition->trouble->gap_from < first)
        first = partition->trouble->gap_from;
    for (size_t i = 0; partition->has_lost && i < engine->lost_count; i++) {
        const struct lost_range *lost = &engine->lost[i];
        if (!lost->previous_life && lost->from < first &&
            name_compare((struct name){lost->partition, lost->partition_size},
                         (struct name){partition->name, partition->name_size}) == 0)
            first = lost->from;
    }
    return first;
}

int window_positions(struct window_engine *engine, window_position *tell, void *argument)
{
    struct partition **sorted = memory_new(engine->table.count, sizeof(struct partition *));
    size_t count = 0;
    for (size_t i = 0; i < engine->table.capacity; i++) {
        struct partition *partition = engine->table.slots[i];
        if (partition != NULL && partition->seek == NULL && !partition->gone)
            sorted[count++] = partition;
    }
    qsort(sorted, count, sizeof(struct partition *), compare_partitions);
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        struct name name = {sorted[i]->name, sorted[i]->name_size};
        status = tell(argument, name, first_wanted(engine, sorted[i]), sorted[i]->has_id ? &sorted[i]->id : NULL);
    }
    free(sorted);
    return status;
}
