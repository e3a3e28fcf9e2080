/*
 * The driver of one queue: turns what its window engine wants into calls, and each answer into exactly one event
 * (spec 3.3 to 3.10). It owns the lease, the commit sequence and the reads; everything outside it is in struct world.
 */
#ifndef WORKER_QUEUE_H
#define WORKER_QUEUE_H

#include "common/report.h"
#include "worker/discovery.h"
#include "worker/lease_calls.h"
#include "worker/world.h"

struct queue;

/* What the queues of a worker share. */
struct queue_host {
    struct world *world;
    const struct settings *settings;
    struct discovery *discovery;
    struct lease_calls *leases;
    const char *incarnation;          /* 16 hex digits, this worker's */
    const char *previous_incarnation; /* of the worker it replaces, "" for none */
    uint64_t multipart_threshold;     /* in force (spec 3.9) */
    uint64_t precondition_lost;
    /* Something worth reporting at once. */
    void (*changed)(struct queue_host *host, struct queue *queue);
    /* A window was committed: for the histograms. */
    void (*committed)(struct queue_host *host, uint64_t records, uint64_t bytes);
    /* The clean stop of this queue is done. */
    void (*drained)(struct queue_host *host, struct queue *queue);
    /* No room for a read: lets another queue give memory back; true if some was, or will be soon (spec 3.7). */
    bool (*relieve)(struct queue_host *host, struct queue *queue);
    void *argument;
};

struct queue *queue_create(struct queue_host *host, const char *name, uint32_t number, bool from_log_start);
/* Ends everything at once, nothing given back. */
void queue_destroy(struct queue *queue);
void queue_start(struct queue *queue);
/* The clean stop of spec 3.10; ends with host->drained(). */
void queue_drain(struct queue *queue);

void queue_report(struct queue *queue, struct report_queue *report);
const char *queue_name(const struct queue *queue);
uint64_t queue_buffered(const struct queue *queue);
/* Memory is short, and this queue holds the most: closes its window early if it can, else drops what has the highest ts.
 * True if that gave memory back or will. */
bool queue_give_memory(struct queue *queue);
/* Room may have come back. */
void queue_poke(struct queue *queue);

#endif
