/*
 * What SIGUSR1 gets to hear of many queues.
 */
#include "worker/state_lines.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/report.h"

static char said[4096];

static void take_line(void *argument, enum log_level level, const char *line)
{
    size_t size = strlen(said);

    (void)argument;
    ck_assert_int_eq(level, LOG_INFO);
    (void)snprintf(said + size, sizeof said - size, "%s\n", line + strlen("0000-00-00T00:00:00.000Z info  "));
}

static void begin(void)
{
    said[0] = '\0';
    log_configure(LOG_ERROR, false);
    log_capture(take_line, NULL);
}

START_TEST(what_somebody_has_to_look_at_comes_first)
{
    struct state_line lines[] = {
        {"well", QUEUE_RUNNING, .k = 3, .buffer_bytes = 5, .lag_us = 1000},
        {"behind", QUEUE_RUNNING, .k = 9, .lag_us = 7500000},
        {"begins", QUEUE_RECOVERING, .k = -1, .lag_us = -1},
        {"also well", QUEUE_RUNNING, .k = 3, .lag_us = 1000},
        {"fails", QUEUE_RUNNING, .failing = true, .k = 4, .lag_us = 2000},
        {"stopped", QUEUE_STOPPED, .k = 1, .lag_us = 1000},
    };

    state_lines_say(lines, 6, 6);
    ck_assert_str_eq(said, "fails: running, window 4, 0 bytes buffered, lag 0.002 s\n"
                           "stopped: stopped, window 1, 0 bytes buffered, lag 0.001 s\n"
                           "begins: recovering, window none, 0 bytes buffered, lag unknown\n"
                           "behind: running, window 9, 0 bytes buffered, lag 7.500 s\n"
                           "also well: running, window 3, 0 bytes buffered, lag 0.001 s\n"
                           "well: running, window 3, 5 bytes buffered, lag 0.001 s\n");
}
END_TEST

START_TEST(what_there_is_no_room_for_is_counted)
{
    struct state_line lines[] = {
        {"a", QUEUE_RUNNING, .k = 1, .lag_us = 1000000},
        {"b", QUEUE_RUNNING, .k = 1, .lag_us = 2000000},
        {"c", QUEUE_LOST, .k = 1, .lag_us = 0},
        {"d", QUEUE_CLAIMING, .k = -1, .lag_us = -1},
    };

    state_lines_say(lines, 4, 3);
    ck_assert_str_eq(said, "4 queues: 1 claiming, 2 running, 1 lost; the 2 worst off:\n"
                           "d: claiming, window none, 0 bytes buffered, lag unknown\n"
                           "c: lost, window 1, 0 bytes buffered, lag 0.000 s\n");
}
END_TEST

START_TEST(every_state_has_room_in_one_line)
{
    static struct state_line lines[6 * 7];

    for (size_t i = 0; i < 6 * 7; i++) {
        lines[i] = (struct state_line){"q", (uint32_t)(i % 6), .k = -1, .lag_us = -1};
    }
    state_lines_say(lines, 6 * 7, 1);
    ck_assert_str_eq(said, "42 queues: 7 claiming, 7 recovering, 7 running, 7 stopped, 7 lost, 7 drained; the 0 worst "
                           "off:\n");
}
END_TEST

START_TEST(no_queue_no_line)
{
    state_lines_say(NULL, 0, 100);
    ck_assert_str_eq(said, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("state_lines");
    TCase *tests = tcase_create("lines");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, what_somebody_has_to_look_at_comes_first);
    tcase_add_test(tests, what_there_is_no_room_for_is_counted);
    tcase_add_test(tests, every_state_has_room_in_one_line);
    tcase_add_test(tests, no_queue_no_line);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
