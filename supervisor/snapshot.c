/* The state of a pool at one moment: snapshot.h. snapshot_json.c has the document. */
#include "supervisor/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/memory.h"
#include "supervisor/health.h"
#include "supervisor/proc.h"
#include "supervisor/show.h"

#define LAG_MOST_S 1e12 /* far more than any; a number from outside may be anything */

/* ---- taking it ---- */

static char *copy_wall(struct wall_ms time)
{
    char text[CLOCK_TEXT_SIZE];

    clock_format_wall(time, text);
    return memory_copy_text(text);
}

static char *copy_exit(int wait_status)
{
    return WIFSIGNALED(wait_status) ? memory_format("signal %d", WTERMSIG(wait_status))
                                    : memory_format("exit %d", WEXITSTATUS(wait_status));
}

static void take_worker(struct snapshot_worker *out, const struct worker *worker, size_t number, struct mono_ms now)
{
    bool waits = worker->life.state == POOL_BACKOFF;

    *out = (struct snapshot_worker){
        .number = number,
        .phase = memory_copy_text(pool_state_name(worker->life.state)),
        .pid = worker->pid,
        .uptime_ms = worker->pid > 0 ? now.v - worker->started.v : 0,
        .restarts = worker->life.restarts,
        .backoff_ms = waits && worker->life.retry_deadline.v > now.v ? worker->life.retry_deadline.v - now.v : 0,
        .resident_bytes = worker->pid > 0 ? proc_resident_bytes(worker->pid) : 0,
        .queue_count = worker->queue_count,
    };
    if (worker->ended) {
        out->last_exit = copy_exit(worker->end_status);
        out->last_exit_at = copy_wall(worker->end_wall);
    }
}

static const char *state_name(const struct collected_queue *queue)
{
    return queue->standby && queue->last.state == QUEUE_CLAIMING ? "standby" : report_state_name(queue->last.state);
}

static char *copy_owner(const struct collected_queue *queue, const struct settings *settings)
{
    if (queue->last.state == QUEUE_RECOVERING || queue->last.state == QUEUE_RUNNING) {
        return memory_copy_text(settings->instance);
    }
    return queue->last.holder[0] != '\0' ? memory_copy_text(queue->last.holder) : NULL;
}

static void take_queue(struct snapshot_queue *out, const struct snapshot_source *source,
                       const struct collected_queue *queue, int64_t limit_ms)
{
    const struct report_queue *last = &queue->last;
    int64_t lag_us = 0;

    *out = (struct snapshot_queue){
        .name = memory_copy_text(queue->name),
        .worker = queue->worker,
        .owner = copy_owner(queue, source->settings),
        .state = memory_copy_text(state_name(queue)),
        .k = last->k,
        .has_lag = collect_lag_us(source->collect, queue, source->now, &lag_us),
        .buffered_bytes = last->buffer_bytes,
        .late = health_is_late(queue, limit_ms, source->now),
        .stale_ms = health_age_ms(queue, source->now),
    };
    out->lag_seconds = (double)lag_us / 1e6;
    if (last->k >= 0 && last->end_us != INT64_MIN) {
        char end[CLOCK_TEXT_SIZE];

        clock_format_broker((struct broker_us){last->end_us}, end);
        out->end = memory_copy_text(end);
    }
    if (last->error[0] != '\0') {
        out->error = memory_copy_text(last->error);
        out->error_at = copy_wall((struct wall_ms){last->error_wall_ms});
    }
}

static void take_connectors(struct snapshot *snapshot, const struct connectors *connectors)
{
    size_t count = connectors == NULL ? 0 : connectors->count;

    snapshot->connector_count = count;
    snapshot->connectors = memory_new(count + 1, sizeof *snapshot->connectors);
    for (size_t i = 0; i < count; i++) {
        const struct collected_connector *connector = &connectors->list[i];
        struct connector_counts totals = connectors_totals(connector);
        const char *reason = connector_reason(connector);

        snapshot->connectors[i] = (struct snapshot_connector){
            .key = memory_copy_text(connector->key),
            .worker = i < connectors->worker_count ? (int64_t)i : -1,
            .running = connector->running,
            .partitions = connector->running ? connector->last.partitions : 0,
            .buffered_bytes = connector->running ? connector->last.buffer_bytes : 0,
            .consumed = totals.consumed,
            .processed = totals.processed,
            .reason = reason[0] != '\0' ? memory_copy_text(reason) : NULL,
        };
    }
}

void snapshot_take(struct snapshot *snapshot, const struct snapshot_source *source)
{
    const struct settings *settings = source->settings;

    *snapshot = (struct snapshot){
        .sink = memory_copy_text(settings->sink),
        .instance = memory_copy_text(settings->instance),
        .version = memory_copy_text(QUEEN_S3_VERSION),
        .phase = memory_copy_text(source->phase),
        .at = copy_wall(source->wall),
        .pid = getpid(),
        .uptime_ms = source->now.v - source->started.v,
        .limit_ms = health_limit_ms(settings->max_window_ms, settings->lease_ttl_ms),
        .worker_count = source->workers->count,
        .queue_count = source->collect->queue_count,
    };
    snapshot->workers = memory_new(snapshot->worker_count + 1, sizeof *snapshot->workers);
    snapshot->queues = memory_new(snapshot->queue_count + 1, sizeof *snapshot->queues);
    for (size_t i = 0; i < snapshot->worker_count; i++) {
        take_worker(&snapshot->workers[i], &source->workers->list[i], i, source->now);
    }
    for (size_t i = 0; i < snapshot->queue_count; i++) {
        take_queue(&snapshot->queues[i], source, &source->collect->queues[i], snapshot->limit_ms);
        snapshot->late_count += snapshot->queues[i].late;
    }
    take_connectors(snapshot, source->workers->connectors);
}

void snapshot_free(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->worker_count; i++) {
        free(snapshot->workers[i].phase);
        free(snapshot->workers[i].last_exit);
        free(snapshot->workers[i].last_exit_at);
    }
    for (size_t i = 0; i < snapshot->queue_count; i++) {
        free(snapshot->queues[i].name);
        free(snapshot->queues[i].owner);
        free(snapshot->queues[i].state);
        free(snapshot->queues[i].end);
        free(snapshot->queues[i].error);
        free(snapshot->queues[i].error_at);
    }
    for (size_t i = 0; i < snapshot->connector_count; i++) {
        free(snapshot->connectors[i].key);
        free(snapshot->connectors[i].reason);
    }
    free(snapshot->workers);
    free(snapshot->queues);
    free(snapshot->connectors);
    free(snapshot->sink);
    free(snapshot->instance);
    free(snapshot->version);
    free(snapshot->phase);
    free(snapshot->at);
    *snapshot = (struct snapshot){0};
}

/* ---- for a person ---- */

static int rank(const struct snapshot_queue *queue)
{
    return queue->late ? 0 : queue->error != NULL ? 1 : 2;
}

static int compare_queues(const void *one, const void *other)
{
    const struct snapshot_queue *a = one;
    const struct snapshot_queue *b = other;

    if (rank(a) != rank(b)) {
        return rank(a) - rank(b);
    }
    if (a->late && a->stale_ms != b->stale_ms) {
        return a->stale_ms > b->stale_ms ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

void snapshot_sort(struct snapshot *snapshot)
{
    if (snapshot->queue_count > 1) {
        qsort(snapshot->queues, snapshot->queue_count, sizeof *snapshot->queues, compare_queues);
    }
}

int64_t snapshot_age_ms(const struct snapshot *snapshot, const char *time)
{
    struct wall_ms then = {0};
    struct wall_ms now = {0};

    if (time == NULL || !clock_parse_wall(time, strlen(time), &then) ||
        !clock_parse_wall(snapshot->at, strlen(snapshot->at), &now)) {
        return -1;
    }
    return now.v > then.v ? now.v - then.v : 0;
}

int64_t snapshot_lag_ms(const struct snapshot_queue *queue)
{
    if (!queue->has_lag || !(queue->lag_seconds > 0)) {
        return 0;
    }
    return queue->lag_seconds < LAG_MOST_S ? (int64_t)(queue->lag_seconds * 1000) : (int64_t)LAG_MOST_S * 1000;
}

static const struct snapshot_worker *worker_of(const struct snapshot *snapshot, const struct snapshot_queue *queue)
{
    for (size_t i = 0; i < snapshot->worker_count; i++) {
        if (snapshot->workers[i].number == queue->worker) {
            return &snapshot->workers[i];
        }
    }
    return NULL;
}

static char *reason_of_late(const struct snapshot *snapshot, const struct snapshot_queue *queue)
{
    char stale[SHOW_SIZE];
    char limit[SHOW_SIZE];

    show_stretch(queue->stale_ms, stale);
    show_stretch(snapshot->limit_ms, limit);
    return memory_format("nothing committed for %s, the limit is %s", stale, limit);
}

char *snapshot_reason(const struct snapshot *snapshot, const struct snapshot_queue *queue)
{
    const struct snapshot_worker *worker = worker_of(snapshot, queue);
    char age[SHOW_SIZE];

    if (queue->error != NULL) {
        show_stretch(snapshot_age_ms(snapshot, queue->error_at), age);
        return memory_format("%s ago: %s", age, queue->error);
    }
    if (worker != NULL && (strcmp(worker->phase, "backoff") == 0 || strcmp(worker->phase, "silent") == 0 ||
                           strcmp(worker->phase, "down") == 0)) {
        return memory_format("worker %llu: %s%s%s", (unsigned long long)worker->number, worker->phase,
                             worker->last_exit != NULL ? ", last exit " : "",
                             worker->last_exit != NULL ? worker->last_exit : "");
    }
    if (strcmp(queue->state, "lost") == 0 || strcmp(queue->state, "standby") == 0) {
        return memory_format("instance %s has it", queue->owner != NULL ? queue->owner : "(unknown)");
    }
    return queue->late ? reason_of_late(snapshot, queue) : NULL;
}
