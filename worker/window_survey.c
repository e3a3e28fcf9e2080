/*
 * The window engine: a redo larger than the memory there is (spec 3.3). Its records are read once to be measured (which
 * offsets of which partition, how many bytes of text: a zstd frame declares its size before its first byte) and dropped;
 * the driver then reads each partition again, in name order, just before it is written (redo_stream.h).
 */
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/memory.h"
#include "worker/encode_stream.h"
#include "worker/window_internal.h"

/* Measures records from the first on while they lie in the redo; returns how many do. */
size_t survey_records(struct window_engine *engine, struct partition *partition, const struct record *records,
                      size_t count)
{
    size_t measured = 0;
    size_t spelled = json_spelled_size(partition->name, partition->name_size);
    if (records[0].ts.v >= engine->redo_end)
        return 0;
    if (partition->survey == NULL) {
        partition->survey = memory_new(1, sizeof *partition->survey);
        partition->survey->first = records[0].offset;
        window_count_member(engine, partition);
    }
    struct survey *survey = partition->survey;
    for (; measured < count && records[measured].ts.v < engine->redo_end; measured++) {
        survey->text_size += jsonl_record_size(&records[measured], spelled);
        engine->counted_weight += record_weight(&records[measured], partition->name_size);
    }
    survey->end = records[measured - 1].offset + 1;
    survey->records += measured;
    engine->counted_records += measured;
    return measured;
}

/* What a partition holds in memory becomes what was measured of it; what lies behind the redo is unread again. */
static void survey_buffer(struct window_engine *engine, struct partition *partition)
{
    struct buffer *buffer = partition->buffer;
    bool in_redo = true;
    for (size_t at = buffer->head; at < buffer->count; at++) {
        struct held_extent *held = &buffer->extents[at];
        const struct record *records = held->extent.block->records + held->extent.first;
        size_t measured = in_redo ? survey_records(engine, partition, records, held->extent.count) : 0;
        if (in_redo && measured < held->extent.count) {
            in_redo = false;
            partition->position = records[measured].offset;
            partition->frontier = records[measured].ts.v;
            partition->moved = engine->page_calls;
        }
        engine->buffered_weight -= held->weight;
        block_spend(held->extent.block, held->weight);
    }
    buffer->head = buffer->count;
    buffer->counted = buffer->count;
    buffer->counted_records = 0;
    buffer_discard(engine, partition);
    partition_place(engine, partition);
}

static bool can_be_read_again(const struct partition *partition)
{
    const struct buffer *buffer = partition->buffer;
    for (size_t at = buffer->head; at < buffer->count; at++)
        if (buffer->extents[at].life != partition->life || partition->gone)
            return false;
    return true;
}

bool window_survey(struct window_engine *engine)
{
    struct partition **holding = memory_new(engine->table.count, sizeof(struct partition *));
    size_t count = 0;
    bool possible = engine->redo && !engine->survey;
    for (size_t i = 0; possible && i < engine->table.capacity; i++)
        if (engine->table.slots[i] != NULL && engine->table.slots[i]->buffer != NULL) {
            holding[count++] = engine->table.slots[i];
            possible = can_be_read_again(engine->table.slots[i]);
        }
    for (size_t i = 0; possible && i < engine->member_count; i++)
        engine->members[i]->member = false;
    if (possible) {
        engine->survey = true;
        engine->member_count = 0;
        engine->counted_weight = 0;
        engine->counted_records = 0;
    }
    for (size_t i = 0; possible && i < count; i++)
        survey_buffer(engine, holding[i]);
    if (possible)
        spread_rebuild(engine);
    free(holding);
    return possible;
}

void survey_plan(struct window_engine *engine, struct window_plan *plan)
{
    size_t names = 0;
    if (engine->member_count > 0)
        qsort(engine->members, engine->member_count, sizeof(struct partition *), compare_partitions);
    for (size_t i = 0; i < engine->member_count; i++)
        names += engine->members[i]->name_size;
    plan->names = memory_new(names + 1, 1);
    plan->surveyed = memory_new(engine->member_count, sizeof *plan->surveyed);
    char *name = plan->names;
    for (size_t i = 0; i < engine->member_count; i++) {
        struct partition *member = engine->members[i];
        const struct survey *survey = member->survey;
        if (member->name_size > 0)
            memcpy(name, member->name, member->name_size);
        plan->surveyed[plan->surveyed_count++] = (struct surveyed_run){
            {name, member->name_size}, survey->first, survey->end, survey->records, survey->text_size};
        name += member->name_size;
        free(member->survey);
        member->survey = NULL;
        member->member = false;
    }
}
