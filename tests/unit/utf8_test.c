/*
 * UTF-8: what is well-formed, at every place of a long text, and never a byte read too far.
 */
#include "common/utf8.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/guarded.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *text;
    size_t length; /* 0: not well-formed */
} characters[] = {
    {"a", 1},
    {"\x7f", 1},
    {"\xc2\x80", 2},
    {"\xdf\xbf", 2},
    {"\xe0\xa0\x80", 3},
    {"\xed\x9f\xbf", 3},
    {"\xee\x80\x80", 3},
    {"\xef\xbf\xbf", 3},
    {"\xf0\x90\x80\x80", 4},
    {"\xf4\x8f\xbf\xbf", 4},
    {"\x80", 0},
    {"\xbf", 0},
    {"\xc0\x80", 0},
    {"\xc1\xbf", 0},
    {"\xc2", 0},
    {"\xc2(", 0},
    {"\xe0\x9f\xbf", 0},
    {"\xed\xa0\x80", 0}, /* a surrogate */
    {"\xe2\x82", 0},
    {"\xf0\x8f\xbf\xbf", 0},
    {"\xf4\x90\x80\x80", 0},
    {"\xf5\x80\x80\x80", 0},
    {"\xff", 0},
};

START_TEST(a_character)
{
    size_t size = strlen(characters[_i].text);
    const char *exact = guarded_copy(characters[_i].text, size);
    ck_assert_uint_eq(utf8_length(exact, size), characters[_i].length);
    ck_assert(utf8_is_valid(exact, size) == (characters[_i].length == size));
    ck_assert_uint_eq(utf8_length(exact, 0), 0);
    for (size_t cut = 1; cut < characters[_i].length; cut++) {
        ck_assert_uint_eq(utf8_length(exact, cut), 0);
    }
}
END_TEST

START_TEST(a_character_anywhere_in_a_text)
{
    const char *character = characters[_i].text;
    size_t size = strlen(character);
    for (size_t before = 0; before < 20; before++) {
        for (size_t behind = 0; behind < 20; behind++) {
            char text[64];
            memset(text, 'x', sizeof text);
            for (size_t i = 0; i < size; i++) {
                text[before + i] = character[i];
            }
            size_t whole = before + size + behind;
            ck_assert(utf8_is_valid(guarded_copy(text, whole), whole) == (characters[_i].length == size));
        }
    }
}
END_TEST

START_TEST(nothing_is_well_formed)
{
    ck_assert(utf8_is_valid(NULL, 0));
    ck_assert(utf8_is_valid("a\0b", 3));
}
END_TEST

/* By the definition: as many bytes as the number needs. */
static size_t encode(unsigned long point, unsigned char bytes[4])
{
    if (point < 0x80) {
        bytes[0] = (unsigned char)point;
        return 1;
    }
    if (point < 0x800) {
        bytes[0] = (unsigned char)(0xc0 | point >> 6);
        bytes[1] = (unsigned char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        bytes[0] = (unsigned char)(0xe0 | point >> 12);
        bytes[1] = (unsigned char)(0x80 | (point >> 6 & 0x3f));
        bytes[2] = (unsigned char)(0x80 | (point & 0x3f));
        return 3;
    }
    bytes[0] = (unsigned char)(0xf0 | point >> 18);
    bytes[1] = (unsigned char)(0x80 | (point >> 12 & 0x3f));
    bytes[2] = (unsigned char)(0x80 | (point >> 6 & 0x3f));
    bytes[3] = (unsigned char)(0x80 | (point & 0x3f));
    return 4;
}

START_TEST(every_code_point_but_surrogates)
{
    unsigned long wrong = 0;

    for (unsigned long point = 0; point < 0x140000; point++) {
        unsigned char bytes[4];
        size_t size = encode(point, bytes);
        size_t expected = point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ? 0 : size;
        const char *text = (const char *)bytes;

        wrong += utf8_length(text, size) != expected;
        wrong += utf8_is_unfinished(text, size);
        wrong += expected > 0 && utf8_point(text, size) != point;
        wrong += expected > 0 && utf8_is_control(text, size) != (point < 0x20 || (point >= 0x7f && point < 0xa0));
        for (size_t short_of = 1; expected > 0 && short_of < size; short_of++) {
            wrong += utf8_length(text, short_of) != 0;
            wrong += !utf8_is_unfinished(text, short_of);
        }
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(what_is_unfinished)
{
    static const struct {
        const char *bytes;
        size_t size;
        size_t length;
        bool unfinished;
    } cases[] = {
        {"\x80", 1, 0, false},
        {"\xc0\xaf", 2, 0, false},
        {"\xc1\xbf", 2, 0, false},
        {"\xe0\x9f\xbf", 3, 0, false},
        {"\xf0\x8f\xbf\xbf", 4, 0, false},
        {"\xf5\x80\x80\x80", 4, 0, false},
        {"\xff", 1, 0, false},
        {"\xc3y", 2, 0, false},
        {"\xe2\x82y", 3, 0, false},
        {"\xe0\x80", 2, 0, false},
        {"\xed\xa0", 2, 0, false},
        {"\xf4\x90", 2, 0, false},
        {"\xf0\x90", 2, 0, true},
        {"\xf4\x8f\xbf", 3, 0, true},
        {"\xc3\xa8\xa8", 3, 2, false},
        {"ab", 2, 1, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_uint_eq(utf8_length(cases[i].bytes, cases[i].size), cases[i].length);
        ck_assert_int_eq(utf8_is_unfinished(cases[i].bytes, cases[i].size), cases[i].unfinished);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("utf8");
    TCase *test = tcase_create("utf8");
    tcase_add_loop_test(test, a_character, 0, (int)COUNT(characters));
    tcase_add_loop_test(test, a_character_anywhere_in_a_text, 0, (int)COUNT(characters));
    tcase_add_test(test, nothing_is_well_formed);
    tcase_add_test(test, every_code_point_but_surrogates);
    tcase_add_test(test, what_is_unfinished);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
