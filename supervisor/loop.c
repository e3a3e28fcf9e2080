/*
 * See loop.h. Signals stay blocked from the first line to the last and are read from a descriptor like everything else,
 * so none can come at a bad moment, and a fork finds them blocked (spec 4.2). Nothing here waits but the one poll(). What an
 * event means for the pool, phase.h says.
 *
 * Boot (spec 3.2): listener, then the probe in a child, then workers; `/healthz` answers all the while. With `*` the
 * probe child brings the list of queues, then and again every ten discovery intervals.
 */
#include "supervisor/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "supervisor/answers.h"
#include "supervisor/control.h"
#include "supervisor/listener.h"
#include "supervisor/notify.h"
#include "supervisor/phase.h"
#include "supervisor/reload.h"
#include "supervisor/roll.h"
#include "supervisor/signal_table.h"
#include "supervisor/signals.h"
#include "supervisor/stop_signals.h"

#define EXIT_LISTEN        1
#define EXIT_CONFIGURATION 2
#define EXIT_SIGNAL        128
#define NOTIFY_MARGIN_MS   10000 /* what the service manager allows beyond our own limits */
#define LISTING_INTERVALS  10
#define LISTING_LEAST_MS   1000
#define PROBE_AGAIN_MS     1000 /* one that the kernel can't end yet must not keep this loop busy */
#define POLL_SIGNALS       0
#define POLL_LISTENER      1
#define POLL_PROBE         2
#define POLL_PROBE_LOG     3
#define POLL_LOG           4 /* has room again */
#define POLL_CONTROL       5
#define POLL_FIRST_WORKER  6
#define POLL_WORKER_REPORT 0 /* of the POLL_A_WORKER places of each */
#define POLL_WORKER_LOG    1
#define POLL_A_WORKER      2

struct supervisor {
    struct settings *settings;
    const struct supervisor_hooks *hooks;
    struct log_forward forward;
    struct collect collect;
    struct worker_connectors *loaded; /* NULL: none */
    struct connectors connectors;
    struct workers workers;
    struct listener *listener;
    struct control *control; /* NULL: none */
    struct answers answers;
    struct probe probe;
    struct notify notify;
    struct roll roll;
    bool hangup; /* SIGHUP came before there were workers */
    struct pollfd *watched;
    int signals;
    struct stop_signals stop_signals;
    struct phase phase;
    struct mono_ms listing; /* the next one, with `*` */
    struct log_limit unlisted;
};

/* ---- what the phase leads to ---- */

static void assign(struct supervisor *supervisor, char *const *names, size_t count, bool boot, struct mono_ms now)
{
    for (size_t i = 0; i < count; i++) {
        if (!collect_has_queue(&supervisor->collect, names[i])) {
            workers_assign(&supervisor->workers, names[i], !boot, now);
            if (!boot) {
                log_line(LOG_INFO, names[i], "a new queue, read from its log start");
            }
        }
    }
    workers_start_new(&supervisor->workers, now);
}

static void begin(struct supervisor *supervisor, struct mono_ms now)
{
    notify_state(&supervisor->notify, now, "READY=1");
    if (supervisor->settings->all_queues && supervisor->collect.queue_count == 0) {
        log_line(LOG_INFO, NULL, "no queue yet: waiting for the first");
    }
}

static void drain(struct supervisor *supervisor, struct mono_ms now)
{
    notify_state(&supervisor->notify, now, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld",
                 (long long)(supervisor->settings->shutdown_grace_ms + NOTIFY_MARGIN_MS) * 1000);
    (void)roll_take(&supervisor->roll, ROLL_STOP);
    probe_kill(&supervisor->probe);
    workers_stop(&supervisor->workers, now);
}

/* result: what the probe's child brought, with PHASE_PASSED and PHASE_FAILED; with the others only its code counts. */
static void take(struct supervisor *supervisor, enum phase_event event, const struct probe_result *result,
                 struct mono_ms now)
{
    const struct settings *settings = supervisor->settings;
    unsigned actions = phase_take(&supervisor->phase, event, result->code, now);

    if ((actions & PHASE_ASSIGN) != 0 && settings->all_queues) {
        assign(supervisor, result->names, result->count, (actions & PHASE_BEGIN) != 0, now);
    } else if ((actions & PHASE_ASSIGN) != 0) {
        assign(supervisor, settings->queues, settings->queue_count, true, now);
    }
    if ((actions & PHASE_BEGIN) != 0) {
        begin(supervisor, now);
    }
    if ((actions & PHASE_TELL_FAIL) != 0) {
        log_say("queen-s3: %s", result->message);
    }
    if ((actions & PHASE_TELL_MISS) != 0) {
        log_limited(&supervisor->unlisted, now, LOG_WARN, NULL, "the queues could not be listed: %s", result->message);
    }
    if ((actions & PHASE_DRAIN) != 0) {
        drain(supervisor, now);
    }
    if ((actions & PHASE_TELL_LATE) != 0) {
        log_line(LOG_WARN, NULL, "the grace of the stop is over: killing what is left");
    }
    if ((actions & PHASE_KILL) != 0) {
        workers_kill(&supervisor->workers, now);
    }
    if ((actions & PHASE_TELL_LEFT) != 0) {
        workers_name_undone(&supervisor->workers);
    }
}

static void take_plain(struct supervisor *supervisor, enum phase_event event, int exit_code, struct mono_ms now)
{
    take(supervisor, event, &(struct probe_result){.code = exit_code}, now);
}

/* ---- stopping ---- */

static void take_stop_signal(struct supervisor *supervisor, const struct signal_row *row, pid_t sender,
                             struct mono_ms now)
{
    switch (stop_signals_take(&supervisor->stop_signals, sender, getppid(), now)) {
    case STOP_FIRST:
        log_line(LOG_INFO, NULL, "%s: stopping", row->name);
        take_plain(supervisor, PHASE_STOP, EXIT_SUCCESS, now);
        break;
    case STOP_ECHO: log_line(LOG_INFO, NULL, "%s: stopping already", row->name); break;
    case STOP_SECOND:
        log_line(LOG_WARN, NULL, "%s again: killing what is left", row->name);
        take_plain(supervisor, PHASE_INSIST, EXIT_SIGNAL + row->number, now);
        break;
    }
}

/* Moves the phase on where its time has come or all processes are gone. */
static void advance_phase(struct supervisor *supervisor, struct mono_ms now)
{
    if (supervisor->workers.refused && supervisor->phase.state <= PHASE_RUNNING) {
        log_line(LOG_ERROR, NULL, "a worker refuses its configuration: stopping");
        take_plain(supervisor, PHASE_REFUSE, EXIT_CONFIGURATION, now);
    }
    if (workers_all_down(&supervisor->workers) && supervisor->probe.pid == 0) {
        take_plain(supervisor, PHASE_GONE, EXIT_SUCCESS, now);
    }
    if (phase_is_late(&supervisor->phase, now)) {
        take_plain(supervisor, PHASE_LATE, EXIT_SUCCESS, now);
    }
}

/* ---- probes and listings ---- */

static void start_probe(struct supervisor *supervisor, struct mono_ms now)
{
    bool boot = supervisor->phase.state == PHASE_PROBING;
    int64_t interval = LISTING_INTERVALS * supervisor->settings->discovery_interval_ms;
    struct error error;

    supervisor->listing.v = now.v + (interval < LISTING_LEAST_MS ? LISTING_LEAST_MS : interval);
    if (probe_start(&supervisor->probe, supervisor->settings, supervisor->hooks->ask,
                    boot ? supervisor->hooks->clean : NULL, now, &error) != 0) {
        struct probe_result result = {.code = PROBE_FAILED};

        (void)snprintf(result.message, sizeof result.message, "the probe could not be started: %.400s", error.message);
        take(supervisor, PHASE_FAILED, &result, now);
    }
}

static void tick_probe(struct supervisor *supervisor, struct mono_ms now)
{
    log_source_tick(&supervisor->probe.log, now);
    if (supervisor->probe.pid > 0) {
        if (supervisor->probe.deadline.v <= now.v) {
            probe_kill(&supervisor->probe);
            supervisor->probe.deadline.v = now.v + PROBE_AGAIN_MS;
        }
    } else if (supervisor->phase.state == PHASE_RUNNING && supervisor->settings->all_queues &&
               supervisor->listing.v <= now.v) {
        start_probe(supervisor, now);
    }
}

/* ---- rolling restarts ---- */

/* As the boot line told them. */
static void log_settings(const struct settings *settings)
{
    char *line = settings_boot_line(settings);

    log_line(LOG_INFO, NULL, "%s", line);
    free(line);
}

static unsigned read_settings(struct supervisor *supervisor, struct mono_ms now)
{
    const struct supervisor_hooks *hooks = supervisor->hooks;
    struct settings *settings = supervisor->settings;
    struct error error;

    notify_reloading(&supervisor->notify, now);
    if (hooks->reload == NULL) {
        log_line(LOG_ERROR, NULL, "SIGHUP: nothing has changed: this command reads no settings again");
        return roll_take(&supervisor->roll, ROLL_REFUSED);
    }
    if (reload_settings(settings, supervisor->workers.limit, hooks->reload, hooks->reload_argument, &error) != 0) {
        log_line(LOG_ERROR, NULL, "SIGHUP: nothing has changed: %s", error.message);
        return roll_take(&supervisor->roll, ROLL_REFUSED);
    }
    log_configure(settings->log_level, settings->log_json);
    supervisor->phase.drain_ms = pool_drain_ms(settings->shutdown_grace_ms);
    log_line(LOG_INFO, NULL, "SIGHUP: the settings are read, one worker after another is started again");
    log_settings(settings);
    if (supervisor->loaded != NULL) {
        worker_connectors_renew(supervisor->loaded, environ);
    }
    connectors_resettle(&supervisor->connectors, supervisor->loaded, settings->lease_ttl_ms);
    workers_resettle(&supervisor->workers);
    supervisor->roll.count = supervisor->workers.count;
    return roll_take(&supervisor->roll, ROLL_READ);
}

static void roll_on(struct supervisor *supervisor, enum roll_event event, struct mono_ms now)
{
    unsigned actions = roll_take(&supervisor->roll, event);

    if ((actions & ROLL_TELL_BROKEN) != 0) {
        log_line(LOG_ERROR, NULL, "worker %zu: did not come up again: the rolling restart ends here",
                 supervisor->roll.place);
    }
    if ((actions & ROLL_TELL_DONE) != 0) {
        log_line(LOG_INFO, NULL, "every worker has been started again");
    }
    if ((actions & ROLL_TELL_LATER) != 0) {
        log_line(LOG_INFO, NULL, "SIGHUP: one more round will follow");
    }
    if ((actions & ROLL_READ_SETTINGS) != 0) {
        actions = read_settings(supervisor, now);
    }
    if ((actions & ROLL_BEGIN_TURN) != 0) {
        workers_roll(&supervisor->workers, supervisor->roll.place, now);
    }
    if (supervisor->roll.state == ROLL_IDLE) {
        notify_state(&supervisor->notify, now, "READY=1");
    }
}

static void hang_up(struct supervisor *supervisor, struct mono_ms now)
{
    if (supervisor->phase.state == PHASE_PROBING) {
        supervisor->hangup = true;
    } else if (supervisor->phase.state == PHASE_RUNNING) {
        roll_on(supervisor, ROLL_ASKED, now);
    }
}

static void advance_roll(struct supervisor *supervisor, struct mono_ms now)
{
    const struct roll *roll = &supervisor->roll;
    enum roll_event event;

    if (supervisor->hangup && supervisor->phase.state == PHASE_RUNNING) {
        supervisor->hangup = false;
        roll_on(supervisor, ROLL_ASKED, now);
    }
    if (roll->state == ROLL_TURNING || roll->state == ROLL_REPEATED) {
        event = roll_look(supervisor->workers.list[roll->place].life.state);
        if (event != ROLL_EVENT_COUNT) {
            roll_on(supervisor, event, now);
        }
    }
}

/* ---- what the service manager sees ---- */

static void tick_notify(struct supervisor *supervisor, struct mono_ms now)
{
    char text[NOTIFY_TEXT_SIZE];
    size_t queues = supervisor->collect.queue_count;
    size_t workers = supervisor->workers.count;

    if (supervisor->phase.state == PHASE_PROBING) {
        notify_status(&supervisor->notify, "asking the broker and the bucket");
    } else {
        (void)snprintf(text, sizeof text, "%zu queue%s, %zu worker%s%s%s", queues, queues == 1 ? "" : "s", workers,
                       workers == 1 ? "" : "s",
                       workers == 0   ? ""
                       : workers == 1 ? ": "
                                      : ", the worst one: ",
                       workers == 0 ? "" : pool_state_name(workers_worst(&supervisor->workers)));
        notify_status(&supervisor->notify, text);
    }
    notify_tick(&supervisor->notify, now);
}

/* ---- one turn ---- */

/* Whatever has ended: also orphans of others, where this process is a container's first. */
static void reap(struct supervisor *supervisor, struct mono_ms now)
{
    struct rusage usage;
    int wait_status = 0;
    pid_t pid;

    while ((pid = wait4(-1, &wait_status, WNOHANG, &usage)) > 0) {
        if (pid == supervisor->probe.pid) {
            struct probe_result result;

            probe_finish(&supervisor->probe, wait_status, now, &result);
            take(supervisor, result.code == 0 ? PHASE_PASSED : PHASE_FAILED, &result, now);
            probe_result_free(&result);
        } else {
            (void)workers_reaped(&supervisor->workers, pid, wait_status, &usage, now);
        }
    }
}

static void read_signals(struct supervisor *supervisor, struct mono_ms now)
{
    struct signalfd_siginfo information;

    while (read(supervisor->signals, &information, sizeof information) == (ssize_t)sizeof information) {
        const struct signal_row *row = signal_table_find((int)information.ssi_signo);

        if (row == NULL) { /* SIGCHLD */
            reap(supervisor, now);
        } else if (row->meaning == SIGNAL_STOPS) {
            take_stop_signal(supervisor, row, (pid_t)information.ssi_pid, now);
        } else if (row->meaning == SIGNAL_RELOADS) {
            hang_up(supervisor, now);
        } else if (row->meaning == SIGNAL_SHOWS) {
            workers_ask_state(&supervisor->workers);
        }
    }
}

static void sooner(int64_t *wait, int64_t other)
{
    other = other < 0 ? 0 : other;
    if (*wait < 0 || other < *wait) {
        *wait = other;
    }
}

static int wait_ms(const struct supervisor *supervisor, struct mono_ms now)
{
    int64_t wait = listener_timeout_ms(supervisor->listener);
    struct mono_ms deadline = {0};

    if (workers_deadline(&supervisor->workers, &deadline)) {
        sooner(&wait, deadline.v - now.v);
    }
    if (log_source_deadline(&supervisor->probe.log, &deadline)) {
        sooner(&wait, deadline.v - now.v);
    }
    if (notify_deadline(&supervisor->notify, &deadline)) {
        sooner(&wait, deadline.v - now.v);
    }
    int64_t control = control_timeout_ms(supervisor->control, now);

    if (control >= 0) {
        sooner(&wait, control);
    }
    if (phase_deadline(&supervisor->phase, &deadline)) {
        sooner(&wait, deadline.v - now.v);
    } else if (supervisor->probe.pid > 0) {
        sooner(&wait, supervisor->probe.deadline.v - now.v);
    } else if (supervisor->phase.state == PHASE_RUNNING && supervisor->settings->all_queues) {
        sooner(&wait, supervisor->listing.v - now.v);
    }
    return wait > INT32_MAX ? INT32_MAX : (int)wait;
}

static size_t watch(struct supervisor *supervisor)
{
    struct pollfd *watched = supervisor->watched;

    watched[POLL_SIGNALS] = (struct pollfd){.fd = supervisor->signals, .events = POLLIN};
    watched[POLL_LISTENER] = (struct pollfd){.fd = listener_descriptor(supervisor->listener), .events = POLLIN};
    watched[POLL_PROBE] = (struct pollfd){.fd = supervisor->probe.descriptor, .events = POLLIN};
    watched[POLL_CONTROL] = (struct pollfd){.fd = control_descriptor(supervisor->control), .events = POLLIN};
    watched[POLL_PROBE_LOG] = (struct pollfd){.fd = supervisor->probe.log.descriptor, .events = POLLIN};
    watched[POLL_LOG] = (struct pollfd){.fd = log_waits_for(), .events = POLLOUT};
    for (size_t i = 0; i < supervisor->workers.count; i++) {
        const struct worker *worker = &supervisor->workers.list[i];
        struct pollfd *own = &watched[POLL_FIRST_WORKER + i * POLL_A_WORKER];
        bool pending = worker->out.start < worker->out.end;

        own[POLL_WORKER_REPORT] =
            (struct pollfd){.fd = worker->descriptor, .events = (short)(POLLIN | (pending ? POLLOUT : 0))};
        own[POLL_WORKER_LOG] = (struct pollfd){.fd = worker->log.descriptor, .events = POLLIN};
    }
    return POLL_FIRST_WORKER + supervisor->workers.count * POLL_A_WORKER;
}

static void look_at_workers(struct supervisor *supervisor, size_t watched, struct mono_ms now)
{
    size_t count = (watched - POLL_FIRST_WORKER) / POLL_A_WORKER;

    for (size_t i = 0; i < count; i++) {
        const struct pollfd *own = &supervisor->watched[POLL_FIRST_WORKER + i * POLL_A_WORKER];

        if ((own[POLL_WORKER_REPORT].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
            workers_read(&supervisor->workers, i, now);
        }
        if ((own[POLL_WORKER_REPORT].revents & POLLOUT) != 0) {
            workers_write(&supervisor->workers, i);
        }
        if (own[POLL_WORKER_LOG].revents != 0) {
            workers_read_log(&supervisor->workers, i, now);
        }
    }
}

static void look_at_the_rest(struct supervisor *supervisor, struct mono_ms now)
{
    const struct pollfd *watched = supervisor->watched;

    if (watched[POLL_PROBE].revents != 0) {
        (void)probe_read(&supervisor->probe);
    }
    if (watched[POLL_PROBE_LOG].revents != 0) {
        log_source_read(&supervisor->probe.log, now);
    }
    if (watched[POLL_LOG].revents != 0) {
        (void)log_tell_dropped();
    }
    if (watched[POLL_SIGNALS].revents != 0) {
        read_signals(supervisor, now);
    }
}

/* Reports come before deadlines: where the supervisor itself was held up, no worker is to be called silent for it. */
static void turn(struct supervisor *supervisor)
{
    size_t count = watch(supervisor);
    int ready = poll(supervisor->watched, count, wait_ms(supervisor, clock_mono()));
    struct mono_ms now = clock_mono();

    if (ready > 0) {
        look_at_workers(supervisor, count, now);
        look_at_the_rest(supervisor, now);
    }
    supervisor->answers.phase = phase_name(supervisor->phase.state);
    listener_run(supervisor->listener);
    control_run(supervisor->control, now);
    workers_tick(&supervisor->workers, now);
    tick_probe(supervisor, now);
    advance_roll(supervisor, now);
    advance_phase(supervisor, now);
    tick_notify(supervisor, now);
}

/* ---- begin and end ---- */

static int open_control(struct supervisor *supervisor, struct error *error)
{
    const struct settings *settings = supervisor->settings;
    struct control_places places;
    int code;

    control_places_init(&places, settings->control, settings->sink, CONTROL_FOLDER, getenv("XDG_RUNTIME_DIR"));
    code = control_open(&places, answers_request, &supervisor->answers, &supervisor->control, error);
    control_places_free(&places);
    return code;
}

static int run(struct supervisor *supervisor)
{
    const struct settings *settings = supervisor->settings;
    struct error error;

    supervisor->signals = signals_open();
    if (supervisor->signals < 0) {
        log_say("queen-s3: signalfd: %s", strerror(errno));
        return EXIT_LISTEN;
    }
    supervisor->listener =
        listener_create(settings->listen_host, settings->listen_port, answers_path, &supervisor->answers, &error);
    if (supervisor->listener == NULL) {
        log_say("queen-s3: %s", error.message);
        return EXIT_LISTEN;
    }
    log_line(LOG_INFO, NULL, "listening on %s:%u", settings->listen_host, listener_port(supervisor->listener));
    if (open_control(supervisor, &error) != 0) {
        log_say("queen-s3: %s", error.message);
        return EXIT_CONFIGURATION;
    }
    notify_open(&supervisor->notify);
    notify_state(&supervisor->notify, clock_mono(), "EXTEND_TIMEOUT_USEC=%lld",
                 (long long)(PROBE_LIMIT_MS + NOTIFY_MARGIN_MS) * 1000);
    if (settings->all_queues || settings->queue_count > 0) {
        start_probe(supervisor, clock_mono());
    } else { /* connectors alone: each asks its own bucket */
        take_plain(supervisor, PHASE_PASSED, EXIT_SUCCESS, clock_mono());
    }
    while (supervisor->phase.state != PHASE_ENDED) {
        turn(supervisor);
    }
    return supervisor->phase.exit_code;
}

int supervisor_run(struct settings *settings, const struct supervisor_hooks *hooks)
{
    return supervisor_run_connectors(settings, NULL, hooks);
}

int supervisor_run_connectors(struct settings *settings, struct worker_connectors *connectors,
                              const struct supervisor_hooks *hooks)
{
    struct supervisor supervisor = {.settings = settings,
                                    .hooks = hooks,
                                    .loaded = connectors,
                                    .signals = -1,
                                    .notify.descriptor = -1,
                                    .phase.drain_ms = pool_drain_ms(settings->shutdown_grace_ms)};
    int exit_code;

    log_forward_init(&supervisor.forward);
    connectors_init(&supervisor.connectors, connectors, settings->lease_ttl_ms, clock_mono());
    size_t limit = settings_queue_workers(settings) + supervisor.connectors.worker_count;

    collect_init(&supervisor.collect, limit);
    workers_init(&supervisor.workers, settings, limit, hooks->run, &supervisor.collect, &supervisor.forward);
    workers_add_connectors(&supervisor.workers, connectors, &supervisor.connectors, hooks->run_connector);
    probe_init(&supervisor.probe, &supervisor.forward);
    supervisor.answers = (struct answers){.settings = settings,
                                          .collect = &supervisor.collect,
                                          .workers = &supervisor.workers,
                                          .phase = phase_name(supervisor.phase.state),
                                          .started = clock_mono()};
    supervisor.watched = memory_new(POLL_FIRST_WORKER + limit * POLL_A_WORKER, sizeof *supervisor.watched);
    exit_code = run(&supervisor);
    probe_kill(&supervisor.probe);
    log_source_close(&supervisor.probe.log, clock_mono());
    log_source_finish(&supervisor.probe.log);
    listener_destroy(supervisor.listener);
    control_close(supervisor.control);
    notify_close(&supervisor.notify);
    workers_free(&supervisor.workers);
    collect_free(&supervisor.collect);
    connectors_free(&supervisor.connectors);
    free(supervisor.probe.bytes);
    free(supervisor.watched);
    if (supervisor.signals >= 0) {
        (void)close(supervisor.signals);
    }
    return exit_code;
}
