/*
 * The pool's state machine: every cell, and every deadline, with a clock that the test turns.
 */
#include "supervisor/pool.h"

#include <check.h>
#include <stdlib.h>

#define TTL_MS   30000
#define GRACE_MS 20000

/* Written down a second time, in words short enough to be read as a table; the two have to agree. */
#define STA POOL_STARTING
#define RUN POOL_RUNNING
#define SIL POOL_SILENT
#define BAC POOL_BACKOFF
#define ROL POOL_ROLLING
#define STO POOL_STOPPING
#define DOW POOL_DOWN

static const enum pool_state expected_state[POOL_STATE_COUNT][POOL_EVENT_COUNT] = {
    /*          START REPORT SILENCE HANG HEALTHY RETRY EXIT REFUSE ROLL STOP KILL */
    /* STA */ {STA, RUN, SIL, STA, STA, STA, BAC, DOW, ROL, STO, STO},
    /* RUN */ {RUN, RUN, SIL, RUN, RUN, RUN, BAC, DOW, ROL, STO, STO},
    /* SIL */ {SIL, RUN, SIL, SIL, SIL, SIL, BAC, DOW, ROL, STO, STO},
    /* BAC */ {BAC, BAC, BAC, BAC, BAC, STA, BAC, BAC, STA, DOW, DOW},
    /* ROL */ {ROL, ROL, ROL, ROL, ROL, ROL, STA, STA, ROL, STO, STO},
    /* STO */ {STO, STO, STO, STO, STO, STO, DOW, DOW, STO, STO, STO},
    /* DOW */ {STA, DOW, DOW, DOW, DOW, DOW, DOW, DOW, STA, DOW, DOW},
};

#define FOR POOL_FORK
#define TER POOL_TERMINATE
#define SLA POOL_SLAY
#define GIV POOL_GIVE_UP

static const unsigned expected_actions[POOL_STATE_COUNT][POOL_EVENT_COUNT] = {
    /* STA */ {0, 0, 0, 0, 0, 0, 0, GIV, TER, TER, SLA},
    /* RUN */ {0, 0, 0, 0, 0, 0, 0, GIV, TER, TER, SLA},
    /* SIL */ {0, 0, 0, SLA, 0, 0, 0, GIV, TER, TER, SLA},
    /* BAC */ {0, 0, 0, 0, 0, FOR, 0, 0, FOR, 0, 0},
    /* ROL */ {0, 0, 0, SLA, 0, 0, FOR, FOR, 0, TER, SLA},
    /* STO */ {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SLA},
    /* DOW */ {FOR, 0, 0, 0, 0, 0, 0, 0, FOR, 0, 0},
};

static struct pool_worker worker;
static struct mono_ms now;

static void begin(void)
{
    now.v = 1000000;
    pool_worker_init(&worker);
    pool_worker_set(&worker, TTL_MS, GRACE_MS);
}

static unsigned take(enum pool_event event)
{
    return pool_take(&worker, event, now);
}

/* Turns the clock to the next deadline, which is to be `ms` away and to mean `event`, and takes it. */
static unsigned wait_for(int64_t ms, enum pool_event event)
{
    struct mono_ms deadline = {0};
    enum pool_event due = POOL_EVENT_COUNT;

    ck_assert(pool_deadline(&worker, &deadline));
    ck_assert_int_eq(deadline.v - now.v, ms);
    ck_assert(!pool_due(&worker, (struct mono_ms){deadline.v - 1}, &due));
    now = deadline;
    ck_assert(pool_due(&worker, now, &due));
    ck_assert_int_eq(due, event);
    return take(event);
}

START_TEST(every_cell)
{
    for (int state = 0; state < POOL_STATE_COUNT; state++) {
        for (int event = 0; event < POOL_EVENT_COUNT; event++) {
            unsigned actions;

            begin();
            worker.state = (enum pool_state)state;
            actions = take((enum pool_event)event);
            ck_assert_msg(worker.state == expected_state[state][event], "state %d, event %d: %s", state, event,
                          pool_state_name(worker.state));
            ck_assert_msg(actions == expected_actions[state][event], "state %d, event %d: actions %u", state, event,
                          actions);
            ck_assert_int_eq(pool_is_alive(&worker), worker.state != POOL_BACKOFF && worker.state != POOL_DOWN);
        }
    }
}
END_TEST

START_TEST(a_backoff_doubles_from_one_second_to_thirty)
{
    static const int64_t waits[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};

    ck_assert_uint_eq(take(POOL_START), POOL_FORK);
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        ck_assert_uint_eq(take(POOL_REPORT), 0);
        now.v += 5000;
        ck_assert_uint_eq(take(POOL_EXIT), 0);
        ck_assert_int_eq(worker.backoff_ms, waits[i]);
        ck_assert_uint_eq(worker.restarts, i);
        ck_assert_uint_eq(wait_for(waits[i], POOL_RETRY), POOL_FORK);
        ck_assert_int_eq(worker.state, POOL_STARTING);
    }
    ck_assert_uint_eq(worker.restarts, sizeof waits / sizeof waits[0]);
}
END_TEST

static void run_for(int64_t ms)
{
    int64_t end = now.v + ms;
    enum pool_event event;

    while (now.v < end) {
        now.v += 1000;
        ck_assert_uint_eq(take(POOL_REPORT), 0);
        if (pool_due(&worker, now, &event)) {
            ck_assert_int_eq(event, POOL_HEALTHY);
            ck_assert_uint_eq(take(event), 0);
        }
    }
}

static void die_twice(void)
{
    (void)take(POOL_START);
    (void)take(POOL_EXIT);
    (void)wait_for(1000, POOL_RETRY);
    (void)take(POOL_EXIT);
    (void)wait_for(2000, POOL_RETRY);
    (void)take(POOL_REPORT);
}

START_TEST(an_hour_of_health_forgets_the_backoff)
{
    die_twice();
    run_for(POOL_HEALTHY_MS);
    ck_assert_int_eq(worker.backoff_ms, 0);
    (void)take(POOL_EXIT);
    (void)wait_for(1000, POOL_RETRY);
}
END_TEST

START_TEST(less_than_an_hour_does_not)
{
    die_twice();
    run_for(POOL_HEALTHY_MS - 1000);
    (void)take(POOL_EXIT);
    (void)wait_for(4000, POOL_RETRY);
}
END_TEST

START_TEST(an_hour_broken_by_silence_does_not)
{
    die_twice();
    run_for(POOL_HEALTHY_MS / 2);
    (void)wait_for(POOL_SILENCE_MS, POOL_SILENCE);
    (void)take(POOL_REPORT);
    run_for(POOL_HEALTHY_MS / 2);
    (void)take(POOL_EXIT);
    (void)wait_for(4000, POOL_RETRY);
}
END_TEST

START_TEST(a_worker_that_never_speaks_is_killed)
{
    (void)take(POOL_START);
    ck_assert_uint_eq(wait_for(POOL_SILENCE_MS, POOL_SILENCE), 0);
    ck_assert_int_eq(worker.state, POOL_SILENT);
    ck_assert_uint_eq(wait_for(50000, POOL_HANG), POOL_SLAY);
    ck_assert_uint_eq(wait_for(10000, POOL_HANG), POOL_SLAY);
    (void)take(POOL_EXIT);
    ck_assert_int_eq(worker.state, POOL_BACKOFF);
}
END_TEST

START_TEST(a_long_lease_gives_a_silent_worker_longer)
{
    pool_worker_set(&worker, 600000, GRACE_MS);
    (void)take(POOL_START);
    now.v += 4000;
    (void)take(POOL_REPORT);
    (void)wait_for(POOL_SILENCE_MS, POOL_SILENCE);
    ck_assert_uint_eq(wait_for(1200000 - POOL_SILENCE_MS, POOL_HANG), POOL_SLAY);
}
END_TEST

START_TEST(a_word_ends_the_silence)
{
    (void)take(POOL_START);
    (void)wait_for(POOL_SILENCE_MS, POOL_SILENCE);
    now.v += 30000;
    (void)take(POOL_REPORT);
    ck_assert_int_eq(worker.state, POOL_RUNNING);
    (void)wait_for(POOL_SILENCE_MS, POOL_SILENCE);
    ck_assert_uint_eq(wait_for(POOL_HANG_MS - POOL_SILENCE_MS, POOL_HANG), POOL_SLAY);
}
END_TEST

START_TEST(what_stops_or_is_down_has_no_deadline)
{
    struct mono_ms deadline;
    enum pool_event event;

    ck_assert(!pool_deadline(&worker, &deadline));
    (void)take(POOL_START);
    (void)take(POOL_STOP);
    now.v += 100000000;
    ck_assert(!pool_deadline(&worker, &deadline));
    ck_assert(!pool_due(&worker, now, &event));
}
END_TEST

START_TEST(a_planned_restart_counts_neither_as_one_nor_in_the_backoff)
{
    die_twice();
    ck_assert_uint_eq(take(POOL_ROLL), POOL_TERMINATE);
    now.v += 3000;
    ck_assert_uint_eq(take(POOL_REPORT), 0); /* it drains, and still reports */
    ck_assert_int_eq(worker.state, POOL_ROLLING);
    ck_assert_uint_eq(take(POOL_EXIT), POOL_FORK);
    ck_assert_int_eq(worker.state, POOL_STARTING);
    ck_assert_uint_eq(worker.restarts, 2);
    (void)take(POOL_REPORT);
    (void)take(POOL_EXIT);
    (void)wait_for(4000, POOL_RETRY);
    ck_assert_uint_eq(worker.restarts, 3);
}
END_TEST

START_TEST(a_drain_that_outlasts_the_grace_is_killed)
{
    (void)take(POOL_START);
    (void)take(POOL_REPORT);
    (void)take(POOL_ROLL);
    ck_assert_uint_eq(wait_for(GRACE_MS - 1000, POOL_HANG), POOL_SLAY);
    ck_assert_uint_eq(wait_for(10000, POOL_HANG), POOL_SLAY);
    ck_assert_uint_eq(take(POOL_EXIT), POOL_FORK);
    ck_assert_int_eq(pool_drain_ms(1000), 100);
    ck_assert_int_eq(pool_drain_ms(0), 100);
    ck_assert_int_eq(pool_drain_ms(1101), 101);
}
END_TEST

START_TEST(a_restart_after_a_death_that_is_brought_forward_counts)
{
    (void)take(POOL_START);
    (void)take(POOL_EXIT);
    ck_assert_uint_eq(take(POOL_ROLL), POOL_FORK);
    ck_assert_uint_eq(worker.restarts, 1);
    (void)take(POOL_EXIT);
    (void)wait_for(2000, POOL_RETRY);
}
END_TEST

START_TEST(what_status_calls_it)
{
    static const char *const names[POOL_STATE_COUNT] = {"starting", "running",  "silent", "backoff",
                                                        "stopping", "stopping", "down"};

    for (int state = 0; state < POOL_STATE_COUNT; state++) {
        ck_assert_str_eq(pool_state_name((enum pool_state)state), names[state]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tests = tcase_create("states");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, every_cell);
    tcase_add_test(tests, a_backoff_doubles_from_one_second_to_thirty);
    tcase_add_test(tests, an_hour_of_health_forgets_the_backoff);
    tcase_add_test(tests, less_than_an_hour_does_not);
    tcase_add_test(tests, an_hour_broken_by_silence_does_not);
    tcase_add_test(tests, a_worker_that_never_speaks_is_killed);
    tcase_add_test(tests, a_long_lease_gives_a_silent_worker_longer);
    tcase_add_test(tests, a_word_ends_the_silence);
    tcase_add_test(tests, a_planned_restart_counts_neither_as_one_nor_in_the_backoff);
    tcase_add_test(tests, a_drain_that_outlasts_the_grace_is_killed);
    tcase_add_test(tests, a_restart_after_a_death_that_is_brought_forward_counts);
    tcase_add_test(tests, what_stops_or_is_down_has_no_deadline);
    tcase_add_test(tests, what_status_calls_it);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
