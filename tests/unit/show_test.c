/*
 * Sizes, stretches of time and names as a person reads them.
 */
#include "supervisor/show.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

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

static void expect_text(const char *text, const char *wanted, size_t width)
{
    char *shown = show_text(text);

    ck_assert_str_eq(shown, wanted);
    ck_assert_uint_eq(show_width(shown), width);
    for (const char *at = shown; *at != '\0'; at += utf8_next(at)) {
        ck_assert_uint_gt(utf8_next(at), 0);
        ck_assert(!utf8_is_control(at, utf8_next(at)));
    }
    free(shown);
}

START_TEST(texts)
{
    expect_text("", "", 0);
    expect_text("orders", "orders", 6);
    expect_text("größe", "größe", 5);
    expect_text("a\033[31mb\n\x7f", "a\\x1b[31mb\\x0a\\x7f", 18);
    expect_text("\xc2\x9b"
                "2J",
                "\\xc2\\x9b2J", 10);
    expect_text("cut \xe2\x82", "cut \\xe2\\x82", 12);
    expect_text("\xff", "\\xff", 4);
}
END_TEST

/* Each form of RFC 3629 at its ends, and what lies just outside. */
START_TEST(characters)
{
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\x80", 0},
        {"\xc1\xbf", 0},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xe0\x9f\xbf", 0},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},
        {"\xef\xbf\xbf", 3},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xe2\x82", 0},
        {"\xe2", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_uint_eq(utf8_next(cases[i].text), cases[i].size);
    }
    ck_assert(utf8_is_control("\xc2\x9b", 2));
    ck_assert(!utf8_is_control("\xc2\xa0", 2));
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
    tcase_add_test(tests, texts);
    tcase_add_test(tests, characters);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
