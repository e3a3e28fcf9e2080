/*
 * The whole supervisor with real processes, around a worker and a probe that only tell the test what they were told: over
 * a named pipe, one line an event, which the test waits for. Each test's supervisor is a child of the test, as a service
 * manager's would be.
 */
#include "supervisor/loop.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/report.h"
#include "supervisor/log_budget.h"
#include "supervisor/stop_signals.h"

#define PATIENCE_MS 20000

/* What the fakes do; set before the supervisor is started, and inherited by every process of it. */
static struct {
    bool hang_probe;
    int probe_code;
    int worker_code; /* not 0: it ends with this at once */
    bool ignore_term;
    bool refuse_on_term; /* exit 2 instead of a drain */
    int flood;           /* lines that it writes at its start */
    bool abort;          /* and ends by that, after last words without a line feed */
    bool mute_again;     /* a life that isn't the first says nothing, and ends */
} behaviour;

static char folder[64];
static char pipe_path[96];
static char list_path[96];
static int told = -1; /* the test's end */
static struct settings settings;
static pid_t supervisor;
static char unread[65536];
static char *named[] = {"orders", "clicks", "views"};
static int standard[2]; /* what its standard output and error are: [1] */

/* ---- the fakes ---- */

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    int size;
    int descriptor = open(pipe_path, O_WRONLY | O_CLOEXEC);

    va_start(arguments, format);
    size = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    line[size] = '\n';
    (void)!write(descriptor, line, (size_t)size + 1); /* below PIPE_BUF: lines never mix */
    (void)close(descriptor);
}

static void tell_log(void *argument, enum log_level level, const char *line)
{
    (void)argument;
    (void)level;
    tell("log %s", line);
}

static void send_reports(struct report_buffer *out, const struct worker_start *start, uint32_t state)
{
    struct report_worker worker = {.buffer_bytes = 7};

    for (size_t i = 0; i < start->queue_count; i++) {
        struct report_queue queue = {.queue = start->queues[i].number,
                                     .state = state,
                                     .windows_committed = 1,
                                     .k = 1,
                                     .held_before = true,
                                     .fresh_mono_ms = clock_mono().v};

        (void)report_append(out, REPORT_QUEUE, &queue, sizeof queue, NULL, 0);
    }
    (void)report_append(out, REPORT_WORKER, &worker, sizeof worker, NULL, 0);
    (void)report_flush(out, start->report_descriptor);
}

static void tell_start(const struct worker_start *start)
{
    char queues[512] = "";

    for (size_t i = 0; i < start->queue_count; i++) {
        (void)snprintf(queues + strlen(queues), sizeof queues - strlen(queues), "%s%s%s", i == 0 ? "" : ",",
                       start->queues[i].name, start->queues[i].from_log_start ? "!" : "");
    }
    tell("worker %d %s %s %s budget %llu", (int)getpid(), start->incarnation,
         start->previous_incarnation[0] == '\0' ? "-" : start->previous_incarnation, queues,
         (unsigned long long)start->budget_bytes);
}

/* False at the end of the supervisor. */
static bool take_messages(struct report_buffer *in, const struct worker_start *start)
{
    struct report_header header;
    const void *body = NULL;

    if (report_fill(in, start->report_descriptor) < 0) {
        return false;
    }
    while (report_next(in, &header, &body) == 1) {
        if (header.kind == REPORT_ASSIGN) {
            const struct report_assign *assign = body;

            tell("assign %.*s%s", (int)assign->name_size, (const char *)(assign + 1),
                 assign->from_log_start ? "!" : "");
        } else if (header.kind == REPORT_SHARE) {
            tell("share %llu", (unsigned long long)((const struct report_share *)body)->budget_bytes);
        } else if (header.kind == REPORT_ASK_STATE) {
            tell("asked %d %u", (int)getpid(), ((const struct report_ask_state *)body)->lines);
        }
    }
    return true;
}

/* Straight to its descriptors, as a library would. */
static void write_much(void)
{
    char line[128];

    for (int i = 0; i < behaviour.flood; i++) {
        int size = snprintf(line, sizeof line, "\x1b[31mflood %d\x1b[0m\n", i);

        (void)!write(i % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO, line, (size_t)size);
    }
    if (behaviour.abort) {
        (void)!write(STDERR_FILENO, "double free", 11);
        abort();
    }
}

static int fake_run(const struct worker_start *start)
{
    struct report_buffer out = {0};
    struct report_buffer in = {0};
    sigset_t term;
    int signals;

    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    signals = signalfd(-1, &term, SFD_CLOEXEC);
    tell_start(start);
    if (behaviour.worker_code != 0) {
        return behaviour.worker_code;
    }
    if (behaviour.mute_again && start->previous_incarnation[0] != '\0') {
        return 1;
    }
    send_reports(&out, start, QUEUE_RUNNING);
    write_much();
    for (;;) {
        struct pollfd watched[2] = {{.fd = signals, .events = POLLIN},
                                    {.fd = start->report_descriptor, .events = POLLIN}};

        (void)poll(watched, behaviour.ignore_term ? 1 : 2, -1);
        if (watched[0].revents != 0) {
            struct signalfd_siginfo information;

            (void)!read(signals, &information, sizeof information);
            tell("term %d", (int)getpid());
            if (behaviour.refuse_on_term) {
                return 2;
            }
            if (!behaviour.ignore_term) {
                send_reports(&out, start, QUEUE_DRAINED);
                return 0;
            }
        }
        if (watched[1].revents != 0 && !take_messages(&in, start)) {
            return 0;
        }
    }
}

static int fake_ask(const struct settings *given, char ***names, size_t *count, struct error *error)
{
    char line[128];
    FILE *list;

    tell("probe %d", (int)getpid());
    while (behaviour.hang_probe) {
        (void)pause();
    }
    if (behaviour.probe_code != 0) {
        (void)error_set(error, QS_ERROR_TRANSPORT, "no broker at %s", given->queen_url);
        return behaviour.probe_code;
    }
    list = given->all_queues ? fopen(list_path, "re") : NULL;
    *names = calloc(64, sizeof **names);
    while (list != NULL && fgets(line, sizeof line, list) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        (*names)[(*count)++] = strdup(line);
    }
    if (list != NULL) {
        (void)fclose(list);
    }
    return 0;
}

static int fake_clean(const char *root, const char *bucket, struct error *error)
{
    (void)error;
    tell("clean %s %s", root, bucket);
    return 0;
}

static char *copy(const char *text)
{
    return text == NULL ? NULL : strdup(text);
}

/* The same with strings that can be freed. */
static struct settings with_own_strings(const struct settings *from)
{
    struct settings own = *from;

    own.queen_url = copy(from->queen_url);
    own.listen_host = copy(from->listen_host);
    own.listen_port = copy(from->listen_port);
    own.file_root = copy(from->file_root);
    own.bucket = copy(from->bucket);
    own.sink = copy(from->sink);
    own.control = copy(from->control);
    own.instance = copy(from->instance);
    own.queues = calloc(from->queue_count + 1, sizeof *own.queues);
    for (size_t i = 0; i < from->queue_count; i++) {
        own.queues[i] = copy(from->queues[i]);
    }
    return own;
}

/* The file holds how large the budget is. */
static int fake_reload(void *argument, struct settings *fresh, struct error *error)
{
    char line[128] = "";
    FILE *file = fopen(list_path, "re");

    (void)argument;
    tell("reload");
    if (file == NULL || fgets(line, sizeof line, file) == NULL || strcmp(line, "broken") == 0) {
        return error_set(error, QS_ERROR_INPUT, "QUEEN_S3_SOMETHING=%s: is broken", line);
    }
    (void)fclose(file);
    *fresh = with_own_strings(&settings);
    fresh->memory_bytes = strtoll(line, NULL, 10) << 20;
    return 0;
}

/* ---- the test's side ---- */

/* The next line that begins with `start`, what comes before it thrown away. */
static const char *wait_for(const char *start)
{
    static char line[1024];
    size_t size = strlen(unread);

    for (;;) {
        struct pollfd watched = {.fd = told, .events = POLLIN};
        char *feed = strchr(unread, '\n');

        if (feed != NULL) {
            (void)snprintf(line, sizeof line, "%.*s", (int)(feed - unread), unread);
            size -= (size_t)(feed + 1 - unread);
            memmove(unread, feed + 1, size + 1);
            if (strncmp(line, start, strlen(start)) == 0) {
                return line;
            }
            continue;
        }
        ck_assert_msg(poll(&watched, 1, PATIENCE_MS) == 1, "waited for '%s'", start);
        size += (size_t)read(told, unread + size, sizeof unread - 1 - size);
        unread[size] = '\0';
    }
}

struct started {
    int pid;
    char incarnation[17];
    char previous[17];
    char queues[256];
    unsigned long long budget;
};

static struct started read_started(const char *line)
{
    struct started started = {0};
    char *rest = NULL;

    started.pid = (int)strtol(line + strlen("worker "), &rest, 10);
    ck_assert_int_eq(sscanf(rest, "%16s %16s %255s", started.incarnation, started.previous, started.queues), 3);
    started.budget = strtoull(strstr(rest, " budget ") + strlen(" budget "), NULL, 10);
    return started;
}

static struct started wait_for_worker(void)
{
    return read_started(wait_for("worker "));
}

/* A new worker, and a line from another one, in either order. */
static struct started wait_for_worker_and(const char *wanted)
{
    struct started started = {0};
    bool heard = false;

    while (started.pid == 0 || !heard) {
        const char *line = wait_for("");

        if (strncmp(line, "worker ", strlen("worker ")) == 0) {
            started = read_started(line);
        }
        heard = heard || strcmp(line, wanted) == 0;
    }
    return started;
}

static void start_supervisor(void)
{
    static const struct supervisor_hooks hooks = {fake_run, fake_ask, fake_clean, NULL, fake_reload, NULL};

    supervisor = fork();
    if (supervisor == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        settings = with_own_strings(&settings);
        log_capture(tell_log, NULL);
        (void)dup2(standard[1], STDOUT_FILENO);
        (void)dup2(standard[1], STDERR_FILENO);
        exit(supervisor_run(&settings, &hooks));
    }
    ck_assert_int_gt(supervisor, 0);
}

static int end_of_supervisor(void)
{
    int wait_status = 0;

    ck_assert_int_eq(waitpid(supervisor, &wait_status, 0), supervisor);
    supervisor = 0;
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1000 + WTERMSIG(wait_status);
}

static int stop(void)
{
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    return end_of_supervisor();
}

/* The first stop signal has been taken by now. Nothing but time makes the next one a second one. */
static void let_a_second_count(void)
{
    struct timespec time = {.tv_nsec = STOP_AGAIN_MS * 1000000L};

    ck_assert_int_eq(nanosleep(&time, NULL), 0);
}

/* An orphan is adopted by the test, which is the sub-reaper: its end is an event here. */
static int end_of_orphan(int pid)
{
    int wait_status = 0;

    ck_assert_int_eq(waitpid(pid, &wait_status, 0), pid);
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1000 + WTERMSIG(wait_status);
}

static unsigned wait_for_port(void)
{
    static const char words[] = "listening on 127.0.0.1:";
    const char *line = strstr(wait_for("log "), words);

    while (line == NULL) {
        line = strstr(wait_for("log "), words);
    }
    return (unsigned)strtoul(line + strlen(words), NULL, 10);
}

static void get(unsigned port, const char *path, char *text, size_t room)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char request[128];
    size_t size = 0;
    ssize_t got;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(client, (const struct sockaddr *)&address, sizeof address), 0);
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path);
    ck_assert_int_gt(send(client, request, strlen(request), 0), 0);
    while ((got = recv(client, text + size, room - 1 - size, 0)) > 0) {
        size += (size_t)got;
    }
    text[size] = '\0';
    (void)close(client);
}

static bool shows(unsigned port, const char *line)
{
    static char text[65536];

    get(port, "/metrics", text, sizeof text);
    return strstr(text, line) != NULL;
}

static void list_queues(const char *names)
{
    char path[112];
    FILE *list;

    (void)snprintf(path, sizeof path, "%s.new", list_path);
    list = fopen(path, "we");
    ck_assert_ptr_nonnull(list);
    (void)fputs(names, list);
    (void)fclose(list);
    ck_assert_int_eq(rename(path, list_path), 0);
}

static void begin(void)
{
    memset(&behaviour, 0, sizeof behaviour);
    memset(&settings, 0, sizeof settings);
    unread[0] = '\0';
    (void)snprintf(folder, sizeof folder, "/tmp/supervisor_test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    (void)snprintf(list_path, sizeof list_path, "%s/list", folder);
    ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
    standard[0] = -1;
    standard[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    told = open(pipe_path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(told, 0);
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    settings.queen_url = "http://broker";
    settings.queues = named;
    settings.queue_count = 3;
    settings.workers = 2;
    settings.listen_host = "127.0.0.1";
    settings.listen_port = "0";
    settings.control = "off";
    settings.sink = "default";
    settings.instance = "test-0";
    settings.memory_bytes = (int64_t)1024 << 20;
    settings.max_window_ms = 300000;
    settings.lease_ttl_ms = 30000;
    settings.discovery_interval_ms = 10;
    settings.shutdown_grace_ms = 30000;
    settings.log_level = LOG_INFO;
}

static void end(void)
{
    if (supervisor > 0) {
        (void)kill(supervisor, SIGKILL);
        while (waitpid(-1, NULL, 0) > 0) {
            /* all that it left */
        }
        supervisor = 0;
    }
    (void)close(told);
    (void)close(standard[1]);
    (void)unlink(pipe_path);
    (void)unlink(list_path);
    (void)rmdir(folder);
}

/* The next line of the log with these words. */
static const char *wait_for_log(const char *words)
{
    const char *line = wait_for("log ");

    while (strstr(line, words) == NULL) {
        line = wait_for("log ");
    }
    return line;
}

/* ---- tests ---- */

START_TEST(queues_are_split_over_workers_that_drain_on_a_stop)
{
    struct started first;
    struct started second;

    settings.file_root = "/root";
    settings.bucket = "lake";
    start_supervisor();
    (void)wait_for("probe ");
    ck_assert_str_eq(wait_for("clean "), "clean /root lake");
    first = wait_for_worker();
    second = wait_for_worker();
    if (strcmp(first.queues, "clicks") == 0) { /* who of the two speaks first is open */
        struct started other = first;

        first = second;
        second = other;
    }
    ck_assert_str_eq(first.queues, "orders,views");
    ck_assert_str_eq(second.queues, "clicks");
    ck_assert_str_eq(first.previous, "-");
    ck_assert_uint_eq(strlen(first.incarnation), 16);
    ck_assert_str_ne(first.incarnation, second.incarnation);
    ck_assert_uint_eq(first.budget, ((1024ULL - 8 - 2 * 16) << 20) * 2 / 3);
    ck_assert_int_eq(getpgid(first.pid), first.pid);
    ck_assert_int_eq(stop(), 0);
    (void)wait_for("term ");
    (void)wait_for("term ");
}
END_TEST

START_TEST(a_killed_worker_comes_back_as_its_own_heir_and_no_counter_falls)
{
    struct started first;
    struct started heir;
    unsigned port;

    settings.workers = 1;
    start_supervisor();
    port = wait_for_port();
    first = wait_for_worker();
    while (!shows(port, "queen_s3_windows_committed_total{queue=\"views\"} 1\n")) {
        /* each round is a whole request */
    }
    ck_assert(shows(port, "queen_s3_worker_up{worker=\"0\"} 1\n"));
    ck_assert(!shows(port, "queen_s3_worker_resident_bytes{worker=\"0\"} 0\n"));
    ck_assert_int_eq(kill(first.pid, SIGKILL), 0);
    heir = wait_for_worker();
    ck_assert_str_eq(heir.previous, first.incarnation);
    ck_assert_str_ne(heir.incarnation, first.incarnation);
    ck_assert_str_eq(heir.queues, first.queues);
    ck_assert_int_eq(kill(first.pid, 0), -1); /* reaped: no zombie */
    ck_assert_int_eq(errno, ESRCH);
    ck_assert(shows(port, "queen_s3_worker_restarts_total{worker=\"0\"} 1\n"));
    while (!shows(port, "queen_s3_windows_committed_total{queue=\"views\"} 2\n")) {
        ck_assert(!shows(port, "queen_s3_windows_committed_total{queue=\"views\"} 0\n"));
    }
    ck_assert(shows(port, "queen_s3_workers 1\n"));
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(a_killed_supervisor_takes_its_workers_along)
{
    struct started first;
    struct started second;

    behaviour.ignore_term = true; /* and doesn't notice the end of the socket either */
    start_supervisor();
    first = wait_for_worker();
    second = wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGKILL), 0);
    ck_assert_int_eq(end_of_supervisor(), 1000 + SIGKILL);
    ck_assert_int_eq(end_of_orphan(first.pid), 1000 + SIGKILL);
    ck_assert_int_eq(end_of_orphan(second.pid), 1000 + SIGKILL);
}
END_TEST

START_TEST(a_drain_that_outlasts_the_grace_is_killed_and_its_queues_named)
{
    struct started first;

    behaviour.ignore_term = true;
    settings.workers = 1;
    settings.shutdown_grace_ms = 100;
    start_supervisor();
    first = wait_for_worker();
    ck_assert_int_eq(stop(), 0);
    ck_assert_int_eq(kill(first.pid, 0), -1);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(strstr(wait_for_log("not drained"), named[i]));
    }
}
END_TEST

START_TEST(a_second_signal_kills_at_once)
{
    int number = _i == 0 ? SIGINT : SIGTERM;
    struct started first;

    behaviour.ignore_term = true;
    settings.workers = 1;
    start_supervisor();
    first = wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    (void)wait_for("term ");
    let_a_second_count();
    ck_assert_int_eq(kill(supervisor, number), 0);
    ck_assert_int_eq(end_of_supervisor(), 128 + number);
    ck_assert_int_eq(kill(first.pid, 0), -1);
}
END_TEST

/* Held up until both are there, as whoever tells them at once may meet it. */
START_TEST(a_stop_told_twice_at_once_is_one)
{
    settings.workers = 1;
    start_supervisor();
    (void)wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGSTOP), 0);
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    ck_assert_int_eq(kill(supervisor, SIGINT), 0);
    ck_assert_int_eq(kill(supervisor, SIGCONT), 0);
    ck_assert_int_eq(end_of_supervisor(), 0);
    (void)wait_for_log("stopping already");
}
END_TEST

START_TEST(a_worker_that_refuses_ends_the_pool_with_2)
{
    behaviour.worker_code = 2;
    start_supervisor();
    ck_assert_int_eq(end_of_supervisor(), 2);
}
END_TEST

START_TEST(exit_2_during_a_stop_is_only_an_end)
{
    behaviour.refuse_on_term = true;
    start_supervisor();
    (void)wait_for_worker();
    (void)wait_for_worker();
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(a_failed_probe_is_exit_3)
{
    behaviour.probe_code = 3;
    start_supervisor();
    ck_assert_int_eq(end_of_supervisor(), 3);
}
END_TEST

START_TEST(a_probe_that_dies_is_exit_3)
{
    int pid;

    behaviour.hang_probe = true;
    start_supervisor();
    pid = (int)strtol(wait_for("probe ") + strlen("probe "), NULL, 10);
    ck_assert_int_eq(getpgid(pid), getpgrp());
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(end_of_supervisor(), 3);
}
END_TEST

START_TEST(a_signal_before_the_first_claim_is_exit_0_and_health_answers_meanwhile)
{
    char text[1024];
    unsigned port;

    behaviour.hang_probe = true;
    start_supervisor();
    port = wait_for_port();
    (void)wait_for("probe ");
    get(port, "/healthz", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "{\"ok\":true,\"queues\":0}"));
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(a_port_that_is_taken_is_exit_1)
{
    static char taken[16];
    unsigned port;
    pid_t other;

    start_supervisor();
    port = wait_for_port();
    other = supervisor;
    (void)snprintf(taken, sizeof taken, "%u", port);
    settings.listen_port = taken;
    start_supervisor();
    ck_assert_int_eq(end_of_supervisor(), 1);
    supervisor = other;
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(with_a_star_new_queues_are_shared_out_from_their_log_start)
{
    struct started first;
    struct started second;

    settings.all_queues = true;
    settings.queues = NULL;
    settings.queue_count = 0;
    list_queues("");
    start_supervisor();
    (void)wait_for("probe ");
    (void)wait_for("probe "); /* nothing yet: it waits, and asks again */
    list_queues("a\n");
    first = wait_for_worker();
    ck_assert_str_eq(first.queues, "a!");
    list_queues("a\nb\nc\n");
    second = wait_for_worker_and("assign c!");
    ck_assert_str_eq(second.queues, "b!");
    ck_assert_uint_eq(second.budget, ((1024ULL - 8 - 2 * 16) << 20) / 3);
    list_queues("a\n"); /* queues are never taken away */
    (void)wait_for("probe ");
    (void)wait_for("probe ");
    ck_assert_int_eq(kill(first.pid, SIGKILL), 0);
    first = wait_for_worker();
    ck_assert_str_eq(first.queues, "a!,c!");
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(a_new_queue_gives_every_worker_a_new_share)
{
    unsigned long long third = ((1024ULL - 8 - 2 * 16) << 20) / 3;
    unsigned long long shares[2];

    settings.all_queues = true;
    settings.queues = NULL;
    settings.queue_count = 0;
    list_queues("a\nb\n");
    start_supervisor();
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(wait_for_worker().budget, ((1024ULL - 8 - 2 * 16) << 20) / 2);
    }
    list_queues("a\nb\nc\n");
    for (int i = 0; i < 2; i++) { /* who of the two speaks first is open */
        shares[i] = strtoull(wait_for("share ") + strlen("share "), NULL, 10);
    }
    ck_assert_uint_eq(shares[0] < shares[1] ? shares[0] : shares[1], third);
    ck_assert_uint_eq(shares[0] < shares[1] ? shares[1] : shares[0], 2 * third);
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(with_a_star_the_first_listing_follows_start)
{
    settings.all_queues = true;
    settings.queues = NULL;
    settings.queue_count = 0;
    settings.workers = 1;
    list_queues("a\nb\n");
    start_supervisor();
    ck_assert_str_eq(wait_for_worker().queues, "a,b");
    list_queues("a\nb\nc\n");
    ck_assert_str_eq(wait_for("assign "), "assign c!");
    ck_assert_int_eq(stop(), 0);
}
END_TEST

/* Lines of the log up to the first one with these words. */
static int count_log_to(const char *words)
{
    int count = 0;

    while (strstr(wait_for("log "), words) == NULL) {
        count++;
    }
    return count;
}

START_TEST(a_flood_of_output_is_cut_down_and_holds_nobody_up)
{
    bool piped = _i == 1;
    unsigned port;

    behaviour.flood = 20000;
    settings.workers = piped ? 2 : 1;
    if (piped) {
        (void)close(standard[1]);
        ck_assert_int_eq(pipe2(standard, O_CLOEXEC), 0);
    }
    start_supervisor();
    port = wait_for_port();
    (void)wait_for_log(": flood 0");
    while (!shows(port, "queen_s3_windows_committed_total{queue=\"orders\"} 1\n")) {
        /* each round is a whole request */
    }
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    if (piped) {
        ck_assert_int_lt(count_log_to("lines were left out"), LOG_BUDGET_LINES);
        ck_assert_int_eq(close(standard[0]), 0);
    } else {
        (void)wait_for_log("worker 0: flood 199");
        (void)wait_for_log("lines were left out");
    }
    ck_assert_int_eq(end_of_supervisor(), 0);
}
END_TEST

START_TEST(the_last_words_of_a_worker_are_heard)
{
    behaviour.abort = true;
    settings.workers = 1;
    start_supervisor();
    (void)wait_for_log("warn  worker 0: double free");
    (void)wait_for_log("worker 0: ended by signal 6");
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(sighup_starts_one_worker_after_another_with_what_the_file_says)
{
    static const char up[] = "queen_s3_worker_up{worker=\"0\"} 1\nqueen_s3_worker_up{worker=\"1\"} 1\n";
    struct started before[2];
    unsigned port;

    list_queues("2048");
    start_supervisor();
    port = wait_for_port();
    before[0] = wait_for_worker();
    before[1] = wait_for_worker();
    while (!shows(port, up)) {
        /* each round is a whole request */
    }
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    (void)wait_for("reload");
    for (int i = 0; i < 2; i++) {
        int drained = (int)strtol(wait_for("term ") + strlen("term "), NULL, 10);
        struct started *old = before[0].pid == drained ? &before[0] : &before[1];
        struct started heir;

        ck_assert_int_eq(old->pid, drained);
        heir = wait_for_worker(); /* before the next one is told to drain */
        ck_assert_str_eq(heir.previous, old->incarnation);
        ck_assert_str_eq(heir.queues, old->queues);
        ck_assert_uint_eq(heir.budget, ((2048ULL - 8 - 2 * 16) << 20) * (strchr(old->queues, ',') ? 2 : 1) / 3);
    }
    (void)wait_for_log("every worker has been started again");
    ck_assert(shows(port, "queen_s3_worker_restarts_total{worker=\"0\"} 0\n"));
    ck_assert(shows(port, "queen_s3_worker_restarts_total{worker=\"1\"} 0\n"));
    ck_assert(shows(port, "queen_s3_windows_committed_total{queue=\"views\"} 2\n"));
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(sighup_with_a_broken_file_changes_nothing)
{
    struct started first;

    list_queues("broken");
    settings.workers = 1;
    start_supervisor();
    first = wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    (void)wait_for_log("error SIGHUP: nothing has changed: QUEEN_S3_SOMETHING=broken: is broken");
    list_queues("40"); /* too little for one worker, as `check` would say */
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    (void)wait_for_log("error SIGHUP: nothing has changed: QUEEN_S3_MEMORY_MB=40: expected at least");
    ck_assert_int_eq(kill(first.pid, 0), 0);
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    ck_assert_int_eq((int)strtol(wait_for("term ") + strlen("term "), NULL, 10), first.pid);
    ck_assert_int_eq(end_of_supervisor(), 0);
}
END_TEST

START_TEST(sighup_meanwhile_is_one_more_round)
{
    list_queues("1024");
    settings.workers = 1;
    start_supervisor();
    (void)wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGSTOP), 0);
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    ck_assert_int_eq(kill(supervisor, SIGCONT), 0);
    (void)wait_for("term ");
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    (void)wait_for("reload");
    (void)wait_for("term ");
    (void)wait_for_worker();
    (void)wait_for_log("every worker has been started again");
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(a_stop_ends_a_rolling_restart)
{
    struct started first;

    list_queues("1024");
    behaviour.ignore_term = true;
    settings.workers = 1;
    start_supervisor();
    first = wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    (void)wait_for("term "); /* it drains, for as long as the grace lets it */
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    (void)wait_for("term ");
    let_a_second_count();
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    ck_assert_int_eq(end_of_supervisor(), 128 + SIGTERM);
    ck_assert_int_eq(kill(first.pid, 0), -1);
    tell("end");
    while (strcmp(wait_for(""), "end") != 0) {
        ck_assert_int_ne(strncmp(unread, "worker ", strlen("worker ")), 0); /* nobody came after it */
    }
}
END_TEST

START_TEST(a_drain_that_outlasts_the_grace_of_a_rolling_restart_is_killed)
{
    struct started first;

    list_queues("1024");
    behaviour.ignore_term = true;
    settings.workers = 1;
    settings.shutdown_grace_ms = 100;
    start_supervisor();
    first = wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    ck_assert_str_eq(wait_for_worker().previous, first.incarnation);
    ck_assert_int_eq(kill(first.pid, 0), -1);
    (void)wait_for_log("every worker has been started again");
    ck_assert_int_eq(stop(), 0);
}
END_TEST

START_TEST(a_worker_that_does_not_come_up_again_ends_the_round)
{
    list_queues("1024");
    behaviour.mute_again = true;
    start_supervisor();
    (void)wait_for_worker();
    (void)wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    (void)wait_for_log("error worker 0: did not come up again: the rolling restart ends here");
    (void)wait_for_worker(); /* worker 0, after its backoff; worker 1 still runs its first life */
    ck_assert_int_eq(stop(), 0);
    (void)wait_for("term ");
}
END_TEST

struct asked {
    long pid;
    long lines;
};

static struct asked wait_for_asked(void)
{
    char *behind = NULL;
    struct asked asked = {.pid = strtol(wait_for("asked ") + strlen("asked "), &behind, 10)};

    asked.lines = strtol(behind, NULL, 10);
    return asked;
}

/* For as many lines as the log lets through, of each or, where it goes into a pipe, of both together. */
START_TEST(sigusr1_asks_every_worker)
{
    struct started first;
    struct started second;

    if (_i == 1) {
        (void)close(standard[1]);
        ck_assert_int_eq(pipe2(standard, O_CLOEXEC), 0);
    }
    start_supervisor();
    first = wait_for_worker();
    second = wait_for_worker();
    ck_assert_int_eq(kill(supervisor, SIGUSR1), 0);
    struct asked one = wait_for_asked();
    struct asked other = wait_for_asked();
    ck_assert(one.pid == first.pid || one.pid == second.pid);
    ck_assert_int_eq(other.pid, one.pid == first.pid ? second.pid : first.pid);
    ck_assert_int_eq(one.lines, other.lines);
    long of_one_budget = _i == 1 ? one.lines + other.lines : one.lines;
    ck_assert_int_lt(of_one_budget, LOG_BUDGET_LINES);
    ck_assert_int_gt(of_one_budget, LOG_BUDGET_LINES / 2);
    ck_assert_int_eq(stop(), 0);
}
END_TEST

/* ---- a service manager ---- */

static int manager;

static void listen_as_manager(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];

    (void)snprintf(name, sizeof name, "@supervisor_test.%d", (int)getpid());
    memcpy(address.sun_path, name, strlen(name));
    address.sun_path[0] = '\0';
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(manager, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    (void)setenv("NOTIFY_SOCKET", name, 1);
}

/* The next datagram that begins so, those before it thrown away. */
static const char *wait_for_notice(const char *start)
{
    static char text[1024];
    ssize_t got;

    do {
        struct pollfd watched = {.fd = manager, .events = POLLIN};

        ck_assert_msg(poll(&watched, 1, PATIENCE_MS) == 1, "waited for the notice '%s'", start);
        got = recv(manager, text, sizeof text - 1, 0);
        ck_assert_int_ge((int)got, 0);
        text[got] = '\0';
    } while (strncmp(text, start, strlen(start)) != 0);
    return text;
}

START_TEST(a_service_manager_is_told_how_it_stands)
{
    list_queues("1024");
    listen_as_manager();
    start_supervisor();
    (void)wait_for_notice("EXTEND_TIMEOUT_USEC=");
    ck_assert_str_eq(wait_for_notice("READY=1"), "READY=1");
    (void)wait_for_notice("STATUS=3 queues, 2 workers, the worst one: running");
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    (void)wait_for_notice("RELOADING=1\nMONOTONIC_USEC=");
    ck_assert_str_eq(wait_for_notice("READY=1"), "READY=1");
    list_queues("broken");
    ck_assert_int_eq(kill(supervisor, SIGHUP), 0);
    (void)wait_for_notice("RELOADING=1\nMONOTONIC_USEC=");
    ck_assert_str_eq(wait_for_notice("READY=1"), "READY=1");
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    (void)wait_for_notice("STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000");
    ck_assert_int_eq(end_of_supervisor(), 0);
}
END_TEST

START_TEST(a_supervisor_that_hangs_feeds_no_watchdog)
{
    struct pollfd watched;
    char text[64];

    listen_as_manager();
    (void)setenv("WATCHDOG_USEC", "100000", 1);
    start_supervisor();
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(wait_for_notice("WATCHDOG=1"), "WATCHDOG=1");
    }
    ck_assert_int_eq(kill(supervisor, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(supervisor, NULL, WUNTRACED), supervisor);
    while (recv(manager, text, sizeof text, MSG_DONTWAIT) > 0) {
        /* what it had sent before */
    }
    watched = (struct pollfd){.fd = manager, .events = POLLIN};
    ck_assert_int_eq(poll(&watched, 1, 300), 0); /* three times its limit */
    ck_assert_int_eq(kill(supervisor, SIGCONT), 0);
    (void)wait_for_notice("WATCHDOG=1");
    ck_assert_int_eq(stop(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("supervisor");
    TCase *tests = tcase_create("processes");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, queues_are_split_over_workers_that_drain_on_a_stop);
    tcase_add_test(tests, a_killed_worker_comes_back_as_its_own_heir_and_no_counter_falls);
    tcase_add_test(tests, a_killed_supervisor_takes_its_workers_along);
    tcase_add_test(tests, a_drain_that_outlasts_the_grace_is_killed_and_its_queues_named);
    tcase_add_loop_test(tests, a_second_signal_kills_at_once, 0, 2);
    tcase_add_test(tests, a_stop_told_twice_at_once_is_one);
    tcase_add_test(tests, a_worker_that_refuses_ends_the_pool_with_2);
    tcase_add_test(tests, exit_2_during_a_stop_is_only_an_end);
    tcase_add_test(tests, a_failed_probe_is_exit_3);
    tcase_add_test(tests, a_probe_that_dies_is_exit_3);
    tcase_add_test(tests, a_signal_before_the_first_claim_is_exit_0_and_health_answers_meanwhile);
    tcase_add_test(tests, a_port_that_is_taken_is_exit_1);
    tcase_add_test(tests, with_a_star_new_queues_are_shared_out_from_their_log_start);
    tcase_add_test(tests, a_new_queue_gives_every_worker_a_new_share);
    tcase_add_test(tests, with_a_star_the_first_listing_follows_start);
    tcase_add_loop_test(tests, a_flood_of_output_is_cut_down_and_holds_nobody_up, 0, 2);
    tcase_add_test(tests, the_last_words_of_a_worker_are_heard);
    tcase_add_test(tests, sighup_starts_one_worker_after_another_with_what_the_file_says);
    tcase_add_test(tests, sighup_with_a_broken_file_changes_nothing);
    tcase_add_test(tests, sighup_meanwhile_is_one_more_round);
    tcase_add_test(tests, a_stop_ends_a_rolling_restart);
    tcase_add_test(tests, a_drain_that_outlasts_the_grace_of_a_rolling_restart_is_killed);
    tcase_add_test(tests, a_worker_that_does_not_come_up_again_ends_the_round);
    tcase_add_loop_test(tests, sigusr1_asks_every_worker, 0, 2);
    tcase_add_test(tests, a_service_manager_is_told_how_it_stands);
    tcase_add_test(tests, a_supervisor_that_hangs_feeds_no_watchdog);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
