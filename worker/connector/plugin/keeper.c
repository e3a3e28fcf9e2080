/*
 * The keeper (keeper.h). One turn: what got old is closed; what has ended is put away; what waits is sent off, a few at a
 * time; then it sleeps until one of these can have changed.
 */
#include "worker/connector/plugin/keeper.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/plugin/spool_take.h"

/* Files of the spool that are in memory at a time: several, for small ones, but no more than so many bytes, unless one
 * alone has more. */
#define FLIGHTS_MAX  8
#define FLIGHT_BYTES (UINT64_C(64) << 20)
/* A file that can't be read or sent off now: for want of memory or descriptors. */
#define RETRY_MS 1000

struct keeper {
    struct sink *sink;
    pthread_t thread;
    struct log_limit limit; /* the thread's own */
    /* Under the sink's lock. */
    bool stop;
    struct mono_ms deadline;
    struct spool_files queue;
    struct keeper_flights flights;
    size_t flight_count;
    uint64_t flight_bytes;
    struct mono_ms not_before;  /* of the next file of the queue */
    struct keeper_flights left; /* cut short, to be put up by close */
};

void keeper_flight_ended(struct flight *flight)
{
    struct keeper_flight *ended = (struct keeper_flight *)(void *)flight;
    struct sink *sink = ended->sink;

    pthread_mutex_lock(&sink->lock);
    ended->ended = true;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

void keeper_queue(struct keeper *keeper, struct spool_file *spooled)
{
    TAILQ_INSERT_TAIL(&keeper->queue, spooled, link);
    pthread_cond_broadcast(&keeper->sink->changed);
}

static void flight_free(struct keeper_flight *flight)
{
    flight_clear(&flight->flight);
    free(flight);
}

static void send_off(struct keeper *keeper, struct keeper_flight *flight, uint64_t bytes)
{
    flight->sink = keeper->sink;
    flight->flight.done = keeper_flight_ended;
    pthread_mutex_lock(&keeper->sink->lock);
    TAILQ_INSERT_TAIL(&keeper->flights, flight, link);
    keeper->flight_count++;
    keeper->flight_bytes += bytes;
    pthread_mutex_unlock(&keeper->sink->lock);
    flight_start(&flight->flight);
}

/* ---- what got old ---- */

struct aging {
    struct mono_ms before; /* opened until then: old */
    struct mono_ms oldest; /* of the others */
    struct sink_partition *old;
};

static void look_at_age(struct sink_partition *partition, void *argument)
{
    struct aging *aging = argument;

    /* Who has it busy broadcasts in the end; then it is looked at again. */
    if (partition->busy || partition->file.count == 0) {
        return;
    }
    if (partition->file.opened.v <= aging->before.v) {
        aging->old = partition;
    } else if (partition->file.opened.v < aging->oldest.v) {
        aging->oldest = partition->file.opened;
    }
}

/* The lock is held, and let go for the while. */
static void close_old_file(struct keeper *keeper, struct sink_partition *partition)
{
    struct sink *sink = keeper->sink;
    struct error error;

    if (sink->spool != NULL) {
        sink_spool_rotate(sink, partition);
        return;
    }
    partition->busy = true;
    pthread_mutex_unlock(&sink->lock);
    struct keeper_flight *flight = calloc(1, sizeof *flight);
    if (flight != NULL && sink_prepare_flight(sink, partition, &flight->flight, &error) == 0) {
        flight->partition = partition;
        send_off(keeper, flight, 0);
    } else {
        log_line(LOG_ERROR, NULL, "a file of age can't be closed now: %s",
                 flight != NULL ? error.message : "out of memory");
        partition->file.opened = clock_mono();
        free(flight);
    }
    partition_give(sink, partition);
    pthread_mutex_lock(&sink->lock);
}

/* When the next one gets old; the lock is held. */
static struct mono_ms close_old_files(struct keeper *keeper)
{
    struct sink *sink = keeper->sink;
    int64_t age = sink->options.max_file_age_ms;
    struct aging aging;

    if (age == 0 || sink->closing) {
        return (struct mono_ms){INT64_MAX};
    }
    do {
        aging = (struct aging){.before = {clock_mono().v - age}, .oldest = {INT64_MAX}};
        for (size_t i = 0; i < sink->table_size; i++) {
            for (struct sink_partition *partition = LIST_FIRST(&sink->table[i]); partition != NULL;
                 partition = LIST_NEXT(partition, link)) {
                look_at_age(partition, &aging);
            }
        }
        if (aging.old != NULL) {
            close_old_file(keeper, aging.old);
        }
    } while (aging.old != NULL);
    return (struct mono_ms){aging.oldest.v == INT64_MAX ? INT64_MAX : aging.oldest.v + age};
}

/* ---- what has ended ---- */

/* Who the records of the partition's last batch are: must be known before their file goes. */
static int write_note(struct sink *sink, struct sink_partition *partition, struct error *error)
{
    struct sink_slice topic = partition_topic(partition);

    error_clear(error);
    if (!partition->note_is_stale) {
        return 0;
    }
    int code = spool_note_reserve(sink->spool, topic, partition->last.count + partition->recovered.count, error);
    if (code == 0) {
        code = spool_note_write(sink->spool, &partition->note, topic, partition->number, &partition->last,
                                &partition->recovered, error);
    }
    partition->note_is_stale = code != 0;
    return code;
}

/* The file leaves the disk, whatever comes of its note: a disk that is full gets empty in no other way. */
static void let_go(struct sink *sink, struct spool_file *spooled)
{
    struct error error;

    pthread_mutex_lock(&sink->lock);
    struct sink_partition *partition =
        partition_find(sink, (struct sink_slice){spooled->topic, spooled->topic_size}, spooled->partition);
    pthread_mutex_unlock(&sink->lock);
    if (partition == NULL) {
        /* It stays, and is put up again after the next open: the same bytes under the same key. */
        log_line(LOG_ERROR, NULL, "a file that is up stays in the spool: out of memory for a topic's name");
        spool_file_free(spooled);
        return;
    }
    partition_hold(sink, partition);
    int code = write_note(sink, partition, &error);
    spool_file_retire(spooled);
    if (code != 0 && write_note(sink, partition, &error) != 0) {
        log_line(LOG_ERROR, NULL,
                 "topic %.*s, partition %d: which records its last batch had can't be noted: should the host be killed "
                 "now, a batch that comes again would be doubled: %s",
                 partition->topic_size < 256 ? (int)partition->topic_size : 256, partition->topic,
                 (int)partition->number, error.message);
    }
    partition_give(sink, partition);
}

/* Of a file of age that failed for good: a batch that was not confirmed yet may have begun in it, and comes again. */
static void forget_lost(struct sink *sink, const struct keeper_flight *flight)
{
    if (flight->flight.result == FLIGHT_LOST) {
        partition_hold(sink, flight->partition);
        seen_forget(&flight->partition->last, &flight->flight.file.seen);
        partition_give(sink, flight->partition);
    }
}

static void put_away_spooled(struct keeper *keeper, struct keeper_flight *flight)
{
    struct sink *sink = keeper->sink;
    struct spool_file *spooled = flight->spooled;

    if (flight->flight.result == FLIGHT_UP) {
        let_go(sink, spooled);
    } else if (flight->last_round) {
        spool_file_free(spooled); /* it stays on disk for the next open */
    } else {
        pthread_mutex_lock(&sink->lock);
        TAILQ_INSERT_HEAD(&keeper->queue, spooled, link);
        pthread_mutex_unlock(&sink->lock);
    }
}

static bool any_ended(const struct keeper *keeper)
{
    bool any = false;

    for (const struct keeper_flight *flight = TAILQ_FIRST(&keeper->flights); flight != NULL;
         flight = TAILQ_NEXT(flight, link)) {
        any = any || flight->ended;
    }
    return any;
}

/* Those that have ended, but what close is to put up again. */
static void take_ended(struct keeper *keeper, struct keeper_flights *ended)
{
    struct keeper_flight *next;

    for (struct keeper_flight *flight = TAILQ_FIRST(&keeper->flights); flight != NULL; flight = next) {
        next = TAILQ_NEXT(flight, link);
        if (!flight->ended) {
            continue;
        }
        TAILQ_REMOVE(&keeper->flights, flight, link);
        keeper->flight_count--;
        keeper->flight_bytes -= flight->spooled != NULL ? flight->spooled->body_size : 0;
        if (flight->spooled == NULL && flight->flight.result == FLIGHT_CUT) {
            TAILQ_INSERT_TAIL(&keeper->left, flight, link);
        } else {
            TAILQ_INSERT_TAIL(ended, flight, link);
        }
    }
}

/* The lock is held, and let go for the while. */
static void put_away(struct keeper *keeper)
{
    struct sink *sink = keeper->sink;
    struct keeper_flights ended = TAILQ_HEAD_INITIALIZER(ended);
    struct keeper_flight *flight;

    take_ended(keeper, &ended);
    if (TAILQ_EMPTY(&ended)) {
        return;
    }
    pthread_mutex_unlock(&sink->lock);
    while ((flight = TAILQ_FIRST(&ended)) != NULL) {
        TAILQ_REMOVE(&ended, flight, link);
        if (flight->spooled != NULL) {
            put_away_spooled(keeper, flight);
        } else {
            forget_lost(sink, flight);
        }
        flight_free(flight);
    }
    pthread_mutex_lock(&sink->lock);
}

/* ---- what waits ---- */

static bool has_room(const struct keeper *keeper, const struct spool_file *spooled)
{
    return keeper->flight_count == 0 ||
           (keeper->flight_count < FLIGHTS_MAX && keeper->flight_bytes + spooled->body_size <= FLIGHT_BYTES);
}

/* 0, and it is off; else *error, and the file is the caller's. */
static int load(struct keeper *keeper, struct spool_file *spooled, bool last_round, struct error *error)
{
    struct sink *sink = keeper->sink;
    struct keeper_flight *flight = calloc(1, sizeof *flight);

    if (flight == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for an upload");
    }
    int code = spool_file_load(spooled, &flight->flight.file.body, error);
    if (code == 0) {
        code = open_file_finish(&flight->flight.file, &spooled->shape, error);
    }
    if (code == 0 && !sink_bucket_body(&sink->options, &flight->flight.file.body, &flight->flight.body)) {
        code = error_set(error, QS_ERROR_NO_MEMORY, "OpenSSL can't hash it: out of memory, or without MD5");
    }
    if (code == 0) {
        code = open_file_key(spooled->directory, spooled->partition, spooled->first_offset, spooled->last_offset,
                             &spooled->shape, flight->flight.key, error);
    }
    if (code != 0) {
        flight_free(flight);
        return code;
    }
    flight->flight.options = &sink->options;
    flight->flight.network = sink->network;
    flight->flight.lost = &sink->lost;
    flight->flight.max_attempts = last_round ? sink->options.max_attempts : 0;
    flight->flight.file.count = spooled->count;
    flight->flight.file.first_offset = spooled->first_offset;
    flight->flight.file.last_offset = spooled->last_offset;
    flight->flight.shape = spooled->shape;
    flight->spooled = spooled;
    flight->last_round = last_round;
    send_off(keeper, flight, spooled->body_size);
    return 0;
}

static void send_one(struct keeper *keeper, struct spool_file *spooled, bool last_round)
{
    struct sink *sink = keeper->sink;
    struct error error;
    int code = load(keeper, spooled, last_round, &error);

    if (code == 0) {
        return;
    }
    if (code == QS_ERROR_BODY || last_round) {
        log_line(LOG_ERROR, NULL, "the spool's file %020llu can't be put up: %s", (unsigned long long)spooled->sequence,
                 error.message);
        if (code == QS_ERROR_BODY) {
            spool_file_set_aside(spooled);
        } else {
            spool_file_free(spooled);
        }
        return;
    }
    log_limited(&keeper->limit, clock_mono(), LOG_WARN, NULL, "the spool's file %020llu can't be put up now: %s",
                (unsigned long long)spooled->sequence, error.message);
    pthread_mutex_lock(&sink->lock);
    /* Behind the others: what is wrong with this one need not be wrong with them. */
    TAILQ_INSERT_TAIL(&keeper->queue, spooled, link);
    keeper->not_before.v = clock_mono().v + RETRY_MS;
    pthread_mutex_unlock(&sink->lock);
}

/* What can go now; NULL: nothing. Between the two steps of close nothing is begun. */
static struct spool_file *next_waiting(const struct keeper *keeper)
{
    struct spool_file *spooled = TAILQ_FIRST(&keeper->queue);
    bool may_go = keeper->sink->closing ? keeper->stop : clock_mono().v >= keeper->not_before.v;

    return spooled != NULL && may_go && has_room(keeper, spooled) ? spooled : NULL;
}

/* The lock is held, and let go for the while. */
static void send_waiting(struct keeper *keeper)
{
    struct sink *sink = keeper->sink;
    struct spool_file *spooled;

    while ((spooled = next_waiting(keeper)) != NULL) {
        bool last_round = keeper->stop;
        TAILQ_REMOVE(&keeper->queue, spooled, link);
        pthread_mutex_unlock(&sink->lock);
        send_one(keeper, spooled, last_round);
        pthread_mutex_lock(&sink->lock);
    }
}

/* ---- the thread ---- */

/* Without a spool close itself waits for what is in flight. */
static bool is_over(const struct keeper *keeper)
{
    return keeper->stop && (keeper->sink->spool == NULL || (keeper->flight_count == 0 && TAILQ_EMPTY(&keeper->queue)));
}

/* At the deadline of close: the rest stays where it is. */
static void drop_queue(struct keeper *keeper)
{
    struct spool_file *spooled;

    while ((spooled = TAILQ_FIRST(&keeper->queue)) != NULL) {
        TAILQ_REMOVE(&keeper->queue, spooled, link);
        spool_file_free(spooled);
    }
}

static struct mono_ms earlier(struct mono_ms a, struct mono_ms b)
{
    return a.v < b.v ? a : b;
}

static void *run(void *argument)
{
    struct keeper *keeper = argument;
    struct sink *sink = keeper->sink;

    host_log_enter(sink->log);
    pthread_mutex_lock(&sink->lock);
    for (;;) {
        put_away(keeper);
        if (keeper->stop && clock_mono().v >= keeper->deadline.v) {
            drop_queue(keeper);
            network_cancel_all(sink->network);
        }
        send_waiting(keeper);
        if (is_over(keeper)) {
            break;
        }
        /* Last, since nothing may change between it and the sleep that it is for. */
        struct mono_ms wake = close_old_files(keeper);
        if (any_ended(keeper) || next_waiting(keeper) != NULL) {
            continue;
        }
        if (!TAILQ_EMPTY(&keeper->queue) && keeper->not_before.v > clock_mono().v) {
            wake = earlier(wake, keeper->not_before);
        }
        if (keeper->stop && clock_mono().v < keeper->deadline.v) {
            wake = earlier(wake, keeper->deadline);
        }
        if (wake.v == INT64_MAX) {
            pthread_cond_wait(&sink->changed, &sink->lock);
        } else {
            struct timespec until = sink_timespec(wake);
            pthread_cond_timedwait(&sink->changed, &sink->lock, &until);
        }
    }
    pthread_mutex_unlock(&sink->lock);
    host_log_enter(NULL);
    return NULL;
}

struct keeper *keeper_start(struct sink *sink, struct error *error)
{
    struct keeper *keeper = memory_new(1, sizeof *keeper);

    keeper->sink = sink;
    TAILQ_INIT(&keeper->queue);
    TAILQ_INIT(&keeper->flights);
    TAILQ_INIT(&keeper->left);
    errno = network_start_thread(&keeper->thread, run, keeper);
    if (errno != 0) {
        error_set_errno(error, "the keeper's thread can't be started");
        free(keeper);
        return NULL;
    }
    return keeper;
}

void keeper_stop(struct keeper *keeper, struct mono_ms deadline, struct keeper_flights *left)
{
    struct sink *sink = keeper->sink;

    pthread_mutex_lock(&sink->lock);
    keeper->stop = true;
    keeper->deadline = deadline;
    keeper->not_before = (struct mono_ms){0};
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
    pthread_join(keeper->thread, NULL);
    TAILQ_CONCAT(left, &keeper->left, link);
    TAILQ_CONCAT(left, &keeper->flights, link);
    free(keeper);
}
