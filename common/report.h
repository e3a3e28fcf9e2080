/*
 * What a worker tells the supervisor over their socket pair, and the other way: fixed structs in frames (both ends are
 * one binary, forked). Once a second, and at once on a commit.
 */
#ifndef COMMON_REPORT_H
#define COMMON_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/object_store.h"
#include "common/settings.h"

enum report_kind {
    REPORT_QUEUE = 1,     /* worker → supervisor: struct report_queue */
    REPORT_WORKER = 2,    /* worker → supervisor: struct report_worker, after the queues that changed */
    REPORT_ASSIGN = 3,    /* supervisor → worker: struct report_assign, then name_size bytes of name */
    REPORT_SHARE = 4,     /* supervisor → worker: struct report_share */
    REPORT_CONNECTOR = 5, /* worker → supervisor: struct report_connector */
    REPORT_ASK_STATE = 6  /* supervisor → worker: struct report_ask_state */
};

struct report_header {
    uint32_t kind;
    uint32_t size; /* of what follows, at most REPORT_SIZE_MAX */
};

#define REPORT_SIZE_MAX 65536u

enum report_queue_state {
    QUEUE_CLAIMING,   /* no lease yet: another holds it, or the claim is under way */
    QUEUE_RECOVERING, /* pointers, redo */
    QUEUE_RUNNING,
    QUEUE_STOPPED, /* a failure: tried again later */
    QUEUE_LOST,    /* the lease went to another instance */
    QUEUE_DRAINED  /* clean stop done */
};

/* `claiming`, `recovering` … */
const char *report_state_name(uint32_t state);

/* Totals count from the worker's start: the supervisor adds what dead workers had. */
struct report_queue {
    uint32_t queue; /* the number the supervisor gave it */
    uint32_t state; /* enum report_queue_state */
    uint64_t windows_committed;
    uint64_t records_written;
    uint64_t bytes_written[FORMAT_COUNT];
    uint64_t records_lost;
    uint64_t fetch_ok;
    uint64_t fetch_error;
    uint64_t partitions; /* gauge: discovery_partitions */
    uint64_t buffer_bytes;
    int64_t k;             /* last committed, -1: not known yet */
    int64_t end_us;        /* its tEnd on the broker's clock */
    int64_t through_us;    /* what the queue is through to (3.11), INT64_MIN: not known yet */
    int64_t checkpoint_k;  /* of the newest checkpoint written or loaded, -1: none */
    int64_t fresh_mono_ms; /* the latest of last commit and last "read all, nothing buffered" (3.11), 0: never;
                                 CLOCK_MONOTONIC is one clock for the whole machine */
    bool held_before;      /* this worker has held its lease at some time */
    bool standby;          /* another instance has held it since before this worker ever did */
    int64_t error_wall_ms; /* when that was last */
    char error[300];       /* the failure that stands in the way, "" where there is none */
    char holder[64];       /* the other instance that has its lease, as last seen; "": none */
};

#define REPORT_HISTOGRAM_BUCKETS 8
#define REPORT_CODES_MAX         64

struct report_request_count {
    int32_t operation; /* enum store_operation */
    int32_t code;
    uint64_t count;
};

struct report_worker {
    uint64_t buffer_bytes;
    uint64_t precondition_lost;
    bool has_safe_time;
    int64_t safe_time_us;      /* newest safeTime, broker's clock */
    int64_t safe_time_mono_ms; /* when it arrived */
    int64_t safe_time_wall_ms;
    uint64_t window_records[REPORT_HISTOGRAM_BUCKETS + 1]; /* per bucket, not cumulative; the last is +Inf:
                                                              1 10 … 10 000 000 */
    double window_records_sum;
    uint64_t window_bytes[REPORT_HISTOGRAM_BUCKETS + 1]; /* 1 4 16 64 128 256 512 1024 MiB */
    double window_bytes_sum;
    uint32_t request_count_used;
    struct report_request_count request_counts[REPORT_CODES_MAX];
};

/* Of a worker that runs a connector (spec 5.4), instead of the two above. Totals count from its start. */
struct report_connector {
    uint32_t connector; /* its number among the connectors */
    uint64_t consumed;  /* records that came */
    uint64_t processed; /* and are up */
    uint64_t filtered;  /* passed over, by on_undecodable */
    uint64_t errors;
    uint64_t files;
    uint64_t bytes;
    uint64_t lost;             /* offsets that retention took before they were read */
    uint64_t partitions;       /* gauge: assigned */
    uint64_t buffer_bytes;     /* gauge */
    int64_t committed_mono_ms; /* the last file that went up, 0: none */
    int64_t owed_mono_ms;      /* since when some partition has owed a file, 0: none does */
    char owed[256];            /* that partition, topic/number */
    int64_t blocked_mono_ms;   /* since when it can't read what it should, the Kafka broker's doing; 0: it can */
    int64_t fresh_mono_ms;     /* since then each partition has put up a file, or is through its log and owes none;
                                  0: not all of them */
    char error[300];           /* why it ends, can't read for now, or leaves a topic out; "": nothing is wrong */
};

struct report_assign {
    uint32_t queue;
    uint32_t from_log_start; /* a queue created while the pool ran: START doesn't count (4.1) */
    uint32_t name_size;
};

struct report_share {
    uint64_t budget_bytes;
};

/* To log one line a queue (4.2). */
struct report_ask_state {
    uint32_t lines; /* at most */
};

/* One frame into a non-blocking stream socket's outgoing buffer, and out of an incoming one. */
struct report_buffer {
    char *bytes;
    size_t start;
    size_t end;
    size_t capacity;
};

/* Appends a frame; 0, QS_ERROR_NO_MEMORY, or QS_ERROR_INPUT above REPORT_SIZE_MAX. `tail` may be NULL. */
int report_append(struct report_buffer *buffer, enum report_kind kind, const void *body, size_t size, const void *tail,
                  size_t tail_size);
/* Writes what the socket takes. 1: all is out; 0: some is left (wait for POLLOUT); QS_ERROR_SYSTEM: the other end went. */
int report_flush(struct report_buffer *buffer, int descriptor);
/* One read of what is there. 1: something came (there may be more); 0: nothing now; QS_ERROR_SYSTEM: end or error. */
int report_fill(struct report_buffer *buffer, int descriptor);
/* Takes the next whole frame: 1 and its body, 0: none yet, QS_ERROR_BODY: broken stream. The body has the size that its
 * kind says (an assignment's name included) and the alignment of its struct; valid until the next report_fill(). */
int report_next(struct report_buffer *buffer, struct report_header *header, const void **body);
void report_buffer_free(struct report_buffer *buffer);

#endif
