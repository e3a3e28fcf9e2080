/*
 * The life of one worker as a state machine (spec 4.1): state × event → state and actions, with the clock passed in.
 * It knows of no process: workers.c does what it says.
 */
#ifndef SUPERVISOR_POOL_H
#define SUPERVISOR_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

#define POOL_SILENCE_MS     10000 /* no report for so long: silent */
#define POOL_HANG_MS        60000 /* at least: killed (or twice the lease's TTL) */
#define POOL_BACKOFF_MIN_MS 1000
#define POOL_BACKOFF_MAX_MS 30000
#define POOL_HEALTHY_MS     3600000 /* running for so long forgets the backoff */

enum pool_state {
    POOL_STARTING, /* forked, no report yet */
    POOL_RUNNING,
    POOL_SILENT,   /* alive, but says nothing */
    POOL_BACKOFF,  /* dead, waits for its restart */
    POOL_ROLLING,  /* told to drain, to be started again at once */
    POOL_STOPPING, /* told to drain, or killed for a stop */
    POOL_DOWN,     /* no process, and none to come */
    POOL_STATE_COUNT
};

enum pool_event {
    POOL_START,   /* it is wanted */
    POOL_REPORT,  /* it said something */
    POOL_SILENCE, /* a deadline of pool_due() */
    POOL_HANG,    /* likewise */
    POOL_HEALTHY, /* likewise */
    POOL_RETRY,   /* likewise: the backoff is over */
    POOL_EXIT,    /* the process ended, or couldn't be forked */
    POOL_REFUSE,  /* it ended with exit code 2: no restart can help */
    POOL_ROLL,    /* its turn in a rolling restart */
    POOL_STOP,    /* the pool stops */
    POOL_KILL,    /* the stop has taken too long, or a second signal came */
    POOL_EVENT_COUNT
};

enum pool_action {
    POOL_FORK = 1,      /* start a process */
    POOL_TERMINATE = 2, /* SIGTERM to its group */
    POOL_SLAY = 4,      /* SIGKILL to its group */
    POOL_GIVE_UP = 8    /* the whole pool ends with exit code 2 */
};

/* All zero but state: POOL_DOWN is a worker that was never started. */
struct pool_worker {
    enum pool_state state;
    struct mono_ms since;         /* in this state */
    struct mono_ms last_report;   /* or its start */
    struct mono_ms hang_deadline; /* while silent or rolling: killed then */
    struct mono_ms retry_deadline;
    int64_t hang_ms;    /* max(POOL_HANG_MS, 2 × lease TTL): pool_worker_set() */
    int64_t grace_ms;   /* what a drain may take: likewise */
    int64_t backoff_ms; /* of its last restart; 0: none to remember */
    uint64_t restarts;  /* after a death; planned ones don't count */
};

void pool_worker_init(struct pool_worker *worker);
/* From the settings that its next life begins with: QUEEN_S3_LEASE_TTL_MS, QUEEN_S3_SHUTDOWN_GRACE_MS. */
void pool_worker_set(struct pool_worker *worker, int64_t lease_ttl_ms, int64_t shutdown_grace_ms);

/* What of QUEEN_S3_SHUTDOWN_GRACE_MS a drain may take before SIGKILL (spec 4.2). */
int64_t pool_drain_ms(int64_t shutdown_grace_ms);

/* Takes the event; returns the actions (enum pool_action, or-ed) to be done now. */
unsigned pool_take(struct pool_worker *worker, enum pool_event event, struct mono_ms now);

/* True and the event where a deadline has passed: to be taken, then asked again. */
bool pool_due(const struct pool_worker *worker, struct mono_ms now, enum pool_event *event);
/* The next deadline; false where there is none. */
bool pool_deadline(const struct pool_worker *worker, struct mono_ms *deadline);

/* A process is there. */
bool pool_is_alive(const struct pool_worker *worker);
/* The phase of spec 4.4: a rolling restart begins with a stop as any other. */
const char *pool_state_name(enum pool_state state);

#endif
