/*
 * The window engine: what is read next, and what an answer brings (spec 3.3, 3.4, 3.8).
 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/window_internal.h"

#define HOLE_ASKED_AGAIN 3
#define READ_WEIGHT_MIN  65536
#define READ_AHEAD_SHARE 4 /* of the target */

/* ---- what to read ---- */

static int64_t lower(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How far the window could reach by time alone. */
static int64_t ceiling(const struct window_engine *engine)
{
    if (engine->redo)
        return engine->redo_end;
    if (engine->safe_time == TIME_UNKNOWN)
        return TIME_UNKNOWN;
    int64_t unit = lake_align_unit_us(engine->settings.align);
    int64_t limit = engine->safe_time - engine->settings.guard_us;
    if (unit != 0 && engine->previous_end != TIME_UNKNOWN)
        limit =
            lower(limit, lake_align_floor(engine->settings.align, (struct broker_us){engine->previous_end}).v + unit);
    return limit;
}

/* Nothing is read whose frontier lies at or above the ceiling plus one alignment unit, or where the buffer is full. */
static int64_t read_limit(const struct window_engine *engine)
{
    int64_t limit = ceiling(engine);
    if (engine->redo || limit == TIME_UNKNOWN)
        return limit;
    int64_t unit = lake_align_unit_us(engine->settings.align);
    if (unit == 0)
        unit = engine->settings.max_window_us;
    /* One unit ahead, but not once the buffer keeps the encoder busy for a while: memory that is read into too early is
     * fresh memory, which costs more than the reading. */
    if (engine->buffered_weight < (uint64_t)engine->settings.target_weight / READ_AHEAD_SHARE)
        limit += unit;
    return lower(limit, spread_full_at(engine));
}

bool window_is_held_up(const struct window_engine *engine)
{
    const struct partition *lowest = heap_top(&engine->heaps[HEAP_BLOCKING]);
    if (lowest == NULL)
        return true;
    bool suspect = lowest->trouble != NULL && lowest->trouble->suspect;
    return lowest->held_back || suspect || (lowest->frontier != TIME_UNKNOWN && lowest->frontier >= ceiling(engine));
}

bool window_next_read(struct window_engine *engine, struct window_read *read)
{
    struct partition *partition = heap_top(&engine->heaps[HEAP_READY]);
    if (partition == NULL || (partition->frontier != TIME_UNKNOWN && partition->frontier >= read_limit(engine)))
        return false;
    *read = (struct window_read){
        .partition = partition,
        .name = {partition->name, partition->name_size},
        .offset = partition->seek != NULL ? partition->seek->probe : partition->position,
        .life = partition->life,
        .probe = partition->seek != NULL,
        .largest = partition->empty,
        .unread = partition->seek != NULL ? 0 : partition->watermark - partition->position,
    };
    partition->in_flight = true;
    partition_place(engine, partition);
    return true;
}

int64_t window_read_weight(const struct window_engine *engine, const struct window_read *read)
{
    int64_t target = engine->settings.target_weight;
    double share = engine->unread > read->unread ? (double)read->unread / (double)engine->unread : 1.0;
    int64_t weight = (int64_t)((double)target * share);
    return weight > READ_WEIGHT_MIN ? weight : READ_WEIGHT_MIN;
}

uint32_t window_read_failures(const struct partition *partition)
{
    return partition->trouble != NULL ? partition->trouble->failures : 0;
}

void window_read_failed(struct window_engine *engine, const struct window_read *read)
{
    read->partition->in_flight = false;
    partition_place(engine, read->partition);
}

void window_read_ready(struct window_engine *engine, struct partition *partition)
{
    partition->held_back = false;
    partition->pins--;
    partition_place(engine, partition);
}

/* ---- what came ---- */

static enum window_read_result hold_back(struct window_engine *engine, struct partition *partition,
                                         enum window_read_result why)
{
    partition_trouble(partition)->failures++;
    partition->held_back = true;
    partition->pins++;
    partition_place(engine, partition);
    return why;
}

void gap_open(struct partition *partition, int64_t from, int64_t to)
{
    struct trouble *trouble = partition_trouble(partition);
    if (!trouble->has_gap)
        trouble->gap_from = from;
    trouble->gap_to = to;
    trouble->has_gap = true;
}

/* Retention passed the position: reading goes on at the log start. */
static void overrun(struct window_engine *engine, struct partition *partition, int64_t log_start)
{
    gap_open(partition, partition->position, log_start - 1);
    partition->position = log_start;
    partition->moved = engine->page_calls;
    if (partition->watermark < log_start)
        partition->watermark = log_start;
}

static struct buffer *buffer_for(struct partition *partition)
{
    struct buffer *buffer = partition->buffer;
    if (buffer == NULL)
        buffer = partition->buffer = memory_new(1, sizeof *buffer);
    if (buffer->head > 16 && buffer->head * 2 > buffer->count) {
        memmove(buffer->extents, buffer->extents + buffer->head,
                (buffer->count - buffer->head) * sizeof *buffer->extents);
        buffer->counted -= buffer->head;
        buffer->count -= buffer->head;
        buffer->head = 0;
    }
    buffer->extents = memory_grow(buffer->extents, &buffer->capacity, buffer->count + 1, sizeof *buffer->extents);
    return buffer;
}

static bool holds_other_life(const struct partition *partition)
{
    const struct buffer *buffer = partition->buffer;
    return buffer->count > buffer->head && buffer->extents[buffer->count - 1].life != partition->life;
}

static void keep_records(struct window_engine *engine, struct partition *partition, struct block *block, size_t first,
                         size_t count)
{
    uint64_t weight = 0;
    for (size_t i = 0; i < count; i++)
        weight += record_weight(block->records + first + i, partition->name_size);
    const struct buffer *held = partition->buffer;
    bool other_life = held != NULL && held->extents[held->count - 1].life != partition->life;
    /* The life before ended before this one began. What is buffered from then on was read of this one before a page told
     * of it (an answer names no id), and comes again now. */
    if (other_life)
        window_drop_from(engine, partition, block->records[first].ts.v);
    struct buffer *buffer = buffer_for(partition);
    if (holds_other_life(partition) && partition->trouble != NULL)
        life_take_back(engine, partition, block->records[first].ts.v);
    if (holds_other_life(partition))
        life_bound_add(engine, partition, block->records[first].ts.v);
    buffer->extents[buffer->count++] = (struct held_extent){{block, first, count}, weight, partition->life};
    block_use(block, weight);
    engine->buffered_weight += weight;
    spread_add(engine, block->records[first + count - 1].ts.v, weight);
}

/* Records of a partition whose frontier is known, below it: the broker broke its promise (a clock stepped back). The open
 * window still takes those that lie in it; what belongs to one that is closed can't be placed any more and counts as
 * lost (spec 3.3). Returns how many. */
static size_t count_unplaceable(struct window_engine *engine, struct partition *partition, const struct record *records,
                                size_t count)
{
    /* Below T_{k-1} alone says nothing: of a position that was not known exactly, answer after answer is. Nor was what
     * lies before the first window of this engine ever its to place. */
    int64_t promised = lower(partition->frontier, engine->previous_end);
    size_t before = 0;
    while (before < count && records[before].ts.v < engine->first_end)
        before++;
    size_t lost = before;
    while (lost < count && records[lost].ts.v < promised)
        lost++;
    if (lost > before)
        window_lose_misdated(engine, partition, records[before].offset, records[lost - 1].offset);
    return lost;
}

static void take_records(struct window_engine *engine, struct partition *partition, struct block *block, size_t first,
                         size_t count)
{
    const struct record *records = block->records + first;
    window_settle_gap(engine, partition, true, records[0].ts.v);
    size_t skip = count_unplaceable(engine, partition, records, count);
    while (engine->previous_end != TIME_UNKNOWN && skip < count && records[skip].ts.v < engine->previous_end)
        skip++;
    size_t taken = count;
    if (skip < count && engine->survey)
        taken = skip + survey_records(engine, partition, records + skip, count - skip);
    else if (skip < count)
        keep_records(engine, partition, block, first + skip, count - skip);
    /* What lies behind a surveyed redo is read when its turn comes. */
    const struct record *last = records + (taken < count ? taken : count - 1);
    partition->position = taken < count ? last->offset : last->offset + 1;
    partition->moved = engine->page_calls;
    if (last->ts.v > partition->frontier)
        partition->frontier = last->ts.v;
    partition->empty = false;
    if (partition->trouble != NULL) {
        partition->trouble->failures = 0;
        partition->trouble->hole_asked = 0;
    }
}

/* How many of the records follow each other without a hole. */
static size_t contiguous(const struct record *records, size_t count)
{
    if (records[count - 1].offset - records[0].offset == (int64_t)count - 1)
        return count;
    size_t run = 1;
    while (run < count && records[run].offset == records[run - 1].offset + 1)
        run++;
    return run;
}

static enum window_read_result answer_records(struct window_engine *engine, struct partition *partition,
                                              const struct fetch_entry *entry, struct block *block)
{
    const struct record *records = block->records + entry->first_record;
    if (records[0].offset > partition->position) {
        struct trouble *trouble = partition_trouble(partition);
        if (trouble->hole_asked < HOLE_ASKED_AGAIN) {
            trouble->hole_asked++;
            return hold_back(engine, partition, WINDOW_READ_HOLE);
        }
        gap_open(partition, partition->position, records[0].offset - 1);
    }
    take_records(engine, partition, block, entry->first_record, contiguous(records, entry->record_count));
    partition_place(engine, partition);
    return WINDOW_READ_DONE;
}

static enum window_read_result answer_empty(struct window_engine *engine, struct partition *partition,
                                            const struct fetch_entry *entry, bool first)
{
    if (partition->position >= partition->watermark) {
        /* All of it was deleted before it was read: no record comes after the gap. */
        window_settle_gap(engine, partition, false, 0);
        partition_place(engine, partition);
        return WINDOW_READ_DONE;
    }
    if (entry->high_watermark <= partition->position) {
        partition_suspect(engine, partition);
        return WINDOW_READ_DONE;
    }
    if (partition->empty && first)
        return hold_back(engine, partition, WINDOW_READ_EMPTY);
    partition->empty = true;
    partition_place(engine, partition);
    return WINDOW_READ_DONE;
}

static enum window_read_result answer_out_of_range(struct window_engine *engine, struct partition *partition,
                                                   const struct fetch_entry *entry)
{
    if (partition->position > entry->high_watermark) {
        partition_suspect(engine, partition);
        return WINDOW_READ_DONE;
    }
    if (entry->log_start > partition->position) {
        overrun(engine, partition, entry->log_start);
        if (partition->position >= partition->watermark)
            window_settle_gap(engine, partition, false, 0);
        partition_place(engine, partition);
        return WINDOW_READ_DONE;
    }
    return hold_back(engine, partition, WINDOW_READ_FAULT);
}

enum window_read_result window_read_done(struct window_engine *engine, const struct window_read *read,
                                         const struct fetch_entry *entry, struct block *block)
{
    struct partition *partition = read->partition;
    partition->in_flight = false;
    int64_t wanted = partition->seek != NULL ? partition->seek->probe : partition->position;
    if (read->life != partition->life || read->probe != (partition->seek != NULL) || read->offset != wanted) {
        /* Asked for by a life that is over, or before its position was set back. */
        partition_place(engine, partition);
        return WINDOW_READ_DONE;
    }
    if (partition->seek != NULL)
        return seek_answer(engine, partition, entry, block);
    if (entry->status == FETCH_PASSING || entry->status == FETCH_UNKNOWN_QUEUE)
        return hold_back(engine, partition, WINDOW_READ_FAULT);
    if (entry->status == FETCH_OUT_OF_RANGE)
        return answer_out_of_range(engine, partition, entry);
    if (entry->high_watermark < partition->watermark && !partition->has_id) {
        /* Without an id this is how a partition looks that was created again: nothing is taken before a page has said
         * which it is. */
        partition_suspect(engine, partition);
        return WINDOW_READ_DONE;
    }
    if (entry->high_watermark > partition->watermark)
        partition->watermark = entry->high_watermark;
    if (entry->log_start > partition->log_start) {
        partition->log_start = entry->log_start;
        partition->moved = engine->page_calls;
    }
    if (entry->log_start > partition->position)
        overrun(engine, partition, entry->log_start);
    if (entry->record_count == 0)
        return answer_empty(engine, partition, entry, read->first);
    return answer_records(engine, partition, entry, block);
}
