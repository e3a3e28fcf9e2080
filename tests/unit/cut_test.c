/*
 * The engine of the connector worker's files: each transition by itself, and then two workers on one partition of a
 * model of log, group and bucket, under random schedules: deaths at every step, partitions moved while a worker still
 * believes that it has them, commits whose answer is lost, objects that arrive after their writer died. What a reader of
 * the bucket sees must tile, and be the log.
 */
#include "worker/connector/cut.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/json_cases.h"

/* ---- transitions ---- */

static struct cut resolved(const struct cut_found *found, enum cut_finding finding, enum cut_action action)
{
    struct cut cut;
    enum cut_finding got;

    cut_begin(&cut, true);
    ck_assert_int_eq(cut_again(&cut), CUT_NOTHING);
    ck_assert_int_eq(cut_resolved(&cut, found, &got), action);
    ck_assert_int_eq(got, finding);
    return cut;
}

START_TEST(a_first_assignment_commits_its_position_first)
{
    struct cut_found found = {.committed = CUT_NO_OFFSET, .low = 5, .high = 9};
    struct cut cut = resolved(&found, CUT_FOUND_FIRST, CUT_COMMIT_POSITION);
    ck_assert_int_eq(cut.start, 5);
    ck_assert_int_eq(cut_again(&cut), CUT_COMMIT_POSITION);
    ck_assert_int_eq(cut_committed(&cut), CUT_READ);
    ck_assert_int_eq(cut.next, 5);

    found.reset_to_end = true;
    cut = resolved(&found, CUT_FOUND_FIRST, CUT_COMMIT_POSITION);
    ck_assert_int_eq(cut.start, 9);
}
END_TEST

START_TEST(a_committed_offset_is_gone_on_from)
{
    struct cut_found found = {.committed = 7, .low = 5, .high = 9, .reset_to_end = true};
    struct cut cut = resolved(&found, CUT_FOUND_POSITION, CUT_READ);
    ck_assert_int_eq(cut.start, 7);
    ck_assert_int_eq(cut.next, 7);
    found.committed = 9;
    (void)resolved(&found, CUT_FOUND_POSITION, CUT_READ);
    found.committed = 5;
    (void)resolved(&found, CUT_FOUND_POSITION, CUT_READ);
}
END_TEST

START_TEST(an_offset_outside_of_the_log_is_told_apart)
{
    struct cut_found found = {.committed = 3, .low = 5, .high = 9};
    struct cut cut = resolved(&found, CUT_FOUND_GAP, CUT_COMMIT_POSITION);
    ck_assert_int_eq(cut.start, 5);
    found.committed = 10;
    found.low = 0;
    cut = resolved(&found, CUT_FOUND_NEW_LOG, CUT_COMMIT_POSITION);
    ck_assert_int_eq(cut.start, 0);
    ck_assert_int_eq(cut_committed(&cut), CUT_READ);
    found = (struct cut_found){.committed = 4, .has_note = true, .note_next = 10, .low = 0, .high = 9};
    cut = resolved(&found, CUT_FOUND_NEW_LOG, CUT_COMMIT_POSITION);
    ck_assert(!cut.rebuilding);
}
END_TEST

START_TEST(a_file_goes_up_between_two_commits)
{
    struct cut_found found = {.committed = 4, .low = 0, .high = 9};
    struct cut cut = resolved(&found, CUT_FOUND_POSITION, CUT_READ);
    ck_assert_int_eq(cut_offer(&cut, 3), CUT_REPEAT);
    ck_assert_int_eq(cut_offer(&cut, 6), CUT_TAKE);
    ck_assert(!cut_took(&cut, 6));
    ck_assert_int_eq(cut_offer(&cut, 6), CUT_REPEAT);
    ck_assert(cut_can_close(&cut));
    ck_assert_int_eq(cut_close(&cut, false), CUT_COMMIT_NOTE);
    ck_assert_int_eq(cut.flight_start, 4);
    ck_assert_int_eq(cut.flight_next, 7);
    ck_assert_int_eq(cut.start, 7);
    ck_assert(!cut_can_close(&cut));
    ck_assert_int_eq(cut_offer(&cut, 7), CUT_TAKE); /* the next file fills meanwhile */
    ck_assert(!cut_took(&cut, 7));
    ck_assert_int_eq(cut_again(&cut), CUT_COMMIT_NOTE);
    ck_assert_int_eq(cut_committed(&cut), CUT_UPLOAD);
    ck_assert_int_eq(cut_again(&cut), CUT_UPLOAD);
    ck_assert_int_eq(cut_uploaded(&cut), CUT_COMMIT_END);
    ck_assert_int_eq(cut_again(&cut), CUT_COMMIT_END);
    ck_assert_int_eq(cut_committed(&cut), CUT_NOTHING);
    ck_assert(cut_can_close(&cut));
    ck_assert_int_eq(cut_again(&cut), CUT_NOTHING);
    ck_assert_int_eq(cut.committed, 7);
    ck_assert_int_eq(cut.next, 8);
    cut_leave(&cut);
    ck_assert_int_eq(cut_again(&cut), CUT_NOTHING);
    ck_assert(!cut_can_close(&cut));
}
END_TEST

START_TEST(a_noted_file_is_rebuilt_to_its_end_and_no_further)
{
    struct cut_found found = {.committed = 4, .has_note = true, .note_next = 7, .low = 4, .high = 9};
    struct cut cut = resolved(&found, CUT_FOUND_FILE, CUT_READ);
    ck_assert_int_eq(cut_offer(&cut, 5), CUT_TAKE);
    ck_assert(!cut_took(&cut, 5));
    ck_assert(!cut_reached(&cut, 6));
    ck_assert_int_eq(cut_offer(&cut, 6), CUT_TAKE);
    ck_assert(cut_took(&cut, 6));
    ck_assert_int_eq(cut_close(&cut, false), CUT_UPLOAD);
    ck_assert_int_eq(cut.flight_next, 7);
    ck_assert(!cut.rebuilding);

    /* Its last record is gone from the log. */
    cut = resolved(&found, CUT_FOUND_FILE, CUT_READ);
    ck_assert_int_eq(cut_offer(&cut, 7), CUT_CLOSE_FIRST);
    ck_assert_int_eq(cut_offer(&cut, 8), CUT_CLOSE_FIRST);
    ck_assert_int_eq(cut_close(&cut, true), CUT_COMMIT_END);
    ck_assert_int_eq(cut.flight_next, 7);
    ck_assert_int_eq(cut_offer(&cut, 8), CUT_TAKE);

    /* And nothing comes after it. */
    cut = resolved(&found, CUT_FOUND_FILE, CUT_READ);
    ck_assert(cut_reached(&cut, 7));
    ck_assert_int_eq(cut_close(&cut, false), CUT_UPLOAD);
    ck_assert_int_eq(cut.next, 7);
}
END_TEST

START_TEST(a_torn_file_does_not_replace_a_whole_one)
{
    struct cut_found found = {.committed = 2, .has_note = true, .note_next = 7, .low = 4, .high = 9};
    struct cut cut = resolved(&found, CUT_FOUND_TORN_FILE, CUT_ASK_OBJECT);
    ck_assert_int_eq(cut_again(&cut), CUT_ASK_OBJECT);
    ck_assert_int_eq(cut_object(&cut, CUT_OBJECT_UP), CUT_COMMIT_POSITION);
    ck_assert_int_eq(cut.start, 7);
    ck_assert(!cut.rebuilding);

    cut = resolved(&found, CUT_FOUND_TORN_FILE, CUT_ASK_OBJECT);
    ck_assert_int_eq(cut_object(&cut, CUT_OBJECT_ABSENT), CUT_READ);
    ck_assert_int_eq(cut.next, 4);
    ck_assert_int_eq(cut.start, 2);
    ck_assert(cut.rebuilding);

    cut = resolved(&found, CUT_FOUND_TORN_FILE, CUT_ASK_OBJECT);
    ck_assert_int_eq(cut_object(&cut, CUT_OBJECT_UNKNOWN), CUT_COMMIT_POSITION);
    ck_assert_int_eq(cut.start, 4);
    ck_assert_int_eq(cut.next, 4);
    ck_assert(!cut.rebuilding);

    found.low = 7;
    cut = resolved(&found, CUT_FOUND_GAP, CUT_COMMIT_POSITION);
    ck_assert_int_eq(cut.start, 7);
}
END_TEST

START_TEST(without_notes_a_file_goes_up_at_once)
{
    struct cut_found found = {.committed = 0, .low = 0, .high = 9};
    struct cut cut;
    enum cut_finding finding;
    cut_begin(&cut, false);
    ck_assert_int_eq(cut_resolved(&cut, &found, &finding), CUT_READ);
    ck_assert(!cut_took(&cut, 0));
    ck_assert_int_eq(cut_close(&cut, false), CUT_UPLOAD);
}
END_TEST

/* ---- the model ---- */

#define LOG_END     120
#define OBJECTS_MAX 512
#define LATE_MAX    8

struct file {
    int64_t start;
    int64_t next;
    size_t count;
    int64_t records[LOG_END];
};

struct group {
    int64_t offset;
    int64_t note_next; /* 0: no note */
    unsigned generation;
};

struct worker {
    bool alive;
    bool assigned; /* it believes */
    unsigned generation;
    struct cut cut;
    size_t limit; /* records a file, as it is configured */
    struct file filling;
    struct file flying;
    enum cut_action todo;
    bool full;
};

struct world {
    struct random random;
    bool noted;
    bool record[LOG_END]; /* what the log has: the others are holes */
    int64_t end;
    struct group group;
    struct worker workers[2];
    struct file objects[OBJECTS_MAX];
    size_t object_count;
    struct file late[LATE_MAX]; /* uploads whose writer heard nothing, and that arrive any time later */
    size_t late_count;
    uint64_t seed;
};

static size_t pick(struct world *world, size_t limit)
{
    return random_below(&world->random, limit);
}

/* Nothing may be put twice with other bytes. */
static void put(struct world *world, const struct file *file)
{
    for (size_t i = 0; i < world->object_count; i++) {
        struct file *object = &world->objects[i];
        if (object->start == file->start && object->next == file->next) {
            ck_assert_msg(object->count == file->count &&
                              memcmp(object->records, file->records, file->count * sizeof *file->records) == 0,
                          "seed %lu: [%ld, %ld) is put with other records", world->seed, file->start, file->next);
            return;
        }
    }
    ck_assert_uint_lt(world->object_count, OBJECTS_MAX);
    world->objects[world->object_count++] = *file;
}

static void act(struct world *world, struct worker *worker, enum cut_action action)
{
    (void)world;
    worker->todo = action == CUT_READ ? CUT_NOTHING : action;
}

static void resolve(struct world *world, struct worker *worker)
{
    struct cut_found found = {.committed = world->group.offset,
                              .has_note = world->group.note_next > 0,
                              .note_next = world->group.note_next,
                              .low = 0,
                              .high = world->end};
    enum cut_finding finding;

    worker->filling.count = 0;
    worker->full = false;
    cut_begin(&worker->cut, world->noted);
    act(world, worker, cut_resolved(&worker->cut, &found, &finding));
    ck_assert(finding == CUT_FOUND_FIRST || finding == CUT_FOUND_POSITION || finding == CUT_FOUND_FILE);
}

/* A commit reaches the group's coordinator or not, and its answer the worker or not. */
static void commit(struct world *world, struct worker *worker, int64_t offset, int64_t note_next)
{
    bool arrives = pick(world, 8) != 0;
    bool answered = arrives && pick(world, 8) != 0;

    if (arrives && worker->generation == world->group.generation) {
        ck_assert_int_ge(offset, world->group.offset);
        world->group.offset = offset;
        world->group.note_next = note_next;
    } else {
        answered = false;
    }
    if (answered) {
        act(world, worker, cut_committed(&worker->cut));
    }
}

static void upload(struct world *world, struct worker *worker)
{
    switch (pick(world, 6)) {
    case 0: break;
    case 1: /* it arrives, and the answer is lost */ put(world, &worker->flying); break;
    case 2:
        if (world->late_count < LATE_MAX) {
            world->late[world->late_count++] = worker->flying;
        }
        break;
    default: put(world, &worker->flying); act(world, worker, cut_uploaded(&worker->cut));
    }
}

static void do_todo(struct world *world, struct worker *worker)
{
    struct cut *cut = &worker->cut;

    ck_assert_int_eq(worker->todo, cut_again(cut));
    switch (worker->todo) {
    case CUT_COMMIT_POSITION: commit(world, worker, cut->start, 0); break;
    case CUT_COMMIT_NOTE: commit(world, worker, cut->flight_start, cut->flight_next); break;
    case CUT_COMMIT_END: commit(world, worker, cut->flight_next, 0); break;
    case CUT_UPLOAD: upload(world, worker); break;
    default: break;
    }
}

static void close_file(struct world *world, struct worker *worker)
{
    bool empty = worker->filling.count == 0;

    worker->flying = worker->filling;
    worker->filling.count = 0;
    worker->full = false;
    act(world, worker, cut_close(&worker->cut, empty));
    worker->flying.start = worker->cut.flight_start;
    worker->flying.next = worker->cut.flight_next;
}

static void read_record(struct world *world, struct worker *worker)
{
    struct cut *cut = &worker->cut;
    int64_t offset = cut->next;

    while (offset < world->end && !world->record[offset]) {
        offset++;
    }
    if (worker->full || (worker->filling.count > 0 && !cut->rebuilding && world->noted && pick(world, 20) == 0)) {
        worker->full = true; /* by age */
        if (cut_can_close(cut)) {
            close_file(world, worker);
        }
        return;
    }
    if (offset == world->end) {
        worker->full = cut_reached(cut, offset);
        return;
    }
    if (cut_offer(cut, offset) == CUT_CLOSE_FIRST) {
        worker->full = true;
        return;
    }
    worker->filling.records[worker->filling.count++] = offset;
    worker->full = cut_took(cut, offset) || (!cut->rebuilding && worker->filling.count >= worker->limit);
}

/* The group gives the partition to one of the two; the other may not have noticed. */
static void rebalance(struct world *world)
{
    struct worker *worker = &world->workers[pick(world, 2)];

    world->group.generation++;
    if (worker->alive) {
        worker->generation = world->group.generation;
        worker->assigned = true;
        resolve(world, worker);
    }
}

static void start(struct world *world, struct worker *worker)
{
    worker->alive = true;
    worker->assigned = false;
    worker->limit = world->noted ? 1 + pick(world, 9) : 4;
}

static void step(struct world *world)
{
    struct worker *worker = &world->workers[pick(world, 2)];
    size_t chance = pick(world, 100);

    if (chance < 2) {
        rebalance(world);
    } else if (chance < 3) {
        worker->alive = false;
        worker->assigned = false;
    } else if (chance < 5 && world->late_count > 0) {
        put(world, &world->late[--world->late_count]);
    } else if (chance < 10 && world->end < LOG_END) {
        world->end += 1 + (int64_t)pick(world, 3);
        world->end = world->end > LOG_END ? LOG_END : world->end;
    } else if (!worker->alive) {
        start(world, worker);
    } else if (worker->assigned && worker->generation != world->group.generation && chance < 20) {
        cut_leave(&worker->cut); /* it notices */
        worker->assigned = false;
    } else if (worker->assigned && worker->cut.state == CUT_READING && chance < 60) {
        read_record(world, worker);
    } else if (worker->assigned) {
        do_todo(world, worker);
    }
}

/* One worker is left, and has its time: the last record is in a file, and its end committed. */
static void settle(struct world *world)
{
    struct worker *worker = &world->workers[0];

    while (world->late_count > 0) {
        put(world, &world->late[--world->late_count]);
    }
    world->end = LOG_END;
    world->workers[1].alive = false;
    start(world, worker);
    worker->assigned = true;
    worker->generation = ++world->group.generation;
    resolve(world, worker);
    for (int i = 0; i < 100000 && world->group.offset < LOG_END; i++) {
        do_todo(world, worker);
        if (worker->cut.state == CUT_READING) {
            read_record(world, worker);
            worker->full = worker->full || (worker->cut.next == LOG_END && worker->filling.count > 0);
        }
    }
    ck_assert_int_eq(world->group.offset, LOG_END);
}

static int by_start(const void *left, const void *right)
{
    const struct file *a = left;
    const struct file *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

static void check_bucket(struct world *world)
{
    int64_t next = 0;

    qsort(world->objects, world->object_count, sizeof *world->objects, by_start);
    for (size_t i = 0; i < world->object_count; i++) {
        const struct file *object = &world->objects[i];
        size_t at = 0;
        ck_assert_msg(object->start == next, "seed %lu: [%ld, %ld) follows %ld", world->seed, object->start,
                      object->next, next);
        for (int64_t offset = object->start; offset < object->next; offset++) {
            if (world->record[offset]) {
                ck_assert_msg(at < object->count && object->records[at++] == offset, "seed %lu: %ld is missing",
                              world->seed, offset);
            }
        }
        ck_assert_uint_eq(at, object->count);
        next = object->next;
    }
    ck_assert_int_eq(next, LOG_END);
}

static void run_schedule(uint64_t seed, bool noted)
{
    static struct world world;

    world = (struct world){.random = {seed * 2654435761u + 1}, .noted = noted, .seed = seed};
    world.group.offset = CUT_NO_OFFSET;
    for (int64_t i = 0; i < LOG_END; i++) {
        world.record[i] = i == LOG_END - 1 || pick(&world, 4) != 0;
    }
    for (int i = 0; i < 1500; i++) {
        step(&world);
    }
    settle(&world);
    check_bucket(&world);
}

START_TEST(random_schedules_are_exact_with_notes)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        run_schedule(seed, true);
    }
}
END_TEST

/* Cuts by count alone are the same wherever they are made from the same start. */
START_TEST(random_schedules_are_exact_without_notes)
{
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        run_schedule(seed, false);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cut");
    TCase *cases = tcase_create("cut");

    tcase_add_test(cases, a_first_assignment_commits_its_position_first);
    tcase_add_test(cases, a_committed_offset_is_gone_on_from);
    tcase_add_test(cases, an_offset_outside_of_the_log_is_told_apart);
    tcase_add_test(cases, a_file_goes_up_between_two_commits);
    tcase_add_test(cases, a_noted_file_is_rebuilt_to_its_end_and_no_further);
    tcase_add_test(cases, a_torn_file_does_not_replace_a_whole_one);
    tcase_add_test(cases, without_notes_a_file_goes_up_at_once);
    tcase_add_test(cases, random_schedules_are_exact_with_notes);
    tcase_add_test(cases, random_schedules_are_exact_without_notes);
    suite_add_tcase(suite, cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
