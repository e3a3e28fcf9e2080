/*
 * The directory part of a key: every placeholder, what is kept and what is replaced, and what a topic lacks.
 */
#include "worker/connector/path_template.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MOMENT       UINT64_C(1788470104118) /* 2026-09-03T21:15:04.118Z */

static struct error error;
static char out[SINK_KEY_MAX + 1];

static int render(const char *text, const char *topic, int32_t partition, uint64_t timestamp_ms)
{
    ck_assert_int_eq(path_template_check(text, &error), 0);
    return path_template_render(text, (struct sink_slice){topic, strlen(topic)}, partition, timestamp_ms, out,
                                sizeof out, &error);
}

static const struct {
    const char *text;
    const char *topic;
    int32_t partition;
    const char *expected;
} rendered[] = {
    {"{topic}/{date}/{hour}", "orders.eu", 0, "orders.eu/2026-09-03/21"},
    {"{topic_segment[0]}/{topic_segment[1]}", "orders.eu", 0, "orders/eu"},
    {"{topic_segment[-1]}/{topic_segment[-2]}", "orders.eu", 0, "eu/orders"},
    {"{topic_segment[-0]}", "orders.eu", 0, "orders"},
    {"{topic_segment[1]}", "a..b", 0, ""},
    {"p{partition}", "t", 12, "p12"},
    {"p{partition}", "t", -2147483647 - 1, "p-2147483648"},
    {"{timestamp}", "t", 0, "1788470104118"},
    {"plain", "t", 0, "plain"},
    {"{year}/{topic}", "t", 0, "{year}/t"},
    {"a//b/", "t", 0, "a//b/"},
    {"{", "t", 0, "{"},
    {"{topic", "t", 0, "{topic"},
    {"{{topic}}", "t", 0, "{t}"},
    {"{x{topic}", "t", 0, "{xt"},
    {"{topic}", "Az09._-", 0, "Az09._-"},
    {"{topic}", "a b/c:d", 0, "a_b_c_d"},
    {"{topic}", "h\xc3\xa9\xf0\x9f\x98\x80x", 0, "h__x"}, /* one a character, not a byte */
    {"{topic_segment[0]}", "", 0, ""},
};

START_TEST(placeholders_are_filled_in)
{
    ck_assert_int_eq(render(rendered[_i].text, rendered[_i].topic, rendered[_i].partition, MOMENT), 0);
    ck_assert_str_eq(out, rendered[_i].expected);
}
END_TEST

static const char *const bad[] = {"{topic_segment[x]}",
                                  "{topic_segment[99",
                                  "{topic_segment[]}",
                                  "{topic_segment[1]",
                                  "{topic_segment[1}",
                                  "{topic_segment[-]}",
                                  "{topic_segment[1.0]}",
                                  "ok/{topic_segment[0]}/{topic_segment[",
                                  "{topic_segment[99999999999999999999]}"};

START_TEST(a_segment_that_has_no_number_is_refused)
{
    ck_assert_int_eq(path_template_check(bad[_i], &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "path_template"));
}
END_TEST

START_TEST(a_topic_with_too_few_segments_is_an_error)
{
    ck_assert_int_eq(render("{topic_segment[2]}", "orders.eu", 0, MOMENT), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "orders.eu"));
    ck_assert_ptr_nonnull(strstr(error.message, "2 segments"));
    ck_assert_int_eq(render("{topic_segment[-3]}", "orders.eu", 0, MOMENT), QS_ERROR_INPUT);
}
END_TEST

START_TEST(a_date_after_year_9999_is_an_error_where_one_is_asked_for)
{
    ck_assert_int_eq(render("{date}", "t", 0, SINK_TIMESTAMP_MAX), 0);
    ck_assert_str_eq(out, "9999-12-31");
    ck_assert_int_eq(render("{date}", "t", 0, SINK_TIMESTAMP_MAX + 1), QS_ERROR_INPUT);
    ck_assert_int_eq(render("{hour}", "t", 0, UINT64_MAX), QS_ERROR_INPUT);
    ck_assert_int_eq(render("{timestamp}", "t", 0, UINT64_MAX), 0);
    ck_assert_str_eq(out, "18446744073709551615");
    ck_assert(path_template_has_date("a/{hour}") && path_template_has_date("{date}"));
    ck_assert(!path_template_has_date("{topic}/{timestamp}"));
}
END_TEST

START_TEST(what_is_longer_than_a_key_is_an_error_and_never_written)
{
    char topic[2000];
    memset(topic, 't', sizeof topic - 1);
    topic[sizeof topic - 1] = '\0';
    ck_assert_int_eq(render("{topic}", topic, 0, MOMENT), QS_ERROR_INPUT);
    topic[900] = '\0';
    ck_assert_int_eq(render("{topic}", topic, 0, MOMENT), 0);
    ck_assert_int_eq(render("{topic}/{topic}", topic, 0, MOMENT), QS_ERROR_INPUT);
    char small[8] = "";
    small[7] = '#';
    ck_assert_int_eq(path_template_render("{topic}{topic}", (struct sink_slice){"abcd", 4}, 0, 0, small, 7, &error),
                     QS_ERROR_INPUT);
    ck_assert_int_eq(small[7], '#');
}
END_TEST

static bool parts(const char *text, const char *one, const char *other)
{
    return path_template_parts(text, (struct sink_slice){one, strlen(one)}, (struct sink_slice){other, strlen(other)});
}

START_TEST(topics_that_would_share_a_directory_are_told)
{
    ck_assert(parts("{topic}/{date}/{hour}", "orders.eu", "orders.us"));
    ck_assert(parts("{topic_segment[-1]}/{date}", "orders.eu", "orders.us"));
    ck_assert(parts("{topic_segment[0]}-{topic}", "orders.eu", "orders.us"));
    ck_assert(!parts("{date}/{hour}", "orders.eu", "orders.us"));
    ck_assert(!parts("{topic_segment[0]}/{partition}/{timestamp}", "orders.eu", "orders.us"));
    ck_assert(!parts("{topic}", "orders eu", "orders_eu"));
    ck_assert(!parts("{topic}", "caf\xc3\xa9", "caf_"));
    ck_assert(parts("{topic}", "caf\xc3\xa9", "caf__"));
    ck_assert(parts("{topic_segment[1]}", "orders", "clicks")); /* neither has a key */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("path_template");
    TCase *test = tcase_create("path_template");
    tcase_add_loop_test(test, placeholders_are_filled_in, 0, (int)COUNT(rendered));
    tcase_add_loop_test(test, a_segment_that_has_no_number_is_refused, 0, (int)COUNT(bad));
    tcase_add_test(test, a_topic_with_too_few_segments_is_an_error);
    tcase_add_test(test, a_date_after_year_9999_is_an_error_where_one_is_asked_for);
    tcase_add_test(test, what_is_longer_than_a_key_is_an_error_and_never_written);
    tcase_add_test(test, topics_that_would_share_a_directory_are_told);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
