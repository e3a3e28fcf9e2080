/*
 * Which stop signal is a second one, that kills at once (spec 4.2).
 *
 * Who started us may pass on a stop that reaches us anyway: a broker that embeds the sink, when its service manager
 * signals every process of the unit; a wrapper at a terminal, when ^C goes to the whole foreground group. That is one
 * stop told twice, so the parent's signals and those of all others are counted apart.
 */
#ifndef SUPERVISOR_STOP_SIGNALS_H
#define SUPERVISOR_STOP_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

enum stop_meaning {
    STOP_FIRST, /* drain */
    STOP_ECHO,  /* the same stop, from the other side */
    STOP_SECOND /* kill */
};

struct stop_signals { /* all false to begin with */
    bool from_parent;
    bool from_others;
};

/* A stop signal came from this process (0: the kernel, as for a terminal); parent is getppid(). */
enum stop_meaning stop_signals_take(struct stop_signals *signals, pid_t sender, pid_t parent);

#endif
