/*
 * What all object stores share.
 */
#include "common/object_store.h"

#include <check.h>
#include <stdlib.h>

static void expect(const char *message, const char *key, const char *wanted)
{
    struct error error;

    (void)error_set(&error, QS_ERROR_STATUS, "%s", message);
    error.status = 503;
    store_error_drop_key(&error, key);
    ck_assert_str_eq(error.message, wanted);
    ck_assert_int_eq(error.status, 503);
    ck_assert(error.retriable);
}

START_TEST(a_key_is_dropped_where_its_operation_names_it)
{
    expect("put lake/k: 503 SlowDown", "lake/k", "put: 503 SlowDown");
    expect("multipart_part lake/k: 503", "lake/k", "multipart_part: 503");
    expect("delete a b: c: 503", "a b: c", "delete: 503");
    expect("put k: put k: 503", "k", "put: put k: 503");
}
END_TEST

START_TEST(all_else_stays)
{
    expect("put lake/k: 503", "lake/", "put lake/k: 503");
    expect("put lake/k: 503", "lake/k2", "put lake/k: 503");
    expect("put: can't write /lake/k: no room", "lake/k", "put: can't write /lake/k: no room");
    expect("putting lake/k: 503", "lake/k", "putting lake/k: 503");
    expect("put lake/k", "lake/k", "put lake/k");
    expect("put", "lake/k", "put");
    expect("", "", "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("object_store");
    TCase *tests = tcase_create("errors");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_key_is_dropped_where_its_operation_names_it);
    tcase_add_test(tests, all_else_stays);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
