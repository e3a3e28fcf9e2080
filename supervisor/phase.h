/*
 * The life of the whole pool as a state machine (spec 3.2, 4.2): boot, run, drain, kill, end; state × event → state and
 * actions, with the clock passed in. It knows of no process: loop.c does what it says. Each worker's own life is pool.h.
 */
#ifndef SUPERVISOR_PHASE_H
#define SUPERVISOR_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

#define PHASE_REAP_MS 500 /* what SIGKILL may take; a process that the kernel can't end is left to it */

enum phase_state {
    PHASE_PROBING, /* broker and bucket are asked; nothing is claimed */
    PHASE_RUNNING,
    PHASE_DRAINING, /* workers were told to stop */
    PHASE_KILLING,  /* and were killed */
    PHASE_ENDED,
    PHASE_STATE_COUNT
};

enum phase_event {
    PHASE_PASSED, /* the probe's child has brought what was asked for */
    PHASE_FAILED, /* it has not, or could not be started; with an exit code */
    PHASE_REFUSE, /* a worker ended with exit code 2; with that */
    PHASE_STOP,   /* the first stop signal */
    PHASE_INSIST, /* a second one; with an exit code */
    PHASE_LATE,   /* the deadline of phase_is_late() */
    PHASE_GONE,   /* no process is left, nor one to come; may be told again and again */
    PHASE_EVENT_COUNT
};

enum phase_action {
    PHASE_BEGIN = 1,     /* the pool is ready once queues are assigned */
    PHASE_ASSIGN = 2,    /* the queues, or those that are new, to workers */
    PHASE_TELL_FAIL = 4, /* the boot's end, for people */
    PHASE_TELL_MISS = 8, /* a listing that came to nothing: the queues stay as they are */
    PHASE_DRAIN = 16,    /* workers are told to stop, a probe is killed */
    PHASE_TELL_LATE = 32,
    PHASE_KILL = 64,      /* SIGKILL to all */
    PHASE_TELL_LEFT = 128 /* the queues that were not drained */
};

/* All zero but drain_ms: probing. */
struct phase {
    enum phase_state state;
    struct mono_ms deadline; /* while draining or killing */
    int64_t drain_ms;        /* pool_drain_ms() of the settings in force */
    int exit_code;           /* of the process, as it stands */
};

/* Takes the event, and its exit code (0 for those that have none); returns the actions (enum phase_action, or-ed). */
unsigned phase_take(struct phase *phase, enum phase_event event, int exit_code, struct mono_ms now);

/* True where there is a deadline that has passed: PHASE_LATE is to be taken. */
bool phase_is_late(const struct phase *phase, struct mono_ms now);
/* False where there is no deadline. */
bool phase_deadline(const struct phase *phase, struct mono_ms *deadline);

/* As `status` says it: starting, running, stopping. */
const char *phase_name(enum phase_state state);

#endif
