/*
 * Sizes and durations of the S3 sink: every spelling that the original was seen to read, where the spec doesn't change
 * it, and what is no quantity.
 */
#include "worker/connector/quantity.h"

#include <check.h>
#include <inttypes.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *text;
    uint64_t bytes;
} sizes[] = {
    {"8MiB", 8388608},
    {"10MB", 10000000},
    {"512KiB", 524288},
    {"1GiB", 1073741824},
    {"1000", 1000},
    {"1000 ", 1000},
    {" 8 MiB ", 8388608},
    {"8\tMiB", 8388608},
    {"8mib", 8388608},
    {"8mb", 8000000},
    {"8Mb", 8000000},
    {"8MIB", 8388608},
    {"1k", 1000},
    {"1kb", 1000},
    {"1Kib", 1024},
    {"1.5MiB", 1572864},
    {"0.5KB", 500},
    {"1.0001KiB", 1025},
    {"1.5", 2},
    {"0.0000000000000000000000001", 1},
    {"0", 0},
    {"0B", 0},
    {"1b", 1},
    {"5GiB", 5368709120},
    {"1TiB", 1099511627776},
    {"8M", 8000000},
    {"8m", 8000000},
    {"8Mi", 8388608},
    {"1PiB", 1125899906842624},
    {"15.5EiB", UINT64_C(17870283321406128128)},
    {"18446744073709551615", UINT64_MAX},
};

START_TEST(a_size_is_read)
{
    uint64_t bytes = 1;
    ck_assert_msg(quantity_parse_size(sizes[_i].text, &bytes), "%s", sizes[_i].text);
    ck_assert_uint_eq(bytes, sizes[_i].bytes);
}
END_TEST

static const char *const no_sizes[] = {"",       "abc",    "-1",
                                       "+5",     "1e3",    "1_000",
                                       "1,000",  "0x10",   "18446744073709551616",
                                       "100EiB", "10bit",  "8Mbit",
                                       ".5M",    "5.MB",   "8MiBs",
                                       "8 M iB", "8bytes", "MiB",
                                       "1..5",   "16EiB",  "15.9999999999999999999999EiB"};

START_TEST(what_is_no_size_is_refused)
{
    uint64_t bytes = 77;
    ck_assert_msg(!quantity_parse_size(no_sizes[_i], &bytes), "%s", no_sizes[_i]);
    ck_assert_uint_eq(bytes, 77);
}
END_TEST

static const struct {
    const char *text;
    int64_t milliseconds;
} durations[] = {
    {"1s", 1000},
    {"500ms", 500},
    {"2m", 120000},
    {"1m 30s", 90000},
    {"1m30s", 90000},
    {"0s", 0},
    {"0", 0},
    {" 0 ", 0},
    {"1.5s", 1500},
    {"1 s", 1000},
    {"1h", 3600000},
    {"1d", 86400000},
    {"1w", 604800000},
    {"1M", 2630016000},
    {"1month", 2630016000},
    {"1y", 31557600000},
    {"10us", 1},
    {"10ns", 1},
    {"1sec", 1000},
    {"2min", 120000},
    {"3hours", 10800000},
    {" 1s", 1000},
    {"1ms1ms", 2},
    {"1\xc2\xb5s", 1},
    {"1s ", 1000},
    {"1500us", 2},
    {"2seconds", 2000},
};

START_TEST(a_duration_is_read)
{
    int64_t milliseconds = -1;
    ck_assert_msg(quantity_parse_duration(durations[_i].text, &milliseconds), "%s", durations[_i].text);
    ck_assert_int_eq(milliseconds, durations[_i].milliseconds);
}
END_TEST

static const char *const no_durations[] = {
    "",    "5",    "abc",  "1S",      "-1s", "1_000ms", "100000000000000000000s", "ms", "1.s",
    "1s2", "1eon", "0x1s", "1 000ms", "1s,", "600y",    "1secondsecond"};

START_TEST(what_is_no_duration_is_refused)
{
    int64_t milliseconds = 77;
    ck_assert_msg(!quantity_parse_duration(no_durations[_i], &milliseconds), "%s", no_durations[_i]);
    ck_assert_int_eq(milliseconds, 77);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantity");
    TCase *reading = tcase_create("reading");
    tcase_add_loop_test(reading, a_size_is_read, 0, (int)COUNT(sizes));
    tcase_add_loop_test(reading, what_is_no_size_is_refused, 0, (int)COUNT(no_sizes));
    tcase_add_loop_test(reading, a_duration_is_read, 0, (int)COUNT(durations));
    tcase_add_loop_test(reading, what_is_no_duration_is_refused, 0, (int)COUNT(no_durations));
    suite_add_tcase(suite, reading);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
