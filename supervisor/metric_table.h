/*
 * The metrics of spec 3.11 and 4.3, one row a family, in the order in which a scrape shows them. exposition.c writes
 * from it, queen-s3-metrics(7) is made of it: a metric has a name here or nowhere.
 */
#ifndef SUPERVISOR_METRIC_TABLE_H
#define SUPERVISOR_METRIC_TABLE_H

enum metric {
    METRIC_LAG,
    METRIC_SAFE_LAG,
    METRIC_WINDOWS_COMMITTED,
    METRIC_RECORDS_WRITTEN,
    METRIC_BYTES_WRITTEN,
    METRIC_RECORDS_LOST,
    METRIC_WINDOW_RECORDS,
    METRIC_WINDOW_BYTES,
    METRIC_BUFFER_BYTES,
    METRIC_FETCH_CALLS,
    METRIC_PARTITIONS,
    METRIC_REQUESTS,
    METRIC_PRECONDITION_LOST,
    METRIC_CHECKPOINT_AGE,
    METRIC_WORKERS,
    METRIC_WORKER_UP,
    METRIC_WORKER_RESTARTS,
    METRIC_WORKER_BACKOFF,
    METRIC_WORKER_RESIDENT,
    METRIC_WORKER_CPU,
    METRIC_CONNECTORS,
    METRIC_CONNECTORS_RUNNING,
    METRIC_CONNECTOR_CONSUMED,
    METRIC_CONNECTOR_PROCESSED,
    METRIC_CONNECTOR_FILTERED,
    METRIC_CONNECTOR_ERRORS,
    METRIC_BUILD,
    METRIC_COUNT
};

struct metric_row {
    const char *name; /* whole: "queen_s3_lag_seconds" */
    const char *type; /* "gauge", "counter" or "histogram" */
    const char *labels[2];
    const char *help;    /* the HELP line */
    const char *meaning; /* what an operator makes of it, for the manual: a text as command.h has them */
};

extern const struct metric_row metric_table[METRIC_COUNT];

#endif
