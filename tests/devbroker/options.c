/*
 * Reading the command line; see options.h for the contract.
 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "json.h"

static const char help[] =
    "usage: devbroker [options]\n"
    "A stand-in for the Queen broker's HTTP API, in memory, for tests and benchmarks.\n"
    "\n"
    "  --listen HOST:PORT       where to listen (127.0.0.1:0; port 0 is a free one, printed once ready)\n"
    "  --port-file FILE         write the port number there once ready\n"
    "  --token TOKEN            ask for this bearer token\n"
    "  --broker 1|2             which broker to be (1)\n"
    "  --queue NAME             queue of the loads that follow, or of the one before, and of --rate (orders)\n"
    "  --load FILE              load records, one JSON value a line\n"
    "  --load-log FILE          load a log in the lake's envelope, offsets and ts as they are\n"
    "  --partition-by FIELD     partition of a loaded record: this top-level field (else Default)\n"
    "  --load-repeat N          load it N times over (1)\n"
    "  --segment-records N      records a segment (100)\n"
    "  --base-time TIMESTAMP    ts of the first loaded segment (else ts are now)\n"
    "  --time-step-us N         from one loaded segment's ts to the next (1000)\n"
    "  --rate N                 push N records a second for as long as it runs\n"
    "  --rate-records N         ... until N have been pushed\n"
    "  --rate-partitions N      ... over N partitions (16)\n"
    "  --rate-payload-bytes N   ... of about N bytes each (200); with a --load its records are pushed instead\n"
    "  --safe-lag-ms N          how far safeTime lies behind the clock (5000)\n"
    "  --clock-offset-us N      how far the broker's clock lies ahead of this machine's (0)\n"
    "  --compression-ratio R    rendered bytes for one that maxBytes counts (4)\n"
    "  --rate-limits N          limit kv calls (429): N writes a second, at first twice as many, and twice that of\n"
    "                           reads; the broker's own N is 100\n"
    "  --retention-interval-ms N  how often retention deletes (5000)\n"
    "  --embed                  start the sink as a child and watch over it, as QUEEN_S3_EMBEDDED=true does: the\n"
    "                           binary QUEEN_S3_BIN, else queen-s3 beside this one\n"
    "  --help                   this text\n"
    "\n"
    "A load option after --load or --load-log belongs to that file, before the first one to all of them.\n"
    "Control routes, which no real broker has, are under /_dev/: GET /_dev/ lists them.\n";

enum option_code {
    OPTION_LISTEN = 1,
    OPTION_PORT_FILE,
    OPTION_TOKEN,
    OPTION_BROKER,
    OPTION_QUEUE,
    OPTION_LOAD,
    OPTION_LOAD_LOG,
    OPTION_PARTITION_BY,
    OPTION_LOAD_REPEAT,
    OPTION_SEGMENT_RECORDS,
    OPTION_BASE_TIME,
    OPTION_TIME_STEP,
    OPTION_RATE,
    OPTION_RATE_RECORDS,
    OPTION_RATE_PARTITIONS,
    OPTION_RATE_PAYLOAD,
    OPTION_SAFE_LAG,
    OPTION_CLOCK_OFFSET,
    OPTION_RATIO,
    OPTION_RATE_LIMITS,
    OPTION_RETENTION_INTERVAL,
    OPTION_EMBED,
    OPTION_HELP
};

static const struct option_name {
    const char *name;
    int takes;
    int value;
} option_names[] = {
    {"listen", required_argument, OPTION_LISTEN},
    {"port-file", required_argument, OPTION_PORT_FILE},
    {"token", required_argument, OPTION_TOKEN},
    {"broker", required_argument, OPTION_BROKER},
    {"queue", required_argument, OPTION_QUEUE},
    {"load", required_argument, OPTION_LOAD},
    {"load-log", required_argument, OPTION_LOAD_LOG},
    {"partition-by", required_argument, OPTION_PARTITION_BY},
    {"load-repeat", required_argument, OPTION_LOAD_REPEAT},
    {"segment-records", required_argument, OPTION_SEGMENT_RECORDS},
    {"base-time", required_argument, OPTION_BASE_TIME},
    {"time-step-us", required_argument, OPTION_TIME_STEP},
    {"rate", required_argument, OPTION_RATE},
    {"rate-records", required_argument, OPTION_RATE_RECORDS},
    {"rate-partitions", required_argument, OPTION_RATE_PARTITIONS},
    {"rate-payload-bytes", required_argument, OPTION_RATE_PAYLOAD},
    {"safe-lag-ms", required_argument, OPTION_SAFE_LAG},
    {"clock-offset-us", required_argument, OPTION_CLOCK_OFFSET},
    {"compression-ratio", required_argument, OPTION_RATIO},
    {"rate-limits", required_argument, OPTION_RATE_LIMITS},
    {"retention-interval-ms", required_argument, OPTION_RETENTION_INTERVAL},
    {"embed", no_argument, OPTION_EMBED},
    {"help", no_argument, OPTION_HELP},
};
#define OPTION_COUNT (sizeof option_names / sizeof option_names[0])

static bool read_integer(const char *value, int64_t low, int64_t high, int64_t *to)
{
    return json_integer(slice_of(value), to) && *to >= low && *to <= high;
}

static bool read_listen(const char *value, struct options *options)
{
    const char *colon = strrchr(value, ':');
    size_t size = colon == NULL ? 0 : (size_t)(colon - value);
    int64_t port = 0;

    if (size == 0 || size >= sizeof options->host || !read_integer(colon + 1, 0, 65535, &port)) {
        return false;
    }
    if (value[0] == '[' && value[size - 1] == ']') {
        value++;
        size -= 2;
    }
    memcpy(options->host, value, size);
    options->host[size] = '\0';
    options->port = (unsigned)port;
    return true;
}

static bool read_ratio(const char *value, double *ratio)
{
    char *end;

    *ratio = strtod(value, &end);
    return end != value && *end == '\0' && *ratio >= 0.01 && *ratio <= 1000.0;
}

static struct load *add_load(struct options *options, const char *file, bool is_log)
{
    struct load *load;

    options->loads = memory_resize(options->loads, options->load_count + 1, sizeof *options->loads);
    load = &options->loads[options->load_count++];
    *load = options->defaults;
    load->file = file;
    load->is_log = is_log;
    return load;
}

static bool apply_load_option(struct load *load, int option, const char *value)
{
    switch (option) {
    case OPTION_QUEUE: load->queue = value; return true;
    case OPTION_PARTITION_BY: load->partition_by = value; return true;
    case OPTION_LOAD_REPEAT: return read_integer(value, 0, INT64_C(1000000000), &load->repeat);
    case OPTION_SEGMENT_RECORDS: return read_integer(value, 1, 1000000, &load->segment_records);
    case OPTION_TIME_STEP: return read_integer(value, 0, INT64_C(86400000000), &load->time_step_us);
    default: load->has_base_time = true; return clock_parse(slice_of(value), &load->base_time_us);
    }
}

static bool apply_live_option(struct options *options, int option, const char *value)
{
    switch (option) {
    case OPTION_RATE: return read_integer(value, 0, INT64_C(100000000), &options->rate);
    case OPTION_RATE_RECORDS: return read_integer(value, 0, INT64_MAX, &options->rate_records);
    case OPTION_RATE_PARTITIONS: return read_integer(value, 1, 10000000, &options->rate_partitions);
    case OPTION_RATE_PAYLOAD: return read_integer(value, 2, 64 * 1024 * 1024, &options->rate_payload_bytes);
    default: return false;
    }
}

static bool apply_option(struct options *options, int option, const char *value)
{
    int64_t version = 1;

    switch (option) {
    case OPTION_LISTEN: return read_listen(value, options);
    case OPTION_PORT_FILE: options->port_file = value; return true;
    case OPTION_TOKEN: options->token = value; return true;
    case OPTION_BROKER: options->version_2 = slice_is(slice_of(value), "2"); return read_integer(value, 1, 2, &version);
    case OPTION_LOAD:
    case OPTION_LOAD_LOG: add_load(options, value, option == OPTION_LOAD_LOG); return true;
    case OPTION_SAFE_LAG: return read_integer(value, 0, 86400000, &options->safe_lag_ms);
    case OPTION_CLOCK_OFFSET:
        return read_integer(value, -INT64_C(1000000000000000), INT64_C(1000000000000000), &options->clock_offset_us);
    case OPTION_RATIO: return read_ratio(value, &options->compression_ratio);
    case OPTION_RATE_LIMITS: return read_integer(value, 1, 1000000, &options->kv_writes_per_second);
    case OPTION_RETENTION_INTERVAL: return read_integer(value, 10, 86400000, &options->retention_interval_ms);
    case OPTION_EMBED: options->embed = true; return true;
    case OPTION_RATE:
    case OPTION_RATE_RECORDS:
    case OPTION_RATE_PARTITIONS:
    case OPTION_RATE_PAYLOAD: return apply_live_option(options, option, value);
    default:
        return apply_load_option(
            options->load_count == 0 ? &options->defaults : &options->loads[options->load_count - 1], option, value);
    }
}

static void set_defaults(struct options *options)
{
    *options = (struct options){
        .host = "127.0.0.1",
        .defaults = {.queue = "orders", .repeat = 1, .segment_records = 100, .time_step_us = 1000},
        .rate_partitions = 16,
        .rate_payload_bytes = 200,
        .safe_lag_ms = 5000,
        .compression_ratio = 4.0,
        .retention_interval_ms = 5000,
    };
}

int options_parse(struct options *options, int count, char **arguments)
{
    struct option names[OPTION_COUNT + 1] = {{0}};
    int found;

    set_defaults(options);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        names[i] = (struct option){option_names[i].name, option_names[i].takes, NULL, option_names[i].value};
    }
    while ((found = getopt_long(count, arguments, "", names, NULL)) != -1) {
        if (found == OPTION_HELP) {
            fputs(help, stdout);
            return 1;
        }
        if (found == '?') {
            return 3;
        }
        if (!apply_option(options, found, optarg)) {
            fprintf(stderr, "devbroker: --%s does not take '%s'; see --help\n", option_names[found - 1].name, optarg);
            return 3;
        }
    }
    if (optind < count) {
        fprintf(stderr, "devbroker: '%s' is no option; see --help\n", arguments[optind]);
        return 3;
    }
    return 0;
}

void options_free(struct options *options)
{
    free(options->loads);
}
