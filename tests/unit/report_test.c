/*
 * Frames through a real socket pair: in pieces, in order, at every cut, and broken ones.
 */
#include "common/report.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int pair[2];
static struct report_buffer out;
static struct report_buffer in;

static void open_pair(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    memset(&out, 0, sizeof out);
    memset(&in, 0, sizeof in);
}

static void close_pair(void)
{
    (void)close(pair[0]);
    (void)close(pair[1]);
    report_buffer_free(&out);
    report_buffer_free(&in);
}

static int append_assign(struct report_buffer *buffer, uint32_t queue, const char *name)
{
    struct report_assign assign = {.queue = queue, .from_log_start = 1, .name_size = (uint32_t)strlen(name)};

    return report_append(buffer, REPORT_ASSIGN, &assign, sizeof assign, name, strlen(name));
}

static void expect_assign(uint32_t queue, const char *name)
{
    struct report_header header;
    const void *body = NULL;
    const struct report_assign *assign;

    ck_assert_int_eq(report_next(&in, &header, &body), 1);
    ck_assert_uint_eq(header.kind, REPORT_ASSIGN);
    ck_assert_uint_eq((uintptr_t)body % _Alignof(struct report_queue), 0);
    assign = body;
    ck_assert_uint_eq(assign->queue, queue);
    ck_assert_uint_eq(assign->name_size, strlen(name));
    ck_assert_mem_eq((const char *)body + sizeof *assign, name, strlen(name));
}

START_TEST(every_kind_arrives)
{
    struct report_queue queue = {.queue = 7, .windows_committed = 3, .end_us = -1, .error = "no", .holder = "b"};
    struct report_worker worker = {.buffer_bytes = 5, .has_safe_time = true, .window_bytes_sum = 1.5};
    struct report_share share = {.budget_bytes = UINT64_MAX};
    struct report_header header;
    const void *body = NULL;

    ck_assert_int_eq(append_assign(&out, 1, "a"), 0);
    ck_assert_int_eq(report_append(&out, REPORT_QUEUE, &queue, sizeof queue, NULL, 0), 0);
    ck_assert_int_eq(report_append(&out, REPORT_WORKER, &worker, sizeof worker, NULL, 0), 0);
    ck_assert_int_eq(report_append(&out, REPORT_SHARE, &share, sizeof share, NULL, 0), 0);
    ck_assert_int_eq(report_flush(&out, pair[0]), 1);
    ck_assert_int_eq(report_fill(&in, pair[1]), 1);
    expect_assign(1, "a");
    ck_assert_int_eq(report_next(&in, &header, &body), 1);
    ck_assert_mem_eq(body, &queue, sizeof queue);
    ck_assert_int_eq(report_next(&in, &header, &body), 1);
    ck_assert_mem_eq(body, &worker, sizeof worker);
    ck_assert_int_eq(report_next(&in, &header, &body), 1);
    ck_assert_mem_eq(body, &share, sizeof share);
    ck_assert_int_eq(report_next(&in, &header, &body), 0);
    ck_assert_int_eq(report_fill(&in, pair[1]), 0);
}
END_TEST

START_TEST(a_stream_cut_at_any_byte_gives_the_same_frames)
{
    ck_assert_int_eq(append_assign(&out, 1, "orders"), 0);
    ck_assert_int_eq(append_assign(&out, 2, ""), 0);
    ck_assert_int_eq(append_assign(&out, 3, "12345678"), 0);
    for (size_t cut = 0; cut <= out.end; cut++) {
        ck_assert_int_eq(send(pair[0], out.bytes, cut, 0), (ssize_t)cut);
        if (cut > 0) {
            ck_assert_int_eq(report_fill(&in, pair[1]), 1);
        }
        ck_assert_int_eq(send(pair[0], out.bytes + cut, out.end - cut, 0), (ssize_t)(out.end - cut));
        if (cut == out.end) {
            ck_assert_int_eq(report_fill(&in, pair[1]), 0);
        } else {
            ck_assert_int_eq(report_fill(&in, pair[1]), 1);
        }
        expect_assign(1, "orders");
        expect_assign(2, "");
        expect_assign(3, "12345678");
    }
}
END_TEST

START_TEST(a_full_socket_keeps_the_rest)
{
    uint32_t appended = 0;
    uint32_t taken = 0;
    int flushed = 1;

    while (flushed == 1) {
        ck_assert_int_eq(append_assign(&out, appended, "a queue with a name of some length"), 0);
        appended++;
        flushed = report_flush(&out, pair[0]);
    }
    ck_assert_int_eq(flushed, 0);
    for (int more = 0; more < 1000; more++) {
        ck_assert_int_eq(append_assign(&out, appended, "a queue with a name of some length"), 0);
        appended++;
    }
    while (taken < appended) {
        struct report_header header;
        const void *body = NULL;
        int next = report_next(&in, &header, &body);

        ck_assert_int_ge(next, 0);
        if (next == 1) {
            ck_assert_uint_eq(((const struct report_assign *)body)->queue, taken);
            taken++;
        } else {
            ck_assert_int_ge(report_flush(&out, pair[0]), 0);
            ck_assert_int_eq(report_fill(&in, pair[1]), 1);
        }
    }
}
END_TEST

START_TEST(the_end_is_told_after_the_last_frame)
{
    ck_assert_int_eq(append_assign(&out, 9, "last words"), 0);
    ck_assert_int_eq(report_flush(&out, pair[0]), 1);
    ck_assert_int_eq(shutdown(pair[0], SHUT_WR), 0);
    ck_assert_int_eq(report_fill(&in, pair[1]), 1);
    ck_assert_int_eq(report_fill(&in, pair[1]), QS_ERROR_SYSTEM);
    expect_assign(9, "last words");
}
END_TEST

START_TEST(a_gone_reader_is_an_error_and_no_signal)
{
    ck_assert_int_eq(shutdown(pair[1], SHUT_RDWR), 0);
    ck_assert_int_eq(append_assign(&out, 9, "to no one"), 0);
    ck_assert_int_eq(report_flush(&out, pair[0]), QS_ERROR_SYSTEM);
}
END_TEST

static int next_of(const struct report_header *sent, const void *body, size_t size)
{
    struct report_header header;
    const void *got = NULL;

    ck_assert_int_eq(send(pair[0], sent, sizeof *sent, 0), (ssize_t)sizeof *sent);
    if (size > 0) {
        ck_assert_int_eq(send(pair[0], body, size, 0), (ssize_t)size);
    }
    ck_assert_int_eq(report_fill(&in, pair[1]), 1);
    return report_next(&in, &header, &got);
}

START_TEST(what_is_no_frame_is_refused)
{
    struct report_assign assign = {.queue = 1, .name_size = 9};
    struct {
        struct report_assign assign;
        char name[4];
    } short_name = {assign, "abc"};

    ck_assert_int_eq(next_of(&(struct report_header){0, 0}, NULL, 0), QS_ERROR_BODY);
    report_buffer_free(&in);
    ck_assert_int_eq(next_of(&(struct report_header){99, 8}, NULL, 0), QS_ERROR_BODY);
    report_buffer_free(&in);
    ck_assert_int_eq(next_of(&(struct report_header){REPORT_QUEUE, 8}, NULL, 0), QS_ERROR_BODY);
    report_buffer_free(&in);
    ck_assert_int_eq(next_of(&(struct report_header){REPORT_ASSIGN, UINT32_MAX}, NULL, 0), QS_ERROR_BODY);
    report_buffer_free(&in);
    ck_assert_int_eq(next_of(&(struct report_header){REPORT_ASSIGN, 16}, &short_name, 16), QS_ERROR_BODY);
}
END_TEST

START_TEST(a_body_above_the_limit_is_refused)
{
    static char large[REPORT_SIZE_MAX + 1];
    struct report_assign assign = {.name_size = REPORT_SIZE_MAX - sizeof assign};
    struct report_header header;
    const void *body = NULL;
    int next = 0;

    ck_assert_int_eq(report_append(&out, REPORT_ASSIGN, large, sizeof large, NULL, 0), QS_ERROR_INPUT);
    ck_assert_int_eq(report_append(&out, REPORT_ASSIGN, &assign, sizeof assign, large, REPORT_SIZE_MAX),
                     QS_ERROR_INPUT);
    ck_assert_uint_eq(out.end, 0);
    ck_assert_int_eq(report_append(&out, REPORT_ASSIGN, &assign, sizeof assign, large, assign.name_size), 0);
    while (next == 0) {
        ck_assert_int_ge(report_flush(&out, pair[0]), 0);
        ck_assert_int_eq(report_fill(&in, pair[1]), 1);
        next = report_next(&in, &header, &body);
    }
    ck_assert_int_eq(next, 1);
    ck_assert_uint_eq(header.size, REPORT_SIZE_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report");
    TCase *tests = tcase_create("frames");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, open_pair, close_pair);
    tcase_add_test(tests, every_kind_arrives);
    tcase_add_test(tests, a_stream_cut_at_any_byte_gives_the_same_frames);
    tcase_add_test(tests, a_full_socket_keeps_the_rest);
    tcase_add_test(tests, the_end_is_told_after_the_last_frame);
    tcase_add_test(tests, a_gone_reader_is_an_error_and_no_signal);
    tcase_add_test(tests, what_is_no_frame_is_refused);
    tcase_add_test(tests, a_body_above_the_limit_is_refused);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
