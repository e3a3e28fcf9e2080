/*
 * Datagrams to a socket of the test's own, by a path and by an abstract name, with a clock that the test turns.
 */
#include "supervisor/notify.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static char name[96]; /* as NOTIFY_SOCKET has it */
static int manager;
static struct notify notify;
static struct mono_ms now;

static void listen_at(const char *address)
{
    struct sockaddr_un bound = {.sun_family = AF_UNIX};
    size_t size = strlen(address);

    memcpy(bound.sun_path, address, size);
    if (address[0] == '@') {
        bound.sun_path[0] = '\0';
    } else {
        size++;
    }
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager, 0);
    ck_assert_int_eq(
        bind(manager, (const struct sockaddr *)&bound, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)), 0);
    (void)setenv("NOTIFY_SOCKET", address, 1);
}

static void begin(void)
{
    now.v = 7000000;
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    (void)snprintf(folder, sizeof folder, "/tmp/notify_test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(name, sizeof name, "%s/socket", folder);
    listen_at(name);
}

static void end(void)
{
    notify_close(&notify);
    (void)close(manager);
    (void)unlink(name);
    (void)rmdir(folder);
}

/* The next datagram; "" where there is none. */
static const char *next(void)
{
    static char text[1024];
    ssize_t got = recv(manager, text, sizeof text - 1, MSG_DONTWAIT);

    text[got < 0 ? 0 : got] = '\0';
    return text;
}

START_TEST(a_state_goes_out_at_once_to_a_path_or_an_abstract_name)
{
    if (_i == 1) {
        char abstract[64];

        (void)close(manager);
        (void)snprintf(abstract, sizeof abstract, "@notify_test.%d", (int)getpid());
        listen_at(abstract);
    }
    notify_open(&notify);
    notify_state(&notify, now, "READY=1");
    ck_assert_str_eq(next(), "READY=1");
    notify_state(&notify, now, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%d", 5);
    ck_assert_str_eq(next(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=5");
    notify_reloading(&notify, now);
    ck_assert_int_eq(strncmp(next(), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
}
END_TEST

START_TEST(nobody_is_told_without_a_usable_address)
{
    static const char *const addresses[] = {"", "@", "/", "relative", "vsock:2:1234"};
    char longest[200];
    struct mono_ms deadline;

    for (size_t i = 0; i <= sizeof addresses / sizeof *addresses; i++) {
        memset(longest, 'x', sizeof longest - 1);
        longest[0] = '/';
        longest[sizeof longest - 1] = '\0';
        (void)setenv("NOTIFY_SOCKET", i < 5 ? addresses[i] : longest, 1);
        notify_open(&notify);
        ck_assert_int_eq(notify.descriptor, -1);
        notify_state(&notify, now, "READY=1");
        notify_status(&notify, "x");
        notify_tick(&notify, now);
        ck_assert(!notify_deadline(&notify, &deadline));
    }
    (void)unsetenv("NOTIFY_SOCKET");
    notify_open(&notify);
    ck_assert_int_eq(notify.descriptor, -1);
}
END_TEST

START_TEST(a_manager_that_is_gone_is_not_waited_for)
{
    struct mono_ms deadline;

    notify_open(&notify);
    (void)close(manager);
    notify_state(&notify, now, "READY=1");
    ck_assert(!notify_deadline(&notify, &deadline));
}
END_TEST

START_TEST(a_state_that_a_full_queue_did_not_take_goes_out_later)
{
    struct mono_ms deadline = {0};
    int waiting = 0;

    notify_open(&notify);
    while (!notify_deadline(&notify, &deadline)) {
        notify_state(&notify, now, "STATE=%d", waiting++);
        ck_assert_int_lt(waiting, 100000);
    }
    notify_state(&notify, now, "READY=1"); /* and replaces what it makes old */
    ck_assert_int_gt(deadline.v, now.v);
    for (int i = 0; i < waiting - 1; i++) {
        char expected[32];

        (void)snprintf(expected, sizeof expected, "STATE=%d", i);
        ck_assert_str_eq(next(), expected);
    }
    ck_assert_str_eq(next(), "");
    notify_tick(&notify, now);
    ck_assert_str_eq(next(), "");
    notify_tick(&notify, deadline);
    ck_assert_str_eq(next(), "READY=1");
    ck_assert(!notify_deadline(&notify, &deadline));
}
END_TEST

START_TEST(the_watchdog_is_fed_at_half_its_time)
{
    struct mono_ms deadline = {0};
    char own[32];

    (void)snprintf(own, sizeof own, "%d", (int)getpid());
    (void)setenv("WATCHDOG_USEC", "3000000", 1);
    if (_i == 1) {
        (void)setenv("WATCHDOG_PID", own, 1);
    }
    notify_open(&notify);
    for (int i = 0; i < 3; i++) {
        notify_tick(&notify, now);
        ck_assert_str_eq(next(), "WATCHDOG=1");
        ck_assert(notify_deadline(&notify, &deadline));
        ck_assert_int_eq(deadline.v, now.v + 1500);
        notify_tick(&notify, (struct mono_ms){deadline.v - 1});
        ck_assert_str_eq(next(), "");
        now = deadline;
    }
}
END_TEST

START_TEST(a_watchdog_that_is_none_or_another_processs_is_not_fed)
{
    static const struct {
        const char *microseconds;
        const char *pid;
    } cases[] = {{"3000000", "1"}, {"3000000", "x"}, {"3000000", ""},
                 {"0", NULL},      {"-5", NULL},     {"x", NULL},
                 {"3s", NULL},     {NULL, NULL},     {"99999999999999999999", NULL}};
    struct mono_ms deadline;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)unsetenv("WATCHDOG_USEC");
        (void)unsetenv("WATCHDOG_PID");
        if (cases[i].microseconds != NULL) {
            (void)setenv("WATCHDOG_USEC", cases[i].microseconds, 1);
        }
        if (cases[i].pid != NULL) {
            (void)setenv("WATCHDOG_PID", cases[i].pid, 1);
        }
        notify_open(&notify);
        notify_tick(&notify, now);
        ck_assert_msg(next()[0] == '\0', "case %zu", i);
        ck_assert(!notify_deadline(&notify, &deadline));
        notify_close(&notify);
    }
}
END_TEST

START_TEST(a_status_is_told_when_it_is_new_and_not_too_often)
{
    struct mono_ms deadline = {0};

    notify_open(&notify);
    notify_status(&notify, "2 queues");
    notify_tick(&notify, now);
    ck_assert_str_eq(next(), "STATUS=2 queues");
    notify_status(&notify, "2 queues");
    ck_assert(!notify_deadline(&notify, &deadline));
    notify_status(&notify, "3 queues");
    notify_tick(&notify, now);
    ck_assert_str_eq(next(), "");
    ck_assert(notify_deadline(&notify, &deadline));
    ck_assert_int_eq(deadline.v, now.v + NOTIFY_STATUS_EVERY_MS);
    notify_tick(&notify, deadline);
    ck_assert_str_eq(next(), "STATUS=3 queues");
    ck_assert(!notify_deadline(&notify, &deadline));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("notify");
    TCase *tests = tcase_create("datagrams");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, a_state_goes_out_at_once_to_a_path_or_an_abstract_name, 0, 2);
    tcase_add_test(tests, nobody_is_told_without_a_usable_address);
    tcase_add_test(tests, a_manager_that_is_gone_is_not_waited_for);
    tcase_add_test(tests, a_state_that_a_full_queue_did_not_take_goes_out_later);
    tcase_add_loop_test(tests, the_watchdog_is_fed_at_half_its_time, 0, 2);
    tcase_add_test(tests, a_watchdog_that_is_none_or_another_processs_is_not_fed);
    tcase_add_test(tests, a_status_is_told_when_it_is_new_and_not_too_often);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
