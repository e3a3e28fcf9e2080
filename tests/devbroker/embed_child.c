/*
 * See embed_child.h. The broker has threads, so between fork and exec the child may only do what is safe in a signal
 * handler: all that it needs is made before.
 */
#include "embed_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "text.h"

#define EXIT_NO_PARENT  125
#define EXIT_NO_PROGRAM 126

/* What a sink has no use for, and must not be found in a second process's environment. */
static const char *const secrets[] = {"PG_PASSWORD", "JWT_SECRET", "QUEEN_ENCRYPTION_KEY", "QUEEN_SYNC_SECRET"};

static bool names(const char *entry, const char *name)
{
    size_t size = strlen(name);

    return strncmp(entry, name, size) == 0 && entry[size] == '=';
}

static bool is_kept(const char *entry)
{
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        if (names(entry, secrets[i])) {
            return false;
        }
    }
    return !names(entry, "QUEEN_URL");
}

char **embed_environment(const char *queen_url)
{
    size_t count = 0;
    size_t kept = 0;
    char **environment;
    struct text url = {0};

    while (environ[count] != NULL) {
        count++;
    }
    environment = memory_take(count + 2, sizeof *environment);
    for (size_t i = 0; i < count; i++) {
        if (is_kept(environ[i])) {
            environment[kept++] = (char *)(uintptr_t)slice_copy(slice_of(environ[i])).at;
        }
    }
    text_add_format(&url, "QUEEN_URL=%s", queen_url);
    environment[kept] = (char *)(uintptr_t)slice_copy(text_slice(&url)).at;
    text_free(&url);
    return environment;
}

void embed_environment_free(char **environment)
{
    if (environment == NULL) {
        return;
    }
    for (size_t i = 0; environment[i] != NULL; i++) {
        free(environment[i]);
    }
    free(environment);
}

/* In the child. The broker's end of the pipe and its sockets are closed by exec; where a standard descriptor was closed
 * in the broker, the pipe may stand in its place, which dup2() onto itself leaves open as well. */
static void take_output(int their_end)
{
    int nothing;

    (void)dup2(their_end, STDOUT_FILENO);
    (void)dup2(their_end, STDERR_FILENO);
    nothing = open("/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO);
    (void)close_range((unsigned)STDERR_FILENO + 1, ~0U, 0);
}

/* In the child: the broker ignores SIGPIPE and blocks what it reads from a descriptor. */
static void reset_signals(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        if (number != SIGKILL && number != SIGSTOP) {
            (void)signal(number, SIG_DFL);
        }
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void begin(const char *program, char **environment, int their_end, pid_t parent)
{
    static const char failure[] = "queen-s3 can't be executed\n";
    char *const arguments[] = {(char *)(uintptr_t)program, NULL};

    (void)setpgid(0, 0);
    /* The broker may have died before this; who has its place then, init or a sub-reaper, has another number. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(EXIT_NO_PARENT);
    }
    take_output(their_end);
    reset_signals();
    (void)execve(program, arguments, environment);
    (void)!write(STDERR_FILENO, failure, sizeof failure - 1);
    _exit(EXIT_NO_PROGRAM);
}

pid_t embed_child_start(const char *program, char **environment, int *output)
{
    pid_t parent = getpid();
    int ends[2];
    pid_t child;
    int problem;

    if (pipe(ends) != 0) {
        return -1;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    child = fork();
    if (child == 0) {
        begin(program, environment, ends[1], parent);
    }
    problem = errno;
    (void)close(ends[1]);
    if (child < 0) {
        (void)close(ends[0]);
        errno = problem;
        return -1;
    }
    (void)setpgid(child, child); /* whoever of the two is first: a signal to the group must find it */
    *output = ends[0];
    return child;
}
