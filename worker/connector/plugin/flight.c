/* A file on its way up: flight.h. */
#include "worker/connector/plugin/flight.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

void lost_keys_init(struct lost_keys *lost)
{
    memset(lost, 0, sizeof *lost);
    pthread_mutex_init(&lost->lock, NULL);
}

void lost_keys_free(struct lost_keys *lost)
{
    for (size_t i = 0; i < lost->count; i++) {
        free(lost->keys[i]);
    }
    pthread_mutex_destroy(&lost->lock);
}

static void forget_oldest(struct lost_keys *lost)
{
    free(lost->keys[0]);
    lost->count--;
    memmove(lost->keys, lost->keys + 1, lost->count * sizeof *lost->keys);
}

/* Returns the records lost so far. A key that no memory can be had for is one whose marker stays. */
static uint64_t lost_keys_add(struct lost_keys *lost, const char *key, uint64_t records)
{
    pthread_mutex_lock(&lost->lock);
    if (lost->count == LOST_KEYS_MAX) {
        forget_oldest(lost);
    }
    char *copy = strdup(key);
    if (copy != NULL) {
        lost->keys[lost->count++] = copy;
    }
    uint64_t total = lost->records += records;
    pthread_mutex_unlock(&lost->lock);
    return total;
}

/* Whether it was among them; it no longer is. */
static bool lost_keys_take(struct lost_keys *lost, const char *key)
{
    bool found = false;

    pthread_mutex_lock(&lost->lock);
    for (size_t i = 0; i < lost->count && !found; i++) {
        found = strcmp(lost->keys[i], key) == 0;
        if (found) {
            free(lost->keys[i]);
            lost->count--;
            memmove(lost->keys + i, lost->keys + i + 1, (lost->count - i) * sizeof *lost->keys);
        }
    }
    pthread_mutex_unlock(&lost->lock);
    return found;
}

static struct flight *flight_of(struct network_job *job)
{
    return (struct flight *)(void *)((char *)job - offsetof(struct flight, job));
}

static void conclude(struct flight *flight, enum flight_result result)
{
    flight->result = result;
    flight->done(flight);
}

static void name_marker(struct flight *flight)
{
    snprintf(flight->other_key, sizeof flight->other_key, "%s.lost", flight->key);
}

/* body: NULL to remove it. Patient: once the sink is closed nothing else will ever say what it says. */
static void marker_send(struct flight *flight, const struct object_body *body, void (*done)(struct network_job *job))
{
    flight->job = (struct network_job){.key = flight->other_key,
                                       .content_type = "text/plain; charset=utf-8",
                                       .body = body,
                                       .max_attempts = flight->options->max_attempts,
                                       .second_delay_ms = 2 * flight->options->retry_delay_ms,
                                       .patient = true,
                                       .done = done};
    network_submit(flight->network, &flight->job);
}

static void marker_removed(struct network_job *job)
{
    struct flight *flight = flight_of(job);

    if (job->error.code != QS_OK) {
        log_line(LOG_WARN, NULL, "%s is up, but its marker %s can't be deleted: %s", flight->key, flight->other_key,
                 job->error.message);
    }
    conclude(flight, FLIGHT_UP);
}

static void file_is_up(struct flight *flight)
{
    log_line(LOG_DEBUG, NULL, "%s is up: %" PRIu64 " records, %" PRIu64 " bytes", flight->key, flight->file.count,
             flight->file.body.size);
    if (!lost_keys_take(flight->lost, flight->key)) {
        conclude(flight, FLIGHT_UP);
        return;
    }
    name_marker(flight);
    marker_send(flight, NULL, marker_removed);
}

static void marker_written(struct network_job *job)
{
    struct flight *flight = flight_of(job);

    if (job->error.code != QS_OK) {
        log_line(LOG_ERROR, NULL, "the marker %s can't be written: %s", flight->other_key, job->error.message);
    }
    sink_body_clear(&flight->marker_body);
    conclude(flight, FLIGHT_LOST);
}

/* Three lines, each ended by a line feed (spec 5.2). */
static bool make_marker(struct flight *flight)
{
    const struct open_file *file = &flight->file;
    int size = snprintf(flight->marker_text, sizeof flight->marker_text,
                        "offset_range: %" PRIu64 "-%" PRIu64 "\nmessage_count: %" PRIu64 "\nerror: %s\n",
                        file->first_offset, file->last_offset, file->count, flight->error.message);

    return size > 0 && (size_t)size < sizeof flight->marker_text &&
           sink_body_add(&flight->marker_body, flight->marker_text, (size_t)size) &&
           sink_bucket_body(flight->options, &flight->marker_body, &flight->body);
}

void flight_lose(struct flight *flight)
{
    const struct open_file *file = &flight->file;

    if (!flight->marker) {
        log_line(LOG_ERROR, NULL, "%s can't be uploaded: %s", flight->key, flight->error.message);
        conclude(flight, FLIGHT_LOST);
        return;
    }
    uint64_t total = lost_keys_add(flight->lost, flight->key, file->count);
    log_line(LOG_ERROR, NULL, "%s can't be uploaded, its %" PRIu64 " records are lost (%" PRIu64 " so far): %s",
             flight->key, file->count, total, flight->error.message);
    name_marker(flight);
    if (!make_marker(flight)) {
        log_line(LOG_ERROR, NULL, "the marker %s can't be written: out of memory", flight->other_key);
        conclude(flight, FLIGHT_LOST);
        return;
    }
    marker_send(flight, &flight->body, marker_written);
}

static void file_put(struct network_job *job)
{
    struct flight *flight = flight_of(job);

    flight->error = job->error;
    if (job->error.code == QS_OK) {
        file_is_up(flight);
    } else if (job->cut) {
        conclude(flight, FLIGHT_CUT);
    } else {
        flight_lose(flight);
    }
}

void flight_start(struct flight *flight)
{
    flight->job = (struct network_job){.key = flight->key,
                                       .content_type = sink_shape_content_type(&flight->shape),
                                       .body = &flight->body,
                                       .max_attempts = flight->max_attempts,
                                       /* doubled n - 1 times before attempt n (seed) */
                                       .second_delay_ms = 2 * flight->options->retry_delay_ms,
                                       .done = file_put};
    network_submit(flight->network, &flight->job);
}

void flight_clear(struct flight *flight)
{
    open_file_clear(&flight->file);
    sink_body_clear(&flight->marker_body);
}
