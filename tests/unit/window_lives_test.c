/*
 * The window engine, step by step: what is lost, what is dropped, partitions that are created again or gone (spec 3.3, 3.4,
 * 3.8).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/lanes.h"

static struct lanes lanes;

static void is_lost(const struct lost_range *lost, const char *name, int64_t from, int64_t to, bool previous)
{
    ck_assert_uint_eq(lost->partition_size, strlen(name));
    ck_assert_mem_eq(lost->partition, name, lost->partition_size);
    ck_assert_int_eq(lost->from, from);
    ck_assert_int_eq(lost->to, to);
    ck_assert_int_eq(lost->previous_life, previous);
}

static void nothing_is_lost(void)
{
    size_t count;
    window_lost(lanes.engine, &count);
    ck_assert_uint_eq(count, 0);
}

/* ---- retention ---- */

START_TEST(retention_past_the_position_is_lost_with_the_record_after_it)
{
    size_t count;
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 10);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lane->log_start = 4;
    lanes_read_all(&lanes);
    is_lost(window_lost(lanes.engine, &count), "a", 0, 3, false);
    ck_assert_uint_eq(count, 1);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 6);
    ck_assert_uint_eq(plan.lost_count, 1);
    is_lost(plan.lost, "a", 0, 3, false);
    nothing_is_lost();
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_range_without_a_record_to_ship_with_waits)
{
    size_t count;
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 5);
    lanes_pass(&lanes, true, TEN + 20 * SECOND_US);
    lane->log_start = 5;
    lanes_read_all(&lanes);
    is_lost(window_lost(lanes.engine, &count), "a", 0, 4, false);
    ck_assert(!lanes_can_close(&lanes));
    lane_push(lane, TEN + HOUR_US + SECOND_US);
    lanes_pass(&lanes, true, TEN + 2 * HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.lost_count, 1);
    window_plan_return_lost(lanes.engine, &plan);
    ck_assert_uint_eq(plan.lost_count, 0);
    window_lost(lanes.engine, &count);
    ck_assert_uint_eq(count, 1);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_gap_before_a_committed_record_is_not_lost)
{
    struct name name = {"a", 1};
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN + 6 * SECOND_US});
    window_add_position(lanes.engine, name, 0, NULL);
    struct lane *lane = lane_fill(&lanes, "a", 10);
    lane->log_start = 3;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    nothing_is_lost();
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 4);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

/* ---- holes ---- */

START_TEST(a_hole_is_asked_for_three_times_more)
{
    struct window_read read;
    size_t count;
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 10);
    lane->missing[0] = lane->missing[1] = lane->missing[5] = true;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    for (uint32_t asked = 0; asked < 3; asked++) {
        ck_assert(window_next_read(lanes.engine, &read));
        ck_assert_int_eq(read.offset, 0);
        ck_assert_int_eq(lane_answer(&lanes, &read), WINDOW_READ_HOLE);
        ck_assert_uint_eq(window_read_failures(read.partition), asked + 1);
        struct window_read other;
        ck_assert(!window_next_read(lanes.engine, &other)); /* held back until its time has come */
        window_read_ready(lanes.engine, read.partition);
        nothing_is_lost();
    }
    ck_assert(window_next_read(lanes.engine, &read));
    ck_assert_int_eq(lane_answer(&lanes, &read), WINDOW_READ_DONE);
    is_lost(window_lost(lanes.engine, &count), "a", 0, 1, false);
    ck_assert_uint_eq(count, 1);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 7);
    ck_assert_uint_eq(plan.lost_count, 2);
    is_lost(&plan.lost[1], "a", 5, 5, false);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_hole_that_heals_costs_nothing)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane->missing[0] = true;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    ck_assert(lanes_read(&lanes));
    ck_assert(lanes_read(&lanes));
    lane->missing[0] = false;
    lanes_read_all(&lanes);
    nothing_is_lost();
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 4);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(empty_below_the_watermark_is_asked_again_first_and_largest)
{
    struct window_read read;
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    memset(lane->missing, 1, sizeof lane->missing);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    ck_assert(window_next_read(lanes.engine, &read));
    ck_assert(!read.largest);
    ck_assert_int_eq(lane_answer(&lanes, &read), WINDOW_READ_DONE);
    ck_assert(window_next_read(lanes.engine, &read));
    ck_assert(read.largest);
    ck_assert_int_eq(lane_answer(&lanes, &read), WINDOW_READ_DONE); /* it was not the first of its call */
    ck_assert(window_next_read(lanes.engine, &read));
    read.first = true;
    ck_assert_int_eq(lane_answer(&lanes, &read), WINDOW_READ_EMPTY);
    ck_assert(!window_is_through(lanes.engine));
    struct window_plan plan;
    ck_assert(!window_close(lanes.engine, true, &plan));
    nothing_is_lost();
    memset(lane->missing, 0, sizeof lane->missing);
    window_read_ready(lanes.engine, read.partition);
    lanes_read_all(&lanes);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 4);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

/* ---- records that come too low ---- */

START_TEST(records_below_the_last_end_are_dropped_answer_after_answer)
{
    struct name name = {"a", 1};
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN + 7 * SECOND_US});
    window_add_position(lanes.engine, name, 0, NULL); /* older than what is committed */
    lane_fill(&lanes, "a", 10);
    lanes.answer_max = 2;
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    nothing_is_lost();
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 3);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_broken_promise_counts_as_lost)
{
    size_t count;
    lanes_begin(&lanes, ALIGN_NONE, 1000, 10, 0);
    window_start_earliest(lanes.engine);
    struct lane *lane = lane_fill(&lanes, "a", 3);
    lanes_pass(&lanes, true, TEN + 30 * SECOND_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    window_plan_free(&plan);
    lane_push(lane, TEN + 20 * SECOND_US); /* below what is committed: the clock stepped back */
    lane_push(lane, TEN + 40 * SECOND_US);
    lanes_pass(&lanes, false, TEN + 100 * SECOND_US);
    lanes_read_all(&lanes);
    is_lost(window_lost(lanes.engine, &count), "a", 3, 3, false);
    ck_assert(window_lost(lanes.engine, &count)->misdated);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 1);
    ck_assert_uint_eq(plan.lost_count, 1);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

/* ---- lives ---- */

static void create_again(struct lane *lane, int64_t count, int64_t ts)
{
    lane->end = 0;
    lane->log_start = 0;
    lane->id++;
    for (int64_t i = 0; i < count; i++)
        lane_push(lane, ts + i * SECOND_US);
}

START_TEST(another_id_is_another_life_and_no_window_holds_both)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane->has_id = true;
    lanes.answer_max = 2;
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    ck_assert(lanes_read(&lanes));
    create_again(lane, 9, TEN + 20 * SECOND_US); /* more than there were */
    lanes_pass(&lanes, false, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_int_eq(plan.end.v, TEN + 20 * SECOND_US);
    ck_assert_uint_eq(plan.records, 2);
    ck_assert_uint_eq(plan.lost_count, 1);
    is_lost(plan.lost, "a", 2, 3, true);
    window_plan_free(&plan);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 9);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(an_answer_to_a_life_that_is_over_is_thrown_away)
{
    struct window_read read;
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane->has_id = true;
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    ck_assert(window_next_read(lanes.engine, &read));
    struct lane old = *lane;
    create_again(lane, 2, TEN + 20 * SECOND_US);
    lanes_pass(&lanes, false, TEN + HOUR_US);
    struct lane new = *lane;
    *lane = old;
    ck_assert_int_eq(lane_answer(&lanes, &read), WINDOW_READ_DONE);
    *lane = new;
    ck_assert_uint_eq(window_buffered_weight(lanes.engine), 0);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 2);
    is_lost(plan.lost, "a", 0, 3, true);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(without_an_id_lower_bounds_tell)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lanes_read_all(&lanes);
    create_again(lane, 2, TEN + 20 * SECOND_US);
    lanes_pass(&lanes, false, TEN + HOUR_US);
    lanes_read_all(&lanes);
    nothing_is_lost();
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 4);
    window_plan_free(&plan);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 2);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_page_older_than_what_was_read_since_tells_nothing)
{
    struct window_pass pass;
    bool has_since;
    struct broker_us since;
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    window_pass_begin(lanes.engine, &pass, false, &has_since, &since);
    window_pass_call(lanes.engine, &pass);
    lanes_read_all(&lanes); /* to 4, after the page's call was sent */
    lane->end = 2;
    lanes_page(&lanes, &pass, TEN + 11 * SECOND_US);
    window_pass_end(lanes.engine, &pass);
    lane->end = 4;
    lanes_pass(&lanes, false, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 4);
    ck_assert_uint_eq(plan.lost_count, 0);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(with_equal_ids_a_lower_bound_is_a_node_that_lags)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane->has_id = true;
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lanes_read_all(&lanes);
    lane->end = 1;
    lanes_pass(&lanes, false, TEN + 11 * SECOND_US);
    lanes_read_all(&lanes);
    lane->end = 4;
    lanes_pass(&lanes, false, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 4);
    ck_assert_uint_eq(plan.lost_count, 0);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_partition_out_of_range_blocks_until_a_full_pass_has_not_named_it)
{
    size_t count;
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    window_add_position(lanes.engine, (struct name){"a", 1}, 0, NULL);
    window_add_position(lanes.engine, (struct name){"b", 1}, 0, NULL);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane_fill(&lanes, "b", 1);
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lane->hidden = true;
    /* Nothing of it was read, so it is asked from 0, which a partition that never was answers empty. */
    lanes_read_all(&lanes);
    ck_assert(window_wants_full_pass(lanes.engine));
    struct window_plan plan;
    ck_assert(!window_close(lanes.engine, true, &plan));
    lanes_pass(&lanes, false, TEN + HOUR_US); /* not a full one: it proves nothing */
    ck_assert(!window_close(lanes.engine, true, &plan));
    lanes_pass(&lanes, true, TEN + HOUR_US);
    ck_assert(!window_wants_full_pass(lanes.engine));
    is_lost(window_lost(lanes.engine, &count), "a", 0, 3, false);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 1);
    ck_assert_uint_eq(plan.lost_count, 1);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(one_that_is_gone_can_come_back)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lanes.answer_max = 2;
    ck_assert(lanes_read(&lanes));
    lane->hidden = true;
    lanes_read_all(&lanes);
    lanes_pass(&lanes, true, TEN + 11 * SECOND_US);
    lane->hidden = false;
    create_again(lane, 7, TEN + 20 * SECOND_US);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 2);
    ck_assert_uint_eq(plan.lost_count, 1);
    window_plan_free(&plan);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 7);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_page_that_names_a_life_that_is_over_is_a_node_that_lags)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane->has_id = true;
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lanes_read_all(&lanes);
    struct lane old = *lane;
    create_again(lane, 5, TEN + 20 * SECOND_US);
    lanes_pass(&lanes, false, TEN + 30 * SECOND_US);
    lanes_read_all(&lanes);
    struct lane new = *lane;
    *lane = old;
    lanes_pass(&lanes, false, TEN + 15 * SECOND_US);
    *lane = new;
    lanes_pass(&lanes, false, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 4);
    ck_assert_uint_eq(plan.lost_count, 0);
    window_plan_free(&plan);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 5); /* once */
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(what_was_read_of_a_new_life_before_it_was_known_comes_once)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane->has_id = true;
    lanes.answer_max = 2;
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    ck_assert(lanes_read(&lanes));
    create_again(lane, 6, TEN + 20 * SECOND_US);
    ck_assert(lanes_read(&lanes)); /* offsets 2 and 3, of the new life, which nothing has told of yet */
    lanes_pass(&lanes, false, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 2);
    ck_assert_uint_eq(plan.lost_count, 1);
    is_lost(plan.lost, "a", 2, 3, true); /* those of the old one; the new one's 4 and 5 it never had */
    window_plan_free(&plan);
    plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 6);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

static void retention_before_the_first_look(bool sought, bool again, int64_t left)
{
    size_t count;
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    if (sought)
        window_start_after(lanes.engine, (struct broker_us){TEN});
    else
        window_start_earliest(lanes.engine);
    lane_fill(&lanes, "b", 1);
    struct lane *lane = again ? lane_fill(&lanes, "a", 1) : lane_add(&lanes, "a");
    lane->has_id = true;
    lane->hidden = !again;
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lanes_read_all(&lanes);
    create_again(lane, 5, TEN + 20 * SECOND_US);
    lane->log_start = lane->end - left;
    lane->hidden = false;
    lanes_pass(&lanes, false, TEN + 100 * SECOND_US);
    lanes_read_all(&lanes);
    is_lost(window_lost(lanes.engine, &count), "a", 0, lane->log_start - 1, false);
    ck_assert_uint_eq(count, 1);
    lanes_end(&lanes);
}

/* Nothing of it can have been committed. */
START_TEST(one_that_began_since_has_lost_what_was_deleted_before_the_first_look)
{
    for (int i = 0; i < 8; i++)
        retention_before_the_first_look(i & 1, i & 2, i & 4 ? 2 : 0);
}
END_TEST

START_TEST(one_that_was_there_has_lost_nothing_that_is_known)
{
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 5);
    lane->log_start = 3;
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lanes_read_all(&lanes);
    nothing_is_lost();
    lanes_end(&lanes);
}
END_TEST

START_TEST(one_held_back_in_two_lives_stays_until_both_times_have_come)
{
    struct window_read read;
    lanes_begin_earliest(&lanes, ALIGN_HOUR);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane->has_id = true;
    for (int life = 0; life < 2; life++) {
        lanes_pass(&lanes, true, TEN + (10 + life) * SECOND_US);
        ck_assert(window_next_read(lanes.engine, &read));
        ck_assert_int_eq(lanes_answer_empty(&lanes, &read, FETCH_PASSING, 0, 4), WINDOW_READ_FAULT);
        if (life == 0)
            create_again(lane, 4, TEN + 5 * SECOND_US);
    }
    struct partition *partition = read.partition;
    window_read_ready(lanes.engine, partition);
    lanes_read_all(&lanes);
    lanes_pass(&lanes, true, TEN + HOUR_US);
    struct window_plan plan = lanes_close(&lanes, false);
    window_plan_free(&plan);
    lane->hidden = true;
    for (int pass = 0; pass < 4; pass++)
        lanes_pass(&lanes, true, TEN + (3700 + pass) * SECOND_US);
    ck_assert_uint_eq(window_partition_count(lanes.engine), 1);
    window_read_ready(lanes.engine, partition);
    lanes_pass(&lanes, true, TEN + 3800 * SECOND_US);
    ck_assert_uint_eq(window_partition_count(lanes.engine), 0);
    lanes_end(&lanes);
}
END_TEST

START_TEST(a_pass_of_a_node_that_lags_ends_no_partition)
{
    lanes_begin(&lanes, ALIGN_HOUR, 1000, 60, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN});
    window_add_position(lanes.engine, (struct name){"a", 1}, 0, NULL);
    struct lane *lane = lane_fill(&lanes, "a", 4);
    lane->has_id = true;
    lanes_pass(&lanes, true, TEN + 10 * SECOND_US);
    lane->hidden = true; /* on a node that has not heard of it */
    lanes_read_all(&lanes);
    ck_assert(window_wants_full_pass(lanes.engine));
    lanes_pass(&lanes, true, TEN - SECOND_US);
    lane->hidden = false;
    nothing_is_lost();
    lanes_pass(&lanes, true, TEN + HOUR_US);
    lanes_read_all(&lanes);
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 4);
    ck_assert_uint_eq(plan.lost_count, 0);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

START_TEST(what_lies_before_the_start_is_no_broken_promise)
{
    lanes_begin(&lanes, ALIGN_NONE, 1000, 10, 0);
    window_start_after(lanes.engine, (struct broker_us){TEN + 5 * SECOND_US});
    struct lane *lane = lane_fill(&lanes, "a", 2); /* as a node that lags has it */
    lane->ts[0] = lane->ts[1] = TEN - 10 * SECOND_US;
    lanes_pass(&lanes, true, TEN + 6 * SECOND_US);
    lane_push(lane, TEN + 4 * SECOND_US);
    lane_push(lane, TEN + 30 * SECOND_US);
    lanes_pass(&lanes, false, TEN + 60 * SECOND_US);
    lanes_read_all(&lanes);
    nothing_is_lost();
    struct window_plan plan = lanes_close(&lanes, false);
    ck_assert_uint_eq(plan.records, 1);
    window_plan_free(&plan);
    lanes_end(&lanes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window lives");
    TCase *tests = tcase_create("lives");
    tcase_add_test(tests, retention_past_the_position_is_lost_with_the_record_after_it);
    tcase_add_test(tests, a_range_without_a_record_to_ship_with_waits);
    tcase_add_test(tests, a_gap_before_a_committed_record_is_not_lost);
    tcase_add_test(tests, a_hole_is_asked_for_three_times_more);
    tcase_add_test(tests, a_hole_that_heals_costs_nothing);
    tcase_add_test(tests, empty_below_the_watermark_is_asked_again_first_and_largest);
    tcase_add_test(tests, records_below_the_last_end_are_dropped_answer_after_answer);
    tcase_add_test(tests, a_broken_promise_counts_as_lost);
    tcase_add_test(tests, another_id_is_another_life_and_no_window_holds_both);
    tcase_add_test(tests, an_answer_to_a_life_that_is_over_is_thrown_away);
    tcase_add_test(tests, without_an_id_lower_bounds_tell);
    tcase_add_test(tests, a_page_older_than_what_was_read_since_tells_nothing);
    tcase_add_test(tests, with_equal_ids_a_lower_bound_is_a_node_that_lags);
    tcase_add_test(tests, a_partition_out_of_range_blocks_until_a_full_pass_has_not_named_it);
    tcase_add_test(tests, one_that_is_gone_can_come_back);
    tcase_add_test(tests, a_page_that_names_a_life_that_is_over_is_a_node_that_lags);
    tcase_add_test(tests, what_was_read_of_a_new_life_before_it_was_known_comes_once);
    tcase_add_test(tests, one_that_began_since_has_lost_what_was_deleted_before_the_first_look);
    tcase_add_test(tests, one_that_was_there_has_lost_nothing_that_is_known);
    tcase_add_test(tests, one_held_back_in_two_lives_stays_until_both_times_have_come);
    tcase_add_test(tests, a_pass_of_a_node_that_lags_ends_no_partition);
    tcase_add_test(tests, what_lies_before_the_start_is_no_broken_promise);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
