/* Opening and closing a sink: sink.h. */
#include "worker/connector/plugin/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/plugin/keeper.h"
#include "worker/connector/plugin/spool_take.h"

/* Of the time that close has, what is left for markers. */
#define MARKER_MS 5000

/* What close waits for a probe that is still under way, and then for its end after each time it is cut. */
#define PROBE_MS 2000

static const struct mono_ms for_ever = {INT64_MAX / 2};

struct timespec sink_timespec(struct mono_ms at)
{
    return (struct timespec){.tv_sec = (time_t)(at.v / 1000), .tv_nsec = (long)(at.v % 1000) * 1000000};
}

pico_log_fn sink_log(const struct sink *sink)
{
    return sink->log;
}

/* ---- the probe: an empty object is written and deleted (seed, "How it works") ---- */

static void probe_ended(struct sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->probe.ended = true;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

static struct sink *sink_of(struct network_job *job)
{
    return (struct sink *)(void *)((char *)job - offsetof(struct sink, probe.job));
}

static void probe_removed(struct network_job *job)
{
    if (job->error.code != QS_OK && !job->cut) {
        log_line(LOG_WARN, NULL, "%s can't be deleted again: %s", SINK_PROBE_KEY, job->error.message);
    }
    probe_ended(sink_of(job));
}

static void probe_written(struct network_job *job)
{
    struct sink *sink = sink_of(job);

    if (job->error.code == QS_OK) {
        *job = (struct network_job){.key = SINK_PROBE_KEY, .max_attempts = 1, .done = probe_removed};
        network_submit(sink->network, job);
        return;
    }
    if (!job->cut) {
        log_line(LOG_ERROR, NULL, "S3 bucket '%s' connectivity check failed: %s", sink->options.store.bucket,
                 job->error.message);
    }
    sink->probe.failed = true;
    probe_ended(sink);
}

static void probe_start(struct sink *sink)
{
    static const struct sink_body nothing;

    (void)sink_bucket_body(&sink->options, &nothing, &sink->probe.body);
    sink->probe.job = (struct network_job){.key = SINK_PROBE_KEY,
                                           .content_type = "application/octet-stream",
                                           .body = &sink->probe.body,
                                           .max_attempts = 1,
                                           .done = probe_written};
    network_submit(sink->network, &sink->probe.job);
}

/* Whether it has ended by then. */
static bool probe_wait(struct sink *sink, struct mono_ms deadline)
{
    struct timespec until = sink_timespec(deadline);
    int timed_out = 0;

    pthread_mutex_lock(&sink->lock);
    while (!sink->probe.ended && timed_out == 0) {
        timed_out = pthread_cond_timedwait(&sink->changed, &sink->lock, &until);
    }
    bool ended = sink->probe.ended;
    pthread_mutex_unlock(&sink->lock);
    return ended;
}

/* Not cut at once: between its write and its removal the object would stay in the bucket. */
static void probe_finish(struct sink *sink)
{
    while (!probe_wait(sink, (struct mono_ms){clock_mono().v + PROBE_MS})) {
        network_cancel_all(sink->network);
    }
}

/* ---- opening ---- */

static void init_lock(struct sink *sink)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&sink->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sink->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void sink_free(struct sink *sink)
{
    if (sink->network != NULL) {
        network_stop(sink->network);
    }
    partitions_free(sink);
    lost_keys_free(&sink->lost);
    pthread_cond_destroy(&sink->changed);
    pthread_mutex_destroy(&sink->lock);
    spool_close(sink->spool);
    sink_options_free(&sink->options);
    free(sink);
}

static bool wants_keeper(const struct sink *sink)
{
    return sink->spool != NULL || (sink->options.max_file_age_ms > 0 && sink->options.durability == SINK_BUFFERED);
}

/* 0, or the answer with *error. */
static int32_t set_up(struct sink *sink, struct error *error)
{
    const struct sink_options *options = &sink->options;

    sink->network = network_start(options, sink->log, error);
    if (sink->network == NULL) {
        return SINK_REFUSED;
    }
    if (options->durability != SINK_SPOOLED) {
        probe_start(sink);
        (void)probe_wait(sink, for_ever);
        if (sink->probe.failed) {
            return SINK_REFUSED; /* told already */
        }
    } else {
        sink->spool = spool_open(options->spool_dir, error);
        if (sink->spool == NULL) {
            return SINK_REFUSED;
        }
    }
    if (wants_keeper(sink) && (sink->keeper = keeper_start(sink, error)) == NULL) {
        return SINK_REFUSED;
    }
    if (sink->spool != NULL) {
        if (sink_recover(sink, error) != 0) {
            struct keeper_flights none = TAILQ_HEAD_INITIALIZER(none);
            pthread_mutex_lock(&sink->lock);
            sink->closing = true;
            pthread_mutex_unlock(&sink->lock);
            keeper_stop(sink->keeper, clock_mono(), &none);
            return SINK_REFUSED;
        }
        probe_start(sink);
    }
    return 0;
}

static const char *const durability_names[] = {
    [SINK_BUFFERED] = "buffered", [SINK_SPOOLED] = "spooled", [SINK_UPLOADED] = "uploaded"};

int32_t sink_open(const uint8_t *config, size_t config_size, pico_log_fn log, struct sink **opened)
{
    struct sink *sink = memory_new(1, sizeof *sink);
    struct error error;
    int32_t answer = sink_options_parse((const char *)config, config != NULL ? config_size : 0, &sink->options, &error);

    *opened = NULL;
    sink->log = log;
    init_lock(sink);
    lost_keys_init(&sink->lost);
    if (answer == 0) {
        sink->needs_date = (sink->options.shape.include_metadata && sink->options.shape.format != SINK_RAW) ||
                           path_template_has_date(sink->options.path_template);
        error_clear(&error);
        answer = set_up(sink, &error);
    }
    if (answer != 0) {
        if (error.message[0] != '\0') {
            log_line(LOG_ERROR, NULL, "%s", error.message);
        }
        sink_free(sink);
        return answer;
    }
    log_line(LOG_INFO, NULL, "S3 sink open: bucket %s at %s, prefix '%s', durability %s", sink->options.store.bucket,
             sink->options.store.endpoint, sink->options.store.prefix != NULL ? sink->options.store.prefix : "",
             durability_names[sink->options.durability]);
    *opened = sink;
    return 0;
}

/* ---- closing ---- */

void sink_close_begin(struct sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->closing = true;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
    network_hurry(sink->network);
}

void sink_close_press(struct sink *sink)
{
    network_cancel_all(sink->network);
}

/* A file that is open goes up. */
static void send_off(struct sink *sink, struct sink_partition *partition, struct keeper_flights *flights)
{
    struct keeper_flight *flight = memory_new(1, sizeof *flight);
    struct error error;

    if (sink_prepare_flight(sink, partition, &flight->flight, &error) != 0) {
        log_line(LOG_ERROR, NULL, "topic %.*s, partition %" PRId32 ": %" PRIu64 " records are lost: %s",
                 partition->topic_size < 256 ? (int)partition->topic_size : 256, partition->topic, partition->number,
                 partition->file.count, error.message);
        free(flight);
        return;
    }
    flight->sink = sink;
    flight->flight.done = keeper_flight_ended;
    TAILQ_INSERT_TAIL(flights, flight, link);
    flight_start(&flight->flight);
}

/* No call is left and no keeper: nobody else looks at the table. */
static void send_off_all(struct sink *sink, struct keeper_flights *flights)
{
    for (size_t i = 0; i < sink->table_size; i++) {
        for (struct sink_partition *partition = LIST_FIRST(&sink->table[i]); partition != NULL;
             partition = LIST_NEXT(partition, link)) {
            if (partition->file.count > 0) {
                send_off(sink, partition, flights);
            }
        }
    }
}

/* What close had cut short before goes up once more; what is still in flight stays there. */
static void send_off_again(struct sink *sink, const struct keeper_flights *flights)
{
    for (struct keeper_flight *flight = TAILQ_FIRST(flights); flight != NULL; flight = TAILQ_NEXT(flight, link)) {
        pthread_mutex_lock(&sink->lock);
        bool again = flight->ended && flight->flight.result == FLIGHT_CUT;
        flight->ended = flight->ended && !again;
        pthread_mutex_unlock(&sink->lock);
        if (again) {
            flight_start(&flight->flight);
        }
    }
}

/* Whether all have ended by then. */
static bool wait_for_all(struct sink *sink, struct keeper_flights *flights, struct mono_ms deadline)
{
    struct timespec until = sink_timespec(deadline);
    struct keeper_flight *flight = TAILQ_FIRST(flights);
    int timed_out = 0;

    pthread_mutex_lock(&sink->lock);
    while (flight != NULL && timed_out == 0) {
        if (flight->ended) {
            flight = TAILQ_NEXT(flight, link);
        } else {
            timed_out = pthread_cond_timedwait(&sink->changed, &sink->lock, &until);
        }
    }
    pthread_mutex_unlock(&sink->lock);
    return flight == NULL;
}

static void wait_at_most(struct sink *sink, struct keeper_flights *flights, struct mono_ms deadline)
{
    if (!wait_for_all(sink, flights, deadline)) {
        network_cancel_all(sink->network);
        (void)wait_for_all(sink, flights, for_ever);
    }
}

/* What time did not suffice for is lost, and leaves a marker as what failed. */
static void give_up(struct sink *sink, struct keeper_flights *flights, struct mono_ms deadline)
{
    for (struct keeper_flight *flight = TAILQ_FIRST(flights); flight != NULL; flight = TAILQ_NEXT(flight, link)) {
        if (flight->flight.result == FLIGHT_CUT) {
            flight->ended = false;
            flight_lose(&flight->flight);
        }
    }
    wait_at_most(sink, flights, deadline);
}

static void put_up(struct sink *sink, struct keeper_flights *flights, struct mono_ms deadline)
{
    struct keeper_flight *flight;

    send_off_again(sink, flights);
    send_off_all(sink, flights);
    wait_at_most(sink, flights, (struct mono_ms){deadline.v - MARKER_MS});
    give_up(sink, flights, deadline);
    while ((flight = TAILQ_FIRST(flights)) != NULL) {
        TAILQ_REMOVE(flights, flight, link);
        flight_clear(&flight->flight);
        free(flight);
    }
}

void sink_close_end(struct sink *sink, struct mono_ms deadline)
{
    struct keeper_flights flights = TAILQ_HEAD_INITIALIZER(flights);

    if (sink->spool != NULL) {
        sink_spool_rest(sink);
    }
    if (sink->keeper != NULL) {
        keeper_stop(sink->keeper, deadline, &flights);
    }
    if (sink->spool == NULL) {
        put_up(sink, &flights, deadline);
    }
    probe_finish(sink);
    log_line(LOG_INFO, NULL, "S3 sink closed");
    sink_free(sink);
}
