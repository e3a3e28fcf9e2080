/* Waiting before another attempt: retry.h. */
#include "worker/retry.h"

int64_t retry_delay(struct retry *retry, struct world *world, const struct error *error, int64_t cap_ms)
{
    uint32_t doublings = retry->failures < 16 ? retry->failures : 16;
    if (retry->failures < UINT32_MAX)
        retry->failures++;
    if (error != NULL && error->retry_after_ms >= 0)
        return error->retry_after_ms;
    int64_t delay = (int64_t)RETRY_FIRST_MS << doublings;
    if (delay > cap_ms)
        delay = cap_ms;
    int64_t spread = delay / 4;
    if (spread > 0)
        delay += (int64_t)(world->random(world) % (uint64_t)(2 * spread + 1)) - spread;
    return delay;
}

struct mono_ms world_after(struct world *world, int64_t milliseconds)
{
    struct mono_ms at = world->now(world);
    at.v = milliseconds > INT64_MAX - at.v ? INT64_MAX : at.v + milliseconds;
    return at;
}
