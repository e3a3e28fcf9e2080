/*
 * The simulator: the driver's real code against models of the broker and the bucket, under schedules that a seed picks.
 *
 *     simulate [--seeds N] [--first SEED]     runs N seeds from SEED on
 *     simulate --seed S [--verbose]           runs one again, telling every event
 *
 * After each run the lake has to be exactly the log. No real time, no thread, no sleep: a seed gives the same run, byte
 * for byte, every time.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/sim/instance.h"

#define CHECK_EVERY   64
#define FAILURES_TOLD 100
#define EVENTS_MAX    3000000

struct options {
    uint64_t first;
    uint64_t count;
    bool one;
    bool verbose;
};

struct totals {
    uint64_t passed;
    uint64_t failed;
    uint64_t windows;
    uint64_t records;
    uint64_t lost;
    uint64_t missing_in_new_lives;
    uint64_t multiparts;
    uint64_t events;
};

void sim_fail(struct simulation *simulation, const char *format, ...)
{
    va_list arguments;
    if (simulation->failed)
        return;
    simulation->failed = true;
    va_start(arguments, format);
    vsnprintf(simulation->reason, sizeof simulation->reason, format, arguments);
    va_end(arguments);
    SIM_TRACE(simulation, "FAILED: %s", simulation->reason);
}

void sim_trace(const struct simulation *simulation, const char *format, ...)
{
    va_list arguments;
    printf("%10.3f  ", (double)simulation->scheduler.now / 1000.0);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

static void take_log_line(void *argument, enum log_level level, const char *line)
{
    (void)level;
    /* Its own time is this machine's: left out, so that a run is the same every time. */
    SIM_TRACE((struct simulation *)argument, "  log: %s", strlen(line) > 25 ? line + 25 : line);
}

/* ---- one run ---- */

static int64_t last_ts(const struct simulation *simulation, size_t queue)
{
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < simulation->log.record_count; i++) {
        const struct log_record *record = simulation->log.records[i];
        if (record->queue == queue && record->segment->deleted == NEVER && record->segment->ts > last)
            last = record->segment->ts;
    }
    return last;
}

/* The pointer has passed the last record of every queue that can still move. */
static bool everything_is_committed(struct simulation *simulation)
{
    static const char *const keys[QUEUES_MAX] = {"s3:default:orders:committed", "s3:default:a%2Fb:committed"};
    for (size_t queue = 0; queue < simulation->scenario.queue_count && queue < QUEUES_MAX; queue++) {
        struct broker_us end = {INT64_MIN};
        const struct document_row *row = documents_find(&simulation->documents, keys[queue]);
        const cJSON *text = row != NULL ? cJSON_GetObjectItemCaseSensitive(row->value, "tEnd") : NULL;
        if ((queue == 0 && simulation->pointer_lost) || last_ts(simulation, queue) == INT64_MIN)
            continue;
        if (text == NULL || !clock_parse_broker(text->valuestring, strlen(text->valuestring), &end) ||
            end.v <= last_ts(simulation, queue))
            return false;
    }
    return true;
}

static bool any_instance(const struct simulation *simulation)
{
    for (size_t i = 0; i < INSTANCES_MAX; i++)
        if (simulation->instances[i] != NULL)
            return true;
    return false;
}

static bool go_on(struct simulation *simulation, int64_t until)
{
    if (simulation->scheduler.dispatched > EVENTS_MAX)
        sim_fail(simulation, "more than %d events", EVENTS_MAX);
    return !simulation->failed && scheduler_step(&simulation->scheduler, until);
}

/* How long an end may take in the worst case: every backoff at its cap, a lease to wait for, windows to fill. */
static int64_t patience_ms(const struct scenario *scenario)
{
    return 300000 + 6 * scenario->lease_ttl_ms + 4 * scenario->max_window_ms + 4 * scenario->guard_ms +
           40 * scenario->discovery_interval_ms + 4 * scenario->weather.slow_ms;
}

static void run_to_the_end(struct simulation *simulation)
{
    struct scheduler *scheduler = &simulation->scheduler;
    int64_t deadline = scheduler->now + patience_ms(&simulation->scenario);
    size_t writes = 0;
    bool done = false;
    while (!done && !simulation->failed) {
        if (!any_instance(simulation))
            instance_start(simulation, 0, simulation->last_incarnation[0]);
        for (int i = 0; i < CHECK_EVERY && any_instance(simulation) && go_on(simulation, deadline); i++) {
            /* nothing more to do */
        }
        if (simulation->documents.write_count != writes)
            done = everything_is_committed(simulation);
        writes = simulation->documents.write_count;
        if (scheduler->now >= deadline)
            break;
    }
    if (!done && !simulation->failed && !everything_is_committed(simulation)) {
        check_lake(simulation, true);
        sim_fail(simulation, "not everything is committed after %lld s of calm",
                 (long long)patience_ms(&simulation->scenario) / 1000);
    }
}

static void drain(struct simulation *simulation)
{
    int64_t deadline = simulation->scheduler.now + patience_ms(&simulation->scenario);
    simulation->over = true;
    for (size_t i = 0; i < INSTANCES_MAX; i++)
        if (simulation->instances[i] != NULL)
            instance_drain(simulation->instances[i]);
    while (any_instance(simulation) && go_on(simulation, deadline)) {
        /* until all are gone */
    }
    if (any_instance(simulation))
        sim_fail(simulation, "a clean stop doesn't end");
}

/* Every call that is still under way ends. */
static void simulation_free(struct simulation *simulation)
{
    for (size_t i = 0; i < INSTANCES_MAX; i++)
        if (simulation->instances[i] != NULL)
            instance_crash(simulation->instances[i]);
    simulation->verbose = false;
    simulation->faults = false;
    simulation->over = true;
    while (scheduler_step(&simulation->scheduler, INT64_MAX)) {
        /* nothing of it matters any more */
    }
    scheduler_free(&simulation->scheduler);
    log_free(&simulation->log);
    documents_free(&simulation->documents);
    bucket_free(&simulation->bucket);
}

static void run(struct simulation *simulation)
{
    chance_seed(&simulation->chance, simulation->seed);
    scenario_choose(simulation);
    simulation->faults = true;
    scenario_begin(simulation);
    while (go_on(simulation, simulation->scenario.duration_ms)) {
        /* one event after the other */
    }
    scenario_calm(simulation);
    if (!simulation->failed)
        run_to_the_end(simulation);
    if (!simulation->failed)
        drain(simulation);
    if (!simulation->failed)
        check_lake(simulation, true);
}

static void add_up(struct totals *totals, const struct simulation *simulation)
{
    totals->passed += !simulation->failed;
    totals->failed += simulation->failed;
    totals->windows += simulation->windows;
    totals->records += simulation->records;
    totals->lost += simulation->lost;
    totals->missing_in_new_lives += simulation->missing_in_new_lives;
    totals->multiparts += simulation->bucket.multipart_completed;
    totals->events += simulation->scheduler.dispatched;
}

static void run_seed(uint64_t seed, bool verbose, struct totals *totals)
{
    struct simulation simulation = {.seed = seed, .verbose = verbose};
    log_capture(take_log_line, &simulation);
    run(&simulation);
    add_up(totals, &simulation);
    if (simulation.failed && totals->failed <= FAILURES_TOLD)
        printf("seed %" PRIu64 "%s: %s\n    to run it again: simulate --seed %" PRIu64 " --verbose\n", seed,
               simulation.scenario.tight ? " (little memory)" : "", simulation.reason, seed);
    simulation_free(&simulation);
    log_capture(NULL, NULL);
}

/* ---- the command ---- */

static void usage(void)
{
    fputs("usage: simulate [--seeds N] [--first SEED]\n       simulate --seed SEED [--verbose]\n", stderr);
    exit(2);
}

static uint64_t read_count(const char *text)
{
    char *end;
    unsigned long long value = text != NULL ? strtoull(text, &end, 10) : 0;
    if (text == NULL || *text == '\0' || *end != '\0')
        usage();
    return value;
}

static struct options read_options(int count, char **arguments)
{
    struct options options = {.first = 1, .count = 1000};
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--verbose") == 0) {
            options.verbose = true;
        } else if (strcmp(arguments[i], "--seeds") == 0) {
            options.count = read_count(arguments[++i]);
        } else if (strcmp(arguments[i], "--first") == 0) {
            options.first = read_count(arguments[++i]);
        } else if (strcmp(arguments[i], "--seed") == 0) {
            options.first = read_count(arguments[++i]);
            options.one = true;
        } else {
            usage();
        }
    }
    if (options.one)
        options.count = 1;
    return options;
}

int main(int count, char **arguments)
{
    struct options options = read_options(count, arguments);
    struct totals totals = {0};
    bool terminal = isatty(STDERR_FILENO) && !options.verbose;
    log_configure(options.verbose ? LOG_DEBUG : LOG_ERROR, false);
    for (uint64_t i = 0; i < options.count; i++) {
        run_seed(options.first + i, options.verbose, &totals);
        if (terminal && i % 50 == 0)
            fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " ", i, options.count);
    }
    if (terminal)
        fputs("\r", stderr);
    printf("%" PRIu64 " windows, %" PRIu64 " records, %" PRIu64 " told as lost, %" PRIu64
           " unseen in new lives, %" PRIu64 " multipart uploads, %" PRIu64 " events\n",
           totals.windows, totals.records, totals.lost, totals.missing_in_new_lives, totals.multiparts, totals.events);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", totals.passed, totals.failed);
    return totals.failed == 0 && totals.passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
