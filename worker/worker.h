/*
 * A worker: one shard, all reading and writing for its queues, until it is told to stop. The one function that the
 * supervisor knows of this room.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/settings.h"

struct worker_queue {
    const char *name;
    uint32_t number;     /* its number in reports */
    bool from_log_start; /* see struct report_assign */
};

struct worker_start {
    const struct settings *settings;
    const struct worker_queue *queues;
    size_t queue_count;
    int report_descriptor;         /* its end of the socket pair; non-blocking */
    uint64_t budget_bytes;         /* its share, less what the process itself needs */
    char incarnation[17];          /* 16 hex digits: the identity of its leases */
    char previous_incarnation[17]; /* of the worker it replaces, whose lease rows it takes over; "" for none */
    int supervisor_pid;            /* for a CRASH_AT point: the whole pool ends (4.1) */
};

/* Runs until SIGTERM has drained every queue. Returns the exit code of the process: 0 drained, 2 configuration. The
 * caller has reset signals (SIGINT, SIGHUP, SIGUSR1 and SIGPIPE ignored, all others at their defaults) and left SIGTERM
 * blocked (4.2): the worker unblocks it when its own handler, which drains, stands; its threads keep every signal
 * blocked. The end of report_descriptor (the supervisor is gone) ends it at once. */
int worker_run(const struct worker_start *start);

/* The two probes of 3.2, blocking, for a short-lived child: 0, or exit code 3 with one line in error. With all_queues in
 * settings the queue list is fetched too: *names (malloc, each malloc) and *count. */
int worker_probe(const struct settings *settings, char ***names, size_t *count, struct error *error);

#endif
