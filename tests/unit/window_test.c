/*
 * The window engine, step by step: where windows begin and end (spec 3.3).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/lanes.h"

static struct lanes lanes;

static void closes_as(int64_t start, int64_t end, uint64_t records)
{
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_int_eq(plan.start.v, start);
    ck_assert_int_eq(plan.end.v, end);
    ck_assert_uint_eq(plan.records, records);
    window_plan_free(&plan);
}

static void stays_open(void)
{
    ck_assert(!lanes_can_close(&lanes));
}

/* ---- alignment ---- */

START_TEST(a_window_ends_at_the_boundary)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 36000, 5);
    window_start_earliest(lanes.engine);
    struct lane *lane = lane_add(&lanes, "a");
    lane_push(lane, TEN - SECOND_US);
    lane_push(lane, TEN);
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lanes_read_all(&lanes);
    closes_as(TEN - HOUR_US, TEN, 1);
    stays_open();
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_boundary_that_the_guard_still_covers_is_not_reached)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 36000, 5);
    window_start_earliest(lanes.engine);
    lane_push(lane_add(&lanes, "a"), TEN - SECOND_US);
    lanes_pass(&lanes, true, TEN + 5 * SECOND_US - 1);
    lanes_read_all(&lanes);
    stays_open();
    lanes_pass(&lanes, false, TEN + 5 * SECOND_US);
    closes_as(TEN - HOUR_US, TEN, 1);
    lanes_end(&lanes);
}
END_TEST

START_TEST(the_first_window_of_earliest_starts_floored)
{
    lanes_begin(&lanes, ALIGN_DAY, 1000, 1, 0);
    window_start_earliest(lanes.engine);
    lane_push(lane_add(&lanes, "a"), TEN + 7);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    closes_as(TEN - 10 * HOUR_US, TEN + HOUR_US, 1);
    lanes_end(&lanes);
}
END_TEST

START_TEST(without_alignment_the_first_window_starts_at_its_record)
{
    lanes_begin_earliest(&lanes, ALIGN_NONE);
    lane_push(lane_add(&lanes, "a"), TEN + 7);
    lanes_pass(&lanes, true, TEN + 30 * SECOND_US);
    lanes_read_all(&lanes);
    stays_open();
    lanes_pass(&lanes, false, TEN + 60 * SECOND_US + 7);
    closes_as(TEN + 7, TEN + 60 * SECOND_US + 7, 1);
    lanes_end(&lanes);
}
END_TEST

START_TEST(empty_intervals_are_stepped_over_in_memory)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 36000, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN - 3 * HOUR_US + 1});
    struct lane *lane = lane_add(&lanes, "a");
    lane_push(lane, TEN + SECOND_US);
    lanes_pass(&lanes, true, TEN + 2 * HOUR_US);
    lanes_read_all(&lanes);
    closes_as(TEN, TEN + HOUR_US, 1);
    stays_open();
    lanes_end(&lanes);
}
END_TEST

START_TEST(without_alignment_an_empty_interval_is_max_window)
{
    lanes_begin(&lanes, ALIGN_NONE, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    lane_push(lane_add(&lanes, "a"), TEN + 150 * SECOND_US);
    lanes_pass(&lanes, true, TEN + 200 * SECOND_US);
    lanes_read_all(&lanes);
    closes_as(TEN + 120 * SECOND_US, TEN + 200 * SECOND_US, 1);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_window_never_closes_without_a_record)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 1, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    lane_add(&lanes, "a");
    lanes_pass(&lanes, true, TEN + 48 * HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan;
    ck_assert(!window_close(lanes.engine, true, &plan));
    ck_assert(window_is_through(lanes.engine));
    lanes_end(&lanes);
}
END_TEST

/* ---- size ---- */

START_TEST(a_full_window_ends_at_the_ts_that_reaches_the_target)
{
    lanes_begin(&lanes, ALIGN_HOUR, 4, 36000, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    lane_fill(&lanes, "a", 10);
    lanes_pass(&lanes, true, TEN + 100 * SECOND_US);
    lanes_read_all(&lanes);
    closes_as(TEN, TEN + 4 * SECOND_US, 4);
    closes_as(TEN + 4 * SECOND_US, TEN + 8 * SECOND_US, 4);
    stays_open();
    lanes_end(&lanes);
}
END_TEST

START_TEST(the_records_of_one_ts_are_never_split)
{
    lanes_begin(&lanes, ALIGN_HOUR, 4, 36000, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    struct lane *a = lane_add(&lanes, "a");
    struct lane *b = lane_add(&lanes, "b");
    lane_push(a, TEN);
    for (int i = 0; i < 10; i++)
        lane_push(i % 2 == 0 ? a : b, TEN + SECOND_US);
    lane_push(b, TEN + 2 * SECOND_US);
    lanes.answer_max = 3;
    lanes_pass(&lanes, true, TEN + 100 * SECOND_US);
    lanes_read_all(&lanes);
    closes_as(TEN, TEN + 2 * SECOND_US, 11);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_target_reached_without_a_record_behind_it_has_no_bound_of_its_own)
{
    lanes_begin(&lanes, ALIGN_HOUR, 4, 36000, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    lane_fill(&lanes, "a", 4);
    lanes_pass(&lanes, true, TEN + 100 * SECOND_US);
    lanes_read_all(&lanes);
    closes_as(TEN, TEN + 100 * SECOND_US, 4);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_record_at_the_end_belongs_to_the_next_window)
{
    lanes_begin(&lanes, ALIGN_NONE, 1000, 10, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    struct lane *lane = lane_add(&lanes, "a");
    lane_push(lane, TEN + SECOND_US);
    lane_push(lane, TEN + 20 * SECOND_US);
    lanes_pass(&lanes, true, TEN + 20 * SECOND_US);
    lanes_read_all(&lanes);
    closes_as(TEN, TEN + 20 * SECOND_US, 1);
    lanes_pass(&lanes, false, TEN + 40 * SECOND_US);
    closes_as(TEN + 20 * SECOND_US, TEN + 40 * SECOND_US, 1);
    lanes_end(&lanes);
}
END_TEST

/* ---- the frontier ---- */

START_TEST(a_partition_that_was_never_read_blocks_every_close)
{
    struct window_read first;
    lanes_begin(&lanes, ALIGN_HOUR, 1, 1, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    lane_push(lane_add(&lanes, "a"), TEN + SECOND_US);
    lane_push(lane_add(&lanes, "b"), TEN + SECOND_US);
    lanes_pass(&lanes, true, TEN + 2 * HOUR_US);
    ck_assert(window_next_read(lanes.engine, &first));
    lanes_read_all(&lanes);
    struct window_plan plan;
    ck_assert(!window_close(lanes.engine, true, &plan));
    window_read_failed(lanes.engine, &first);
    ck_assert(!window_close(lanes.engine, true, &plan));
    lanes_read_all(&lanes);
    closes_as(TEN, TEN + HOUR_US, 2);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_half_read_partition_holds_the_close_at_its_last_ts)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 1, 0);
    window_start_earliest(lanes.engine);
    lane_fill(&lanes, "a", 4);
    lanes.answer_max = 2;
    lanes_pass(&lanes, true, TEN + 100 * SECOND_US);
    ck_assert(lanes_read(&lanes));
    struct window_plan plan = lanes_close(&lanes, true);
    ck_assert_int_eq(plan.end.v, TEN + SECOND_US);
    ck_assert_uint_eq(plan.records, 1);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(only_a_complete_pass_moves_what_is_proven)
{
    struct window_pass pass;
    bool has_since;
    struct broker_us since;
    lanes_begin(&lanes, ALIGN_NONE, 1000, 10, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    lane_push(lane_add(&lanes, "a"), TEN + SECOND_US);
    lanes_pass(&lanes, true, TEN + 5 * SECOND_US);
    lanes_read_all(&lanes);
    window_pass_begin(lanes.engine, &pass, false, &has_since, &since);
    ck_assert(has_since);
    ck_assert_int_eq(since.v, TEN - 2 * SECOND_US);
    window_pass_call(lanes.engine, &pass);
    lanes_page(&lanes, &pass, TEN + 60 * SECOND_US);
    stays_open();
    window_pass_call(lanes.engine, &pass);
    lanes_page(&lanes, &pass, TEN + 50 * SECOND_US);
    stays_open();
    window_pass_end(lanes.engine, &pass);
    closes_as(TEN, TEN + 50 * SECOND_US, 1); /* the smallest of its pages */
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_pass_of_a_node_that_lags_takes_nothing_back)
{
    struct broker_us safe_time;
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 10, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    lane_add(&lanes, "a");
    ck_assert(!window_safe_time(lanes.engine, &safe_time));
    lanes_pass(&lanes, true, TEN + 5 * SECOND_US);
    lanes_pass(&lanes, false, TEN + 4 * SECOND_US);
    ck_assert(window_safe_time(lanes.engine, &safe_time));
    ck_assert_int_eq(safe_time.v, TEN + 5 * SECOND_US);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_watermark_of_any_answer_counts_for_being_caught_up)
{
    struct window_read read;
    lanes_begin(&lanes, ALIGN_NONE, 1000, 10, 0);
    window_start_earliest(lanes.engine);
    struct lane *lane = lane_add(&lanes, "a");
    lane->has_id = true;
    for (int64_t i = 0; i < 4; i++)
        lane_push(lane, TEN + i * SECOND_US);
    lanes_pass(&lanes, true, TEN + 100 * SECOND_US);
    /* A node that lags answers with the first two, and a watermark of 2. */
    lane->end = 2;
    ck_assert(window_next_read(lanes.engine, &read));
    lane_answer(&lanes, &read);
    lane->end = 4;
    struct window_plan plan = lanes_close(&lanes, true);
    ck_assert_int_eq(plan.end.v, TEN + SECOND_US); /* not caught up: two are missing */
    window_plan_free(&plan);
    lanes_read_all(&lanes);
    plan = lanes_close(&lanes, true);
    ck_assert_int_eq(plan.end.v, TEN + 100 * SECOND_US);
    ck_assert_uint_eq(plan.records, 3);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(the_lowest_frontier_is_read_first_and_nothing_far_ahead)
{
    struct window_read read;
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    struct lane *a = lane_add(&lanes, "a");
    struct lane *b = lane_add(&lanes, "b");
    for (int64_t i = 0; i < 4; i++) {
        lane_push(a, TEN + HOUR_US * i);
        lane_push(b, TEN + HOUR_US * i + SECOND_US);
    }
    lanes.answer_max = 1;
    lanes_pass(&lanes, true, TEN + 10 * HOUR_US);
    ck_assert(lanes_read(&lanes) && lanes_read(&lanes)); /* both once: their frontiers were not known */
    ck_assert(window_next_read(lanes.engine, &read));
    ck_assert(read.name.size == 1 && read.name.bytes[0] == 'a');
    window_read_failed(lanes.engine, &read);
    lanes_read_all(&lanes);
    /* Ceiling 11:00, and one unit more: what lies from 12:00 on is not wanted yet. */
    ck_assert_uint_eq(window_buffered_weight(lanes.engine), 6 * RECORD_WEIGHT);
    lanes_end(&lanes);
}
END_TEST

START_TEST(nothing_is_read_beyond_a_full_buffer)
{
    lanes_begin(&lanes, ALIGN_DAY, 4, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    struct lane *lane = lane_add(&lanes, "a");
    for (int64_t i = 0; i < 100; i++)
        lane_push(lane, TEN + i * 60 * SECOND_US);
    lanes.answer_max = 1;
    lanes_pass(&lanes, true, TEN + 4 * HOUR_US);
    lanes_read_all(&lanes);
    ck_assert_uint_le(window_buffered_weight(lanes.engine), 8 * RECORD_WEIGHT);
    closes_as(TEN, TEN + 240 * SECOND_US, 4);
    lanes_end(&lanes);
}
END_TEST

/* ---- time ---- */

START_TEST(a_live_window_ends_by_time)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 300, 5);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    lane_push(lane_add(&lanes, "a"), TEN + SECOND_US);
    lanes_pass(&lanes, true, TEN + 304 * SECOND_US);
    lanes_read_all(&lanes);
    stays_open();
    lanes_pass(&lanes, false, TEN + 305 * SECOND_US);
    closes_as(TEN, TEN + 300 * SECOND_US, 1);
    lanes_end(&lanes);
}
END_TEST

START_TEST(one_that_catches_up_is_not_cut_where_an_answer_ended)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    struct lane *lane = lane_add(&lanes, "a");
    for (int64_t i = 0; i < 30; i++)
        lane_push(lane, TEN + i * 100 * SECOND_US);
    lanes.answer_max = 7;
    lanes_pass(&lanes, true, TEN + 3 * HOUR_US);
    while (lanes_read(&lanes))
        if (window_buffered_weight(lanes.engine) < 30 * RECORD_WEIGHT)
            stays_open();
    closes_as(TEN, TEN + HOUR_US, 30);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_stuck_partition_lets_a_window_end_by_time)
{
    struct window_read read;
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_add(&lanes, "a");
    for (int64_t i = 0; i < 4; i++)
        lane_push(lane, TEN + i * 100 * SECOND_US);
    lanes.answer_max = 2;
    lanes_pass(&lanes, true, TEN + 2 * HOUR_US);
    ck_assert(lanes_read(&lanes));
    stays_open();
    ck_assert(window_next_read(lanes.engine, &read));
    ck_assert_int_eq(lanes_answer_empty(&lanes, &read, FETCH_PASSING, 0, 0), WINDOW_READ_FAULT);
    closes_as(TEN, TEN + 100 * SECOND_US, 1);
    lanes_end(&lanes);
}
END_TEST

/* ---- the same log gives the same windows ---- */

static uint64_t mixed(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

#define BOUNDS_MAX 400

static void fill(uint64_t log_seed)
{
    lanes_begin(&lanes, ALIGN_HOUR, 12, 300, 5);
    window_start_earliest(lanes.engine);
    for (size_t i = 0; i < 5; i++)
        lane_add(&lanes, (const char *[]){"a", "b", "c", "d", "e"}[i]);
    int64_t ts = TEN - HOUR_US / 2;
    for (int i = 0; i < 300; i++) {
        lane_push(&lanes.lanes[mixed(&log_seed) % 5], ts);
        if (mixed(&log_seed) % 3 != 0)
            ts += (int64_t)(mixed(&log_seed) % 60) * SECOND_US;
    }
}

static size_t drain(uint64_t order_seed, int64_t *ends)
{
    struct window_read reads[4];
    size_t reading = 0;
    size_t windows = 0;
    uint64_t records = 0;
    lanes_pass(&lanes, true, TEN + 100 * HOUR_US);
    for (int turn = 0; turn < 20000; turn++) {
        struct window_plan plan;
        while (window_close(lanes.engine, false, &plan)) {
            records += plan_check(&plan);
            ends[windows++] = plan.end.v;
            window_plan_free(&plan);
        }
        if (reading < 4 && mixed(&order_seed) % 2 == 0 && window_next_read(lanes.engine, &reads[reading])) {
            reading++;
        } else if (reading > 0) {
            size_t at = (size_t)(mixed(&order_seed) % reading);
            struct window_read read = reads[at];
            reads[at] = reads[--reading];
            lanes.answer_max = (size_t)(1 + mixed(&order_seed) % 20);
            if (mixed(&order_seed) % 8 == 0)
                window_read_failed(lanes.engine, &read);
            else
                lane_answer(&lanes, &read);
        }
        if (mixed(&order_seed) % 50 == 0)
            lanes_pass(&lanes, mixed(&order_seed) % 4 == 0, TEN + 100 * HOUR_US);
    }
    ck_assert_uint_eq(records, 300);
    return windows;
}

START_TEST(bounds_depend_on_the_log_alone)
{
    int64_t expected[BOUNDS_MAX];
    int64_t ends[BOUNDS_MAX];
    fill((uint64_t)_i);
    size_t count = drain(1, expected);
    lanes_end(&lanes);
    for (uint64_t order = 2; order < 12; order++) {
        fill((uint64_t)_i);
        ck_assert_uint_eq(drain(order * 977, ends), count);
        ck_assert_mem_eq(ends, expected, count * sizeof *ends);
        lanes_end(&lanes);
    }
}
END_TEST

/* ---- a stop ---- */

START_TEST(what_a_stop_asks)
{
    uint64_t weight;
    int64_t open_us;
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 300, 5);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    struct lane *lane = lane_add(&lanes, "a");
    lane_push(lane, TEN + SECOND_US);
    lane_push(lane, TEN + 10 * SECOND_US);
    lanes_pass(&lanes, true, TEN + 12 * SECOND_US);
    lanes_read_all(&lanes);
    window_closable(lanes.engine, &weight, &open_us);
    ck_assert_uint_eq(weight, RECORD_WEIGHT); /* the second is inside of the guard */
    ck_assert_int_eq(open_us, 12 * SECOND_US);
    struct window_plan plan = lanes_close(&lanes, true);
    ck_assert_uint_eq(plan.records, 1);
    ck_assert_int_eq(plan.end.v, TEN + 7 * SECOND_US);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window");
    TCase *tests = tcase_create("bounds");
    tcase_add_test(tests, a_window_ends_at_the_boundary);
    tcase_add_test(tests, a_boundary_that_the_guard_still_covers_is_not_reached);
    tcase_add_test(tests, the_first_window_of_earliest_starts_floored);
    tcase_add_test(tests, without_alignment_the_first_window_starts_at_its_record);
    tcase_add_test(tests, empty_intervals_are_stepped_over_in_memory);
    tcase_add_test(tests, without_alignment_an_empty_interval_is_max_window);
    tcase_add_test(tests, a_window_never_closes_without_a_record);
    tcase_add_test(tests, a_full_window_ends_at_the_ts_that_reaches_the_target);
    tcase_add_test(tests, the_records_of_one_ts_are_never_split);
    tcase_add_test(tests, a_target_reached_without_a_record_behind_it_has_no_bound_of_its_own);
    tcase_add_test(tests, a_record_at_the_end_belongs_to_the_next_window);
    tcase_add_test(tests, a_partition_that_was_never_read_blocks_every_close);
    tcase_add_test(tests, a_half_read_partition_holds_the_close_at_its_last_ts);
    tcase_add_test(tests, only_a_complete_pass_moves_what_is_proven);
    tcase_add_test(tests, a_pass_of_a_node_that_lags_takes_nothing_back);
    tcase_add_test(tests, a_watermark_of_any_answer_counts_for_being_caught_up);
    tcase_add_test(tests, the_lowest_frontier_is_read_first_and_nothing_far_ahead);
    tcase_add_test(tests, nothing_is_read_beyond_a_full_buffer);
    tcase_add_test(tests, a_live_window_ends_by_time);
    tcase_add_test(tests, one_that_catches_up_is_not_cut_where_an_answer_ended);
    tcase_add_test(tests, a_stuck_partition_lets_a_window_end_by_time);
    tcase_add_test(tests, what_a_stop_asks);
    tcase_add_loop_test(tests, bounds_depend_on_the_log_alone, 0, 20);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
