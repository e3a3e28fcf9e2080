/* A pool's state as `status` prints it: two lines on the whole, a table of workers, a table of queues. */
#include "supervisor/commands/status_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/visible.h"
#include "supervisor/commands/output.h"
#include "supervisor/commands/text_table.h"
#include "supervisor/show.h"

static void print_head(const struct snapshot *snapshot)
{
    char *sink = visible_text(snapshot->sink);
    char *instance = visible_text(snapshot->instance);
    char *phase = visible_text(snapshot->phase);
    char *version = visible_text(snapshot->version);
    char uptime[SHOW_SIZE];
    char limit[SHOW_SIZE];

    show_stretch(snapshot->uptime_ms, uptime);
    show_stretch(snapshot->limit_ms, limit);
    output_format("sink %s on %s: %s for %s, pid %" PRId64 ", queen-s3 %s\n", sink, instance, phase, uptime,
                  snapshot->pid, version);
    if (snapshot->queue_count == 0) {
        output_text(snapshot->connector_count > 0 ? "connectors alone\n" : "no queue yet\n");
    } else if (snapshot->late_count == 0) {
        output_format("%zu queue%s on time\n", snapshot->queue_count, snapshot->queue_count == 1 ? "" : "s");
    } else {
        output_format("%" PRIu64 " of %zu queue%s late: more than %s without a commit of what waits\n",
                      snapshot->late_count, snapshot->queue_count, snapshot->queue_count == 1 ? "" : "s", limit);
    }
    free(sink);
    free(instance);
    free(phase);
    free(version);
}

static void number_cell(struct text_table_row *row, size_t column, int64_t number)
{
    char digits[SHOW_SIZE];

    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    text_table_cell(row, column, number >= 0 ? digits : NULL);
}

/* ---- workers ---- */

static void exit_cell(struct text_table_row *row, size_t column, const struct snapshot *snapshot,
                      const struct snapshot_worker *worker)
{
    char age[SHOW_SIZE];
    char again[SHOW_SIZE];
    char *text;

    if (worker->last_exit == NULL) {
        text_table_cell(row, column, NULL);
        return;
    }
    show_stretch(snapshot_age_ms(snapshot, worker->last_exit_at), age);
    text = memory_format("%s, %s ago", worker->last_exit, age);
    text_table_cell(row, column, text);
    free(text);
    if (worker->backoff_ms > 0) {
        show_stretch(worker->backoff_ms, again);
        text = memory_format("started again in %s", again);
        text_table_note(row, text);
        free(text);
    }
}

static void add_worker(struct text_table *table, const struct snapshot *snapshot, const struct snapshot_worker *worker)
{
    struct text_table_row *row = text_table_add(table);
    bool there = worker->pid > 0;
    char text[SHOW_SIZE];

    row->alarmed = strcmp(worker->phase, "backoff") == 0 || strcmp(worker->phase, "silent") == 0 ||
                   strcmp(worker->phase, "down") == 0;
    number_cell(row, 0, (int64_t)worker->number);
    text_table_cell(row, 1, worker->phase);
    number_cell(row, 2, there ? worker->pid : -1);
    show_stretch(worker->uptime_ms, text);
    text_table_cell(row, 3, there ? text : NULL);
    show_bytes(worker->resident_bytes, text);
    text_table_cell(row, 4, there ? text : NULL);
    number_cell(row, 5, (int64_t)worker->queue_count);
    number_cell(row, 6, (int64_t)worker->restarts);
    exit_cell(row, 7, snapshot, worker);
}

static void print_workers(const struct snapshot *snapshot, bool colour)
{
    struct text_table table = {
        .titles = {"WORKER", "PHASE", "PID", "UP", "MEMORY", "QUEUES", "RESTARTS", "LAST EXIT"},
        .right = {true, false, true, true, true, true, true, false},
        .count = 8,
    };

    for (size_t i = 0; i < snapshot->worker_count; i++) {
        add_worker(&table, snapshot, &snapshot->workers[i]);
    }
    output_text("\n");
    text_table_print(&table, colour);
    text_table_free(&table);
}

/* ---- queues ---- */

static void time_cell(struct text_table_row *row, size_t column, const char *time)
{
    char text[SHOW_SIZE];

    if (time != NULL) {
        show_time(time, text);
    }
    text_table_cell(row, column, time != NULL ? text : NULL);
}

static void owner_cell(struct text_table_row *row, size_t column, const struct snapshot *snapshot,
                       const struct snapshot_queue *queue)
{
    char worker[SHOW_SIZE];
    bool here = queue->owner == NULL || strcmp(queue->owner, snapshot->instance) == 0;

    (void)snprintf(worker, sizeof worker, "worker %" PRIu64, queue->worker);
    text_table_cell(row, column, here ? worker : queue->owner);
}

static void add_queue(struct text_table *table, const struct snapshot *snapshot, const struct snapshot_queue *queue)
{
    struct text_table_row *row = text_table_add(table);
    char *reason = snapshot_reason(snapshot, queue);
    char text[SHOW_SIZE];

    row->alarmed = queue->late;
    text_table_cell(row, 0, queue->name);
    text_table_cell(row, 1, queue->state);
    owner_cell(row, 2, snapshot, queue);
    number_cell(row, 3, queue->k);
    time_cell(row, 4, queue->end);
    show_stretch(snapshot_lag_ms(queue), text);
    text_table_cell(row, 5, queue->has_lag ? text : NULL);
    show_bytes(queue->buffered_bytes, text);
    text_table_cell(row, 6, text);
    if (reason != NULL) {
        text_table_note(row, reason);
    }
    free(reason);
}

static void print_queues(const struct snapshot *snapshot, bool colour)
{
    struct text_table table = {
        .titles = {"QUEUE", "STATE", "OWNER", "WINDOW", "COMMITTED TO (UTC)", "LAG", "BUFFERED"},
        .right = {false, false, false, true, true, true, true},
        .count = 7,
    };

    for (size_t i = 0; i < snapshot->queue_count; i++) {
        add_queue(&table, snapshot, &snapshot->queues[i]);
    }
    output_text("\n");
    text_table_print(&table, colour);
    text_table_free(&table);
}

/* ---- connectors ---- */

static void add_connector(struct text_table *table, const struct snapshot_connector *connector)
{
    struct text_table_row *row = text_table_add(table);
    char text[SHOW_SIZE];

    row->alarmed = !connector->running;
    text_table_cell(row, 0, connector->key);
    text_table_cell(row, 1, connector->running ? "running" : "down");
    number_cell(row, 2, connector->worker);
    number_cell(row, 3, (int64_t)connector->partitions);
    number_cell(row, 4, (int64_t)connector->consumed);
    number_cell(row, 5, (int64_t)connector->processed);
    show_bytes(connector->buffered_bytes, text);
    text_table_cell(row, 6, text);
    if (connector->reason != NULL) {
        text_table_note(row, connector->reason);
    }
}

static void print_connectors(const struct snapshot *snapshot, bool colour)
{
    struct text_table table = {
        .titles = {"CONNECTOR", "STATE", "WORKER", "PARTITIONS", "CONSUMED", "PROCESSED", "BUFFERED"},
        .right = {false, false, true, true, true, true, true},
        .count = 7,
    };

    for (size_t i = 0; i < snapshot->connector_count; i++) {
        add_connector(&table, &snapshot->connectors[i]);
    }
    output_text("\n");
    text_table_print(&table, colour);
    text_table_free(&table);
}

void status_print(const struct snapshot *snapshot, bool colour)
{
    print_head(snapshot);
    if (snapshot->worker_count > 0) {
        print_workers(snapshot, colour);
    }
    if (snapshot->queue_count > 0) {
        print_queues(snapshot, colour);
    }
    if (snapshot->connector_count > 0) {
        print_connectors(snapshot, colour);
    }
}
