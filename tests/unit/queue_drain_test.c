/*
 * The clean stop (spec 3.10): which window is finished, which is dropped, and what is never waited for.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "queue_rig.h"

#define MIB  1048576
#define HALF 600000 /* two of them are more than DRAIN's megabyte */

/* At work after T0, with windows so long that nothing closes by itself. */
static void begin(void)
{
    rig_begin();
    rig.settings.max_window_ms = 3600000;
    rig.settings.target_bytes = 128 * MIB;
    rig.host.multipart_threshold = 64 * MIB;
    rig_committed(0, T0);
}

static void drain_and_settle(void)
{
    queue_drain(rig.queue);
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(rig_state(), QUEUE_DRAINED);
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
    ck_assert_int_eq(world_next_timer(&rig.w), -1);
}

START_TEST(a_megabyte_is_committed)
{
    begin();
    world_push(&rig.w, "p1", T0 + SECOND, HALF);
    world_push(&rig.w, "p1", T0 + 2 * SECOND, HALF);
    rig.w.safe_time = T0 + 8 * SECOND;
    rig_run();
    ck_assert_int_eq(rig_pointer_k(), 0);
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_int_eq(rig_pointer_end(), T0 + 3 * SECOND);
    ck_assert_uint_eq(rig_report().records_written, 2);
    rig_end();
}
END_TEST

START_TEST(less_of_a_young_window_is_dropped)
{
    begin();
    world_push(&rig.w, "p1", T0 + SECOND, HALF);
    rig.w.safe_time = T0 + 10 * SECOND - 1; /* it could be closed at five seconds */
    rig_run();
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 0);
    ck_assert_uint_eq(world_count(&rig.w, "put*"), 0);
    ck_assert_uint_eq(rig_report().buffer_bytes, 0);
    rig_end();
}
END_TEST

START_TEST(anything_of_a_window_open_for_ten_seconds_is_committed)
{
    begin();
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    rig.w.safe_time = T0 + 10 * SECOND;
    rig_run();
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_int_eq(rig_pointer_end(), T0 + 5 * SECOND);
    rig_end();
}
END_TEST

START_TEST(an_empty_window_is_never_written_however_long_it_was_open)
{
    begin();
    rig.w.safe_time = T0 + 1000 * SECOND;
    rig_run();
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 0);
    rig_end();
}
END_TEST

START_TEST(records_above_where_it_could_close_do_not_count)
{
    begin();
    world_push(&rig.w, "p1", T0 + 4 * SECOND, HALF);
    world_push(&rig.w, "p1", T0 + 5 * SECOND, HALF);
    rig.w.safe_time = T0 + 8 * SECOND; /* less the guard: three seconds */
    rig_run();
    ck_assert_uint_gt(rig_report().buffer_bytes, MIB);
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 0);
    rig_end();
}
END_TEST

START_TEST(answers_in_flight_are_not_waited_for)
{
    begin();
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_FETCH));
    ck_assert(world_has_call(&rig.w, "fetch*"));
    queue_drain(rig.queue);
    ck_assert(!world_has_call(&rig.w, "fetch*"));
    drain_and_settle();
    rig_end();
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_CHANGED));
    struct scripted_call *page = world_call(&rig.w, "changed*");
    queue_drain(rig.queue);
    world_run(&rig.w, 10, KIND(CALL_CHANGED));
    ck_assert_int_eq(rig.drained, 1);
    call_answer(page); /* shared with other queues, and of no interest any more */
    rig_end();
}
END_TEST

/* Its window is in the commit sequence, the object on its way. */
static void begin_uploading(void)
{
    begin();
    rig.settings.max_window_ms = 10000;
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    rig.w.safe_time = T0 + 15 * SECOND;
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_PUT));
    world_call(&rig.w, "put " OBJECT_1);
}

START_TEST(the_window_in_the_commit_sequence_is_finished)
{
    begin_uploading();
    queue_drain(rig.queue);
    world_run(&rig.w, 5000, KIND(CALL_PUT));
    ck_assert_int_eq(rig.drained, 0);
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 1);
    rig_end();
}
END_TEST

START_TEST(whatever_it_takes)
{
    begin_uploading();
    queue_drain(rig.queue);
    call_fail(world_call(&rig.w, "put*"), QS_ERROR_STATUS, 503);
    world_run(&rig.w, 700, NOTHING);
    ck_assert_int_eq(rig.drained, 0);
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(rig_pointer_k(), 1);
    rig_end();
    begin_uploading();
    queue_drain(rig.queue);
    call_fail(world_call(&rig.w, "put*"), QS_ERROR_FORBIDDEN, 403); /* it can't be: stopped for good */
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(rig_pointer_k(), 0);
    ck_assert_int_eq(world_next_timer(&rig.w), -1);
    rig_end();
}
END_TEST

START_TEST(a_rival_meanwhile_ends_it_too)
{
    begin_uploading();
    queue_drain(rig.queue);
    rig_lease_row("other", "theirs");
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(rig_pointer_k(), 0);
    ck_assert_int_ne(world_version(&rig.w, LEASE), 0); /* theirs stays */
    ck_assert_int_eq(world_next_timer(&rig.w), -1);
    rig_end();
}
END_TEST

START_TEST(the_one_after_it_is_decided_by_the_same_rule)
{
    begin_uploading();
    world_push(&rig.w, "p1", T0 + 11 * SECOND, 2 * HALF);
    rig.w.safe_time = T0 + 18 * SECOND;
    world_run(&rig.w, 4000, KIND(CALL_PUT));
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 2);
    rig_end();
    begin_uploading();
    world_push(&rig.w, "p1", T0 + 11 * SECOND, 10);
    rig.w.safe_time = T0 + 18 * SECOND;
    world_run(&rig.w, 4000, KIND(CALL_PUT));
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 1);
    rig_end();
}
END_TEST

START_TEST(a_redo_that_is_being_read_is_left_for_the_next_start)
{
    begin();
    rig_intent(1, T0, T0 + 10 * SECOND);
    world_push(&rig.w, "p1", T0 + SECOND, 2 * HALF);
    rig.w.safe_time = T0 + 8 * SECOND;
    rig_run();
    ck_assert_int_eq(rig_state(), QUEUE_RECOVERING);
    drain_and_settle();
    ck_assert_int_eq(rig_pointer_k(), 0);
    rig_end();
}
END_TEST

START_TEST(a_stop_leaves_a_checkpoint_of_what_was_committed)
{
    begin_uploading();
    world_run(&rig.w, 100, NOTHING);
    drain_and_settle();
    ck_assert_ptr_nonnull(bucket_find(&rig.w.bucket, CHECKPOINTS "0000000001.json.zst"));
    ck_assert_uint_eq(world_count(&rig.w, "list*"), 0); /* deleting old ones can wait */
    rig_end();
    begin();
    rig_run();
    drain_and_settle();
    ck_assert_uint_eq(world_count(&rig.w, "put*"), 0); /* nothing new to say */
    rig_end();
}
END_TEST

START_TEST(a_checkpoint_that_fails_holds_up_no_stop)
{
    begin_uploading();
    world_run(&rig.w, 100, NOTHING);
    queue_drain(rig.queue);
    call_fail(world_call(&rig.w, "put " CHECKPOINTS "*"), QS_ERROR_STATUS, 503);
    world_settle(&rig.w, KIND(CALL_PUT));
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
    rig_end();
    /* Nor does one that fails since before the stop. */
    begin_uploading();
    rig.settings.checkpoint_every = 1;
    call_answer(world_call(&rig.w, "put " OBJECT_1));
    call_answer(world_call(&rig.w, "put " MANIFEST_1));
    world_settle(&rig.w, KIND(CALL_PUT));
    call_fail(world_call(&rig.w, "put " CHECKPOINTS "*"), QS_ERROR_STATUS, 503);
    queue_drain(rig.queue);
    world_settle(&rig.w, KIND(CALL_PUT));
    ck_assert_int_eq(rig.drained, 1);
    rig_end();
}
END_TEST

int main(void)
{
    Suite *all = suite_create("queue_drain");
    TCase *cases = tcase_create("queue_drain");
    tcase_add_test(cases, a_megabyte_is_committed);
    tcase_add_test(cases, less_of_a_young_window_is_dropped);
    tcase_add_test(cases, anything_of_a_window_open_for_ten_seconds_is_committed);
    tcase_add_test(cases, an_empty_window_is_never_written_however_long_it_was_open);
    tcase_add_test(cases, records_above_where_it_could_close_do_not_count);
    tcase_add_test(cases, answers_in_flight_are_not_waited_for);
    tcase_add_test(cases, the_window_in_the_commit_sequence_is_finished);
    tcase_add_test(cases, whatever_it_takes);
    tcase_add_test(cases, a_rival_meanwhile_ends_it_too);
    tcase_add_test(cases, the_one_after_it_is_decided_by_the_same_rule);
    tcase_add_test(cases, a_redo_that_is_being_read_is_left_for_the_next_start);
    tcase_add_test(cases, a_stop_leaves_a_checkpoint_of_what_was_committed);
    tcase_add_test(cases, a_checkpoint_that_fails_holds_up_no_stop);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
