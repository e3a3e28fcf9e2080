/*
 * One queue's driver in a scripted world: queue "orders" of sink "default", this worker's incarnation "mine" (that of the
 * one it replaces "before"), leases of 30 s. Unless a test says otherwise, windows of 10 s follow T0 with no alignment,
 * and START is earliest.
 */
#ifndef TESTS_UNIT_QUEUE_RIG_H
#define TESTS_UNIT_QUEUE_RIG_H

#include "common/report.h"
#include "scripted_world.h"
#include "worker/queue.h"

#define T0     INT64_C(1788516000000000) /* 2026-09-04T10:00:00Z */
#define SECOND INT64_C(1000000)

#define LEASE     "s3:default:orders:lease"
#define INTENT    "s3:default:orders:intent"
#define COMMITTED "s3:default:orders:committed"

#define OBJECT_1    "queen/queue=orders/dt=2026-09-04/hour=10/w-0000000001-1788516000000000-1788516010000000.jsonl"
#define MANIFEST_1  "queen/_queen/orders/windows/0000000001.json"
#define CHECKPOINTS "queen/_queen/orders/checkpoint/"

struct queue_rig {
    struct scripted_world w; /* first */
    struct settings settings;
    struct queue_host host;
    struct queue *queue;
    int drained;
    int relieved;       /* how often memory was asked for */
    bool gives_memory;  /* asked for memory, the queue gives its own */
    bool says_yes;      /* asked for memory, another gives some soon */
    uint64_t histogram; /* records told for it */
};

extern struct queue_rig rig;

void rig_begin(void);
/* Creates the queue and starts it. */
void rig_start(void);
/* Started, with its lease, its pointers read from what is there, and at work. */
void rig_run(void);
/* The queue ends at once; nothing may be left. */
void rig_end(void);
/* Ends the queue, and another takes over at once, as after a crash. */
void rig_restart(void);

struct report_queue rig_report(void);
enum report_queue_state rig_state(void);

/* Documents as they may lie there; `end` as microseconds. */
int64_t rig_lease_row(const char *instance, const char *incarnation);
int64_t rig_committed(int64_t k, int64_t end);
int64_t rig_intent(int64_t k, int64_t start, int64_t end);
/* The manifest of a window with one object, as this version writes it. */
void rig_manifest(const char *sink, int64_t k, int64_t start, int64_t end, const char *writer);
void rig_checkpoint(int64_t k, int64_t end, const char *partition, int64_t position);
/* k and tEnd of the pointer as it lies there; -1 where there is none. */
int64_t rig_pointer_k(void);
int64_t rig_pointer_end(void);

#endif
