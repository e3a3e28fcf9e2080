/*
 * What producers write. Payloads and names are chosen to be awkward: line feeds between tokens, escapes, blanks, names
 * that need escaping, an empty one.
 */
#include "tests/sim/producer_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define SAFE_LAG_US     5000000
#define DEGRADED_LAG_US 30000000
#define COARSE_US       1000000

static const char *const names[] = {"cust-0420", "a/b", "p1",      "",  "caf\xc3\xa9", "dt=x",
                                    "q\"uote",   "p10", "p2",      "~", "back\\slash", "with blank",
                                    "%41",       "p1.", "Default", "z"};

void log_init(struct producer_log *log, size_t queue_count, size_t partition_count, int64_t base_us)
{
    *log = (struct producer_log){.base_us = base_us, .safe_lag_us = SAFE_LAG_US, .node_count = 1};
    log->queue_count = queue_count;
    log->queues = memory_new(queue_count, sizeof *log->queues);
    for (size_t node = 0; node < NODES_MAX; node++)
        log->node_view[node] = INT64_MIN;
    for (size_t q = 0; q < queue_count; q++) {
        log->queues[q].partition_count = partition_count;
        log->queues[q].partitions = memory_new(partition_count, sizeof *log->queues[q].partitions);
        for (size_t p = 0; p < partition_count; p++) {
            const char *name = names[p % (sizeof names / sizeof names[0])];
            log->queues[q].partitions[p].name = name;
            log->queues[q].partitions[p].name_size = strlen(name);
        }
    }
}

static void life_free(struct log_life *life)
{
    for (size_t s = 0; s < life->segment_count; s++) {
        free(life->segments[s]->records);
        free(life->segments[s]);
    }
    free(life->segments);
}

void log_free(struct producer_log *log)
{
    for (size_t q = 0; q < log->queue_count; q++) {
        for (size_t p = 0; p < log->queues[q].partition_count; p++) {
            for (size_t l = 0; l < log->queues[q].partitions[p].life_count; l++)
                life_free(&log->queues[q].partitions[p].lives[l]);
            free(log->queues[q].partitions[p].lives);
        }
        free(log->queues[q].partitions);
    }
    for (size_t i = 0; i < log->record_count; i++) {
        free(log->records[i]->id);
        free(log->records[i]->id_spelled);
        free(log->records[i]->payload);
        free(log->records[i]);
    }
    free(log->queues);
    free(log->records);
    free(log->stamps);
    free(log->open);
    *log = (struct producer_log){0};
}

/* ---- the broker's clock ---- */

int64_t log_stamp(struct producer_log *log, int64_t now)
{
    int64_t stamp = log->base_us + now * 1000;
    if (stamp <= log->last_stamp)
        stamp = log->last_stamp + 1;
    log->last_stamp = stamp;
    log->stamps = memory_grow(log->stamps, &log->stamp_capacity, log->stamp_count + 1, sizeof *log->stamps);
    log->stamps[log->stamp_count++] = (struct log_stamp){now, stamp};
    return stamp;
}

void log_pin(struct producer_log *log, int64_t now, int64_t until)
{
    log->open = memory_grow(log->open, &log->open_capacity, log->open_count + 1, sizeof *log->open);
    log->open[log->open_count++] = (struct open_transaction){log->base_us + now * 1000, until};
}

static int64_t oldest_open(struct producer_log *log, int64_t now)
{
    int64_t oldest = INT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < log->open_count; i++) {
        if (log->open[i].until <= now)
            continue;
        log->open[kept++] = log->open[i];
        if (log->open[i].from_us < oldest)
            oldest = log->open[i].from_us;
    }
    log->open_count = kept;
    return oldest;
}

/* The greatest stamp that was given at or before `at`. */
static int64_t stamp_at(const struct producer_log *log, int64_t at)
{
    size_t low = 0;
    size_t high = log->stamp_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (log->stamps[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? log->stamps[low - 1].us : log->base_us + at * 1000;
}

struct log_view log_look(struct producer_log *log, struct chance *chance, int64_t now)
{
    struct log_view view = {now, 0};
    if (!log->second) {
        int64_t lag = log->degraded ? DEGRADED_LAG_US : log->safe_lag_us;
        int64_t open = oldest_open(log, now);
        view.safe_time = log->base_us + now * 1000 - lag;
        if (open < view.safe_time)
            view.safe_time = open;
        return view;
    }
    size_t node = (size_t)chance_below(chance, log->node_count);
    int64_t lag = chance_of(chance, 500) ? 0 : chance_between(chance, 0, log->node_lag_max);
    if (now - lag > log->node_view[node])
        log->node_view[node] = now - lag;
    view.at = log->node_view[node];
    view.safe_time = stamp_at(log, view.at);
    return view;
}

/* ---- records ---- */

static void spell_id(struct log_record *record, struct chance *chance, uint64_t serial)
{
    if (chance_of(chance, 950)) {
        record->id = memory_format("t%llu", (unsigned long long)serial);
        record->id_spelled = memory_copy_text(record->id);
    } else if (chance_of(chance, 500)) {
        record->id = memory_copy("", 0);
        record->id_spelled = memory_copy("", 0);
    } else {
        record->id = memory_format("t\"%llu\\/", (unsigned long long)serial);
        record->id_spelled = memory_format("t\\\"%llu\\\\/", (unsigned long long)serial);
    }
    record->id_size = strlen(record->id);
    record->id_spelled_size = strlen(record->id_spelled);
}

static void write_payload(struct log_record *record, struct chance *chance, uint64_t serial, int64_t payload_max)
{
    unsigned long long number = (unsigned long long)serial;
    switch (chance_below(chance, 8)) {
    case 0:
        record->payload = memory_copy("null", 4);
        record->null_payload = true;
        break;
    case 1:
        record->payload = memory_format("{\n\t\"n\" : %llu,\r\n\t\"e\" : 1e400\n}", number);
        record->line_breaks = true;
        break;
    case 2: record->payload = memory_format("[[[%llu]],\"\\ud800\\u0041\\/\"]", number); break;
    case 3: record->payload = memory_format("-0"); break;
    default: {
        int filler = (int)chance_below(chance, (uint64_t)payload_max);
        record->payload = memory_format("{\"n\":%llu,\"x\":\"%0*d\"}", number, filler, 7);
        break;
    }
    }
    record->payload_size = strlen(record->payload);
}

static struct log_record *record_make(struct producer_log *log, struct chance *chance, int64_t payload_max)
{
    struct log_record *record = memory_new(1, sizeof *record);
    uint64_t serial = log->serial++;
    spell_id(record, chance, serial);
    write_payload(record, chance, serial, payload_max);
    log->records = memory_grow(log->records, &log->record_capacity, log->record_count + 1, sizeof record);
    log->records[log->record_count++] = record;
    return record;
}

static struct log_life *current_life(struct log_partition *partition)
{
    struct log_life *life = partition->life_count > 0 ? &partition->lives[partition->life_count - 1] : NULL;
    return life != NULL && life->deleted == NEVER ? life : NULL;
}

static struct log_life *life_make(struct producer_log *log, struct chance *chance, struct log_partition *partition,
                                  int64_t visible)
{
    partition->lives =
        memory_grow(partition->lives, &partition->life_capacity, partition->life_count + 1, sizeof *partition->lives);
    struct log_life *life = &partition->lives[partition->life_count++];
    *life = (struct log_life){.creation = log->creations++, .created = visible, .deleted = NEVER};
    for (size_t i = 0; i < sizeof life->id; i++)
        life->id[i] = (uint8_t)chance_next(chance);
    return life;
}

static bool is_waited_for(const struct log_life *life, int64_t now)
{
    return life != NULL && life->segment_count > 0 && life->segments[life->segment_count - 1]->visible > now;
}

static void segment_write(struct producer_log *log, struct chance *chance, uint32_t queue, uint32_t number, int64_t ts,
                          int64_t visible, size_t count, int64_t payload_max)
{
    struct log_partition *partition = &log->queues[queue].partitions[number];
    struct log_life *life = current_life(partition);
    if (life == NULL)
        life = life_make(log, chance, partition, visible);
    struct log_segment *segment = memory_new(1, sizeof *segment);
    *segment = (struct log_segment){.first = life->end,
                                    .count = count,
                                    .ts = ts,
                                    .visible = visible,
                                    .deleted = NEVER,
                                    .unreadable_from = NEVER,
                                    .unreadable_to = NEVER,
                                    .records = memory_new(count, sizeof(struct log_record *))};
    for (size_t i = 0; i < count; i++) {
        struct log_record *record = record_make(log, chance, payload_max);
        record->queue = queue;
        record->partition = number;
        record->life = (uint32_t)partition->life_count - 1;
        record->offset = life->end++;
        record->segment = segment;
        segment->records[i] = record;
        segment->bytes += (int64_t)record->payload_size / 4 + 8;
    }
    life->segments =
        memory_grow(life->segments, &life->segment_capacity, life->segment_count + 1, sizeof *life->segments);
    life->segments[life->segment_count++] = segment;
}

void log_push(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue, size_t partitions,
              int64_t records_max, int64_t payload_max, int64_t open_ms)
{
    struct log_queue *where = &log->queues[queue];
    int64_t visible = log->second ? now : now + open_ms;
    int64_t ts = log_stamp(log, now);
    if (!log->second && open_ms > 0)
        log_pin(log, now, visible);
    uint32_t number = (uint32_t)chance_below(chance, where->partition_count);
    for (size_t i = 0; i < partitions && i < where->partition_count; i++) {
        /* The lane is locked while another transaction has it. */
        if (!is_waited_for(current_life(&where->partitions[number]), now))
            segment_write(log, chance, queue, number, ts, visible, (size_t)chance_spread(chance, 1, records_max),
                          payload_max);
        number = (number + 1) % (uint32_t)where->partition_count;
    }
}

void log_push_one(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue, uint32_t partition)
{
    int64_t ts = log_stamp(log, now);
    segment_write(log, chance, queue, partition, ts, now, 1, 8);
}

/* ---- what can be seen ---- */

struct log_life *log_life_at(struct log_partition *partition, int64_t at)
{
    for (size_t i = partition->life_count; i-- > 0;)
        if (partition->lives[i].created <= at)
            return partition->lives[i].deleted > at ? &partition->lives[i] : NULL;
    return NULL;
}

void log_bounds(const struct log_life *life, int64_t at, int64_t *start, int64_t *end)
{
    *start = -1;
    *end = 0;
    for (size_t i = 0; i < life->segment_count && life->segments[i]->visible <= at; i++) {
        const struct log_segment *segment = life->segments[i];
        *end = segment->first + (int64_t)segment->count;
        if (*start < 0 && segment->deleted > at)
            *start = segment->first;
    }
    if (*start < 0)
        *start = *end;
}

int64_t log_last_write(const struct producer_log *log, const struct log_life *life, int64_t at)
{
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < life->segment_count && life->segments[i]->visible <= at; i++) {
        int64_t ts = life->segments[i]->ts;
        if (last == INT64_MIN || !log->coarse || ts - last > COARSE_US)
            last = ts;
    }
    return last;
}

bool segment_is_readable(const struct log_segment *segment, int64_t at)
{
    return at < segment->unreadable_from || at >= segment->unreadable_to;
}

/* ---- what is taken away ---- */

void log_retain(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue, uint32_t partition,
                uint64_t share)
{
    struct log_life *life = log_life_at(&log->queues[queue].partitions[partition], now);
    for (size_t i = 0; life != NULL && i < life->segment_count && life->segments[i]->visible <= now; i++) {
        if (life->segments[i]->deleted != NEVER)
            continue;
        if (!chance_of(chance, share))
            return;
        life->segments[i]->deleted = now;
    }
}

void log_make_hole(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue, int64_t until)
{
    struct log_queue *where = &log->queues[queue];
    struct log_life *life = log_life_at(&where->partitions[chance_below(chance, where->partition_count)], now);
    if (life == NULL || life->segment_count == 0)
        return;
    /* Near the end: that is where a sink reads. */
    size_t back = (size_t)chance_below(chance, life->segment_count < 4 ? life->segment_count : 4);
    struct log_segment *segment = life->segments[life->segment_count - 1 - back];
    if (segment->unreadable_from != NEVER || segment->visible > now)
        return;
    segment->unreadable_from = now;
    segment->unreadable_to = until;
}

bool log_delete_partition(struct producer_log *log, int64_t now, uint32_t queue, uint32_t partition)
{
    struct log_life *life = current_life(&log->queues[queue].partitions[partition]);
    if (life == NULL || is_waited_for(life, now) || life->created > now)
        return false;
    life->deleted = now;
    for (size_t i = 0; i < life->segment_count; i++)
        if (life->segments[i]->deleted == NEVER)
            life->segments[i]->deleted = now;
    return true;
}

static void calm_partition(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue,
                           uint32_t partition)
{
    struct log_life *life = current_life(&log->queues[queue].partitions[partition]);
    if (life == NULL || life->segment_count == 0)
        return;
    for (size_t i = 0; i < life->segment_count; i++)
        if (life->segments[i]->visible > now)
            life->segments[i]->visible = now;
    if (life->created > now)
        life->created = now;
    const struct log_segment *last = life->segments[life->segment_count - 1];
    if (!segment_is_readable(last, now) && last->deleted > now)
        log_push_one(log, chance, now, queue, partition);
}

void log_calm(struct producer_log *log, struct chance *chance, int64_t now)
{
    log->open_count = 0;
    log->degraded = false;
    for (uint32_t q = 0; q < log->queue_count; q++)
        for (uint32_t p = 0; p < log->queues[q].partition_count; p++)
            calm_partition(log, chance, now, q, p);
}
