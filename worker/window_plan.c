/*
 * What a close takes: the records that are counted, partition by partition in order of names, moved from the buffers into
 * a plan. No record is copied: a plan holds the blocks that they lie in.
 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/window_internal.h"

static uint64_t extent_weight(const struct extent *extent, size_t name_size)
{
    uint64_t weight = 0;
    for (size_t i = 0; i < extent->count; i++)
        weight += record_weight(extent->block->records + extent->first + i, name_size);
    return weight;
}

/* Moves what is counted of one partition into the plan; the extent that T_k cuts is split. */
static void plan_take(struct window_engine *engine, struct window_plan *plan, struct partition *partition)
{
    struct buffer *buffer = partition->buffer;
    struct run *run = &plan->runs[plan->run_count++];
    struct extent *extents = plan->extents + plan->extent_count;
    for (; buffer->head < buffer->counted; buffer->head++) {
        const struct held_extent *held = &buffer->extents[buffer->head];
        plan->extents[plan->extent_count++] = held->extent;
        block_unuse(held->extent.block, held->weight);
        engine->buffered_weight -= held->weight;
    }
    if (buffer->counted_records > 0) {
        struct held_extent *held = &buffer->extents[buffer->head];
        struct extent cut = {held->extent.block, held->extent.first, buffer->counted_records};
        uint64_t weight = extent_weight(&cut, partition->name_size);
        block_retain(cut.block);
        block_unuse(cut.block, weight);
        plan->extents[plan->extent_count++] = cut;
        held->extent.first += cut.count;
        held->extent.count -= cut.count;
        held->weight -= weight;
        engine->buffered_weight -= weight;
        buffer->counted_records = 0;
    }
    *run = (struct run){{NULL, partition->name_size}, extents, (size_t)(plan->extents + plan->extent_count - extents)};
    partition->member = false;
    buffer_discard(engine, partition);
}

void plan_build(struct window_engine *engine, struct window_plan *plan)
{
    size_t extents = 0;
    size_t names = 0;
    if (engine->member_count > 0)
        qsort(engine->members, engine->member_count, sizeof(struct partition *), compare_partitions);
    for (size_t i = 0; i < engine->member_count; i++) {
        const struct buffer *buffer = engine->members[i]->buffer;
        extents += buffer->counted - buffer->head + (buffer->counted_records > 0);
        names += engine->members[i]->name_size;
    }
    plan->runs = memory_new(engine->member_count, sizeof *plan->runs);
    plan->extents = memory_new(extents, sizeof *plan->extents);
    plan->names = memory_new(names + 1, 1);
    char *name = plan->names;
    for (size_t i = 0; i < engine->member_count; i++) {
        const struct partition *member = engine->members[i];
        if (member->name_size > 0)
            memcpy(name, member->name, member->name_size);
        plan_take(engine, plan, engine->members[i]);
        plan->runs[i].partition.bytes = name;
        name += plan->runs[i].partition.size;
    }
}

void window_plan_free(struct window_plan *plan)
{
    for (size_t i = 0; i < plan->extent_count; i++)
        block_release(plan->extents[i].block);
    for (size_t i = 0; i < plan->lost_count; i++)
        free(plan->lost[i].partition);
    free(plan->runs);
    free(plan->extents);
    free(plan->names);
    free(plan->lost);
    free(plan->surveyed);
    memset(plan, 0, sizeof *plan);
}
