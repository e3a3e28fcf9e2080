/*
 * How the buffered weight lies over ts (window_internal.h), coarsely and in a fixed room: so that nothing is read that no
 * window of the target's weight would take.
 */
#include <string.h>

#include "worker/window_internal.h"

static void spread_widen(struct spread *spread)
{
    for (size_t i = 0; i < SPREAD_BUCKETS / 2; i++)
        spread->weight[i] = spread->weight[2 * i] + spread->weight[2 * i + 1];
    memset(spread->weight + SPREAD_BUCKETS / 2, 0, SPREAD_BUCKETS / 2 * sizeof spread->weight[0]);
    spread->width *= 2;
}

void spread_add(struct window_engine *engine, int64_t ts, uint64_t weight)
{
    struct spread *spread = &engine->spread;
    if (!spread->has_origin) {
        spread->has_origin = true;
        spread->origin = engine->previous_end != TIME_UNKNOWN ? engine->previous_end : ts;
        spread->width = 1000;
    }
    if (ts < spread->origin)
        ts = spread->origin;
    while ((ts - spread->origin) / spread->width >= SPREAD_BUCKETS)
        spread_widen(spread);
    spread->weight[(ts - spread->origin) / spread->width] += weight;
}

void spread_rebuild(struct window_engine *engine)
{
    memset(&engine->spread, 0, sizeof engine->spread);
    const struct partition_heap *heap = &engine->heaps[HEAP_MERGE];
    for (size_t i = 1; i <= heap->count; i++) {
        const struct buffer *buffer = heap->items[i]->buffer;
        for (size_t at = buffer->head; at < buffer->count; at++) {
            const struct held_extent *held = &buffer->extents[at];
            spread_add(engine, record_ts(held, held->extent.count - 1).v, held->weight);
        }
    }
}

int64_t spread_full_at(const struct window_engine *engine)
{
    const struct spread *spread = &engine->spread;
    uint64_t target = (uint64_t)engine->settings.target_weight;
    uint64_t sum = 0;
    if (!spread->has_origin || engine->buffered_weight < target)
        return TIME_NONE;
    for (size_t i = 0; i < SPREAD_BUCKETS; i++) {
        sum += spread->weight[i];
        if (sum >= target)
            return spread->origin + (int64_t)(i + 1) * spread->width;
    }
    return TIME_NONE;
}
