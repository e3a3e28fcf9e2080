/*
 * The lease, and writes under it (spec 3.5, 3.6): who wins a claim, what a lost answer means, and that an instance loses
 * its queue only to another.
 */
#include <check.h>
#include <stdlib.h>

#include "queue_rig.h"

#define KV KIND(CALL_KV)

static void answer(const char *text)
{
    call_answer(world_call(&rig.w, text));
}

static void remove_lease(void)
{
    documents_remove(&rig.w.documents, LEASE);
}

/* ---- claims ---- */

START_TEST(claims_with_put_if_absent)
{
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KV);
    ck_assert_int_eq(rig_state(), QUEUE_CLAIMING);
    struct scripted_call *claim = world_call(&rig.w, "kv putIfAbsent lease ttl 30");
    ck_assert_int_eq(claim->timeout_ms, 3000);
    call_answer(claim);
    ck_assert_int_eq(rig_state(), QUEUE_RECOVERING);
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert(rig_report().held_before);
    ck_assert(!rig_report().standby);
    rig_end();
}
END_TEST

START_TEST(a_loser_stands_by_and_tries_again_after_the_ttl)
{
    rig_begin();
    rig_lease_row("other", "theirs");
    rig_run();
    ck_assert_int_eq(rig_state(), QUEUE_CLAIMING);
    ck_assert(rig_report().standby);
    ck_assert_str_eq(rig_report().holder, "other");
    ck_assert_str_eq(rig_report().error, "");
    ck_assert_int_eq(world_next_timer(&rig.w), 30000);
    ck_assert_uint_eq(world_count(&rig.w, "kv*"), 1);
    world_run(&rig.w, 30250, NOTHING); /* theirs has expired */
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert(!rig_report().standby);
    ck_assert_str_eq(rig_report().holder, "");
    rig_end();
}
END_TEST

START_TEST(takes_over_the_row_of_the_worker_it_replaces)
{
    rig_begin();
    rig.host.previous_incarnation = "before";
    rig_lease_row("me", "before");
    rig_start();
    world_run(&rig.w, 250, NOTHING);
    world_run(&rig.w, 250, KV);
    answer("kv put lease@7 ttl 30");
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(without_a_predecessor_the_same_row_is_a_rivals)
{
    rig_begin();
    rig_lease_row("me", "before");
    rig_run();
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_CLAIMING);
    rig_end();
}
END_TEST

START_TEST(a_predecessors_row_may_expire_while_it_is_taken_over)
{
    rig_begin();
    rig.host.previous_incarnation = "before";
    rig_lease_row("me", "before");
    rig_run();
    world_run(&rig.w, 250, KV);
    remove_lease();
    answer("kv put lease@7 ttl 30"); /* loses with absent */
    world_run(&rig.w, 250, KV);
    answer("kv putIfAbsent lease ttl 30");
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(a_predecessors_row_may_be_taken_by_a_rival)
{
    rig_begin();
    rig.host.previous_incarnation = "before";
    rig_lease_row("me", "before");
    rig_run();
    world_run(&rig.w, 250, KV);
    rig_lease_row("other", "theirs");
    answer("kv put lease@7 ttl 30");
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_CLAIMING);
    ck_assert(rig_report().standby);
    rig_end();
}
END_TEST

START_TEST(a_claim_that_loses_to_our_own_row_has_won)
{
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KV);
    call_lose(world_call(&rig.w, "kv putIfAbsent lease ttl 30"));
    ck_assert_int_eq(rig_state(), QUEUE_CLAIMING);
    world_run(&rig.w, 50 + 250, KV);
    answer("kv putIfAbsent lease ttl 30");
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(a_claim_waits_as_long_as_it_was_told)
{
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KV);
    call_fail_after(world_call(&rig.w, "kv*"), QS_ERROR_STATUS, 429, 20000);
    ck_assert_int_eq(world_next_timer(&rig.w), 20000);
    world_run(&rig.w, 20250, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(a_refused_claim_stops_the_queue_for_a_minute)
{
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KV);
    call_fail(world_call(&rig.w, "kv*"), QS_ERROR_FORBIDDEN, 403);
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    ck_assert_uint_eq(world_open_calls(&rig.w), 0);
    ck_assert_int_eq(world_next_timer(&rig.w), 60000);
    world_run(&rig.w, 60250, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

/* ---- refreshes ---- */

/* At work with nothing to read; its lease has version 7. */
static void begin_running(void)
{
    rig_begin();
    rig_run();
    ck_assert_int_eq(world_version(&rig.w, LEASE), 7);
}

static void to_the_refresh(void)
{
    world_run(&rig.w, 10250, KV);
}

START_TEST(refreshes_every_third_of_the_ttl)
{
    begin_running();
    world_mark(&rig.w);
    world_run(&rig.w, 30750, NOTHING);
    ck_assert_str_eq(world_trace(&rig.w, KV),
                     "kv put lease@7 ttl 30\nkv put lease@14 ttl 30\nkv put lease@21 ttl 30\n");
    rig_end();
}
END_TEST

START_TEST(a_short_ttl_has_short_timeouts)
{
    rig_begin();
    rig.settings.lease_ttl_ms = 3000;
    rig_run();
    world_run(&rig.w, 250, KV);
    world_run(&rig.w, 1250, KV);
    call_lose(world_call(&rig.w, "kv put lease@7 ttl 3"));
    world_run(&rig.w, 50, KV);
    ck_assert_int_eq(world_call(&rig.w, "kv get lease")->timeout_ms, 1000);
    rig_end();
}
END_TEST

START_TEST(after_a_refresh_without_an_answer_the_row_is_read_back_first)
{
    begin_running();
    to_the_refresh();
    call_lose(world_call(&rig.w, "kv put lease@7 ttl 30"));
    world_run(&rig.w, 50, KV);
    answer("kv get lease");
    world_run(&rig.w, 250, KV);
    answer("kv put lease@14 ttl 30");
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(a_refresh_that_did_not_arrive_is_sent_again)
{
    begin_running();
    to_the_refresh();
    call_fail(world_call(&rig.w, "kv put lease@7 ttl 30"), QS_ERROR_STATUS, 503);
    world_run(&rig.w, 50, KV);
    answer("kv get lease");
    world_run(&rig.w, 250, KV);
    answer("kv put lease@7 ttl 30");
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(reading_back_is_tried_again_with_the_backoff_of_kv)
{
    begin_running();
    to_the_refresh();
    call_lose(world_call(&rig.w, "kv put lease*"));
    static const int64_t delays[] = {50, 1500, 2250, 2250};
    for (int i = 0; i < 4; i++) {
        world_run(&rig.w, delays[i] - 1, KV);
        ck_assert(!world_has_call(&rig.w, "kv*"));
        world_run(&rig.w, 1, KV);
        call_fail(world_call(&rig.w, "kv get lease"), QS_ERROR_TRANSPORT, 0);
    }
    world_run(&rig.w, 3000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(a_refused_reading_back_stops_the_queue)
{
    begin_running();
    to_the_refresh();
    call_lose(world_call(&rig.w, "kv put lease*"));
    world_run(&rig.w, 50, KV);
    call_fail(world_call(&rig.w, "kv get lease"), QS_ERROR_FORBIDDEN, 403);
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    world_run(&rig.w, 60250, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(an_expired_lease_without_a_rival_is_written_anew)
{
    begin_running();
    to_the_refresh();
    remove_lease();
    answer("kv put lease@7 ttl 30");
    world_run(&rig.w, 250, KV);
    answer("kv putIfAbsent lease ttl 30");
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    world_mark(&rig.w);
    world_run(&rig.w, 10250, NOTHING);
    ck_assert_str_eq(world_trace(&rig.w, KV), "kv put lease@14 ttl 30\n");
    rig_end();
}
END_TEST

START_TEST(read_back_as_expired_it_is_written_anew)
{
    begin_running();
    to_the_refresh();
    call_lose(world_call(&rig.w, "kv put lease*"));
    remove_lease();
    world_run(&rig.w, 300, KV & 0);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_uint_eq(world_count(&rig.w, "kv putIfAbsent lease ttl 30"), 2);
    rig_end();
}
END_TEST

static void check_lost(void)
{
    ck_assert_int_eq(rig_state(), QUEUE_LOST);
    ck_assert_uint_eq(rig.host.precondition_lost, 1);
    ck_assert_uint_eq(world_open_calls(&rig.w), 0);
    ck_assert_int_eq(world_next_timer(&rig.w), 30000);
    ck_assert(!rig_report().standby);
    world_run(&rig.w, 30250, NOTHING);
    world_run(&rig.w, 250, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING); /* theirs expired */
    rig_end();
}

START_TEST(a_refresh_that_loses_to_a_rival_loses_the_queue)
{
    begin_running();
    to_the_refresh();
    rig_lease_row("other", "theirs");
    answer("kv put lease@7 ttl 30");
    check_lost();
}
END_TEST

START_TEST(a_rival_found_on_reading_back_has_the_queue)
{
    begin_running();
    to_the_refresh();
    call_fail(world_call(&rig.w, "kv put lease*"), QS_ERROR_TRANSPORT, 0);
    world_run(&rig.w, 50, KV);
    rig_lease_row("other", "theirs");
    answer("kv get lease");
    check_lost();
}
END_TEST

START_TEST(a_refused_refresh_stops_the_queue_and_gives_the_lease_back)
{
    begin_running();
    to_the_refresh();
    call_fail(world_call(&rig.w, "kv put lease*"), QS_ERROR_REFUSED, 400);
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    answer("kv delete lease@7");
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
    world_run(&rig.w, 60250, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

/* ---- guarded writes ---- */

#define INTENT_BATCH "kv put lease@14 ttl 30 required, put intent@0 required"

/* Two records are read, a window of them is due, and its intent is on its way; the lease has version 14. */
static void begin_at_intent(void)
{
    rig_begin();
    rig_committed(0, T0);
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    world_push(&rig.w, "p1", T0 + 2 * SECOND, 10);
    rig_run();
    rig.w.safe_time = T0 + 15 * SECOND;
    world_run(&rig.w, 2000, KV);
    world_call(&rig.w, INTENT_BATCH);
    world_mark(&rig.w);
}

/* Its window gets committed without a record being read again. */
static void check_goes_on(void)
{
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH)), "");
    ck_assert_uint_eq(rig.host.precondition_lost, 0);
    rig_end();
}

START_TEST(a_write_that_landed_without_an_answer_is_found_by_reading_back)
{
    begin_at_intent();
    call_lose(world_call(&rig.w, INTENT_BATCH));
    world_run(&rig.w, 50, KV);
    answer("kv get lease intent");
    ck_assert(world_has_call(&rig.w, "encode") || world_has_call(&rig.w, "kv*"));
    ck_assert_uint_eq(world_count(&rig.w, "crash after_intent"), 1);
    check_goes_on();
}
END_TEST

START_TEST(a_write_that_did_not_land_is_sent_again)
{
    begin_at_intent();
    call_fail(world_call(&rig.w, INTENT_BATCH), QS_ERROR_STATUS, 503);
    world_run(&rig.w, 50, KV);
    answer("kv get lease intent");
    answer(INTENT_BATCH);
    check_goes_on();
}
END_TEST

START_TEST(a_lost_write_asks_for_a_fresh_lease_since_its_age_is_not_known)
{
    begin_at_intent();
    call_lose(world_call(&rig.w, INTENT_BATCH));
    rig.w.now += 20000; /* the broker is away for a while */
    world_settle(&rig.w, KV);
    answer("kv get lease intent");
    world_run(&rig.w, 250, KV | KIND(CALL_ENCODE));
    answer("kv put lease@28 ttl 30");
    check_goes_on();
}
END_TEST

START_TEST(a_precondition_from_our_own_earlier_attempt_is_no_loss)
{
    begin_at_intent();
    struct scripted_call *batch = world_call(&rig.w, INTENT_BATCH);
    /* A retry on the way: applied once, and the second copy is answered. */
    documents_apply(&rig.w.documents, &batch->batch, rig.w.now, false);
    call_answer(batch);
    answer("kv get lease intent");
    check_goes_on();
}
END_TEST

START_TEST(a_bare_precondition_is_read_back_too)
{
    struct kv_answer bare = {.precondition_failed = true, .failed_index = SIZE_MAX};
    begin_at_intent();
    call_answer_kv(world_call(&rig.w, INTENT_BATCH), &bare);
    answer("kv get lease intent");
    answer(INTENT_BATCH);
    check_goes_on();
}
END_TEST

START_TEST(on_an_expired_lease_the_same_batch_claims_anew_and_keeps_its_buffers)
{
    begin_at_intent();
    remove_lease();
    answer(INTENT_BATCH);
    answer("kv get lease intent");
    answer("kv putIfAbsent lease ttl 30 required, put intent@0 required");
    check_goes_on();
}
END_TEST

START_TEST(a_write_may_have_landed_before_the_lease_ran_out)
{
    begin_at_intent();
    call_lose(world_call(&rig.w, INTENT_BATCH));
    remove_lease();
    world_run(&rig.w, 50, KV);
    answer("kv get lease intent");
    world_run(&rig.w, 250, KV | KIND(CALL_ENCODE));
    answer("kv putIfAbsent lease ttl 30");
    check_goes_on();
}
END_TEST

START_TEST(a_rivals_lease_stops_the_write)
{
    begin_at_intent();
    rig_lease_row("other", "theirs");
    answer(INTENT_BATCH);
    answer("kv get lease intent");
    check_lost();
}
END_TEST

START_TEST(a_pointer_that_a_rival_moved_stops_the_write_though_its_lease_is_over)
{
    begin_at_intent();
    remove_lease();
    rig_intent(1, T0, T0 + SECOND);
    answer(INTENT_BATCH);
    answer("kv get lease intent");
    ck_assert_int_eq(rig_state(), QUEUE_LOST);
    ck_assert_uint_eq(rig.host.precondition_lost, 1);
    rig_end();
}
END_TEST

START_TEST(a_write_that_was_never_sent_is_not_judged)
{
    rig_begin();
    rig_committed(0, T0);
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    rig_run();
    to_the_refresh();
    call_lose(world_call(&rig.w, "kv put lease@14 ttl 30"));
    world_run(&rig.w, 50, KV);
    rig.w.safe_time = T0 + 15 * SECOND;
    world_run(&rig.w, 4000, KV); /* the intent comes up while the lease alone is asked for */
    answer("kv get lease");
    answer("kv put lease@21 ttl 30 required, put intent@0 required");
    world_mark(&rig.w);
    check_goes_on();
}
END_TEST

START_TEST(a_refused_write_stops_the_queue)
{
    begin_at_intent();
    call_fail(world_call(&rig.w, INTENT_BATCH), QS_ERROR_REFUSED, 413);
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    answer("kv delete lease@14");
    world_run(&rig.w, 70000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 1);
    rig_end();
}
END_TEST

START_TEST(one_write_of_a_queue_at_a_time)
{
    begin_at_intent();
    world_run(&rig.w, 15000, KV); /* a refresh is due meanwhile */
    ck_assert_uint_eq(world_open_calls(&rig.w), 1);
    answer(INTENT_BATCH);
    world_run(&rig.w, 5000, KV | KIND(CALL_PUT));
    ck_assert(!world_has_call(&rig.w, "kv*")); /* the batch was a refresh */
    rig_end();
}
END_TEST

START_TEST(a_write_waits_for_the_refresh_under_way)
{
    rig_begin();
    rig_committed(0, T0);
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    rig_run();
    to_the_refresh();
    rig.w.safe_time = T0 + 15 * SECOND;
    world_run(&rig.w, 4000, KV);
    ck_assert_uint_eq(world_open_calls(&rig.w), 1);
    answer("kv put lease@14 ttl 30");
    answer("kv put lease@21 ttl 30 required, put intent@0 required");
    rig_end();
}
END_TEST

/* ---- giving it back ---- */

START_TEST(a_clean_stop_gives_the_lease_back)
{
    begin_running();
    queue_drain(rig.queue);
    ck_assert_int_eq(rig.drained, 0);
    answer("kv delete lease@7");
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(rig_state(), QUEUE_DRAINED);
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
    ck_assert_int_eq(world_next_timer(&rig.w), -1);
    queue_drain(rig.queue);
    ck_assert_int_eq(rig.drained, 1);
    rig_end();
}
END_TEST

START_TEST(giving_back_is_tried_once)
{
    begin_running();
    queue_drain(rig.queue);
    call_fail(world_call(&rig.w, "kv delete*"), QS_ERROR_TRANSPORT, 0);
    ck_assert_int_eq(rig.drained, 1);
    rig_end();
}
END_TEST

START_TEST(a_stop_during_a_refresh_gives_the_lease_back)
{
    begin_running();
    world_run(&rig.w, 9900, KV); /* the refresh waits for company */
    world_run(&rig.w, 100, KV);
    queue_drain(rig.queue);
    world_settle(&rig.w, KV);
    answer("kv delete lease@7");
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
    rig_end();
}
END_TEST

START_TEST(a_stop_while_the_claim_is_under_way_waits_for_it)
{
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KV);
    queue_drain(rig.queue);
    ck_assert_int_eq(rig.drained, 0);
    answer("kv putIfAbsent lease ttl 30");
    answer("kv delete lease@7");
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
    ck_assert_int_eq(rig_state(), QUEUE_DRAINED);
    rig_end();
    rig_begin();
    rig_lease_row("other", "theirs");
    rig_start();
    world_run(&rig.w, 250, KV);
    queue_drain(rig.queue);
    answer("kv putIfAbsent lease ttl 30"); /* loses: nothing is to be given back */
    ck_assert_int_eq(rig.drained, 1);
    rig_end();
}
END_TEST

START_TEST(a_stop_before_the_claim_has_left_ends_at_once)
{
    rig_begin();
    rig_start();
    queue_drain(rig.queue);
    ck_assert_int_eq(rig.drained, 1);
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_uint_eq(world_count(&rig.w, "*"), 0);
    ck_assert_int_eq(rig_state(), QUEUE_DRAINED);
    rig_end();
}
END_TEST

START_TEST(a_stop_after_a_lost_answer_looks_for_the_row_first)
{
    begin_running();
    to_the_refresh();
    call_lose(world_call(&rig.w, "kv put lease*"));
    queue_drain(rig.queue);
    answer("kv get lease");
    answer("kv delete lease@14");
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
    rig_end();
}
END_TEST

START_TEST(a_stop_of_a_queue_that_stands_by_or_is_stopped_ends_at_once)
{
    rig_begin();
    rig_lease_row("other", "theirs");
    rig_run();
    queue_drain(rig.queue);
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(world_next_timer(&rig.w), -1);
    rig_end();
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KV);
    call_fail(world_call(&rig.w, "kv*"), QS_ERROR_FORBIDDEN, 403);
    queue_drain(rig.queue);
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(world_next_timer(&rig.w), -1);
    rig_end();
}
END_TEST

START_TEST(a_stop_while_a_failed_queue_gives_its_lease_back_waits_for_that)
{
    begin_running();
    to_the_refresh();
    call_fail(world_call(&rig.w, "kv put lease*"), QS_ERROR_REFUSED, 400);
    queue_drain(rig.queue);
    ck_assert_int_eq(rig.drained, 0);
    answer("kv delete lease@7");
    ck_assert_int_eq(rig.drained, 1);
    ck_assert_int_eq(world_next_timer(&rig.w), -1);
    rig_end();
}
END_TEST

static void add_claims(Suite *all)
{
    TCase *cases = tcase_create("claims");
    tcase_add_test(cases, claims_with_put_if_absent);
    tcase_add_test(cases, a_loser_stands_by_and_tries_again_after_the_ttl);
    tcase_add_test(cases, takes_over_the_row_of_the_worker_it_replaces);
    tcase_add_test(cases, without_a_predecessor_the_same_row_is_a_rivals);
    tcase_add_test(cases, a_predecessors_row_may_expire_while_it_is_taken_over);
    tcase_add_test(cases, a_predecessors_row_may_be_taken_by_a_rival);
    tcase_add_test(cases, a_claim_that_loses_to_our_own_row_has_won);
    tcase_add_test(cases, a_claim_waits_as_long_as_it_was_told);
    tcase_add_test(cases, a_refused_claim_stops_the_queue_for_a_minute);
    suite_add_tcase(all, cases);
}

static void add_refreshes(Suite *all)
{
    TCase *cases = tcase_create("refreshes");
    tcase_add_test(cases, refreshes_every_third_of_the_ttl);
    tcase_add_test(cases, a_short_ttl_has_short_timeouts);
    tcase_add_test(cases, after_a_refresh_without_an_answer_the_row_is_read_back_first);
    tcase_add_test(cases, a_refresh_that_did_not_arrive_is_sent_again);
    tcase_add_test(cases, reading_back_is_tried_again_with_the_backoff_of_kv);
    tcase_add_test(cases, a_refused_reading_back_stops_the_queue);
    tcase_add_test(cases, an_expired_lease_without_a_rival_is_written_anew);
    tcase_add_test(cases, read_back_as_expired_it_is_written_anew);
    tcase_add_test(cases, a_refresh_that_loses_to_a_rival_loses_the_queue);
    tcase_add_test(cases, a_rival_found_on_reading_back_has_the_queue);
    tcase_add_test(cases, a_refused_refresh_stops_the_queue_and_gives_the_lease_back);
    suite_add_tcase(all, cases);
}

static void add_writes(Suite *all)
{
    TCase *cases = tcase_create("guarded writes");
    tcase_add_test(cases, a_write_that_landed_without_an_answer_is_found_by_reading_back);
    tcase_add_test(cases, a_write_that_did_not_land_is_sent_again);
    tcase_add_test(cases, a_lost_write_asks_for_a_fresh_lease_since_its_age_is_not_known);
    tcase_add_test(cases, a_precondition_from_our_own_earlier_attempt_is_no_loss);
    tcase_add_test(cases, a_bare_precondition_is_read_back_too);
    tcase_add_test(cases, on_an_expired_lease_the_same_batch_claims_anew_and_keeps_its_buffers);
    tcase_add_test(cases, a_write_may_have_landed_before_the_lease_ran_out);
    tcase_add_test(cases, a_rivals_lease_stops_the_write);
    tcase_add_test(cases, a_pointer_that_a_rival_moved_stops_the_write_though_its_lease_is_over);
    tcase_add_test(cases, a_write_that_was_never_sent_is_not_judged);
    tcase_add_test(cases, a_refused_write_stops_the_queue);
    tcase_add_test(cases, one_write_of_a_queue_at_a_time);
    tcase_add_test(cases, a_write_waits_for_the_refresh_under_way);
    suite_add_tcase(all, cases);
}

static void add_releases(Suite *all)
{
    TCase *cases = tcase_create("giving back");
    tcase_add_test(cases, a_clean_stop_gives_the_lease_back);
    tcase_add_test(cases, giving_back_is_tried_once);
    tcase_add_test(cases, a_stop_during_a_refresh_gives_the_lease_back);
    tcase_add_test(cases, a_stop_while_the_claim_is_under_way_waits_for_it);
    tcase_add_test(cases, a_stop_before_the_claim_has_left_ends_at_once);
    tcase_add_test(cases, a_stop_after_a_lost_answer_looks_for_the_row_first);
    tcase_add_test(cases, a_stop_of_a_queue_that_stands_by_or_is_stopped_ends_at_once);
    tcase_add_test(cases, a_stop_while_a_failed_queue_gives_its_lease_back_waits_for_that);
    suite_add_tcase(all, cases);
}

int main(void)
{
    Suite *all = suite_create("queue_lease");
    add_claims(all);
    add_refreshes(all);
    add_writes(all);
    add_releases(all);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
