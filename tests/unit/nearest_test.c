/*
 * What counts as a slip, and which names are too far apart to be suggested.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearest.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const char *const known[] = {
    "QUEEN_URL",          "QUEEN_TOKEN",         "QUEEN_S3_SINK",         "QUEEN_S3_QUEUES",
    "QUEEN_S3_BUCKET",    "QUEEN_S3_SSE",        "QUEEN_S3_TARGET_MB",    "QUEEN_S3_MAX_WINDOW_MS",
    "QUEEN_S3_MEMORY_MB", "QUEEN_S3_LOG_FORMAT", "QUEEN_S3_LEASE_TTL_MS", "QUEEN_S3_MULTIPART_THRESHOLD_MB",
};

START_TEST(counts_slips)
{
    static const struct {
        const char *left;
        const char *right;
        size_t distance;
    } cases[] = {
        {"", "", 0},
        {"abc", "abc", 0},
        {"abc", "ABC", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"abc", "abd", 1},
        {"abc", "ab", 1},
        {"abc", "abxc", 1},
        {"abc", "acb", 1},
        {"ab", "ba", 1},
        {"ca", "abc", 3}, /* no letter is touched twice */
        {"kitten", "sitting", 3},
        {"abcdef", "badcfe", 3},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        ck_assert_uint_eq(nearest_distance(cases[i].left, cases[i].right), cases[i].distance);
        ck_assert_uint_eq(nearest_distance(cases[i].right, cases[i].left), cases[i].distance);
    }
}
END_TEST

START_TEST(finds_what_was_meant)
{
    static const struct {
        const char *text;
        const char *meant;
    } cases[] = {
        {"QUEEN_S3_BUKET", "QUEEN_S3_BUCKET"},
        {"QUEEN_S3_BUCKTE", "QUEEN_S3_BUCKET"},
        {"QUEEN_S3_BUCKETT", "QUEEN_S3_BUCKET"},
        {"queen_s3_bucket", "QUEEN_S3_BUCKET"},
        {"QUEEN_S3BUCKET", "QUEEN_S3_BUCKET"},
        {"QUEEEN_URL", "QUEEN_URL"},
        {"QUEEN_S3_QUEUE", "QUEEN_S3_QUEUES"},
        {"QUEEN_S3_TARGET", "QUEEN_S3_TARGET_MB"},
        {"QUEEN_S3_MAX_WINDOW", "QUEEN_S3_MAX_WINDOW_MS"},
        {"QUEEN_S3_LEASE_TTL", "QUEEN_S3_LEASE_TTL_MS"},
        {"QUEEN_S3_MEMORY_GB", "QUEEN_S3_MEMORY_MB"},
        {"QUEEN_S3_MULTIPART_TRESHOLD_MB", "QUEEN_S3_MULTIPART_THRESHOLD_MB"},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        const char *found = nearest_find(cases[i].text, known, LENGTH(known));
        ck_assert_msg(found != NULL, "%s", cases[i].text);
        ck_assert_str_eq(found, cases[i].meant);
    }
}
END_TEST

START_TEST(suggests_nothing_for_what_is_far)
{
    static const char *const far[] = {
        "", "X", "PATH", "QUEEN", "QUEEN_S3", "QUEEN_S3_FOO", "QUEEN_S3_COLOUR", "QUEEN_S3_LOG_ROTATE"};

    for (size_t i = 0; i < LENGTH(far); i++) {
        const char *found = nearest_find(far[i], known, LENGTH(known));
        ck_assert_msg(found == NULL, "%s: %s", far[i], found != NULL ? found : "");
    }
    ck_assert_ptr_null(nearest_find("topic", NULL, 0));
}
END_TEST

START_TEST(prefers_the_nearest_and_then_the_first)
{
    static const char *const names[] = {"prefixed", "prefixes", "prefix"};

    ck_assert_str_eq(nearest_find("prefixe", names, LENGTH(names)), "prefixed");
    ck_assert_str_eq(nearest_find("prefi", names, LENGTH(names)), "prefix");
}
END_TEST

START_TEST(leaves_long_names_alone)
{
    char text[4096];
    char name[NEAREST_BYTES + 1];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memset(name, 'a', NEAREST_BYTES);
    name[NEAREST_BYTES] = '\0';
    const char *const names[] = {name};
    ck_assert_ptr_null(nearest_find(text, names, 1));
    text[NEAREST_BYTES] = '\0';
    text[0] = 'b';
    ck_assert_ptr_eq(nearest_find(text, names, 1), name);
    const char *const longer[] = {
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    ck_assert_ptr_null(nearest_find("aaaa", longer, 1));
}
END_TEST

int main(void)
{
    Suite *all = suite_create("nearest");
    TCase *cases = tcase_create("nearest");
    tcase_add_test(cases, counts_slips);
    tcase_add_test(cases, finds_what_was_meant);
    tcase_add_test(cases, suggests_nothing_for_what_is_far);
    tcase_add_test(cases, prefers_the_nearest_and_then_the_first);
    tcase_add_test(cases, leaves_long_names_alone);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
