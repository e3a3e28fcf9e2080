/*
 * When a pointer may be rebuilt, by what the broker's documents and the manifests say.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/commands/recovery.h"

static const struct settings settings = {.prefix = (char *)(uintptr_t) "queen", .lease_ttl_ms = 30000};
static struct recovery recovery;

static void begin(void)
{
    recovery = (struct recovery){0};
}

static void end(void)
{
    recovery_free(&recovery);
}

static void take(const char *which, const char *text)
{
    char *key = document_key("default", "orders", which);
    cJSON *value = cJSON_Parse(text);
    const struct kv_row row = {key, 17, value};

    ck_assert_ptr_nonnull(value);
    recovery_take_row(&recovery, &settings, &row);
    cJSON_Delete(value);
    free(key);
}

static void take_intent(int64_t k, int64_t from, int64_t to)
{
    const struct window_bounds bounds = {k, {from}, {to}};
    const struct window_shape shape = {0};
    char *text = intent_format(&bounds, &shape, "queen");

    take("intent", text);
    free(text);
}

/* Windows 1 to last, of ten units each. */
static void take_windows(int64_t last)
{
    for (int64_t k = 1; k <= last; k++) {
        const struct manifest manifest = {
            .bounds = {k, {10 * k}, {10 * k + 10}}, .records = (uint64_t)k, .bytes = (uint64_t)k * 100};
        recovery_take_window(&recovery, &manifest);
    }
}

static void expect_documents(const char *refusal)
{
    struct error error;
    int code = recovery_check_documents(&recovery, &settings, &error);

    ck_assert_int_eq(code, refusal == NULL ? 0 : QS_ERROR_INPUT);
    ck_assert_msg(refusal == NULL || strstr(error.message, refusal) != NULL, "%s", code != 0 ? error.message : "");
}

static void expect_intent(const char *refusal)
{
    struct error error;
    int code = recovery_check_intent(&recovery, &error);

    ck_assert_int_eq(code, refusal == NULL ? 0 : QS_ERROR_INPUT);
    ck_assert_msg(refusal == NULL || strstr(error.message, refusal) != NULL, "%s", code != 0 ? error.message : "");
}

START_TEST(rebuilds_where_there_is_nothing)
{
    expect_documents(NULL);
    take_windows(3);
    expect_intent(NULL);
    ck_assert_int_eq(recovery.committed_version, 0);
    ck_assert_int_eq(recovery.last.k, 3);
    ck_assert_int_eq(recovery.last.end.v, 40);
    ck_assert_uint_eq(recovery.records, 3);
    ck_assert_uint_eq(recovery.bytes, 300);
}
END_TEST

START_TEST(leaves_a_pointer_alone)
{
    take("committed", "{\"k\":3,\"tEnd\":40}");
    expect_documents("the pointer is there, at window 3");
    take_intent(4, 40, 50);
    expect_documents("the pointer is there, at window 3");
    take("committed", "{\"k\":0,\"tEnd\":40}");
    take_intent(1, 40, 50);
    expect_documents("the pointer is there, at window 0");
}
END_TEST

START_TEST(replaces_one_that_cannot_be_right)
{
    take("committed", "{\"k\":3}");
    expect_documents(NULL);
    ck_assert_int_eq(recovery.committed_version, 17);
    take("committed", "{\"k\":3,\"tEnd\":40}");
    take_intent(5, 50, 60);
    expect_documents(NULL);
    ck_assert_int_eq(recovery.committed_version, 17);
}
END_TEST

START_TEST(replaces_one_that_a_manifest_has_overtaken)
{
    ck_assert_int_eq(recovery_beyond(&recovery), 0);
    take("committed", "{\"k\":3}");
    ck_assert_int_eq(recovery_beyond(&recovery), 0);
    take("committed", "{\"k\":3,\"tEnd\":40}");
    ck_assert_int_eq(recovery_beyond(&recovery), 4);
    take_intent(3, 30, 40);
    ck_assert_int_eq(recovery_beyond(&recovery), 4);
    take_intent(4, 40, 50); /* whose manifest a sink writes before the pointer */
    ck_assert_int_eq(recovery_beyond(&recovery), 5);
    take_intent(5, 50, 60);
    ck_assert_int_eq(recovery_beyond(&recovery), 0);
    take_intent(4, 40, 50);
    expect_documents("the pointer is there, at window 3");
    recovery.overtaken = true;
    expect_documents(NULL);
    take_windows(6);
    expect_intent(NULL);
}
END_TEST

START_TEST(refuses_while_somebody_holds_it)
{
    take("lease", "{\"instance\":\"sink-1\"}");
    expect_documents("instance sink-1 holds the lease");
    take("lease", "[]");
    expect_documents("instance (nameless) holds the lease");
}
END_TEST

START_TEST(refuses_an_intent_of_something_else)
{
    take("intent", "{\"k\":1}");
    expect_documents("can't be read");
    take("intent", "{\"k\":1,\"tStart\":1,\"tEnd\":2,\"format\":\"jsonl\",\"compression\":\"none\","
                   "\"layout\":\"merged\",\"prefix\":\"other\"}");
    expect_documents("the intent is for the prefix other");
}
END_TEST

START_TEST(takes_the_intent_of_the_last_window_or_the_next)
{
    take_intent(3, 30, 40);
    expect_documents(NULL);
    take_windows(3);
    expect_intent(NULL);
    take_intent(4, 40, 50);
    expect_intent(NULL);
    take_intent(4, 45, 50); /* what lies between was proven empty */
    expect_intent(NULL);
}
END_TEST

START_TEST(refuses_an_intent_that_disagrees)
{
    take_intent(3, 30, 41);
    take_windows(3);
    expect_intent("disagrees with the manifest of that window");
    take_intent(4, 39, 50);
    expect_intent("disagrees with the last window");
    take_intent(5, 50, 60);
    expect_intent("the intent is for window 5 and the last manifest is 3");
}
END_TEST

START_TEST(takes_an_old_intent_that_agrees)
{
    take_intent(2, 20, 30);
    take_windows(3);
    expect_intent(NULL);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("recovery");
    TCase *cases = tcase_create("recovery");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, rebuilds_where_there_is_nothing);
    tcase_add_test(cases, leaves_a_pointer_alone);
    tcase_add_test(cases, replaces_one_that_cannot_be_right);
    tcase_add_test(cases, replaces_one_that_a_manifest_has_overtaken);
    tcase_add_test(cases, refuses_while_somebody_holds_it);
    tcase_add_test(cases, refuses_an_intent_of_something_else);
    tcase_add_test(cases, takes_the_intent_of_the_last_window_or_the_next);
    tcase_add_test(cases, refuses_an_intent_that_disagrees);
    tcase_add_test(cases, takes_an_old_intent_that_agrees);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
