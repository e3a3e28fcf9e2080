/*
 * A call's way to the other side and back, through the weather.
 *
 * It arrives after one delay and its answer after another; a caller that runs out of patience hears of a timeout while
 * the request may still arrive. What is applied is applied at the moment of arrival.
 */
#include <stdlib.h>

#include "tests/sim/instance.h"

#define PATIENCE_MS 30000

static void call_unlink(struct sim_call *call)
{
    if (call->instance == NULL)
        return;
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        call->instance->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    call->instance = NULL;
}

static void call_let_go(struct sim_call *call)
{
    if (--call->pending > 0)
        return;
    call_unlink(call);
    call->release(call);
}

static void arrive(void *argument)
{
    struct sim_call *call = argument;
    bool applied = call->fate != FATE_LOST_REQUEST && call->fate != FATE_STATUS && call->fate != FATE_REFUSED;
    if (applied && (!call->cancelled || call->arrives_if_cancelled)) {
        SIM_TRACE(call->simulation, "%s arrives", call->what);
        call->arrive(call);
        if (call->fate == FATE_DOUBLED)
            call->arrive(call);
    }
    call_let_go(call);
}

static void fill_error(const struct sim_call *call, struct error *error)
{
    *error = (struct error){.retry_after_ms = -1};
    switch (call->fate) {
    case FATE_GOOD:
    case FATE_DOUBLED: break;
    case FATE_LOST_REQUEST:
    case FATE_LOST_ANSWER: error_set(error, QS_ERROR_TRANSPORT, "%s: no answer", call->what); break;
    case FATE_REFUSED:
        error_set(error, QS_ERROR_REFUSED, "%s: refused", call->what);
        error->status = 400;
        break;
    case FATE_STATUS:
    case FATE_ODD_STATUS:
        error_set(error, QS_ERROR_STATUS, "%s: refused for now", call->what);
        error->status = 503;
        error->retry_after_ms = call->retry_after_ms;
        break;
    case FATE_BAD_BODY: error_set(error, QS_ERROR_BODY, "%s: unreadable", call->what); break;
    }
}

static void deliver(void *argument)
{
    struct sim_call *call = argument;
    struct instance *instance = call->instance;
    struct error error;
    if (call->cancelled || instance == NULL) {
        call_let_go(call);
        return;
    }
    if (instance->paused_until > instance->simulation->scheduler.now) {
        scheduler_at(&instance->simulation->scheduler, instance->paused_until, deliver, call);
        return;
    }
    fill_error(call, &error);
    SIM_TRACE(call->simulation, "%s answers instance %zu: %s", call->what, instance->number,
              error.code == QS_OK ? "well" : error.message);
    if (instance_enter(instance)) {
        call->cancelled = true; /* it can't be cancelled any more */
        call->deliver(call, &error);
        instance_leave(instance);
    }
    call_let_go(call);
}

static enum fate choose_fate(struct simulation *simulation)
{
    const struct weather *weather = &simulation->scenario.weather;
    if (!simulation->faults)
        return FATE_GOOD;
    struct {
        uint64_t share;
        enum fate fate;
    } table[] = {{weather->lost_request, FATE_LOST_REQUEST},
                 {weather->lost_answer, FATE_LOST_ANSWER},
                 {weather->status, FATE_STATUS},
                 {weather->odd_status, FATE_ODD_STATUS},
                 {weather->bad_body, FATE_BAD_BODY},
                 {weather->doubled, FATE_DOUBLED},
                 {weather->refused, FATE_REFUSED}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (chance_of(&simulation->chance, table[i].share))
            return table[i].fate;
    return FATE_GOOD;
}

static int64_t choose_delay(struct simulation *simulation)
{
    const struct weather *weather = &simulation->scenario.weather;
    bool slow = simulation->faults && chance_of(&simulation->chance, weather->slow);
    return chance_between(&simulation->chance, 0, slow ? weather->slow_ms : weather->usual_ms);
}

void call_begin(struct instance *instance, struct sim_call *call, int64_t timeout_ms)
{
    struct simulation *simulation = instance->simulation;
    struct scheduler *scheduler = &simulation->scheduler;
    int64_t patience = timeout_ms > 0 ? timeout_ms : PATIENCE_MS;
    int64_t there = choose_delay(simulation);
    int64_t back = choose_delay(simulation);
    call->instance = instance;
    call->simulation = simulation;
    call->fate = choose_fate(simulation);
    call->retry_after_ms = chance_of(&simulation->chance, 500) ? chance_between(&simulation->chance, 0, 3) * 1000 : -1;
    call->arrives_if_cancelled = chance_of(&simulation->chance, 500);
    call->next = instance->calls;
    if (instance->calls != NULL)
        instance->calls->previous = call;
    instance->calls = call;
    call->pending = 2;
    if (instance->doomed) {
        /* The power is off: it never leaves, and nobody waits for it. */
        call->fate = FATE_LOST_REQUEST;
        call->cancelled = true;
    }
    bool waits = call->fate == FATE_LOST_REQUEST || call->fate == FATE_LOST_ANSWER;
    if (waits && chance_of(&simulation->chance, 500))
        back = patience; /* a silence; otherwise a reset */
    if (there + back > patience) {
        if (call->fate != FATE_LOST_REQUEST)
            call->fate = FATE_LOST_ANSWER;
        back = patience - there;
    }
    scheduler_at(scheduler, scheduler->now + there, arrive, call);
    scheduler_at(scheduler, scheduler->now + (there + back > 0 ? there + back : 1), deliver, call);
}

void call_cancel(struct sim_call *call)
{
    call->cancelled = true;
}
