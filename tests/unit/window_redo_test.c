/*
 * The window engine, step by step: a redo (spec 3.5) and the positions of a checkpoint (2.4, 3.4).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/lanes.h"

static struct lanes lanes;

/* ---- a redo ---- */

START_TEST(a_redo_takes_exactly_its_bounds_without_guard_or_target)
{
    lanes_begin(&lanes, ALIGN_HOUR, 2, 1, 3600);
    window_start_redo(lanes.engine, (struct broker_us){TEN + 2 * SECOND_US}, (struct broker_us){TEN + 8 * SECOND_US});
    lane_fill(&lanes, "a", 20);
    lanes_pass(&lanes, true, TEN + 8 * SECOND_US - 1);
    lanes_read_all(&lanes);
    ck_assert(!lanes_can_close(&lanes));
    lanes_pass(&lanes, false, TEN + 8 * SECOND_US);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_int_eq(plan.start.v, TEN + 2 * SECOND_US);
    ck_assert_int_eq(plan.end.v, TEN + 8 * SECOND_US);
    ck_assert_uint_eq(plan.records, 6);
    window_plan_free(&plan);
    ck_assert(!lanes_can_close(&lanes)); /* from here on the guard counts again */
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_redo_of_which_nothing_is_left_closes_empty)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_redo(lanes.engine, (struct broker_us){TEN}, (struct broker_us){TEN + 4 * SECOND_US});
    struct lane *lane = lane_fill(&lanes, "a", 8);
    lane->log_start = 5;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 0);
    ck_assert_uint_eq(plan.lost_count, 0);
    window_plan_free(&plan);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 3);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

/* ---- positions ---- */

struct told {
    char names[8];
    int64_t positions[8];
    bool ids[8];
    size_t count;
};

static int tell(void *argument, struct name partition, int64_t position, const struct partition_id *id)
{
    struct told *told = argument;
    told->names[told->count] = partition.bytes[0];
    told->positions[told->count] = position;
    told->ids[told->count++] = id != NULL;
    return 0;
}

START_TEST(a_checkpoint_names_the_first_record_that_the_next_window_reads)
{
    struct told told = {.count = 0};
    lanes_begin(&lanes, ALIGN_HOUR, 4, 3600, 0);
    window_start_earliest(lanes.engine);
    lane_fill(&lanes, "b", 10)->has_id = true;
    lane_fill(&lanes, "a", 2);
    lanes_pass(&lanes, true, TEN + 100 * SECOND_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_int_eq(plan.end.v, TEN + 2 * SECOND_US);
    ck_assert_int_eq(window_positions(lanes.engine, tell, &told), 0);
    ck_assert_uint_eq(told.count, 2);
    ck_assert(told.names[0] == 'a' && told.positions[0] == 2 && !told.ids[0]);
    ck_assert(told.names[1] == 'b' && told.positions[1] == 2 && told.ids[1]);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_range_that_waits_keeps_the_position_before_it)
{
    struct told told = {.count = 0};
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 5);
    lanes_pass(&lanes, true, TEN + 20 * SECOND_US);
    lane->log_start = 5;
    lanes_read_all(&lanes);
    window_positions(lanes.engine, tell, &told);
    ck_assert_int_eq(told.positions[0], 0);
    lanes_end(&lanes);
}
END_TEST

START_TEST(partitions_that_are_sought_are_left_out)
{
    struct told told = {.count = 0};
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN + 5 * SECOND_US});
    lane_fill(&lanes, "a", 10);
    lanes_pass(&lanes, true, TEN + 20 * SECOND_US);
    window_positions(lanes.engine, tell, &told);
    ck_assert_uint_eq(told.count, 0);
    lanes_read_all(&lanes);
    window_positions(lanes.engine, tell, &told);
    ck_assert_uint_eq(told.count, 1);
    ck_assert_int_eq(told.positions[0], 5);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_checkpoint_counts_for_the_same_id_only)
{
    struct name name = {"a", 1};
    struct partition_id id;
    struct window_read read;
    memset(id.bytes, 9, sizeof id.bytes);
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    window_add_position(lanes.engine, name, 3, &id);
    struct lane *lane = lane_fill(&lanes, "a", 10);
    lane->has_id = true;
    lanes_pass(&lanes, true, TEN + 20 * SECOND_US);
    ck_assert(window_next_read(lanes.engine, &read));
    ck_assert_int_eq(read.offset, 0);
    window_read_failed(lanes.engine, &read);
    lanes_end(&lanes);

    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    window_add_position(lanes.engine, name, 3, &id);
    lane = lane_fill(&lanes, "a", 10);
    lane->has_id = true;
    lane->id = 9;
    lanes_pass(&lanes, true, TEN + 20 * SECOND_US);
    ck_assert(window_next_read(lanes.engine, &read));
    ck_assert_int_eq(read.offset, 3);
    window_read_failed(lanes.engine, &read);
    lanes_end(&lanes);
}
END_TEST

START_TEST(partitions_unnamed_for_two_enumerations_are_forgotten)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 1);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    ck_assert(lanes_can_close(&lanes));
    lane->hidden = true;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    ck_assert_uint_eq(window_partition_count(lanes.engine), 1);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    ck_assert_uint_eq(window_partition_count(lanes.engine), 0);
    lanes_end(&lanes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window redo");
    TCase *tests = tcase_create("redo");
    tcase_add_test(tests, a_redo_takes_exactly_its_bounds_without_guard_or_target);
    tcase_add_test(tests, a_redo_of_which_nothing_is_left_closes_empty);
    tcase_add_test(tests, a_checkpoint_names_the_first_record_that_the_next_window_reads);
    tcase_add_test(tests, a_range_that_waits_keeps_the_position_before_it);
    tcase_add_test(tests, partitions_that_are_sought_are_left_out);
    tcase_add_test(tests, a_checkpoint_counts_for_the_same_id_only);
    tcase_add_test(tests, partitions_unnamed_for_two_enumerations_are_forgotten);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
