/*
 * The backoff of spec 3.7: 1 s doubling to a cap, ±25 % jitter, Retry-After exactly.
 */
#ifndef WORKER_RETRY_H
#define WORKER_RETRY_H

#include "common/error.h"
#include "worker/world.h"

#define RETRY_FIRST_MS 1000
#define RETRY_CAP_MS   60000

struct retry {
    uint32_t failures; /* in a row; zero it on success */
};

/* Milliseconds to wait before the next attempt, at most cap_ms (but Retry-After is kept whatever the cap). */
int64_t retry_delay(struct retry *retry, struct world *world, const struct error *error, int64_t cap_ms);

/* Now plus so many milliseconds. */
struct mono_ms world_after(struct world *world, int64_t milliseconds);

#endif
