/*
 * Lines as people and programs read them, what strangers' bytes turn into, and a pipe that nobody reads.
 */
#include "common/log.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char taken[8192];
static enum log_level taken_level;
static int taken_count;

static void take(void *argument, enum log_level level, const char *line)
{
    ck_assert_ptr_eq(argument, taken);
    ck_assert_uint_lt(strlen(line), sizeof taken);
    memcpy(taken, line, strlen(line) + 1);
    taken_level = level;
    taken_count++;
}

static void capture_lines(void)
{
    log_capture(take, taken);
    log_configure(LOG_INFO, false);
    taken_count = 0;
    taken[0] = '\0';
}

static void release_lines(void)
{
    log_capture(NULL, NULL);
}

/* The line behind its time, after a look at the time's shape. */
static const char *behind_time(void)
{
    static const char shape[] = "0000-00-00T00:00:00.000Z ";

    ck_assert_uint_gt(strlen(taken), sizeof shape);
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        if (shape[i] == '0') {
            ck_assert(taken[i] >= '0' && taken[i] <= '9');
        } else {
            ck_assert_int_eq(taken[i], shape[i]);
        }
    }
    return taken + sizeof shape - 1;
}

START_TEST(people_read_time_level_and_queue)
{
    log_line(LOG_INFO, "orders", "window %d is up", 12);
    ck_assert_str_eq(behind_time(), "info  orders: window 12 is up");
    ck_assert_int_eq(taken_level, LOG_INFO);
    log_line(LOG_ERROR, NULL, "no queue");
    ck_assert_str_eq(behind_time(), "error no queue");
    log_line(LOG_WARN, "", "empty name");
    ck_assert_str_eq(behind_time(), "warn  : empty name");
}
END_TEST

START_TEST(what_is_below_the_level_costs_nothing)
{
    log_line(LOG_DEBUG, NULL, "quiet");
    ck_assert_int_eq(taken_count, 0);
    log_configure(LOG_DEBUG, false);
    ck_assert(log_enabled(LOG_DEBUG));
    log_line(LOG_DEBUG, NULL, "loud");
    ck_assert_str_eq(behind_time(), "debug loud");
    log_configure(LOG_ERROR, false);
    log_line(LOG_WARN, NULL, "quiet");
    ck_assert_int_eq(taken_count, 1);
}
END_TEST

START_TEST(control_bytes_and_broken_text_are_spelled_out)
{
    log_line(LOG_INFO, "a\nb", "\x1b[31m%s\x7f\r\t", "caff\xc3\xa8 \xff \xc3");
    ck_assert_str_eq(behind_time(), "info  a\\x0ab: \\x1b[31mcaff\xc3\xa8 \\xff \\xc3\\x7f\\x0d\\x09");
    log_line(LOG_INFO, NULL, "\xc2\x9b\x33 \xed\xa0\x80 \xe2\x82 \xf0\x9f\x98\x8b \xf4\x90\x80\x80 \xc0\xaf");
    ck_assert_str_eq(behind_time(), "info  \\xc2\\x9b3 \\xed\\xa0\\x80 \\xe2\\x82 \xf0\x9f\x98\x8b "
                                    "\\xf4\\x90\\x80\\x80 \\xc0\\xaf");
}
END_TEST

static const char *text_of(const cJSON *line, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, key));
}

START_TEST(programs_read_json)
{
    log_configure(LOG_INFO, true);
    log_line(LOG_WARN, "quo\"te\\\n", "caff\xc3\xa8 \"x\" \xff\n");
    cJSON *line = cJSON_Parse(taken);
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(cJSON_GetArraySize(line), 4);
    ck_assert_uint_eq(strlen(text_of(line, "ts")), 24);
    ck_assert_str_eq(text_of(line, "level"), "warn");
    ck_assert_str_eq(text_of(line, "queue"), "quo\"te\\\\x0a");
    ck_assert_str_eq(text_of(line, "message"), "caff\xc3\xa8 \"x\" \\xff\\x0a");
    cJSON_Delete(line);
    log_line(LOG_INFO, NULL, "no queue");
    line = cJSON_Parse(taken);
    ck_assert_int_eq(cJSON_GetArraySize(line), 3);
    cJSON_Delete(line);
}
END_TEST

/* For a person; a program that reads the JSON gets the very name. */
START_TEST(nothing_invisible_is_in_a_line)
{
    static const char name[] = "\u202esredro\u202c\U000e0041";

    log_line(LOG_INFO, name, "is \u200b there");
    ck_assert_str_eq(behind_time(), "info  \\xe2\\x80\\xaesredro\\xe2\\x80\\xac\\xf3\\xa0\\x81\\x81: is "
                                    "\\xe2\\x80\\x8b there");
    log_say("queues=%s", name);
    ck_assert_str_eq(taken, "queues=\\xe2\\x80\\xaesredro\\xe2\\x80\\xac\\xf3\\xa0\\x81\\x81");
    log_configure(LOG_INFO, true);
    log_line(LOG_INFO, name, "is \u200b there");
    ck_assert_ptr_nonnull(strstr(taken, "\"queue\":\"\\u202esredro\\u202c\\udb40\\udc41\""));
    cJSON *line = cJSON_Parse(taken);
    ck_assert_str_eq(text_of(line, "queue"), name);
    ck_assert_str_eq(text_of(line, "message"), "is \u200b there");
    cJSON_Delete(line);
}
END_TEST

START_TEST(a_long_line_is_cut_and_stays_well_formed)
{
    static char longest[20000];
    static const char *const fillers[] = {"x", "\"", "\n", "\xc3\xa8", "\xff", "\\"};

    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
        longest[0] = '\0';
        while (strlen(longest) < 9000) {
            strcat(longest, fillers[i]);
        }
        for (int json = 0; json < 2; json++) {
            log_configure(LOG_INFO, json != 0);
            log_line(LOG_INFO, longest, "%s", longest);
            ck_assert_uint_lt(strlen(taken), 4096);
            ck_assert_uint_gt(strlen(taken), 2000);
            ck_assert_ptr_nonnull(strstr(taken, "…"));
        }
        cJSON *line = cJSON_Parse(taken);
        ck_assert_ptr_nonnull(line);
        ck_assert_ptr_nonnull(text_of(line, "message"));
        cJSON_Delete(line);
    }
}
END_TEST

START_TEST(repeated_failures_say_how_many_were_left_out)
{
    struct log_limit limit = {0};
    struct mono_ms now = {1000000};

    for (int i = 0; i < 50; i++) {
        log_limited(&limit, now, LOG_WARN, "orders", "failure %d", i);
        now.v += 100;
    }
    ck_assert_int_eq(taken_count, 1);
    ck_assert_str_eq(behind_time(), "warn  orders: failure 0");
    log_limited(&limit, now, LOG_WARN, "orders", "failure %d", 50);
    ck_assert_int_eq(taken_count, 2);
    ck_assert_str_eq(behind_time(), "warn  orders: failure 50 (49 more like this since the last one)");
    now.v += 5000;
    log_limited(&limit, now, LOG_WARN, "orders", "failure");
    ck_assert_str_eq(behind_time(), "warn  orders: failure");
}
END_TEST

/* Standard error becomes a pipe that nobody reads, in blocking mode as a shared one may be. */
START_TEST(a_full_pipe_never_blocks_and_is_told_of)
{
    int ends[2];
    static char read_back[1 << 20];
    char filler[1000];
    int kept;

    log_capture(NULL, NULL);
    memset(filler, 'x', sizeof filler);
    ck_assert_int_eq(pipe(ends), 0);
    kept = dup(STDERR_FILENO);
    ck_assert_int_ge(kept, 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    for (int i = 0; i < 300; i++) {
        log_line(LOG_INFO, NULL, "%.*s", (int)sizeof filler, filler);
    }
    ck_assert_uint_gt(log_dropped(), 100);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    while (read(ends[0], read_back, sizeof read_back) > 0) {
    }
    log_line(LOG_INFO, NULL, "after");
    ssize_t size = read(ends[0], read_back, sizeof read_back - 1);
    ck_assert_int_eq(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_gt((int)size, 0);
    read_back[size] = '\0';
    char told[100];
    (void)snprintf(told, sizeof told, "warn  %lu log lines were dropped: nobody read them in time\n", log_dropped());
    ck_assert_ptr_nonnull(strstr(read_back, told));
    ck_assert_str_eq(strstr(read_back, "info  after"), "info  after\n");
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(kept);
}
END_TEST

static void take_diverted(void *argument, enum log_level level, const char *subject, const char *message)
{
    ck_assert_ptr_eq(argument, &taken_count);
    taken_level = level;
    snprintf(taken, sizeof taken, "%s|%s", subject != NULL ? subject : "", message);
    taken_count++;
}

START_TEST(a_host_gets_what_was_to_be_said)
{
    log_divert(take_diverted, &taken_count);
    log_line(LOG_WARN, "orders", "window %d\n", 12);
    ck_assert_str_eq(taken, "orders|window 12\n");
    ck_assert_int_eq(taken_level, LOG_WARN);
    log_line(LOG_DEBUG, NULL, "below the level");
    ck_assert_int_eq(taken_count, 1);
    log_divert(NULL, NULL);
    log_line(LOG_INFO, NULL, "lines again");
    ck_assert_str_eq(behind_time(), "info  lines again");
}
END_TEST

/* As above, and somebody else's descriptor of the same pipe keeps its mode. */
START_TEST(an_own_description_of_a_shared_pipe)
{
    static char read_back[1 << 20];
    static char longest[200000];
    int ends[2];
    ssize_t size;
    int kept = dup(STDERR_FILENO);

    log_capture(NULL, NULL);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    log_open();
    log_say("%s", "as it \x1b is");
    ck_assert_int_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(log_waits_for(), -1);
    memset(longest, 'x', sizeof longest - 1);
    log_say("%s", longest); /* more than there is room for */
    ck_assert_uint_eq(log_dropped(), 1);
    ck_assert_int_ne(log_waits_for(), -1);
    ck_assert_int_ne(log_waits_for(), STDERR_FILENO);
    ck_assert(!log_tell_dropped());
    log_line(LOG_INFO, NULL, "lost");
    ck_assert_uint_eq(log_dropped(), 2);
    size = read(ends[0], read_back, sizeof read_back - 1);
    ck_assert_int_gt((int)size, 4096);
    read_back[size] = '\0';
    ck_assert_ptr_eq(strstr(read_back, "as it \\x1b is\nxxx"), read_back);
    ck_assert(log_tell_dropped());
    ck_assert_int_eq(log_waits_for(), -1);
    size = read(ends[0], read_back, sizeof read_back - 1);
    ck_assert_int_gt((int)size, 0);
    read_back[size] = '\0';
    ck_assert_int_eq(read_back[0], '\n'); /* the torn line is ended first */
    ck_assert_ptr_nonnull(strstr(read_back, "warn  2 log lines were dropped"));
    (void)close(ends[0]);
    log_line(LOG_INFO, NULL, "nobody reads");
    ck_assert_uint_eq(log_dropped(), 3);
    ck_assert_int_eq(log_waits_for(), -1); /* there is no end to wait for */
    log_reset();
    ck_assert_int_eq(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    (void)close(ends[1]);
    (void)close(kept);
}
END_TEST

/* A service manager's journal is a socket. */
START_TEST(a_full_socket_never_blocks_either)
{
    static char read_back[1 << 20];
    char filler[1000];
    int ends[2];
    ssize_t size;
    int kept = dup(STDERR_FILENO);

    log_capture(NULL, NULL);
    memset(filler, 'x', sizeof filler);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    log_open();
    for (int i = 0; i < 2000 && log_dropped() == 0; i++) {
        log_line(LOG_INFO, NULL, "%.*s", (int)sizeof filler, filler);
    }
    ck_assert_uint_eq(log_dropped(), 1);
    ck_assert_int_eq(log_waits_for(), STDERR_FILENO);
    while (recv(ends[0], read_back, sizeof read_back, MSG_DONTWAIT) > 0) {
    }
    ck_assert(log_tell_dropped());
    size = recv(ends[0], read_back, sizeof read_back - 1, MSG_DONTWAIT);
    ck_assert_int_eq(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_gt((int)size, 0);
    read_back[size] = '\0';
    ck_assert_ptr_nonnull(strstr(read_back, "warn  1 log lines were dropped"));
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(kept);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tests = tcase_create("lines");
    SRunner *runner;
    int failed;

    (void)signal(SIGPIPE, SIG_IGN);
    tcase_add_checked_fixture(tests, capture_lines, release_lines);
    tcase_add_test(tests, people_read_time_level_and_queue);
    tcase_add_test(tests, what_is_below_the_level_costs_nothing);
    tcase_add_test(tests, control_bytes_and_broken_text_are_spelled_out);
    tcase_add_test(tests, programs_read_json);
    tcase_add_test(tests, nothing_invisible_is_in_a_line);
    tcase_add_test(tests, a_long_line_is_cut_and_stays_well_formed);
    tcase_add_test(tests, repeated_failures_say_how_many_were_left_out);
    tcase_add_test(tests, a_full_pipe_never_blocks_and_is_told_of);
    tcase_add_test(tests, a_host_gets_what_was_to_be_said);
    tcase_add_test(tests, an_own_description_of_a_shared_pipe);
    tcase_add_test(tests, a_full_socket_never_blocks_either);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
