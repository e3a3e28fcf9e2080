/*
 * Timers: what fires, in which order, and what callbacks may do meanwhile.
 */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/timers.h"
#include "tests/unit/json_cases.h"

enum { TIMERS = 500 };

static struct timers timers;
static struct timer all_timers[TIMERS];
static int fired[TIMERS];
static int64_t now;
static int64_t last_fired;
static int fired_count;

static void note(void *argument)
{
    struct timer *timer = argument;
    ck_assert(!timer_is_set(timer));
    ck_assert_int_le(timer->deadline.v, now);
    ck_assert_int_ge(timer->deadline.v, last_fired);
    last_fired = timer->deadline.v;
    fired[timer - all_timers]++;
    fired_count++;
}

static void run(int64_t time)
{
    now = time;
    last_fired = INT64_MIN;
    fired_count = 0;
    memset(fired, 0, sizeof fired);
    timers_run(&timers, (struct mono_ms){time});
}

static void start(void)
{
    memset(all_timers, 0, sizeof all_timers);
    timers_init(&timers);
}

START_TEST(fires_what_is_due_in_order)
{
    struct mono_ms next;
    start();
    ck_assert(!timers_next(&timers, &next));
    for (int i = 0; i < TIMERS; i++) {
        timer_set(&timers, &all_timers[i], (struct mono_ms){i * 7919 % TIMERS}, note, &all_timers[i]);
    }
    ck_assert(timers_next(&timers, &next));
    ck_assert_int_eq(next.v, 0);
    run(99);
    ck_assert_int_eq(fired_count, 100);
    ck_assert(timers_next(&timers, &next));
    ck_assert_int_eq(next.v, 100);
    run(99);
    ck_assert_int_eq(fired_count, 0);
    run(TIMERS);
    ck_assert_int_eq(fired_count, TIMERS - 100);
    ck_assert(!timers_next(&timers, &next));
    timers_free(&timers);
}
END_TEST

/* Random setting, moving and cancelling, against an array. */
START_TEST(keeps_its_heap_in_order)
{
    int64_t deadlines[TIMERS];
    struct random random = {3};
    start();
    for (int i = 0; i < TIMERS; i++) {
        deadlines[i] = -1;
    }
    for (int step = 0; step < 20000; step++) {
        size_t i = random_below(&random, TIMERS);
        if (random_below(&random, 3) == 0) {
            timer_cancel(&timers, &all_timers[i]);
            deadlines[i] = -1;
        } else {
            deadlines[i] = now + (int64_t)random_below(&random, 1000);
            timer_set(&timers, &all_timers[i], (struct mono_ms){deadlines[i]}, note, &all_timers[i]);
        }
        if (step % 50 == 0) {
            run(now + (int64_t)random_below(&random, 200));
            for (size_t j = 0; j < TIMERS; j++) {
                bool due = deadlines[j] >= 0 && deadlines[j] <= now;
                deadlines[j] = due ? -1 : deadlines[j];
                if (fired[j] != due || timer_is_set(&all_timers[j]) != (deadlines[j] >= 0)) {
                    ck_abort_msg("timer %zu after step %d", j, step);
                }
            }
        }
    }
    timers_free(&timers);
}
END_TEST

static void set_again(void *argument)
{
    note(argument);
    timer_set(&timers, argument, (struct mono_ms){now - 1}, set_again, argument);
    /* one that waits is cancelled, one that waits is moved, and the round goes on without either */
    timer_set(&timers, &all_timers[10], (struct mono_ms){now}, note, &all_timers[10]);
    timer_set(&timers, &all_timers[11], (struct mono_ms){now}, note, &all_timers[11]);
    timer_set(&timers, &all_timers[11], (struct mono_ms){now + 5}, note, &all_timers[11]);
    timer_cancel(&timers, &all_timers[10]);
    struct mono_ms next;
    ck_assert(timers_next(&timers, &next));
    ck_assert_int_eq(next.v, now - 1);
    timers_run(&timers, (struct mono_ms){now + 100});
}

START_TEST(leaves_what_callbacks_set_to_the_next_round)
{
    start();
    timer_set(&timers, &all_timers[0], (struct mono_ms){1}, set_again, &all_timers[0]);
    for (int i = 1; i < 5; i++) {
        timer_set(&timers, &all_timers[i], (struct mono_ms){1 + i}, note, &all_timers[i]);
    }
    run(3);
    ck_assert_int_eq(fired_count, 3);
    ck_assert_int_eq(fired[0], 1);
    ck_assert(timer_is_set(&all_timers[0]));
    ck_assert(!timer_is_set(&all_timers[10]));
    ck_assert(timer_is_set(&all_timers[11]));
    run(3);
    ck_assert_int_eq(fired_count, 1);
    timer_cancel(&timers, &all_timers[0]);
    run(8);
    ck_assert_int_eq(fired_count, 3);
    ck_assert_int_eq(fired[11], 1);
    timers_free(&timers);
}
END_TEST

static void cancel_others(void *argument)
{
    note(argument);
    for (int i = 0; i < 6; i++) {
        timer_cancel(&timers, &all_timers[i]);
    }
}

START_TEST(does_not_fire_what_a_callback_cancelled)
{
    start();
    for (int i = 0; i < 6; i++) {
        timer_set(&timers, &all_timers[i], (struct mono_ms){5}, cancel_others, &all_timers[i]);
    }
    timer_set(&timers, &all_timers[6], (struct mono_ms){6}, note, &all_timers[6]);
    timer_cancel(&timers, &all_timers[7]);
    run(10);
    ck_assert_int_eq(fired_count, 2);
    ck_assert_int_eq(fired[6], 1);
    timers_free(&timers);
}
END_TEST

static void free_itself(void *argument)
{
    free(argument);
    fired_count++;
}

START_TEST(lets_a_callback_free_its_timer)
{
    struct timer *timer = calloc(1, sizeof *timer);
    ck_assert_ptr_nonnull(timer);
    start();
    timer_set(&timers, timer, (struct mono_ms){5}, free_itself, timer);
    run(5);
    ck_assert_int_eq(fired_count, 1);
    timers_free(&timers);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("timers");
    TCase *cases = tcase_create("timers");
    tcase_add_test(cases, fires_what_is_due_in_order);
    tcase_add_test(cases, keeps_its_heap_in_order);
    tcase_add_test(cases, leaves_what_callbacks_set_to_the_next_round);
    tcase_add_test(cases, does_not_fire_what_a_callback_cancelled);
    tcase_add_test(cases, lets_a_callback_free_its_timer);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
