/*
 * Which worker a queue goes to, and how much memory each worker gets (spec 4.1). Arithmetic only.
 */
#ifndef SUPERVISOR_SHARD_H
#define SUPERVISOR_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Where the next queue goes when each of `workers` workers has counts[i] queues and there may be `limit` workers: a
 * number below `workers`, or `workers` itself for a new one. A new worker while there may be one, else the one with the
 * fewest queues, the lowest number first. Taking a list one by one splits it evenly, and what comes later moves none. */
size_t shard_place(const size_t *counts, size_t workers, size_t limit);

/* What the processes themselves need of QUEEN_S3_MEMORY_MB, blocks and upload buffers not counted. Proportional set sizes
 * with one small queue and a directory as the bucket: supervisor 2.3 MB, worker 4.5 MB. The rest is for what comes on top:
 * the supervisor's connections and names; a worker's TLS and CA store, compression contexts, partitions and positions.
 * To be measured again under load. */
#define SHARD_SUPERVISOR_BYTES ((uint64_t)8 << 20)
#define SHARD_WORKER_BYTES     ((uint64_t)16 << 20)
/* And the least that a pool can work with (spec 4.1): this, and SHARD_WORKER_BYTES a worker. */
#define SHARD_LEAST_BYTES ((uint64_t)32 << 20)

/* 0, or QS_ERROR_INPUT with the line that says what is needed. */
int shard_check_memory(uint64_t memory_bytes, size_t workers, struct error *error);

/* A worker's share for blocks and buffers: of what the processes leave, its part by queues. */
uint64_t shard_budget(uint64_t memory_bytes, size_t workers, size_t queues_of_worker, size_t queues);

#endif
