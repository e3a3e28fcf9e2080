/*
 * The window engine: two lives of one partition in the buffer (spec 3.4, 4).
 *
 * A partition that was deleted and created again is read under its old name until a page says so, and what came in the
 * meantime was taken for records of the life that was over. The new life's own first ts tells them apart, since all of
 * the old one is older: they are let go, and come again in their place.
 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/window_internal.h"

void life_bound_add(struct window_engine *engine, struct partition *partition, int64_t ts)
{
    engine->life_bounds = memory_grow(engine->life_bounds, &engine->life_bound_capacity, engine->life_bound_count + 1,
                                      sizeof *engine->life_bounds);
    int64_t bound = ts > engine->counted_through ? ts : engine->counted_through + 1;
    engine->life_bounds[engine->life_bound_count++] = (struct life_bound){partition, bound};
}

void prune_life_bounds(struct window_engine *engine)
{
    size_t kept = 0;
    for (size_t i = 0; i < engine->life_bound_count; i++) {
        const struct life_bound *bound = &engine->life_bounds[i];
        const struct buffer *buffer = bound->partition->buffer;
        if (buffer != NULL && buffer->head < buffer->count &&
            record_ts(&buffer->extents[buffer->head], 0).v < bound->ts)
            engine->life_bounds[kept++] = *bound;
    }
    engine->life_bound_count = kept;
}

/* Nothing is counted any more: the merge begins again. */
static void count_anew(struct window_engine *engine)
{
    for (size_t i = 0; i < engine->member_count; i++) {
        struct partition *member = engine->members[i];
        member->member = false;
        member->buffer->counted = member->buffer->head;
        member->buffer->counted_records = 0;
        partition_place(engine, member);
    }
    engine->member_count = 0;
    engine->counted_records = 0;
    engine->counted_weight = 0;
    engine->counted_through = TIME_UNKNOWN;
    engine->full = false;
}

void life_lose_misread(struct window_engine *engine, struct partition *partition, const struct held_extent *held,
                       size_t keep)
{
    const struct record *records = held->extent.block->records + held->extent.first;
    int64_t to = records[held->extent.count - 1].offset;
    if (partition->trouble == NULL || !partition->trouble->has_previous)
        return;
    if (to >= partition->trouble->previous_end)
        to = partition->trouble->previous_end - 1;
    window_lose(engine, partition, records[keep].offset, to, true);
}

/* Cuts the last extent where its records reach ts; what was cut away belongs to the new life. False where nothing was
 * cut. */
static bool cut_last(struct window_engine *engine, struct partition *partition, int64_t ts)
{
    struct buffer *buffer = partition->buffer;
    struct held_extent *last = &buffer->extents[buffer->count - 1];
    struct block *block = last->extent.block;
    const struct record *records = block->records + last->extent.first;
    size_t keep = last->extent.count;
    uint64_t weight = 0;
    while (keep > 0 && records[keep - 1].ts.v >= ts)
        weight += record_weight(&records[--keep], partition->name_size);
    if (keep == last->extent.count)
        return false;
    life_lose_misread(engine, partition, last, keep);
    engine->buffered_weight -= weight;
    last->weight -= weight;
    last->extent.count = keep;
    if (keep > 0) {
        block_unuse(block, weight);
        return false;
    }
    buffer->count--;
    block_spend(block, weight);
    return true;
}

void life_take_back(struct window_engine *engine, struct partition *partition, int64_t ts)
{
    struct buffer *buffer = partition->buffer;
    if (record_ts(&buffer->extents[buffer->count - 1], buffer->extents[buffer->count - 1].extent.count - 1).v < ts)
        return;
    count_anew(engine);
    while (buffer->count > buffer->head && cut_last(engine, partition, ts)) {
        /* the extent before may reach as far */
    }
    spread_rebuild(engine);
}

/* ---- what was lost, and wasn't ---- */

static void add_range(struct window_engine *engine, const struct lost_range *like, int64_t from, int64_t to)
{
    if (from > to)
        return;
    engine->lost = memory_grow(engine->lost, &engine->lost_capacity, engine->lost_count + 1, sizeof *engine->lost);
    struct lost_range *range = &engine->lost[engine->lost_count++];
    *range = *like;
    range->partition = memory_copy(like->partition, like->partition_size);
    range->from = from;
    range->to = to;
}

void window_found(struct window_engine *engine, struct name partition, int64_t first, int64_t last)
{
    for (size_t i = engine->lost_count; i-- > 0;) {
        struct lost_range range = engine->lost[i];
        bool same = range.partition_size == partition.size &&
                    (partition.size == 0 || memcmp(range.partition, partition.bytes, partition.size) == 0);
        if (!same || range.to < first || range.from > last)
            continue;
        engine->lost[i] = engine->lost[--engine->lost_count];
        add_range(engine, &range, range.from, range.to < first - 1 ? range.to : first - 1);
        add_range(engine, &range, range.from > last + 1 ? range.from : last + 1, range.to);
        free(range.partition);
    }
}
