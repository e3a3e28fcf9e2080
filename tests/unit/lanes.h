/*
 * A small log to drive a window engine with, one step at a time: lanes of records whose payload is 100 bytes, answers cut
 * where a test wants them, passes that name what is there.
 */
#ifndef TESTS_UNIT_LANES_H
#define TESTS_UNIT_LANES_H

#include "worker/window.h"

#define SECOND_US INT64_C(1000000)
#define HOUR_US   INT64_C(3600000000)
#define TEN       (INT64_C(1788516000) * SECOND_US) /* 2026-09-04T10:00:00Z */

#define LANES_MAX   64
#define RECORDS_MAX 256

/* What a record of a lane weighs (spec 3.3): 64, an id of 2 bytes, a name of 1, a payload of 100. */
#define RECORD_WEIGHT 167

struct lane {
    char name[8];
    int64_t ts[RECORDS_MAX];
    bool missing[RECORDS_MAX]; /* can't be read */
    int64_t log_start;
    int64_t end;
    bool has_id;
    uint8_t id;
    bool hidden; /* no page names it, and a fetch finds nothing */
};

struct lanes {
    struct lane lanes[LANES_MAX];
    size_t count;
    struct window_engine *engine;
    size_t answer_max; /* records an answer brings */
    uint64_t reads;
    uint64_t probes;
    struct budget *budget;
};

/* target in records, the rest in seconds. */
void lanes_begin(struct lanes *lanes, enum setting_align align, int64_t target, int64_t max_window, int64_t guard);
/* With a target of 1000 records, windows of a minute and no guard, from the log's start. */
void lanes_begin_earliest(struct lanes *lanes, enum setting_align align);
void lanes_end(struct lanes *lanes);
struct lane *lane_add(struct lanes *lanes, const char *name);
/* A new one with a record each second from TEN on. */
struct lane *lane_fill(struct lanes *lanes, const char *name, int64_t count);
void lane_push(struct lane *lane, int64_t ts);
struct lane *lane_find(struct lanes *lanes, struct name name);
/* A whole pass over all lanes. */
void lanes_pass(struct lanes *lanes, bool full, int64_t safe_time);
/* One page as a pass under way gives it. */
void lanes_page(struct lanes *lanes, struct window_pass *pass, int64_t safe_time);
/* Answers one read as the log stands; false where the engine wants none. */
bool lanes_read(struct lanes *lanes);
/* Answers all that the engine wants. */
void lanes_read_all(struct lanes *lanes);
enum window_read_result lane_answer(struct lanes *lanes, const struct window_read *read);
/* An answer without records. */
enum window_read_result lanes_answer_empty(struct lanes *lanes, const struct window_read *read,
                                           enum fetch_entry_status status, int64_t log_start, int64_t watermark);
/* Closes, and checks that it did; the plan is the caller's. */
struct window_plan lanes_close(struct lanes *lanes, bool force);
bool lanes_can_close(struct lanes *lanes);
/* How many records of a plan, and whether they are sorted and inside of its bounds. */
uint64_t plan_check(const struct window_plan *plan);

#endif
