/* Lease writes shared by the queues of a worker: lease_calls.h. */
#include "worker/lease_calls.h"

#include <stdlib.h>

#include "common/memory.h"
#include "worker/retry.h"

struct lease_call {
    struct lease_calls *calls;
    struct queen_call *call;
    struct lease_request *requests[QUEEN_KV_OPERATIONS_MAX]; /* NULL: withdrawn */
    size_t count;
    struct lease_call *next;
};

struct lease_calls {
    struct world *world;
    int64_t timeout_ms;
    int64_t gather_ms;
    struct lease_request *waiting;
    struct lease_call *under_way;
    struct timer timer;
};

struct lease_calls *lease_calls_create(struct world *world, int64_t timeout_ms, int64_t gather_ms)
{
    struct lease_calls *calls = memory_new(1, sizeof *calls);
    calls->world = world;
    calls->timeout_ms = timeout_ms;
    calls->gather_ms = gather_ms;
    return calls;
}

void lease_calls_destroy(struct lease_calls *calls)
{
    if (calls == NULL)
        return;
    struct lease_call *next;
    for (struct lease_call *call = calls->under_way; call != NULL; call = next) {
        next = call->next;
        calls->world->queen->operations->cancel(calls->world->queen, call->call);
        free(call);
    }
    timer_cancel(calls->world->timers, &calls->timer);
    free(calls);
}

static void call_done(void *argument, const struct error *error, const struct kv_answer *answer)
{
    struct lease_call *call = argument;
    struct lease_calls *calls = call->calls;
    struct error odd;
    if (error->code == QS_OK && (answer->precondition_failed || answer->count != call->count)) {
        error_set(&odd, QS_ERROR_BODY, "kv: a batch with nothing required was answered as rolled back");
        error = &odd;
    }
    for (size_t i = 0; i < call->count; i++) {
        struct lease_request *request = call->requests[i];
        if (request == NULL)
            continue;
        call->requests[i] = NULL;
        request->in_call = false;
        request->done(request->argument, error, error->code == QS_OK ? &answer->results[i] : NULL);
    }
    struct lease_call **link = &calls->under_way;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    free(call);
}

static void send_waiting(void *argument)
{
    struct lease_calls *calls = argument;
    struct kv_operation operations[QUEEN_KV_OPERATIONS_MAX];
    while (calls->waiting != NULL) {
        struct lease_call *call = memory_new(1, sizeof *call);
        call->calls = calls;
        while (calls->waiting != NULL && call->count < QUEEN_KV_OPERATIONS_MAX) {
            struct lease_request *request = calls->waiting;
            calls->waiting = request->next;
            request->waiting = false;
            request->in_call = true;
            operations[call->count] = request->operation;
            call->requests[call->count++] = request;
        }
        call->next = calls->under_way;
        calls->under_way = call;
        call->call = calls->world->queen->operations->kv(calls->world->queen, operations, call->count,
                                                         calls->timeout_ms, call_done, call);
    }
}

void lease_calls_send(struct lease_calls *calls, struct lease_request *request)
{
    request->waiting = true;
    request->next = calls->waiting;
    calls->waiting = request;
    if (!timer_is_set(&calls->timer))
        timer_set(calls->world->timers, &calls->timer, world_after(calls->world, calls->gather_ms), send_waiting,
                  calls);
}

void lease_calls_flush(struct lease_calls *calls)
{
    timer_cancel(calls->world->timers, &calls->timer);
    send_waiting(calls);
}

void lease_calls_withdraw(struct lease_calls *calls, struct lease_request *request)
{
    for (struct lease_request **link = &calls->waiting; request->waiting && *link != NULL; link = &(*link)->next)
        if (*link == request) {
            *link = request->next;
            request->waiting = false;
            break;
        }
    for (struct lease_call *call = calls->under_way; request->in_call && call != NULL; call = call->next)
        for (size_t i = 0; i < call->count; i++)
            if (call->requests[i] == request)
                call->requests[i] = NULL;
    request->in_call = false;
}
