/* The table of phase.h. A cell that does nothing is written out all the same: it shows that the case was thought of. */
#include "supervisor/phase.h"

#define TAKE_CODE 256u /* not for the caller: the event's exit code is the process's from here on */

struct cell {
    enum phase_state next;
    unsigned actions;
};

static const struct cell table[PHASE_STATE_COUNT][PHASE_EVENT_COUNT] =
    {
        [PHASE_PROBING] =
            {
                [PHASE_PASSED] = {PHASE_RUNNING, PHASE_ASSIGN | PHASE_BEGIN},
                [PHASE_FAILED] = {PHASE_ENDED, PHASE_TELL_FAIL | TAKE_CODE},
                [PHASE_REFUSE] = {PHASE_DRAINING, PHASE_DRAIN | TAKE_CODE},
                [PHASE_STOP] = {PHASE_DRAINING, PHASE_DRAIN},
                [PHASE_INSIST] = {PHASE_KILLING, PHASE_KILL | TAKE_CODE},
                [PHASE_LATE] = {PHASE_PROBING, 0},
                [PHASE_GONE] = {PHASE_PROBING, 0},
            },
        [PHASE_RUNNING] =
            {
                [PHASE_PASSED] = {PHASE_RUNNING, PHASE_ASSIGN},
                [PHASE_FAILED] = {PHASE_RUNNING, PHASE_TELL_MISS},
                [PHASE_REFUSE] = {PHASE_DRAINING, PHASE_DRAIN | TAKE_CODE},
                [PHASE_STOP] = {PHASE_DRAINING, PHASE_DRAIN},
                [PHASE_INSIST] = {PHASE_KILLING, PHASE_KILL | TAKE_CODE},
                [PHASE_LATE] = {PHASE_RUNNING, 0},
                [PHASE_GONE] = {PHASE_RUNNING, 0},
            },
        [PHASE_DRAINING] =
            {
                [PHASE_PASSED] = {PHASE_DRAINING, 0},
                [PHASE_FAILED] = {PHASE_DRAINING, 0},
                [PHASE_REFUSE] = {PHASE_DRAINING, 0},
                [PHASE_STOP] = {PHASE_DRAINING, 0},
                [PHASE_INSIST] = {PHASE_KILLING, PHASE_KILL | TAKE_CODE},
                [PHASE_LATE] = {PHASE_KILLING, PHASE_TELL_LATE | PHASE_KILL},
                [PHASE_GONE] = {PHASE_ENDED, PHASE_TELL_LEFT},
            },
        [PHASE_KILLING] =
            {
                [PHASE_PASSED] = {PHASE_KILLING, 0},
                [PHASE_FAILED] = {PHASE_KILLING, 0},
                [PHASE_REFUSE] = {PHASE_KILLING, 0},
                [PHASE_STOP] = {PHASE_KILLING, 0},
                [PHASE_INSIST] = {PHASE_KILLING, PHASE_KILL | TAKE_CODE},
                [PHASE_LATE] = {PHASE_ENDED, PHASE_TELL_LEFT},
                [PHASE_GONE] = {PHASE_ENDED, PHASE_TELL_LEFT},
            },
        [PHASE_ENDED] =
            {
                [PHASE_PASSED] = {PHASE_ENDED, 0},
                [PHASE_FAILED] = {PHASE_ENDED, 0},
                [PHASE_REFUSE] = {PHASE_ENDED, 0},
                [PHASE_STOP] = {PHASE_ENDED, 0},
                [PHASE_INSIST] = {PHASE_ENDED, 0},
                [PHASE_LATE] = {PHASE_ENDED, 0},
                [PHASE_GONE] = {PHASE_ENDED, 0},
            },
};

unsigned phase_take(struct phase *phase, enum phase_event event, int exit_code, struct mono_ms now)
{
    enum phase_state before = phase->state;
    const struct cell *cell = &table[before][event];

    phase->state = cell->next;
    if (phase->state != before && phase->state == PHASE_DRAINING) {
        phase->deadline.v = now.v + phase->drain_ms;
    } else if (phase->state != before && phase->state == PHASE_KILLING) {
        phase->deadline.v = now.v + PHASE_REAP_MS;
    }
    if ((cell->actions & TAKE_CODE) != 0) {
        phase->exit_code = exit_code;
    }
    return cell->actions & ~TAKE_CODE;
}

bool phase_deadline(const struct phase *phase, struct mono_ms *deadline)
{
    *deadline = phase->deadline;
    return phase->state == PHASE_DRAINING || phase->state == PHASE_KILLING;
}

bool phase_is_late(const struct phase *phase, struct mono_ms now)
{
    struct mono_ms deadline;

    return phase_deadline(phase, &deadline) && deadline.v <= now.v;
}

const char *phase_name(enum phase_state state)
{
    static const char *const names[PHASE_STATE_COUNT] = {
        [PHASE_PROBING] = "starting", [PHASE_RUNNING] = "running", [PHASE_DRAINING] = "stopping",
        [PHASE_KILLING] = "stopping", [PHASE_ENDED] = "stopping",
    };

    return names[state];
}
