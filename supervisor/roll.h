/*
 * A rolling restart (spec 4.2) as a state machine: the settings are read afresh, then one worker after another has its
 * turn. A turn is over when the worker reports in its new life; the next one begins only then, so there are never two
 * that don't run. A worker that dies before it has reported ends the round: the others keep running as they are, and
 * the one that died is started again after its backoff as after any death. SIGHUP meanwhile means one more round
 * afterwards, with the settings as they are then. A stop ends it for good.
 *
 * It knows of no process and no file: loop.c does what it says and tells it what came of it.
 */
#ifndef SUPERVISOR_ROLL_H
#define SUPERVISOR_ROLL_H

#include <stddef.h>

#include "supervisor/pool.h"

enum roll_state {
    ROLL_IDLE,
    ROLL_READING,  /* the settings */
    ROLL_TURNING,  /* the worker `place` has its turn */
    ROLL_REPEATED, /* likewise, and another round comes after this one */
    ROLL_OVER,     /* the pool stops */
    ROLL_STATE_COUNT
};

enum roll_event {
    ROLL_ASKED,   /* SIGHUP */
    ROLL_READ,    /* the settings hold and are in force */
    ROLL_REFUSED, /* they don't: nothing has changed */
    ROLL_UP,      /* the worker of the turn has reported in its new life */
    ROLL_FAILED,  /* it died before that */
    ROLL_STOP,    /* the pool stops */
    ROLL_EVENT_COUNT
};

enum roll_action {
    ROLL_READ_SETTINGS = 1, /* then ROLL_READ or ROLL_REFUSED */
    ROLL_BEGIN_TURN = 2,    /* of the worker `place` */
    ROLL_TELL_LATER = 4,    /* another round will follow */
    ROLL_TELL_DONE = 8,     /* every worker has had its turn */
    ROLL_TELL_BROKEN = 16   /* the round ended with the worker `place` */
};

/* All zero: idle. */
struct roll {
    enum roll_state state;
    size_t place;
    size_t count; /* of workers, as the round began; set before ROLL_READ */
};

/* Returns the actions (enum roll_action, or-ed), to be done from the last to the first of the list above. */
unsigned roll_take(struct roll *roll, enum roll_event event);

/* What the state of the worker `place`, whose turn has begun with POOL_ROLL, means: ROLL_UP, ROLL_FAILED, or
 * ROLL_EVENT_COUNT for nothing yet. One that is down for good, as a connector that refuses what it is told to do, keeps
 * nobody waiting. */
enum roll_event roll_look(enum pool_state worker);

#endif
