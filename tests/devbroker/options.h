/*
 * The command line of the development broker.
 */
#ifndef DEVBROKER_OPTIONS_H
#define DEVBROKER_OPTIONS_H

#include "text.h"

struct load { /* one file to be loaded before the broker listens */
    const char *file;
    bool is_log; /* the lake's envelope lines, not plain records */
    const char *queue;
    const char *partition_by; /* NULL: all in partition Default */
    int64_t repeat;
    int64_t segment_records;
    bool has_base_time;
    int64_t base_time_us;
    int64_t time_step_us;
};

struct options {
    char host[256];
    unsigned port;
    const char *port_file;
    const char *token;
    bool version_2;
    struct load *loads;
    size_t load_count;
    struct load defaults; /* of loads that come after, and of the live load */
    int64_t rate;         /* records a second; 0 is none */
    int64_t rate_records; /* in total; 0 is no end */
    int64_t rate_partitions;
    int64_t rate_payload_bytes;
    int64_t safe_lag_ms;
    int64_t clock_offset_us;
    double compression_ratio;
    int64_t kv_writes_per_second; /* 0: no limit */
    int64_t retention_interval_ms;
    bool embed; /* --embed; the environment may ask for it as well */
};

/* Returns 0 to go on, or the exit code plus one: 1 after --help, 3 after an error, which has been printed. */
int options_parse(struct options *options, int count, char **arguments);
void options_free(struct options *options);

#endif
