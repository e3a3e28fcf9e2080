/*
 * Walking proved JSON in place: members, elements, and what counts as which kind of value.
 */
#include "common/json_walk.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct json_scan scan;
static char buffer[4096];

static void tear_down(void)
{
    free(scan.bits);
    scan = (struct json_scan){0};
}

static struct json_text text_of(const char *text)
{
    int size = snprintf(buffer, sizeof buffer, "%s", text);
    ck_assert_int_lt(size, (int)sizeof buffer);
    return (struct json_text){buffer, (size_t)size};
}

START_TEST(members_come_in_order_with_their_keys_unescaped)
{
    struct json_walk walk;
    struct json_text key;
    struct json_text value;
    ck_assert(json_walk_object(&walk, &scan, text_of("{ \"a\" : 1 ,\"\\u0062\\n\":\t[1, {}] , \"\":null}")));
    ck_assert(json_walk_member(&walk, &key, &value));
    ck_assert(json_text_is(key, "a"));
    ck_assert(json_text_is(value, "1"));
    ck_assert(json_walk_member(&walk, &key, &value));
    ck_assert(json_text_is(key, "b\n"));
    ck_assert(json_text_is(value, "[1, {}]"));
    ck_assert(json_walk_member(&walk, &key, &value));
    ck_assert(json_text_is(key, ""));
    ck_assert(json_text_is(value, "null"));
    ck_assert(!json_walk_member(&walk, &key, &value));
}
END_TEST

START_TEST(elements_come_in_order)
{
    struct json_walk walk;
    struct json_text value;
    ck_assert(json_walk_array(&walk, &scan, text_of("[ \"x,]\" ,[],{\"k\":[2]}, -3.5e1 ]")));
    const char *expected[] = {"\"x,]\"", "[]", "{\"k\":[2]}", "-3.5e1"};
    for (size_t i = 0; i < COUNT(expected); i++) {
        ck_assert(json_walk_element(&walk, &value));
        ck_assert(json_text_is(value, expected[i]));
    }
    ck_assert(!json_walk_element(&walk, &value));
}
END_TEST

START_TEST(what_is_empty_has_nothing)
{
    struct json_walk walk;
    struct json_text key;
    struct json_text value;
    ck_assert(json_walk_object(&walk, &scan, text_of("{ }")));
    ck_assert(!json_walk_member(&walk, &key, &value));
    ck_assert(json_walk_array(&walk, &scan, text_of("[\n]")));
    ck_assert(!json_walk_element(&walk, &value));
}
END_TEST

START_TEST(another_kind_of_value_is_not_walked)
{
    struct json_walk walk;
    ck_assert(!json_walk_object(&walk, &scan, text_of("[]")));
    ck_assert(!json_walk_array(&walk, &scan, text_of("{}")));
    ck_assert(!json_walk_object(&walk, &scan, text_of("1")));
    ck_assert(!json_walk_object(&walk, &scan, (struct json_text){0}));
    ck_assert(!json_walk_array(&walk, &scan, (struct json_text){0}));
}
END_TEST

START_TEST(an_object_can_be_walked_while_the_one_around_it_is)
{
    struct json_walk outer;
    struct json_walk inner;
    struct json_text key;
    struct json_text value;
    struct name name;
    ck_assert(json_walk_array(&outer, &scan, text_of("[{\"n\":\"\\\"one\\\"\"},{\"n\":\"\\u00e9\"}]")));
    const char *expected[] = {"\"one\"", "\xC3\xA9"};
    for (size_t i = 0; i < 2; i++) {
        ck_assert(json_walk_element(&outer, &value));
        ck_assert(json_walk_object(&inner, &scan, value));
        ck_assert(json_walk_member(&inner, &key, &value));
        ck_assert(json_text_string(value, &name));
        ck_assert_uint_eq(name.size, strlen(expected[i]));
        ck_assert_int_eq(memcmp(name.bytes, expected[i], name.size), 0);
    }
    ck_assert(!json_walk_element(&outer, &value));
}
END_TEST

static const struct {
    const char *text;
    bool good;
    int64_t expected;
} integers[] = {{"0", true, 0},
                {"-0", true, 0},
                {"90101", true, 90101},
                {"9007199254740993", true, INT64_C(9007199254740993)},
                {"9223372036854775807", true, INT64_MAX},
                {"-9223372036854775808", true, INT64_MIN},
                {"9223372036854775808", false, 0},
                {"-9223372036854775809", false, 0},
                {"123456789012345678901234567890", false, 0},
                {"1.0", false, 0},
                {"1e3", false, 0},
                {"\"1\"", false, 0},
                {"null", false, 0},
                {"", false, 0},
                {"-", false, 0}};

START_TEST(integers_keep_every_digit)
{
    int64_t number = 7;
    ck_assert_int_eq(json_text_integer(text_of(integers[_i].text), &number), integers[_i].good);
    ck_assert(!integers[_i].good || number == integers[_i].expected);
}
END_TEST

START_TEST(strings_and_booleans)
{
    struct name name;
    const char *text;
    bool flag;
    ck_assert(json_text_string(text_of("\"\""), &name));
    ck_assert_uint_eq(name.size, 0);
    ck_assert(json_text_string(text_of("\"a\\u0000b\""), &name));
    ck_assert_uint_eq(name.size, 3);
    ck_assert(!json_text_string(text_of("12"), &name));
    ck_assert(!json_text_string((struct json_text){0}, &name));
    ck_assert(json_text_c_string(text_of("\"a\\/b\""), &text));
    ck_assert_str_eq(text, "a/b");
    ck_assert(!json_text_c_string(text_of("\"a\\u0000b\""), &text));
    ck_assert(!json_text_c_string(text_of("[]"), &text));
    ck_assert(json_text_boolean(text_of("true"), &flag) && flag);
    ck_assert(json_text_boolean(text_of("false"), &flag) && !flag);
    ck_assert(!json_text_boolean(text_of("1"), &flag));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_walk");
    TCase *test = tcase_create("walk");
    tcase_add_checked_fixture(test, NULL, tear_down);
    tcase_add_test(test, members_come_in_order_with_their_keys_unescaped);
    tcase_add_test(test, elements_come_in_order);
    tcase_add_test(test, what_is_empty_has_nothing);
    tcase_add_test(test, another_kind_of_value_is_not_walked);
    tcase_add_test(test, an_object_can_be_walked_while_the_one_around_it_is);
    tcase_add_loop_test(test, integers_keep_every_digit, 0, (int)COUNT(integers));
    tcase_add_test(test, strings_and_booleans);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
