/*
 * The table of roll.h. Cells where an event can't come do nothing, and are written out all the same.
 */
#include "supervisor/roll.h"

struct cell {
    enum roll_state next;
    unsigned actions;
};

/* For a worker that isn't the last one; after_last() has the others. */
static const struct cell table[ROLL_STATE_COUNT][ROLL_EVENT_COUNT] =
    {
        [ROLL_IDLE] =
            {
                [ROLL_ASKED] = {ROLL_READING, ROLL_READ_SETTINGS},
                [ROLL_READ] = {ROLL_IDLE, 0},
                [ROLL_REFUSED] = {ROLL_IDLE, 0},
                [ROLL_UP] = {ROLL_IDLE, 0},
                [ROLL_FAILED] = {ROLL_IDLE, 0},
                [ROLL_STOP] = {ROLL_OVER, 0},
            },
        [ROLL_READING] =
            {
                [ROLL_ASKED] = {ROLL_READING, 0},
                [ROLL_READ] = {ROLL_TURNING, ROLL_BEGIN_TURN},
                [ROLL_REFUSED] = {ROLL_IDLE, 0},
                [ROLL_UP] = {ROLL_READING, 0},
                [ROLL_FAILED] = {ROLL_READING, 0},
                [ROLL_STOP] = {ROLL_OVER, 0},
            },
        [ROLL_TURNING] =
            {
                [ROLL_ASKED] = {ROLL_REPEATED, ROLL_TELL_LATER},
                [ROLL_READ] = {ROLL_TURNING, 0},
                [ROLL_REFUSED] = {ROLL_TURNING, 0},
                [ROLL_UP] = {ROLL_TURNING, ROLL_BEGIN_TURN},
                [ROLL_FAILED] = {ROLL_IDLE, ROLL_TELL_BROKEN},
                [ROLL_STOP] = {ROLL_OVER, 0},
            },
        [ROLL_REPEATED] =
            {
                [ROLL_ASKED] = {ROLL_REPEATED, 0},
                [ROLL_READ] = {ROLL_REPEATED, 0},
                [ROLL_REFUSED] = {ROLL_REPEATED, 0},
                [ROLL_UP] = {ROLL_REPEATED, ROLL_BEGIN_TURN},
                [ROLL_FAILED] = {ROLL_READING, ROLL_TELL_BROKEN | ROLL_READ_SETTINGS},
                [ROLL_STOP] = {ROLL_OVER, 0},
            },
        [ROLL_OVER] =
            {
                [ROLL_ASKED] = {ROLL_OVER, 0},
                [ROLL_READ] = {ROLL_OVER, 0},
                [ROLL_REFUSED] = {ROLL_OVER, 0},
                [ROLL_UP] = {ROLL_OVER, 0},
                [ROLL_FAILED] = {ROLL_OVER, 0},
                [ROLL_STOP] = {ROLL_OVER, 0},
            },
};

/* Where a turn would begin, and there is no worker left to have one. */
static struct cell after_last(enum roll_state state)
{
    if (state == ROLL_REPEATED) {
        return (struct cell){ROLL_READING, ROLL_TELL_DONE | ROLL_READ_SETTINGS};
    }
    return (struct cell){ROLL_IDLE, ROLL_TELL_DONE};
}

unsigned roll_take(struct roll *roll, enum roll_event event)
{
    struct cell cell = table[roll->state][event];

    if ((cell.actions & ROLL_BEGIN_TURN) != 0) {
        roll->place = roll->state == ROLL_READING ? 0 : roll->place + 1;
        if (roll->place >= roll->count) {
            cell = after_last(roll->state);
        }
    }
    roll->state = cell.next;
    return cell.actions;
}

enum roll_event roll_look(enum pool_state worker)
{
    switch (worker) {
    case POOL_RUNNING:
    case POOL_DOWN: return ROLL_UP;
    case POOL_BACKOFF: return ROLL_FAILED;
    default: return ROLL_EVENT_COUNT;
    }
}
