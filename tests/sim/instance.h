/*
 * One worker as the simulator sees it: the driver's real code, with a world whose every table is a model. Its calls travel
 * through the weather; its clock and its timers are the simulation's.
 */
#ifndef TESTS_SIM_INSTANCE_H
#define TESTS_SIM_INSTANCE_H

#include "tests/sim/simulation.h"
#include "worker/queue.h"

struct sim_call;

struct sim_describer {
    struct describer base;
    struct object_store *store;
};

struct instance {
    struct world world;
    struct queen_api queen;
    struct object_store store;
    struct encoder encoder;
    struct sim_describer describer;
    struct simulation *simulation;
    size_t number;
    struct settings settings;
    struct queue_host host;
    struct timers timers;
    struct budget budget;
    size_t budget_before;
    struct queue *queues[QUEUES_MAX];
    size_t queue_count;
    bool drained[QUEUES_MAX];
    bool draining;
    bool doomed; /* a crash: nothing that it still does has any effect */
    bool inside; /* its code is running */
    int64_t paused_until;
    int64_t mono_offset;
    int64_t wall_offset;
    char incarnation[20];
    char previous_incarnation[20];
    struct sim_event *wake;
    int64_t wake_at;
    struct sim_call *calls; /* under way */
    enum crash_point crash_at;
    uint32_t crash_after; /* so many passings of it */
    size_t alone_excess;  /* what calls that may exceed the budget brought */
};

void instance_start(struct simulation *simulation, size_t number, const char *previous_incarnation);
/* Power cut: what is in memory is gone, what is on its way may still arrive. */
void instance_crash(struct instance *instance);
void instance_drain(struct instance *instance);
/* Stopped and continued later, as SIGSTOP and SIGCONT do. */
void instance_pause(struct instance *instance, int64_t until);

/* ---- for the tables ---- */

/* How a call fares. */
enum fate {
    FATE_GOOD,
    FATE_LOST_REQUEST,
    FATE_LOST_ANSWER,
    FATE_STATUS,     /* refused for now, not applied */
    FATE_REFUSED,    /* refused for good, not applied */
    FATE_ODD_STATUS, /* applied, and a 5xx all the same */
    FATE_BAD_BODY,   /* applied, and no answer that can be read */
    FATE_DOUBLED     /* applied twice */
};

/* The head of every call. arrive() runs at the other side, deliver() in the instance unless it was cancelled, and
 * release() once neither will run any more. */
struct sim_call {
    struct instance *instance; /* NULL once the instance is gone */
    struct simulation *simulation;
    const char *what;
    void (*arrive)(struct sim_call *call);
    void (*deliver)(struct sim_call *call, const struct error *error);
    void (*release)(struct sim_call *call);
    enum fate fate;
    int64_t retry_after_ms;
    bool arrives_if_cancelled; /* it was on its way already */
    bool cancelled;
    int pending; /* events that will still look at it */
    struct sim_call *next;
    struct sim_call *previous;
};

/* timeout_ms 0: 30 s. */
void call_begin(struct instance *instance, struct sim_call *call, int64_t timeout_ms);
void call_cancel(struct sim_call *call);

extern const struct queen_api_operations sim_queen_operations;
extern const struct object_store_operations sim_store_operations;
extern const struct encoder_operations sim_encoder_operations;
extern const struct describer_operations sim_describer_operations;

static inline struct instance *instance_of_queen(struct queen_api *api)
{
    return (struct instance *)(void *)((char *)api - offsetof(struct instance, queen));
}

static inline struct instance *instance_of_store(struct object_store *store)
{
    return (struct instance *)(void *)((char *)store - offsetof(struct instance, store));
}

static inline struct instance *instance_of_encoder(struct encoder *encoder)
{
    return (struct instance *)(void *)((char *)encoder - offsetof(struct instance, encoder));
}

/* Around every entry into the instance's code. False: it is gone or stopped; then nothing may be called. */
bool instance_enter(struct instance *instance);
void instance_leave(struct instance *instance);

#endif
