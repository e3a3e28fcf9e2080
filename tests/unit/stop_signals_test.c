/* supervisor/stop_signals.h */
#include <check.h>
#include <stdlib.h>

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

START_TEST(a_stop_that_the_parent_passes_on_is_one_stop)
{
    const struct order *order = &orders[_i];
    struct stop_signals signals = {0};

    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(stop_signals_take(&signals, order->senders[i], PARENT), order->meanings[i]);
    }
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
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
