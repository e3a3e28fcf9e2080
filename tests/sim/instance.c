/*
 * The life of an instance: what worker.c does around the queue driver, over models.
 */
#include "tests/sim/instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define EVENTS_A_SECOND 20000

static struct instance *instance_of(struct world *world)
{
    return (struct instance *)(void *)((char *)world - offsetof(struct instance, world));
}

/* ---- the world ---- */

static struct mono_ms world_now(struct world *world)
{
    struct instance *instance = instance_of(world);
    return (struct mono_ms){instance->simulation->scheduler.now + instance->mono_offset};
}

static struct wall_ms world_wall(struct world *world)
{
    struct instance *instance = instance_of(world);
    return (struct wall_ms){instance->simulation->scenario.base_us / 1000 + instance->simulation->scheduler.now +
                            instance->wall_offset};
}

static uint64_t world_random(struct world *world)
{
    return chance_next(&instance_of(world)->simulation->chance);
}

static void world_crash(struct world *world, enum crash_point point)
{
    struct instance *instance = instance_of(world);
    if (point != instance->crash_at || instance->crash_after-- > 0)
        return;
    SIM_TRACE(instance->simulation, "instance %zu: power cut at point %d", instance->number, (int)point);
    instance->doomed = true;
}

/* ---- entering and leaving ---- */

static void instance_free(struct instance *instance);
static void wake(void *argument);

static void arm(struct instance *instance)
{
    struct scheduler *scheduler = &instance->simulation->scheduler;
    struct mono_ms deadline;
    if (!timers_next(&instance->timers, &deadline)) {
        scheduler_cancel(scheduler, instance->wake);
        instance->wake = NULL;
        return;
    }
    int64_t at = deadline.v - instance->mono_offset;
    if (at < scheduler->now)
        at = scheduler->now;
    if (instance->wake != NULL && instance->wake_at == at)
        return;
    scheduler_cancel(scheduler, instance->wake);
    instance->wake_at = at;
    instance->wake = scheduler_at(scheduler, at, wake, instance);
}

static void poke_queues(struct instance *instance)
{
    size_t used = instance->budget.used;
    if (used < instance->budget_before)
        for (size_t i = 0; i < instance->queue_count; i++)
            queue_poke(instance->queues[i]);
    instance->budget_before = instance->budget.used;
}

static bool all_drained(const struct instance *instance)
{
    for (size_t i = 0; i < instance->queue_count; i++)
        if (!instance->drained[i])
            return false;
    return instance->draining;
}

bool instance_enter(struct instance *instance)
{
    if (instance->inside)
        sim_fail(instance->simulation, "a callback ran from within a call");
    instance->inside = true;
    return true;
}

static void count_events(struct instance *instance)
{
    struct simulation *simulation = instance->simulation;
    int64_t second = simulation->scheduler.now / 1000;
    if (second != simulation->second) {
        simulation->second = second;
        simulation->second_events = 0;
    }
    if (++simulation->second_events > EVENTS_A_SECOND)
        sim_fail(simulation, "instance %zu spins: more than %d events in one second", instance->number,
                 EVENTS_A_SECOND);
}

void instance_leave(struct instance *instance)
{
    count_events(instance);
    if (!instance->doomed)
        poke_queues(instance);
    instance->inside = false;
    if (instance->doomed) {
        instance_crash(instance);
        return;
    }
    if (all_drained(instance)) {
        SIM_TRACE(instance->simulation, "instance %zu has drained", instance->number);
        instance_free(instance);
        return;
    }
    arm(instance);
}

static void wake(void *argument)
{
    struct instance *instance = argument;
    struct scheduler *scheduler = &instance->simulation->scheduler;
    instance->wake = NULL;
    if (instance->paused_until > scheduler->now) {
        instance->wake_at = instance->paused_until;
        instance->wake = scheduler_at(scheduler, instance->paused_until, wake, instance);
        return;
    }
    if (!instance_enter(instance))
        return;
    timers_run(&instance->timers, world_now(&instance->world));
    instance_leave(instance);
}

/* ---- what queues ask of their host ---- */

static void host_changed(struct queue_host *host, struct queue *queue)
{
    struct report_queue report;
    (void)host;
    queue_report(queue, &report);
}

/* cppcheck-suppress constParameter ; the table's type says so */
static void host_drained(struct queue_host *host, struct queue *queue)
{
    struct instance *instance = host->argument;
    for (size_t i = 0; i < instance->queue_count; i++)
        if (instance->queues[i] == queue)
            instance->drained[i] = true;
}

static bool host_relieve(struct queue_host *host, struct queue *asking)
{
    struct instance *instance = host->argument;
    struct queue *largest = asking;
    for (size_t i = 0; i < instance->queue_count; i++)
        if (queue_buffered(instance->queues[i]) > queue_buffered(largest))
            largest = instance->queues[i];
    return queue_give_memory(largest) || (largest != asking && queue_give_memory(asking));
}

/* ---- life ---- */

static void settle_settings(struct instance *instance)
{
    struct simulation *simulation = instance->simulation;
    const struct scenario *scenario = &simulation->scenario;
    static const char *const names[INSTANCES_MAX] = {"sink-0", "sink-1"};
    instance->settings = (struct settings){.sink = (char *)(uintptr_t) "default",
                                           .prefix = (char *)(uintptr_t)scenario->prefix,
                                           .instance = (char *)(uintptr_t)names[instance->number],
                                           .format = FORMAT_JSONL,
                                           .compression = scenario->compression,
                                           .layout = LAYOUT_MERGED,
                                           .align = scenario->align,
                                           .start = scenario->start,
                                           .target_bytes = scenario->target_bytes,
                                           .max_window_ms = scenario->max_window_ms,
                                           .checkpoint_every = scenario->checkpoint_every,
                                           .memory_bytes = (int64_t)scenario->memory,
                                           .fetch_concurrency = scenario->fetch_concurrency,
                                           .discovery_interval_ms = scenario->discovery_interval_ms,
                                           .safe_guard_ms = scenario->guard_ms,
                                           .lease_ttl_ms = scenario->lease_ttl_ms,
                                           .multipart_threshold_bytes = (int64_t)scenario->multipart_threshold};
}

static void choose_crash(struct instance *instance)
{
    struct simulation *simulation = instance->simulation;
    instance->crash_at = CRASH_NEVER;
    if (!simulation->faults || !simulation->scenario.crash_points || !chance_of(&simulation->chance, 500))
        return;
    instance->crash_at = (enum crash_point)chance_between(&simulation->chance, CRASH_AFTER_INTENT, CRASH_AFTER_COMMIT);
    instance->crash_after = (uint32_t)chance_below(&simulation->chance, 4);
}

void instance_start(struct simulation *simulation, size_t number, const char *previous_incarnation)
{
    struct instance *instance = memory_new(1, sizeof *instance);
    int64_t third = simulation->scenario.lease_ttl_ms / 3;
    simulation->instances[number] = instance;
    instance->simulation = simulation;
    instance->number = number;
    instance->mono_offset = chance_between(&simulation->chance, 1, 1000000);
    instance->wall_offset = chance_between(&simulation->chance, -3600000, 3600000);
    settle_settings(instance);
    choose_crash(instance);
    snprintf(instance->incarnation, sizeof instance->incarnation, "%016x", ++simulation->incarnations);
    snprintf(instance->previous_incarnation, sizeof instance->previous_incarnation, "%s", previous_incarnation);
    timers_init(&instance->timers);
    instance->budget.limit = simulation->scenario.memory;
    instance->queen.operations = &sim_queen_operations;
    instance->store.operations = &sim_store_operations;
    instance->encoder.operations = &sim_encoder_operations;
    instance->describer = (struct sim_describer){{&sim_describer_operations}, &instance->store};
    instance->world = (struct world){.queen = &instance->queen,
                                     .store = &instance->store,
                                     .encoder = &instance->encoder,
                                     .describer = &instance->describer.base,
                                     .timers = &instance->timers,
                                     .budget = &instance->budget,
                                     .now = world_now,
                                     .wall = world_wall,
                                     .random = world_random,
                                     .crash = world_crash};
    instance->host = (struct queue_host){.world = &instance->world,
                                         .settings = &instance->settings,
                                         .discovery = discovery_create(&instance->world),
                                         .leases = lease_calls_create(&instance->world, third < 3000 ? third : 3000,
                                                                      simulation->scenario.lease_ttl_ms / 60 < 250
                                                                          ? simulation->scenario.lease_ttl_ms / 60
                                                                          : 250),
                                         .incarnation = instance->incarnation,
                                         .previous_incarnation = instance->previous_incarnation,
                                         .multipart_threshold = simulation->scenario.multipart_threshold,
                                         .changed = host_changed,
                                         .drained = host_drained,
                                         .relieve = host_relieve,
                                         .argument = instance};
    SIM_TRACE(simulation, "instance %zu starts as %s (after %s)", number, instance->incarnation, previous_incarnation);
    if (!instance_enter(instance))
        return;
    for (size_t i = 0; i < simulation->scenario.queue_count; i++) {
        instance->queues[i] =
            queue_create(&instance->host, simulation->queues[i], (uint32_t)i, simulation->scenario.from_log_start);
        instance->queue_count++;
        queue_start(instance->queues[i]);
    }
    instance_leave(instance);
}

static void forget_calls(struct instance *instance)
{
    struct sim_call *next;
    for (struct sim_call *call = instance->calls; call != NULL; call = next) {
        next = call->next;
        call->instance = NULL;
        call->next = call->previous = NULL;
    }
    instance->calls = NULL;
}

static void instance_free(struct instance *instance)
{
    struct simulation *simulation = instance->simulation;
    snprintf(simulation->last_incarnation[instance->number], sizeof simulation->last_incarnation[0], "%s",
             instance->incarnation);
    for (size_t i = 0; i < instance->queue_count; i++)
        queue_destroy(instance->queues[i]);
    discovery_destroy(instance->host.discovery);
    lease_calls_destroy(instance->host.leases);
    forget_calls(instance);
    scheduler_cancel(&simulation->scheduler, instance->wake);
    if (instance->budget.used != 0)
        sim_fail(simulation, "instance %zu ends with %zu bytes of its budget still taken", instance->number,
                 instance->budget.used);
    if (instance->timers.count > 0)
        sim_fail(simulation, "instance %zu ends with %zu timers set", instance->number, instance->timers.count);
    timers_free(&instance->timers);
    budget_close(&instance->budget);
    simulation->instances[instance->number] = NULL;
    free(instance);
}

void instance_crash(struct instance *instance)
{
    SIM_TRACE(instance->simulation, "instance %zu crashes", instance->number);
    instance->doomed = true;
    instance_free(instance);
}

void instance_drain(struct instance *instance)
{
    if (instance->draining)
        return;
    SIM_TRACE(instance->simulation, "instance %zu is told to stop", instance->number);
    if (!instance_enter(instance))
        return;
    instance->draining = true;
    for (size_t i = 0; i < instance->queue_count; i++)
        queue_drain(instance->queues[i]);
    instance_leave(instance);
}

void instance_pause(struct instance *instance, int64_t until)
{
    SIM_TRACE(instance->simulation, "instance %zu is stopped until %lld", instance->number, (long long)until);
    instance->paused_until = until;
}
