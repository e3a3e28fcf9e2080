/*
 * Times as they are spelled, against the C library's calendar.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "tests/unit/guarded.h"

static int64_t parsed(const char *text)
{
    struct broker_us time = {INT64_MIN};
    const char *copy = guarded_copy(text, strlen(text));
    ck_assert_msg(clock_parse_broker(copy, strlen(text), &time), "refused: %s", text);
    return time.v;
}

START_TEST(reads_the_broker)
{
    ck_assert_int_eq(parsed("1970-01-01T00:00:00Z"), 0);
    ck_assert_int_eq(parsed("1970-01-01T00:00:00.000001Z"), 1);
    ck_assert_int_eq(parsed("1969-12-31T23:59:59.999999Z"), -1);
    ck_assert_int_eq(parsed("2026-09-04T10:03:41.918204Z"), 1788516221918204);
    ck_assert_int_eq(parsed("2026-09-04T10:03:41.918204+00:00"), 1788516221918204);
    ck_assert_int_eq(parsed("2026-09-04T10:03:41.9Z"), 1788516221900000);
    ck_assert_int_eq(parsed("2026-09-04T10:03:41.91820Z"), 1788516221918200);
    ck_assert_int_eq(parsed("2026-09-04T10:03:41+00:00"), 1788516221000000);
    ck_assert_int_eq(parsed("2000-02-29T00:00:00Z"), 951782400000000);
    ck_assert_int_eq(parsed("0000-01-01T00:00:00Z"), -62167219200000000);
    ck_assert_int_eq(parsed("9999-12-31T23:59:59.999999Z"), 253402300799999999);
}
END_TEST

START_TEST(refuses_other_spellings)
{
    static const char *const texts[] = {
        "",
        "Z",
        "2026-09-04",
        "2026-09-04T10:03:41",
        "2026-09-04 10:03:41Z",
        "2026-09-04t10:03:41Z",
        "2026-09-04T10:03:41z",
        "2026-09-04T10:03:41.Z",
        "2026-09-04T10:03:41.1234567Z",
        "2026-09-04T10:03:41.12a456Z",
        "2026-09-04T10:03:41.918204",
        "2026-09-04T10:03:41.918204+01:00",
        "2026-09-04T10:03:41.918204-00:00",
        "2026-09-04T10:03:41.918204+0000",
        "2026-09-04T10:03:41.918204+00:0",
        "2026-09-04T10:03:41.918204ZZ",
        " 2026-09-04T10:03:41Z",
        "2026-09-04T10:03:41Z ",
        "2026-9-04T10:03:41Z",
        "2026-00-04T10:03:41Z",
        "2026-13-04T10:03:41Z",
        "2026-09-00T10:03:41Z",
        "2026-09-31T10:03:41Z",
        "2026-02-29T10:03:41Z",
        "1900-02-29T10:03:41Z",
        "2024-02-30T10:03:41Z",
        "2026-01-32T10:03:41Z",
        "2026-09-04T24:00:00Z",
        "2026-09-04T10:60:00Z",
        "2026-09-04T10:03:60Z",
        "+026-09-04T10:03:41Z",
        "-026-09-04T10:03:41Z",
        "2026-09-04T10:03:4\xFFZ",
        "2026-09-04T1x:03:41Z",
        "2026/09/04T10:03:41Z",
        "2026-09-04T10.03.41Z",
        "12026-09-04T10:03:41Z",
        "2026-09-04T10:03:41,5Z",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct broker_us time;
        ck_assert_msg(!clock_parse_broker(guarded_copy(texts[i], strlen(texts[i])), strlen(texts[i]), &time),
                      "accepted: %s", texts[i]);
    }
}
END_TEST

/* Each day of four centuries and more against the C library's calendar, there and back. */
START_TEST(agrees_with_the_calendar)
{
    for (int64_t day = -400 * 366; day < 400 * 366; day++) {
        time_t seconds = (time_t)(day * 86400 + (day * 7919 % 86400 + 86400) % 86400);
        struct tm calendar;
        char expected[64];
        char got[CLOCK_TEXT_SIZE];
        gmtime_r(&seconds, &calendar);
        snprintf(expected, sizeof expected, "%04d-%02d-%02dT%02d:%02d:%02d.000012Z", calendar.tm_year + 1900,
                 calendar.tm_mon + 1, calendar.tm_mday, calendar.tm_hour, calendar.tm_min, calendar.tm_sec);
        struct broker_us time = {(int64_t)seconds * 1000000 + 12};
        struct broker_us back;
        clock_format_broker(time, got);
        if (strcmp(got, expected) != 0 || !clock_parse_broker(got, 27, &back) || back.v != time.v) {
            ck_abort_msg("%s instead of %s", got, expected);
        }
    }
}
END_TEST

START_TEST(writes_the_lakes_spelling)
{
    char text[CLOCK_TEXT_SIZE];
    clock_format_broker((struct broker_us){1788516221918204}, text);
    ck_assert_str_eq(text, "2026-09-04T10:03:41.918204Z");
    clock_format_broker((struct broker_us){-1}, text);
    ck_assert_str_eq(text, "1969-12-31T23:59:59.999999Z");
    clock_format_broker((struct broker_us){INT64_MAX}, text);
    ck_assert_str_eq(text, "9999-12-31T23:59:59.999999Z");
    clock_format_broker((struct broker_us){INT64_MIN}, text);
    ck_assert_str_eq(text, "0000-01-01T00:00:00.000000Z");
    clock_format_wall((struct wall_ms){1788516307412}, text);
    ck_assert_str_eq(text, "2026-09-04T10:05:07.412000Z");
    clock_format_wall((struct wall_ms){INT64_MAX}, text);
    ck_assert_str_eq(text, "9999-12-31T23:59:59.999000Z");
    clock_format_wall((struct wall_ms){INT64_MIN}, text);
    ck_assert_str_eq(text, "0000-01-01T00:00:00.000000Z");
}
END_TEST

START_TEST(a_time_of_this_machine_is_read_as_it_is_written)
{
    static const int64_t times[] = {0, 1788516307412, 253402300799999};
    char text[CLOCK_TEXT_SIZE];
    struct wall_ms read = {0};

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        clock_format_wall((struct wall_ms){times[i]}, text);
        ck_assert(clock_parse_wall(text, CLOCK_TEXT_SIZE - 1, &read));
        ck_assert_int_eq(read.v, times[i]);
    }
    ck_assert(!clock_parse_wall("2026-09-04", 10, &read));
}
END_TEST

START_TEST(reads_both_clocks)
{
    struct mono_ms before = clock_mono();
    struct mono_ms after = clock_mono();
    ck_assert_int_le(before.v, after.v);
    ck_assert_int_le(llabs((long long)(clock_wall().v / 1000 - (int64_t)time(NULL))), 2);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("clock");
    TCase *cases = tcase_create("clock");
    tcase_add_test(cases, reads_the_broker);
    tcase_add_test(cases, refuses_other_spellings);
    tcase_add_test(cases, agrees_with_the_calendar);
    tcase_add_test(cases, writes_the_lakes_spelling);
    tcase_add_test(cases, a_time_of_this_machine_is_read_as_it_is_written);
    tcase_add_test(cases, reads_both_clocks);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
