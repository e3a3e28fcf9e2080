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

int main(void)
{
    Suite *suite = suite_create("utf8");
    TCase *test = tcase_create("utf8");
    tcase_add_loop_test(test, a_character, 0, (int)COUNT(characters));
    tcase_add_loop_test(test, a_character_anywhere_in_a_text, 0, (int)COUNT(characters));
    tcase_add_test(test, nothing_is_well_formed);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
