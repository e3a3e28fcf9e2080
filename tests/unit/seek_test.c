/*
 * Finding where a partition starts (spec 3.4, 3), and giving memory back (3.3), step by step.
 */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/lanes.h"

static struct lanes lanes;

static void begin_after(int64_t end)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){end});
}

static uint64_t probes_allowed(int64_t count)
{
    uint64_t doublings = 0;
    while ((INT64_C(1) << doublings) < count)
        doublings++;
    return 2 * doublings + 8;
}

static void seek_and_check(struct lane *lane, int64_t target)
{
    struct window_read read;
    int64_t expected = lane->log_start;
    while (expected < lane->end && lane->ts[expected] < target)
        expected++;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    while (window_next_read(lanes.engine, &read) && read.probe)
        lane_answer(&lanes, &read);
    ck_assert_uint_le(lanes.probes, probes_allowed(lane->end - lane->log_start));
    if (expected < lane->end) {
        ck_assert_int_eq(read.offset, expected);
        window_read_failed(lanes.engine, &read);
    }
}

START_TEST(every_start_of_every_length_is_found)
{
    int64_t count = _i;
    for (int64_t first = 0; first <= count; first++) {
        begin_after(TEN);
        struct lane *lane = lane_add(&lanes, "a");
        for (int64_t i = 0; i < count; i++)
            lane_push(lane, i < first ? TEN - SECOND_US : TEN + SECOND_US);
        lane->log_start = count / 5;
        seek_and_check(lane, TEN);
        lanes_end(&lanes);
    }
}
END_TEST

START_TEST(one_long_done_starts_at_its_end_unread)
{
    struct window_read read;
    begin_after(TEN);
    struct lane *lane = lane_add(&lanes, "a");
    for (int64_t i = 0; i < 100; i++)
        lane_push(lane, TEN - 2 * SECOND_US - 1);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    ck_assert(!window_next_read(lanes.engine, &read));
    ck_assert(window_is_through(lanes.engine));
    lanes_end(&lanes);
}
END_TEST

START_TEST(one_long_done_has_lost_nothing_though_retention_has_passed_its_checkpoint)
{
    size_t count;
    struct name name = {"a", 1};
    begin_after(TEN);
    window_add_position(lanes.engine, name, 40, NULL);
    struct lane *lane = lane_add(&lanes, "a");
    for (int64_t i = 0; i < 100; i++)
        lane_push(lane, TEN - 2 * SECOND_US - 1);
    lane->log_start = 100;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    window_lost(lanes.engine, &count);
    ck_assert_uint_eq(count, 0);
    ck_assert(window_is_through(lanes.engine));
    lanes_end(&lanes);
}
END_TEST

START_TEST(three_failed_tries_fall_back_to_the_log_start)
{
    struct window_read read;
    begin_after(TEN);
    struct lane *lane = lane_add(&lanes, "a");
    for (int64_t i = 0; i < 100; i++)
        lane_push(lane, TEN + (i - 90) * SECOND_US);
    lane->log_start = 7;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    for (int i = 0; i < 3; i++) {
        ck_assert(window_next_read(lanes.engine, &read));
        ck_assert(read.probe);
        if (lanes_answer_empty(&lanes, &read, FETCH_PASSING, 0, 0) != WINDOW_READ_DONE)
            window_read_ready(lanes.engine, read.partition);
    }
    ck_assert(window_next_read(lanes.engine, &read));
    ck_assert(!read.probe);
    ck_assert_int_eq(read.offset, 7);
    window_read_failed(lanes.engine, &read);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 10);
    ck_assert_uint_eq(plan.lost_count, 0);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_hole_is_no_obstacle_to_a_seek)
{
    begin_after(TEN);
    struct lane *lane = lane_add(&lanes, "a");
    for (int64_t i = 0; i < 60; i++) {
        lane_push(lane, TEN + (i - 30) * SECOND_US);
        lane->missing[i] = i >= 20 && i < 25;
    }
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 30);
    ck_assert_uint_eq(plan.lost_count, 0);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(retention_during_a_seek_moves_its_lower_end)
{
    begin_after(TEN);
    struct lane *lane = lane_add(&lanes, "a");
    for (int64_t i = 0; i < 60; i++)
        lane_push(lane, TEN + (i - 30) * SECOND_US);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    ck_assert(lanes_read(&lanes));
    lane->log_start = 28;
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 30);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

/* The record that is left first says whether there was more of the window before it. */
START_TEST(what_retention_takes_of_a_seek_is_lost_unless_it_was_committed)
{
    for (int64_t log_start = 10; log_start <= 60; log_start += 10) {
        size_t count;
        begin_after(TEN);
        struct lane *lane = lane_add(&lanes, "a");
        for (int64_t i = 0; i < 60; i++)
            lane_push(lane, TEN + (i - 30) * SECOND_US);
        lanes_pass(&lanes, true, TEN + HOUR_US);
        ck_assert(lanes_read(&lanes)); /* the last one: it isn't committed */
        lane->log_start = log_start;
        lanes_read_all(&lanes);
        const struct lost_range *lost = window_lost(lanes.engine, &count);
        ck_assert_uint_eq(count, log_start >= 30);
        if (count > 0)
            ck_assert_int_eq(lost->to, log_start - 1);
        ck_assert(window_is_through(lanes.engine) == (log_start == 60));
        lanes_end(&lanes);
    }
}
END_TEST

/* ---- giving memory back ---- */

static uint64_t close_all(void)
{
    uint64_t records = 0;
    struct window_plan plan;
    for (int turn = 0; turn < 1000; turn++) {
        while (window_close(lanes.engine, true, &plan)) {
            records += plan_check(&plan);
            window_plan_free(&plan);
        }
        if (!lanes_read(&lanes))
            break;
    }
    return records;
}

START_TEST(what_is_shed_is_read_again)
{
    struct budget budget = {.limit = 1u << 30};
    lanes_begin(&lanes, ALIGN_NONE, 1000, 3600, 0);
    lanes.budget = &budget;
    window_start_earliest(lanes.engine);
    struct lane *a = lane_add(&lanes, "a");
    struct lane *b = lane_add(&lanes, "b");
    for (int64_t i = 0; i < 50; i++) {
        lane_push(a, TEN + i * SECOND_US);
        lane_push(b, TEN + (i + 25) * SECOND_US);
    }
    lanes_pass(&lanes, true, TEN + 60 * SECOND_US);
    lanes_read_all(&lanes);
    uint64_t before = window_buffered_weight(lanes.engine);
    ck_assert(window_shed(lanes.engine, (size_t)_i * RECORD_WEIGHT));
    ck_assert_uint_le(window_buffered_weight(lanes.engine), before - (uint64_t)_i * RECORD_WEIGHT);
    window_compact(lanes.engine);
    /* What went is the highest, so what lies low can still be closed. */
    struct window_plan plan = lanes_close(&lanes, true);
    ck_assert_int_eq(plan.start.v, TEN);
    uint64_t records = plan.records;
    window_plan_free(&plan);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    ck_assert_uint_eq(records + close_all(), 100);
    lanes_end(&lanes);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

START_TEST(what_is_counted_is_never_shed)
{
    struct window_plan plan;
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 3600, 0);
    window_start_earliest(lanes.engine);
    struct lane *lane = lane_add(&lanes, "a");
    struct lane *behind = lane_add(&lanes, "b");
    for (int64_t i = 0; i < 40; i++)
        lane_push(lane, TEN + i * SECOND_US);
    for (int64_t i = 0; i < 3; i++)
        lane_push(behind, TEN + (i + 10) * SECOND_US);
    lanes_pass(&lanes, true, TEN + 100 * SECOND_US);
    ck_assert(lanes_read(&lanes));
    lanes.answer_max = 1;
    ck_assert(lanes_read(&lanes));
    ck_assert(!window_close(lanes.engine, false, &plan)); /* counts what lies below the tenth second */
    while (window_shed(lanes.engine, 1)) {
        /* all that may go */
    }
    ck_assert_uint_le(window_buffered_weight(lanes.engine), 12 * RECORD_WEIGHT);
    plan = lanes_close(&lanes, true);
    ck_assert_uint_eq(plan.records, 10);
    window_plan_free(&plan);
    lanes.answer_max = RECORDS_MAX;
    lanes_pass(&lanes, true, TEN + 2 * HOUR_US);
    ck_assert_uint_eq(close_all(), 33);
    lanes_end(&lanes);
}
END_TEST

/* It would come again before the one that room was wanted for, and go again, for ever. */
START_TEST(what_is_as_low_as_the_lowest_frontier_is_never_shed)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 3600, 0);
    window_start_earliest(lanes.engine);
    struct lane *lane = lane_add(&lanes, "a");
    struct lane *behind = lane_add(&lanes, "b");
    for (int64_t i = 0; i < 40; i++)
        lane_push(lane, TEN + (i < 30 ? 0 : SECOND_US));
    for (int64_t i = 0; i < 3; i++)
        lane_push(behind, TEN);
    lanes_pass(&lanes, true, TEN + 100 * SECOND_US);
    ck_assert(lanes_read(&lanes));
    lanes.answer_max = 1;
    ck_assert(lanes_read(&lanes));
    while (window_shed(lanes.engine, 1)) {
        /* all that may go */
    }
    ck_assert_uint_eq(window_buffered_weight(lanes.engine), 31 * RECORD_WEIGHT);
    lanes_read_all(&lanes);
    ck_assert_uint_eq(close_all(), 43);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_spent_block_is_let_go)
{
    struct budget budget = {.limit = 1u << 30};
    lanes_begin(&lanes, ALIGN_NONE, 90, 3600, 0);
    lanes.budget = &budget;
    window_start_earliest(lanes.engine);
    lane_fill(&lanes, "a", 100);
    lanes_pass(&lanes, true, TEN + 200 * SECOND_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 90);
    window_plan_free(&plan);
    size_t before = budget.used;
    ck_assert(window_compact(lanes.engine));
    ck_assert_uint_lt(budget.used, before / 2);
    ck_assert(!window_compact(lanes.engine));
    plan = lanes_close(&lanes, true);
    ck_assert_uint_eq(plan.records, 10);
    const struct record *record = plan.runs[0].extents[0].block->records + plan.runs[0].extents[0].first;
    ck_assert_int_eq(record->offset, 90);
    ck_assert_mem_eq(record->transaction_id, "id", 2);
    ck_assert_mem_eq(record->payload, "\"0123456789", 11);
    window_plan_free(&plan);
    lanes_end(&lanes);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("seek");
    TCase *tests = tcase_create("seek");
    tcase_add_loop_test(tests, every_start_of_every_length_is_found, 1, 70);
    tcase_add_test(tests, one_long_done_starts_at_its_end_unread);
    tcase_add_test(tests, one_long_done_has_lost_nothing_though_retention_has_passed_its_checkpoint);
    tcase_add_test(tests, three_failed_tries_fall_back_to_the_log_start);
    tcase_add_test(tests, a_hole_is_no_obstacle_to_a_seek);
    tcase_add_test(tests, retention_during_a_seek_moves_its_lower_end);
    tcase_add_test(tests, what_retention_takes_of_a_seek_is_lost_unless_it_was_committed);
    tcase_add_loop_test(tests, what_is_shed_is_read_again, 1, 40);
    tcase_add_test(tests, what_is_counted_is_never_shed);
    tcase_add_test(tests, what_is_as_low_as_the_lowest_frontier_is_never_shed);
    tcase_add_test(tests, a_spent_block_is_let_go);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
