/*
 * A worker's link to the supervisor: worker/report_link.h. The other end is the test's.
 */
#include "worker/report_link.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHARE_BYTES 12345

static struct reactor *reactor;
static struct report_link tie;
static int ends[2]; /* the worker's, the supervisor's */
static struct report_buffer heard;
static size_t frames;
static size_t stops;

static void take(void *argument, const struct report_header *header, const void *body)
{
    struct report_share share;

    ck_assert_ptr_eq(argument, &frames);
    ck_assert_uint_eq(header->kind, REPORT_SHARE);
    memcpy(&share, body, sizeof share);
    ck_assert_uint_eq(share.budget_bytes, SHARE_BYTES);
    frames++;
}

static void stop(void *argument)
{
    ck_assert_ptr_eq(argument, &frames);
    stops++;
}

static const struct report_link_events events = {take, stop};

static void begin(void)
{
    struct error error;

    (void)signal(SIGPIPE, SIG_IGN);
    frames = 0;
    stops = 0;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    reactor = reactor_create(&error);
    ck_assert_msg(reactor != NULL, "%s", error.message);
    ck_assert_msg(report_link_open(&tie, reactor, ends[0], &events, &frames, &error) == 0, "%s", error.message);
}

static void end(void)
{
    report_link_close(&tie);
    reactor_destroy(reactor);
    report_buffer_free(&heard);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void send_share(void)
{
    struct report_buffer out = {0};
    const struct report_share share = {SHARE_BYTES};

    ck_assert_int_eq(report_append(&out, REPORT_SHARE, &share, sizeof share, NULL, 0), 0);
    ck_assert_int_eq(report_flush(&out, ends[1]), 1);
    report_buffer_free(&out);
}

static void add_report(void)
{
    const struct report_worker report = {.buffer_bytes = 1};

    ck_assert_int_eq(report_link_add(&tie, REPORT_WORKER, &report, sizeof report), 0);
}

/* Reads what is there, as the supervisor does; how many frames have come whole. */
static size_t hear(void)
{
    struct report_header header;
    const void *body;
    size_t count = 0;

    while (report_fill(&heard, ends[1]) == 1) {
        while (report_next(&heard, &header, &body) == 1) {
            ck_assert_uint_eq(header.kind, REPORT_WORKER);
            count++;
        }
    }
    return count;
}

START_TEST(frames_come_in)
{
    send_share();
    send_share();
    while (frames < 2) {
        reactor_run_once(reactor, -1);
    }
    ck_assert(!tie.gone);
}
END_TEST

START_TEST(what_nobody_takes_is_passed_over)
{
    static const struct report_link_events deaf = {NULL, stop};

    tie.events = &deaf;
    send_share();
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    while (stops == 0) {
        reactor_run_once(reactor, -1);
    }
    ck_assert(!tie.gone);
    ck_assert_uint_eq(frames, 0);
}
END_TEST

START_TEST(sigterm_is_a_stop)
{
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    while (stops == 0) {
        reactor_run_once(reactor, -1);
    }
    ck_assert_uint_eq(stops, 1);
}
END_TEST

START_TEST(reports_go_out_and_what_finds_no_room_follows)
{
    size_t added = 0;
    size_t came;

    while (report_link_is_read(&tie)) {
        add_report();
        added++;
        report_link_flush(&tie);
    }
    came = hear();
    ck_assert_uint_lt(came, added);
    report_link_finish(&tie);
    ck_assert(report_link_is_read(&tie));
    ck_assert_uint_eq(came + hear(), added);
}
END_TEST

START_TEST(a_supervisor_that_is_gone_is_seen)
{
    ck_assert_int_eq(shutdown(ends[1], SHUT_RDWR), 0);
    while (!tie.gone) {
        reactor_run_once(reactor, -1);
    }
    add_report();
    report_link_finish(&tie);
}
END_TEST

START_TEST(a_link_that_was_never_opened_can_be_closed)
{
    struct report_link none = {0};

    report_link_close(&none);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_link");
    TCase *tests = tcase_create("report_link");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, frames_come_in);
    tcase_add_test(tests, what_nobody_takes_is_passed_over);
    tcase_add_test(tests, sigterm_is_a_stop);
    tcase_add_test(tests, reports_go_out_and_what_finds_no_room_follows);
    tcase_add_test(tests, a_supervisor_that_is_gone_is_seen);
    tcase_add_test(tests, a_link_that_was_never_opened_can_be_closed);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
