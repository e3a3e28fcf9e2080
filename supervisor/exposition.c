/*
 * See exposition.h. Each family is one function, in the order of the specification's table. A gauge that is not known
 * yet (the lag of a queue that has read nothing) has no sample until it is; from then on it stays.
 */
#include "supervisor/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void write_head(FILE *out, const char *name, const char *type, const char *help)
{
    (void)fprintf(out, "# HELP queen_s3_%s %s\n# TYPE queen_s3_%s %s\n", name, help, name, type);
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
    (void)fprintf(out, "queen_s3_%s{queue=", name);
    write_value(out, queue->name);
}

static void write_lag(FILE *out, const struct exposition *exposition)
{
    const struct collect *collect = exposition->collect;

    write_head(out, "lag_seconds", "gauge", "How far a queue's lake is behind the broker's clock.");
    for (size_t i = 0; i < collect->queue_count; i++) {
        const struct collected_queue *queue = &collect->queues[i];
        struct broker_us broker = {0};

        if (queue->last.through_us != INT64_MIN &&
            collect_broker_now(collect, queue->worker, exposition->now, &broker)) {
            int64_t lag_us = broker.v > queue->last.through_us ? broker.v - queue->last.through_us : 0;

            write_queue_label(out, "lag_seconds", queue);
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
    write_head(out, "safe_lag_seconds", "gauge", "This machine's clock less the newest safeTime of the broker.");
    if (largest_us != INT64_MIN) {
        (void)fprintf(out, "queen_s3_safe_lag_seconds %.6f\n", (double)largest_us / 1e6);
    }
}

static void write_queue_counters(FILE *out, const struct exposition *exposition)
{
    static const struct {
        const char *name;
        const char *help;
        size_t offset;
    } counters[] = {
        {"windows_committed_total", "Windows committed.", offsetof(struct queue_totals, windows_committed)},
        {"records_written_total", "Records in committed windows.", offsetof(struct queue_totals, records_written)},
        {"bytes_written_total", "Object bytes of committed windows, as stored.",
         offsetof(struct queue_totals, bytes_written)},
        {"records_lost_total", "Records that retention or deletion took before they were read.",
         offsetof(struct queue_totals, records_lost)},
    };

    for (size_t c = 0; c < sizeof counters / sizeof counters[0]; c++) {
        write_head(out, counters[c].name, "counter", counters[c].help);
        for (size_t i = 0; i < exposition->collect->queue_count; i++) {
            const struct collected_queue *queue = &exposition->collect->queues[i];
            struct queue_totals totals = collect_queue_totals(queue);

            write_queue_label(out, counters[c].name, queue);
            if (counters[c].offset == offsetof(struct queue_totals, bytes_written)) {
                (void)fprintf(out, ",format=\"%s\"", exposition->format);
            }
            (void)fprintf(out, "} %" PRIu64 "\n", *(const uint64_t *)((const char *)&totals + counters[c].offset));
        }
    }
}

/* counts: per bucket, the last above every bound. */
static void write_histogram(FILE *out, const char *name, const char *help, const char *const *bounds,
                            const uint64_t *counts, double sum)
{
    uint64_t cumulated = 0;

    write_head(out, name, "histogram", help);
    for (size_t i = 0; i <= REPORT_HISTOGRAM_BUCKETS; i++) {
        cumulated += counts[i];
        (void)fprintf(out, "queen_s3_%s_bucket{le=\"%s\"} %" PRIu64 "\n", name,
                      i < REPORT_HISTOGRAM_BUCKETS ? bounds[i] : "+Inf", cumulated);
    }
    (void)fprintf(out, "queen_s3_%s_sum %.17g\nqueen_s3_%s_count %" PRIu64 "\n", name, sum, name, cumulated);
}

static void write_windows(FILE *out, const struct worker_totals *totals)
{
    static const char *const records[REPORT_HISTOGRAM_BUCKETS] = {
        "1", "10", "100", "1000", "10000", "100000", "1000000", "10000000",
    };
    static const char *const bytes[REPORT_HISTOGRAM_BUCKETS] = {
        "1048576", "4194304", "16777216", "67108864", "134217728", "268435456", "536870912", "1073741824",
    };

    write_histogram(out, "window_records", "Records of a committed window.", records, totals->window_records,
                    totals->window_records_sum);
    write_histogram(out, "window_bytes", "Object bytes of a committed window, as stored.", bytes, totals->window_bytes,
                    totals->window_bytes_sum);
}

static void write_buffer(FILE *out, const struct exposition *exposition)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < exposition->collect->worker_limit; i++) {
        sum += exposition->collect->workers[i].buffer_bytes;
    }
    write_head(out, "buffer_bytes", "gauge", "Memory that holds records and uploads, of all workers.");
    (void)fprintf(out, "queen_s3_buffer_bytes %" PRIu64 "\n", sum);
}

static void write_fetches(FILE *out, const struct exposition *exposition)
{
    write_head(out, "fetch_calls_total", "counter", "Fetch calls to the broker that named this queue.");
    for (size_t i = 0; i < exposition->collect->queue_count; i++) {
        const struct collected_queue *queue = &exposition->collect->queues[i];
        struct queue_totals totals = collect_queue_totals(queue);

        write_queue_label(out, "fetch_calls_total", queue);
        (void)fprintf(out, ",result=\"ok\"} %" PRIu64 "\n", totals.fetch_ok);
        write_queue_label(out, "fetch_calls_total", queue);
        (void)fprintf(out, ",result=\"error\"} %" PRIu64 "\n", totals.fetch_error);
    }
}

static void write_partitions(FILE *out, const struct exposition *exposition)
{
    write_head(out, "discovery_partitions", "gauge", "Partitions known of a queue.");
    for (size_t i = 0; i < exposition->collect->queue_count; i++) {
        const struct collected_queue *queue = &exposition->collect->queues[i];

        write_queue_label(out, "discovery_partitions", queue);
        (void)fprintf(out, "} %" PRIu64 "\n", queue->last.partitions);
    }
}

static void write_requests(FILE *out, const struct exposition *exposition, uint64_t precondition_lost)
{
    const struct collect *collect = exposition->collect;

    write_head(out, "s3_requests_total", "counter", "Requests to the bucket; code 0: no answer.");
    for (size_t i = 0; i < collect->request_count; i++) {
        const struct request_series *series = &collect->requests[i];

        (void)fprintf(out, "queen_s3_s3_requests_total{op=\"%s\",code=\"%" PRId32 "\"} %" PRIu64 "\n",
                      store_operation_name((enum store_operation)series->operation), series->code,
                      collect_requests(collect, series));
    }
    write_head(out, "commit_precondition_lost_total", "counter", "Queues stopped because another instance had them.");
    (void)fprintf(out, "queen_s3_commit_precondition_lost_total %" PRIu64 "\n", precondition_lost);
}

static void write_checkpoints(FILE *out, const struct exposition *exposition)
{
    write_head(out, "checkpoint_age_windows", "gauge", "Windows committed since a queue's newest checkpoint.");
    for (size_t i = 0; i < exposition->collect->queue_count; i++) {
        const struct collected_queue *queue = &exposition->collect->queues[i];
        int64_t checkpoint = queue->last.checkpoint_k < 0 ? 0 : queue->last.checkpoint_k;

        if (queue->last.k >= 0) {
            write_queue_label(out, "checkpoint_age_windows", queue);
            (void)fprintf(out, "} %" PRId64 "\n", queue->last.k > checkpoint ? queue->last.k - checkpoint : 0);
        }
    }
}

static void write_workers(FILE *out, const struct exposition *exposition)
{
    const struct exposition_worker *workers = exposition->workers;

    write_head(out, "workers", "gauge", "Workers of this pool.");
    (void)fprintf(out, "queen_s3_workers %zu\n", exposition->worker_count);
    write_head(out, "worker_up", "gauge", "1 while the worker's process is there.");
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "queen_s3_worker_up{worker=\"%zu\"} %d\n", i, workers[i].up ? 1 : 0);
    }
    write_head(out, "worker_restarts_total", "counter", "Restarts of the worker after it died.");
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "queen_s3_worker_restarts_total{worker=\"%zu\"} %" PRIu64 "\n", i, workers[i].restarts);
    }
    write_head(out, "worker_backoff_seconds", "gauge", "The wait before the worker's restart, 0 while it needs none.");
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "queen_s3_worker_backoff_seconds{worker=\"%zu\"} %g\n", i, workers[i].backoff_seconds);
    }
    write_head(out, "worker_resident_bytes", "gauge", "Resident memory of the worker.");
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "queen_s3_worker_resident_bytes{worker=\"%zu\"} %" PRIu64 "\n", i,
                      workers[i].resident_bytes);
    }
    write_head(out, "worker_cpu_seconds_total", "counter", "Processor time of the worker, over all its restarts.");
    for (size_t i = 0; i < exposition->worker_count; i++) {
        (void)fprintf(out, "queen_s3_worker_cpu_seconds_total{worker=\"%zu\"} %.6f\n", i, workers[i].cpu_seconds);
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
    write_head(out, "build_info", "gauge", "1, with the version of the program.");
    (void)fprintf(out, "queen_s3_build_info{version=\"%s\"} 1\n", exposition->version);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
