/*
 * The pool's workers as processes: what pool.c decides is done here. Each has a place (its number) for the pool's whole
 * life, and one process after another in it, each with an incarnation of its own (spec 4.1).
 */
#ifndef SUPERVISOR_WORKERS_H
#define SUPERVISOR_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "common/report.h"
#include "common/settings.h"
#include "supervisor/collect.h"
#include "supervisor/connectors.h"
#include "supervisor/exposition.h"
#include "supervisor/log_forward.h"
#include "supervisor/pool.h"
#include "worker/worker.h"

/* worker_run() of worker/worker.h. */
typedef int worker_function(const struct worker_start *start);
/* worker_run_connector() of worker/connector/connector.h. */
typedef int connector_function(const struct worker_connector_start *start);

struct worker {
    struct pool_worker life;
    size_t queue_count;
    pid_t pid;      /* 0: no process */
    int descriptor; /* our end of its socket pair; -1: none */
    struct log_source log;
    struct report_buffer in;
    struct report_buffer out;
    char incarnation[17];
    char previous[17];      /* whose lease rows it takes over */
    bool reported;          /* this life has said something */
    bool drained;           /* exit 0: nothing of it is left undone */
    uint64_t share;         /* as last told */
    struct mono_ms started; /* its process */
    bool ended;             /* some life of it has: how the last one did, and when */
    int end_status;         /* of wait() */
    struct wall_ms end_wall;
    double cpu_past; /* seconds of the lives before */
    double cpu_seen; /* of this life, so that what is shown never falls */
};

struct workers {
    struct worker *list; /* by number; does not move */
    size_t count;
    size_t limit;
    const struct settings *settings;
    worker_function *run;
    struct collect *collect;
    const struct worker_connectors *loaded; /* NULL: no connectors */
    struct connectors *connectors;          /* whose workers come first in the list */
    connector_function *run_connector;
    struct log_forward *forward;
    bool refused; /* a worker ended with exit code 2: the pool is to end with it */
};

void workers_init(struct workers *workers, const struct settings *settings, size_t limit, worker_function *run,
                  struct collect *collect, struct log_forward *forward);
/* Before any queue comes: a worker for each connector, to be started by workers_start_new(). The limit counts them. */
void workers_add_connectors(struct workers *workers, const struct worker_connectors *loaded,
                            struct connectors *connectors, connector_function *run);
/* Closes and frees; every process must be gone. */
void workers_free(struct workers *workers);

/* Takes in a queue: to a worker that runs, by message; or to a new one, to be started by workers_start_new(). */
void workers_assign(struct workers *workers, const char *name, bool from_log_start, struct mono_ms now);
/* After a batch of the above: tells everyone its share, then starts who is new. */
void workers_start_new(struct workers *workers, struct mono_ms now);

/* The socket is readable, or writable. */
void workers_read(struct workers *workers, size_t number, struct mono_ms now);
void workers_write(struct workers *workers, size_t number);
/* Its output is readable. */
void workers_read_log(struct workers *workers, size_t number, struct mono_ms now);
/* A child was reaped; false where it isn't one of the workers. */
bool workers_reaped(struct workers *workers, pid_t pid, int wait_status, const struct rusage *usage,
                    struct mono_ms now);
/* Deadlines that have passed. */
void workers_tick(struct workers *workers, struct mono_ms now);
bool workers_deadline(const struct workers *workers, struct mono_ms *deadline);

/* The settings in force have changed: tells everyone its share of the memory. What else is new begins with a new life. */
void workers_resettle(struct workers *workers);
/* Its turn in a rolling restart. */
void workers_roll(struct workers *workers, size_t number, struct mono_ms now);
/* Each says in one log line a queue how it stands (spec 4.2, SIGUSR1), in no more lines than the log lets through. */
void workers_ask_state(struct workers *workers);

void workers_stop(struct workers *workers, struct mono_ms now);
void workers_kill(struct workers *workers, struct mono_ms now);
bool workers_all_down(const struct workers *workers);

/* One log line a queue that wasn't drained (spec 4.2). */
void workers_name_undone(const struct workers *workers);

/* The state that is furthest from running; some worker must be there. */
enum pool_state workers_worst(const struct workers *workers);

/* For /metrics: limit entries' room. */
void workers_describe(struct workers *workers, struct exposition_worker *out);

#endif
