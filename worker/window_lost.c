/*
 * Offsets that no window will hold any more (spec 3.8): kept until a plan takes them along to its manifest.
 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/window_internal.h"

static void lose(struct window_engine *engine, struct partition *partition, const struct lost_range *range)
{
    if (range->from > range->to)
        return;
    partition->has_lost = true;
    struct lost_range *last = engine->lost_count > 0 ? &engine->lost[engine->lost_count - 1] : NULL;
    if (last != NULL && !last->told && last->previous_life == range->previous_life &&
        last->misdated == range->misdated && last->to + 1 == range->from &&
        last->partition_size == partition->name_size &&
        memcmp(last->partition, partition->name, partition->name_size) == 0) {
        last->to = range->to;
        return;
    }
    engine->lost = memory_grow(engine->lost, &engine->lost_capacity, engine->lost_count + 1, sizeof *engine->lost);
    struct lost_range *added = &engine->lost[engine->lost_count++];
    *added = *range;
    added->partition = memory_copy(partition->name, partition->name_size);
    added->partition_size = partition->name_size;
}

void window_lose(struct window_engine *engine, struct partition *partition, int64_t from, int64_t to,
                 bool previous_life)
{
    lose(engine, partition, &(struct lost_range){.from = from, .to = to, .previous_life = previous_life});
}

void window_lose_misdated(struct window_engine *engine, struct partition *partition, int64_t from, int64_t to)
{
    lose(engine, partition, &(struct lost_range){.from = from, .to = to, .misdated = true});
}

void window_settle_gap(struct window_engine *engine, struct partition *partition, bool followed, int64_t ts)
{
    struct trouble *trouble = partition->trouble;
    if (trouble == NULL || !trouble->has_gap)
        return;
    trouble->has_gap = false;
    if (!followed || engine->previous_end == TIME_UNKNOWN || ts >= engine->previous_end)
        window_lose(engine, partition, trouble->gap_from, trouble->gap_to, false);
}

void window_plan_take_lost(struct window_engine *engine, struct window_plan *plan)
{
    plan->lost = engine->lost;
    plan->lost_count = engine->lost_count;
    engine->lost = NULL;
    engine->lost_count = engine->lost_capacity = 0;
    for (size_t i = 0; i < plan->lost_count; i++) {
        struct name name = {plan->lost[i].partition, plan->lost[i].partition_size};
        struct partition *partition = table_find(&engine->table, name);
        if (partition != NULL)
            partition->has_lost = false;
    }
}

void window_plan_return_lost(struct window_engine *engine, struct window_plan *plan)
{
    for (size_t i = 0; i < plan->lost_count; i++) {
        engine->lost = memory_grow(engine->lost, &engine->lost_capacity, engine->lost_count + 1, sizeof *engine->lost);
        engine->lost[engine->lost_count++] = plan->lost[i];
        struct name name = {plan->lost[i].partition, plan->lost[i].partition_size};
        struct partition *partition = table_find(&engine->table, name);
        if (partition != NULL)
            partition->has_lost = true;
    }
    free(plan->lost);
    plan->lost = NULL;
    plan->lost_count = 0;
}

struct lost_range *window_lost(struct window_engine *engine, size_t *count)
{
    *count = engine->lost_count;
    return engine->lost;
}
