/*
 * See child.h. The order in begin() is what matters: bound to the parent first, so that nothing later can leave an
 * orphan; signals stay as the parent blocked them until dispositions are the child's own.
 */
#include "supervisor/child.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/log.h"
#include "supervisor/environment.h"

#define EXIT_NO_PARENT 1

bool child_follow(pid_t parent)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

void child_signal_group(pid_t child, int number)
{
    if (child <= 0) {
        return;
    }
    /* Its group may not be there yet, or no longer; the process itself is not to be missed. */
    if (kill(-child, number) != 0) {
        (void)kill(child, number);
    }
}

/* For kernels before 5.9. */
static void close_each_but(int keep)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;

    if (folder == NULL) {
        return;
    }
    /* Closing what is listed doesn't disturb the listing: each entry is looked for by its number. */
    while ((entry = readdir(folder)) != NULL) {
        int descriptor = (int)strtol(entry->d_name, NULL, 10);

        if (descriptor > STDERR_FILENO && descriptor != keep && descriptor != dirfd(folder)) {
            (void)close(descriptor);
        }
    }
    (void)closedir(folder);
}

static void close_all_but(int keep)
{
    unsigned first = (unsigned)STDERR_FILENO + 1;
    bool closed = true;

    if (keep > STDERR_FILENO) {
        closed = keep == STDERR_FILENO + 1 || close_range(first, (unsigned)keep - 1, 0) == 0;
        first = (unsigned)keep + 1;
    }
    if (close_range(first, ~0U, 0) != 0 || !closed) {
        close_each_but(keep);
    }
}

static void reset_signals(void)
{
    static const int ignored[] = {SIGINT, SIGHUP, SIGUSR1, SIGPIPE};
    sigset_t blocked;

    for (int number = 1; number < NSIG; number++) {
        if (number != SIGKILL && number != SIGSTOP) {
            (void)signal(number, SIG_DFL); /* fails for the C library's own: not ours to reset */
        }
    }
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static void begin(const struct child_options *options, pid_t parent)
{
    if (!child_follow(parent)) {
        _exit(EXIT_NO_PARENT);
    }
    if (options->own_group) {
        (void)setpgid(0, 0);
    }
    if (options->output >= 0) {
        (void)dup2(options->output, STDOUT_FILENO);
        (void)dup2(options->output, STDERR_FILENO);
    }
    close_all_but(options->keep);
    log_reset();
    reset_signals();
    environment_leave_service();
    environment_set_title(options->title);
}

pid_t child_fork(const struct child_options *options, child_main *run, void *argument, struct error *error)
{
    pid_t parent = getpid();
    sigset_t all;
    sigset_t before;
    pid_t child;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    child = fork();
    if (child == 0) {
        begin(options, parent);
        _exit(run(argument));
    }
    if (child > 0 && options->own_group) {
        (void)setpgid(child, child); /* whoever of the two is first: a signal to the group must find it */
    }
    if (child < 0) {
        child = error_set_errno(error, "fork");
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}
