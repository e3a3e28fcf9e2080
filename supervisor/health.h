/*
 * `/healthz` (spec 3.11): green while every queue ships what it can read.
 */
#ifndef SUPERVISOR_HEALTH_H
#define SUPERVISOR_HEALTH_H

#include "supervisor/collect.h"
#include "supervisor/connectors.h"

/* max(3 × MAX_WINDOW_MS, 30 s, LEASE_TTL_MS) */
int64_t health_limit_ms(int64_t max_window_ms, int64_t lease_ttl_ms);

/* Since the latest of its assignment to this pool, its last commit, and all read with nothing buffered. */
int64_t health_age_ms(const struct collected_queue *queue, struct mono_ms now);
bool health_is_late(const struct collected_queue *queue, int64_t limit_ms, struct mono_ms now);

/* Returns the HTTP status, 200 or 503, and its body (malloc; NULL if out of memory). connectors may be NULL: none. */
int health_answer(const struct collect *collect, const struct connectors *connectors, int64_t limit_ms,
                  struct mono_ms now, char **body);

#endif
