/*
 * See exposition.h. Families come in the order of metric_table.h, which has their names. A gauge that is not known
 * yet (the lag of a queue that has read nothing) has no sample until it is; from then on it stays.
 */
#include "supervisor/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/metric_table.h"

/* Returns the family's name. */
static const char *write_head(FILE *out, enum metric metric)
{
    const struct metric_row *row = &metric_table[metric];

    (void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, row->type);
    return row->name;
}

/* A label's value with its quotes. */
static void write_value(FILE *out, const char *value)
{
    (void)fputc('"', out);
    for (; *value != '\0'; value++) {
        if (*value == '\n') {
            (void)fputs("\\n", out);
            continue;
        }
        if (*value == '\\' || *value == '"') {
            (void)fputc('\\', out);
        }
        (void)fputc(*value, out);
    }
    (void)fputc('"', out);
}

static void write_queue_label(FILE *out, const char *name, const struct collected_queue *queue)
{
    (void)fprintf(out, "%s{queue=", name);
    write_value(out, queue->name);
}

static void write_lag(FILE *out, const struct exposition *exposition)
{
    const struct collect *collect = exposition->collect;

    const char *name = write_head(out, METRIC_LAG);

    for (size_t i = 0; i < collect->queue_count; i++) {
        const struct collected_queue *queue = &collect->queues[i];
        int64_t lag_us = 0;

        if (collect_lag_us(collect, queue, exposition->now, &lag_us)) {
            write_queue_label(out, name, queue);
            (void)fprintf(out, "} %.6f\n", (double)lag_us / 1e6);
        }
    }
}

static void write_safe_lag(FILE *out, const struct exposition *exposition)
{
    const struct collect *collect = exposition->collect;
    int64_t wall_us = exposition->wall.v * 1000;
    int64_t largest_us = INT64_MIN;

    for (size_t i = 0; i < collect->worker_limit; i++) {
        if (collect->workers[i].has_safe_time && wall_us - collect->workers[i].safe_time_us > largest_us) {
            largest_us = wall_us - collect->workers[i].safe_time_us;
        }
    }
    const char *name = write_head(out, METRIC_SAFE_LAG);
    if (largest_us != INT64_MIN) {
        (void)fprintf(out, "%s %.6f\n", name, (double)largest_us / 1e6);
    }
}

/* offset: of the number in struct queue_totals. */
static void write_queue_counter(FILE *out, const struct exposition *exposition, enum metric metric, size_t offset)
{
    const char *name = write_head(out, metric);

    for (size_t i = 0; i < exposition->collect->queue_count; i++) {
        const struct collected_queue *queue = &exposition->collect->queues[i];
        struct queue_totals totals = collect_queue_totals(queue);

        write_queue_label(out, name, queue);
        (void)fprintf(out, "} %" PRIu64 "\n", *(const uint64_t *)((const char *)&totals + offset));
    }
}

/* The format can change while the pool lives: what was written in the other one stays that one's. */
static void write_bytes(FILE *out, const struct exposition *exposition)
{
    const char *name = write_head(out, METRIC_BYTES_WRITTEN);

    for (size_t i = 0; i < exposition->collect->queue_count; i++) {
        const struct collected_queue *queue = &exposition->collect->queues[i];
        struct queue_totals totals = collect_queue_totals(queue);

        for (unsigned format = 0; format < FORMAT_COUNT; format++) {
            if (totals.bytes_written[format] > 0 || (exposition->formats >> format & 1) != 0) {
                write_queue_label(out, name, queue);
                (void)fprintf(out, ",format=\"%s\"} %" PRIu64 "\n", setting_format_name((enum setting_format)format),
                              totals.bytes_written[format]);
            }
        }
    }
}

static void write_queue_counters(FILE *out, const struct exposition *exposition)
{
    write_queue_counter(out, exposition, METRIC_WINDOWS_COMMITTED, offsetof(struct queue_totals, windows_committed));
    write_queue_counter(out, exposition, METRIC_RECORDS_WRITTEN, offsetof(struct queue_totals, records_written));
    write_bytes(out, exposition);
    write_queue_counter(out, exposition, METRIC_RECORDS_LOST, offsetof(struct queue_totals, records_lost));
}

/* counts: per bucket, the last above every bound. */
static void write_histogram(FILE *out, enum metric metric, const char *const *bounds, const uint64_t *counts,
                            double sum)
{
    const char *name = write_head(out, metric);
    uint64_t cumulated = 0;

    for (size_t i = 0; i <= REPORT_HISTOGRAM_BUCKETS; i++) {
        cumulated += counts[i];
        (void)fprintf(out, "%s_bucket{le=\"%s\"} %" PRIu64 "\n", name,
                      i < REPORT_HISTOGRAM_BUCKETS ? bounds[i] : "+Inf", cumulated);
    }
    (void)fprintf(out, "%s_sum %.17g\n%s_count %" PRIu64 "\n", name, sum, name, cumulated);
}

static void write_windows(FILE *out, const struct worker_totals *totals)
{
    static const char *const records[REPORT_HISTOGRAM_BUCKETS] = {
        "1", "10", "100", "1000", "10000", "100000", "1000000", "10000000",
    };
    static const char *const bytes[REPORT_HISTOGRAM_BUCKETS] = {
        "1048576", "4194304", "16777216", "67108864", "134217728", "268435456", "536870912", "1073741824",
    };

    write_histogram(out, METRIC_WINDOW_RECORDS, records, totals->window_records, totals->window_records_sum);
    write_histogram(out, METRIC_WINDOW_BYTES, bytes, totals->window_bytes, totals->window_bytes_sum);
}

static void write_buffer(FILE *out, const struct exposition *exposition)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < exposition->collect->worker_limit; i++) {
        sum += exposition->collect->workers[i].buffer_bytes;
    }
    const char *name = write_head(out, METRIC_BUFFER_BYTES);
    (void)fprintf(out, "%s %" PRIu64 "\n", name, sum);
}

static void write_fetches(FILE *out, const struct exposition *exposition)
{
    const char *name = write_head(out, METRIC_FETCH_CALLS);

    for (size_t i = 0; i < exposition->collect->queue_count; i++) {
        const struct collected_queue *queue = &exposition->collect->queues[i];
        struct queue_totals totals = collect_queue_totals(queue);

        write_queue_label(out, name, queue);
        (void)fprintf(out, ",result=\"ok\"} %" PRIu64 "\n", totals.fetch_ok);
        write_queue_label(out, name, queue);
        (void)fprintf(out, ",result=\"error\"} %" PRIu64 "\n", totals.fetch_error);
    }
}

static void write_partitions(FILE *out, const struct exposition *exposition)
{
    const char *name = write_head(out, METRIC_PARTITIONS);

    for (size_t i = 0; i < exposition->collect->queue_count; i++) {
        const struct collected_queue *queue = &exposition->collect->queues[i];

        write_queue_label(out, name, queue);
        (void)fprintf(out, "} %" PRIu64 "\n", queue->last.partitions);
    }
}

static void write_requests(FILE *out, const struct exposition *exposition, uint64_t precondition_lost)
{
    const struct collect *collect = exposition->collect;
    const char *name = write_head(out, METRIC_REQUESTS);

    for (size_t i = 0; i < collect->request_count; i++) {
        const struct request_series *series = &collect->requests[i];

        (void)fprintf(out, "%s{op=\"%s\",code=\"%" PRId32 "\"} %" PRIu64 "\n", name,
                      store_operation_name((enum store_operation)series->operation), series->code,
                      collect_requests(collect, series));
    }
    name = write_head(out, METRIC_PRECONDITION_LOST);
    (void)fprintf(out, "%s %" PRIu64 "\n", name, precondition_lost);
}

static void write_checkpoints(FILE *out, const struct exposition *exposition)
{
    const char *name = write_head(out, METRIC_CHECKPOINT_AGE);

    for (size_t i = 0; i < exposition->collect->queue_count; i++) {
        const struct collected_queue *queue = &exposition->collect->queues[i];
        int64_t checkpoint = queue->last.checkpoint_k < 0 ? 0 : queue->last.checkpoint_k;

        if (queue->last.k >= 0) {
            write_queue_label(out, name, queue);
            (void)fprintf(out, "} %" PRId64 "\n", queue->last.k > checkpoint ? queue->last.k - checkpoint : 0);
        }
    }
}

static void write_workers(FILE *out, const struct exposition *exposition)
{
    const struct exposition_worker *workers = exposition->workers;

    const char *name = write_head(out, METRIC_WORKERS);
    (void)fprintf(out, "%s %zu\n", name, exposition->worker_count);
    name = write_head(out, METRIC_WORKER_UP);
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "%s{worker=\"%zu\"} %d\n", name, i, workers[i].up ? 1 : 0);
    }
    name = write_head(out, METRIC_WORKER_RESTARTS);
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "%s{worker=\"%zu\"} %" PRIu64 "\n", name, i, workers[i].restarts);
    }
    name = write_head(out, METRIC_WORKER_BACKOFF);
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "%s{worker=\"%zu\"} %g\n", name, i, workers[i].backoff_seconds);
    }
    name = write_head(out, METRIC_WORKER_RESIDENT);
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "%s{worker=\"%zu\"} %" PRIu64 "\n", name, i, workers[i].resident_bytes);
    }
    name = write_head(out, METRIC_WORKER_CPU);
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "%s{worker=\"%zu\"} %.6f\n", name, i, workers[i].cpu_seconds);
    }
}

static void write_connector(FILE *out, const char *name, const struct collected_connector *connector, uint64_t value)
{
    (void)fprintf(out, "%s{connector_key=", name);
    write_value(out, connector->key);
    (void)fprintf(out, ",connector_type=\"sink\"} %" PRIu64 "\n", value);
}

static void write_connectors(FILE *out, const struct connectors *connectors)
{
    const char *name = write_head(out, METRIC_CONNECTORS);
    (void)fprintf(out, "%s %zu\n", name, connectors->count);
    name = write_head(out, METRIC_CONNECTORS_RUNNING);
    (void)fprintf(out, "%s %zu\n", name, connectors_running(connectors));
    for (enum metric metric = METRIC_CONNECTOR_CONSUMED; metric <= METRIC_CONNECTOR_ERRORS; metric++) {
        name = write_head(out, metric);
        for (size_t i = 0; i < connectors->worker_count; i++) {
            struct connector_counts totals = connectors_totals(&connectors->list[i]);
            write_connector(out, name, &connectors->list[i],
                            metric == METRIC_CONNECTOR_CONSUMED    ? totals.consumed
                            : metric == METRIC_CONNECTOR_PROCESSED ? totals.processed
                            : metric == METRIC_CONNECTOR_FILTERED  ? totals.filtered
                                                                   : totals.errors);
        }
    }
}

char *exposition_write(const struct exposition *exposition)
{
    struct worker_totals totals = collect_totals(exposition->collect);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        return NULL;
    }
    write_lag(out, exposition);
    write_safe_lag(out, exposition);
    write_queue_counters(out, exposition);
    write_windows(out, &totals);
    write_buffer(out, exposition);
    write_fetches(out, exposition);
    write_partitions(out, exposition);
    write_requests(out, exposition, totals.precondition_lost);
    write_checkpoints(out, exposition);
    write_workers(out, exposition);
    if (exposition->connectors != NULL && exposition->connectors->count > 0) {
        write_connectors(out, exposition->connectors);
    }
    const char *name = write_head(out, METRIC_BUILD);
    (void)fprintf(out, "%s{version=\"%s\"} 1\n", name, exposition->version);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
