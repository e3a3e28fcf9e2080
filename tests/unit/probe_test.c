/*
 * The boot probes (spec 3.2), against a broker and a bucket that play a script.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environments.h"
#include "folders.h"
#include "scripted_server.h"
#include "worker/worker.h"

#define CLOCK                                                                                                 \
    {                                                                                                         \
        .status = 200, .headers = "", .body = "{\"safeTime\":\"2026-09-04T10:04:57.412331Z\",\"entries\":[]}" \
    }
#define QUEUES                                                                                              \
    {                                                                                                       \
        .status = 200, .headers = "", .body = "{\"queues\":[{\"name\":\"orders\"},{\"name\":\"cl/icks\"}]}" \
    }
#define FAULT(code) "<Error><Code>" code "</Code><Message>m</Message></Error>"
#define LISTING                                                                                                       \
    {                                                                                                                 \
        .status = 200, .headers = "", .body = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>" \
    }

static struct scripted_server *broker;
static struct scripted_server *bucket;
static struct settings settings;
static char **names;
static size_t name_count;
static struct error error;
static char broker_url[128];
static char bucket_url[128];

static void start_broker(const struct scripted_step *steps, size_t count)
{
    broker = scripted_server_start(steps, count);
    snprintf(broker_url, sizeof broker_url, "%s", scripted_server_url(broker));
}

/* A bucket whose answers are these; all queues or two named ones. */
static int probe_s3(const struct scripted_step *steps, size_t count, const char *queues)
{
    struct environment environment = least;
    bucket = scripted_server_start(steps, count);
    snprintf(bucket_url, sizeof bucket_url, "%s", scripted_server_url(bucket));
    set(&environment, "QUEEN_URL", broker_url);
    set(&environment, "QUEEN_TOKEN", "secret-token");
    set(&environment, "QUEEN_S3_ENDPOINT", bucket_url);
    set(&environment, "QUEEN_S3_PATH_STYLE", "true");
    set(&environment, "QUEEN_S3_QUEUES", queues);
    settings = must_read(&environment);
    return worker_probe(&settings, &names, &name_count, &error);
}

static void end(void)
{
    for (size_t i = 0; i < name_count; i++)
        free(names[i]);
    free(names);
    names = NULL;
    name_count = 0;
    settings_free(&settings);
    if (broker != NULL)
        scripted_server_stop(broker);
    if (bucket != NULL)
        scripted_server_stop(bucket);
    broker = bucket = NULL;
}

static void check_says(const char *text)
{
    ck_assert_msg(strstr(error.message, text) != NULL, "\"%s\" doesn't say \"%s\"", error.message, text);
    ck_assert_ptr_null(strstr(error.message, "secret-token"));
    ck_assert_ptr_null(strstr(error.message, "hidden"));
}

static void check_request(struct scripted_server *server, size_t index, const char *start)
{
    struct scripted_request request = scripted_server_request(server, index);
    ck_assert_msg(strncmp(request.head, start, strlen(start)) == 0, "not %s: %s", start, request.head);
}

/* ---- the broker ---- */

START_TEST(an_empty_page_call_then_a_head_of_the_prefix)
{
    const struct scripted_step clock[] = {CLOCK};
    const struct scripted_step head[] = {{.status = 404, .headers = "", .body = ""}};
    start_broker(clock, 1);
    ck_assert_int_eq(probe_s3(head, 1, "orders"), 0);
    ck_assert_uint_eq(scripted_server_requests(broker), 1);
    ck_assert_uint_eq(scripted_server_requests(bucket), 1);
    check_request(broker, 0, "POST /api/v1/partitions/changed ");
    check_request(bucket, 0, "HEAD /my-lake/queen/ ");
    ck_assert_uint_eq(name_count, 0);
    end();
}
END_TEST

START_TEST(a_broker_that_is_not_there_is_named_with_what_to_check)
{
    const struct scripted_step head[] = {{.status = 404, .headers = "", .body = ""}};
    snprintf(broker_url, sizeof broker_url, "http://127.0.0.1:1");
    ck_assert_int_eq(probe_s3(head, 1, "orders"), 3);
    check_says("http://127.0.0.1:1");
    check_says("QUEEN_URL");
    ck_assert_uint_eq(scripted_server_requests(bucket), 0);
    end();
}
END_TEST

START_TEST(no_status_of_the_broker_is_asked_for_twice)
{
    static const int statuses[] = {401, 403, 500, 503, 429};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const struct scripted_step answers[] = {{.status = statuses[i], .headers = "", .body = "{\"error\":\"no\"}"},
                                                CLOCK};
        const struct scripted_step head[] = {{.status = 404, .headers = "", .body = ""}};
        start_broker(answers, 2);
        ck_assert_int_eq(probe_s3(head, 1, "orders"), 3);
        check_says("QUEEN_TOKEN");
        ck_assert_uint_eq(scripted_server_requests(broker), 1);
        end();
    }
}
END_TEST

START_TEST(with_a_star_the_queues_are_listed_in_between)
{
    const struct scripted_step answers[] = {CLOCK, QUEUES};
    const struct scripted_step head[] = {{.status = 200, .headers = "", .body = ""}};
    start_broker(answers, 2);
    ck_assert_int_eq(probe_s3(head, 1, "*"), 0);
    check_request(broker, 1, "GET /api/v1/resources/queues?stats=cached ");
    ck_assert_uint_eq(name_count, 2);
    ck_assert_str_eq(names[0], "orders");
    ck_assert_str_eq(names[1], "cl/icks");
    end();
}
END_TEST

START_TEST(a_queue_list_that_is_refused_says_which_scope_it_needs)
{
    const struct scripted_step answers[] = {CLOCK, {.status = 403, .headers = "", .body = "{}"}};
    const struct scripted_step head[] = {{.status = 200, .headers = "", .body = ""}};
    start_broker(answers, 2);
    ck_assert_int_eq(probe_s3(head, 1, "*"), 3);
    check_says("read scope");
    ck_assert_uint_eq(scripted_server_requests(bucket), 0);
    end();
}
END_TEST

/* ---- the bucket ---- */

static int probe_bucket(const struct scripted_step *steps, size_t count)
{
    static const struct scripted_step clock[] = {CLOCK};
    start_broker(clock, 1);
    return probe_s3(steps, count, "orders");
}

START_TEST(a_head_of_200_or_404_passes)
{
    const struct scripted_step found[] = {{.status = 200, .headers = "", .body = ""}};
    const struct scripted_step missing[] = {{.status = 404, .headers = "", .body = ""}};
    ck_assert_int_eq(probe_bucket(found, 1), 0);
    end();
    ck_assert_int_eq(probe_bucket(missing, 1), 0);
    end();
}
END_TEST

START_TEST(a_403_is_asked_once_more_as_a_list)
{
    const struct scripted_step narrow[] = {{.status = 403, .headers = "", .body = ""}, LISTING};
    const struct scripted_step refused[] = {{.status = 403, .headers = "", .body = ""},
                                            {.status = 403, .headers = "", .body = FAULT("AccessDenied")}};
    ck_assert_int_eq(probe_bucket(narrow, 2), 0);
    check_request(bucket, 1, "GET /my-lake");
    ck_assert_ptr_nonnull(strstr(scripted_server_request(bucket, 1).head, "prefix=queen%2F"));
    end();
    ck_assert_int_eq(probe_bucket(refused, 2), 3);
    check_says("QUEEN_S3_ACCESS_KEY");
    check_says("403");
    end();
}
END_TEST

START_TEST(a_list_of_a_bucket_that_is_not_there_does_not_pass)
{
    const struct scripted_step missing[] = {{.status = 403, .headers = "", .body = ""},
                                            {.status = 404, .headers = "", .body = FAULT("NoSuchBucket")}};
    ck_assert_int_eq(probe_bucket(missing, 2), 3);
    check_says("NoSuchBucket");
    end();
}
END_TEST

START_TEST(a_redirect_names_the_region_to_set)
{
    const struct scripted_step moved[] = {{.status = 301, .headers = "x-amz-bucket-region: us-west-2\r\n", .body = ""}};
    ck_assert_int_eq(probe_bucket(moved, 1), 3);
    check_says("us-west-2");
    end();
}
END_TEST

START_TEST(anything_else_does_not_pass_and_is_not_asked_again)
{
    static const int statuses[] = {400, 500, 503};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const struct scripted_step answers[] = {{.status = statuses[i], .headers = "", .body = ""},
                                                {.status = 200, .headers = "", .body = ""}};
        char status[8];
        ck_assert_int_eq(probe_bucket(answers, 2), 3);
        snprintf(status, sizeof status, "%d", statuses[i]);
        check_says(status);
        check_says("my-lake");
        ck_assert_uint_eq(scripted_server_requests(bucket), 1);
        end();
    }
}
END_TEST

/* ---- a directory ---- */

static int probe_directory(const char *directory)
{
    static const struct scripted_step clock[] = {CLOCK};
    struct environment environment = {0};
    char endpoint[128];
    start_broker(clock, 1);
    snprintf(endpoint, sizeof endpoint, "file://%s", directory);
    set(&environment, "QUEEN_URL", broker_url);
    set(&environment, "QUEEN_S3_ENDPOINT", endpoint);
    set(&environment, "QUEEN_S3_QUEUES", "orders");
    set(&environment, "QUEEN_S3_BUCKET", "my-lake");
    settings = must_read(&environment);
    return worker_probe(&settings, &names, &name_count, &error);
}

START_TEST(of_a_directory_it_is_asked_that_it_can_be_made_and_written)
{
    char root[] = "/tmp/probe-test-XXXXXX";
    char lake[64];
    struct stat status;
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(probe_directory(root), 0);
    snprintf(lake, sizeof lake, "%s/my-lake", root);
    ck_assert_int_eq(stat(lake, &status), 0);
    end();
    folder_remove(root);
    ck_assert_int_eq(probe_directory("/proc/none"), 3);
    check_says("/proc/none");
    end();
}
END_TEST

int main(void)
{
    Suite *all = suite_create("probe");
    TCase *cases = tcase_create("broker");
    tcase_add_test(cases, an_empty_page_call_then_a_head_of_the_prefix);
    tcase_add_test(cases, a_broker_that_is_not_there_is_named_with_what_to_check);
    tcase_add_test(cases, no_status_of_the_broker_is_asked_for_twice);
    tcase_add_test(cases, with_a_star_the_queues_are_listed_in_between);
    tcase_add_test(cases, a_queue_list_that_is_refused_says_which_scope_it_needs);
    suite_add_tcase(all, cases);
    cases = tcase_create("bucket");
    tcase_add_test(cases, a_head_of_200_or_404_passes);
    tcase_add_test(cases, a_403_is_asked_once_more_as_a_list);
    tcase_add_test(cases, a_list_of_a_bucket_that_is_not_there_does_not_pass);
    tcase_add_test(cases, a_redirect_names_the_region_to_set);
    tcase_add_test(cases, anything_else_does_not_pass_and_is_not_asked_again);
    tcase_add_test(cases, of_a_directory_it_is_asked_that_it_can_be_made_and_written);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
