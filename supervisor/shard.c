/*
 * See shard.h.
 */
#include "supervisor/shard.h"

#include <inttypes.h>

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

int shard_check_memory(uint64_t memory_bytes, size_t workers, struct error *error)
{
    uint64_t needed = SHARD_LEAST_BYTES + workers * SHARD_WORKER_BYTES;

    if (memory_bytes >= needed) {
        return 0;
    }
    return error_set(error, QS_ERROR_INPUT,
                     "QUEEN_S3_MEMORY_MB=%" PRIu64 ": %zu worker%s need at least %" PRIu64
                     " (32, and 16 a worker); raise it, or lower QUEEN_S3_WORKERS",
                     memory_bytes >> 20, workers, workers == 1 ? "" : "s", needed >> 20);
}

uint64_t shard_budget(uint64_t memory_bytes, size_t workers, size_t queues_of_worker, size_t queues)
{
    uint64_t processes = SHARD_SUPERVISOR_BYTES + workers * SHARD_WORKER_BYTES;

    if (memory_bytes <= processes || queues == 0) {
        return 0;
    }
    return (memory_bytes - processes) * queues_of_worker / queues;
}
