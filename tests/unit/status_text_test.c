/*
 * The tables that `status` prints: columns that stand under each other whatever is in them, and nothing in them that a
 * terminal would act on.
 */
#include "supervisor/commands/status_text.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/commands/output.h"
#include "supervisor/commands/text_table.h"

#define AT "2026-09-04T10:05:07.412000Z"

/* Each test is a process of its own, so its standard output can be taken. */
static char *path;

static void begin(void)
{
    static char template[] = "/tmp/status-text-test-XXXXXX";
    int file = mkstemp(template);

    ck_assert_int_ge(file, 0);
    (void)close(file);
    path = template;
    ck_assert_ptr_nonnull(freopen(path, "w", stdout));
}

static const char *printed(void)
{
    static char text[16384];
    FILE *file;
    size_t size;

    ck_assert_int_eq(output_end(0), 0);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    (void)fclose(file);
    return text;
}

static void end(void)
{
    (void)unlink(path);
}

static void expect(const char *wanted)
{
    ck_assert_str_eq(printed(), wanted);
}

START_TEST(a_table_is_aligned_whatever_is_in_it)
{
    struct text_table table = {.titles = {"NAME", "COUNT", "END"}, .right = {false, true, false}, .count = 3};
    struct text_table_row *row = text_table_add(&table);

    text_table_cell(row, 0, "größe");
    text_table_cell(row, 1, "7");
    text_table_cell(row, 2, NULL);
    row = text_table_add(&table);
    text_table_cell(row, 0, "a\033[2Jb");
    text_table_cell(row, 1, "123456");
    text_table_cell(row, 2, "\u202ex\u202c");
    text_table_note(row, "said \"\n\"");
    row->alarmed = true;
    row = text_table_add(&table);
    text_table_cell(row, 0, "0123456789012345678901234567ä90123456789");
    text_table_print(&table, false);
    text_table_free(&table);
    expect("  NAME                               COUNT  END\n"
           "  größe                                  7  -\n"
           "! a\\x1b[2Jb                         123456  \\xe2\\x80\\xaex\\xe2\\x80\\xac\n"
           "      said \"\\x0a\"\n"
           "  0123456789012345678901234567ä90…          \n");
}
END_TEST

START_TEST(a_line_has_nothing_in_it_that_acts_or_hides)
{
    output_line("%s: %d faults", "\u202esredro\u202c\n", 2);
    expect("\\xe2\\x80\\xaesredro\\xe2\\x80\\xac\\x0a: 2 faults\n");
}
END_TEST

START_TEST(colour_is_for_what_is_wrong)
{
    struct text_table table = {.titles = {"A"}, .count = 1};
    struct text_table_row *row = text_table_add(&table);

    text_table_cell(row, 0, "good");
    row = text_table_add(&table);
    text_table_cell(row, 0, "bad");
    text_table_note(row, "why");
    row->alarmed = true;
    text_table_print(&table, true);
    text_table_free(&table);
    expect("\033[2m  A\033[0m\n  good\n\033[31m! bad\033[0m\n\033[31m      why\033[0m\n");
}
END_TEST

START_TEST(a_pool_without_queues)
{
    struct snapshot snapshot = {.sink = "default",
                                .instance = "sink-0",
                                .version = "1",
                                .phase = "starting",
                                .at = AT,
                                .pid = 7,
                                .uptime_ms = 1234};

    status_print(&snapshot, false);
    expect("sink default on sink-0: starting for 1.2s, pid 7, queen-s3 1\nno queue yet\n");
}
END_TEST

START_TEST(a_pool_with_all_that_can_be)
{
    struct snapshot_worker workers[] = {
        {.number = 0,
         .phase = "running",
         .pid = 4711,
         .uptime_ms = 7200000,
         .resident_bytes = 1 << 24,
         .queue_count = 2},
        {.number = 1,
         .phase = "backoff",
         .restarts = 12,
         .last_exit = "signal 9",
         .last_exit_at = "2026-09-04T10:05:06.412000Z",
         .backoff_ms = 4000,
         .queue_count = 1},
    };
    struct snapshot_queue queues[] = {
        {.name = "late",
         .worker = 0,
         .owner = "sink-0",
         .state = "running",
         .k = 1842,
         .end = "2026-09-04T10:00:00.000000Z",
         .has_lag = true,
         .lag_seconds = 307.4,
         .buffered_bytes = 12 << 20,
         .late = true,
         .stale_ms = 960000,
         .error = "upload: refused",
         .error_at = "2026-09-04T10:04:55.412000Z"},
        {.name = "theirs", .worker = 0, .owner = "sink-1", .state = "standby", .k = -1},
        {.name = "waits", .worker = 1, .state = "claiming", .k = -1},
    };
    struct snapshot snapshot = {.sink = "default",
                                .instance = "sink-0",
                                .version = "1",
                                .phase = "running",
                                .at = AT,
                                .pid = 7,
                                .uptime_ms = 86400000,
                                .limit_ms = 900000,
                                .late_count = 1,
                                .workers = workers,
                                .worker_count = 2,
                                .queues = queues,
                                .queue_count = 3};

    status_print(&snapshot, false);
    expect("sink default on sink-0: running for 1d, pid 7, queen-s3 1\n"
           "1 of 3 queues late: more than 15m without a commit of what waits\n"
           "\n"
           "  WORKER  PHASE     PID  UP  MEMORY  QUEUES  RESTARTS  LAST EXIT\n"
           "       0  running  4711  2h  16 MiB       2         0  -\n"
           "!      1  backoff     -   -       -       1        12  signal 9, 1.0s ago\n"
           "      started again in 4.0s\n"
           "\n"
           "  QUEUE   STATE     OWNER     WINDOW   COMMITTED TO (UTC)  LAG  BUFFERED\n"
           "! late    running   worker 0    1842  2026-09-04 10:00:00   5m    12 MiB\n"
           "      12s ago: upload: refused\n"
           "  theirs  standby   sink-1         -                    -    -         0\n"
           "      instance sink-1 has it\n"
           "  waits   claiming  worker 1       -                    -    -         0\n"
           "      worker 1: backoff, last exit signal 9\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("status_text");
    TCase *tests = tcase_create("status_text");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_table_is_aligned_whatever_is_in_it);
    tcase_add_test(tests, a_line_has_nothing_in_it_that_acts_or_hides);
    tcase_add_test(tests, colour_is_for_what_is_wrong);
    tcase_add_test(tests, a_pool_without_queues);
    tcase_add_test(tests, a_pool_with_all_that_can_be);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
