/*
 * What the files of the window engine share, and nobody else: window.c (closing), window_plan.c (what a close takes),
 * window_pages.c (discovery), window_lives.c, window_reads.c (answers), window_lost.c, window_survey.c, window_spread.c,
 * window_shed.c (giving memory back), seek.c (finding a start), partition_heap.c.
 *
 * A partition is in up to three heaps at a time:
 *   blocking  it is behind: its frontier holds the close back
 *   ready     it is behind and may be asked for now (no read under way, not held back)
 *   merge     it has buffered records that are not counted into the window yet, keyed by the ts of the next one
 * One that is caught up is in none of them, which is why a million idle partitions cost nothing: its frontier is the
 * safeTime of the last complete pass, whatever that becomes.
 */
#ifndef WORKER_WINDOW_INTERNAL_H
#define WORKER_WINDOW_INTERNAL_H

#include "worker/window.h"

#define TIME_UNKNOWN INT64_MIN
#define TIME_NONE    INT64_MAX

enum heap_kind { HEAP_BLOCKING, HEAP_READY, HEAP_MERGE, HEAP_KINDS };

struct partition_heap {
    struct partition **items;
    size_t count;
    size_t capacity;
    enum heap_kind kind;
};

/* An extent of one life of its partition, with what it weighs. */
struct held_extent {
    struct extent extent;
    uint64_t weight;
    uint32_t life;
};

/* Buffered records of one partition, oldest first. extents[head … count) are held; those before counted (and the first
 * counted_records of the one at counted) belong to the window that is being filled. */
struct buffer {
    struct held_extent *extents;
    size_t head;
    size_t count;
    size_t capacity;
    size_t counted;
    size_t counted_records;
};

/* Where a seek stands (spec 3.4, 3): records before low have ts below the target, those from high on have not. */
struct seek {
    int64_t low;
    int64_t high;
    int64_t step;    /* of the gallop; 0: bisecting */
    int64_t probe;   /* the offset asked for */
    uint32_t failed; /* tries of this probe */
    bool has_gap;    /* retention took what lies from gap_from on below low, and nothing says that it was committed */
    int64_t gap_from;
};

/* What a surveyed redo found of one partition. */
struct survey {
    int64_t first;
    int64_t end;
    uint64_t records;
    uint64_t text_size;
};

/* The rare state of a partition that met trouble; most never have one. */
struct trouble {
    uint32_t failures;     /* reads in a row that brought nothing */
    uint32_t hole_asked;   /* times a hole was asked for again */
    bool suspect;          /* its bounds lie below its position: gone, created again, or a node that lags */
    uint32_t suspect_call; /* the count of page calls when that was seen */
    int64_t
        suspect_safe;  /* and the largest safeTime of any page by then: a pass below it comes from a node that lags */
    bool has_previous; /* of the life before this one: a page with that id comes from a node that lags */
    struct partition_id previous_id;
    bool has_gap; /* unreadable offsets whose next record isn't seen yet (spec 3.8) */
    int64_t gap_from;
    int64_t gap_to;
    int64_t previous_end; /* the first offset that the life before isn't known to have had */
};

struct partition {
    char *name;
    uint32_t name_size;
    uint32_t hash;
    int64_t position;  /* the next offset to read */
    int64_t watermark; /* the largest that any answer gave for this life */
    int64_t named_end; /* the largest that a page gave: an answer names no id, and may speak of a life to come */
    int64_t log_start;
    int64_t frontier; /* while behind: a lower bound of the first unread ts; TIME_UNKNOWN until first read */
    int64_t unread;   /* what it adds to engine->unread */
    uint32_t life;
    uint32_t moved;                  /* the count of page calls when position or log start last moved */
    uint32_t named;                  /* the full pass that last named it */
    uint32_t heap_index[HEAP_KINDS]; /* 1-based, 0: not in it */
    struct partition_id id;
    bool has_id;
    bool in_flight;
    bool held_back; /* until window_read_ready(), or its life ends */
    bool empty;     /* came back empty below its watermark */
    bool gone;      /* a full enumeration did not name it */
    bool member;    /* has records counted into the window being filled */
    bool has_lost;  /* some of its ranges wait in engine->lost */
    uint32_t pins; /* how often the caller will yet give it to window_read_ready(), for this life or one before: it must
                     * stay until then */
    struct buffer *buffer;
    struct seek *seek;
    struct trouble *trouble;
    struct survey *survey;
    struct partition *older; /* in the order of being named by full passes */
    struct partition *newer;
};

struct partition_table {
    struct partition **slots;
    size_t capacity; /* a power of two */
    size_t count;
};

#define SPREAD_BUCKETS 512

/* Weight over ts, in buckets from T_{k-1} on: where the buffer reaches the target, for not reading further. */
struct spread {
    uint64_t weight[SPREAD_BUCKETS];
    int64_t origin;
    int64_t width;
    bool has_origin;
};

/* The first ts of a partition's new life while records of the one before are buffered: T_k may not pass it. */
struct life_bound {
    struct partition *partition;
    int64_t ts;
};

struct known_position {
    struct name name;
    int64_t position;
    bool has_id;
    struct partition_id id;
    bool used;
};

struct window_engine {
    struct window_settings settings;
    struct partition_table table;
    struct partition_heap heaps[HEAP_KINDS];
    struct partition *oldest; /* least recently named by a full pass */
    struct partition *newest;

    int64_t previous_end; /* T_{k-1}; TIME_UNKNOWN before the first record of START=earliest */
    int64_t first_end;    /* T_{k-1} at the start: what is below was never this engine's to place */
    bool from_log_start;  /* nothing committed and START=earliest: new partitions begin at their log start */
    bool redo;
    bool survey; /* a redo that only measures */
    int64_t redo_end;
    int64_t safe_time;      /* of the last complete pass; TIME_UNKNOWN before */
    int64_t page_safe_time; /* the largest of any page */
    uint32_t page_calls;
    uint32_t full_passes;
    bool wants_full;
    bool enumerated; /* a full pass is complete: a partition that is new to us has begun since */

    /* the window being filled */
    struct partition **members;
    size_t member_count;
    size_t member_capacity;
    uint64_t counted_weight;
    uint64_t counted_records;
    int64_t counted_through; /* the ts of the last group counted */
    bool full;               /* the target is reached: the merge stopped before the ts at full_at */
    int64_t full_at;
    struct life_bound *life_bounds;
    size_t life_bound_count;
    size_t life_bound_capacity;

    uint64_t buffered_weight;
    int64_t unread; /* records known to be unread, of all partitions */
    struct spread spread;

    struct lost_range *lost;
    size_t lost_count;
    size_t lost_capacity;

    struct partition **suspects;
    size_t suspect_count;
    size_t suspect_capacity;

    struct known_position *known; /* a hash table by name, while there is a checkpoint to place */
    size_t known_capacity;
    size_t known_count;
};

/* partition_heap.c */
void heap_put(struct partition_heap *heap, struct partition *partition); /* in, or to its new place */
void heap_take(struct partition_heap *heap, struct partition *partition);
struct partition *heap_top(const struct partition_heap *heap);
void heap_free(struct partition_heap *heap);
struct partition *table_find(const struct partition_table *table, struct name name);
struct partition *table_add(struct partition_table *table, struct name name);
void table_remove(struct partition_table *table, struct partition *partition);

/* window.c */
bool partition_is_behind(const struct partition *partition);
/* Puts a partition into the heaps that its state asks for, and out of the others. */
void partition_place(struct window_engine *engine, struct partition *partition);
struct trouble *partition_trouble(struct partition *partition);
int64_t partition_next_ts(const struct partition *partition);
struct broker_us record_ts(const struct held_extent *held, size_t index);
uint64_t record_weight(const struct record *record, size_t name_size);
void buffer_discard(struct window_engine *engine, struct partition *partition);
void block_use(struct block *block, uint64_t weight);
void block_unuse(struct block *block, uint64_t weight);
void block_spend(struct block *block, uint64_t weight);
void window_count_member(struct window_engine *engine, struct partition *partition);
int compare_partitions(const void *a, const void *b);

/* window_plan.c */
void plan_build(struct window_engine *engine, struct window_plan *plan);

/* window_reads.c */
/* Offsets that can't be read any more; the record after them says whether they are lost. */
void gap_open(struct partition *partition, int64_t from, int64_t to);

/* window_lost.c */
void window_lose(struct window_engine *engine, struct partition *partition, int64_t from, int64_t to,
                 bool previous_life);
/* They are there, but can't be placed. */
void window_lose_misdated(struct window_engine *engine, struct partition *partition, int64_t from, int64_t to);
/* A gap is lost if the record after it belongs to a window that isn't committed, or if none comes (spec 3.8). */
void window_settle_gap(struct window_engine *engine, struct partition *partition, bool followed, int64_t ts);

/* window_spread.c */
void spread_add(struct window_engine *engine, int64_t ts, uint64_t weight);
void spread_rebuild(struct window_engine *engine);
/* A ts such that the records below it weigh at least the target; TIME_NONE where the buffer doesn't. An extent counts
 * where it ends, so the answer is never too low. */
int64_t spread_full_at(const struct window_engine *engine);

/* window_lives.c */
/* T_k may not pass ts while records of the partition's life before are buffered. */
void life_bound_add(struct window_engine *engine, struct partition *partition, int64_t ts);
/* Drops bounds that are moot: no record of the life before is buffered any more. */
void prune_life_bounds(struct window_engine *engine);
/* A new life begins with ts: what is buffered of the one before and isn't older was the new one's, and is let go. */
void life_take_back(struct window_engine *engine, struct partition *partition, int64_t ts);
/* Of the records of an extent of the life before those from `keep` on were the new one's: what they seemed to be is lost. */
void life_lose_misread(struct window_engine *engine, struct partition *partition, const struct held_extent *held,
                       size_t keep);

/* window_survey.c */
size_t survey_records(struct window_engine *engine, struct partition *partition, const struct record *records,
                      size_t count);
void survey_plan(struct window_engine *engine, struct window_plan *plan);

/* window_pages.c */
void partition_suspect(struct window_engine *engine, struct partition *partition);

/* window_shed.c */
/* Lets go of buffered records of a partition with ts at or above this one, as far as they aren't counted. */
void window_drop_from(struct window_engine *engine, struct partition *partition, int64_t ts);

/* seek.c */
void seek_begin(struct window_engine *engine, struct partition *partition);
enum window_read_result seek_answer(struct window_engine *engine, struct partition *partition,
                                    const struct fetch_entry *entry, const struct block *block);

#endif
