/*
 * A world (worker/world.h) in which nothing happens by itself: every call of the broker and of the store is kept, spelled
 * in one line, until the test answers it; the clock stands until the test moves it. Behind the tables are small models of
 * the broker's log and documents and of the bucket, so that a test says only what differs from a good day.
 *
 * Spelled, for example:
 *   fetch p1@0 p2@5                        offsets asked for
 *   changed orders, clicks since 12 after c    a page for each queue; "clock" where none is asked for
 *   kv put lease@7 ttl 30 required, put intent@0 required    "s3:default:orders:" left out of keys
 *   kv get intent committed
 *   put queen/…, part queen/… 2, complete queen/… 2 (number, count)
 *   crash after_intent                     not a call: the driver passed that point
 */
#ifndef TESTS_UNIT_SCRIPTED_WORLD_H
#define TESTS_UNIT_SCRIPTED_WORLD_H

#include "common/log.h"
#include "tests/sim/bucket.h"
#include "tests/sim/documents.h"
#include "worker/world.h"

#define LOG_PARTITIONS_MAX 8
#define LOG_RECORDS_MAX    64

enum scripted_kind {
    CALL_FETCH,
    CALL_CHANGED,
    CALL_KV,
    CALL_PUT,
    CALL_HEAD,
    CALL_GET,
    CALL_LIST,
    CALL_REMOVE,
    CALL_CREATE,
    CALL_PART,
    CALL_COMPLETE,
    CALL_ABORT,
    CALL_ENCODE, /* the encoder's next word: a part or the end */
    CALL_CRASH
};

#define KIND(kind) (1u << (kind))
#define BROKER_ALL (KIND(CALL_FETCH) | KIND(CALL_CHANGED) | KIND(CALL_KV))
#define STORE_ALL  0x00000ff8u
#define COMMIT_ALL (KIND(CALL_KV) | KIND(CALL_CRASH) | STORE_ALL)
#define NOTHING    0u
#define EVERYTHING UINT32_MAX

struct scripted_entry {
    char name[64];
    int64_t offset;
    uint32_t max_bytes;
    bool has_since;
    int64_t since;
    char after[32]; /* "" for none */
};

struct scripted_call {
    enum scripted_kind kind;
    char text[1024];
    bool open; /* neither answered nor cancelled */
    bool cancelled;
    struct scripted_world *world;
    union {
        queen_fetch_done *fetch;
        queen_changed_done *changed;
        queen_kv_done *kv;
        store_done *plain;
        store_head_done *head;
        store_get_done *get;
        store_list_done *list;
        store_created_done *created;
        store_part_done *part;
    } done;
    void *argument;
    struct scripted_entry *entries; /* of fetch and changed */
    size_t count;                   /* of entries, or of the parts that a completion names */
    size_t reserved;
    bool may_exceed;
    struct document_batch batch; /* of kv */
    int64_t timeout_ms;
    char *key; /* or prefix */
    char after[128];
    char content_type[64];
    uint8_t *bytes;
    size_t size;
    uint32_t number;
    uint64_t position;
    uint64_t upload;
    struct encode_job *job;
};

struct scripted_record {
    int64_t ts;
    size_t payload; /* bytes; a JSON string of that size */
    bool gone;
};

struct scripted_partition {
    char name[64];
    struct scripted_record records[LOG_RECORDS_MAX];
    size_t count; /* the next offset */
    int64_t log_start;
};

struct scripted_world {
    struct world world;
    struct queen_api queen;
    struct object_store store;
    struct encoder encoder;
    struct timers timers;
    struct budget budget;
    int64_t now;
    int64_t wall;
    uint64_t random; /* what draws give; 0: a delay is the shortest that its jitter allows, three quarters */
    struct scripted_call **calls;
    size_t call_count;
    size_t call_capacity;
    size_t mark;

    /* the models */
    struct documents documents;
    struct bucket bucket;
    struct scripted_partition log[LOG_PARTITIONS_MAX];
    size_t partition_count;
    int64_t safe_time;
    bool degraded;
    size_t page;             /* partitions a page may bring; 0: all */
    int64_t records_ceiling; /* records an entry may bring; 0: all */
    size_t part_size;
    size_t jobs;     /* not ended */
    size_t released; /* parts handed back */
    bool encoder_fails_to_start;
};

void scripted_world_begin(struct scripted_world *w);
/* Fails the test where something is left under way, or in the budget. */
void scripted_world_end(struct scripted_world *w);

/* ---- time, and a good day ---- */

/* Fires what is due and answers every open call whose kind isn't in `held` from the models, until nothing is left. */
void world_settle(struct scripted_world *w, uint32_t held);
/* The same over so much time, from timer to timer. */
void world_run(struct scripted_world *w, int64_t milliseconds, uint32_t held);
/* The time until the next timer; -1 for none. */
int64_t world_next_timer(const struct scripted_world *w);

/* ---- calls ---- */

/* The oldest open call that is spelled so, or begins so where the text ends in `*`. Fails the test where none is. */
struct scripted_call *world_call(struct scripted_world *w, const char *text);
bool world_has_call(const struct scripted_world *w, const char *text);
size_t world_open_calls(const struct scripted_world *w);
/* How many were made in all, answered or not. */
size_t world_count(const struct scripted_world *w, const char *text);
/* From here on world_trace() tells. */
void world_mark(struct scripted_world *w);
/* Calls of these kinds since the mark, a line each with "\n" at its end. Valid until the next. */
const char *world_trace(struct scripted_world *w, uint32_t kinds);

/* ---- answers ---- */

void call_answer(struct scripted_call *call); /* by the model */
/* Not applied, and this for an answer. status 0: none came. */
void call_fail(struct scripted_call *call, enum qs_error code, int status);
void call_fail_after(struct scripted_call *call, enum qs_error code, int status, int64_t retry_after_ms);
/* Applied, and its answer lost on the way. */
void call_lose(struct scripted_call *call);
void call_answer_kv(struct scripted_call *call, const struct kv_answer *answer);
void call_answer_head(struct scripted_call *call, uint64_t size);
void call_answer_changed(struct scripted_call *call, const struct changed_answer *answer);
/* Every entry with this status and no record. */
void call_answer_status(struct scripted_call *call, enum fetch_entry_status status);
/* Every entry of a page call so. */
void call_answer_page_status(struct scripted_call *call, enum changed_entry_status status);

/* ---- the models ---- */

/* Writes a document as somebody else would; the version. ttl 0: for ever. */
int64_t world_document(struct scripted_world *w, const char *key, const char *value, int64_t ttl_seconds);
/* Its value spelled without blanks, "" where it isn't there. Valid until the next. */
const char *world_document_text(struct scripted_world *w, const char *key);
int64_t world_version(struct scripted_world *w, const char *key);
void world_object(struct scripted_world *w, const char *key, const void *bytes, size_t size);
/* Its bytes as text, "" where it isn't there. Valid until the next. */
const char *world_object_text(struct scripted_world *w, const char *key);
/* One record at the end of a partition. */
void world_push(struct scripted_world *w, const char *partition, int64_t ts, size_t payload);
struct scripted_partition *world_partition(struct scripted_world *w, const char *name);

/* What log_capture() takes, with WORLD_LINE_SIZE bytes: the last line is left there. */
#define WORLD_LINE_SIZE 256
void world_take_line(void *argument, enum log_level level, const char *line);

/* For the files of the world itself. */
extern const struct queen_api_operations scripted_queen_operations;
extern const struct object_store_operations scripted_store_operations;
extern const struct encoder_operations scripted_encoder_operations;

struct scripted_call *call_new(struct scripted_world *w, enum scripted_kind kind, void *argument);
void call_spell(struct scripted_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
void call_close(struct scripted_call *call);
void call_cancel(struct scripted_call *call);
/* Each: the model's effect, then the answer; error->code other than 0 tells that instead. */
void queen_deliver(struct scripted_call *call, bool apply, const struct error *error);
void store_deliver(struct scripted_call *call, bool apply, const struct error *error);
void encoder_deliver(struct scripted_call *call, const struct error *error);

#endif
