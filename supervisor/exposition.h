/*
 * `/metrics` (spec 3.11, 4.3): Prometheus text 0.0.4, written from what was collected. A scrape asks no worker anything.
 */
#ifndef SUPERVISOR_EXPOSITION_H
#define SUPERVISOR_EXPOSITION_H

#include "supervisor/collect.h"
#include "supervisor/connectors.h"

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* What the supervisor knows of a worker by itself. */
struct exposition_worker {
    bool up;
    uint64_t restarts;
    double backoff_seconds; /* of the wait for its restart; 0 while there is none */
    uint64_t resident_bytes;
    double cpu_seconds; /* of all its lives */
};

struct exposition {
    const struct collect *collect;
    const struct connectors *connectors;     /* NULL: none */
    const struct exposition_worker *workers; /* by number */
    size_t worker_count;
    const char *version;
    unsigned formats; /* a bit for each enum setting_format whose bytes are shown also where there are none */
    struct mono_ms now;
    struct wall_ms wall;
};

/* The whole text (malloc); NULL if out of memory. */
char *exposition_write(const struct exposition *exposition);

#endif
