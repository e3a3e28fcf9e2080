/*
 * A worker's outside: which store the settings name, and the count of its requests.
 */
#include "worker/services.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "environments.h"
#include "folders.h"
#include "s3_calls.h"
#include "scripted_server.h"

static struct services services;
static struct settings settings;
static struct environment environment;
static struct error error;

static void begin(void)
{
    environment = (struct environment){0};
    set(&environment, "QUEEN_S3_QUEUES", "orders");
    set(&environment, "QUEEN_S3_BUCKET", "lake");
    call_reactor = reactor_create(&error);
    ck_assert_ptr_nonnull(call_reactor);
}

static int open_services(void)
{
    settings = must_read(&environment);
    int status = services_open(&services, call_reactor, &settings, &error);
    call_store = services.store;
    return status;
}

static void end(void)
{
    calls_clear();
    services_close(&services);
    settings_free(&settings);
    reactor_destroy(call_reactor);
}

static void use_s3(const char *url)
{
    set(&environment, "QUEEN_S3_ENDPOINT", url);
    set(&environment, "QUEEN_S3_REGION", "eu-central-1");
    set(&environment, "QUEEN_S3_ACCESS_KEY", "AKIA");
    set(&environment, "QUEEN_S3_SECRET_KEY", "hidden");
    set(&environment, "QUEEN_S3_PATH_STYLE", "true");
}

static uint64_t counted(const struct report_worker *report, enum store_operation operation, int code)
{
    for (size_t i = 0; i < report->request_count_used; i++)
        if (report->request_counts[i].operation == (int32_t)operation && report->request_counts[i].code == code)
            return report->request_counts[i].count;
    return 0;
}

START_TEST(a_file_endpoint_is_a_directory)
{
    char root[] = "/tmp/services-test-XXXXXX";
    char url[64];
    struct report_worker report = {0};
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(url, sizeof url, "file://%s", root);
    begin();
    set(&environment, "QUEEN_S3_ENDPOINT", url);
    ck_assert_int_eq(open_services(), 0);
    ck_assert_ptr_nonnull(services.queen);
    ck_assert_int_eq(call_put("a/b", "hello", 5)->code, QS_OK);
    ck_assert_int_eq(call_head("a/b")->code, QS_OK);
    ck_assert_int_eq(call_head("a/c")->code, QS_ERROR_NOT_FOUND);
    services_request_counts(&services, &report);
    ck_assert_uint_eq(report.request_count_used, 3);
    ck_assert_uint_eq(counted(&report, STORE_PUT, 200), 1);
    ck_assert_uint_eq(counted(&report, STORE_HEAD, 200), 1);
    ck_assert_uint_eq(counted(&report, STORE_HEAD, 404), 1);
    end();
    folder_remove(root);
}
END_TEST

START_TEST(any_other_is_s3_and_no_answer_counts_as_0)
{
    struct report_worker report = {0};
    begin();
    use_s3("http://127.0.0.1:1");
    ck_assert_int_eq(open_services(), 0);
    ck_assert_int_eq(call_head("a")->code, QS_ERROR_TRANSPORT);
    ck_assert_int_eq(call_head("a")->code, QS_ERROR_TRANSPORT);
    services_request_counts(&services, &report);
    ck_assert_uint_eq(report.request_count_used, 1);
    ck_assert_uint_eq(counted(&report, STORE_HEAD, 0), 2);
    end();
}
END_TEST

START_TEST(more_codes_than_a_report_holds_are_still_counted)
{
    enum { ANSWERS = REPORT_CODES_MAX + 10 };
    struct scripted_step steps[ANSWERS];
    struct report_worker report = {0};
    uint64_t sum = 0;
    for (int i = 0; i < ANSWERS; i++)
        steps[i] = (struct scripted_step){.status = 405 + i, .headers = "", .body = ""};
    struct scripted_server *server = scripted_server_start(steps, ANSWERS);
    begin();
    use_s3(scripted_server_url(server));
    ck_assert_int_eq(open_services(), 0);
    for (int i = 0; i < ANSWERS; i++)
        call_head("a");
    services_request_counts(&services, &report);
    ck_assert_uint_eq(report.request_count_used, REPORT_CODES_MAX);
    for (size_t i = 0; i < REPORT_CODES_MAX; i++)
        sum += report.request_counts[i].count;
    ck_assert_uint_eq(sum, ANSWERS);
    ck_assert_uint_eq(counted(&report, STORE_HEAD, 405), 1);
    end();
    scripted_server_stop(server);
}
END_TEST

START_TEST(what_can_not_be_opened_leaves_nothing_open)
{
    begin();
    set(&environment, "QUEEN_S3_ENDPOINT", "file:///proc/none");
    ck_assert_int_ne(open_services(), 0);
    ck_assert_ptr_null(services.queen);
    ck_assert_ptr_null(services.store);
    ck_assert_str_ne(error.message, "");
    end();
}
END_TEST

int main(void)
{
    Suite *all = suite_create("services");
    TCase *cases = tcase_create("services");
    tcase_add_test(cases, a_file_endpoint_is_a_directory);
    tcase_add_test(cases, any_other_is_s3_and_no_answer_counts_as_0);
    tcase_add_test(cases, more_codes_than_a_report_holds_are_still_counted);
    tcase_add_test(cases, what_can_not_be_opened_leaves_nothing_open);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
