/*
 * A rolling restart: every cell, and whole rounds.
 */
#include "supervisor/roll.h"

#include <check.h>
#include <stdlib.h>

/* Written down a second time, in words short enough to be read as a table; the two have to agree. */
#define IDL ROLL_IDLE
#define REA ROLL_READING
#define TUR ROLL_TURNING
#define REP ROLL_REPEATED
#define OVE ROLL_OVER

static const enum roll_state expected_state[ROLL_STATE_COUNT][ROLL_EVENT_COUNT] = {
    /*         ASKED READ REFUSED UP FAILED STOP; a worker follows the one whose turn it is */
    /* IDL */ {REA, IDL, IDL, IDL, IDL, OVE},
    /* REA */ {REA, TUR, IDL, REA, REA, OVE},
    /* TUR */ {REP, TUR, TUR, TUR, IDL, OVE},
    /* REP */ {REP, REP, REP, REP, REA, OVE},
    /* OVE */ {OVE, OVE, OVE, OVE, OVE, OVE},
};

#define SET ROLL_READ_SETTINGS
#define BEG ROLL_BEGIN_TURN
#define LAT ROLL_TELL_LATER
#define DON ROLL_TELL_DONE
#define BRO ROLL_TELL_BROKEN

static const unsigned expected_actions[ROLL_STATE_COUNT][ROLL_EVENT_COUNT] = {
    /* IDL */ {SET, 0, 0, 0, 0, 0},
    /* REA */ {0, BEG, 0, 0, 0, 0},
    /* TUR */ {LAT, 0, 0, BEG, BRO, 0},
    /* REP */ {0, 0, 0, BEG, BRO | SET, 0},
    /* OVE */ {0, 0, 0, 0, 0, 0},
};

START_TEST(every_cell)
{
    for (int state = 0; state < ROLL_STATE_COUNT; state++) {
        for (int event = 0; event < ROLL_EVENT_COUNT; event++) {
            struct roll roll = {(enum roll_state)state, 0, 2};
            unsigned actions = roll_take(&roll, (enum roll_event)event);

            ck_assert_msg(roll.state == expected_state[state][event], "state %d, event %d: %d", state, event,
                          (int)roll.state);
            ck_assert_msg(actions == expected_actions[state][event], "state %d, event %d: actions %u", state, event,
                          actions);
        }
    }
}
END_TEST

START_TEST(each_worker_has_one_turn_in_order)
{
    struct roll roll = {.count = 3};

    ck_assert_uint_eq(roll_take(&roll, ROLL_ASKED), SET);
    ck_assert_uint_eq(roll_take(&roll, ROLL_READ), BEG);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(roll.place, i);
        ck_assert_uint_eq(roll_take(&roll, ROLL_UP), i < 2 ? BEG : DON);
    }
    ck_assert_int_eq(roll.state, IDL);
}
END_TEST

START_TEST(asked_meanwhile_one_more_round_follows_and_only_one)
{
    struct roll roll = {.count = 2};

    (void)roll_take(&roll, ROLL_ASKED);
    (void)roll_take(&roll, ROLL_READ);
    ck_assert_uint_eq(roll_take(&roll, ROLL_ASKED), LAT);
    ck_assert_uint_eq(roll_take(&roll, ROLL_ASKED), 0);
    ck_assert_uint_eq(roll_take(&roll, ROLL_UP), BEG);
    ck_assert_uint_eq(roll_take(&roll, ROLL_UP), DON | SET);
    ck_assert_uint_eq(roll_take(&roll, ROLL_READ), BEG);
    ck_assert_uint_eq(roll.place, 0);
    (void)roll_take(&roll, ROLL_UP);
    ck_assert_uint_eq(roll_take(&roll, ROLL_UP), DON);
    ck_assert_int_eq(roll.state, IDL);
}
END_TEST

START_TEST(without_a_worker_a_round_is_done_at_once)
{
    struct roll roll = {.count = 0};

    (void)roll_take(&roll, ROLL_ASKED);
    ck_assert_uint_eq(roll_take(&roll, ROLL_READ), DON);
    ck_assert_int_eq(roll.state, IDL);
}
END_TEST

START_TEST(what_a_workers_state_means_for_its_turn)
{
    static const enum roll_event expected[POOL_STATE_COUNT] = {
        [POOL_STARTING] = ROLL_EVENT_COUNT,
        [POOL_RUNNING] = ROLL_UP,
        [POOL_SILENT] = ROLL_EVENT_COUNT,
        [POOL_BACKOFF] = ROLL_FAILED,
        [POOL_ROLLING] = ROLL_EVENT_COUNT,
        [POOL_STOPPING] = ROLL_EVENT_COUNT,
        [POOL_DOWN] = ROLL_UP,
    };

    for (int state = 0; state < POOL_STATE_COUNT; state++) {
        ck_assert_int_eq(roll_look((enum pool_state)state), expected[state]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roll");
    TCase *tests = tcase_create("rounds");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, every_cell);
    tcase_add_test(tests, each_worker_has_one_turn_in_order);
    tcase_add_test(tests, asked_meanwhile_one_more_round_follows_and_only_one);
    tcase_add_test(tests, without_a_worker_a_round_is_done_at_once);
    tcase_add_test(tests, what_a_workers_state_means_for_its_turn);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
