/* See connectors.h. */
#include "supervisor/connectors.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "supervisor/health.h"

static void add_broken(struct connectors *connectors, const struct worker_connectors *loaded, size_t number)
{
    struct collected_connector *connector = &connectors->list[connectors->count++];

    connector->key = worker_connectors_fault_key(loaded, number);
    connector->broken = true;
    (void)snprintf(connector->reason, sizeof connector->reason, "%s", worker_connectors_fault(loaded, number));
}

void connectors_init(struct connectors *connectors, const struct worker_connectors *loaded, int64_t lease_ttl_ms)
{
    size_t good = loaded == NULL ? 0 : worker_connectors_count(loaded);
    size_t broken = loaded == NULL ? 0 : worker_connectors_fault_count(loaded);

    *connectors = (struct connectors){.worker_count = good};
    connectors->list = memory_new(good + broken + 1, sizeof *connectors->list);
    for (size_t i = 0; i < good; i++) {
        struct collected_connector *connector = &connectors->list[connectors->count++];
        connector->key = worker_connector_key(loaded, i);
        connector->limit_ms = health_limit_ms(worker_connector_age_ms(loaded, i), lease_ttl_ms);
    }
    for (size_t i = 0; i < broken; i++) {
        add_broken(connectors, loaded, i);
    }
}

void connectors_free(struct connectors *connectors)
{
    free(connectors->list);
    *connectors = (struct connectors){0};
}

void connectors_take(struct connectors *connectors, size_t worker, const struct report_connector *report)
{
    if (worker >= connectors->worker_count) {
        return;
    }
    struct collected_connector *connector = &connectors->list[worker];
    connector->last = *report;
    connector->live = (struct connector_counts){report->consumed, report->processed, report->filtered, report->errors};
    (void)snprintf(connector->reason, sizeof connector->reason, "%.*s", (int)sizeof report->error, report->error);
}

void connectors_began(struct connectors *connectors, size_t worker)
{
    if (worker < connectors->worker_count) {
        connectors->list[worker].running = true;
    }
}

void connectors_ended(struct connectors *connectors, size_t worker, bool refused)
{
    if (worker >= connectors->worker_count) {
        return;
    }
    struct collected_connector *connector = &connectors->list[worker];
    connector->past = connectors_totals(connector);
    connector->live = (struct connector_counts){0};
    connector->running = false;
    connector->broken = refused;
    if (refused) {
        log_line(LOG_ERROR, connector->key, "the connector stays down: %s", connector->reason);
    }
}

bool connectors_all_refused(const struct connectors *connectors)
{
    for (size_t i = 0; i < connectors->count; i++) {
        if (!connectors->list[i].broken) {
            return false;
        }
    }
    return connectors->count > 0;
}

struct connector_counts connectors_totals(const struct collected_connector *connector)
{
    const struct connector_counts *past = &connector->past;
    const struct connector_counts *live = &connector->live;

    return (struct connector_counts){past->consumed + live->consumed, past->processed + live->processed,
                                     past->filtered + live->filtered, past->errors + live->errors};
}

size_t connectors_running(const struct connectors *connectors)
{
    size_t count = 0;

    for (size_t i = 0; i < connectors->worker_count; i++) {
        count += connectors->list[i].running;
    }
    return count;
}

const struct collected_connector *connectors_late(const struct connectors *connectors, struct mono_ms now,
                                                  int64_t *late_ms)
{
    for (size_t i = 0; i < connectors->worker_count; i++) {
        const struct collected_connector *connector = &connectors->list[i];
        int64_t owed = connector->last.owed_mono_ms > 0 ? now.v - connector->last.owed_mono_ms : 0;

        if (owed > connector->limit_ms) {
            *late_ms = owed;
            return connector;
        }
    }
    return NULL;
}
