/*
 * The simulation's time: events in the order of their millisecond, and within one in the order they were put in. No
 * event happens while another does.
 */
#ifndef TESTS_SIM_SCHEDULER_H
#define TESTS_SIM_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_event;

struct scheduler {
    struct sim_event **heap;
    size_t count;
    size_t capacity;
    int64_t now; /* milliseconds since the run began */
    uint64_t order;
    uint64_t dispatched;
};

void scheduler_free(struct scheduler *scheduler);
/* Owned by the scheduler; gone once it has run or is cancelled. A time that is past means now. */
struct sim_event *scheduler_at(struct scheduler *scheduler, int64_t at, void (*run)(void *argument), void *argument);
void scheduler_cancel(struct scheduler *scheduler, struct sim_event *event);
/* Runs the next event if it is due by `until`; otherwise the time is `until` and the answer false. */
bool scheduler_step(struct scheduler *scheduler, int64_t until);

#endif
