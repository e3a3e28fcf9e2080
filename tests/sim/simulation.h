/*
 * One run: a configuration, a model of the broker, a model of the bucket, the instances between them, and the faults.
 */
#ifndef TESTS_SIM_SIMULATION_H
#define TESTS_SIM_SIMULATION_H

#include "common/settings.h"
#include "tests/sim/bucket.h"
#include "tests/sim/chance.h"
#include "tests/sim/documents.h"
#include "tests/sim/producer_log.h"
#include "tests/sim/scheduler.h"

#define INSTANCES_MAX 2
#define QUEUES_MAX    2

/* What may go wrong, each in thousandths of the calls. */
struct weather {
    uint64_t lost_request; /* not applied, no answer */
    uint64_t lost_answer;  /* applied, no answer */
    uint64_t status;       /* 429 or 5xx, not applied, with or without Retry-After */
    uint64_t odd_status;   /* 5xx though it was applied */
    uint64_t doubled;      /* a write reaches the other side twice */
    uint64_t slow;         /* takes up to slow_ms instead of usual_ms */
    uint64_t bad_body;
    uint64_t refused; /* a 4xx: the queue stops for a minute */
    int64_t usual_ms;
    int64_t slow_ms;
};

/* Everything that the seed decides before the run begins. */
struct scenario {
    int64_t base_us; /* the broker's clock at millisecond 0 */
    int64_t history_ms;
    int64_t duration_ms; /* of pushes and faults */
    size_t queue_count;
    size_t partition_count; /* each queue's names to choose from */
    int64_t push_gap_ms;    /* between pushes, on average */
    int64_t records_max;    /* a push and partition */
    int64_t payload_max;

    enum setting_align align;
    enum setting_compression compression;
    enum setting_start start;
    bool from_log_start;
    const char *prefix;
    int64_t target_bytes;
    int64_t max_window_ms;
    int64_t guard_ms;
    int64_t discovery_interval_ms;
    int64_t fetch_concurrency;
    int64_t lease_ttl_ms;
    int64_t checkpoint_every;
    size_t memory;
    uint64_t multipart_threshold;

    struct weather weather;
    uint64_t entry_fault;    /* thousandths of fetch entries that fail by themselves */
    int64_t answer_ceiling;  /* bytes a fetch call may bring */
    int64_t records_ceiling; /* records an entry may bring */
    int64_t page_ceiling;    /* partitions a page may bring */
    bool tight;              /* memory is small on purpose */

    int64_t trouble_gap_ms; /* between things that happen to instances; 0: never */
    bool two_instances;
    bool reconfigured; /* settings change at a restart */
    bool crash_points;
    bool retention;
    bool holes;
    bool lives; /* partitions are deleted and created again */
    bool pins;  /* safeTime stands still at times */
    bool lost_checkpoints;
    bool lost_pointer;
};

struct simulation {
    uint64_t seed;
    bool verbose;
    struct chance chance;
    struct scheduler scheduler;
    struct scenario scenario;
    struct producer_log log;
    struct documents documents;
    struct bucket bucket;
    struct instance *instances[INSTANCES_MAX];
    const char *queues[QUEUES_MAX];
    bool faults; /* things may still go wrong */
    bool over;   /* no instance starts any more */
    bool pointer_lost;
    uint32_t incarnations;
    int64_t first_safe_time[QUEUES_MAX]; /* the earliest that an instance can have been told; INT64_MIN: none yet */
    char last_incarnation[INSTANCES_MAX][20];
    uint64_t second_events; /* dispatched in the second that runs */
    int64_t second;
    bool failed;
    char reason[1024];
    /* for the summary */
    uint64_t windows;
    uint64_t records;
    uint64_t lost;
    uint64_t missing_in_new_lives;
};

/* The first failure stands; the run ends at the next event. */
void sim_fail(struct simulation *simulation, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of the trace, with --verbose. */
void sim_trace(const struct simulation *simulation, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define SIM_TRACE(simulation, ...)                \
    do {                                          \
        if ((simulation)->verbose)                \
            sim_trace((simulation), __VA_ARGS__); \
    } while (0)

/* scenario.c */
void scenario_choose(struct simulation *simulation);
/* Pushes and everything else that happens to the broker and to instances from now to the end of the faults. */
void scenario_begin(struct simulation *simulation);
/* Ends everything that stands in the way of an end: pins, holes, an instance that is down. */
void scenario_calm(struct simulation *simulation);

/* check.c: the lake is the log. */
void check_lake(struct simulation *simulation, bool whole);

#endif
