/*
 * libpicomq_connector_s3_sink.so: the four functions that PicoMQ's connectors runtime calls (spec 5.1), and nothing else
 * that anybody outside could see.
 *
 * What is the process's is left alone: no handler, no signal mask, no locale, no descriptor of the host's. The library
 * is never unloaded (-z nodelete), since what curl and OpenSSL keep for a process outlives every sink; OpenSSL gets no
 * exit handler, which would pull it away under a host that also uses it.
 */
#include <inttypes.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/plugin/sink.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int32_t pico_sink_open(uint32_t id, const uint8_t *config, size_t config_len, pico_log_fn log);
EXPORTED int32_t pico_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len, const uint8_t *batch,
                                   size_t batch_len, const uint8_t *messages, size_t messages_len);
EXPORTED int32_t pico_sink_close(uint32_t id);
EXPORTED const char *pico_sink_version(void);

#define ANSWER_UNREADABLE (-1)
#define MEMORY_PAUSE_NS   20000000

enum entry_state { ENTRY_OPENING, ENTRY_OPEN, ENTRY_CLOSING };

/* An id that is in use. */
struct entry {
    LIST_ENTRY(entry) link;
    uint32_t id;
    enum entry_state state;
    struct sink *sink;
    unsigned calls; /* of consume, under way */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t calls_ended;
static LIST_HEAD(entry_list, entry) entries = LIST_HEAD_INITIALIZER(entries);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool in_forked_child;

/* A fork has this thread alone: those that the sinks' work is done by are gone, and locks may be held for ever. */
static void after_fork(void)
{
    atomic_store(&in_forked_child, true);
}

/* The host must not die of our small allocations; sizes that come from its batches are refused instead. */
static bool pause_for_memory(void)
{
    const struct timespec pause = {.tv_nsec = MEMORY_PAUSE_NS};

    nanosleep(&pause, NULL);
    return true;
}

static void start(void)
{
    pthread_condattr_t attributes;

    pthread_atfork(NULL, NULL, after_fork);
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    memory_set_exhausted(pause_for_memory);
    host_log_start();
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&calls_ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* The lock is held. */
static struct entry *find(uint32_t id)
{
    for (struct entry *entry = LIST_FIRST(&entries); entry != NULL; entry = LIST_NEXT(entry, link)) {
        if (entry->id == id) {
            return entry;
        }
    }
    return NULL;
}

static void entry_remove(struct entry *entry)
{
    pthread_mutex_lock(&lock);
    LIST_REMOVE(entry, link);
    pthread_mutex_unlock(&lock);
    free(entry);
}

int32_t pico_sink_open(uint32_t id, const uint8_t *config, size_t config_len, pico_log_fn log)
{
    if (atomic_load(&in_forked_child)) {
        return ANSWER_UNREADABLE;
    }
    pthread_once(&once, start);
    struct entry *entry = memory_new(1, sizeof *entry);
    entry->id = id;
    pthread_mutex_lock(&lock);
    bool in_use = find(id) != NULL;
    if (!in_use) {
        LIST_INSERT_HEAD(&entries, entry, link);
    }
    pthread_mutex_unlock(&lock);
    pico_log_fn before = host_log_enter(log);
    if (in_use) {
        log_line(LOG_ERROR, NULL, "id %" PRIu32 " is in use: it has to be closed before it can be opened again", id);
        host_log_enter(before);
        free(entry);
        return ANSWER_UNREADABLE;
    }
    int32_t answer = sink_open(config, config_len, log, &entry->sink);
    host_log_enter(before);
    if (answer != 0) {
        entry_remove(entry);
        return answer;
    }
    pthread_mutex_lock(&lock);
    entry->state = ENTRY_OPEN;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* The entry of an open id, with a call more; NULL: it isn't open. */
static struct entry *call_begin(uint32_t id)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = find(id);
    if (entry != NULL && entry->state == ENTRY_OPEN) {
        entry->calls++;
    } else {
        entry = NULL;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

static void call_end(struct entry *entry)
{
    pthread_mutex_lock(&lock);
    entry->calls--;
    pthread_cond_broadcast(&calls_ended);
    pthread_mutex_unlock(&lock);
}

int32_t pico_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len, const uint8_t *batch, size_t batch_len,
                          const uint8_t *messages, size_t messages_len)
{
    const struct sink_batch what = {.topic = topic,
                                    .topic_size = topic != NULL ? topic_len : 0,
                                    .batch = batch,
                                    .batch_size = batch != NULL ? batch_len : 0,
                                    .messages = messages,
                                    .messages_size = messages != NULL ? messages_len : 0};

    if (atomic_load(&in_forked_child)) {
        return ANSWER_UNREADABLE;
    }
    struct entry *entry = call_begin(id);
    if (entry == NULL) {
        return ANSWER_UNREADABLE;
    }
    pico_log_fn before = host_log_enter(sink_log(entry->sink));
    int32_t answer = sink_consume(entry->sink, &what);
    host_log_enter(before);
    call_end(entry);
    return answer;
}

/* The entry, which no call can begin with any more; NULL: it isn't open. */
static struct entry *take_for_close(uint32_t id)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = find(id);
    if (entry != NULL && entry->state == ENTRY_OPEN) {
        entry->state = ENTRY_CLOSING;
    } else {
        entry = NULL;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

/* Calls end by themselves once the sink is closing; what they have in flight is ended where that takes too long. */
static void wait_for_calls(struct entry *entry, struct mono_ms patience)
{
    const struct timespec until = {.tv_sec = (time_t)(patience.v / 1000),
                                   .tv_nsec = (long)(patience.v % 1000) * 1000000};
    bool pressed = false;

    pthread_mutex_lock(&lock);
    while (entry->calls > 0) {
        if (pressed) {
            pthread_cond_wait(&calls_ended, &lock);
        } else if (pthread_cond_timedwait(&calls_ended, &lock, &until) != 0) {
            pressed = true;
            sink_close_press(entry->sink);
        }
    }
    pthread_mutex_unlock(&lock);
}

int32_t pico_sink_close(uint32_t id)
{
    if (atomic_load(&in_forked_child)) {
        return ANSWER_UNREADABLE;
    }
    struct entry *entry = take_for_close(id);
    if (entry == NULL) {
        return ANSWER_UNREADABLE;
    }
    struct mono_ms now = clock_mono();
    pico_log_fn before = host_log_enter(sink_log(entry->sink));
    sink_close_begin(entry->sink);
    wait_for_calls(entry, (struct mono_ms){now.v + SINK_CLOSE_CALL_MS});
    sink_close_end(entry->sink, (struct mono_ms){now.v + SINK_CLOSE_MS});
    host_log_enter(before);
    entry_remove(entry);
    return 0;
}

const char *pico_sink_version(void)
{
    return QUEEN_S3_VERSION;
}
