/*
 * Budgets by a clock that the test turns, and lines through real pipes whose other end the test holds.
 */
#include "supervisor/log_forward.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

static struct log_forward forward;
static struct log_source source;
static struct log_source other;
static struct mono_ms now;
static int output;
static char last[8192];
static int taken;
static int told;

static void take(void *argument, enum log_level level, const char *line)
{
    (void)argument;
    (void)level;
    taken++;
    told += strstr(line, "were left out") != NULL;
    (void)snprintf(last, sizeof last, "%s", line);
}

static void begin(void)
{
    struct error error;

    now.v = 5000000;
    taken = 0;
    told = 0;
    last[0] = '\0';
    log_configure(LOG_INFO, false);
    log_capture(take, NULL);
    log_forward_init(&forward);
    forward.pooled = false;
    log_source_init(&source, &forward, "worker 0");
    log_source_init(&other, &forward, "worker 1");
    ck_assert_int_eq(log_source_open(&source, &output, &error), 0);
}

static void end(void)
{
    log_source_close(&source, now);
    if (output >= 0) {
        (void)close(output);
    }
    log_capture(NULL, NULL);
}

static void say(const char *text)
{
    ck_assert_int_eq(write(output, text, strlen(text)), (ssize_t)strlen(text));
    log_source_read(&source, now);
}

static void say_lines(int count)
{
    char line[32];

    for (int i = 0; i < count; i++) {
        (void)snprintf(line, sizeof line, "line %d\n", i);
        say(line);
    }
}

/* ---- the budget alone ---- */

START_TEST(no_window_of_ten_seconds_holds_more_than_its_lines)
{
    static const int64_t steps[] = {0, 1, 7, 33, 49, 50, 51, 333};
    static int64_t passed[100000];

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct log_budget budget = {0};
        size_t count = 0;

        for (int line = 0; line < 100000 && now.v < 5000000 + 100000; line++, now.v += steps[i]) {
            if (log_budget_open(&budget, now)) {
                log_budget_take(&budget, now);
                passed[count++] = now.v;
            }
        }
        for (size_t line = LOG_BUDGET_LINES; line < count; line++) {
            ck_assert_int_ge(passed[line] - passed[line - LOG_BUDGET_LINES], LOG_BUDGET_MS);
        }
        ck_assert_uint_ge(count, LOG_BUDGET_LINES);
        if (steps[i] >= 50) {
            ck_assert_uint_eq(count, (size_t)((100000 + steps[i] - 1) / steps[i])); /* not one is refused */
        } else if (steps[i] > 0) {
            ck_assert_uint_ge(count, LOG_BUDGET_LINES * 5); /* at least every other window is used */
        }
        now.v = 5000000;
    }
}
END_TEST

START_TEST(a_spent_budget_opens_when_half_of_it_is_free)
{
    struct log_budget budget = {0};

    for (int i = 0; i < LOG_BUDGET_LINES; i++, now.v += 10) {
        ck_assert(log_budget_open(&budget, now));
        log_budget_take(&budget, now);
    }
    ck_assert(!log_budget_open(&budget, now));
    ck_assert_int_eq(log_budget_reopens(&budget).v, 5000000 + 990 + LOG_BUDGET_MS);
    now.v = log_budget_reopens(&budget).v - 1;
    ck_assert(!log_budget_open(&budget, now));
    now.v++;
    for (int i = 0; i < LOG_BUDGET_LINES / 2; i++) {
        ck_assert(log_budget_open(&budget, now));
        log_budget_take(&budget, now);
    }
    ck_assert(!log_budget_open(&budget, now));
}
END_TEST

/* ---- a source ---- */

START_TEST(a_line_of_the_log_stays_as_it_is_and_any_other_is_named)
{
    say("2026-09-04T10:05:07.412Z info  orders: window 12\n");
    ck_assert_str_eq(last, "2026-09-04T10:05:07.412Z info  orders: window 12");
    say("free(): inva");
    ck_assert_int_eq(taken, 1);
    say("lid \x1b[31mpointer\x1b[0m\n");
    ck_assert_str_eq(last + strlen("2026-09-04T10:05:07.412Z "), "warn  worker 0: free(): invalid pointer");
    log_configure(LOG_INFO, true);
    say("{\"ts\":\"2026-09-04T10:05:07.412Z\",\"level\":\"info\",\"message\":\"x\"}\n");
    ck_assert_str_eq(last, "{\"ts\":\"2026-09-04T10:05:07.412Z\",\"level\":\"info\",\"message\":\"x\"}");
    say("2026-09-04T10:05:07.412Z info  \"text\"\n");
    ck_assert_ptr_nonnull(strstr(last, "\"level\":\"warn\",\"message\":\"worker 0: 2026-09-04T10:05:07.412Z info  "
                                       "\\\"text\\\"\"}"));
}
END_TEST

START_TEST(what_is_left_out_is_counted_and_told_when_there_is_room)
{
    struct mono_ms deadline;

    say_lines(LOG_BUDGET_LINES);
    ck_assert(!log_source_deadline(&source, &deadline));
    say_lines(55);
    ck_assert_int_eq(taken, LOG_BUDGET_LINES);
    ck_assert(log_source_deadline(&source, &deadline));
    ck_assert_int_eq(deadline.v, now.v + LOG_BUDGET_MS);
    now.v = deadline.v - 1;
    log_source_tick(&source, now);
    ck_assert_int_eq(taken, LOG_BUDGET_LINES);
    now = deadline;
    log_source_tick(&source, now);
    ck_assert_int_eq(taken, LOG_BUDGET_LINES + 1);
    ck_assert_ptr_nonnull(strstr(last, "warn  worker 0: 55 lines were left out, more than 200 in 10 s"));
    say_lines(LOG_BUDGET_LINES); /* the telling was a line too */
    ck_assert_int_eq(taken, 2 * LOG_BUDGET_LINES);
    log_source_finish(&source);
    ck_assert_ptr_nonnull(strstr(last, "worker 0: 1 lines were left out"));
    ck_assert(!log_source_deadline(&source, &deadline));
}
END_TEST

START_TEST(into_a_pipe_the_pool_has_one_budget_with_the_supervisors_own_lines)
{
    struct error error;
    struct mono_ms deadline;
    int before = output;

    forward.pooled = true;
    say_lines(120);
    for (int i = 0; i < 30; i++) {
        log_line(LOG_INFO, NULL, "the supervisor's own");
    }
    ck_assert_int_eq(log_source_open(&other, &output, &error), 0);
    for (int i = 0; i < 80; i++) {
        ck_assert_int_eq(write(output, "text\n", 5), 5);
    }
    log_source_read(&other, now);
    ck_assert_int_eq(taken, LOG_BUDGET_LINES);
    log_line(LOG_ERROR, NULL, "the supervisor is never silenced");
    ck_assert_int_eq(taken, LOG_BUDGET_LINES + 1);
    ck_assert(log_source_deadline(&other, &deadline));
    now = deadline;
    log_source_tick(&other, now);
    ck_assert_ptr_nonnull(strstr(last, "worker 1: 30 lines were left out"));
    ck_assert_int_eq(told, 1);
    (void)close(output);
    log_source_read(&other, now);
    ck_assert_int_eq(other.descriptor, -1);
    output = before;
}
END_TEST

START_TEST(last_words_without_a_line_feed_are_heard_also_while_another_holds_the_pipe)
{
    ck_assert_int_eq(write(output, "a\nlast wor", 10), 10);
    if (_i == 0) {
        (void)close(output);
        output = -1;
    }
    log_source_close(&source, now);
    ck_assert_int_eq(source.descriptor, -1);
    ck_assert_int_eq(taken, 2);
    ck_assert_ptr_nonnull(strstr(last, "worker 0: last wor"));
}
END_TEST

START_TEST(who_writes_never_waits_for_a_supervisor_that_does_not_read)
{
    char bytes[4096];
    ssize_t written = 0;
    int count = 0;

    memset(bytes, 'x', sizeof bytes);
    ck_assert_int_ne(fcntl(output, F_GETFL) & O_NONBLOCK, 0);
    while (written >= 0 && count < 1000) {
        written = write(output, bytes, sizeof bytes);
        count++;
    }
    ck_assert_int_eq(written, -1);
    ck_assert_int_lt(count, 1000);
}
END_TEST

START_TEST(one_that_never_stops_does_not_keep_the_loop)
{
    char bytes[4096];

    memset(bytes, '\n', sizeof bytes);
    (void)fcntl(output, F_SETPIPE_SZ, 1048576);
    while (write(output, bytes, sizeof bytes) > 0) {
        /* full */
    }
    log_source_read(&source, now);
    ck_assert_int_ge(source.descriptor, 0);
    if (fcntl(output, F_GETPIPE_SZ) >= 1048576) {
        ck_assert_int_gt(read(source.descriptor, bytes, sizeof bytes), 0); /* some is left for the next turn */
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_forward");
    TCase *tests = tcase_create("lines");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, no_window_of_ten_seconds_holds_more_than_its_lines);
    tcase_add_test(tests, a_spent_budget_opens_when_half_of_it_is_free);
    tcase_add_test(tests, a_line_of_the_log_stays_as_it_is_and_any_other_is_named);
    tcase_add_test(tests, what_is_left_out_is_counted_and_told_when_there_is_room);
    tcase_add_test(tests, into_a_pipe_the_pool_has_one_budget_with_the_supervisors_own_lines);
    tcase_add_loop_test(tests, last_words_without_a_line_feed_are_heard_also_while_another_holds_the_pipe, 0, 2);
    tcase_add_test(tests, who_writes_never_waits_for_a_supervisor_that_does_not_read);
    tcase_add_test(tests, one_that_never_stops_does_not_keep_the_loop);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
