/*
 * What the supervisor knows of connectors (spec 5.4): one entry for each definition that was found, those that are
 * broken too. Totals outlive a worker as those of queues do (collect.h): no counter ever goes down.
 */
#ifndef SUPERVISOR_CONNECTORS_H
#define SUPERVISOR_CONNECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/report.h"
#include "worker/connector/connector.h"

struct connector_counts {
    uint64_t consumed;
    uint64_t processed;
    uint64_t filtered;
    uint64_t errors;
};

struct collected_connector {
    const char *key; /* NULL: a file that does not even say that */
    bool broken;     /* its definition is: it has no worker */
    bool running;
    struct mono_ms failing; /* since when its workers end without one that has done well meanwhile, or it has none; 0:
                               neither */
    struct mono_ms blocked; /* since when it can't talk to the Kafka broker, over its workers' lives; 0: it can */
    char ended[512];        /* why it is down, or what the last of those ended of; "": nothing to say */
    int64_t limit_ms;       /* for /healthz */
    struct connector_counts past;
    struct connector_counts live;
    struct report_connector last;
};

/* The first worker_count have a worker each, with the same number in the pool. */
struct connectors {
    struct collected_connector *list;
    size_t count;
    size_t worker_count;
};

/* loaded may be NULL: none. It must outlive them. */
void connectors_init(struct connectors *connectors, const struct worker_connectors *loaded, int64_t lease_ttl_ms,
                     struct mono_ms now);
/* The definitions, or the settings, are other ones now. */
void connectors_resettle(struct connectors *connectors, const struct worker_connectors *loaded, int64_t lease_ttl_ms);
void connectors_free(struct connectors *connectors);

/* A report; one of a number that isn't there is ignored. */
void connectors_take(struct connectors *connectors, size_t worker, const struct report_connector *report);
void connectors_began(struct connectors *connectors, size_t worker);
void connectors_not_begun(struct connectors *connectors, size_t worker, const char *why, struct mono_ms now);
/* It ended, and was last heard of then. */
enum connector_end {
    CONNECTOR_TOLD,   /* as it was told to */
    CONNECTOR_FAILED, /* it is started again */
    CONNECTOR_REFUSED /* it stays down */
};
void connectors_ended(struct connectors *connectors, size_t worker, enum connector_end end, int wait_status,
                      struct mono_ms heard);
/* None runs, and none will again. */
bool connectors_all_refused(const struct connectors *connectors);

struct connector_counts connectors_totals(const struct collected_connector *connector);
size_t connectors_running(const struct connectors *connectors);
/* Why it is down, can't read or ends again and again; "" while there is nothing to say. */
const char *connector_reason(const struct collected_connector *connector);

/* The first that has owed a file, could not talk to Kafka, or has been failing, for longer than it may; NULL: none. */
const struct collected_connector *connectors_late(const struct connectors *connectors, struct mono_ms now,
                                                  int64_t *late_ms);

#endif
