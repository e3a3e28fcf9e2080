/*
 * The window engine: giving memory back (spec 3.3). No budget may block a close, so when the partition that holds it back
 * can't be read for lack of room, the records furthest from being needed go, and are read again later.
 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/window_internal.h"

/* ---- dropping what has the highest ts ---- */

/* How many records at the start of the last extent have to stay: those that are counted into the window. */
static size_t counted_of_last(const struct buffer *buffer)
{
    return buffer->count - 1 == buffer->counted ? buffer->counted_records : 0;
}

/* The last extent of a partition, if some of it isn't counted, lies above `floor` and can be read again. */
static struct held_extent *last_droppable(const struct partition *partition, int64_t floor)
{
    struct buffer *buffer = partition->buffer;
    if (buffer == NULL || buffer->count <= buffer->counted)
        return NULL;
    struct held_extent *last = &buffer->extents[buffer->count - 1];
    bool above = record_ts(last, last->extent.count - 1).v > floor;
    return above && last->life == partition->life && !partition->gone ? last : NULL;
}

static int64_t extent_end(const struct held_extent *held)
{
    return record_ts(held, held->extent.count - 1).v;
}

/* Partitions by the ts that their last droppable extent ends with, the highest on top: a heap for one shedding, since
 * dropping one extent after the other must not walk all partitions each time. */
struct candidate {
    int64_t end;
    struct partition *partition;
};

static void sink_down(struct candidate *heap, size_t count, size_t at)
{
    struct candidate moving = heap[at];
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1].end > heap[child].end)
            child++;
        if (heap[child].end <= moving.end)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static struct candidate *gather_candidates(const struct window_engine *engine, int64_t floor, size_t *count)
{
    const struct partition_heap *merge = &engine->heaps[HEAP_MERGE];
    struct candidate *heap = memory_new(merge->count, sizeof *heap);
    *count = 0;
    for (size_t i = 1; i <= merge->count; i++) {
        const struct held_extent *last = last_droppable(merge->items[i], floor);
        if (last != NULL)
            heap[(*count)++] = (struct candidate){extent_end(last), merge->items[i]};
    }
    for (size_t i = *count / 2; i-- > 0;)
        sink_down(heap, *count, i);
    return heap;
}

/* Keeps the first `keep` records of a partition's last extent, at least those that are counted. Returns what went. */
static uint64_t cut_last(struct window_engine *engine, struct partition *partition, size_t keep)
{
    struct buffer *buffer = partition->buffer;
    struct held_extent *last = &buffer->extents[buffer->count - 1];
    struct block *block = last->extent.block;
    uint64_t weight = 0;
    for (size_t i = keep; i < last->extent.count; i++)
        weight += record_weight(block->records + last->extent.first + i, partition->name_size);
    engine->buffered_weight -= weight;
    last->weight -= weight;
    last->extent.count = keep;
    if (keep == 0) {
        buffer->count--;
        block_spend(block, weight);
        buffer_discard(engine, partition);
        return weight;
    }
    block_unuse(block, weight);
    if (buffer->counted == buffer->count - 1 && buffer->counted_records == keep) {
        buffer->counted++;
        buffer->counted_records = 0;
    }
    return weight;
}

/* Drops the upper half of a partition's last extent, so that what is needed first stays wherever it lies. */
static uint64_t drop_last(struct window_engine *engine, struct partition *partition, int64_t floor)
{
    const struct buffer *buffer = partition->buffer;
    const struct held_extent *last = &buffer->extents[buffer->count - 1];
    size_t keep = counted_of_last(buffer);
    if (keep < last->extent.count / 2)
        keep = last->extent.count / 2;
    while (record_ts(last, keep).v <= floor)
        keep++;
    const struct record *first = last->extent.block->records + last->extent.first + keep;
    partition->position = first->offset;
    partition->frontier = first->ts.v;
    partition->moved = engine->page_calls;
    uint64_t weight = cut_last(engine, partition, keep);
    partition_place(engine, partition);
    return weight;
}

void window_drop_from(struct window_engine *engine, struct partition *partition, int64_t ts)
{
    struct buffer *buffer = partition->buffer;
    while (buffer != NULL && buffer->count > buffer->counted) {
        const struct held_extent *last = &buffer->extents[buffer->count - 1];
        size_t keep = last->extent.count;
        while (keep > counted_of_last(buffer) && record_ts(last, keep - 1).v >= ts)
            keep--;
        if (keep == last->extent.count)
            break;
        life_lose_misread(engine, partition, last, keep);
        cut_last(engine, partition, keep);
        buffer = partition->buffer;
        if (keep > 0)
            break;
    }
    spread_rebuild(engine); /* what is gone would make the buffer look full, and nothing would be read any more */
    partition_place(engine, partition);
}

bool window_shed(struct window_engine *engine, size_t bytes)
{
    size_t count;
    uint64_t dropped = 0;
    const struct partition *lowest = heap_top(&engine->heaps[HEAP_BLOCKING]);
    /* What is as low as the lowest frontier would be the first to be read again, before what it had to give way to. */
    int64_t floor = lowest != NULL ? lowest->frontier : TIME_UNKNOWN;
    struct candidate *heap = gather_candidates(engine, floor, &count);
    while (dropped < bytes && count > 0 && heap[0].partition != lowest) {
        dropped += drop_last(engine, heap[0].partition, floor);
        const struct held_extent *next = last_droppable(heap[0].partition, floor);
        if (next != NULL)
            heap[0].end = extent_end(next);
        else
            heap[0] = heap[--count];
        sink_down(heap, count, 0);
    }
    free(heap);
    if (dropped > 0)
        spread_rebuild(engine);
    return dropped > 0;
}

/* ---- copying what is left of spent blocks ---- */

static bool is_spent(const struct block *block)
{
    return block->charged > block->live + block->live / 3 + 4 * sizeof *block;
}

struct compaction {
    struct block *block; /* NULL while measuring */
    size_t bytes;
    size_t records;
};

static void copy_record(struct compaction *compaction, const struct record *record)
{
    struct block *block = compaction->block;
    size_t size = (size_t)record->transaction_id_size + record->payload_size;
    if (block == NULL) {
        compaction->bytes += size;
        compaction->records++;
        return;
    }
    struct record *copy = &block->records[block->record_count++];
    char *to = block->body + block->body_size;
    *copy = *record;
    if (record->transaction_id_size > 0)
        memcpy(to, record->transaction_id, record->transaction_id_size);
    copy->transaction_id = to;
    if (record->payload_size > 0)
        memcpy(to + record->transaction_id_size, record->payload, record->payload_size);
    copy->payload = to + record->transaction_id_size;
    block->body_size += size;
}

static void copy_extents(struct compaction *compaction, struct partition *partition)
{
    struct buffer *buffer = partition->buffer;
    for (size_t at = buffer->head; at < buffer->count; at++) {
        struct held_extent *held = &buffer->extents[at];
        struct block *old = held->extent.block;
        if (old == compaction->block || !is_spent(old))
            continue;
        size_t first = compaction->block != NULL ? compaction->block->record_count : 0;
        for (size_t i = 0; i < held->extent.count; i++)
            copy_record(compaction, old->records + held->extent.first + i);
        if (compaction->block == NULL)
            continue;
        /* The weight stays counted in the old block, so that its other extents are still seen as spent. */
        held->extent.block = compaction->block;
        held->extent.first = first;
        block_use(compaction->block, held->weight);
        block_release(old);
    }
}

static void copy_all(struct window_engine *engine, struct compaction *compaction)
{
    const struct partition_heap *heap = &engine->heaps[HEAP_MERGE];
    for (size_t i = 0; i < engine->member_count; i++)
        copy_extents(compaction, engine->members[i]);
    for (size_t i = 1; i <= heap->count; i++)
        if (!heap->items[i]->member)
            copy_extents(compaction, heap->items[i]);
}

static struct budget *engine_budget(const struct window_engine *engine)
{
    const struct partition *any = heap_top(&engine->heaps[HEAP_MERGE]);
    if (any == NULL && engine->member_count > 0)
        any = engine->members[0];
    return any != NULL ? any->buffer->extents[any->buffer->head].extent.block->budget : NULL;
}

bool window_compact(struct window_engine *engine)
{
    struct compaction compaction = {0};
    if (engine->survey)
        return false; /* its members hold nothing */
    copy_all(engine, &compaction);
    if (compaction.records == 0)
        return false;
    size_t size = compaction.bytes + compaction.records * sizeof(struct record);
    struct budget *budget = engine_budget(engine);
    struct block *block = block_create(budget, 0);
    if (block == NULL)
        return false;
    block->body = malloc(compaction.bytes > 0 ? compaction.bytes : 1);
    block->records = malloc(compaction.records * sizeof(struct record));
    if (block->body == NULL || block->records == NULL) {
        block_release(block);
        return false;
    }
    block->body_capacity = compaction.bytes;
    block->record_capacity = compaction.records;
    if (budget != NULL)
        budget_force(budget, size);
    block->charged += size;
    compaction.block = block;
    copy_all(engine, &compaction);
    block_release(block);
    return true;
}
