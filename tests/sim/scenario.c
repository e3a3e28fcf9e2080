/*
 * What the seed decides: the configuration, what producers write, and everything that happens meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/instance.h"

#define HOUR_US INT64_C(3600000000)
#define DAY_US  (24 * HOUR_US)
#define BASE_US INT64_C(1788480000000000) /* 2026-09-04T00:00:00Z */

static const char *const prefixes[] = {"queen", "lake/a", "other"};

/* ---- the configuration ---- */

static void choose_weather(struct chance *chance, struct scenario *scenario)
{
    static const uint64_t shares[] = {0, 0, 2, 10, 40, 120};
    struct weather *weather = &scenario->weather;
    uint64_t *const fields[] = {&weather->lost_request, &weather->lost_answer, &weather->status,  &weather->odd_status,
                                &weather->doubled,      &weather->slow,        &weather->bad_body};
    bool fair = chance_of(chance, 150);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *fields[i] = fair ? 0 : shares[chance_below(chance, sizeof shares / sizeof shares[0])];
    weather->refused = fair || chance_of(chance, 600) ? 0 : chance_below(chance, 6);
    weather->usual_ms = chance_spread(chance, 1, 200);
    weather->slow_ms = chance_spread(chance, 200, 40000);
    scenario->entry_fault = fair ? 0 : shares[chance_below(chance, 4)];
}

static void choose_load(struct chance *chance, struct scenario *scenario)
{
    scenario->queue_count = chance_of(chance, 200) ? 2 : 1;
    scenario->partition_count = (size_t)chance_spread(chance, 1, 16);
    scenario->duration_ms = chance_spread(chance, 10000, 7200000);
    scenario->history_ms = chance_of(chance, 600) ? chance_spread(chance, 1000, 10 * 3600000) : 0;
    scenario->push_gap_ms = chance_spread(chance, scenario->duration_ms / 120 + 1, scenario->duration_ms / 10);
    scenario->records_max = chance_spread(chance, 1, 24);
    scenario->payload_max = chance_spread(chance, 1, 600);
}

static void choose_settings(struct chance *chance, struct scenario *scenario)
{
    static const enum setting_align aligns[] = {ALIGN_HOUR, ALIGN_HOUR, ALIGN_DAY, ALIGN_NONE};
    static const enum setting_compression compressions[] = {COMPRESSION_NONE, COMPRESSION_NONE, COMPRESSION_GZIP,
                                                            COMPRESSION_ZSTD};
    scenario->align = aligns[chance_below(chance, 4)];
    scenario->compression = compressions[chance_below(chance, 4)];
    scenario->start = chance_of(chance, 500) ? START_EARLIEST : START_LATEST;
    scenario->from_log_start = chance_of(chance, 100);
    scenario->prefix = prefixes[chance_of(chance, 900) ? 0 : 1];
    scenario->target_bytes = chance_spread(chance, 1000, 60000);
    scenario->max_window_ms = chance_spread(chance, 500, scenario->duration_ms / 3);
    scenario->guard_ms = chance_of(chance, 300) ? 0 : chance_spread(chance, 100, 10000);
    scenario->discovery_interval_ms =
        chance_spread(chance, scenario->duration_ms / 200 + 10, scenario->duration_ms / 20 + 20);
    scenario->fetch_concurrency = chance_spread(chance, 1, 8);
    scenario->lease_ttl_ms = chance_spread(chance, scenario->duration_ms / 60 + 1000, scenario->duration_ms / 4 + 2000);
    scenario->checkpoint_every = chance_spread(chance, 1, 20);
    scenario->tight = chance_of(chance, 150);
    scenario->memory = scenario->tight ? (size_t)chance_spread(chance, 80000, 600000) : 64u << 20;
    scenario->multipart_threshold = chance_of(chance, 200) ? (uint64_t)chance_spread(chance, 100, 5000) : 5u << 20;
    scenario->answer_ceiling = chance_of(chance, 300) ? chance_spread(chance, 100, 5000) : 64 << 20;
    scenario->records_ceiling = chance_of(chance, 300) ? chance_spread(chance, 1, 40) : 10000;
    scenario->page_ceiling = chance_of(chance, 400) ? chance_spread(chance, 1, 6) : 1000;
}

/* Now and then, records so large that an object takes several parts. */
static void choose_large(struct chance *chance, struct scenario *scenario)
{
    if (!chance_of(chance, 2))
        return;
    scenario->payload_max = 900000;
    scenario->records_max = 8;
    scenario->push_gap_ms = scenario->duration_ms / 20;
    scenario->history_ms = 0;
    scenario->compression = COMPRESSION_NONE;
    scenario->target_bytes = 64 << 20;
    scenario->max_window_ms = scenario->duration_ms / 2;
    scenario->tight = false;
    scenario->memory = 512u << 20;
}

static void choose_troubles(struct chance *chance, struct scenario *scenario)
{
    bool calm = chance_of(chance, 150);
    scenario->trouble_gap_ms = calm ? 0 : chance_spread(chance, scenario->duration_ms / 20, scenario->duration_ms);
    scenario->two_instances = !calm && chance_of(chance, 300);
    scenario->reconfigured = !calm && chance_of(chance, 250);
    scenario->crash_points = !calm && chance_of(chance, 300);
    scenario->retention = !calm && chance_of(chance, 250);
    scenario->holes = !calm && chance_of(chance, 200);
    scenario->lives = !calm && chance_of(chance, 200);
    scenario->pins = !calm && chance_of(chance, 300);
    scenario->lost_checkpoints = !calm && chance_of(chance, 150);
    scenario->lost_pointer = !calm && chance_of(chance, 40) && !scenario->reconfigured; /* another prefix is no lake */
}

static void choose_broker(struct chance *chance, struct producer_log *log)
{
    log->second = chance_of(chance, 400);
    log->coarse = !log->second;
    if (!log->second)
        return;
    log->node_count = (size_t)chance_between(chance, 1, NODES_MAX);
    log->node_lag_max = log->node_count > 1 ? chance_spread(chance, 1, 5000) : 0;
}

/* Near a boundary of the alignment more often than not. */
static int64_t choose_base(struct chance *chance, const struct scenario *scenario)
{
    int64_t unit = scenario->align == ALIGN_DAY ? DAY_US : HOUR_US;
    int64_t before = chance_between(chance, 0, scenario->duration_ms * 1000);
    return BASE_US + 10 * unit - (chance_of(chance, 700) ? before : chance_between(chance, 0, unit));
}

static void tell(const struct simulation *simulation)
{
    const struct scenario *scenario = &simulation->scenario;
    const struct weather *weather = &scenario->weather;
    SIM_TRACE(simulation, "broker %s, %zu nodes, lag %lld ms; %zu queues of %zu partitions; %lld ms, history %lld ms",
              simulation->log.second ? "2.x" : "1.x", simulation->log.node_count,
              (long long)simulation->log.node_lag_max, scenario->queue_count, scenario->partition_count,
              (long long)scenario->duration_ms, (long long)scenario->history_ms);
    SIM_TRACE(
        simulation,
        "align %d compression %d start %d from_log_start %d target %lld max_window %lld guard %lld discovery %lld "
        "concurrency %lld ttl %lld checkpoint_every %lld memory %zu threshold %llu",
        (int)scenario->align, (int)scenario->compression, (int)scenario->start, scenario->from_log_start,
        (long long)scenario->target_bytes, (long long)scenario->max_window_ms, (long long)scenario->guard_ms,
        (long long)scenario->discovery_interval_ms, (long long)scenario->fetch_concurrency,
        (long long)scenario->lease_ttl_ms, (long long)scenario->checkpoint_every, scenario->memory,
        (unsigned long long)scenario->multipart_threshold);
    SIM_TRACE(simulation, "answers up to %lld bytes, %lld records an entry, %lld partitions a page",
              (long long)scenario->answer_ceiling, (long long)scenario->records_ceiling,
              (long long)scenario->page_ceiling);
    SIM_TRACE(simulation,
              "weather: request %llu answer %llu status %llu odd %llu doubled %llu slow %llu body %llu, up to %lld ms",
              (unsigned long long)weather->lost_request, (unsigned long long)weather->lost_answer,
              (unsigned long long)weather->status, (unsigned long long)weather->odd_status,
              (unsigned long long)weather->doubled, (unsigned long long)weather->slow,
              (unsigned long long)weather->bad_body, (long long)weather->slow_ms);
}

void scenario_choose(struct simulation *simulation)
{
    struct chance *chance = &simulation->chance;
    struct scenario *scenario = &simulation->scenario;
    choose_load(chance, scenario);
    choose_settings(chance, scenario);
    choose_large(chance, scenario);
    choose_weather(chance, scenario);
    choose_troubles(chance, scenario);
    scenario->base_us = choose_base(chance, scenario);
    log_init(&simulation->log, scenario->queue_count, scenario->partition_count, scenario->base_us);
    choose_broker(chance, &simulation->log);
    simulation->queues[0] = "orders";
    simulation->queues[1] = "a/b";
    tell(simulation);
}

/* ---- producers ---- */

static void push(struct simulation *simulation, int64_t now)
{
    struct chance *chance = &simulation->chance;
    const struct scenario *scenario = &simulation->scenario;
    int64_t open_ms = chance_of(chance, 100) ? chance_spread(chance, 1, 8000) : 0;
    log_push(&simulation->log, chance, now, (uint32_t)chance_below(chance, scenario->queue_count),
             (size_t)chance_spread(chance, 1, 4), scenario->records_max, scenario->payload_max, now < 0 ? 0 : open_ms);
}

static void push_due(void *argument)
{
    struct simulation *simulation = argument;
    struct scheduler *scheduler = &simulation->scheduler;
    int64_t gap = simulation->scenario.push_gap_ms;
    if (!simulation->faults)
        return;
    push(simulation, scheduler->now);
    gap = chance_of(&simulation->chance, 300) ? chance_between(&simulation->chance, 0, 5)
                                              : chance_between(&simulation->chance, 0, 2 * gap);
    scheduler_at(scheduler, scheduler->now + gap, push_due, simulation);
}

static void push_history(struct simulation *simulation)
{
    const struct scenario *scenario = &simulation->scenario;
    int64_t now = -scenario->history_ms;
    int64_t count = chance_between(&simulation->chance, 1, 60);
    for (int64_t i = 0; i < count && scenario->history_ms > 0 && now < 0; i++) {
        push(simulation, now);
        now += chance_between(&simulation->chance, 0, 2 * scenario->history_ms / count);
    }
}

/* ---- what happens to the broker ---- */

static void trouble_the_log(struct simulation *simulation)
{
    struct chance *chance = &simulation->chance;
    const struct scenario *scenario = &simulation->scenario;
    struct producer_log *log = &simulation->log;
    int64_t now = simulation->scheduler.now;
    uint32_t queue = (uint32_t)chance_below(chance, scenario->queue_count);
    uint32_t partition = (uint32_t)chance_below(chance, scenario->partition_count);
    if (scenario->retention && chance_of(chance, 500))
        log_retain(log, chance, now, queue, partition, 600);
    if (scenario->holes && chance_of(chance, 500))
        log_make_hole(log, chance, now, queue,
                      chance_of(chance, 500) ? NEVER : now + chance_spread(chance, 100, 60000));
    if (scenario->lives && chance_of(chance, 300) && log_delete_partition(log, now, queue, partition)) {
        log_stamp(log, now);
        SIM_TRACE(simulation, "partition %s is deleted", log->queues[queue].partitions[partition].name);
    }
    if (scenario->pins && chance_of(chance, 300))
        log_pin(log, now, now + chance_spread(chance, 100, scenario->duration_ms / 4));
    if (scenario->pins && chance_of(chance, 200) && !log->second)
        log->degraded = !log->degraded;
}

static void trouble_the_bucket(struct simulation *simulation)
{
    struct chance *chance = &simulation->chance;
    if (!simulation->scenario.lost_checkpoints || !chance_of(chance, 500))
        return;
    for (size_t i = simulation->bucket.object_count; i-- > 0;) {
        struct bucket_object *object = &simulation->bucket.objects[i];
        if (strstr(object->key, "/checkpoint/") == NULL || !chance_of(chance, 600))
            continue;
        SIM_TRACE(simulation, "checkpoint %s goes bad", object->key);
        if (chance_of(chance, 500) && object->size > 0)
            object->bytes[chance_below(chance, object->size)] ^= 0x41;
        else
            bucket_remove(&simulation->bucket, object->key);
    }
}

/* Only over a lake that is there, and not beside an intent for window 1: that is how its own crash looks. */
static void lose_pointer(struct simulation *simulation)
{
    struct chance *chance = &simulation->chance;
    if (!simulation->scenario.lost_pointer || simulation->pointer_lost || !chance_of(chance, 300))
        return;
    const struct document_row *row = documents_find(&simulation->documents, "s3:default:orders:committed");
    const cJSON *k = row != NULL ? cJSON_GetObjectItemCaseSensitive(row->value, "k") : NULL;
    if (k == NULL || k->valuedouble < 2)
        return;
    SIM_TRACE(simulation, "the pointer of orders is lost");
    simulation->pointer_lost = true;
    documents_remove(&simulation->documents, "s3:default:orders:committed");
    if (chance_of(chance, 500))
        documents_remove(&simulation->documents, "s3:default:orders:intent");
}

/* ---- what happens to instances ---- */

static void start_due(void *argument)
{
    struct simulation *simulation = argument;
    for (size_t i = 0; !simulation->over && i < (simulation->scenario.two_instances ? 2 : 1); i++) {
        bool heir = chance_of(&simulation->chance, 700);
        if (simulation->instances[i] == NULL)
            instance_start(simulation, i, heir ? simulation->last_incarnation[i] : "");
    }
}

static void reconfigure(struct simulation *simulation)
{
    static const enum setting_align aligns[] = {ALIGN_HOUR, ALIGN_DAY, ALIGN_NONE};
    static const enum setting_compression compressions[] = {COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD};
    struct chance *chance = &simulation->chance;
    struct scenario *scenario = &simulation->scenario;
    if (!scenario->reconfigured)
        return;
    scenario->align = aligns[chance_below(chance, 3)];
    scenario->compression = compressions[chance_below(chance, 3)];
    scenario->target_bytes = chance_spread(chance, 1000, 60000);
    if (chance_of(chance, 500))
        scenario->prefix = prefixes[chance_below(chance, 3)];
}

static void trouble_an_instance(struct simulation *simulation)
{
    struct chance *chance = &simulation->chance;
    struct scheduler *scheduler = &simulation->scheduler;
    struct instance *instance = simulation->instances[chance_below(chance, INSTANCES_MAX)];
    int64_t ttl = simulation->scenario.lease_ttl_ms;
    if (instance != NULL) {
        switch (chance_below(chance, 4)) {
        case 0: instance_crash(instance); break;
        case 1: instance_drain(instance); break;
        case 2: instance_pause(instance, scheduler->now + chance_spread(chance, 1, 3 * ttl)); break;
        default: break;
        }
    }
    reconfigure(simulation);
    scheduler_at(scheduler, scheduler->now + chance_between(chance, 0, ttl), start_due, simulation);
}

static void trouble_due(void *argument)
{
    struct simulation *simulation = argument;
    struct chance *chance = &simulation->chance;
    struct scheduler *scheduler = &simulation->scheduler;
    if (!simulation->faults)
        return;
    trouble_the_log(simulation);
    trouble_the_bucket(simulation);
    lose_pointer(simulation);
    if (chance_of(chance, 400))
        trouble_an_instance(simulation);
    scheduler_at(scheduler, scheduler->now + chance_between(chance, 1, 2 * simulation->scenario.trouble_gap_ms),
                 trouble_due, simulation);
}

void scenario_begin(struct simulation *simulation)
{
    struct scheduler *scheduler = &simulation->scheduler;
    push_history(simulation);
    scheduler_at(scheduler, 0, start_due, simulation);
    scheduler_at(scheduler, chance_between(&simulation->chance, 0, simulation->scenario.push_gap_ms), push_due,
                 simulation);
    if (simulation->scenario.trouble_gap_ms > 0)
        scheduler_at(scheduler, chance_between(&simulation->chance, 1, simulation->scenario.trouble_gap_ms),
                     trouble_due, simulation);
}

void scenario_calm(struct simulation *simulation)
{
    simulation->faults = false;
    log_calm(&simulation->log, &simulation->chance, simulation->scheduler.now);
    for (size_t i = 0; i < INSTANCES_MAX; i++)
        if (simulation->instances[i] != NULL)
            simulation->instances[i]->crash_at = CRASH_NEVER;
    scheduler_at(&simulation->scheduler, simulation->scheduler.now, start_due, simulation);
}
