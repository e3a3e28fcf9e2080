/*
 * The live load of --rate: a producer inside the broker; see load.h for the contract.
 *
 * It pushes the records of the first plain --load over and over, or records of its own making.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "gather.h"
#include "load.h"

#define TICK_MS     10
#define BATCH_LIMIT 100000

struct live {
    struct broker *broker;
    pthread_t thread;
    struct lines lines;
    const char *partition_by;
    struct gather gather;
    struct text made; /* payloads of this tick */
    int64_t pushed;
};

static void push_made(struct live *live, uint64_t number)
{
    const struct options *options = &live->broker->options;
    char partition[32];
    size_t start = live->made.size;
    int size = snprintf(partition, sizeof partition, "live-%06llu",
                        (unsigned long long)(number % (uint64_t)options->rate_partitions));
    size_t wanted = (size_t)options->rate_payload_bytes;

    text_add_format(&live->made, "{\"number\":%llu,\"filler\":\"", (unsigned long long)number);
    if (live->made.size - start + 2 < wanted) {
        size_t filler = wanted - 2 - (live->made.size - start);

        text_reserve(&live->made, filler);
        memset(live->made.at + live->made.size, 'x', filler);
        live->made.size += filler;
    }
    text_add_string(&live->made, "\"}");
    gather_add(&live->gather, (struct slice){partition, (size_t)size},
               (struct slice){live->made.at + start, live->made.size - start}, number);
}

static void push_loaded(struct live *live, uint64_t number)
{
    struct slice line = live->lines.lines[number % live->lines.count];
    struct text name = {0};

    load_partition(line, live->partition_by, &name);
    /* Away from the numbers of the load itself, whose transaction ids are made the same way. */
    gather_add(&live->gather, text_slice(&name), line, number + (UINT64_C(1) << 48));
    text_free(&name);
}

static void push_tick(struct live *live, int64_t count)
{
    /* Payloads are borrowed by the gather, so the buffer must not move while it is filled. */
    if (live->lines.count == 0) {
        live->made.size = 0;
        text_reserve(&live->made, (size_t)count * ((size_t)live->broker->options.rate_payload_bytes + 64));
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t number = (uint64_t)live->pushed++;

        if (live->lines.count == 0) {
            push_made(live, number);
        } else {
            push_loaded(live, number);
        }
    }
    gather_flush(&live->gather);
}

static void *live_run(void *argument)
{
    struct live *live = argument;
    const struct options *options = &live->broker->options;
    struct timespec tick = {0, TICK_MS * 1000000L};
    int64_t start_ms = clock_mono_ms();

    while (!atomic_load(&live->broker->stopping) &&
           (options->rate_records == 0 || live->pushed < options->rate_records)) {
        int64_t due = (clock_mono_ms() - start_ms) * options->rate / 1000;

        due = options->rate_records > 0 && due > options->rate_records ? options->rate_records : due;
        due -= live->pushed;
        if (due > 0) {
            push_tick(live, due < BATCH_LIMIT ? due : BATCH_LIMIT);
        } else {
            nanosleep(&tick, NULL);
        }
    }
    return NULL;
}

static const struct load *first_plain(const struct options *options)
{
    for (size_t i = 0; i < options->load_count; i++) {
        if (!options->loads[i].is_log) {
            return &options->loads[i];
        }
    }
    return NULL;
}

struct live *live_start(struct broker *broker)
{
    struct live *live = memory_take(1, sizeof *live);
    const struct load *load = first_plain(&broker->options);
    const struct load *settings = load == NULL ? &broker->options.defaults : load;

    live->broker = broker;
    if (load != NULL) {
        live->partition_by = load->partition_by;
        if (!lines_read(load->file, &live->lines)) {
            free(live);
            return NULL;
        }
    }
    gather_start(&live->gather, broker, settings->queue, settings->segment_records);
    if (pthread_create(&live->thread, NULL, live_run, live) != 0) {
        fputs("devbroker: can't start the live load's thread\n", stderr);
        exit(1);
    }
    return live;
}

void live_end(struct live *live)
{
    pthread_join(live->thread, NULL);
    gather_end(&live->gather);
    lines_free(&live->lines);
    text_free(&live->made);
    free(live);
}
