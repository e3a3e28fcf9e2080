/*
 * A worker (spec 4.1): one event loop over the queues of its shard, until SIGTERM has drained them. worker.h says what it
 * promises the supervisor.
 */
#include "worker/worker.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "common/reactor.h"
#include "worker/describe_thread.h"
#include "worker/encode_thread.h"
#include "worker/queue.h"
#include "worker/report_link.h"
#include "worker/services.h"
#include "worker/state_lines.h"

#define EXIT_CONFIGURATION 2
#define THRESHOLD_SHARE    8
#define THRESHOLD_MIN      5242880u
#define ENCODE_JOBS        2
#define BIG_ALLOCATION     1048576 /* from here on memory goes back to the kernel when freed: blocks and parts */

struct worker_seat {
    struct queue *queue;
    bool dirty;
    bool drained;
};

struct worker {
    struct world world;
    const struct worker_start *start;
    struct reactor *reactor;
    struct services services;
    struct budget budget;
    struct queue_host host;
    struct worker_seat *seats;
    size_t seat_count;
    size_t seat_capacity;
    struct report_link link;
    struct report_worker report;
    struct timer report_timer;
    struct timer soon_timer;
    size_t budget_used_before;
    bool draining;
};

static struct worker *worker_of(struct queue_host *host)
{
    return host->argument;
}

/* ---- the world ---- */

static struct mono_ms world_now(struct world *world)
{
    return reactor_now(((struct worker *)world)->reactor);
}

static struct wall_ms world_wall(struct world *world)
{
    (void)world;
    return clock_wall();
}

static uint64_t world_random(struct world *world)
{
    uint64_t value = 0;
    (void)world;
    if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value)
        value = (uint64_t)clock_mono().v;
    return value;
}

/* A crash point ends the whole pool as a power cut would (spec 4.1): the supervisor first, whose death takes the others. */
static void world_crash(struct world *world, enum crash_point point)
{
    const struct worker_start *start = ((struct worker *)world)->start;
    if (point != start->settings->crash_at)
        return;
    kill(start->supervisor_pid, SIGKILL);
    kill(getpid(), SIGKILL);
}

/* ---- reports ---- */

static void report_fill_worker(struct worker *worker)
{
    struct report_worker *report = &worker->report;
    struct broker_us safe_time;
    struct mono_ms arrived;
    struct wall_ms wall;
    report->has_safe_time = discovery_safe_time(worker->host.discovery, &safe_time, &arrived, &wall);
    report->safe_time_us = safe_time.v;
    report->safe_time_mono_ms = arrived.v;
    report->safe_time_wall_ms = wall.v;
    report->buffer_bytes = 0;
    for (size_t i = 0; i < worker->seat_count; i++)
        report->buffer_bytes += queue_buffered(worker->seats[i].queue);
    report->precondition_lost = worker->host.precondition_lost;
    services_request_counts(&worker->services, report);
}

static void report_send(struct worker *worker, bool all)
{
    for (size_t i = 0; i < worker->seat_count; i++) {
        struct report_queue report;
        if (!all && !worker->seats[i].dirty)
            continue;
        worker->seats[i].dirty = false;
        queue_report(worker->seats[i].queue, &report);
        if (report_link_add(&worker->link, REPORT_QUEUE, &report, sizeof report) != 0)
            return;
    }
    report_fill_worker(worker);
    if (report_link_add(&worker->link, REPORT_WORKER, &worker->report, sizeof worker->report) == 0)
        report_link_flush(&worker->link);
}

static void report_soon(void *argument)
{
    report_send(argument, false);
}

static void report_due(void *argument)
{
    struct worker *worker = argument;
    if (report_link_is_read(&worker->link)) /* else it gets the newest state once it reads again */
        report_send(worker, true);
    budget_age(&worker->budget);
    timer_set(worker->world.timers, &worker->report_timer,
              (struct mono_ms){world_now(&worker->world).v + REPORT_EVERY_MS}, report_due, worker);
}

/* ---- what queues ask of their host ---- */

static struct worker_seat *seat_of(struct worker *worker, const struct queue *queue)
{
    for (size_t i = 0; i < worker->seat_count; i++)
        if (worker->seats[i].queue == queue)
            return &worker->seats[i];
    return NULL;
}

static void host_changed(struct queue_host *host, struct queue *queue)
{
    struct worker *worker = worker_of(host);
    struct worker_seat *seat = seat_of(worker, queue);
    if (seat != NULL)
        seat->dirty = true;
    if (!timer_is_set(&worker->soon_timer))
        timer_set(worker->world.timers, &worker->soon_timer, world_now(&worker->world), report_soon, worker);
}

static void host_committed(struct queue_host *host, uint64_t records, uint64_t bytes)
{
    static const uint64_t mebibytes[REPORT_HISTOGRAM_BUCKETS] = {1, 4, 16, 64, 128, 256, 512, 1024};
    struct report_worker *report = &worker_of(host)->report;
    int bucket = 0;
    for (uint64_t limit = 1; bucket < REPORT_HISTOGRAM_BUCKETS && records > limit; limit *= 10)
        bucket++;
    report->window_records[bucket]++;
    report->window_records_sum += (double)records;
    for (bucket = 0; bucket < REPORT_HISTOGRAM_BUCKETS && bytes > mebibytes[bucket] << 20; bucket++) {
        /* the first bucket that holds it */
    }
    report->window_bytes[bucket]++;
    report->window_bytes_sum += (double)bytes;
}

static void host_drained(struct queue_host *host, struct queue *queue)
{
    struct worker *worker = worker_of(host);
    struct worker_seat *seat = seat_of(worker, queue);
    if (seat != NULL)
        seat->drained = true;
}

/* The queue that holds the most closes its window early, or gives back what has the highest ts (spec 3.3, 3.7). */
static bool host_relieve(struct queue_host *host, struct queue *asking)
{
    struct worker *worker = worker_of(host);
    struct queue *largest = asking;
    for (size_t i = 0; i < worker->seat_count; i++)
        if (queue_buffered(worker->seats[i].queue) > queue_buffered(largest))
            largest = worker->seats[i].queue;
    return queue_give_memory(largest) || (largest != asking && queue_give_memory(asking));
}

static void poke_queues(struct worker *worker)
{
    size_t used = worker->budget.used;
    if (used < worker->budget_used_before)
        for (size_t i = 0; i < worker->seat_count; i++)
            queue_poke(worker->seats[i].queue);
    worker->budget_used_before = worker->budget.used;
}

/* ---- queues ---- */

static void queue_add(struct worker *worker, const char *name, uint32_t number, bool from_log_start)
{
    worker->seats = memory_grow(worker->seats, &worker->seat_capacity, worker->seat_count + 1, sizeof *worker->seats);
    struct worker_seat *seat = &worker->seats[worker->seat_count++];
    *seat = (struct worker_seat){queue_create(&worker->host, name, number, from_log_start), false, false};
    if (worker->draining)
        queue_drain(seat->queue);
    else
        queue_start(seat->queue);
}

static struct state_line state_line_of(struct worker *worker, struct queue *queue)
{
    struct report_queue report;
    struct broker_us safe_time;
    struct mono_ms arrived;
    struct wall_ms wall;
    int64_t lag_us = -1;
    queue_report(queue, &report);
    if (report.through_us != INT64_MIN && discovery_safe_time(worker->host.discovery, &safe_time, &arrived, &wall)) {
        int64_t broker_us = safe_time.v + (world_now(&worker->world).v - arrived.v) * 1000;
        lag_us = broker_us > report.through_us ? broker_us - report.through_us : 0;
    }
    return (struct state_line){.queue = queue_name(queue),
                               .state = report.state,
                               .failing = report.error[0] != '\0',
                               .k = report.k,
                               .buffer_bytes = report.buffer_bytes,
                               .lag_us = lag_us};
}

static void say_state(struct worker *worker, size_t most)
{
    struct state_line *lines = memory_new(worker->seat_count + 1, sizeof *lines);
    for (size_t i = 0; i < worker->seat_count; i++)
        lines[i] = state_line_of(worker, worker->seats[i].queue);
    state_lines_say(lines, worker->seat_count, most);
    free(lines);
}

static void take_frame(void *argument, const struct report_header *header, const void *body)
{
    struct worker *worker = argument;
    if (header->kind == REPORT_ASK_STATE && header->size == sizeof(struct report_ask_state)) {
        struct report_ask_state ask;
        memcpy(&ask, body, sizeof ask);
        say_state(worker, ask.lines);
    } else if (header->kind == REPORT_SHARE && header->size == sizeof(struct report_share)) {
        struct report_share share;
        memcpy(&share, body, sizeof share);
        worker->budget.limit = share.budget_bytes;
    } else if (header->kind == REPORT_ASSIGN && header->size > sizeof(struct report_assign)) {
        struct report_assign assign;
        memcpy(&assign, body, sizeof assign);
        if (assign.name_size != header->size - sizeof assign)
            return;
        char *name = memory_copy((const char *)body + sizeof assign, assign.name_size);
        queue_add(worker, name, assign.queue, assign.from_log_start != 0);
        free(name);
    }
}

/* ---- stopping ---- */

static void drain_all(void *argument)
{
    struct worker *worker = argument;
    if (worker->draining)
        return;
    worker->draining = true;
    for (size_t i = 0; i < worker->seat_count; i++)
        queue_drain(worker->seats[i].queue);
}

static bool all_drained(const struct worker *worker)
{
    for (size_t i = 0; i < worker->seat_count; i++)
        if (!worker->seats[i].drained)
            return false;
    return worker->draining;
}

/* ---- life ---- */

static const struct report_link_events link_events = {take_frame, drain_all};

static uint64_t threshold_in_force(const struct worker_start *start)
{
    uint64_t threshold = (uint64_t)start->settings->multipart_threshold_bytes;
    uint64_t share = start->budget_bytes / THRESHOLD_SHARE;
    uint64_t lowered = share > THRESHOLD_MIN ? share : THRESHOLD_MIN;
    if (lowered >= threshold)
        return threshold;
    log_line(LOG_INFO, NULL, "multipart uploads begin at %" PRIu64 " bytes, an eighth of this worker's memory",
             lowered);
    return lowered;
}

static int worker_open(struct worker *worker, struct error *error)
{
    const struct settings *settings = worker->start->settings;
    int64_t third = settings->lease_ttl_ms / 3;
    worker->reactor = reactor_create(error);
    if (worker->reactor == NULL || report_link_open(&worker->link, worker->reactor, worker->start->report_descriptor,
                                                    &link_events, worker, error) != 0)
        return -1;
    worker->world.timers = reactor_timers(worker->reactor);
    if (services_open(&worker->services, worker->reactor, settings, error) != 0)
        return -1;
    worker->world.queen = worker->services.queen;
    worker->world.store = worker->services.store;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long each = settings->workers > 0 ? cores / (long)settings->workers : cores;
    worker->world.encoder = encode_thread_create(worker->reactor, ENCODE_JOBS,
                                                 each < 1   ? 1
                                                 : each > 4 ? 4
                                                            : (int)each,
                                                 error);
    worker->world.describer = describe_thread_create(worker->reactor, settings, error);
    if (worker->world.encoder == NULL || worker->world.describer == NULL)
        return -1;
    worker->host = (struct queue_host){
        .world = &worker->world,
        .settings = settings,
        .discovery = discovery_create(&worker->world),
        .leases = lease_calls_create(&worker->world, third < 3000 ? third : 3000,
                                     settings->lease_ttl_ms / 60 < 250 ? settings->lease_ttl_ms / 60 : 250),
        .incarnation = worker->start->incarnation,
        .previous_incarnation = worker->start->previous_incarnation,
        .multipart_threshold = threshold_in_force(worker->start),
        .changed = host_changed,
        .committed = host_committed,
        .drained = host_drained,
        .relieve = host_relieve,
        .argument = worker};
    return 0;
}

static void worker_close(struct worker *worker)
{
    for (size_t i = 0; i < worker->seat_count; i++)
        queue_destroy(worker->seats[i].queue);
    free(worker->seats);
    discovery_destroy(worker->host.discovery);
    lease_calls_destroy(worker->host.leases);
    encode_thread_destroy(worker->world.encoder);
    describe_thread_destroy(worker->world.describer);
    services_close(&worker->services);
    report_link_close(&worker->link);
    reactor_destroy(worker->reactor);
    budget_close(&worker->budget);
    free(worker);
}

/* The last word before the end has to reach the supervisor: counters of the final commits. */
static void report_last(struct worker *worker)
{
    report_send(worker, true);
    report_link_finish(&worker->link);
}

int worker_run(const struct worker_start *start)
{
    struct error error = {.retry_after_ms = -1};
    struct worker *worker = memory_new(1, sizeof *worker);
    mallopt(M_MMAP_THRESHOLD, BIG_ALLOCATION);
    mallopt(M_ARENA_MAX, 2);
    worker->start = start;
    worker->budget.limit = start->budget_bytes;
    worker->world.budget = &worker->budget;
    worker->world.now = world_now;
    worker->world.wall = world_wall;
    worker->world.random = world_random;
    worker->world.crash = world_crash;
    if (worker_open(worker, &error) != 0) {
        log_line(LOG_ERROR, NULL, "worker: %s", error.message);
        return error.code == QS_ERROR_INPUT ? EXIT_CONFIGURATION : EXIT_FAILURE;
    }
    for (size_t i = 0; i < start->queue_count; i++)
        queue_add(worker, start->queues[i].name, start->queues[i].number, start->queues[i].from_log_start);
    lease_calls_flush(worker->host.leases);
    report_due(worker);
    while (!worker->link.gone && !all_drained(worker)) {
        reactor_run_once(worker->reactor, -1);
        poke_queues(worker);
    }
    if (!worker->link.gone)
        report_last(worker);
    worker_close(worker);
    return 0;
}
