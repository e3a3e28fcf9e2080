/*
 * devbroker: a stand-in for the Queen broker, for tests and benchmarks. broker.h says what it is, options.c how it is
 * started, controls.c what can be done to it.
 *
 * Signals are blocked in every thread and waited for here; SIGTERM or SIGINT ends it cleanly and at once. With a sink
 * embedded it goes on serving until that has drained, and a second signal kills the sink.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

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
    embed_free(broker->embed);
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

/* How many stop signals have come. SIGCHLD only ends the wait: embed_turn() looks for itself. */
static int read_signals(int signals)
{
    struct signalfd_siginfo information;
    int stops = 0;

    while (read(signals, &information, sizeof information) == (ssize_t)sizeof information) {
        stops += information.ssi_signo != SIGCHLD;
    }
    return stops;
}

static int wait_ms(const struct broker *broker, int64_t retention_ms)
{
    int64_t wait = retention_ms - clock_mono_ms();
    int64_t embed = embed_wait_ms(broker->embed);

    wait = embed >= 0 && embed < wait ? embed : wait;
    return wait < 0 ? 0 : (int)wait; /* retention's interval is a day at the most */
}

/* Retention and the embedded sink live here. */
static void run(struct broker *broker, int signals)
{
    int64_t retention_ms = clock_mono_ms() + broker->options.retention_interval_ms;
    int stops = 0;

    while (stops == 0 || !embed_is_down(broker->embed)) {
        struct pollfd watched[] = {{.fd = signals, .events = POLLIN},
                                   {.fd = embed_descriptor(broker->embed), .events = POLLIN}};
        int before = stops;

        (void)poll(watched, sizeof watched / sizeof watched[0], wait_ms(broker, retention_ms));
        stops += read_signals(signals);
        embed_turn(broker->embed);
        if (before == 0 && stops > 0) {
            embed_stop(broker->embed);
        }
        if (stops > 1 && stops > before) {
            embed_kill(broker->embed);
        }
        if (clock_mono_ms() >= retention_ms) {
            queues_retain(broker);
            retention_ms = clock_mono_ms() + broker->options.retention_interval_ms;
        }
    }
}

static void start_sink(struct broker *broker, const struct server *server)
{
    struct text url = {0};

    server_add_url(server, &url);
    text_add(&url, "", 1);
    embed_start(broker->embed, url.at);
    text_free(&url);
}

static int serve(struct broker *broker, int signals)
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
        start_sink(broker, server);
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

static int open_signals(void)
{
    sigset_t signals;

    signal(SIGCHLD, SIG_DFL); /* ignored, as a parent may have left it, it would reap by itself */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int begin(struct broker *broker)
{
    int signals;
    int code;

    if (!load_all(broker)) {
        return 1;
    }
    signals = open_signals();
    if (signals < 0) {
        fprintf(stderr, "devbroker: signalfd: %s\n", strerror(errno));
        return 1;
    }
    code = serve(broker, signals);
    close(signals);
    return code;
}

int main(int count, char **arguments)
{
    static struct broker broker;
    int code = options_parse(&broker.options, count, arguments);

    if (code != 0) {
        options_free(&broker.options);
        return code - 1;
    }
    signal(SIGPIPE, SIG_IGN);
    code = embed_plan(broker.options.embed, &broker.embed);
    if (code != 0) {
        options_free(&broker.options);
        return code;
    }
    /* Answers are large and short-lived: without this each one is a fresh mapping, a page fault for every 4 KiB. */
    mallopt(M_MMAP_THRESHOLD, 1 << 28);
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    broker_start(&broker);
    code = begin(&broker);
    broker_end(&broker);
    return code;
}
