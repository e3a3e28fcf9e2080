/* supervisor/stop_signals.h */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/signal_table.h"
#include "supervisor/stop_signals.h"

#define PARENT ((pid_t)10)
#define OTHER  ((pid_t)20)
#define KERNEL ((pid_t)0)

static const struct order {
    pid_t senders[3];
    enum stop_meaning meanings[3];
} orders[] = {
    {{PARENT, PARENT, PARENT}, {STOP_FIRST, STOP_SECOND, STOP_SECOND}},
    {{OTHER, OTHER, OTHER}, {STOP_FIRST, STOP_SECOND, STOP_SECOND}},
    {{OTHER, KERNEL, OTHER}, {STOP_FIRST, STOP_SECOND, STOP_SECOND}},
    {{OTHER, PARENT, PARENT}, {STOP_FIRST, STOP_ECHO, STOP_SECOND}},
    {{PARENT, OTHER, PARENT}, {STOP_FIRST, STOP_ECHO, STOP_SECOND}},
    {{PARENT, OTHER, KERNEL}, {STOP_FIRST, STOP_ECHO, STOP_SECOND}},
    {{KERNEL, PARENT, OTHER}, {STOP_FIRST, STOP_ECHO, STOP_SECOND}},
};

/* What was told of a side before, and how long ago. */
enum side { NEVER, NOW, JUST_NOW, LONG_AGO, SIDE_COUNT };

static const int64_t ages[SIDE_COUNT] = {[JUST_NOW] = STOP_AGAIN_MS - 1, [LONG_AGO] = STOP_AGAIN_MS};

/* By the sender's own side, and the other one. */
static const enum stop_meaning cells[SIDE_COUNT][SIDE_COUNT] = {
    [NEVER] = {STOP_FIRST, STOP_ECHO, STOP_ECHO, STOP_ECHO},
    [NOW] = {STOP_ECHO, STOP_ECHO, STOP_ECHO, STOP_ECHO},
    [JUST_NOW] = {STOP_ECHO, STOP_ECHO, STOP_ECHO, STOP_ECHO},
    [LONG_AGO] = {STOP_SECOND, STOP_SECOND, STOP_SECOND, STOP_SECOND},
};

START_TEST(a_stop_that_the_parent_passes_on_is_one_stop)
{
    const struct order *order = &orders[_i];
    struct stop_signals signals = {0};

    for (size_t i = 0; i < 3; i++) {
        struct mono_ms now = {1000000 + (int64_t)i * STOP_AGAIN_MS};

        ck_assert_int_eq(stop_signals_take(&signals, order->senders[i], PARENT, now), order->meanings[i]);
    }
}
END_TEST

static struct stop_side side_of(enum side side, struct mono_ms now)
{
    struct stop_side none = {0};
    struct stop_side told = {true, {now.v - ages[side]}};

    return side == NEVER ? none : told;
}

START_TEST(every_cell)
{
    struct mono_ms now = {1000000};
    enum side own = (enum side)(_i / SIDE_COUNT);
    enum side other = (enum side)(_i % SIDE_COUNT);
    struct stop_signals of_parent = {.parent = side_of(own, now), .others = side_of(other, now)};
    struct stop_signals of_others = {.parent = side_of(other, now), .others = side_of(own, now)};

    ck_assert_int_eq(stop_signals_take(&of_parent, PARENT, PARENT, now), cells[own][other]);
    ck_assert_int_eq(stop_signals_take(&of_others, OTHER, PARENT, now), cells[own][other]);
}
END_TEST

/* However many there were meanwhile. */
START_TEST(the_first_one_is_what_time_counts_from)
{
    struct stop_signals signals = {0};
    struct mono_ms now = {1000000};

    ck_assert_int_eq(stop_signals_take(&signals, OTHER, PARENT, now), STOP_FIRST);
    for (int i = 1; i < STOP_AGAIN_MS; i++) {
        now.v++;
        ck_assert_int_eq(stop_signals_take(&signals, OTHER, PARENT, now), STOP_ECHO);
    }
    now.v++;
    ck_assert_int_eq(stop_signals_take(&signals, OTHER, PARENT, now), STOP_SECOND);
}
END_TEST

START_TEST(the_manual_names_the_time)
{
    char time[32];

    (void)snprintf(time, sizeof time, " %d ms ", STOP_AGAIN_MS);
    ck_assert_ptr_nonnull(strstr(signal_table_find(SIGTERM)->effect, time));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stop_signals");
    TCase *tests = tcase_create("stop_signals");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(tests, a_stop_that_the_parent_passes_on_is_one_stop, 0,
                        (int)(sizeof orders / sizeof orders[0]));
    tcase_add_loop_test(tests, every_cell, 0, SIDE_COUNT * SIDE_COUNT);
    tcase_add_test(tests, the_first_one_is_what_time_counts_from);
    tcase_add_test(tests, the_manual_names_the_time);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
