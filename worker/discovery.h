/*
 * Discovery calls shared by the queues of a worker (spec 1.3, DESIGN "calls are shared"): each asks for a page, up to 64
 * travel in one call. Failures that pass are retried here, with one backoff for all, since it is one broker.
 */
#ifndef WORKER_DISCOVERY_H
#define WORKER_DISCOVERY_H

#include "worker/world.h"

struct discovery;

struct page_request {
    struct name queue;
    bool has_since;
    struct broker_us since;
    char *after; /* owned by the asker; NULL at the first page */
    /* The call that carries it is being sent. Again for each attempt. */
    void (*sending)(void *argument);
    /* The page; or, entry NULL, a refusal (error): it is not asked again by itself. */
    void (*page)(void *argument, const struct error *error, struct broker_us safe_time, bool degraded,
                 const struct changed_entry *entry);
    void *argument;
    /* discovery's own: zero before the first use */
    struct page_request *next;
    struct page_request *previous;
    bool waiting; /* in the list of those to be sent */
    bool in_call;
    bool alone; /* was refused in company: goes in a call of its own, to find the culprit */
};

struct discovery *discovery_create(struct world *world);
void discovery_destroy(struct discovery *discovery);
/* Asks for a page with the next call, which leaves at the end of this turn unless a backoff runs. The request must stay
 * until it is answered or withdrawn. */
void discovery_ask(struct discovery *discovery, struct page_request *request);
void discovery_withdraw(struct discovery *discovery, struct page_request *request);
/* The newest safeTime that came with any answer; false before the first. */
bool discovery_safe_time(const struct discovery *discovery, struct broker_us *safe_time, struct mono_ms *arrived,
                         struct wall_ms *wall);
/* The last failure standing and its time, "" for none: then *at is left as it is. */
const char *discovery_error(const struct discovery *discovery, struct wall_ms *at);

#endif
