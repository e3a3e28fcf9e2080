/*
 * What the files of the pool's workers share. Nobody else includes this.
 */
#ifndef SUPERVISOR_WORKERS_INTERNAL_H
#define SUPERVISOR_WORKERS_INTERNAL_H

#include "supervisor/workers.h"

static inline size_t workers_number_of(const struct workers *workers, const struct worker *worker)
{
    return (size_t)(worker - workers->list);
}

static inline size_t workers_connector_count(const struct workers *workers)
{
    return workers->connectors == NULL ? 0 : workers->connectors->worker_count;
}

static inline bool workers_is_connector(const struct workers *workers, const struct worker *worker)
{
    return workers_number_of(workers, worker) < workers_connector_count(workers);
}

/* workers_begin.c */

/* Its share of the memory, as the queues stand now. */
uint64_t workers_share_of(const struct workers *workers, const struct worker *worker);
/* Begins its next life: a process with an incarnation, a socket pair and a pipe of its own. 0, or a negative enum qs_error
 * and *error, and there is no process. */
int workers_begin_process(struct workers *workers, struct worker *worker, struct error *error);

#endif
