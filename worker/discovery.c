/* Discovery calls shared by the queues of a worker: discovery.h. */
#include "worker/discovery.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/retry.h"

#define PAGE_LIMIT    1000
#define CALLS_AT_ONCE 8

struct discovery_call {
    struct discovery *discovery;
    struct queen_call *call;
    struct page_request *requests[QUEEN_CHANGED_ENTRIES_MAX]; /* NULL: withdrawn */
    size_t count;
    struct discovery_call *next;
};

struct discovery {
    struct world *world;
    struct page_request *first;
    struct page_request *last;
    struct discovery_call *calls;
    size_t call_count;
    struct timer flush;
    struct timer backoff;
    struct retry retry;
    struct log_limit limit;
    bool has_safe_time;
    struct broker_us safe_time;
    struct mono_ms arrived;
    struct wall_ms wall;
    char error[256];
    struct wall_ms error_at;
};

struct discovery *discovery_create(struct world *world)
{
    struct discovery *discovery = memory_new(1, sizeof *discovery);
    discovery->world = world;
    return discovery;
}

void discovery_destroy(struct discovery *discovery)
{
    if (discovery == NULL)
        return;
    struct discovery_call *next;
    for (struct discovery_call *call = discovery->calls; call != NULL; call = next) {
        next = call->next;
        discovery->world->queen->operations->cancel(discovery->world->queen, call->call);
        free(call);
    }
    timer_cancel(discovery->world->timers, &discovery->flush);
    timer_cancel(discovery->world->timers, &discovery->backoff);
    free(discovery);
}

static void list_append(struct discovery *discovery, struct page_request *request)
{
    request->waiting = true;
    request->next = NULL;
    request->previous = discovery->last;
    if (discovery->last != NULL)
        discovery->last->next = request;
    else
        discovery->first = request;
    discovery->last = request;
}

static void list_remove(struct discovery *discovery, struct page_request *request)
{
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        discovery->first = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    else
        discovery->last = request->previous;
    request->next = request->previous = NULL;
    request->waiting = false;
}

static void send_waiting(struct discovery *discovery);

static void flush_now(void *argument)
{
    send_waiting(argument);
}

static void flush_soon(struct discovery *discovery)
{
    if (discovery->first != NULL && !timer_is_set(&discovery->backoff) && !timer_is_set(&discovery->flush))
        timer_set(discovery->world->timers, &discovery->flush, discovery->world->now(discovery->world), flush_now,
                  discovery);
}

static void call_end(struct discovery *discovery, struct discovery_call *call)
{
    struct discovery_call **link = &discovery->calls;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    discovery->call_count--;
    free(call);
}

static void call_refused(struct discovery *discovery, struct discovery_call *call, const struct error *error)
{
    struct broker_us never = {0};
    for (size_t i = 0; i < call->count; i++) {
        struct page_request *request = call->requests[i];
        if (request == NULL)
            continue;
        request->in_call = false;
        if (call->count > 1 && error->status == 400) {
            /* One bad entry makes the whole call a 400 (spec 1.3): each is tried by itself. */
            request->alone = true;
            list_append(discovery, request);
        } else {
            request->page(request->argument, error, never, false, NULL);
        }
    }
}

static void call_failed(struct discovery *discovery, struct discovery_call *call, const struct error *error)
{
    struct mono_ms now = discovery->world->now(discovery->world);
    snprintf(discovery->error, sizeof discovery->error, "%.*s", (int)sizeof discovery->error - 1, error->message);
    discovery->error_at = discovery->world->wall(discovery->world);
    log_limited(&discovery->limit, now, LOG_WARN, NULL, "discovery: %s", error->message);
    for (size_t i = 0; i < call->count; i++)
        if (call->requests[i] != NULL) {
            call->requests[i]->in_call = false;
            list_append(discovery, call->requests[i]);
        }
    int64_t delay = retry_delay(&discovery->retry, discovery->world, error, RETRY_CAP_MS);
    /* Of several calls that fail the one that was told to wait longest decides. */
    timer_extend(discovery->world->timers, &discovery->backoff, world_after(discovery->world, delay), flush_now,
                 discovery);
}

static void call_answered(struct discovery *discovery, struct discovery_call *call, const struct changed_answer *answer)
{
    discovery->retry.failures = 0;
    discovery->error[0] = '\0';
    if (!discovery->has_safe_time || answer->safe_time.v > discovery->safe_time.v) {
        discovery->has_safe_time = true;
        discovery->safe_time = answer->safe_time;
        discovery->arrived = discovery->world->now(discovery->world);
        discovery->wall = discovery->world->wall(discovery->world);
    }
    for (size_t i = 0; i < call->count; i++) {
        struct page_request *request = call->requests[i];
        if (request == NULL)
            continue;
        call->requests[i] = NULL;
        request->in_call = false;
        request->alone = false;
        request->page(request->argument, NULL, answer->safe_time, answer->degraded, &answer->entries[i]);
    }
}

static void call_done(void *argument, const struct error *error, const struct changed_answer *answer)
{
    struct discovery_call *call = argument;
    struct discovery *discovery = call->discovery;
    if (error->code == QS_OK)
        call_answered(discovery, call, answer);
    else if (error->retriable)
        call_failed(discovery, call, error);
    else
        call_refused(discovery, call, error);
    call_end(discovery, call);
    flush_soon(discovery);
}

static void call_take(struct discovery *discovery, struct discovery_call *call, struct changed_request_entry *entries)
{
    struct page_request *next;
    for (struct page_request *request = discovery->first; request != NULL && call->count < QUEEN_CHANGED_ENTRIES_MAX;
         request = next) {
        next = request->next;
        if (request->alone && call->count > 0)
            continue;
        list_remove(discovery, request);
        request->in_call = true;
        entries[call->count] = (struct changed_request_entry){request->queue, request->has_since, request->since,
                                                              request->after, PAGE_LIMIT};
        call->requests[call->count++] = request;
        if (request->sending != NULL)
            request->sending(request->argument);
        if (request->alone)
            break;
    }
}

static void send_waiting(struct discovery *discovery)
{
    struct changed_request_entry entries[QUEEN_CHANGED_ENTRIES_MAX];
    while (discovery->first != NULL && discovery->call_count < CALLS_AT_ONCE && !timer_is_set(&discovery->backoff)) {
        struct discovery_call *call = memory_new(1, sizeof *call);
        call->discovery = discovery;
        call_take(discovery, call, entries);
        call->next = discovery->calls;
        discovery->calls = call;
        discovery->call_count++;
        call->call = discovery->world->queen->operations->changed(discovery->world->queen, entries, call->count,
                                                                  call_done, call);
    }
}

void discovery_ask(struct discovery *discovery, struct page_request *request)
{
    list_append(discovery, request);
    flush_soon(discovery);
}

void discovery_withdraw(struct discovery *discovery, struct page_request *request)
{
    if (request->waiting)
        list_remove(discovery, request);
    for (struct discovery_call *call = discovery->calls; request->in_call && call != NULL; call = call->next)
        for (size_t i = 0; i < call->count; i++)
            if (call->requests[i] == request)
                call->requests[i] = NULL;
    request->in_call = false;
    request->alone = false;
}

bool discovery_safe_time(const struct discovery *discovery, struct broker_us *safe_time, struct mono_ms *arrived,
                         struct wall_ms *wall)
{
    *safe_time = discovery->safe_time;
    *arrived = discovery->arrived;
    *wall = discovery->wall;
    return discovery->has_safe_time;
}

const char *discovery_error(const struct discovery *discovery, struct wall_ms *at)
{
    if (discovery->error[0] != '\0')
        *at = discovery->error_at;
    return discovery->error;
}
