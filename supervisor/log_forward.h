/*
 * The output of the pool's other processes on its way into the log (spec 4.1): each has a pipe for both its standard
 * output and its standard error, which is read to its end whatever the budgets say, so that nobody waits for it.
 */
#ifndef SUPERVISOR_LOG_FORWARD_H
#define SUPERVISOR_LOG_FORWARD_H

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/error.h"
#include "supervisor/log_budget.h"
#include "supervisor/log_splitter.h"

/* What all share. */
struct log_forward {
    bool pooled;            /* the log goes into a pipe: `pool` counts, the supervisor's own lines included */
    struct log_budget pool; /* closes the others' mouths only, never the supervisor's */
    unsigned long counted;  /* of log_written() */
};

/* A place in the pool: one process after another, one budget. */
struct log_source {
    struct log_forward *forward;
    char name[32];
    int descriptor; /* the end to read from; -1: none */
    struct log_splitter splitter;
    struct log_budget budget;
    unsigned long left_out; /* lines, not yet told of */
};

/* Looks at what standard output and standard error are. */
void log_forward_init(struct log_forward *forward);

/* name: as it appears in the log, `worker 3`. */
void log_source_init(struct log_source *source, struct log_forward *forward, const char *name);
/* For a process that is about to be forked: *output is its end, which doesn't block, to be closed here after the fork. 0,
 * or QS_ERROR_SYSTEM. */
int log_source_open(struct log_source *source, int *output, struct error *error);

/* Takes what is there, and closes at its end. A bounded amount: the loop has others to look after. */
void log_source_read(struct log_source *source, struct mono_ms now);
/* The process is dead: takes all that it left, and closes. */
void log_source_close(struct log_source *source, struct mono_ms now);

/* Tells how many lines were left out, where the budgets are open again; in any case where the pool ends. */
void log_source_tick(struct log_source *source, struct mono_ms now);
void log_source_finish(struct log_source *source);
/* When log_source_tick() will have something to say; false: not for now. */
bool log_source_deadline(const struct log_source *source, struct mono_ms *deadline);

#endif
