/* A connector's worker: one loop over its consumers, until SIGTERM. connector.h says what it promises the supervisor. */
#include "worker/connector/connector.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/partition.h"
#include "worker/report_link.h"

#define SETTLED_MS 20000 /* a group that has given nothing for so long has nothing */

struct worker_connectors {
    const char *const *paths;
    size_t path_count;
    struct definitions definitions;
    struct kafka_settings kafka;
};

struct connector_worker {
    struct connector connector;
    const struct worker_connector_start *start;
    struct report_link link;
    struct mono_ms began;
    struct timer report_timer;
    uint64_t files_told;
};

/* ---- what the supervisor asks ---- */

struct worker_connectors *worker_connectors_load(const char *const *paths, size_t path_count, char *const *environment,
                                                 struct error *error)
{
    struct worker_connectors *connectors = memory_new(1, sizeof *connectors);

    connectors->paths = paths;
    connectors->path_count = path_count;
    if (kafka_settings_read(environment, &connectors->kafka, error) != 0 ||
        definitions_load(paths, path_count, environment, &connectors->definitions, error) != 0) {
        worker_connectors_free(connectors);
        return NULL;
    }
    return connectors;
}

void worker_connectors_free(struct worker_connectors *connectors)
{
    if (connectors != NULL) {
        definitions_free(&connectors->definitions);
        kafka_settings_free(&connectors->kafka);
        free(connectors);
    }
}

void worker_connectors_renew(struct worker_connectors *connectors, char *const *environment)
{
    struct definitions fresh;
    struct error error;

    if (definitions_load(connectors->paths, connectors->path_count, environment, &fresh, &error) == 0) {
        definitions_renew(&connectors->definitions, &fresh);
    } else {
        log_line(LOG_ERROR, NULL, "every connector goes on with the definition that it has: %s", error.message);
    }
    definitions_free(&fresh);
}

size_t worker_connectors_count(const struct worker_connectors *connectors)
{
    return connectors->definitions.count;
}

const char *worker_connector_key(const struct worker_connectors *connectors, size_t number)
{
    return connectors->definitions.list[number].key;
}

int64_t worker_connector_age_ms(const struct worker_connectors *connectors, size_t number)
{
    int64_t age = connectors->definitions.list[number].options.max_file_age_ms;

    return age > 0 ? age : WORKER_CONNECTOR_AGE_MS;
}

size_t worker_connectors_fault_count(const struct worker_connectors *connectors)
{
    return connectors->definitions.fault_count;
}

const char *worker_connectors_fault(const struct worker_connectors *connectors, size_t number)
{
    return connectors->definitions.faults[number].message;
}

const char *worker_connectors_fault_key(const struct worker_connectors *connectors, size_t number)
{
    return connectors->definitions.faults[number].key;
}

/* ---- reports ---- */

static void say(struct report_connector *report, const char *why)
{
    (void)snprintf(report->error, sizeof report->error, "%.*s", (int)sizeof report->error - 1, why);
}

static void add_partition(const struct partition *partition, struct mono_ms now, struct report_connector *report)
{
    int64_t late = partition_late_ms(partition, now);
    int64_t fresh = partition_fresh(partition, now).v;

    report->fresh_mono_ms = fresh < report->fresh_mono_ms ? fresh : report->fresh_mono_ms;
    report->partitions++;
    if (partition_is_left_out(partition) && report->error[0] == '\0') {
        say(report, partition->left_out);
    }
    report->buffer_bytes += partition->filling.body.size + partition->flying.body.size;
    if (late > 0 && (report->owed_mono_ms == 0 || now.v - late < report->owed_mono_ms)) {
        report->owed_mono_ms = now.v - late;
        (void)snprintf(report->owed, sizeof report->owed, "%.200s/%d", partition->topic, (int)partition->number);
    }
}

static void add_consumer(const struct connector_worker *worker, const struct consumer *consumer, struct mono_ms now,
                         struct report_connector *report)
{
    bool settled = now.v - worker->began.v >= SETTLED_MS;

    if (consumer->blocked.v > 0 || (consumer->partition_count == 0 && !settled)) {
        report->fresh_mono_ms = 0;
    }
    if (consumer->blocked.v > 0 && (report->blocked_mono_ms == 0 || consumer->blocked.v < report->blocked_mono_ms)) {
        report->blocked_mono_ms = consumer->blocked.v;
        say(report, consumer->why);
    }
    for (size_t i = 0; i < consumer->partition_count; i++) {
        add_partition(consumer->partitions[i], now, report);
    }
}

static void fill_report(const struct connector_worker *worker, struct report_connector *report)
{
    const struct connector *connector = &worker->connector;
    const struct connector_totals *totals = &connector->totals;
    struct mono_ms now = reactor_now(connector->reactor);

    *report = (struct report_connector){.connector = (uint32_t)worker->start->number,
                                        .consumed = totals->consumed,
                                        .processed = totals->processed,
                                        .filtered = totals->filtered,
                                        .errors = totals->errors,
                                        .files = totals->files,
                                        .bytes = totals->bytes,
                                        .lost = totals->lost,
                                        .fresh_mono_ms = connector->failed ? 0 : now.v,
                                        .committed_mono_ms = connector->committed.v};
    for (size_t i = 0; i < worker->connector.consumer_count; i++) {
        add_consumer(worker, worker->connector.consumers[i], now, report);
    }
    if (connector->failed) {
        say(report, connector->failure);
    }
}

static void send_report(struct connector_worker *worker)
{
    struct report_connector report;

    worker->files_told = worker->connector.totals.files;
    fill_report(worker, &report);
    if (report_link_add(&worker->link, REPORT_CONNECTOR, &report, sizeof report) == 0) {
        report_link_flush(&worker->link);
    }
}

static void report_due(void *argument)
{
    struct connector_worker *worker = argument;
    struct reactor *reactor = worker->connector.reactor;

    if (report_link_is_read(&worker->link)) {
        send_report(worker);
    }
    timer_set(reactor_timers(reactor), &worker->report_timer,
              (struct mono_ms){reactor_now(reactor).v + REPORT_EVERY_MS}, report_due, worker);
}

/* The last word has to reach the supervisor: the totals, and why it ends. */
static void report_last(struct connector_worker *worker)
{
    send_report(worker);
    report_link_finish(&worker->link);
}

/* ---- stopping ---- */

static void stop(void *argument)
{
    struct connector_worker *worker = argument;

    if (!worker->connector.stopping) {
        worker->connector.stopping = true;
        for (size_t i = 0; i < worker->connector.consumer_count; i++) {
            consumer_stop(worker->connector.consumers[i]);
        }
    }
}

static bool all_idle(const struct connector_worker *worker)
{
    for (size_t i = 0; i < worker->connector.consumer_count; i++) {
        if (!consumer_is_idle(worker->connector.consumers[i])) {
            return false;
        }
    }
    return true;
}

/* ---- life ---- */

static int open_consumers(struct connector_worker *worker, struct error *error)
{
    const struct definition *definition = worker->connector.definition;

    worker->connector.consumers = memory_new(definition->topic_count, sizeof(struct consumer *));
    for (size_t i = 0; i < definition->topic_count; i++) {
        worker->connector.consumers[i] =
            consumer_create(&worker->connector, &definition->topics[i], &worker->start->connectors->kafka,
                            worker->start->budget_bytes / definition->topic_count, error);
        if (worker->connector.consumers[i] == NULL) {
            return QS_ERROR_INPUT;
        }
        worker->connector.consumer_count++;
    }
    return 0;
}

static const char *look_up(void *argument, const char *name)
{
    (void)argument;
    return getenv(name);
}

/* Shares and queues are none of a connector's business. */
static const struct report_link_events link_events = {NULL, stop};

static int open_worker(struct connector_worker *worker, struct error *error)
{
    struct connector *connector = &worker->connector;

    connector->definition = &worker->start->connectors->definitions.list[worker->start->number];
    connector->reactor = reactor_create(error);
    if (connector->reactor == NULL) {
        return QS_ERROR_SYSTEM;
    }
    if (report_link_open(&worker->link, connector->reactor, worker->start->report_descriptor, &link_events, worker,
                         error) != 0) {
        return QS_ERROR_SYSTEM;
    }
    connector->bucket = sink_bucket_open(connector->reactor, &connector->definition->options, look_up, NULL, error);
    return connector->bucket == NULL ? QS_ERROR_INPUT : open_consumers(worker, error);
}

static void close_worker(struct connector_worker *worker)
{
    struct connector *connector = &worker->connector;

    /* One that is closing may be told of partitions, and then looks at those of the others. */
    while (connector->consumer_count > 0) {
        connector->consumer_count--;
        consumer_destroy(connector->consumers[connector->consumer_count]);
    }
    free(connector->consumers);
    sink_bucket_close(connector->bucket);
    sink_formatter_free(&connector->formatter);
    byte_buffer_free(&connector->headers);
    report_link_close(&worker->link);
    if (connector->reactor != NULL) {
        reactor_destroy(connector->reactor);
    }
    free(worker);
}

static void run_loop(struct connector_worker *worker)
{
    struct connector *connector = &worker->connector;

    while (!worker->link.gone && !connector->failed && !(connector->stopping && all_idle(worker))) {
        bool more = false;

        for (size_t i = 0; i < worker->connector.consumer_count; i++) {
            more = more || worker->connector.consumers[i]->more;
        }
        reactor_run_once(connector->reactor, more ? 0 : -1);
        for (size_t i = 0; i < worker->connector.consumer_count; i++) {
            if (worker->connector.consumers[i]->more) {
                consumer_run(worker->connector.consumers[i]);
            }
        }
        if (connector->totals.files != worker->files_told && report_link_is_read(&worker->link)) {
            send_report(worker);
        }
    }
}

int worker_run_connector(const struct worker_connector_start *start)
{
    struct connector_worker *worker = memory_new(1, sizeof *worker);
    struct connector *connector = &worker->connector;
    struct error error = {.retry_after_ms = -1};

    (void)mallopt(M_ARENA_MAX, 2);
    worker->start = start;
    if (open_worker(worker, &error) != 0) {
        connector_fail(connector, error.code == QS_ERROR_INPUT ? 2 : 1, "%s", error.message);
    } else {
        worker->began = reactor_now(connector->reactor);
        report_due(worker);
        run_loop(worker);
    }
    if (connector->failed) {
        log_line(LOG_ERROR, connector->definition->key, "%s", connector->failure);
    }
    if (!worker->link.gone && connector->reactor != NULL) {
        report_last(worker);
    }
    int exit_code = connector->failed ? connector->exit_code : 0;
    close_worker(worker);
    return exit_code;
}
