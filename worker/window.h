/*
 * The window engine (spec 3.3, 3.4, 3.8): one queue's log in, windows out. Pure: no socket, no thread, no clock, no log.
 * Events go in as calls (a discovery page, a fetch answer), actions are asked for (what to read next, a window to
 * close). Every time in it came from the broker; this header knows no other clock.
 *
 * What it keeps true:
 *  - a window is exactly the records with ts in [start, end), each once;
 *  - nothing is skipped: a partition that can't be read keeps its frontier and so holds the close back;
 *  - end depends on the log, the alignment and the target, not on the order or size of answers, except where a live
 *    window ends by time or memory forces it.
 */
#ifndef WORKER_WINDOW_H
#define WORKER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lake/key.h"
#include "common/queen_api.h"
#include "worker/run.h"

struct window_engine;
struct partition;

struct window_settings {
    int64_t target_weight; /* TARGET_MB in bytes of weight (spec 3.3) */
    int64_t max_window_us;
    int64_t guard_us;
    enum setting_align align;
};

struct window_engine *window_create(const struct window_settings *settings);
void window_destroy(struct window_engine *engine);

/* ---- where it starts: one of the three, before the first page ---- */

/* Nothing committed, from the log start: the first record says where the first window begins. */
void window_start_earliest(struct window_engine *engine);
/* After a committed window (or T_0 of START=latest): nothing below `end` is wanted. */
void window_start_after(struct window_engine *engine, struct broker_us end);
/* A window that an intent fixed: exactly [start, end), then on from end. */
void window_start_redo(struct window_engine *engine, struct broker_us start, struct broker_us end);
/* A checkpoint's entry (spec 2.4), id NULL where there is none. */
void window_add_position(struct window_engine *engine, struct name name, int64_t position,
                         const struct partition_id *id);
/* Forget every position that was added: a checkpoint that turned out to be broken. */
void window_clear_positions(struct window_engine *engine);

/* ---- discovery ---- */

struct window_pass {
    bool full;       /* enumerates every partition */
    uint32_t number; /* of full passes, from 1 */
    uint32_t begun;  /* the count of page calls when it began */
    uint32_t call;   /* of the page under way */
    bool has_page;
    int64_t safe_time; /* smallest of its pages so far */
};

/* Begins a pass. *since and *has_since say what to ask for: a pass without `since` is a full one whatever was asked. */
void window_pass_begin(struct window_engine *engine, struct window_pass *pass, bool full, bool *has_since,
                       struct broker_us *since);
/* A page's call is being sent now: what a page says is held against what was known at this moment. */
void window_pass_call(struct window_engine *engine, struct window_pass *pass);
void window_pass_page(struct window_engine *engine, struct window_pass *pass, struct broker_us safe_time,
                      const struct changed_partition *partitions, size_t count);
void window_pass_end(struct window_engine *engine, struct window_pass *pass);
/* The broker has no such queue any more: all its partitions are gone, what of them is unread is lost, and what is
 * buffered can be closed up to safe_time. */
void window_queue_gone(struct window_engine *engine, struct broker_us safe_time);
/* A partition may be gone: a full enumeration should begin now rather than at its turn. */
bool window_wants_full_pass(const struct window_engine *engine);

/* ---- reading ---- */

struct window_read {
    struct partition *partition;
    struct name name; /* valid until the read is given back */
    int64_t offset;
    uint32_t life;
    bool probe;     /* a seek: the smallest answer will do */
    bool largest;   /* came back empty before: as the first entry of its call, ask for the largest answer */
    bool first;     /* set by the caller when it was the first entry, at the largest max_bytes */
    int64_t unread; /* records known to be unread; 0 for a probe */
};

/* Takes the readable partition with the lowest frontier; false where nothing may be read now. Each read taken is given
 * back by exactly one of the next two. */
bool window_next_read(struct window_engine *engine, struct window_read *read);
/* Records of one extent are kept by retaining the block. */
enum window_read_result {
    WINDOW_READ_DONE,  /* nothing to be done about it */
    WINDOW_READ_HOLE,  /* a hole: window_read_ready() after a while (spec 3.8: three times over at least 10 s) */
    WINDOW_READ_EMPTY, /* unreadable below its watermark though it was first and at the largest size: ready later */
    WINDOW_READ_FAULT  /* a passing fault of this entry: ready later */
};
enum window_read_result window_read_done(struct window_engine *engine, const struct window_read *read,
                                         const struct fetch_entry *entry, struct block *block);
/* The call had no answer. */
void window_read_failed(struct window_engine *engine, const struct window_read *read);
/* A partition held back by HOLE, EMPTY or FAULT may be read again. */
void window_read_ready(struct window_engine *engine, struct partition *partition);
/* How many times in a row a partition was held back. */
uint32_t window_read_failures(const struct partition *partition);

/* What blocks the close can't be read now (held back), or nothing but safeTime does: whatever is read meanwhile is read
 * ahead, and worth no memory that has to be taken from something. */
bool window_is_held_up(const struct window_engine *engine);

/* How much a read should ask for, in bytes of weight, so that all that are behind fill one window together: each by its
 * share of what is unread. */
int64_t window_read_weight(const struct window_engine *engine, const struct window_read *read);

/* ---- closing ---- */

struct lost_range {
    char *partition; /* owned by whoever holds the range */
    size_t partition_size;
    int64_t from; /* inclusive */
    int64_t to;   /* inclusive */
    bool previous_life;
    bool misdated; /* they are there, with a ts of a window that is closed: the broker's clock stepped back */
    bool told;     /* for the caller: a log line was written */
};

/* A partition's part of a window that isn't held in memory: read again, offsets [first, end), just before it is written. */
struct surveyed_run {
    struct name partition;
    int64_t first;
    int64_t end;
    uint64_t records;
    uint64_t text_size; /* of its lines */
};

struct window_plan {
    struct broker_us start;
    struct broker_us end;
    struct run *runs; /* ascending by name as bytes */
    size_t run_count;
    struct extent *extents;
    size_t extent_count;
    char *names;
    uint64_t records;
    uint64_t weight;
    struct lost_range *lost;
    size_t lost_count;
    struct surveyed_run *surveyed; /* instead of runs, ascending by name; NULL: runs it is */
    size_t surveyed_count;
};

/* Closes the window if it is due, or, forced, if it holds anything that can be closed now. On true the plan holds
 * references to its blocks until window_plan_free(). A redo closes once it is whole, also with no record left at all. */
bool window_close(struct window_engine *engine, bool force, struct window_plan *plan);
void window_plan_free(struct window_plan *plan);
/* Puts a plan's lost ranges back: they wait for the next window. */
void window_plan_return_lost(struct window_engine *engine, struct window_plan *plan);

/* Takes all lost ranges that wait into the plan. */
void window_plan_take_lost(struct window_engine *engine, struct window_plan *plan);
/* These offsets of a partition are in the lake after all: they are not lost. */
void window_found(struct window_engine *engine, struct name partition, int64_t first, int64_t last);

/* What a stop asks (spec 3.10): weight of the records that a forced close would take now, and how long the window has
 * been open on the broker's clock. */
void window_closable(struct window_engine *engine, uint64_t *weight, int64_t *open_us);

/* ---- memory ---- */

uint64_t window_buffered_weight(const struct window_engine *engine);
/* Drops buffered records with the highest ts, not needed for the close at hand, setting their positions back, until
 * blocks worth `bytes` are free or nothing is left to drop. Returns whether anything was dropped. */
bool window_shed(struct window_engine *engine, size_t bytes);
/* Copies what is left of blocks that are mostly spent into new ones. Returns whether any block was let go. */
bool window_compact(struct window_engine *engine);

/* A redo that doesn't fit into memory (spec 3.3): from now on its records are only measured, and the plan says what to read
 * again. False where this isn't a redo, or what is held can't be read again. */
bool window_survey(struct window_engine *engine);

/* ---- what it knows ---- */

bool window_safe_time(const struct window_engine *engine, struct broker_us *safe_time); /* of the last complete pass */
/* Everything readable is read and nothing is buffered. */
bool window_is_through(const struct window_engine *engine);
bool window_holds_records(const struct window_engine *engine);
size_t window_partition_count(const struct window_engine *engine);
/* Lost ranges that wait for a window, for telling them. */
struct lost_range *window_lost(struct window_engine *engine, size_t *count);

/* The checkpoint's entries, sorted by name (spec 3.5, 4). `tell` non-zero ends it. */
typedef int window_position(void *argument, struct name partition, int64_t position, const struct partition_id *id);
int window_positions(struct window_engine *engine, window_position *tell, void *argument);

#endif
