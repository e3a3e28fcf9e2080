/*
 * Which stop signal is a second one, that kills at once (spec 4.2).
 *
 * Who started us may pass on a stop that reaches us anyway: a broker that embeds the sink, when its service manager
 * signals every process of the unit; a wrapper at a terminal, when ^C goes to the whole foreground group. That is one
 * stop told twice, so the parent's signals and those of all others are counted apart.
 *
 * And one sender may tell a stop twice within microseconds: timeout(1) signals its child, then the group that the child
 * is in. Nobody who has seen a drain begin and wants no more of it is as quick as that, so a signal is a second one from
 * STOP_AGAIN_MS on.
 */
#ifndef SUPERVISOR_STOP_SIGNALS_H
#define SUPERVISOR_STOP_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/clock.h"

#define STOP_AGAIN_MS 200 /* signal_table.c tells of it */

enum stop_meaning {
    STOP_FIRST, /* drain */
    STOP_ECHO,  /* the same stop, from the other side or at once again */
    STOP_SECOND /* kill */
};

struct stop_side {
    bool told;
    struct mono_ms first;
};

struct stop_signals { /* all zero to begin with */
    struct stop_side parent;
    struct stop_side others;
};

/* A stop signal came from this process (0: the kernel, as for a terminal); parent is getppid(). */
enum stop_meaning stop_signals_take(struct stop_signals *signals, pid_t sender, pid_t parent, struct mono_ms now);

#endif
