/*
 * Timers in a heap, with the clock passed in: the reactor runs them on CLOCK_MONOTONIC, the simulator on its own.
 * Setting and cancelling cost O(log n); nothing is allocated but the heap's array.
 */
#ifndef COMMON_TIMERS_H
#define COMMON_TIMERS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"

struct timer {
    struct mono_ms deadline;
    void (*fire)(void *argument);
    void *argument;
    size_t index; /* 1-based place in the heap, 0: not set. Zero a timer before its first use. */
};

struct timers {
    struct timer **heap;
    size_t count;
    size_t waiting; /* set by callbacks of the round under way: behind the heap in the same array */
    size_t capacity;
    bool firing;
};

void timers_init(struct timers *timers);
void timers_free(struct timers *timers);
/* Sets or sets anew. Out of memory ends the process: a worker without timers is a worker to be restarted. */
void timer_set(struct timers *timers, struct timer *timer, struct mono_ms deadline, void (*fire)(void *),
               void *argument);
/* As timer_set(), but one that is set to a later deadline keeps it. */
void timer_extend(struct timers *timers, struct timer *timer, struct mono_ms deadline, void (*fire)(void *),
                  void *argument);
void timer_cancel(struct timers *timers, struct timer *timer);
bool timer_is_set(const struct timer *timer);
/* The next deadline; false where none is set. */
bool timers_next(const struct timers *timers, struct mono_ms *deadline);
/* Fires, in order of deadline (ties in order of setting are not promised), every timer whose deadline is at or before
 * now. A timer set by a callback to a deadline at or before now waits for the next call. */
void timers_run(struct timers *timers, struct mono_ms now);

#endif
