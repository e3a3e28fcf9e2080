/*
 * Real forks: what a child of the pool has, what it hasn't, and that it never outlives its parent. Nothing here sleeps:
 * the end of a process is the end of a pipe that it held.
 */
#include "supervisor/child.h"
#include "supervisor/environment.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2]; /* the child writes to ends[1] */

static void open_pipe(void)
{
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
}

static pid_t begin(child_main *run, void *argument, bool own_group)
{
    struct child_options options = {
        .own_group = own_group, .keep = ends[1], .output = -1, .title = "queen-s3: worker 0 [a,b]"};
    struct error error;
    pid_t child = child_fork(&options, run, argument, &error);

    ck_assert_int_gt(child, 0);
    return child;
}

static void close_end(int end)
{
    (void)close(ends[end]);
    ends[end] = -1;
}

static int status_of(pid_t child)
{
    int wait_status = 0;

    ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
    return wait_status;
}

static int exit_code_of(pid_t child)
{
    int wait_status = status_of(child);

    ck_assert(WIFEXITED(wait_status));
    return WEXITSTATUS(wait_status);
}

/* To the end: nobody who held the other end lives any longer. */
static size_t read_all(char *text, size_t room)
{
    size_t size = 0;
    ssize_t got;

    while ((got = read(ends[0], text + size, room - size)) > 0) {
        size += (size_t)got;
    }
    ck_assert_int_eq(got, 0);
    return size;
}

static int wait_for_signals(void *argument)
{
    (void)argument;
    for (;;) {
        (void)pause();
    }
    return 0;
}

static int give(void *argument)
{
    return *(const int *)argument;
}

START_TEST(what_it_returns_is_its_exit_code)
{
    int code = 42;

    ck_assert_int_eq(exit_code_of(begin(give, &code, true)), 42);
}
END_TEST

/* ---- descriptors, signals, group ---- */

static int look_around(void *argument)
{
    bool own_group = *(const bool *)argument;
    struct sigaction action;
    sigset_t mask;

    for (int descriptor = 0; descriptor < 1024; descriptor++) {
        bool open = fcntl(descriptor, F_GETFD) >= 0;

        if (open != (descriptor <= STDERR_FILENO || descriptor == ends[1])) {
            return 10;
        }
    }
    for (int number = 1; number < 32; number++) {
        bool ignored = number == SIGINT || number == SIGHUP || number == SIGUSR1 || number == SIGPIPE;

        if (sigaction(number, NULL, &action) != 0 || action.sa_handler != (ignored ? SIG_IGN : SIG_DFL)) {
            return 20;
        }
    }
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < 32; number++) {
        if (sigismember(&mask, number) != (number == SIGTERM)) {
            return 30;
        }
    }
    return (getpgrp() == getpid()) == own_group ? 0 : 40;
}

static void handle(int number)
{
    (void)number;
}

START_TEST(it_begins_with_nothing_that_is_not_its_own)
{
    bool own_group = _i == 1;
    int further[2];
    int kept;
    pid_t child;
    sigset_t mask;

    (void)signal(SIGUSR2, handle);
    (void)signal(SIGPIPE, SIG_DFL);
    ck_assert_int_eq(pipe2(further, O_CLOEXEC), 0);
    kept = fcntl(ends[1], F_DUPFD_CLOEXEC, 100); /* one with open ones on both sides */
    (void)fcntl(ends[0], F_DUPFD_CLOEXEC, 200);
    (void)close(ends[1]);
    ends[1] = kept;
    child = begin(look_around, &own_group, own_group);
    if (own_group) {
        ck_assert_int_eq(getpgid(child), child);
    } else {
        ck_assert_int_eq(getpgid(child), getpgrp());
    }
    ck_assert_int_eq(exit_code_of(child), 0);
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    ck_assert_int_eq(sigismember(&mask, SIGTERM), 0);
}
END_TEST

static int fork_within(void *argument)
{
    (void)argument;
    if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, 0);
    }
    (void)!write(ends[1], "x", 1);
    return wait_for_signals(NULL);
}

START_TEST(a_signal_to_the_group_reaches_all_of_it)
{
    char byte[2];
    char text[8];
    pid_t child = begin(fork_within, NULL, true);

    close_end(1);
    ck_assert_int_eq(read(ends[0], byte, 1), 1);
    ck_assert_int_eq(read(ends[0], byte, 1), 1);
    child_signal_group(child, SIGKILL);
    ck_assert_uint_eq(read_all(text, sizeof text), 0);
    ck_assert_int_eq(WTERMSIG(status_of(child)), SIGKILL);
}
END_TEST

static int take_term(void *argument)
{
    sigset_t none;

    (void)argument;
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* what came before is delivered now */
    return wait_for_signals(NULL);
}

START_TEST(a_signal_right_after_the_fork_is_not_lost)
{
    pid_t child = begin(take_term, NULL, true);

    child_signal_group(child, SIGTERM);
    ck_assert_int_eq(WTERMSIG(status_of(child)), SIGTERM);
}
END_TEST

/* ---- never an orphan ---- */

static int tell_pid(void *argument)
{
    pid_t pid = getpid();

    (void)!write(ends[1], &pid, sizeof pid);
    return wait_for_signals(argument);
}

START_TEST(it_dies_with_a_killed_parent_that_a_sub_reaper_adopted_it_from)
{
    pid_t worker = 0;
    pid_t middle;
    char text[8];

    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    middle = fork();
    if (middle == 0) {
        (void)begin(tell_pid, NULL, true);
        _exit(wait_for_signals(NULL));
    }
    close_end(1);
    ck_assert_int_eq(read(ends[0], &worker, sizeof worker), (ssize_t)sizeof worker);
    ck_assert_int_eq(kill(middle, SIGKILL), 0);
    ck_assert_int_eq(WTERMSIG(status_of(middle)), SIGKILL);
    ck_assert_uint_eq(read_all(text, sizeof text), 0);
    ck_assert_int_eq(WTERMSIG(status_of(worker)), SIGKILL); /* ours to reap: it had been adopted */
}
END_TEST

static void orphan_looks_for_its_parent(pid_t parent, int parent_alive)
{
    char byte;
    char result;

    (void)!read(parent_alive, &byte, 1); /* ends when the parent has ended */
    while (getppid() == parent) {
        (void)usleep(1000); /* adoption has no event to wait for: it follows the closing of descriptors at once */
    }
    result = child_follow(parent) ? 'y' : 'n';
    (void)!write(ends[1], &result, 1);
    _exit(0);
}

START_TEST(a_parent_that_died_before_the_child_looked_is_noticed)
{
    int alive[2];
    char text[8];
    pid_t middle;

    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(pipe(alive), 0);
    middle = fork();
    if (middle == 0) {
        pid_t parent = getpid();

        if (fork() == 0) {
            (void)close(alive[1]);
            orphan_looks_for_its_parent(parent, alive[0]);
        }
        _exit(0);
    }
    (void)close(alive[1]);
    close_end(1);
    ck_assert_int_eq(exit_code_of(middle), 0);
    ck_assert_uint_eq(read_all(text, sizeof text), 1);
    ck_assert_int_eq(text[0], 'n');
    ck_assert_int_eq(waitpid(-1, NULL, 0) > 0, 1);
}
END_TEST

/* ---- the initial block ---- */

static size_t read_proc(pid_t pid, const char *name, char *text, size_t room)
{
    char path[64];
    size_t size = 0;
    ssize_t got;
    int descriptor;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(descriptor, 0);
    while ((got = read(descriptor, text + size, room - 1 - size)) > 0) {
        size += (size_t)got;
    }
    (void)close(descriptor);
    text[size] = '\0';
    return size;
}

static int check_environment(void *argument)
{
    (void)argument;
    if (getenv("PG_PASSWORD") != NULL || getenv("JWT_SECRET") != NULL || getenv("QUEEN_ENCRYPTION_KEY") != NULL ||
        getenv("QUEEN_SYNC_SECRET") != NULL) {
        return 10;
    }
    if (getenv("NOTIFY_SOCKET") != NULL || getenv("WATCHDOG_USEC") != NULL || getenv("WATCHDOG_PID") != NULL) {
        return 20;
    }
    return getenv("QUEEN_S3_BUCKET") != NULL ? 0 : 30;
}

START_TEST(secrets_are_gone_and_a_service_manager_is_the_supervisors_alone)
{
    ck_assert_int_eq(exit_code_of(begin(check_environment, NULL, true)), 0);
    ck_assert_ptr_nonnull(getenv("NOTIFY_SOCKET"));
    ck_assert_ptr_null(getenv("PG_PASSWORD"));
}
END_TEST

START_TEST(proc_shows_the_title_and_no_secret)
{
    static char text[1 << 17];
    pid_t ready = 0;
    pid_t child = begin(tell_pid, NULL, true);
    size_t size;

    ck_assert_int_eq(read(ends[0], &ready, sizeof ready), (ssize_t)sizeof ready);
    (void)read_proc(child, "cmdline", text, sizeof text);
    ck_assert_str_eq(text, "queen-s3: worker 0 [a,b]");
    size = read_proc(child, "environ", text, sizeof text);
    ck_assert_ptr_null(memmem(text, size, "hunter2", 7));
    ck_assert_ptr_nonnull(memmem(text, size, "QUEEN_S3_BUCKET=", 16));
    size = read_proc(getpid(), "environ", text, sizeof text);
    ck_assert_ptr_null(memmem(text, size, "hunter2", 7));
    child_signal_group(child, SIGKILL);
    (void)status_of(child);
}
END_TEST

START_TEST(a_title_is_cut_where_there_is_no_more_room_and_a_shorter_one_replaces_it)
{
    static char text[1 << 17];
    static char title[1 << 16];

    memset(title, 't', sizeof title - 1);
    environment_set_title(title);
    (void)read_proc(getpid(), "cmdline", text, sizeof text);
    ck_assert_uint_gt(strlen(text), 100);
    ck_assert_mem_eq(text, title, strlen(text));
    environment_set_title("queen-s3: supervisor");
    (void)read_proc(getpid(), "cmdline", text, sizeof text);
    ck_assert_str_eq(text, "queen-s3: supervisor");
}
END_TEST

/* Secrets have to be in the block that the kernel made: so the test starts itself once more with them. */
static void start_again(char **argv)
{
    static const char *const variables[] = {
        "PG_PASSWORD",   "JWT_SECRET",    "QUEEN_ENCRYPTION_KEY", "QUEEN_SYNC_SECRET",
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
    };

    if (getenv("CHILD_TEST_AGAIN") != NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        (void)setenv(variables[i], i < 4 ? "hunter2" : "service", 1);
    }
    (void)setenv("CHILD_TEST_AGAIN", "1", 1);
    (void)setenv("QUEEN_S3_BUCKET", "a bucket, and some room for a title that is longer than the arguments were", 1);
    (void)execv("/proc/self/exe", argv);
    perror("execv");
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    Suite *suite = suite_create("child");
    TCase *tests = tcase_create("forks");
    SRunner *runner;
    int failed;

    start_again(argv);
    environment_init(argc, argv);
    tcase_add_checked_fixture(tests, open_pipe, NULL);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, what_it_returns_is_its_exit_code);
    tcase_add_loop_test(tests, it_begins_with_nothing_that_is_not_its_own, 0, 2);
    tcase_add_test(tests, a_signal_to_the_group_reaches_all_of_it);
    tcase_add_test(tests, a_signal_right_after_the_fork_is_not_lost);
    tcase_add_test(tests, it_dies_with_a_killed_parent_that_a_sub_reaper_adopted_it_from);
    tcase_add_test(tests, a_parent_that_died_before_the_child_looked_is_noticed);
    tcase_add_test(tests, secrets_are_gone_and_a_service_manager_is_the_supervisors_alone);
    tcase_add_test(tests, proc_shows_the_title_and_no_secret);
    tcase_add_test(tests, a_title_is_cut_where_there_is_no_more_room_and_a_shorter_one_replaces_it);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
