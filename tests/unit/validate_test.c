/*
 * Settings that are good each by itself, and that no pool can run with.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/validate.h"
#include "tests/unit/environments.h"

START_TEST(takes_the_least)
{
    struct environment environment = least;
    struct settings settings = must_read(&environment);
    struct error error;

    ck_assert_int_eq(validate_settings(&settings, &error), 0);
    settings_free(&settings);
}
END_TEST

START_TEST(wants_memory_for_each_worker)
{
    struct environment environment = least;
    struct error error;

    set(&environment, "QUEEN_S3_WORKERS", "2");
    set(&environment, "QUEEN_S3_MEMORY_MB", "64");
    struct settings settings = must_read(&environment);
    ck_assert_int_eq(validate_settings(&settings, &error), 0);
    settings.memory_bytes--;
    ck_assert_int_eq(validate_settings(&settings, &error), QS_ERROR_INPUT);
    ck_assert_msg(strncmp(error.message, "QUEEN_S3_MEMORY_MB=", 19) == 0, "%s", error.message);
    settings_free(&settings);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("validate");
    TCase *cases = tcase_create("validate");
    tcase_add_test(cases, takes_the_least);
    tcase_add_test(cases, wants_memory_for_each_worker);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
