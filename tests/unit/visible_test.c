/*
 * What of a stranger's text a person gets to see as it is, and what is spelled out.
 */
#include "common/visible.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

static void expect_text(const char *text, const char *wanted)
{
    char *shown = visible_text(text);

    ck_assert_str_eq(shown, wanted);
    for (const char *at = shown; *at != '\0'; at += utf8_next(at)) {
        ck_assert(visible_is(at, utf8_next(at)));
    }
    free(shown);
}

static void expect_data(const char *text, const char *wanted)
{
    char *shown = visible_in_data(text);

    ck_assert_str_eq(shown, wanted);
    ck_assert(utf8_is_valid(shown, strlen(shown)));
    free(shown);
}

START_TEST(controls_and_what_is_no_text_are_spelled_out)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"", ""},
        {"orders", "orders"},
        {"größe 注文 😋", "größe 注文 😋"},
        {"a\033[31mb\n\x7f", "a\\x1b[31mb\\x0a\\x7f"},
        {"\xc2\x9b\x32J", "\\xc2\\x9b2J"},
        {"cut \xe2\x82", "cut \\xe2\\x82"},
        {"\xff", "\\xff"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_text(cases[i].text, cases[i].wanted);
        expect_data(cases[i].text, cases[i].wanted);
    }
}
END_TEST

START_TEST(a_name_turns_no_text_around)
{
    expect_text("\u202esredro\u202c", "\\xe2\\x80\\xaesredro\\xe2\\x80\\xac");
    expect_text("\u2066a\u2069\u061c\u200e\u200fb",
                "\\xe2\\x81\\xa6a\\xe2\\x81\\xa9\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8fb");
    expect_data("\u202esredro\u202c\ufeff", "\u202esredro\u202c\ufeff");
}
END_TEST

START_TEST(names_that_differ_look_different)
{
    expect_text("or\u200bders", "or\\xe2\\x80\\x8bders");
    expect_text("or\u00adders\ufeff", "or\\xc2\\xadders\\xef\\xbb\\xbf");
    expect_text("orders\U000e0041", "orders\\xf3\\xa0\\x81\\x81");
    expect_text("orders\u2028next", "orders\\xe2\\x80\\xa8next");
}
END_TEST

static bool point_is_visible(uint32_t point)
{
    char text[UTF8_LENGTH_MAX];
    size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = length - 1; i > 0; i--) {
        text[i] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    text[0] = (char)(leads[length] | point);
    return visible_is(text, length);
}

/* Written down a second time, each range with what lies just outside. */
START_TEST(where_the_invisible_begins_and_ends)
{
    static const uint32_t ranges[][2] = {
        {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
        {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
        {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3},
        {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        ck_assert(point_is_visible(ranges[i][0] - 1));
        ck_assert(!point_is_visible(ranges[i][0]));
        ck_assert(!point_is_visible(ranges[i][1]));
        ck_assert(point_is_visible(ranges[i][1] + 1));
    }
    ck_assert(point_is_visible(' '));
    ck_assert(point_is_visible('~'));
    ck_assert(point_is_visible(0xa0));
    ck_assert(point_is_visible(0x10ffff));
    ck_assert(!visible_is("", 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("visible");
    TCase *tests = tcase_create("visible");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, controls_and_what_is_no_text_are_spelled_out);
    tcase_add_test(tests, a_name_turns_no_text_around);
    tcase_add_test(tests, names_that_differ_look_different);
    tcase_add_test(tests, where_the_invisible_begins_and_ends);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
