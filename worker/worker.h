/*
 * A worker: one shard, all reading and writing for its queues, until it is told to stop. The one function that the
 * supervisor knows of this room.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
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

/* Runs until SIGTERM has drained every queue. Returns the exit code of the process: 0 drained, 2 configuration, 1 where
 * the system has no room for it now. The caller has reset signals (SIGINT, SIGHUP, SIGUSR1 and SIGPIPE ignored, all
 * others at their defaults) and left SIGTERM blocked (4.2), which the worker reads from its loop once that runs; its
 * threads keep every signal blocked. The end of report_descriptor (the supervisor is gone) ends it at once.
 */
int worker_run(const struct worker_start *start);

/* The two probes of 3.2, blocking, for a short-lived child: 0, or exit code 3 with one line in error. With all_queues in
 * settings the queue list is fetched too: *names (malloc, each malloc) and *count. */
int worker_probe(const struct settings *settings, char ***names, size_t *count, struct error *error);

/* What the two probes found, for a person (spec 4.4, `check`). */
enum worker_generation { GENERATION_UNKNOWN, GENERATION_1, GENERATION_2 };
enum worker_bucket_answer {
    BUCKET_WRITTEN, /* a folder that was made, where it had to be, and written */
    BUCKET_THERE,   /* the prefix is an object: 200 */
    BUCKET_EMPTY,   /* 404: the bucket answers, there is no object of that name */
    BUCKET_LISTED   /* 403 to the HEAD, but its keys may be listed (a policy narrower than ours) */
};
struct worker_findings {
    struct error queen; /* code 0: it answered, and what follows holds */
    int64_t queen_ms;   /* until the first answer */
    struct broker_us safe_time;
    bool degraded;                     /* the broker can't see all transactions */
    enum worker_generation generation; /* told by a partition; unknown where no queue that was asked for has one */
    char **queues; /* with all_queues: those there are; else those of the settings that aren't there */
    size_t queue_count;
    struct error bucket; /* code 0: it answered, and what follows holds */
    int64_t bucket_ms;
    enum worker_bucket_answer bucket_answer;
};

/* Both probes, the second also where the first failed, and a question for each queue of the settings. Blocks. */
void worker_check(const struct settings *settings, struct worker_findings *findings);
void worker_findings_free(struct worker_findings *findings);

#endif
