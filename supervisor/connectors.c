/* See connectors.h. */
#include "supervisor/connectors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/log.h"
#include "common/memory.h"
#include "supervisor/health.h"

static void add_broken(struct connectors *connectors, const struct worker_connectors *loaded, size_t number,
                       struct mono_ms now)
{
    struct collected_connector *connector = &connectors->list[connectors->count++];

    connector->key = worker_connectors_fault_key(loaded, number);
    connector->broken = true;
    connector->failing = now;
    (void)snprintf(connector->ended, sizeof connector->ended, "%s", worker_connectors_fault(loaded, number));
}

void connectors_init(struct connectors *connectors, const struct worker_connectors *loaded, int64_t lease_ttl_ms,
                     struct mono_ms now)
{
    size_t good = loaded == NULL ? 0 : worker_connectors_count(loaded);
    size_t broken = loaded == NULL ? 0 : worker_connectors_fault_count(loaded);

    *connectors = (struct connectors){.worker_count = good};
    connectors->list = memory_new(good + broken + 1, sizeof *connectors->list);
    for (size_t i = 0; i < good; i++) {
        struct collected_connector *connector = &connectors->list[connectors->count++];
        connector->key = worker_connector_key(loaded, i);
    }
    for (size_t i = 0; i < broken; i++) {
        add_broken(connectors, loaded, i, now);
    }
    connectors_resettle(connectors, loaded, lease_ttl_ms);
}

void connectors_resettle(struct connectors *connectors, const struct worker_connectors *loaded, int64_t lease_ttl_ms)
{
    for (size_t i = 0; i < connectors->count; i++) {
        int64_t age_ms = i < connectors->worker_count ? worker_connector_age_ms(loaded, i) : WORKER_CONNECTOR_AGE_MS;
        connectors->list[i].limit_ms = health_limit_ms(age_ms, lease_ttl_ms);
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
    connector->last.error[sizeof connector->last.error - 1] = '\0';
    connector->live = (struct connector_counts){report->consumed, report->processed, report->filtered, report->errors};
    if (report->blocked_mono_ms == 0 || connector->blocked.v == 0) {
        connector->blocked.v = report->blocked_mono_ms;
    }
    if (report->fresh_mono_ms > connector->failing.v) {
        connector->failing.v = 0;
        connector->ended[0] = '\0';
    }
}

void connectors_began(struct connectors *connectors, size_t worker)
{
    if (worker < connectors->worker_count) {
        struct collected_connector *connector = &connectors->list[worker];
        connector->running = true;
        connector->broken = false;
        connector->last = (struct report_connector){0};
    }
}

static void fails(struct collected_connector *connector, struct mono_ms since)
{
    if (connector->failing.v == 0) {
        connector->failing = since;
    }
}

void connectors_not_begun(struct connectors *connectors, size_t worker, const char *why, struct mono_ms now)
{
    if (worker < connectors->worker_count) {
        struct collected_connector *connector = &connectors->list[worker];
        (void)snprintf(connector->ended, sizeof connector->ended, "its worker could not be started: %s", why);
        fails(connector, now);
    }
}

/* One that ends by itself has reported why. */
static void note_end(struct collected_connector *connector, int wait_status)
{
    char *out = connector->ended;

    if (WIFSIGNALED(wait_status)) {
        (void)snprintf(out, sizeof connector->ended, "its worker was ended by signal %d", WTERMSIG(wait_status));
    } else if (connector->last.error[0] != '\0') {
        (void)snprintf(out, sizeof connector->ended, "%s", connector->last.error);
    } else {
        (void)snprintf(out, sizeof connector->ended, "its worker ended with exit code %d", WEXITSTATUS(wait_status));
    }
}

void connectors_ended(struct connectors *connectors, size_t worker, enum connector_end end, int wait_status,
                      struct mono_ms heard)
{
    if (worker >= connectors->worker_count) {
        return;
    }
    struct collected_connector *connector = &connectors->list[worker];
    connector->past = connectors_totals(connector);
    connector->live = (struct connector_counts){0};
    connector->running = false;
    connector->broken = end == CONNECTOR_REFUSED;
    if (connector->last.owed_mono_ms > 0) { /* its next worker doesn't know of that */
        fails(connector, (struct mono_ms){connector->last.owed_mono_ms});
    }
    if (end != CONNECTOR_TOLD) {
        fails(connector, heard);
        note_end(connector, wait_status);
    }
    if (end == CONNECTOR_REFUSED) {
        log_line(LOG_ERROR, connector->key, "the connector stays down: %s", connector->ended);
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

const char *connector_reason(const struct collected_connector *connector)
{
    return connector->running && connector->last.error[0] != '\0' ? connector->last.error : connector->ended;
}

const struct collected_connector *connectors_late(const struct connectors *connectors, struct mono_ms now,
                                                  int64_t *late_ms)
{
    for (size_t i = 0; i < connectors->count; i++) {
        const struct collected_connector *connector = &connectors->list[i];
        int64_t owed = connector->last.owed_mono_ms > 0 ? now.v - connector->last.owed_mono_ms : 0;
        int64_t failing = connector->failing.v > 0 ? now.v - connector->failing.v : 0;
        int64_t blocked = connector->blocked.v > 0 ? now.v - connector->blocked.v : 0;

        *late_ms = owed > failing ? owed : failing;
        *late_ms = blocked > *late_ms ? blocked : *late_ms;
        if (*late_ms > connector->limit_ms) {
            return connector;
        }
    }
    return NULL;
}
