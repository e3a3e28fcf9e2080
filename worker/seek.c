/*
 * Finding where a partition starts (spec 3.4, 3): the first offset with ts >= T_{k-1}, by galloping back from the end in
 * steps 1, 2, 4, … and then bisecting. Each probe is a fetch entry with the smallest answer; every record that comes
 * narrows the bracket. ts never falls as offset grows, so the bracket is a proof.
 */
#include <stdlib.h>

#include "common/memory.h"
#include "worker/window_internal.h"

#define SEEK_TRIES 3

static void seek_end(struct window_engine *engine, struct partition *partition, int64_t position)
{
    const struct seek *seek = partition->seek;
    if (seek->has_gap && seek->gap_from < position)
        gap_open(partition, seek->gap_from, position - 1);
    free(partition->seek);
    partition->seek = NULL;
    partition->position = position;
    if (position >= partition->watermark)
        window_settle_gap(engine, partition, false, 0);
    partition->moved = engine->page_calls;
    partition->frontier = TIME_UNKNOWN;
    partition_place(engine, partition);
}

/* The next offset to ask for, or the end of the seek. */
static void seek_aim(struct window_engine *engine, struct partition *partition)
{
    struct seek *seek = partition->seek;
    if (seek->low >= seek->high) {
        seek_end(engine, partition, seek->high);
        return;
    }
    if (seek->step > 0 && seek->high - seek->step > seek->low) {
        seek->probe = seek->high - seek->step;
        seek->step = seek->step > INT64_MAX / 4 ? seek->step : seek->step * 2;
    } else {
        seek->step = 0;
        seek->probe = seek->low + (seek->high - seek->low) / 2;
    }
    partition_place(engine, partition);
}

void seek_begin(struct window_engine *engine, struct partition *partition)
{
    struct seek *seek = memory_new(1, sizeof *seek);
    seek->low = partition->log_start;
    seek->high = partition->watermark > seek->low ? partition->watermark : seek->low;
    seek->step = 1;
    seek->has_gap = engine->enumerated && seek->low > 0;
    partition->seek = seek;
    partition->frontier = TIME_UNKNOWN;
    seek_aim(engine, partition);
}

static void seek_failed(struct window_engine *engine, struct partition *partition)
{
    /* The log start is always correct: records below T_{k-1} are dropped as they arrive. */
    if (++partition->seek->failed >= SEEK_TRIES)
        seek_end(engine, partition, partition->log_start);
    else
        partition_place(engine, partition);
}

static void seek_narrow(struct seek *seek, const struct record *records, size_t count, int64_t target)
{
    for (size_t i = 0; i < count; i++) {
        if (records[i].ts.v < target) {
            if (records[i].offset >= seek->low)
                seek->low = records[i].offset + 1;
            seek->has_gap = false; /* what lies before a committed record is committed */
        } else {
            /* What can't be read between the probe and its first record starts the reading too: a hole costs nothing. */
            int64_t bound = i == 0 ? seek->probe : records[i].offset;
            if (bound < seek->high)
                seek->high = bound;
            /* A proof from above ends the gallop: what it was looking for lies higher. */
            break;
        }
    }
    if (count > 0 && records[0].ts.v < target)
        seek->step = 0;
    if (seek->high < seek->low)
        seek->high = seek->low;
}

/* Retention moves the lower end. */
static void seek_overrun(struct seek *seek, int64_t log_start)
{
    if (!seek->has_gap)
        seek->gap_from = seek->low;
    seek->has_gap = true;
    seek->low = log_start;
}

enum window_read_result seek_answer(struct window_engine *engine, struct partition *partition,
                                    const struct fetch_entry *entry, const struct block *block)
{
    struct seek *seek = partition->seek;
    if (entry->log_start > partition->log_start)
        partition->log_start = entry->log_start;
    if (entry->high_watermark > partition->watermark)
        partition->watermark = entry->high_watermark;
    if (entry->log_start > seek->low)
        seek_overrun(seek, entry->log_start);
    if (seek->high < seek->low)
        seek->high = seek->low;
    if (entry->status == FETCH_OK && entry->record_count > 0) {
        seek->failed = 0;
        seek_narrow(seek, block->records + entry->first_record, entry->record_count, engine->previous_end);
        seek_aim(engine, partition);
        return WINDOW_READ_DONE;
    }
    if (entry->status == FETCH_OUT_OF_RANGE && seek->probe < seek->low) {
        seek_aim(engine, partition);
        return WINDOW_READ_DONE;
    }
    if (entry->status == FETCH_OUT_OF_RANGE && seek->probe > entry->high_watermark) {
        partition_suspect(engine, partition);
        return WINDOW_READ_DONE;
    }
    seek_failed(engine, partition);
    if (partition->seek == NULL)
        return WINDOW_READ_DONE;
    partition->held_back = true;
    partition->pins++;
    partition_trouble(partition)->failures++;
    partition_place(engine, partition);
    return WINDOW_READ_FAULT;
}
