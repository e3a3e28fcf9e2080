/*
 * Lease writes of many queues in one call.
 */
#include "worker/lease_calls.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "scripted_world.h"

enum { SEATS = 300, TIMEOUT = 3000, GATHER = 250 };

struct seat {
    struct lease_request request;
    char key[24];
    int answers;
    bool applied;
    int64_t version;
    struct error error;
};

static struct scripted_world w;
static struct lease_calls *calls;
static struct seat seats[SEATS];

static void done(void *argument, const struct error *error, const struct kv_result *result)
{
    struct seat *seat = argument;
    ck_assert(!seat->request.in_call);
    seat->answers++;
    seat->error = *error;
    ck_assert_int_eq(result != NULL, error->code == QS_OK);
    seat->applied = result != NULL && result->applied;
    seat->version = result != NULL ? result->version : -1;
}

static void begin(void)
{
    scripted_world_begin(&w);
    calls = lease_calls_create(&w.world, TIMEOUT, GATHER);
    for (int i = 0; i < SEATS; i++) {
        seats[i] = (struct seat){.request = {.done = done, .argument = &seats[i]}};
        snprintf(seats[i].key, sizeof seats[i].key, "q%03d", i);
        seats[i].request.operation = (struct kv_operation){
            .kind = KV_PUT_IF_ABSENT, .key = seats[i].key, .value = "{\"i\":1}", .ttl_seconds = 30};
    }
}

static void end(void)
{
    lease_calls_destroy(calls);
    scripted_world_end(&w);
}

static void send(int i)
{
    lease_calls_send(calls, &seats[i].request);
}

START_TEST(requests_wait_for_company_and_travel_together)
{
    begin();
    send(0);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    world_run(&w, GATHER - 1, EVERYTHING);
    send(1);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    world_run(&w, 1, EVERYTHING);
    struct scripted_call *call = world_call(&w, "kv putIfAbsent q001 ttl 30, putIfAbsent q000 ttl 30");
    ck_assert_int_eq(call->timeout_ms, TIMEOUT);
    call_answer(call);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(seats[i].answers, 1);
        ck_assert(seats[i].applied);
    }
    end();
}
END_TEST

START_TEST(with_all_company_there_nothing_waits)
{
    begin();
    lease_calls_flush(calls);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    send(0);
    send(1);
    lease_calls_flush(calls);
    call_answer(world_call(&w, "kv putIfAbsent q001 ttl 30, putIfAbsent q000 ttl 30"));
    ck_assert_int_eq(seats[0].answers + seats[1].answers, 2);
    world_run(&w, 2 * GATHER, EVERYTHING);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    send(0);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    world_run(&w, GATHER, EVERYTHING);
    ck_assert_uint_eq(world_open_calls(&w), 1);
    end();
}
END_TEST

START_TEST(one_that_loses_costs_the_others_nothing)
{
    begin();
    int64_t theirs = world_document(&w, "q001", "{\"i\":2}", 0);
    for (int i = 0; i < 3; i++)
        send(i);
    world_run(&w, GATHER, NOTHING);
    ck_assert(seats[0].applied && seats[2].applied);
    ck_assert(!seats[1].applied);
    ck_assert_int_eq(seats[1].version, theirs);
    end();
}
END_TEST

START_TEST(more_than_a_call_holds_takes_another)
{
    begin();
    for (int i = 0; i < SEATS; i++)
        send(i);
    world_run(&w, GATHER, EVERYTHING);
    ck_assert_uint_eq(world_open_calls(&w), 2);
    ck_assert_uint_eq(world_call(&w, "kv*")->count, QUEEN_KV_OPERATIONS_MAX);
    world_settle(&w, NOTHING);
    for (int i = 0; i < SEATS; i++)
        ck_assert_int_eq(seats[i].answers, 1);
    end();
}
END_TEST

START_TEST(without_an_answer_each_is_told_and_none_is_sent_again)
{
    begin();
    send(0);
    send(1);
    world_run(&w, GATHER, EVERYTHING);
    call_fail(world_call(&w, "kv*"), QS_ERROR_TRANSPORT, 0);
    ck_assert_int_eq(seats[0].error.code, QS_ERROR_TRANSPORT);
    ck_assert_int_eq(seats[1].error.code, QS_ERROR_TRANSPORT);
    world_run(&w, 60000, EVERYTHING);
    ck_assert_uint_eq(world_count(&w, "kv*"), 1);
    end();
}
END_TEST

START_TEST(an_answer_that_can_not_be_is_a_bad_body)
{
    struct kv_answer odd = {.precondition_failed = true, .failed_index = SIZE_MAX};
    begin();
    send(0);
    world_run(&w, GATHER, EVERYTHING);
    call_answer_kv(world_call(&w, "kv*"), &odd);
    ck_assert_int_eq(seats[0].error.code, QS_ERROR_BODY);
    ck_assert(seats[0].error.retriable);
    end();
}
END_TEST

START_TEST(withdrawn_before_or_after_the_call_left_it_hears_nothing)
{
    begin();
    for (int i = 0; i < 3; i++)
        send(i);
    lease_calls_withdraw(calls, &seats[1].request);
    world_run(&w, GATHER, EVERYTHING);
    struct scripted_call *call = world_call(&w, "kv putIfAbsent q002 ttl 30, putIfAbsent q000 ttl 30");
    lease_calls_withdraw(calls, &seats[2].request);
    lease_calls_withdraw(calls, &seats[2].request);
    call_answer(call);
    ck_assert_int_eq(seats[0].answers, 1);
    ck_assert_int_eq(seats[1].answers, 0);
    ck_assert_int_eq(seats[2].answers, 0);
    end();
}
END_TEST

START_TEST(withdrawn_it_can_be_sent_again_while_the_first_is_under_way)
{
    begin();
    send(0);
    world_run(&w, GATHER, EVERYTHING);
    lease_calls_withdraw(calls, &seats[0].request);
    send(0);
    world_run(&w, GATHER, EVERYTHING);
    ck_assert_uint_eq(world_open_calls(&w), 2);
    call_answer(world_call(&w, "kv*"));
    ck_assert_int_eq(seats[0].answers, 0);
    call_answer(world_call(&w, "kv*"));
    ck_assert_int_eq(seats[0].answers, 1);
    ck_assert(!seats[0].applied);
    end();
}
END_TEST

static void send_another(void *argument, const struct error *error, const struct kv_result *result)
{
    done(argument, error, result);
    send(5);
    lease_calls_withdraw(calls, &seats[0].request); /* in the same call, not told yet */
}

START_TEST(a_callback_may_send_and_withdraw)
{
    begin();
    seats[1].request.done = send_another;
    send(0);
    send(1); /* the last sent goes first */
    world_run(&w, GATHER, NOTHING);
    ck_assert_int_eq(seats[1].answers, 1);
    ck_assert_int_eq(seats[0].answers, 0);
    world_run(&w, GATHER, NOTHING);
    ck_assert_int_eq(seats[5].answers, 1);
    end();
}
END_TEST

START_TEST(ends_with_requests_waiting_and_under_way)
{
    begin();
    send(0);
    world_run(&w, GATHER, EVERYTHING);
    send(1);
    lease_calls_destroy(calls);
    lease_calls_destroy(NULL);
    ck_assert_int_eq(seats[0].answers + seats[1].answers, 0);
    scripted_world_end(&w);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("lease_calls");
    TCase *cases = tcase_create("lease_calls");
    tcase_add_test(cases, requests_wait_for_company_and_travel_together);
    tcase_add_test(cases, with_all_company_there_nothing_waits);
    tcase_add_test(cases, one_that_loses_costs_the_others_nothing);
    tcase_add_test(cases, more_than_a_call_holds_takes_another);
    tcase_add_test(cases, without_an_answer_each_is_told_and_none_is_sent_again);
    tcase_add_test(cases, an_answer_that_can_not_be_is_a_bad_body);
    tcase_add_test(cases, withdrawn_before_or_after_the_call_left_it_hears_nothing);
    tcase_add_test(cases, withdrawn_it_can_be_sent_again_while_the_first_is_under_way);
    tcase_add_test(cases, a_callback_may_send_and_withdraw);
    tcase_add_test(cases, ends_with_requests_waiting_and_under_way);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
