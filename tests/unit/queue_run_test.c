/*
 * A queue at work: discovery passes, reads that fail, what stops it, and memory (spec 3.3, 3.7, 3.8).
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue_rig.h"

#define HALF 600000

static struct scripted_call *call(const char *text)
{
    return world_call(&rig.w, text);
}

/* At work after T0; a window never closes by time alone. */
static void begin(void)
{
    rig_begin();
    rig.settings.max_window_ms = 3600000;
    rig_committed(0, T0);
    rig.w.safe_time = T0 + 8 * SECOND;
}

/* One partition, read from its start on. */
static void begin_reading(int records, size_t payload)
{
    begin();
    rig_committed(3, T0);
    rig_checkpoint(3, T0, "p1", 0);
    for (int i = 1; i <= records; i++)
        world_push(&rig.w, "p1", T0 + i * SECOND, payload);
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_FETCH));
    world_mark(&rig.w);
}

static void check_stopped(const char *says)
{
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    ck_assert_msg(strstr(rig_report().error, says) != NULL, "\"%s\" doesn't say \"%s\"", rig_report().error, says);
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
    ck_assert_int_eq(world_next_timer(&rig.w), 60000);
    world_run(&rig.w, 60250, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}

/* ---- passes ---- */

START_TEST(the_first_pass_is_full_and_the_others_ask_from_two_seconds_before_the_window)
{
    begin();
    rig_run();
    world_run(&rig.w, 4000, NOTHING);
    char expected[128];
    snprintf(expected, sizeof expected, "changed orders\nchanged orders since %lld\nchanged orders since %lld\n",
             (long long)(T0 - 2 * SECOND), (long long)(T0 - 2 * SECOND));
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_CHANGED)), expected);
    rig_end();
}
END_TEST

START_TEST(every_thirtieth_is_full_and_delays_none)
{
    begin();
    rig_run();
    world_run(&rig.w, 58500, NOTHING);
    ck_assert_uint_eq(world_count(&rig.w, "changed orders"), 1);
    world_run(&rig.w, 2000, KIND(CALL_CHANGED)); /* both travel in one call */
    struct scripted_call *pages = call("changed orders*");
    ck_assert_uint_eq(pages->count, 2);
    ck_assert_int_ne(pages->entries[0].has_since, pages->entries[1].has_since);
    rig_end();
}
END_TEST

START_TEST(a_pass_takes_all_its_pages)
{
    begin();
    rig.w.page = 1;
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    world_push(&rig.w, "p2", T0 + SECOND, 10);
    rig_run();
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_CHANGED)), "changed orders\nchanged orders after 1\n");
    ck_assert_uint_eq(rig_report().partitions, 2);
    rig_end();
}
END_TEST

START_TEST(a_full_pass_that_breaks_off_is_begun_anew_at_the_next_tick)
{
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_CHANGED));
    call_answer_page_status(call("changed orders"), CHANGED_BAD_CURSOR);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    world_run(&rig.w, 2000, KIND(CALL_CHANGED));
    call_answer_page_status(call("changed orders, orders since*"), CHANGED_PASSING);
    world_run(&rig.w, 2000, KIND(CALL_CHANGED));
    call_answer(call("changed orders, orders since*"));
    world_run(&rig.w, 2000, KIND(CALL_CHANGED));
    call_answer(call("changed orders since*"));
    rig_end();
}
END_TEST

START_TEST(an_unknown_queue_or_a_refused_page_stops_it)
{
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_CHANGED));
    call_answer_page_status(call("changed orders"), CHANGED_UNKNOWN_QUEUE);
    check_stopped("no queue of this name");
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_CHANGED));
    call_fail(call("changed orders"), QS_ERROR_FORBIDDEN, 403);
    check_stopped("discovery");
}
END_TEST

START_TEST(a_broker_that_is_away_is_told_until_it_answers)
{
    begin();
    rig_run();
    ck_assert_str_eq(rig_report().error, "");
    world_run(&rig.w, 2000, KIND(CALL_CHANGED));
    call_fail(call("changed orders since*"), QS_ERROR_TRANSPORT, 0);
    ck_assert_ptr_nonnull(strstr(rig_report().error, "scripted failure"));
    ck_assert_int_eq(rig_report().error_wall_ms, rig.w.wall + rig.w.now);
    world_run(&rig.w, 2000, NOTHING);
    ck_assert_str_eq(rig_report().error, "");
    ck_assert_int_eq(rig_report().error_wall_ms, 0);
    rig_end();
}
END_TEST

START_TEST(a_clock_that_stands_still_before_waiting_records_is_nudged_by_refreshes)
{
    begin();
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    rig_run();
    world_mark(&rig.w);
    world_run(&rig.w, 5500, NOTHING);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_KV)), "");
    world_run(&rig.w, 4500, NOTHING); /* six seconds are over; a pass every two */
    ck_assert_uint_ge(world_count(&rig.w, "kv put lease*"), 2);
    rig.w.safe_time += SECOND;
    world_run(&rig.w, 3000, NOTHING);
    size_t before = world_count(&rig.w, "kv put lease*");
    world_run(&rig.w, 3000, NOTHING);
    ck_assert_uint_eq(world_count(&rig.w, "kv put lease*"), before);
    rig_end();
}
END_TEST

START_TEST(without_waiting_records_it_is_left_alone)
{
    begin();
    rig_run();
    world_mark(&rig.w);
    world_run(&rig.w, 9900, NOTHING);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_KV)), "");
    rig_end();
}
END_TEST

/* ---- reads ---- */

START_TEST(a_fetch_that_fails_is_asked_again_and_skips_nothing)
{
    begin_reading(3, 10);
    call_fail(call("fetch p1@0"), QS_ERROR_STATUS, 500);
    ck_assert_uint_eq(rig_report().fetch_error, 1);
    ck_assert_str_ne(rig_report().error, "");
    world_run(&rig.w, 740, NOTHING);
    ck_assert(!world_has_call(&rig.w, "fetch*"));
    world_run(&rig.w, 10, NOTHING);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH)), "fetch p1@0\n");
    ck_assert_uint_eq(rig_report().fetch_ok, 1);
    ck_assert_uint_gt(rig_report().buffer_bytes, 0);
    rig_end();
}
END_TEST

START_TEST(a_refused_fetch_stops_it_and_an_unknown_queue_is_for_discovery_to_say)
{
    begin_reading(3, 10);
    call_fail(call("fetch p1@0"), QS_ERROR_REFUSED, 401);
    check_stopped("fetch");
    begin_reading(3, 10);
    call_answer_status(call("fetch p1@0"), FETCH_UNKNOWN_QUEUE);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(an_entry_that_fails_by_itself_is_asked_again)
{
    begin_reading(3, 10);
    call_answer_status(call("fetch p1@0"), FETCH_PASSING);
    world_run(&rig.w, 700, NOTHING);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH)), "");
    world_run(&rig.w, 100, NOTHING);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH)), "fetch p1@0\n");
    rig_end();
}
END_TEST

START_TEST(empty_below_the_watermark_is_asked_again_first_and_at_the_largest_size)
{
    begin_reading(3, 10);
    call_answer_status(call("fetch p1@0"), FETCH_OK);
    world_settle(&rig.w, KIND(CALL_FETCH));
    struct scripted_call *again = call("fetch p1@0");
    ck_assert_uint_eq(again->entries[0].max_bytes, QUEEN_FETCH_BYTES_MAX);
    call_answer_status(again, FETCH_OK);
    ck_assert_ptr_nonnull(strstr(rig_report().error, "p1: offset 0 can't be read"));
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig.w.safe_time = T0 + 8000 * SECOND;
    world_run(&rig.w, 60000, KIND(CALL_FETCH));
    ck_assert_int_eq(rig_pointer_k(), 3); /* it blocks the close */
    ck_assert_int_lt(rig_report().through_us, T0 + 8000 * SECOND);
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 4);
    ck_assert_uint_eq(rig_report().records_written, 3);
    rig_end();
}
END_TEST

START_TEST(a_hole_is_asked_for_three_times_over_ten_seconds_before_it_is_lost)
{
    begin_reading(5, 10);
    world_partition(&rig.w, "p1")->records[1].gone = true;
    world_settle(&rig.w, NOTHING);
    world_run(&rig.w, 9900, NOTHING);
    ck_assert_uint_lt(rig_report().buffer_bytes, 300); /* the one before the hole, or none */
    world_run(&rig.w, 5000, NOTHING);
    ck_assert_uint_ge(world_count(&rig.w, "fetch p1@1*"), 3);
    rig.w.safe_time = T0 + 8000 * SECOND;
    world_run(&rig.w, 10000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 4);
    ck_assert_uint_eq(rig_report().records_written, 4);
    ck_assert_uint_eq(rig_report().records_lost, 1);
    rig_end();
}
END_TEST

START_TEST(a_hole_that_closes_loses_nothing)
{
    begin_reading(5, 10);
    world_partition(&rig.w, "p1")->records[1].gone = true;
    world_run(&rig.w, 5000, NOTHING);
    world_partition(&rig.w, "p1")->records[1].gone = false;
    rig.w.safe_time = T0 + 8000 * SECOND;
    world_run(&rig.w, 15000, NOTHING);
    ck_assert_uint_eq(rig_report().records_written, 5);
    ck_assert_uint_eq(rig_report().records_lost, 0);
    rig_end();
}
END_TEST

START_TEST(no_more_calls_at_a_time_than_configured)
{
    begin();
    rig.settings.fetch_concurrency = 2;
    rig.settings.target_bytes = 1 << 20;
    for (int p = 0; p < LOG_PARTITIONS_MAX; p++) {
        char name[8];
        snprintf(name, sizeof name, "p%d", p);
        for (int i = 0; i < LOG_RECORDS_MAX; i++)
            world_push(&rig.w, name, T0 + SECOND, 10);
    }
    rig_start();
    for (int turn = 0; turn < 50; turn++) {
        world_run(&rig.w, 100, KIND(CALL_FETCH));
        ck_assert_uint_le(world_open_calls(&rig.w), 2);
        if (world_has_call(&rig.w, "fetch*"))
            call_answer(call("fetch*"));
    }
    rig_end();
}
END_TEST

START_TEST(a_call_that_fails_shortens_no_other_calls_wait)
{
    for (int outgrown = 0; outgrown < 2; outgrown++) {
        begin();
        rig.settings.fetch_concurrency = 2;
        rig.settings.target_bytes = 1 << 20;
        for (int i = 0; i < LOG_RECORDS_MAX; i++) {
            world_push(&rig.w, "p0", T0 + SECOND, 20000);
            world_push(&rig.w, "p1", T0 + SECOND, 20000);
        }
        rig_start();
        while (world_open_calls(&rig.w) < 2) {
            if (world_has_call(&rig.w, "fetch*"))
                call_answer(call("fetch*"));
            world_run(&rig.w, 250, KIND(CALL_FETCH));
        }
        call_fail_after(call("fetch*"), QS_ERROR_STATUS, 429, 30000);
        call_fail(call("fetch*"), outgrown ? QS_ERROR_NO_ROOM : QS_ERROR_STATUS, 500);
        world_mark(&rig.w);
        world_run(&rig.w, 29000, KIND(CALL_FETCH));
        ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH)), "");
        world_run(&rig.w, 1000, KIND(CALL_FETCH));
        ck_assert_str_ne(world_trace(&rig.w, KIND(CALL_FETCH)), "");
        rig_end();
    }
}
END_TEST

START_TEST(an_answer_that_outgrew_its_reservation_is_asked_for_with_more)
{
    begin_reading(3, 10);
    size_t reserved = call("fetch p1@0")->reserved;
    call_fail(call("fetch p1@0"), QS_ERROR_NO_ROOM, 0);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH)), ""); /* not at once: the same answer would come again */
    world_run(&rig.w, 100, KIND(CALL_FETCH));
    struct scripted_call *again = call("fetch p1@0");
    ck_assert_uint_gt(again->reserved, reserved);
    ck_assert_uint_eq(rig_report().fetch_error, 0);
    call_answer(again);
    ck_assert_uint_gt(rig_report().buffer_bytes, 0);
    rig_end();
}
END_TEST

/* ---- memory ---- */

START_TEST(asked_for_memory_it_closes_its_window_early)
{
    begin_reading(2, 1000);
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 3);
    ck_assert(queue_give_memory(rig.queue));
    ck_assert(queue_give_memory(rig.queue)); /* it is on its way up */
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 4);
    ck_assert_int_eq(rig_pointer_end(), T0 + 3 * SECOND);
    ck_assert_uint_eq(rig_report().buffer_bytes, 0);
    rig_end();
}
END_TEST

START_TEST(what_can_not_be_closed_is_dropped_from_the_end_and_read_again)
{
    begin_reading(0, 0);
    world_push(&rig.w, "p1", T0 + 4 * SECOND, HALF);
    world_push(&rig.w, "p2", T0 + 5 * SECOND, HALF);
    world_run(&rig.w, 4000, NOTHING);
    uint64_t held = rig_report().buffer_bytes;
    ck_assert_uint_gt(held, 2 * HALF);
    for (int i = 0; i < 2; i++) /* blocks that are partly spent are copied first */
        ck_assert(queue_give_memory(rig.queue));
    ck_assert_uint_lt(rig_report().buffer_bytes, held);
    ck_assert_int_eq(rig_pointer_k(), 3);
    rig.w.safe_time = T0 + 8000 * SECOND;
    world_run(&rig.w, 5000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 4);
    ck_assert_uint_eq(rig_report().records_written, 2);
    rig_end();
}
END_TEST

START_TEST(one_that_holds_nothing_or_does_not_run_has_nothing_to_give)
{
    begin();
    rig_run();
    ck_assert(!queue_give_memory(rig.queue));
    ck_assert_uint_eq(queue_buffered(rig.queue), 0);
    rig_end();
    begin();
    rig_lease_row("other", "theirs");
    rig_run();
    ck_assert(!queue_give_memory(rig.queue));
    queue_poke(rig.queue);
    rig_end();
}
END_TEST

START_TEST(without_room_others_are_asked_and_reading_waits_for_a_poke)
{
    begin_reading(0, 0);
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    world_push(&rig.w, "p2", T0 + SECOND, 10);
    rig.w.budget.limit = 3 << 20;
    budget_force(&rig.w.budget, 3 << 20); /* another queue's */
    rig.says_yes = true;
    world_run(&rig.w, 2000, NOTHING);
    ck_assert_int_gt(rig.relieved, 0);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH)), "");
    budget_give(&rig.w.budget, 3 << 20);
    queue_poke(rig.queue);
    world_settle(&rig.w, NOTHING);
    ck_assert_str_ne(world_trace(&rig.w, KIND(CALL_FETCH)), "");
    rig_end();
}
END_TEST

START_TEST(where_nothing_can_be_given_back_one_read_alone_may_pass_the_budget)
{
    begin_reading(0, 0);
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    world_push(&rig.w, "p2", T0 + SECOND, 10);
    rig.w.budget.limit = 1 << 20;
    budget_force(&rig.w.budget, 1 << 20);
    world_run(&rig.w, 2000, KIND(CALL_FETCH));
    ck_assert_int_gt(rig.relieved, 0);
    ck_assert_uint_eq(world_open_calls(&rig.w), 1);
    ck_assert(call("fetch*")->may_exceed);
    ck_assert_uint_eq(call("fetch*")->count, 1);
    budget_give(&rig.w.budget, 1 << 20);
    rig_end();
}
END_TEST

/* Its window's keys would be too long, which stops a queue when it closes; here a read that needs room makes it close. */
START_TEST(giving_memory_may_stop_the_queue_that_asked)
{
    static char prefix[1000];
    begin_reading(2, 1000);
    world_settle(&rig.w, NOTHING);
    memset(prefix, 'x', sizeof prefix - 1);
    rig.settings.prefix = prefix;
    rig.gives_memory = true;
    rig.w.budget.limit = 1 << 20;
    budget_force(&rig.w.budget, 1 << 20);
    world_push(&rig.w, "p1", T0 + 9 * SECOND, 10);
    rig.w.safe_time = T0 + 20 * SECOND;
    world_run(&rig.w, 4000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    ck_assert_int_gt(rig.relieved, 0);
    budget_give(&rig.w.budget, 1 << 20);
    rig_end();
}
END_TEST

static void add_passes(Suite *all)
{
    TCase *cases = tcase_create("passes");
    tcase_add_test(cases, the_first_pass_is_full_and_the_others_ask_from_two_seconds_before_the_window);
    tcase_add_test(cases, every_thirtieth_is_full_and_delays_none);
    tcase_add_test(cases, a_pass_takes_all_its_pages);
    tcase_add_test(cases, a_full_pass_that_breaks_off_is_begun_anew_at_the_next_tick);
    tcase_add_test(cases, an_unknown_queue_or_a_refused_page_stops_it);
    tcase_add_test(cases, a_broker_that_is_away_is_told_until_it_answers);
    tcase_add_test(cases, a_clock_that_stands_still_before_waiting_records_is_nudged_by_refreshes);
    tcase_add_test(cases, without_waiting_records_it_is_left_alone);
    suite_add_tcase(all, cases);
}

static void add_reads(Suite *all)
{
    TCase *cases = tcase_create("reads");
    tcase_add_test(cases, a_fetch_that_fails_is_asked_again_and_skips_nothing);
    tcase_add_test(cases, a_refused_fetch_stops_it_and_an_unknown_queue_is_for_discovery_to_say);
    tcase_add_test(cases, an_entry_that_fails_by_itself_is_asked_again);
    tcase_add_test(cases, empty_below_the_watermark_is_asked_again_first_and_at_the_largest_size);
    tcase_add_test(cases, a_hole_is_asked_for_three_times_over_ten_seconds_before_it_is_lost);
    tcase_add_test(cases, a_hole_that_closes_loses_nothing);
    tcase_add_test(cases, no_more_calls_at_a_time_than_configured);
    tcase_add_test(cases, a_call_that_fails_shortens_no_other_calls_wait);
    tcase_add_test(cases, an_answer_that_outgrew_its_reservation_is_asked_for_with_more);
    suite_add_tcase(all, cases);
}

int main(void)
{
    Suite *all = suite_create("queue_run");
    add_passes(all);
    add_reads(all);
    TCase *cases = tcase_create("memory");
    tcase_add_test(cases, asked_for_memory_it_closes_its_window_early);
    tcase_add_test(cases, what_can_not_be_closed_is_dropped_from_the_end_and_read_again);
    tcase_add_test(cases, one_that_holds_nothing_or_does_not_run_has_nothing_to_give);
    tcase_add_test(cases, without_room_others_are_asked_and_reading_waits_for_a_poke);
    tcase_add_test(cases, where_nothing_can_be_given_back_one_read_alone_may_pass_the_budget);
    tcase_add_test(cases, giving_memory_may_stop_the_queue_that_asked);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
