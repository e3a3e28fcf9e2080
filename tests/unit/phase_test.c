/*
 * The pool's life as a state machine: every cell, and every deadline, with a clock that the test turns.
 */
#include "supervisor/phase.h"

#include <check.h>
#include <stdlib.h>

#define DRAIN_MS 19000
#define CODE     7 /* of every event that is told with one, and of those that should not be listened to */

/* Written down a second time, in words short enough to be read as a table; the two have to agree. */
#define PRO PHASE_PROBING
#define RUN PHASE_RUNNING
#define DRA PHASE_DRAINING
#define KIL PHASE_KILLING
#define END PHASE_ENDED

static const enum phase_state expected_state[PHASE_STATE_COUNT][PHASE_EVENT_COUNT] = {
    /*          PASSED FAILED REFUSE STOP INSIST LATE GONE */
    /* PRO */ {RUN, END, DRA, DRA, KIL, PRO, PRO},
    /* RUN */ {RUN, RUN, DRA, DRA, KIL, RUN, RUN},
    /* DRA */ {DRA, DRA, DRA, DRA, KIL, KIL, END},
    /* KIL */ {KIL, KIL, KIL, KIL, KIL, END, END},
    /* END */ {END, END, END, END, END, END, END},
};

#define ASS PHASE_ASSIGN
#define BEG PHASE_BEGIN
#define FAI PHASE_TELL_FAIL
#define MIS PHASE_TELL_MISS
#define TER PHASE_DRAIN
#define LAT PHASE_TELL_LATE
#define SLA PHASE_KILL
#define LEF PHASE_TELL_LEFT

static const unsigned expected_actions[PHASE_STATE_COUNT][PHASE_EVENT_COUNT] = {
    /* PRO */ {ASS | BEG, FAI, TER, TER, SLA, 0, 0},
    /* RUN */ {ASS, MIS, TER, TER, SLA, 0, 0},
    /* DRA */ {0, 0, 0, 0, SLA, LAT | SLA, LEF},
    /* KIL */ {0, 0, 0, 0, SLA, LEF, LEF},
    /* END */ {0, 0, 0, 0, 0, 0, 0},
};

/* Whether the event's exit code is the process's. */
static const bool expected_code[PHASE_STATE_COUNT][PHASE_EVENT_COUNT] = {
    /* PRO */ {0, 1, 1, 0, 1, 0, 0},
    /* RUN */ {0, 0, 1, 0, 1, 0, 0},
    /* DRA */ {0, 0, 0, 0, 1, 0, 0},
    /* KIL */ {0, 0, 0, 0, 1, 0, 0},
    /* END */ {0, 0, 0, 0, 0, 0, 0},
};

static struct phase phase;
static struct mono_ms now;

static void begin(void)
{
    now.v = 1000000;
    phase = (struct phase){.drain_ms = DRAIN_MS};
}

static unsigned take(enum phase_event event, int code)
{
    return phase_take(&phase, event, code, now);
}

/* Turns the clock to the deadline, which is to be `ms` away, and takes it. */
static unsigned wait_for(int64_t ms)
{
    struct mono_ms deadline = {0};

    ck_assert(phase_deadline(&phase, &deadline));
    ck_assert_int_eq(deadline.v - now.v, ms);
    ck_assert(!phase_is_late(&phase, (struct mono_ms){deadline.v - 1}));
    now = deadline;
    ck_assert(phase_is_late(&phase, now));
    return take(PHASE_LATE, 0);
}

START_TEST(every_cell)
{
    for (int state = 0; state < PHASE_STATE_COUNT; state++) {
        for (int event = 0; event < PHASE_EVENT_COUNT; event++) {
            unsigned actions;

            begin();
            phase.state = (enum phase_state)state;
            actions = take((enum phase_event)event, CODE);
            ck_assert_msg(phase.state == expected_state[state][event], "state %d, event %d: now %d", state, event,
                          (int)phase.state);
            ck_assert_msg(actions == expected_actions[state][event], "state %d, event %d: actions %u", state, event,
                          actions);
            ck_assert_msg(phase.exit_code == (expected_code[state][event] ? CODE : 0), "state %d, event %d: code %d",
                          state, event, phase.exit_code);
        }
    }
}
END_TEST

START_TEST(a_drain_has_its_time_then_sigkill_has_its_own)
{
    (void)take(PHASE_PASSED, 0);
    (void)take(PHASE_STOP, 0);
    now.v += 1000; /* what comes meanwhile doesn't prolong it */
    (void)take(PHASE_STOP, 0);
    (void)take(PHASE_REFUSE, 2);
    ck_assert_uint_eq(wait_for(DRAIN_MS - 1000), PHASE_TELL_LATE | PHASE_KILL);
    now.v += 100;
    (void)take(PHASE_INSIST, 143);
    ck_assert_uint_eq(wait_for(PHASE_REAP_MS - 100), PHASE_TELL_LEFT);
    ck_assert_int_eq(phase.state, PHASE_ENDED);
    ck_assert_int_eq(phase.exit_code, 143);
}
END_TEST

START_TEST(a_refusal_stays_the_reason_when_a_stop_follows)
{
    (void)take(PHASE_PASSED, 0);
    (void)take(PHASE_REFUSE, 2);
    (void)take(PHASE_STOP, 0);
    (void)take(PHASE_GONE, 0);
    ck_assert_int_eq(phase.state, PHASE_ENDED);
    ck_assert_int_eq(phase.exit_code, 2);
}
END_TEST

START_TEST(only_a_stop_has_a_deadline)
{
    static const bool has[PHASE_STATE_COUNT] = {[PHASE_DRAINING] = true, [PHASE_KILLING] = true};
    struct mono_ms deadline;

    now.v += 100000000;
    for (int state = 0; state < PHASE_STATE_COUNT; state++) {
        phase.state = (enum phase_state)state;
        ck_assert_int_eq(phase_deadline(&phase, &deadline), has[state]);
        ck_assert_int_eq(phase_is_late(&phase, now), has[state]);
    }
}
END_TEST

START_TEST(what_status_calls_it)
{
    ck_assert_str_eq(phase_name(PHASE_PROBING), "starting");
    ck_assert_str_eq(phase_name(PHASE_RUNNING), "running");
    ck_assert_str_eq(phase_name(PHASE_DRAINING), "stopping");
    ck_assert_str_eq(phase_name(PHASE_KILLING), "stopping");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("phase");
    TCase *tests = tcase_create("states");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, every_cell);
    tcase_add_test(tests, a_drain_has_its_time_then_sigkill_has_its_own);
    tcase_add_test(tests, a_refusal_stays_the_reason_when_a_stop_follows);
    tcase_add_test(tests, only_a_stop_has_a_deadline);
    tcase_add_test(tests, what_status_calls_it);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
