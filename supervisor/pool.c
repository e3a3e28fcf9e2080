/*
 * The table of pool.h. A cell says where an event leads and what is to be done; a cell that does nothing is written out
 * all the same, so that the table shows every case that was thought of. What the deadlines hang on is kept in arrive().
 */
#include "supervisor/pool.h"

#include <stddef.h>

#define FORGET 16u /* not for the caller: the backoff is forgotten */
#define AGAIN  32u /* not for the caller: the wait before the next kill of a worker that hangs starts anew */

#define POOL_SLAY_AGAIN_MS 10000
#define GRACE_MARGIN_MS    1000 /* between the last SIGKILL and the end of the grace */
#define GRACE_LEAST_MS     100

struct cell {
    enum pool_state next;
    unsigned actions;
};

static const struct cell table[POOL_STATE_COUNT][POOL_EVENT_COUNT] =
    {
        [POOL_STARTING] =
            {
                [POOL_START] = {POOL_STARTING, 0},
                [POOL_REPORT] = {POOL_RUNNING, 0},
                [POOL_SILENCE] = {POOL_SILENT, 0},
                [POOL_HANG] = {POOL_STARTING, 0},
                [POOL_HEALTHY] = {POOL_STARTING, 0},
                [POOL_RETRY] = {POOL_STARTING, 0},
                [POOL_EXIT] = {POOL_BACKOFF, 0},
                [POOL_REFUSE] = {POOL_DOWN, POOL_GIVE_UP},
                [POOL_ROLL] = {POOL_ROLLING, POOL_TERMINATE},
                [POOL_STOP] = {POOL_STOPPING, POOL_TERMINATE},
                [POOL_KILL] = {POOL_STOPPING, POOL_SLAY},
            },
        [POOL_RUNNING] =
            {
                [POOL_START] = {POOL_RUNNING, 0},
                [POOL_REPORT] = {POOL_RUNNING, 0},
                [POOL_SILENCE] = {POOL_SILENT, 0},
                [POOL_HANG] = {POOL_RUNNING, 0},
                [POOL_HEALTHY] = {POOL_RUNNING, FORGET},
                [POOL_RETRY] = {POOL_RUNNING, 0},
                [POOL_EXIT] = {POOL_BACKOFF, 0},
                [POOL_REFUSE] = {POOL_DOWN, POOL_GIVE_UP},
                [POOL_ROLL] = {POOL_ROLLING, POOL_TERMINATE},
                [POOL_STOP] = {POOL_STOPPING, POOL_TERMINATE},
                [POOL_KILL] = {POOL_STOPPING, POOL_SLAY},
            },
        [POOL_SILENT] =
            {
                [POOL_START] = {POOL_SILENT, 0},
                [POOL_REPORT] = {POOL_RUNNING, 0},
                [POOL_SILENCE] = {POOL_SILENT, 0},
                [POOL_HANG] = {POOL_SILENT, POOL_SLAY | AGAIN},
                [POOL_HEALTHY] = {POOL_SILENT, 0},
                [POOL_RETRY] = {POOL_SILENT, 0},
                [POOL_EXIT] = {POOL_BACKOFF, 0},
                [POOL_REFUSE] = {POOL_DOWN, POOL_GIVE_UP},
                [POOL_ROLL] = {POOL_ROLLING, POOL_TERMINATE},
                [POOL_STOP] = {POOL_STOPPING, POOL_TERMINATE},
                [POOL_KILL] = {POOL_STOPPING, POOL_SLAY},
            },
        [POOL_BACKOFF] =
            {
                [POOL_START] = {POOL_BACKOFF, 0},
                [POOL_REPORT] = {POOL_BACKOFF, 0},
                [POOL_SILENCE] = {POOL_BACKOFF, 0},
                [POOL_HANG] = {POOL_BACKOFF, 0},
                [POOL_HEALTHY] = {POOL_BACKOFF, 0},
                [POOL_RETRY] = {POOL_STARTING, POOL_FORK},
                [POOL_EXIT] = {POOL_BACKOFF, 0},
                [POOL_REFUSE] = {POOL_BACKOFF, 0},
                [POOL_ROLL] = {POOL_STARTING, POOL_FORK},
                [POOL_STOP] = {POOL_DOWN, 0},
                [POOL_KILL] = {POOL_DOWN, 0},
            },
        [POOL_ROLLING] =
            {
                [POOL_START] = {POOL_ROLLING, 0},
                [POOL_REPORT] = {POOL_ROLLING, 0},
                [POOL_SILENCE] = {POOL_ROLLING, 0},
                [POOL_HANG] = {POOL_ROLLING, POOL_SLAY | AGAIN},
                [POOL_HEALTHY] = {POOL_ROLLING, 0},
                [POOL_RETRY] = {POOL_ROLLING, 0},
                [POOL_EXIT] = {POOL_STARTING, POOL_FORK},
                [POOL_REFUSE] = {POOL_STARTING, POOL_FORK},
                [POOL_ROLL] = {POOL_ROLLING, 0},
                [POOL_STOP] = {POOL_STOPPING, POOL_TERMINATE},
                [POOL_KILL] = {POOL_STOPPING, POOL_SLAY},
            },
        [POOL_STOPPING] =
            {
                [POOL_START] = {POOL_STOPPING, 0},
                [POOL_REPORT] = {POOL_STOPPING, 0},
                [POOL_SILENCE] = {POOL_STOPPING, 0},
                [POOL_HANG] = {POOL_STOPPING, 0},
                [POOL_HEALTHY] = {POOL_STOPPING, 0},
                [POOL_RETRY] = {POOL_STOPPING, 0},
                [POOL_EXIT] = {POOL_DOWN, 0},
                [POOL_REFUSE] = {POOL_DOWN, 0},
                [POOL_ROLL] = {POOL_STOPPING, 0},
                [POOL_STOP] = {POOL_STOPPING, 0},
                [POOL_KILL] = {POOL_STOPPING, POOL_SLAY},
            },
        [POOL_DOWN] =
            {
                [POOL_START] = {POOL_STARTING, POOL_FORK},
                [POOL_REPORT] = {POOL_DOWN, 0},
                [POOL_SILENCE] = {POOL_DOWN, 0},
                [POOL_HANG] = {POOL_DOWN, 0},
                [POOL_HEALTHY] = {POOL_DOWN, 0},
                [POOL_RETRY] = {POOL_DOWN, 0},
                [POOL_EXIT] = {POOL_DOWN, 0},
                [POOL_REFUSE] = {POOL_DOWN, 0},
                [POOL_ROLL] = {POOL_STARTING, POOL_FORK},
                [POOL_STOP] = {POOL_DOWN, 0},
                [POOL_KILL] = {POOL_DOWN, 0},
            },
};

static struct mono_ms later(struct mono_ms time, int64_t ms)
{
    return (struct mono_ms){time.v + ms};
}

/* The worker has just come into its state, from another one. */
static void arrive(struct pool_worker *worker, struct mono_ms now)
{
    worker->since = now;
    if (worker->state == POOL_STARTING) {
        worker->last_report = now;
    } else if (worker->state == POOL_SILENT) {
        worker->hang_deadline = later(worker->last_report, worker->hang_ms);
    } else if (worker->state == POOL_ROLLING) {
        worker->hang_deadline = later(now, worker->grace_ms);
    } else if (worker->state == POOL_BACKOFF) {
        worker->backoff_ms *= 2;
        if (worker->backoff_ms < POOL_BACKOFF_MIN_MS) {
            worker->backoff_ms = POOL_BACKOFF_MIN_MS;
        } else if (worker->backoff_ms > POOL_BACKOFF_MAX_MS) {
            worker->backoff_ms = POOL_BACKOFF_MAX_MS;
        }
        worker->retry_deadline = later(now, worker->backoff_ms);
    }
}

void pool_worker_init(struct pool_worker *worker)
{
    *worker = (struct pool_worker){.state = POOL_DOWN};
}

void pool_worker_set(struct pool_worker *worker, int64_t lease_ttl_ms, int64_t shutdown_grace_ms)
{
    worker->hang_ms = 2 * lease_ttl_ms > POOL_HANG_MS ? 2 * lease_ttl_ms : POOL_HANG_MS;
    worker->grace_ms = pool_drain_ms(shutdown_grace_ms);
}

int64_t pool_drain_ms(int64_t shutdown_grace_ms)
{
    int64_t left = shutdown_grace_ms - GRACE_MARGIN_MS;

    return left < GRACE_LEAST_MS ? GRACE_LEAST_MS : left;
}

unsigned pool_take(struct pool_worker *worker, enum pool_event event, struct mono_ms now)
{
    enum pool_state before = worker->state;
    const struct cell *cell = &table[before][event];

    worker->state = cell->next;
    if (event == POOL_REPORT) {
        worker->last_report = now;
    }
    if (before == POOL_BACKOFF && worker->state == POOL_STARTING) {
        worker->restarts++; /* also one that a rolling restart brought forward: it follows a death */
    }
    if (worker->state != before) {
        arrive(worker, now);
    }
    if ((cell->actions & FORGET) != 0) {
        worker->backoff_ms = 0;
    }
    if ((cell->actions & AGAIN) != 0) {
        worker->hang_deadline = later(now, POOL_SLAY_AGAIN_MS);
    }
    return cell->actions & ~(FORGET | AGAIN);
}

/* The one deadline that comes first in this state, and the event that it raises. */
static bool next_deadline(const struct pool_worker *worker, struct mono_ms *deadline, enum pool_event *event)
{
    switch (worker->state) {
    case POOL_STARTING:
        *deadline = later(worker->last_report, POOL_SILENCE_MS);
        *event = POOL_SILENCE;
        return true;
    case POOL_RUNNING:
        *deadline = later(worker->last_report, POOL_SILENCE_MS);
        *event = POOL_SILENCE;
        if (worker->backoff_ms > 0 && worker->since.v + POOL_HEALTHY_MS <= deadline->v) {
            *deadline = later(worker->since, POOL_HEALTHY_MS);
            *event = POOL_HEALTHY;
        }
        return true;
    case POOL_SILENT:
    case POOL_ROLLING:
        *deadline = worker->hang_deadline;
        *event = POOL_HANG;
        return true;
    case POOL_BACKOFF:
        *deadline = worker->retry_deadline;
        *event = POOL_RETRY;
        return true;
    default: return false;
    }
}

bool pool_due(const struct pool_worker *worker, struct mono_ms now, enum pool_event *event)
{
    struct mono_ms deadline = {0};

    return next_deadline(worker, &deadline, event) && deadline.v <= now.v;
}

bool pool_deadline(const struct pool_worker *worker, struct mono_ms *deadline)
{
    enum pool_event event = POOL_START;

    return next_deadline(worker, deadline, &event);
}

bool pool_is_alive(const struct pool_worker *worker)
{
    return worker->state != POOL_BACKOFF && worker->state != POOL_DOWN;
}

const char *pool_state_name(enum pool_state state)
{
    static const char *const names[POOL_STATE_COUNT] = {
        [POOL_STARTING] = "starting", [POOL_RUNNING] = "running",  [POOL_SILENT] = "silent",
        [POOL_BACKOFF] = "backoff",   [POOL_ROLLING] = "stopping", [POOL_STOPPING] = "stopping",
        [POOL_DOWN] = "down",
    };

    return names[state];
}
