/*
 * The window engine: what a discovery page says (spec 3.3, 3.4). Partitions that are new, that were deleted and created
 * again, that are gone; and after a complete pass, the safeTime up to which everything that is caught up is proven.
 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/name.h"
#include "worker/window_internal.h"

#define LAST_WRITE_SLACK_US 2000000 /* how far a lastWriteAt can be from the real last write (spec 1.3), rounded up */

/* ---- positions of a checkpoint, until their partitions are named ---- */

static struct known_position *known_slot(const struct window_engine *engine, struct name name)
{
    size_t mask = engine->known_capacity - 1;
    size_t i = name_hash(name) & mask;
    while (engine->known[i].name.bytes != NULL &&
           (engine->known[i].name.size != name.size || memcmp(engine->known[i].name.bytes, name.bytes, name.size) != 0))
        i = (i + 1) & mask;
    return &engine->known[i];
}

static void known_grow(struct window_engine *engine)
{
    struct known_position *old = engine->known;
    size_t old_capacity = engine->known_capacity;
    engine->known_capacity = old_capacity > 0 ? old_capacity * 2 : 64;
    engine->known = memory_new(engine->known_capacity, sizeof *engine->known);
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].name.bytes != NULL)
            *known_slot(engine, old[i].name) = old[i];
    free(old);
}

void window_add_position(struct window_engine *engine, struct name name, int64_t position,
                         const struct partition_id *id)
{
    if ((engine->known_count + 1) * 4 > engine->known_capacity * 3)
        known_grow(engine);
    struct known_position *slot = known_slot(engine, name);
    if (slot->name.bytes == NULL) {
        slot->name = (struct name){memory_copy(name.bytes, name.size), name.size};
        engine->known_count++;
    }
    slot->position = position;
    slot->has_id = id != NULL;
    if (id != NULL)
        slot->id = *id;
}

void window_clear_positions(struct window_engine *engine)
{
    for (size_t i = 0; i < engine->known_capacity; i++)
        free((void *)(uintptr_t)engine->known[i].name.bytes);
    free(engine->known);
    engine->known = NULL;
    engine->known_capacity = engine->known_count = 0;
}

static const struct known_position *known_find(struct window_engine *engine, struct name name)
{
    if (engine->known_count == 0)
        return NULL;
    struct known_position *slot = known_slot(engine, name);
    if (slot->name.bytes == NULL || slot->used)
        return NULL;
    slot->used = true;
    return slot;
}

/* ---- the order in which full passes named partitions ---- */

static void named_unlink(struct window_engine *engine, struct partition *partition)
{
    if (partition->older != NULL)
        partition->older->newer = partition->newer;
    else if (engine->oldest == partition)
        engine->oldest = partition->newer;
    if (partition->newer != NULL)
        partition->newer->older = partition->older;
    else if (engine->newest == partition)
        engine->newest = partition->older;
    partition->older = partition->newer = NULL;
}

static void named_now(struct window_engine *engine, struct partition *partition)
{
    named_unlink(engine, partition);
    partition->named = engine->full_passes;
    partition->older = engine->newest;
    if (engine->newest != NULL)
        engine->newest->newer = partition;
    else
        engine->oldest = partition;
    engine->newest = partition;
}

static void partition_forget(struct window_engine *engine, struct partition *partition)
{
    for (int kind = 0; kind < HEAP_KINDS; kind++)
        heap_take(&engine->heaps[kind], partition);
    for (size_t i = engine->life_bound_count; i-- > 0;)
        if (engine->life_bounds[i].partition == partition)
            engine->life_bounds[i] = engine->life_bounds[--engine->life_bound_count];
    engine->unread -= partition->unread;
    named_unlink(engine, partition);
    table_remove(&engine->table, partition);
    free(partition->seek);
    free(partition->trouble);
    free(partition->survey);
    free(partition->name);
    free(partition);
}

/* ---- where a partition starts ---- */

static bool same_id(const struct partition_id *a, const struct partition_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* A checkpoint's entry counts for the same id, or where either side has none, and if the log has not fallen behind it. */
static bool known_holds(const struct known_position *known, const struct changed_partition *page)
{
    if (known->has_id && page->has_id)
        return same_id(&known->id, &page->id);
    return known->position <= page->last_offset + 1;
}

/* It began under our eyes, and what retention has taken of it before the first look is lost. */
static void begins_late(struct window_engine *engine, struct partition *partition)
{
    if (partition->position == 0)
        return;
    gap_open(partition, 0, partition->position - 1);
    if (partition->position >= partition->watermark)
        window_settle_gap(engine, partition, false, 0);
}

static void partition_start(struct window_engine *engine, struct partition *partition,
                            const struct changed_partition *page)
{
    struct name name = {partition->name, partition->name_size};
    const struct known_position *known = known_find(engine, name);
    /* All of it is committed, whatever retention has taken of it since. */
    bool long_done =
        engine->previous_end != TIME_UNKNOWN && page->last_write_at.v + LAST_WRITE_SLACK_US < engine->previous_end;
    if (known != NULL && !(long_done && known_holds(known, page))) {
        partition->position = known_holds(known, page) ? known->position : page->log_start;
        if (partition->watermark < partition->position)
            partition->watermark = partition->position;
    } else if (engine->from_log_start || engine->previous_end == TIME_UNKNOWN) {
        partition->position = page->log_start;
        if (engine->enumerated)
            begins_late(engine, partition);
    } else if (long_done) {
        partition->position = partition->watermark;
    } else {
        seek_begin(engine, partition);
    }
}

static void partition_meet(struct window_engine *engine, const struct changed_partition *page)
{
    struct partition *partition = table_add(&engine->table, page->name);
    partition->watermark = partition->named_end = page->last_offset + 1;
    partition->log_start = page->log_start;
    partition->has_id = page->has_id;
    partition->id = page->id;
    partition->moved = engine->page_calls;
    partition_start(engine, partition, page);
    named_now(engine, partition);
    partition_place(engine, partition);
}

/* ---- lives ---- */

static void suspect_clear(struct window_engine *engine, struct partition *partition)
{
    if (partition->trouble == NULL || !partition->trouble->suspect)
        return;
    partition->trouble->suspect = false;
    for (size_t i = 0; i < engine->suspect_count; i++)
        if (engine->suspects[i] == partition)
            engine->suspects[i--] = engine->suspects[--engine->suspect_count];
    if (engine->suspect_count == 0)
        engine->wants_full = false;
}

void partition_suspect(struct window_engine *engine, struct partition *partition)
{
    struct trouble *trouble = partition_trouble(partition);
    if (!trouble->suspect) {
        engine->suspects = memory_grow(engine->suspects, &engine->suspect_capacity, engine->suspect_count + 1,
                                       sizeof(struct partition *));
        engine->suspects[engine->suspect_count++] = partition;
    }
    trouble->suspect = true;
    trouble->suspect_call = engine->page_calls;
    trouble->suspect_safe = engine->page_safe_time;
    engine->wants_full = true;
    partition_place(engine, partition);
}

/* What the life that is over still had: known unread offsets, and a gap whose next record will never come. Of one that was
 * created again the answers of late may have been of the new life: pages alone know where it ended. */
static void life_ends(struct window_engine *engine, struct partition *partition, bool created_again)
{
    int64_t last = (created_again ? partition->named_end : partition->watermark) - 1;
    if (partition->trouble != NULL && partition->trouble->has_gap) {
        partition->trouble->has_gap = false;
        window_lose(engine, partition, partition->trouble->gap_from,
                    partition->trouble->gap_to < last ? partition->trouble->gap_to : last, created_again);
    }
    if (partition->seek == NULL)
        window_lose(engine, partition, partition->position, last, created_again);
    free(partition->seek);
    partition->seek = NULL;
    suspect_clear(engine, partition);
    if (partition->trouble != NULL)
        *partition->trouble = (struct trouble){0};
    partition->held_back = false;
    partition->empty = false;
    partition->life++;
}

static void partition_begin_life(struct window_engine *engine, struct partition *partition,
                                 const struct changed_partition *page)
{
    int64_t previous_end = partition->gone ? 0 : partition->named_end;
    if (!partition->gone)
        life_ends(engine, partition, true);
    if (partition->has_id) {
        struct trouble *trouble = partition_trouble(partition);
        trouble->has_previous = true;
        trouble->previous_end = previous_end;
        trouble->previous_id = partition->id;
    }
    partition->gone = false;
    partition->position = page->log_start;
    partition->log_start = page->log_start;
    partition->watermark = partition->named_end = page->last_offset + 1;
    partition->has_id = page->has_id;
    partition->id = page->id;
    partition->moved = engine->page_calls;
    partition->frontier = TIME_UNKNOWN;
    begins_late(engine, partition);
}

static void partition_end(struct window_engine *engine, struct partition *partition)
{
    life_ends(engine, partition, false);
    partition->watermark = partition->position;
    partition->gone = true;
    partition_place(engine, partition);
}

/* A page that names a life that is over comes from a node that lags: ids are never used again. Taken at its word it would
 * begin a life anew that was read already. */
static bool names_a_life_that_is_over(const struct partition *partition, const struct changed_partition *page)
{
    const struct trouble *trouble = partition->trouble;
    if (!page->has_id || !partition->has_id)
        return false;
    if (trouble != NULL && trouble->has_previous && same_id(&trouble->previous_id, &page->id))
        return true;
    return partition->gone && same_id(&partition->id, &page->id);
}

void window_queue_gone(struct window_engine *engine, struct broker_us safe_time)
{
    for (size_t i = 0; i < engine->table.capacity; i++)
        if (engine->table.slots[i] != NULL && !engine->table.slots[i]->gone)
            partition_end(engine, engine->table.slots[i]);
    if (safe_time.v > engine->safe_time)
        engine->safe_time = safe_time.v;
}

/* With equal ids a lower bound is a node that lags. Without them it is the only sign there is, and it counts against what
 * was held when this page's call was issued: a page may be older than what was read since. */
static bool is_new_life(const struct partition *partition, const struct window_pass *pass,
                        const struct changed_partition *page)
{
    if (partition->gone)
        return true;
    if (partition->has_id && page->has_id)
        return !same_id(&partition->id, &page->id);
    const struct trouble *trouble = partition->trouble;
    if (trouble != NULL && trouble->suspect && pass->call > trouble->suspect_call)
        return page->last_offset + 1 < partition->watermark || page->log_start < partition->log_start;
    if (partition->moved >= pass->call)
        return false;
    if (page->log_start < partition->log_start)
        return true;
    return partition->seek == NULL && page->last_offset + 1 < partition->position;
}

static void partition_meet_again(struct window_engine *engine, const struct window_pass *pass,
                                 struct partition *partition, const struct changed_partition *page)
{
    if (names_a_life_that_is_over(partition, page))
        return;
    if (is_new_life(partition, pass, page)) {
        partition_begin_life(engine, partition, page);
    } else {
        bool was_behind = partition_is_behind(partition);
        if (!partition->has_id && page->has_id) {
            partition->has_id = true;
            partition->id = page->id;
        }
        if (page->last_offset + 1 > partition->named_end)
            partition->named_end = page->last_offset + 1;
        if (partition->named_end > partition->watermark)
            partition->watermark = partition->named_end;
        if (page->log_start > partition->log_start) {
            partition->log_start = page->log_start;
            partition->moved = engine->page_calls;
        }
        if (partition->trouble != NULL && partition->trouble->suspect && pass->call > partition->trouble->suspect_call)
            suspect_clear(engine, partition);
        if (!was_behind && partition_is_behind(partition))
            partition->frontier = engine->safe_time;
    }
    if (pass->full)
        named_now(engine, partition);
    partition_place(engine, partition);
}

/* ---- passes ---- */

void window_pass_begin(struct window_engine *engine, struct window_pass *pass, bool full, bool *has_since,
                       struct broker_us *since)
{
    memset(pass, 0, sizeof *pass);
    pass->full = full || engine->previous_end == TIME_UNKNOWN || engine->full_passes == 0;
    if (pass->full) {
        pass->number = ++engine->full_passes;
        engine->wants_full = false;
    }
    pass->begun = engine->page_calls;
    *has_since = !pass->full;
    since->v = pass->full ? 0 : engine->previous_end - LAST_WRITE_SLACK_US;
}

bool window_wants_full_pass(const struct window_engine *engine)
{
    return engine->wants_full;
}

void window_pass_call(struct window_engine *engine, struct window_pass *pass)
{
    pass->call = ++engine->page_calls;
}

void window_pass_page(struct window_engine *engine, struct window_pass *pass, struct broker_us safe_time,
                      const struct changed_partition *partitions, size_t count)
{
    if (!pass->has_page || safe_time.v < pass->safe_time)
        pass->safe_time = safe_time.v;
    pass->has_page = true;
    if (safe_time.v > engine->page_safe_time)
        engine->page_safe_time = safe_time.v;
    for (size_t i = 0; i < count; i++) {
        struct partition *partition = table_find(&engine->table, partitions[i].name);
        if (partition == NULL)
            partition_meet(engine, &partitions[i]);
        else
            partition_meet_again(engine, pass, partition, &partitions[i]);
    }
}

/* Suspects that a full enumeration begun afterwards did not name are gone (spec 3.4, 5). */
static void end_suspects(struct window_engine *engine, const struct window_pass *pass)
{
    for (size_t i = engine->suspect_count; i-- > 0;) {
        struct partition *partition = engine->suspects[i];
        if (pass->begun >= partition->trouble->suspect_call && pass->safe_time >= partition->trouble->suspect_safe &&
            partition->named != pass->number)
            partition_end(engine, partition);
    }
    engine->wants_full = engine->suspect_count > 0;
}

static bool can_be_forgotten(const struct partition *partition)
{
    return !partition_is_behind(partition) && partition->buffer == NULL && !partition->in_flight &&
           partition->pins == 0 && !partition->has_lost && !partition->member;
}

/* Not named for two full enumerations, caught up and empty: forgotten. Only partitions at the old end are looked at. */
static void forget_unnamed(struct window_engine *engine, const struct window_pass *pass)
{
    struct partition *next;
    for (struct partition *partition = engine->oldest; partition != NULL && partition->named + 2 <= pass->number;
         partition = next) {
        next = partition->newer;
        if (can_be_forgotten(partition))
            partition_forget(engine, partition);
    }
}

void window_pass_end(struct window_engine *engine, struct window_pass *pass)
{
    if (pass->full) {
        end_suspects(engine, pass);
        forget_unnamed(engine, pass);
        engine->enumerated = true;
        window_clear_positions(engine);
    }
    /* What an earlier pass proved stays proven when a later one was answered by a node that lags. */
    if (pass->has_page && pass->safe_time > engine->safe_time)
        engine->safe_time = pass->safe_time;
}
