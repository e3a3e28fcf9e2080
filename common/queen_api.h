/*
 * The Queen HTTP API as the sink uses it (spec 01), as a table of functions: the real client, and the simulator's.
 *
 * Every call is asynchronous: it returns at once, and its callback runs exactly once, later, from the loop, never from
 * within the call itself. Each is one attempt: who calls decides about another. A call can be cancelled, and then its
 * callback never runs (a kv write may have been applied all the same). No call returns NULL: who can't allocate a call
 * ends the process (memory.h).
 *
 * Requests are read during the call and need not outlive it. Answers belong to the callee of the callback only as said.
 */
#ifndef COMMON_QUEEN_API_H
#define COMMON_QUEEN_API_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/block.h"
#include "common/clock.h"
#include "common/error.h"

struct queen_api;
struct queen_call; /* one call under way; valid until its callback has run or it is cancelled */

/* A name: any bytes but below 0x20, any length, may be empty, not NUL-terminated. */
struct name {
    const char *bytes;
    size_t size;
};

/* ---- fetch (1.2) ---- */

#define QUEEN_FETCH_ENTRIES_MAX 1024
#define QUEEN_FETCH_BYTES_MAX   8388608u

struct fetch_request_entry {
    struct name queue;
    struct name partition;
    int64_t offset;     /* >= 0 */
    uint32_t max_bytes; /* 1 … 8 MiB of compressed segments; overshoots by up to one segment */
};

struct fetch_request {
    const struct fetch_request_entry *entries;
    size_t count;          /* 1 … 1024 */
    struct budget *budget; /* what the answer is counted in; may be NULL */
    size_t reserved;       /* bytes the caller has taken from it for this call: the call's from now on */
    bool may_exceed;       /* the answer may grow past the reservation though the budget has no room: otherwise it
                              fails with QS_ERROR_NO_ROOM */
};

enum fetch_entry_status {
    FETCH_OK,
    FETCH_OUT_OF_RANGE,  /* OFFSET_OUT_OF_RANGE: below the log start, or above the high watermark */
    FETCH_UNKNOWN_QUEUE, /* UNKNOWN_TOPIC_OR_PARTITION */
    FETCH_PASSING        /* any other error text: a passing fault of this entry */
};

struct fetch_entry {
    enum fetch_entry_status status;
    size_t first_record; /* index into block->records */
    size_t record_count; /* offsets rise, all >= the one asked for; ts never falls; may have holes */
    int64_t high_watermark;
    int64_t log_start;
};

struct fetch_answer {
    struct block *block;               /* one reference, the callee's to release */
    const struct fetch_entry *entries; /* as many as were asked for, in that order; valid during the callback */
    size_t count;
};

/* error->code 0: answer is there. Otherwise answer is NULL. */
typedef void queen_fetch_done(void *argument, const struct error *error, struct fetch_answer *answer);

/* ---- partitions/changed (1.3) ---- */

#define QUEEN_CHANGED_ENTRIES_MAX 64

struct changed_request_entry {
    struct name queue;
    bool has_since; /* false: enumerate every partition */
    struct broker_us since;
    const char *after; /* the cursor of the page before, NULL at the first */
    uint32_t limit;    /* 1 … 1000 */
};

struct partition_id {
    uint8_t bytes[16]; /* a UUID (2.x, 1.7) */
};

struct changed_partition {
    struct name name;
    int64_t last_offset;
    int64_t log_start;
    struct broker_us last_write_at;
    bool has_id;
    struct partition_id id;
};

enum changed_entry_status { CHANGED_OK, CHANGED_UNKNOWN_QUEUE, CHANGED_BAD_CURSOR, CHANGED_PASSING };

struct changed_entry {
    enum changed_entry_status status;
    const struct changed_partition *partitions;
    size_t count;
    const char *next; /* NULL: the pass ends here */
};

struct changed_answer {
    struct broker_us safe_time;
    bool degraded;                       /* false where the answer doesn't say */
    const struct changed_entry *entries; /* as asked, in that order */
    size_t count;
}; /* all of it valid during the callback only */

typedef void queen_changed_done(void *argument, const struct error *error, const struct changed_answer *answer);

/* ---- kv (1.4) ---- */

#define QUEEN_KV_OPERATIONS_MAX 256

enum kv_kind { KV_GET_MANY, KV_PUT, KV_PUT_IF_ABSENT, KV_DELETE };

struct kv_operation {
    enum kv_kind kind;
    const char *key;         /* writes */
    const char *const *keys; /* KV_GET_MANY */
    size_t key_count;
    const char *value;   /* JSON text, puts */
    int64_t ttl_seconds; /* 0: forever */
    bool has_expect;
    int64_t expect; /* a version; 0: must not exist */
    bool required;
};

enum kv_reason { KV_REASON_NONE, KV_REASON_EXISTS, KV_REASON_ABSENT, KV_REASON_VERSION };

struct kv_row {
    const char *key;
    int64_t version;
    const cJSON *value;
};

struct kv_result {
    bool applied;              /* writes */
    enum kv_reason reason;     /* of one that lost */
    int64_t version;           /* ours, or the winner's; 0 where there is none */
    const cJSON *value;        /* the winner's; may be NULL */
    const struct kv_row *rows; /* KV_GET_MANY: those found, in no order to lean on */
    size_t row_count;
};

struct kv_answer {
    bool precondition_failed;        /* the whole batch was rolled back: a required operation lost */
    size_t failed_index;             /* the one that lost first in key order; SIZE_MAX where the answer doesn't say */
    enum kv_reason reason;           /* of that one, KV_REASON_NONE where the answer doesn't say */
    int64_t version;                 /* its winner's, 0 where the answer doesn't say */
    const cJSON *value;              /* its winner's, NULL where the answer doesn't say */
    const struct kv_result *results; /* one an operation; NULL where precondition_failed */
    size_t count;
}; /* all of it valid during the callback only */

typedef void queen_kv_done(void *argument, const struct error *error, const struct kv_answer *answer);

/* ---- queue list (1.5) ---- */

struct queues_answer {
    const struct name *queues;
    size_t count;
};

typedef void queen_queues_done(void *argument, const struct error *error, const struct queues_answer *answer);

/* ---- the table ---- */

struct queen_api_operations {
    struct queen_call *(*fetch)(struct queen_api *api, const struct fetch_request *request, queen_fetch_done *done,
                                void *argument);
    struct queen_call *(*changed)(struct queen_api *api, const struct changed_request_entry *entries, size_t count,
                                  queen_changed_done *done, void *argument);
    /* timeout_ms: spec 3.6 gives kv calls their own. Every key is of namespace queen-s3. */
    struct queen_call *(*kv)(struct queen_api *api, const struct kv_operation *operations, size_t count,
                             int64_t timeout_ms, queen_kv_done *done, void *argument);
    struct queen_call *(*queues)(struct queen_api *api, queen_queues_done *done, void *argument);
    void (*cancel)(struct queen_api *api, struct queen_call *call);
};

struct queen_api {
    const struct queen_api_operations *operations;
};

#endif
