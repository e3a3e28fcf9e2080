/* A binary heap; a cancelled event stays in it until its turn, which costs less than looking for it. */
#include "tests/sim/scheduler.h"

#include <stdlib.h>

#include "common/memory.h"

struct sim_event {
    int64_t at;
    uint64_t order;
    void (*run)(void *argument); /* NULL: cancelled */
    void *argument;
};

void scheduler_free(struct scheduler *scheduler)
{
    for (size_t i = 0; i < scheduler->count; i++)
        free(scheduler->heap[i]);
    free(scheduler->heap);
    *scheduler = (struct scheduler){0};
}

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(struct scheduler *scheduler, size_t a, size_t b)
{
    struct sim_event *event = scheduler->heap[a];
    scheduler->heap[a] = scheduler->heap[b];
    scheduler->heap[b] = event;
}

struct sim_event *scheduler_at(struct scheduler *scheduler, int64_t at, void (*run)(void *argument), void *argument)
{
    struct sim_event *event = memory_new(1, sizeof *event);
    *event = (struct sim_event){at > scheduler->now ? at : scheduler->now, scheduler->order++, run, argument};
    scheduler->heap = memory_grow(scheduler->heap, &scheduler->capacity, scheduler->count + 1, sizeof event);
    size_t index = scheduler->count++;
    scheduler->heap[index] = event;
    while (index > 0 && is_before(event, scheduler->heap[(index - 1) / 2])) {
        swap(scheduler, index, (index - 1) / 2);
        index = (index - 1) / 2;
    }
    return event;
}

void scheduler_cancel(struct scheduler *scheduler, struct sim_event *event)
{
    (void)scheduler;
    if (event != NULL)
        event->run = NULL;
}

static struct sim_event *pop(struct scheduler *scheduler)
{
    struct sim_event *first = scheduler->heap[0];
    scheduler->heap[0] = scheduler->heap[--scheduler->count];
    for (size_t index = 0;;) {
        size_t least = index;
        for (size_t child = 2 * index + 1; child <= 2 * index + 2 && child < scheduler->count; child++)
            if (is_before(scheduler->heap[child], scheduler->heap[least]))
                least = child;
        if (least == index)
            break;
        swap(scheduler, index, least);
        index = least;
    }
    return first;
}

bool scheduler_step(struct scheduler *scheduler, int64_t until)
{
    while (scheduler->count > 0 && scheduler->heap[0]->at <= until) {
        struct sim_event *event = pop(scheduler);
        void (*run)(void *) = event->run;
        void *argument = event->argument;
        if (run != NULL)
            scheduler->now = event->at;
        free(event);
        if (run != NULL) {
            scheduler->dispatched++;
            run(argument);
            return true;
        }
    }
    scheduler->now = until;
    return false;
}
