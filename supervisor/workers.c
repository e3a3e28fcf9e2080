/*
 * See workers.h. A worker's socket is read to its end before its totals are folded in, and it is known to be dead only
 * once it is reaped: what the kernel still holds of its last words is whole by then.
 */
#include "supervisor/workers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "supervisor/child.h"
#include "supervisor/proc.h"
#include "supervisor/shard.h"
#include "supervisor/workers_internal.h"

#define EXIT_CONFIGURATION 2
#define STATE_LINES        (LOG_BUDGET_LINES - 20) /* of SIGUSR1; the rest is for what else is said meanwhile */
#define STATE_LINES_LEAST  2                       /* the counts and one queue */

void workers_init(struct workers *workers, const struct settings *settings, size_t limit, worker_function *run,
                  struct collect *collect, struct log_forward *forward)
{
    *workers =
        (struct workers){.limit = limit, .settings = settings, .run = run, .collect = collect, .forward = forward};
    workers->list = memory_new(limit + 1, sizeof *workers->list);
}

static void init_place(struct workers *workers, size_t place)
{
    char name[32];

    (void)snprintf(name, sizeof name, "worker %zu", place);
    workers->list[place].descriptor = -1;
    log_source_init(&workers->list[place].log, workers->forward, name);
}

void workers_add_connectors(struct workers *workers, const struct worker_connectors *loaded,
                            struct connectors *connectors, connector_function *run)
{
    workers->loaded = loaded;
    workers->connectors = connectors;
    workers->run_connector = run;
    for (; workers->count < connectors->worker_count; workers->count++) {
        struct worker *worker = &workers->list[workers->count];

        pool_worker_init(&worker->life);
        init_place(workers, workers->count);
    }
}

static void close_socket(struct worker *worker)
{
    if (worker->descriptor >= 0) {
        (void)close(worker->descriptor);
        worker->descriptor = -1;
    }
    report_buffer_free(&worker->in);
    report_buffer_free(&worker->out);
}

void workers_free(struct workers *workers)
{
    for (size_t i = 0; i < workers->count; i++) {
        close_socket(&workers->list[i]);
        log_source_close(&workers->list[i].log, clock_mono());
        log_source_finish(&workers->list[i].log);
    }
    free(workers->list);
    *workers = (struct workers){0};
}

/* ---- events and actions ---- */

/* What pool_take() said; the worker came from the state `before`. */
static void act(struct workers *workers, struct worker *worker, unsigned actions, enum pool_event event,
                enum pool_state before, struct mono_ms now)
{
    size_t number = workers_number_of(workers, worker);
    struct error error;

    if ((actions & POOL_TERMINATE) != 0) {
        child_signal_group(worker->pid, SIGTERM);
    }
    if ((actions & POOL_SLAY) != 0) {
        log_line(LOG_WARN, NULL, "worker %zu: killed%s", number,
                 event != POOL_HANG       ? ""
                 : before == POOL_ROLLING ? ", its drain outlasts the grace"
                                          : ", it hangs");
        child_signal_group(worker->pid, SIGKILL);
    }
    /* A connector stops nothing but itself, unless there is nothing else. */
    if ((actions & POOL_GIVE_UP) != 0) {
        workers->refused =
            !workers_is_connector(workers, worker) ||
            (workers->limit == workers_connector_count(workers) && connectors_all_refused(workers->connectors));
    }
    if ((actions & POOL_FORK) != 0 && workers_begin_process(workers, worker, &error) != 0) {
        (void)pool_take(&worker->life, POOL_EXIT, now);
        if (workers_is_connector(workers, worker)) {
            connectors_not_begun(workers->connectors, number, error.message, now);
        }
        log_line(LOG_ERROR, NULL, "worker %zu: not started: %s; again in %lld ms", number, error.message,
                 (long long)worker->life.backoff_ms);
    }
}

static void take(struct workers *workers, struct worker *worker, enum pool_event event, struct mono_ms now)
{
    size_t number = workers_number_of(workers, worker);
    enum pool_state before = worker->life.state;
    unsigned actions = pool_take(&worker->life, event, now);

    if (before != worker->life.state && worker->life.state == POOL_SILENT) {
        log_line(LOG_WARN, NULL, "worker %zu: silent for %d s", number, POOL_SILENCE_MS / 1000);
    }
    if (before != worker->life.state && worker->life.state == POOL_ROLLING) {
        log_line(LOG_INFO, NULL, "worker %zu: drains, to be started again", number);
    }
    act(workers, worker, actions, event, before, now);
}

/* before: the state that it died in; now it is in the next one. */
static void log_end(const struct worker *worker, size_t number, enum pool_state before, int wait_status)
{
    bool restarts = worker->life.state == POOL_BACKOFF;
    bool wanted = before == POOL_STOPPING || before == POOL_ROLLING;
    enum log_level level = wanted && worker->drained ? LOG_INFO : LOG_WARN;
    char after[64] = "";

    if (restarts) {
        (void)snprintf(after, sizeof after, "; started again in %lld s", (long long)(worker->life.backoff_ms / 1000));
    }
    if (WIFSIGNALED(wait_status)) {
        log_line(level, NULL, "worker %zu: ended by signal %d%s", number, WTERMSIG(wait_status), after);
    } else {
        log_line(level, NULL, "worker %zu: exit %d%s", number, WEXITSTATUS(wait_status), after);
    }
}

static enum connector_end connector_end_of(const struct worker *worker, bool refused)
{
    if (worker->life.state == POOL_ROLLING || worker->life.state == POOL_STOPPING) {
        return CONNECTOR_TOLD;
    }
    return refused ? CONNECTOR_REFUSED : CONNECTOR_FAILED;
}

/* Its next life is told of after its end. */
static void end(struct workers *workers, struct worker *worker, enum pool_event event, int wait_status,
                struct mono_ms now)
{
    enum pool_state before = worker->life.state;
    unsigned actions = pool_take(&worker->life, event, now);

    log_end(worker, workers_number_of(workers, worker), before, wait_status);
    act(workers, worker, actions, event, before, now);
}

bool workers_reaped(struct workers *workers, pid_t pid, int wait_status, const struct rusage *usage, struct mono_ms now)
{
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->list[i];
        bool refused = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == EXIT_CONFIGURATION;

        if (worker->pid != pid) {
            continue;
        }
        worker->pid = 0; /* from now on it may be another process */
        log_source_close(&worker->log, now);
        workers_read(workers, i, now);
        close_socket(worker);
        collect_fold(workers->collect, i);
        if (workers_is_connector(workers, worker)) {
            connectors_ended(workers->connectors, i, connector_end_of(worker, refused), wait_status,
                             worker->life.last_report);
        }
        proc_add_usage(usage, worker->cpu_seen, &worker->cpu_past);
        worker->cpu_seen = 0;
        worker->drained = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
        worker->ended = true;
        worker->end_status = wait_status;
        worker->end_wall = clock_wall();
        end(workers, worker, refused ? POOL_REFUSE : POOL_EXIT, wait_status, now);
        return true;
    }
    return false;
}

void workers_tick(struct workers *workers, struct mono_ms now)
{
    for (size_t i = 0; i < workers->count; i++) {
        enum pool_event event;

        if (pool_due(&workers->list[i].life, now, &event)) {
            take(workers, &workers->list[i], event, now);
        }
        log_source_tick(&workers->list[i].log, now);
    }
}

bool workers_deadline(const struct workers *workers, struct mono_ms *deadline)
{
    bool any = false;

    for (size_t i = 0; i < workers->count; i++) {
        struct mono_ms own = {0};

        if (pool_deadline(&workers->list[i].life, &own)) {
            clock_sooner(deadline, &any, own);
        }
        if (log_source_deadline(&workers->list[i].log, &own)) {
            clock_sooner(deadline, &any, own);
        }
    }
    return any;
}

void workers_stop(struct workers *workers, struct mono_ms now)
{
    for (size_t i = 0; i < workers->count; i++) {
        take(workers, &workers->list[i], POOL_STOP, now);
    }
}

void workers_kill(struct workers *workers, struct mono_ms now)
{
    for (size_t i = 0; i < workers->count; i++) {
        take(workers, &workers->list[i], POOL_KILL, now);
    }
}

void workers_roll(struct workers *workers, size_t number, struct mono_ms now)
{
    take(workers, &workers->list[number], POOL_ROLL, now);
}

bool workers_all_down(const struct workers *workers)
{
    for (size_t i = 0; i < workers->count; i++) {
        if (workers->list[i].life.state != POOL_DOWN) {
            return false;
        }
    }
    return true;
}

/* ---- messages ---- */

static void take_report(struct workers *workers, size_t number, const struct report_header *header, const void *body,
                        struct mono_ms now)
{
    if (header->kind == REPORT_QUEUE) {
        collect_queue(workers->collect, number, body, now);
    } else if (header->kind == REPORT_WORKER) {
        collect_worker(workers->collect, number, body);
    } else if (header->kind == REPORT_CONNECTOR && number < workers_connector_count(workers)) {
        connectors_take(workers->connectors, number, body);
    }
    workers->list[number].reported = true;
    take(workers, &workers->list[number], POOL_REPORT, now);
}

void workers_read(struct workers *workers, size_t number, struct mono_ms now)
{
    struct worker *worker = &workers->list[number];
    int filled = 1;

    while (worker->descriptor >= 0 && filled == 1) {
        struct report_header header;
        const void *body = NULL;
        int next;

        filled = report_fill(&worker->in, worker->descriptor);
        while ((next = report_next(&worker->in, &header, &body)) == 1) {
            take_report(workers, number, &header, body, now);
        }
        if (next < 0) {
            log_line(LOG_ERROR, NULL, "worker %zu: killed, its reports make no sense", number);
            child_signal_group(worker->pid, SIGKILL);
            filled = -1;
        }
    }
    if (filled < 0) {
        close_socket(worker);
    }
}

void workers_write(struct workers *workers, size_t number)
{
    struct worker *worker = &workers->list[number];

    /* A worker that went is told by its end, and by SIGCHLD. */
    if (worker->descriptor >= 0) {
        (void)report_flush(&worker->out, worker->descriptor);
    }
}

void workers_read_log(struct workers *workers, size_t number, struct mono_ms now)
{
    log_source_read(&workers->list[number].log, now);
}

static void tell(struct workers *workers, struct worker *worker, enum report_kind kind, const void *body, size_t size,
                 const char *tail)
{
    if (worker->descriptor < 0) {
        return; /* its next life begins with it */
    }
    if (report_append(&worker->out, kind, body, size, tail, tail == NULL ? 0 : strlen(tail)) != 0) {
        log_line(LOG_ERROR, NULL, "worker %zu: killed, a message to it could not be made",
                 workers_number_of(workers, worker));
        child_signal_group(worker->pid, SIGKILL);
        return;
    }
    workers_write(workers, workers_number_of(workers, worker));
}

void workers_assign(struct workers *workers, const char *name, bool from_log_start, struct mono_ms now)
{
    size_t first = workers_connector_count(workers);
    size_t *counts = memory_new(workers->limit + 1, sizeof *counts);
    struct report_assign assign = {.from_log_start = from_log_start, .name_size = (uint32_t)strlen(name)};
    struct worker *worker;
    size_t place;

    for (size_t i = first; i < workers->count; i++) {
        counts[i - first] = workers->list[i].queue_count;
    }
    place = first + shard_place(counts, workers->count - first, workers->limit - first);
    free(counts);
    worker = &workers->list[place];
    if (place == workers->count) {
        pool_worker_init(&worker->life);
        init_place(workers, place);
        workers->count++;
    }
    worker->queue_count++;
    assign.queue = collect_add_queue(workers->collect, name, place, from_log_start, now);
    tell(workers, worker, REPORT_ASSIGN, &assign, sizeof assign, name);
}

void workers_resettle(struct workers *workers)
{
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->list[i];
        struct report_share share = {.budget_bytes = workers_share_of(workers, worker)};

        if (worker->descriptor >= 0 && share.budget_bytes != worker->share) {
            worker->share = share.budget_bytes;
            tell(workers, worker, REPORT_SHARE, &share, sizeof share, NULL);
        }
    }
}

void workers_start_new(struct workers *workers, struct mono_ms now)
{
    workers_resettle(workers);
    for (size_t i = 0; i < workers->count; i++) {
        if (!workers->list[i].ended) { /* else it is down for good, as a connector that refused */
            take(workers, &workers->list[i], POOL_START, now);
        }
    }
}

static uint32_t state_lines_of_each(const struct workers *workers)
{
    uint32_t asked = 0;

    for (size_t i = workers_connector_count(workers); i < workers->count; i++) {
        asked += workers->list[i].descriptor >= 0;
    }
    if (!workers->forward->pooled || asked < 2) {
        return STATE_LINES;
    }
    return STATE_LINES / asked > STATE_LINES_LEAST ? STATE_LINES / asked : STATE_LINES_LEAST;
}

void workers_ask_state(struct workers *workers)
{
    struct report_ask_state ask = {.lines = state_lines_of_each(workers)};

    for (size_t i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->list[i];

        if (worker->descriptor < 0) {
            log_asked(NULL, "worker %zu: %s", i, pool_state_name(worker->life.state));
        }
        tell(workers, worker, REPORT_ASK_STATE, &ask, sizeof ask, NULL);
    }
}

/* ---- what an operator sees ---- */

void workers_name_undone(const struct workers *workers)
{
    for (size_t i = 0; i < workers->collect->queue_count; i++) {
        const struct collected_queue *queue = &workers->collect->queues[i];

        if (!workers->list[queue->worker].drained && queue->last.state != QUEUE_DRAINED) {
            log_line(LOG_WARN, queue->name, "not drained before the stop; the next start redoes it identically");
        }
    }
}

enum pool_state workers_worst(const struct workers *workers)
{
    static const int badness[POOL_STATE_COUNT] = {
        [POOL_RUNNING] = 0, [POOL_STARTING] = 1, [POOL_ROLLING] = 2, [POOL_STOPPING] = 3,
        [POOL_SILENT] = 4,  [POOL_BACKOFF] = 5,  [POOL_DOWN] = 6,
    };
    enum pool_state worst = workers->list[0].life.state;

    for (size_t i = 1; i < workers->count; i++) {
        if (badness[workers->list[i].life.state] > badness[worst]) {
            worst = workers->list[i].life.state;
        }
    }
    return worst;
}

void workers_describe(struct workers *workers, struct exposition_worker *out)
{
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->list[i];
        double cpu = worker->pid > 0 ? proc_cpu_seconds(worker->pid) : 0;

        if (cpu > worker->cpu_seen) {
            worker->cpu_seen = cpu;
        }
        out[i] = (struct exposition_worker){
            .up = pool_is_alive(&worker->life),
            .restarts = worker->life.restarts,
            .backoff_seconds = worker->life.state == POOL_BACKOFF ? (double)worker->life.backoff_ms / 1000 : 0,
            .resident_bytes = worker->pid > 0 ? proc_resident_bytes(worker->pid) : 0,
            .cpu_seconds = worker->cpu_past + worker->cpu_seen,
        };
    }
}
