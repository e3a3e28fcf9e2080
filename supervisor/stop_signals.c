/* See stop_signals.h. */
#include "supervisor/stop_signals.h"

enum stop_meaning stop_signals_take(struct stop_signals *signals, pid_t sender, pid_t parent, struct mono_ms now)
{
    struct stop_side *side = sender == parent ? &signals->parent : &signals->others;
    bool any = signals->parent.told || signals->others.told;

    if (side->told) {
        return now.v - side->first.v < STOP_AGAIN_MS ? STOP_ECHO : STOP_SECOND;
    }
    *side = (struct stop_side){.told = true, .first = now};
    return any ? STOP_ECHO : STOP_FIRST;
}
