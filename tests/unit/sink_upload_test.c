/*
 * The connector's bucket and its uploads: attempts, delays, what ends them, the words of its errors, and that what is
 * signed follows the credentials.
 */
#include "worker/connector/upload.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/scripted_server.h"

static struct reactor *reactor;
static struct scripted_server *server;
static struct sink_bucket *bucket;
static struct sink_options options;
static struct sink_body content;
static struct object_body body;
static struct error error;

static struct {
    int calls;
    struct error error;
    int again;
    int64_t delay_ms;
} outcome;

static const char *no_variables(void *argument, const char *name)
{
    (void)argument;
    (void)name;
    return NULL;
}

static void set_up(const struct scripted_step *steps, size_t count)
{
    char json[512];

    memset(&outcome, 0, sizeof outcome);
    server = scripted_server_start(steps, count);
    snprintf(json, sizeof json,
             "{\"bucket\":\"b\",\"region\":\"eu-central-1\",\"endpoint\":\"%s\",\"access_key_id\":\"AK\","
             "\"secret_access_key\":\"SK\"}",
             scripted_server_url(server));
    ck_assert_int_eq(sink_options_parse(json, strlen(json), &options, &error), SINK_ACCEPTED);
    reactor = reactor_create(&error);
    bucket = sink_bucket_open(reactor, &options, no_variables, NULL, &error);
    ck_assert_ptr_nonnull(bucket);
    ck_assert(sink_body_add(&content, "hello", 5));
    ck_assert(sink_bucket_body(&options, &content, &body));
}

static void tear_down(void)
{
    sink_bucket_close(bucket);
    reactor_destroy(reactor);
    scripted_server_stop(server);
    sink_options_free(&options);
    sink_body_clear(&content);
}

static void on_done(void *argument, const struct error *told)
{
    ck_assert_ptr_eq(argument, &outcome);
    outcome.calls++;
    outcome.error = *told;
}

static void on_again(void *argument, const struct error *told, uint32_t attempt, int64_t delay_ms)
{
    ck_assert_ptr_eq(argument, &outcome);
    ck_assert_int_ne(told->code, QS_OK);
    ck_assert_ptr_null(strstr(told->message, " k: "));
    ck_assert_int_eq((int)attempt, ++outcome.again);
    outcome.delay_ms = delay_ms;
}

static struct sink_upload *start(uint32_t max_attempts, int64_t second_delay_ms)
{
    struct sink_upload_options upload = {.key = "k",
                                         .content_type = "text/plain",
                                         .body = &body,
                                         .max_attempts = max_attempts,
                                         .second_delay_ms = second_delay_ms};
    return sink_upload_start(reactor, bucket, &upload, on_again, on_done, &outcome);
}

static void run_until_done(void)
{
    for (int i = 0; i < 3000 && outcome.calls == 0; i++) {
        reactor_run_once(reactor, 10);
    }
    ck_assert_int_eq(outcome.calls, 1);
}

static const struct scripted_step good = {.status = 200};
static const struct scripted_step busy = {.status = 503};

START_TEST(passing_answers_are_tried_again)
{
    const struct scripted_step steps[] = {{.status = 503, .end = SCRIPTED_CLOSE}, {.end = SCRIPTED_CLOSE}, good};
    set_up(steps, 3);
    start(3, 1);
    run_until_done();
    ck_assert_int_eq(outcome.error.code, QS_OK);
    ck_assert_int_eq(outcome.again, 2);
    struct scripted_request last = scripted_server_request(server, 2);
    ck_assert_int_eq(strncmp(last.head, "PUT /b/k ", 9), 0);
    ck_assert_uint_eq(last.body_size, 5);
    ck_assert(scripted_request_has(&last, "content-type: text/plain"));
    ck_assert(scripted_request_has(&last, "content-md5: XUFAKrxLKna5cZ2REBfFkg=="));
    tear_down();
}
END_TEST

START_TEST(a_removal_is_tried_again_too)
{
    const struct scripted_step steps[] = {busy, {.status = 204}};
    set_up(steps, 2);
    struct sink_upload_options removal = {.key = "k", .max_attempts = 2, .second_delay_ms = 1};
    sink_upload_start(reactor, bucket, &removal, on_again, on_done, &outcome);
    run_until_done();
    ck_assert_int_eq(outcome.error.code, QS_OK);
    ck_assert_int_eq(outcome.again, 1);
    struct scripted_request last = scripted_server_request(server, 1);
    ck_assert_int_eq(strncmp(last.head, "DELETE /b/k ", 12), 0);
    tear_down();
}
END_TEST

START_TEST(a_removal_says_that_it_was_one)
{
    const struct scripted_step steps[] = {busy};
    set_up(steps, 1);
    struct sink_upload_options removal = {.key = "k", .max_attempts = 1, .second_delay_ms = 1};
    sink_upload_start(reactor, bucket, &removal, on_again, on_done, &outcome);
    run_until_done();
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "S3 DeleteObject failed, attempt 1: delete: 503"));
    tear_down();
}
END_TEST

START_TEST(attempts_end)
{
    const struct scripted_step steps[] = {busy, busy, good};
    set_up(steps, 3);
    start(2, 1);
    run_until_done();
    ck_assert_int_eq(outcome.error.code, QS_ERROR_STATUS);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "S3 PutObject failed, attempt 2: put: 503"));
    ck_assert_uint_eq(scripted_server_requests(server), 2);
    tear_down();
}
END_TEST

START_TEST(other_answers_end_it_at_once)
{
    const struct scripted_step steps[] = {{.status = 403}};
    set_up(steps, 1);
    start(9, 1);
    run_until_done();
    ck_assert_int_eq(outcome.error.code, QS_ERROR_FORBIDDEN);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "S3 PutObject returned non-retriable status 403: put: 403"));
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "access_key_id"));
    ck_assert_ptr_null(strstr(outcome.error.message, "QUEEN_S3"));
    ck_assert_int_eq(outcome.again, 0);
    tear_down();
}
END_TEST

START_TEST(for_ever_is_whatever_the_answer)
{
    const struct scripted_step steps[] = {{.status = 403}, {.status = 400}, {.status = 404}, busy, good};
    set_up(steps, 5);
    start(0, 1);
    run_until_done();
    ck_assert_int_eq(outcome.error.code, QS_OK);
    ck_assert_int_eq(outcome.again, 4);
    tear_down();
}
END_TEST

START_TEST(a_delay_can_be_cut_short)
{
    const struct scripted_step steps[] = {busy, good};
    set_up(steps, 2);
    struct sink_upload *upload = start(5, 50000);
    for (int i = 0; i < 3000 && outcome.again == 0; i++) {
        reactor_run_once(reactor, 10);
    }
    ck_assert_int_eq(outcome.calls, 0);
    sink_upload_last(upload);
    ck_assert_int_eq(outcome.calls, 1);
    ck_assert(outcome.error.retriable);
    ck_assert_uint_eq(scripted_server_requests(server), 1);
    tear_down();
}
END_TEST

START_TEST(the_attempt_under_way_can_be_the_last)
{
    const struct scripted_step steps[] = {busy, good};
    set_up(steps, 2);
    sink_upload_last(start(5, 1));
    run_until_done();
    ck_assert_int_eq(outcome.error.code, QS_ERROR_STATUS);
    ck_assert_uint_eq(scripted_server_requests(server), 1);
    tear_down();
}
END_TEST

START_TEST(a_cancelled_upload_says_nothing)
{
    const struct scripted_step steps[] = {{.status = 200, .body = "slow", .hold = true}};
    set_up(steps, 1);
    struct sink_upload *upload = start(5, 1);
    for (int i = 0; i < 3000 && scripted_server_requests(server) == 0; i++) {
        reactor_run_once(reactor, 10);
    }
    sink_upload_cancel(upload);
    scripted_server_release(server);
    ck_assert_int_eq(outcome.calls, 0);
    tear_down();
}
END_TEST

START_TEST(delays_double_with_jitter_up_to_a_minute)
{
    ck_assert_int_eq(sink_upload_delay(0, 2, 12345), 0);
    for (uint64_t random = 0; random < 1000; random += 7) {
        int64_t second = sink_upload_delay(2000, 2, random);
        int64_t third = sink_upload_delay(2000, 3, random);
        int64_t far = sink_upload_delay(2000, 4000000000u, random);
        ck_assert(second >= 1600 && second <= 2400);
        ck_assert(third >= 3200 && third <= 4800);
        ck_assert(far >= 48000 && far <= SINK_DELAY_CAP_MS);
    }
    ck_assert_int_eq(sink_upload_delay(2000, 2, 0), 1600);
    ck_assert_int_eq(sink_upload_delay(2000, 2, 800), 2400);
    ck_assert(sink_upload_delay(INT64_MAX, 2, 5) <= SINK_DELAY_CAP_MS);
}
END_TEST

START_TEST(errors_speak_of_the_options)
{
    error_set(&error, QS_ERROR_REFUSED, "check QUEEN_S3_SECRET_KEY, QUEEN_S3_REGION and QUEEN_S3_REGION again");
    sink_error_reword(&error);
    ck_assert_str_eq(error.message, "check secret_access_key, region and region again");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sink_upload");
    TCase *test = tcase_create("upload");
    tcase_add_test(test, passing_answers_are_tried_again);
    tcase_add_test(test, a_removal_is_tried_again_too);
    tcase_add_test(test, a_removal_says_that_it_was_one);
    tcase_add_test(test, attempts_end);
    tcase_add_test(test, other_answers_end_it_at_once);
    tcase_add_test(test, for_ever_is_whatever_the_answer);
    tcase_add_test(test, a_delay_can_be_cut_short);
    tcase_add_test(test, the_attempt_under_way_can_be_the_last);
    tcase_add_test(test, a_cancelled_upload_says_nothing);
    tcase_add_test(test, delays_double_with_jitter_up_to_a_minute);
    tcase_add_test(test, errors_speak_of_the_options);
    tcase_set_timeout(test, 60);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
