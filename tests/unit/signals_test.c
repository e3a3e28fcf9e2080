/*
 * The signals of the table as this process takes them, one after another.
 */
#include "supervisor/signals.h"

#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "supervisor/signal_table.h"

static bool is_blocked(int number)
{
    sigset_t blocked;

    ck_assert_int_eq(sigprocmask(SIG_SETMASK, NULL, &blocked), 0);
    return sigismember(&blocked, number) == 1;
}

START_TEST(a_stop_in_the_first_moments_is_held_back)
{
    int descriptor;
    struct signalfd_siginfo information;

    signals_hold();
    for (const struct signal_row *row = signal_table; row->name != NULL; row++) {
        ck_assert_int_eq(is_blocked(row->number), row->meaning == SIGNAL_STOPS);
    }
    ck_assert_int_eq(raise(SIGTERM), 0);
    ck_assert_int_eq(raise(SIGPIPE), 0);
    descriptor = signals_open();
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(read(descriptor, &information, sizeof information), sizeof information);
    ck_assert_int_eq((int)information.ssi_signo, SIGTERM);
    ck_assert_int_eq(close(descriptor), 0);
}
END_TEST

/* Also where the parent left every one of them ignored. */
START_TEST(each_is_read_or_ignored)
{
    struct signalfd_siginfo information;
    int descriptor;

    for (const struct signal_row *row = signal_table; row->name != NULL; row++) {
        (void)signal(row->number, SIG_IGN);
    }
    (void)signal(SIGCHLD, SIG_IGN);
    descriptor = signals_open();
    ck_assert_int_ge(descriptor, 0);
    for (const struct signal_row *row = signal_table; row->name != NULL; row++) {
        ck_assert_int_eq(raise(row->number), 0);
        if (row->meaning == SIGNAL_IGNORED) {
            ck_assert_int_eq(read(descriptor, &information, sizeof information), -1);
            continue;
        }
        ck_assert_int_eq(read(descriptor, &information, sizeof information), sizeof information);
        ck_assert_int_eq((int)information.ssi_signo, row->number);
        ck_assert_ptr_eq(signal_table_find(row->number), row);
    }
    ck_assert_int_eq(raise(SIGCHLD), 0);
    ck_assert_int_eq(read(descriptor, &information, sizeof information), sizeof information);
    ck_assert_ptr_null(signal_table_find((int)information.ssi_signo));
    ck_assert_int_eq(close(descriptor), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("signals");
    TCase *tests = tcase_create("signals");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_stop_in_the_first_moments_is_held_back);
    tcase_add_test(tests, each_is_read_or_ignored);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
