/*
 * See shard.h.
 */
#include "supervisor/shard.h"

#include "common/settings.h"

size_t shard_place(const size_t *counts, size_t workers, size_t limit)
{
    size_t best = 0;

    if (workers < limit) {
        return workers;
    }
    for (size_t i = 1; i < workers; i++) {
        if (counts[i] < counts[best]) {
            best = i;
        }
    }
    return best;
}

uint64_t shard_budget(uint64_t memory_bytes, size_t workers, size_t queues_of_worker, size_t queues)
{
    uint64_t processes = SHARD_SUPERVISOR_BYTES + workers * (uint64_t)SETTINGS_WORKER_BYTES;

    if (memory_bytes <= processes || queues == 0) {
        return 0;
    }
    return (memory_bytes - processes) * queues_of_worker / queues;
}
