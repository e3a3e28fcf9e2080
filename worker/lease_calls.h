/*
 * Lease writes shared by the queues of a worker (spec 1.4, 3.6): claims and refreshes of many queues travel in one kv
 * call, none of them `required`, so one that loses costs the others nothing.
 */
#ifndef WORKER_LEASE_CALLS_H
#define WORKER_LEASE_CALLS_H

#include "worker/world.h"

struct lease_calls;

struct lease_request {
    struct kv_operation operation; /* on the queue's lease key; what it points to stays until answered or withdrawn */
    /* One attempt: error->code is 0 and result there, or the call had no whole answer or was refused. */
    void (*done)(void *argument, const struct error *error, const struct kv_result *result);
    void *argument;
    struct lease_request *next; /* lease_calls' own */
    bool waiting;
    bool in_call;
};

/* timeout_ms: of each call (spec 3.6: min(3 s, a third of the TTL)). gather_ms: how long a request waits for company. */
struct lease_calls *lease_calls_create(struct world *world, int64_t timeout_ms, int64_t gather_ms);
void lease_calls_destroy(struct lease_calls *calls);
void lease_calls_send(struct lease_calls *calls, struct lease_request *request);
/* All that would be company is there: what waits is sent now. */
void lease_calls_flush(struct lease_calls *calls);
void lease_calls_withdraw(struct lease_calls *calls, struct lease_request *request);

#endif
