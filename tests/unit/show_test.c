/*
 * Sizes and stretches of time as a person reads them.
 */
#include "supervisor/show.h"

#include <check.h>
#include <stdlib.h>

static void expect_bytes(uint64_t bytes, const char *wanted)
{
    char text[SHOW_SIZE];

    show_bytes(bytes, text);
    ck_assert_str_eq(text, wanted);
}

START_TEST(bytes)
{
    expect_bytes(0, "0");
    expect_bytes(1, "1 B");
    expect_bytes(1023, "1023 B");
    expect_bytes(1024, "1.0 KiB");
    expect_bytes(10188, "9.9 KiB");
    expect_bytes(10189, "10 KiB");
    expect_bytes((1 << 20) - 1, "1.0 MiB");
    expect_bytes(1100000, "1.0 MiB");
    expect_bytes(UINT64_C(120) << 20, "120 MiB");
    expect_bytes(UINT64_MAX, "16 EiB");
}
END_TEST

static void expect_stretch(int64_t milliseconds, const char *wanted)
{
    char text[SHOW_SIZE];

    show_stretch(milliseconds, text);
    ck_assert_str_eq(text, wanted);
}

START_TEST(stretches)
{
    expect_stretch(INT64_MIN, "0.0s");
    expect_stretch(0, "0.0s");
    expect_stretch(9999, "9.9s");
    expect_stretch(10000, "10s");
    expect_stretch(119999, "119s");
    expect_stretch(120000, "2m");
    expect_stretch(3599999, "59m");
    expect_stretch(3600000, "1h");
    expect_stretch(11520000, "3h 12m");
    expect_stretch(86400000, "1d");
    expect_stretch(INT64_C(4) * 86400000 + 2 * 3600000 + 59, "4d 2h");
    expect_stretch(INT64_MAX, "106751991167d 7h");
}
END_TEST

static void expect_time(const char *time, const char *wanted)
{
    char text[SHOW_SIZE];

    show_time(time, text);
    ck_assert_str_eq(text, wanted);
}

START_TEST(times)
{
    expect_time("2026-09-04T10:05:07.412000Z", "2026-09-04 10:05:07");
    expect_time("2026-09-04T10:05:07Z", "2026-09-04 10:05:07");
    expect_time("2026-13-04T10:05:07Z", "?");
    expect_time("", "?");
}
END_TEST

START_TEST(widths)
{
    ck_assert_uint_eq(show_width(""), 0);
    ck_assert_uint_eq(show_width("orders"), 6);
    ck_assert_uint_eq(show_width("größe"), 5);
    ck_assert_uint_eq(show_width("\\xc2\\x9b2J"), 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("show");
    TCase *tests = tcase_create("show");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, bytes);
    tcase_add_test(tests, stretches);
    tcase_add_test(tests, times);
    tcase_add_test(tests, widths);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
