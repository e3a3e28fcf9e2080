/*
 * How much of a worker's output gets through (spec 4.1): at most LOG_BUDGET_LINES lines in any LOG_BUDGET_MS, counted
 * over a sliding window, since whoever reads the log counts with a window of their own. Once it is spent it opens again
 * only when half of it is free: what was left out is then told of in one line, not in every other one.
 */
#ifndef SUPERVISOR_LOG_BUDGET_H
#define SUPERVISOR_LOG_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"

#define LOG_BUDGET_LINES 200
#define LOG_BUDGET_MS    10000

/* All zero to begin with. */
struct log_budget {
    struct mono_ms times[LOG_BUDGET_LINES]; /* of the last lines, a ring */
    size_t next;                            /* the oldest of them, once all are used */
    size_t used;
    bool spent;
};

/* There is room for a line. */
bool log_budget_open(struct log_budget *budget, struct mono_ms now);
/* A line has been written, room or not. */
void log_budget_take(struct log_budget *budget, struct mono_ms now);
/* For one that is spent: when it opens again, if no more is taken. */
struct mono_ms log_budget_reopens(const struct log_budget *budget);

#endif
