/*
 * Which worker a queue goes to, and how much memory each worker gets (spec 4.1). Arithmetic only.
 */
#ifndef SUPERVISOR_SHARD_H
#define SUPERVISOR_SHARD_H

#include <stddef.h>
#include <stdint.h>

/* Where the next queue goes when each of `workers` workers has counts[i] queues and there may be `limit` workers: a
 * number below `workers`, or `workers` itself for a new one. A new worker while there may be one, else the one with the
 * fewest queues, the lowest number first. Taking a list one by one splits it evenly, and what comes later moves none. */
size_t shard_place(const size_t *counts, size_t workers, size_t limit);

/* What the supervisor itself needs of QUEEN_S3_MEMORY_MB, beside SETTINGS_WORKER_BYTES a worker: a proportional set size of
 * 2.3 MB, measured with one small queue, and its connections and names. */
#define SHARD_SUPERVISOR_BYTES ((uint64_t)8 << 20)

/* A worker's share for blocks and buffers: of what the processes leave, its part by queues. */
uint64_t shard_budget(uint64_t memory_bytes, size_t workers, size_t queues_of_worker, size_t queues);

#endif
