/*
 * All that a queue's driver can touch outside itself, as tables: a worker's real services, or the simulator's model of
 * them. Nothing below this line knows which.
 */
#ifndef WORKER_WORLD_H
#define WORKER_WORLD_H

#include "common/block.h"
#include "common/clock.h"
#include "common/object_store.h"
#include "common/queen_api.h"
#include "common/settings.h"
#include "common/timers.h"
#include "worker/describe.h"
#include "worker/encode.h"

struct world {
    struct queen_api *queen;
    struct object_store *store;
    struct encoder *encoder;
    struct describer *describer; /* NULL: what is up already is put up again */
    struct timers *timers;
    struct budget *budget;
    struct mono_ms (*now)(struct world *world);
    struct wall_ms (*wall)(struct world *world);
    uint64_t (*random)(struct world *world);
    /* Called at each CRASH_AT point; returns unless this is the one. */
    void (*crash)(struct world *world, enum crash_point point);
};

#endif
