/*
 * A binary heap of pointers to timers: see timers.h.
 *
 * A timer knows its place, so cancelling needs no search. While timers_run() is firing, timers that callbacks set wait
 * in the same array behind the heap and join it when the round is over: a callback that sets itself anew to a time
 * already past cannot keep the loop busy, and what it set can still be cancelled by the one after.
 */
#include "common/timers.h"

#include <stdlib.h>

#include "common/memory.h"

void timers_init(struct timers *timers)
{
    *timers = (struct timers){0};
}

void timers_free(struct timers *timers)
{
    free(timers->heap);
    *timers = (struct timers){0};
}

static void heap_place(struct timers *timers, size_t at, struct timer *timer)
{
    timers->heap[at] = timer;
    timer->index = at + 1;
}

static void heap_up(struct timers *timers, size_t at)
{
    struct timer *timer = timers->heap[at];
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (timers->heap[parent]->deadline.v <= timer->deadline.v) {
            break;
        }
        heap_place(timers, at, timers->heap[parent]);
        at = parent;
    }
    heap_place(timers, at, timer);
}

static void heap_down(struct timers *timers, size_t at)
{
    struct timer *timer = timers->heap[at];
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= timers->count) {
            break;
        }
        if (child + 1 < timers->count && timers->heap[child + 1]->deadline.v < timers->heap[child]->deadline.v) {
            child++;
        }
        if (timer->deadline.v <= timers->heap[child]->deadline.v) {
            break;
        }
        heap_place(timers, at, timers->heap[child]);
        at = child;
    }
    heap_place(timers, at, timer);
}

static void make_room(struct timers *timers)
{
    size_t needed = timers->count + timers->waiting + 1;
    timers->heap = memory_grow(timers->heap, &timers->capacity, needed, sizeof(struct timer *));
}

void timer_extend(struct timers *timers, struct timer *timer, struct mono_ms deadline, void (*fire)(void *),
                  void *argument)
{
    if (!timer_is_set(timer) || timer->deadline.v < deadline.v) {
        timer_set(timers, timer, deadline, fire, argument);
    }
}

void timer_cancel(struct timers *timers, struct timer *timer)
{
    if (timer->index == 0) {
        return;
    }
    size_t at = timer->index - 1;
    size_t end = timers->count + timers->waiting;
    timer->index = 0;
    if (at >= timers->count) {
        timers->waiting--;
        if (at != end - 1) {
            heap_place(timers, at, timers->heap[end - 1]);
        }
        return;
    }
    size_t last = --timers->count;
    struct timer *moved = timers->heap[last];
    if (last != end - 1) {
        heap_place(timers, last, timers->heap[end - 1]); /* closes the gap before those that wait */
    }
    if (at != last) {
        heap_place(timers, at, moved);
        heap_up(timers, at);
        heap_down(timers, moved->index - 1);
    }
}

void timer_set(struct timers *timers, struct timer *timer, struct mono_ms deadline, void (*fire)(void *),
               void *argument)
{
    timer_cancel(timers, timer);
    make_room(timers);
    timer->deadline = deadline;
    timer->fire = fire;
    timer->argument = argument;
    heap_place(timers, timers->count + timers->waiting, timer);
    if (timers->firing) {
        timers->waiting++;
    } else {
        heap_up(timers, timers->count++);
    }
}

bool timer_is_set(const struct timer *timer)
{
    return timer->index != 0;
}

bool timers_next(const struct timers *timers, struct mono_ms *deadline)
{
    bool found = timers->count > 0;
    if (found) {
        *deadline = timers->heap[0]->deadline;
    }
    for (size_t i = timers->count; i < timers->count + timers->waiting; i++) {
        if (!found || timers->heap[i]->deadline.v < deadline->v) {
            *deadline = timers->heap[i]->deadline;
            found = true;
        }
    }
    return found;
}

void timers_run(struct timers *timers, struct mono_ms now)
{
    if (timers->firing) {
        return; /* from within a callback: the round under way goes on when it returns */
    }
    timers->firing = true;
    while (timers->count > 0 && timers->heap[0]->deadline.v <= now.v) {
        struct timer *timer = timers->heap[0];
        timer_cancel(timers, timer);
        timer->fire(timer->argument); /* may free the timer */
    }
    timers->firing = false;
    while (timers->waiting > 0) {
        timers->waiting--;
        heap_up(timers, timers->count++);
    }
}
