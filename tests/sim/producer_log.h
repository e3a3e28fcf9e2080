/*
 * A model of the broker's log: every record that was ever written, and what of it can be seen at any moment, on a broker
 * of either kind (spec 1.2, 1.3, 1.7). Nothing is ever thrown away here: the check needs all of it.
 *
 * All changes carry the millisecond at which they take effect, so what a node that lags shows is what was true then.
 */
#ifndef TESTS_SIM_PRODUCER_LOG_H
#define TESTS_SIM_PRODUCER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/chance.h"

#define NEVER     INT64_MAX
#define NODES_MAX 3

struct log_segment;

struct log_record {
    uint32_t queue;
    uint32_t partition;
    uint32_t life;
    int64_t offset;
    struct log_segment *segment;
    char *id;
    size_t id_size;
    char *id_spelled; /* as it stands in a JSON string */
    size_t id_spelled_size;
    char *payload;
    size_t payload_size;
    bool null_payload;
    bool line_breaks;
    uint32_t windows; /* the check's: how many times it is in the lake */
    bool told_lost;   /* the check's: a manifest lists it */
};

struct log_segment {
    int64_t first;
    size_t count;
    int64_t ts;
    int64_t visible;         /* milliseconds; later than its ts while its transaction is open */
    int64_t deleted;         /* NEVER */
    int64_t unreadable_from; /* NEVER */
    int64_t unreadable_to;
    int64_t bytes;
    struct log_record **records;
    bool below_promise; /* its ts lies below a safeTime that was given before it could be seen */
};

struct log_life {
    uint8_t id[16];
    uint32_t creation; /* in the order that partitions were created in */
    int64_t created;
    int64_t deleted; /* NEVER */
    struct log_segment **segments;
    size_t segment_count;
    size_t segment_capacity;
    int64_t end; /* the next offset */
};

struct log_partition {
    const char *name;
    size_t name_size;
    struct log_life *lives;
    size_t life_count;
    size_t life_capacity;
    size_t shown; /* lives that fetch answers showed: none goes back to an older one */
};

struct log_queue {
    struct log_partition *partitions;
    size_t partition_count;
};

struct log_stamp {
    int64_t at;
    int64_t us;
};

struct open_transaction {
    int64_t from_us;
    int64_t until;
};

struct producer_log {
    bool second; /* a 2.x broker */
    bool coarse; /* lastWriteAt is refreshed once a second (1.x) */
    size_t node_count;
    int64_t node_lag_max;
    int64_t node_view[NODES_MAX]; /* how far each has applied */
    int64_t base_us;
    int64_t last_stamp;
    int64_t safe_lag_us; /* 1.x: 5 s, or 30 s while degraded */
    bool degraded;
    struct log_queue *queues;
    size_t queue_count;
    struct log_stamp *stamps;
    size_t stamp_count;
    size_t stamp_capacity;
    struct open_transaction *open;
    size_t open_count;
    size_t open_capacity;
    struct log_record **records;
    size_t record_count;
    size_t record_capacity;
    uint32_t creations;
    uint64_t serial;
};

/* One node's view at one moment. */
struct log_view {
    int64_t at;
    int64_t safe_time;
};

void log_init(struct producer_log *log, size_t queue_count, size_t partition_count, int64_t base_us);
void log_free(struct producer_log *log);
/* The next stamp of the broker's clock at millisecond `now`; a write of any kind takes one. */
int64_t log_stamp(struct producer_log *log, int64_t now);
/* One push: `partitions` of them get records of one ts, visible at once, or when their transaction ends. */
void log_push(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue, size_t partitions,
              int64_t records_max, int64_t payload_max, int64_t open_ms);
/* One record for a partition that is there. */
void log_push_one(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue, uint32_t partition);
/* A transaction that writes nothing and pins safeTime. */
void log_pin(struct producer_log *log, int64_t now, int64_t until);
/* Deletes whole segments of the front; `share` in thousandths of those there are. */
void log_retain(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue, uint32_t partition,
                uint64_t share);
void log_make_hole(struct producer_log *log, struct chance *chance, int64_t now, uint32_t queue, int64_t until);
/* Deletes a partition; true if there was one. The next push creates it again. */
bool log_delete_partition(struct producer_log *log, int64_t now, uint32_t queue, uint32_t partition);
/* Ends what would keep a sink from ever reading on: holes at the tail, open transactions. */
void log_calm(struct producer_log *log, struct chance *chance, int64_t now);

struct log_view log_look(struct producer_log *log, struct chance *chance, int64_t now);
/* The life that is there at a view; NULL for none. */
struct log_life *log_life_at(struct log_partition *partition, int64_t at);
void log_bounds(const struct log_life *life, int64_t at, int64_t *start, int64_t *end);
int64_t log_last_write(const struct producer_log *log, const struct log_life *life, int64_t at);
bool segment_is_readable(const struct log_segment *segment, int64_t at);

#endif
