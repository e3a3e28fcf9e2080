/*
 * devbroker: a stand-in for the Queen broker, for tests and benchmarks. broker.h says what it is, options.c how it is
 * started, controls.c what can be done to it.
 *
 * Signals are blocked in every thread and waited for here; SIGTERM or SIGINT ends it cleanly and at once.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker.h"
#include "clock.h"
#include "load.h"
#include "queues.h"
#include "server.h"

bool broker_database_is_down(struct broker *broker)
{
    bool down;

    pthread_mutex_lock(&broker->control_lock);
    down = broker->database_down;
    pthread_mutex_unlock(&broker->control_lock);
    return down;
}

static void broker_start(struct broker *broker)
{
    clock_start(broker->options.clock_offset_us, broker->options.version_2);
    store_start(&broker->store, broker->options.version_2);
    kv_start(&broker->kv);
    faults_start(&broker->faults);
    stats_start(&broker->stats);
    broker->dedup = dedup_start();
    pthread_mutex_init(&broker->control_lock, NULL);
    atomic_init(&broker->stopping, false);
}

static void broker_end(struct broker *broker)
{
    for (size_t i = 0; i < broker->buffered_count; i++) {
        free((void *)(uintptr_t)broker->buffered[i].at);
    }
    free(broker->buffered);
    dedup_end(broker->dedup);
    stats_end(&broker->stats);
    faults_end(&broker->faults);
    kv_end(&broker->kv);
    store_end(&broker->store);
    pthread_mutex_destroy(&broker->control_lock);
    options_free(&broker->options);
}

static bool load_all(struct broker *broker)
{
    for (size_t i = 0; i < broker->options.load_count; i++) {
        const struct load *load = &broker->options.loads[i];

        if (!(load->is_log ? load_log_run(broker, load) : load_run(broker, load))) {
            return false;
        }
    }
    return true;
}

static bool announce(const struct options *options, unsigned port)
{
    FILE *file;

    if (options->port_file != NULL) {
        file = fopen(options->port_file, "w");
        if (file == NULL || fprintf(file, "%u\n", port) < 0 || fclose(file) != 0) {
            fprintf(stderr, "devbroker: can't write %s: %s\n", options->port_file, strerror(errno));
            return false;
        }
    }
    printf("devbroker listening on http://%s%s%s:%u\n", strchr(options->host, ':') != NULL ? "[" : "", options->host,
           strchr(options->host, ':') != NULL ? "]" : "", port);
    fflush(stdout);
    return true;
}

/* Retention runs here, between signals. */
static void run(struct broker *broker, const sigset_t *signals)
{
    int64_t interval_ms = broker->options.retention_interval_ms;
    struct timespec interval = {(time_t)(interval_ms / 1000), (long)(interval_ms % 1000) * 1000000L};

    while (sigtimedwait(signals, NULL, &interval) < 0) {
        if (errno == EAGAIN) {
            queues_retain(broker);
        }
    }
}

static int serve(struct broker *broker, const sigset_t *signals)
{
    unsigned port = 0;
    struct live *live = NULL;
    struct server *server = server_start(broker, &port);
    bool fine = server != NULL;

    if (fine && broker->options.rate > 0) {
        live = live_start(broker);
        fine = live != NULL;
    }
    fine = fine && announce(&broker->options, port);
    if (fine) {
        run(broker, signals);
    }
    atomic_store(&broker->stopping, true);
    if (live != NULL) {
        live_end(live);
    }
    if (server != NULL) {
        server_end(server);
    }
    return fine ? 0 : 1;
}

int main(int count, char **arguments)
{
    static struct broker broker;
    sigset_t signals;
    int code = options_parse(&broker.options, count, arguments);

    if (code != 0) {
        options_free(&broker.options);
        return code - 1;
    }
    signal(SIGPIPE, SIG_IGN);
    /* Answers are large and short-lived: without this each one is a fresh mapping, a page fault for every 4 KiB. */
    mallopt(M_MMAP_THRESHOLD, 1 << 28);
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    broker_start(&broker);
    if (!load_all(&broker)) {
        broker_end(&broker);
        return 1;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    code = serve(&broker, &signals);
    broker_end(&broker);
    return code;
}
