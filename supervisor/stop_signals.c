/* See stop_signals.h. */
#include "supervisor/stop_signals.h"

enum stop_meaning stop_signals_take(struct stop_signals *signals, pid_t sender, pid_t parent)
{
    bool *same = sender == parent ? &signals->from_parent : &signals->from_others;
    bool any = signals->from_parent || signals->from_others;

    if (*same) {
        return STOP_SECOND;
    }
    *same = true;
    return any ? STOP_ECHO : STOP_FIRST;
}
