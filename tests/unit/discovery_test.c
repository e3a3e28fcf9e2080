/*
 * Discovery pages of many queues in shared calls.
 */
#include "worker/discovery.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripted_world.h"

enum { SEATS = 600 };

struct seat {
    struct page_request request;
    char name[16];
    int sent;
    int pages;
    int refusals;
    size_t partitions;
    int64_t safe_time;
    int status;
};

static struct scripted_world w;
static struct discovery *discovery;
static struct seat seats[SEATS];

static void sending(void *argument)
{
    ((struct seat *)argument)->sent++;
}

static void page(void *argument, const struct error *error, struct broker_us safe_time, bool degraded,
                 const struct changed_entry *entry)
{
    struct seat *seat = argument;
    (void)degraded;
    ck_assert(!seat->request.in_call && !seat->request.waiting);
    seat->pages += entry != NULL;
    seat->refusals += entry == NULL;
    seat->safe_time = safe_time.v;
    seat->partitions = entry != NULL ? entry->count : 0;
    seat->status = error != NULL ? error->status : 0;
}

static void begin(void)
{
    scripted_world_begin(&w);
    w.safe_time = 5000;
    discovery = discovery_create(&w.world);
    for (int i = 0; i < SEATS; i++) {
        struct seat *seat = &seats[i];
        *seat = (struct seat){.request = {.sending = sending, .page = page, .argument = seat}};
        snprintf(seat->name, sizeof seat->name, "q%d", i);
        seat->request.queue = (struct name){seat->name, strlen(seat->name)};
    }
}

static void end(void)
{
    discovery_destroy(discovery);
    scripted_world_end(&w);
}

static void ask(int i)
{
    discovery_ask(discovery, &seats[i].request);
}

START_TEST(pages_asked_for_in_one_turn_travel_together)
{
    begin();
    world_push(&w, "p1", 10, 5);
    ask(0);
    seats[1].request.has_since = true;
    seats[1].request.since.v = 77;
    ask(1);
    seats[2].request.after = (char[]){"1"};
    ask(2);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    world_settle(&w, EVERYTHING);
    call_answer(world_call(&w, "changed q0, q1 since 77, q2 after 1"));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(seats[i].sent, 1);
        ck_assert_int_eq(seats[i].pages, 1);
        ck_assert_int_eq(seats[i].safe_time, 5000);
    }
    ck_assert_uint_eq(seats[0].partitions, 1);
    ck_assert_uint_eq(seats[1].partitions, 0);
    end();
}
END_TEST

START_TEST(sixty_four_a_call_and_eight_calls_at_once)
{
    begin();
    for (int i = 0; i < SEATS; i++)
        ask(i);
    world_settle(&w, EVERYTHING);
    ck_assert_uint_eq(world_open_calls(&w), 8);
    ck_assert_uint_eq(world_call(&w, "changed*")->count, QUEEN_CHANGED_ENTRIES_MAX);
    call_answer(world_call(&w, "changed*"));
    ck_assert_uint_eq(world_open_calls(&w), 7);
    world_settle(&w, EVERYTHING);
    ck_assert_uint_eq(world_open_calls(&w), 8);
    world_settle(&w, NOTHING);
    for (int i = 0; i < SEATS; i++)
        ck_assert_int_eq(seats[i].pages, 1);
    end();
}
END_TEST

START_TEST(what_passes_is_asked_again_with_one_backoff_for_all)
{
    struct wall_ms at = {0};
    begin();
    ask(0);
    world_settle(&w, EVERYTHING);
    call_fail(world_call(&w, "changed q0"), QS_ERROR_STATUS, 500);
    ck_assert_str_eq(discovery_error(discovery, &at), "changed q0: scripted failure 500");
    ck_assert_int_eq(at.v, w.wall + w.now);
    ask(1); /* waits for the backoff too */
    world_run(&w, 749, EVERYTHING);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    world_run(&w, 1, EVERYTHING);
    call_fail_after(world_call(&w, "changed q0, q1"), QS_ERROR_STATUS, 429, 10000);
    ck_assert_int_eq(world_next_timer(&w), 10000);
    world_run(&w, 10000, NOTHING);
    ck_assert_int_eq(seats[0].pages, 1);
    ck_assert_int_eq(seats[0].sent, 3);
    ck_assert_int_eq(seats[1].pages, 1);
    ck_assert_int_eq(seats[1].sent, 2);
    ck_assert_str_eq(discovery_error(discovery, &at), "");
    end();
}
END_TEST

START_TEST(a_call_that_fails_shortens_no_other_calls_wait)
{
    begin();
    for (int i = 0; i <= QUEEN_CHANGED_ENTRIES_MAX; i++)
        ask(i);
    world_settle(&w, EVERYTHING);
    call_fail_after(world_call(&w, "changed q0*"), QS_ERROR_STATUS, 429, 10000);
    call_fail(world_call(&w, "changed q64"), QS_ERROR_STATUS, 500);
    ck_assert_int_eq(world_next_timer(&w), 10000);
    world_run(&w, 10000, NOTHING);
    ck_assert_int_eq(seats[0].pages, 1);
    ck_assert_int_eq(seats[64].pages, 1);
    end();
}
END_TEST

START_TEST(after_a_success_the_backoff_begins_anew)
{
    begin();
    ask(0);
    for (int64_t delay = 750; delay <= 3000; delay *= 2) {
        world_settle(&w, EVERYTHING);
        call_fail(world_call(&w, "changed*"), QS_ERROR_TRANSPORT, 0);
        ck_assert_int_eq(world_next_timer(&w), delay);
        w.now += delay;
    }
    world_settle(&w, NOTHING);
    ask(0);
    world_settle(&w, EVERYTHING);
    call_fail(world_call(&w, "changed*"), QS_ERROR_TRANSPORT, 0);
    ck_assert_int_eq(world_next_timer(&w), 750);
    end();
}
END_TEST

START_TEST(a_bad_entry_is_found_by_asking_each_alone)
{
    begin();
    for (int i = 0; i < 3; i++)
        ask(i);
    world_settle(&w, EVERYTHING);
    call_fail(world_call(&w, "changed q0, q1, q2"), QS_ERROR_REFUSED, 400);
    ask(3); /* goes in company */
    world_settle(&w, EVERYTHING);
    call_answer(world_call(&w, "changed q0"));
    call_fail(world_call(&w, "changed q1"), QS_ERROR_REFUSED, 400);
    call_answer(world_call(&w, "changed q2"));
    call_answer(world_call(&w, "changed q3"));
    ck_assert_int_eq(seats[0].pages, 1);
    ck_assert_int_eq(seats[1].pages, 0);
    ck_assert_int_eq(seats[1].refusals, 1);
    ck_assert_int_eq(seats[1].status, 400);
    ck_assert_int_eq(seats[2].pages, 1);
    ask(0);
    ask(2);
    world_settle(&w, EVERYTHING);
    call_answer(world_call(&w, "changed q0, q2"));
    end();
}
END_TEST

START_TEST(a_refusal_of_the_caller_is_everybodys)
{
    begin();
    ask(0);
    ask(1);
    world_settle(&w, EVERYTHING);
    call_fail(world_call(&w, "changed q0, q1"), QS_ERROR_FORBIDDEN, 403);
    ck_assert_int_eq(seats[0].refusals, 1);
    ck_assert_int_eq(seats[1].refusals, 1);
    world_run(&w, 60000, EVERYTHING);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    end();
}
END_TEST

START_TEST(withdrawn_it_hears_nothing)
{
    begin();
    for (int i = 0; i < 3; i++)
        ask(i);
    discovery_withdraw(discovery, &seats[0].request);
    world_settle(&w, EVERYTHING);
    struct scripted_call *call = world_call(&w, "changed q1, q2");
    discovery_withdraw(discovery, &seats[2].request);
    call_answer(call);
    ck_assert_int_eq(seats[0].sent, 0);
    ck_assert_int_eq(seats[1].pages, 1);
    ck_assert_int_eq(seats[2].pages, 0);
    end();
}
END_TEST

START_TEST(withdrawn_from_a_call_that_fails_it_is_not_asked_again)
{
    begin();
    ask(0);
    ask(1);
    world_settle(&w, EVERYTHING);
    discovery_withdraw(discovery, &seats[0].request);
    call_fail(world_call(&w, "changed q0, q1"), QS_ERROR_TRANSPORT, 0);
    world_run(&w, 750, EVERYTHING);
    call_answer(world_call(&w, "changed q1"));
    end();
}
END_TEST

static void page_of_a_stopping_queue(void *argument, const struct error *error, struct broker_us safe_time,
                                     bool degraded, const struct changed_entry *entry)
{
    page(argument, error, safe_time, degraded, entry);
    discovery_withdraw(discovery, &seats[0].request);
    discovery_withdraw(discovery, &seats[1].request); /* of the same call, not told yet */
}

START_TEST(a_callback_may_withdraw_others_of_its_call)
{
    begin();
    seats[0].request.page = page_of_a_stopping_queue;
    for (int i = 0; i < 3; i++)
        ask(i);
    world_settle(&w, NOTHING);
    ck_assert_int_eq(seats[0].pages, 1);
    ck_assert_int_eq(seats[1].pages, 0);
    ck_assert_int_eq(seats[2].pages, 1);
    for (int i = 0; i < 3; i++)
        ask(i);
    world_settle(&w, EVERYTHING);
    call_fail(world_call(&w, "changed*"), QS_ERROR_FORBIDDEN, 403);
    ck_assert_int_eq(seats[1].refusals, 0);
    ck_assert_int_eq(seats[2].refusals, 1);
    end();
}
END_TEST

START_TEST(the_newest_safe_time_of_any_answer_is_kept)
{
    struct broker_us safe_time;
    struct mono_ms arrived;
    struct wall_ms wall;
    begin();
    ck_assert(!discovery_safe_time(discovery, &safe_time, &arrived, &wall));
    ask(0);
    world_settle(&w, NOTHING);
    int64_t first = w.now;
    w.now += 5;
    w.safe_time = 4000; /* a node that lags */
    ask(0);
    world_settle(&w, NOTHING);
    ck_assert(discovery_safe_time(discovery, &safe_time, &arrived, &wall));
    ck_assert_int_eq(safe_time.v, 5000);
    ck_assert_int_eq(arrived.v, first);
    ck_assert_int_eq(wall.v, w.wall + first);
    ck_assert_int_eq(seats[0].safe_time, 4000); /* the pass is told its own */
    end();
}
END_TEST

START_TEST(ends_with_pages_waiting_and_under_way)
{
    begin();
    ask(0);
    world_settle(&w, EVERYTHING);
    ask(1);
    discovery_destroy(discovery);
    discovery_destroy(NULL);
    scripted_world_end(&w);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("discovery");
    TCase *cases = tcase_create("discovery");
    tcase_add_test(cases, pages_asked_for_in_one_turn_travel_together);
    tcase_add_test(cases, sixty_four_a_call_and_eight_calls_at_once);
    tcase_add_test(cases, what_passes_is_asked_again_with_one_backoff_for_all);
    tcase_add_test(cases, a_call_that_fails_shortens_no_other_calls_wait);
    tcase_add_test(cases, after_a_success_the_backoff_begins_anew);
    tcase_add_test(cases, a_bad_entry_is_found_by_asking_each_alone);
    tcase_add_test(cases, a_refusal_of_the_caller_is_everybodys);
    tcase_add_test(cases, withdrawn_it_hears_nothing);
    tcase_add_test(cases, withdrawn_from_a_call_that_fails_it_is_not_asked_again);
    tcase_add_test(cases, a_callback_may_withdraw_others_of_its_call);
    tcase_add_test(cases, the_newest_safe_time_of_any_answer_is_kept);
    tcase_add_test(cases, ends_with_pages_waiting_and_under_way);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
