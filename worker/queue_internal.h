/*
 * What the files of the queue driver share, and nobody else:
 *   queue.c         its life: start, stop, step, report
 *   queue_lease.c   the lease and the guarded writes (spec 3.5, 3.6)
 *   queue_origin.c  where it starts: pointers, redo, checkpoint (spec 3.5)
 *   queue_passes.c  discovery
 *   queue_reads.c   fetching
 *   queue_commit.c  the commit sequence
 *   queue_redo.c    what an earlier attempt put up
 *   queue_checkpoint.c  checkpoints
 */
#ifndef WORKER_QUEUE_INTERNAL_H
#define WORKER_QUEUE_INTERNAL_H

#include "common/lake/documents.h"
#include "common/lake/key.h"
#include "common/log.h"
#include "worker/queue.h"
#include "worker/retry.h"
#include "worker/upload.h"
#include "worker/window.h"
#include "worker/window_objects.h"

#define QUEUE_RETRY_MS 60000 /* a stopped queue is tried again (spec 3.7) */

/* A write of one document under the lease: both travel in one batch, both must hold (spec 3.5). */
struct guarded_write {
    bool active;
    const char *key;
    char *value;
    int64_t *version; /* expected, 0: must not exist; the new one afterwards */
    void (*done)(struct queue *queue);
};

struct lease {
    bool held;
    bool held_before;
    bool expired;    /* the row is gone without a rival: written anew with putIfAbsent */
    bool unsure;     /* a write had no answer: the row is read back before the next */
    bool judging;    /* the read back under way asks for the document of a guarded write too */
    bool standby;    /* another instance has held it since before we ever did */
    char holder[64]; /* that other instance, "": none that we know of */
    int64_t version;
    struct mono_ms written;
    char *value;
    struct lease_request request; /* claim or refresh under way, through lease_calls */
    bool requested;
    bool wants_refresh;
    struct queen_call *call;  /* guarded write, read back, pointers or release: one at a time */
    struct timer timer;       /* the next claim or refresh */
    struct timer retry_timer; /* the next attempt of a guarded write or read back */
    struct retry retry;
    struct guarded_write write;
    bool releasing;
    void (*released)(struct queue *queue);
};

struct pass_slot {
    struct queue *queue;
    struct window_pass pass;
    struct page_request request;
    bool active;
};

struct read_call {
    struct queue *queue;
    struct queen_call *call;
    struct window_read *reads;
    uint32_t *max_bytes;
    size_t count;
    uint64_t weight; /* what it was expected to weigh */
    bool alone;      /* allowed past the budget */
    struct read_call *next;
};

struct held_partition {
    struct partition *partition;
    struct mono_ms ready;
};

enum commit_step { COMMIT_IDLE, COMMIT_INTENT, COMMIT_LOOK, COMMIT_UPLOAD, COMMIT_MANIFEST, COMMIT_POINTER };

/* An object of an earlier attempt, described from its own content (spec 3.5). */
struct kept_object {
    struct manifest_object object; /* key and partition are its own */
    struct broker_us min_ts;
    struct broker_us max_ts;
    uint64_t partitions;
};

struct commit {
    enum commit_step step;
    struct window_plan plan;
    struct window_bounds bounds;
    struct window_shape shape;
    char *prefix;
    bool redo;
    bool manifest_found; /* a redo whose objects are all up */
    char manifest_key[LAKE_KEY_SIZE];
    struct window_objects *objects;
    struct redo_look *look;   /* a redo that looks at what is up already */
    struct kept_object *kept; /* what it found whole, and keeps */
    size_t kept_count;
    size_t kept_capacity;
    struct small_put *put;
    uint64_t records;
    uint64_t bytes;
    uint64_t lost;
};

struct document {
    int64_t version; /* 0: absent */
    bool exists;
};

struct queue {
    struct queue_host *host;
    struct world *world;
    char *name;
    size_t name_size;
    char escaped[LAKE_NAME_SIZE];
    uint32_t number;
    bool from_log_start;

    enum report_queue_state state;
    bool draining;
    bool drain_decided; /* the window being filled was closed or dropped */
    bool force_close;
    struct timer restart_timer;
    char *lease_key;
    char *intent_key;
    char *committed_key;
    struct lease lease;

    /* where it starts */
    struct document intent_document;
    struct document committed_document;
    struct lake_intent intent;
    int64_t committed_k;
    int64_t committed_end; /* INT64_MIN: none */
    struct store_call *store_call;
    struct timer origin_timer;
    struct retry origin_retry;
    int64_t checkpoint_ks[2]; /* candidates at or below committed_k: the newest, the one before; -1: none */
    size_t checkpoint_at;     /* the one being looked at */
    char *list_token;
    struct broker_us checkpoint_end;
    struct queen_call *origin_call;

    struct window_engine *engine;

    /* discovery */
    struct pass_slot incremental;
    struct pass_slot full;
    struct timer tick;
    uint64_t pass_count;
    bool full_again; /* a full pass broke off */
    int64_t seen_safe_time;
    struct mono_ms safe_time_moved;
    bool told_degraded;
    bool told_clock; /* whether it is behind, since the start */

    /* reading */
    struct read_call *reads;
    size_t read_count;
    bool reading_paused;
    struct timer read_timer;
    struct retry read_retry;
    struct held_partition *held;
    size_t held_count;
    size_t held_capacity;
    struct timer held_timer;
    uint64_t average_record; /* bytes of text a record takes in an answer */
    uint64_t ratio_percent;  /* text bytes an answer brings for each byte of max_bytes, in percent */
    uint32_t short_of_room;  /* answers in a row that outgrew their reservation */
    bool wants_room;

    struct commit commit;
    struct small_put *checkpoint_put;
    int64_t checkpoint_k; /* newest written or loaded; -1: none */
    int64_t checkpoint_pending_k;
    bool checkpoint_failing; /* the one under way: at least one attempt failed */
    bool committed_since_checkpoint;
    bool drained_told;
    struct store_call *cleanup_call;
    char *cleanup_keys[2]; /* the two newest seen, to be kept */
    char *cleanup_token;

    /* what is told */
    uint64_t windows_committed;
    uint64_t records_written;
    uint64_t bytes_written[FORMAT_COUNT];
    uint64_t records_lost;
    uint64_t fetch_ok;
    uint64_t fetch_error;
    int64_t through; /* broker's clock, INT64_MIN: not known */
    struct mono_ms fresh;
    char fault[640]; /* the failure that stands in the way, "": none */
    struct wall_ms fault_at;
    struct log_limit fetch_limit;
    struct log_limit kv_limit;
    struct log_limit other_limit;
    struct log_limit lost_limit;
};

/* queue.c */
void queue_step(struct queue *queue);
/* What keeps it from going on, for status; it stands until the queue gets on: a commit, or all read and nothing
 * buffered. */
void queue_fault(struct queue *queue, const char *format, ...) __attribute__((format(printf, 2, 3)));
void queue_fault_over(struct queue *queue);
/* A failure that passes: shown in status and the log, the step goes on. */
void queue_note(struct queue *queue, struct log_limit *limit, const char *what, const struct error *error);
/* Stops: everything under way is dropped, the lease given back, another try after QUEUE_RETRY_MS. */
void queue_stop(struct queue *queue, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Another instance has it: another try after the TTL. */
void queue_lose(struct queue *queue, const char *holder);

/* queue_lease.c */
void lease_claim(struct queue *queue);
void lease_refresh(struct queue *queue);
void lease_release(struct queue *queue, void (*done)(struct queue *queue));
void lease_drop(struct queue *queue);
/* Of a kv call, and the longest pause between two tries of it (spec 3.6). */
int64_t lease_kv_timeout_ms(const struct queue *queue);
/* Another instance has it: its name, for status. */
void lease_held_by(struct queue *queue, const char *holder);
void guarded_start(struct queue *queue, const char *key, char *value, int64_t *version,
                   void (*done)(struct queue *queue));

/* queue_origin.c */
void origin_begin(struct queue *queue);
/* The k of a checkpoint's key, -1 where it isn't one. */
int64_t checkpoint_key_k(const char *key);
void origin_drop(struct queue *queue);

/* queue_passes.c */
void passes_begin(struct queue *queue);
void passes_drop(struct queue *queue);

/* queue_reads.c */
void reads_step(struct queue *queue);
void reads_drop(struct queue *queue);

/* queue_commit.c */
void commit_begin(struct queue *queue);
/* A redo whose manifest names the intent: only the pointer is left. */
void commit_from_manifest(struct queue *queue, uint64_t records, uint64_t bytes, uint64_t lost);
void commit_drop(struct queue *queue);
/* A redo knows what it keeps and what is left to put up. */
void commit_looked(struct queue *queue);

/* queue_redo.c */
void redo_look(struct queue *queue);
void redo_look_drop(struct queue *queue);

/* queue_checkpoint.c */
void checkpoint_write(struct queue *queue);
void checkpoint_drop(struct queue *queue);

#endif
