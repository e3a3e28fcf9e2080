/*
 * The embedded sink's life; see embed.h for the contract. embed_child.c starts its process, embed_log.c carries its
 * lines.
 */
#include "embed.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "embed_child.h"
#include "embed_log.h"
#include "json.h"

#define EXIT_REFUSED     2
#define BACKOFF_MIN_MS   1000
#define BACKOFF_MAX_MS   30000
#define HEALTHY_MS       3600000 /* having run for so long forgets the backoff */
#define GRACE_DEFAULT_MS 30000
#define GRACE_MIN_MS     100
#define READS_A_TURN     16 /* a child that floods must not keep the loop from everything else */

enum embed_phase { EMBED_DOWN, EMBED_RUNNING, EMBED_BACKOFF, EMBED_STOPPING };

struct embed {
    char program[PATH_MAX];
    int64_t grace_ms;
    char **environment; /* the child's */
    struct embed_log log;
    int output;           /* the reading end of its standard output and error, or -1 */
    int64_t deadline_ms;  /* of EMBED_BACKOFF: the restart; of EMBED_STOPPING: the kill */
    pthread_mutex_t lock; /* what is below; only the main thread writes */
    enum embed_phase phase;
    pid_t pid; /* 0: none */
    int64_t started_ms;
    int64_t backoff_ms; /* of its last restart; 0: none to remember */
    int64_t restarts;
    char last_exit[24]; /* empty: none yet */
};

/* ---- the environment ---- */

/* NULL for what is unset, which a blank value is as well. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || value[strspn(value, " \t")] == '\0' ? NULL : value;
}

static bool read_boolean(const char *value, bool *to)
{
    static const char *const names[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(value, names[i]) == 0) {
            *to = i % 2 == 1;
            return true;
        }
    }
    return false;
}

static bool plan_wanted(bool asked, bool *wanted)
{
    const char *value = variable("QUEEN_S3_EMBEDDED");

    *wanted = asked;
    if (!asked && value != NULL && !read_boolean(value, wanted)) {
        fprintf(stderr, "devbroker: QUEEN_S3_EMBEDDED=%s: expected true or false\n", value);
        return false;
    }
    return true;
}

/* QUEEN_S3_BIN, else queen-s3 beside this very executable. */
static bool plan_program(struct embed *embed)
{
    const char *given = variable("QUEEN_S3_BIN");
    struct stat file;

    if (given != NULL) {
        snprintf(embed->program, sizeof embed->program, "%s", given);
    } else {
        static const char name[] = "queen-s3";
        ssize_t size = readlink("/proc/self/exe", embed->program, sizeof embed->program - sizeof name);
        char *slash = size <= 0 ? NULL : memrchr(embed->program, '/', (size_t)size);

        memcpy(slash == NULL ? embed->program : slash + 1, name, sizeof name);
    }
    if (stat(embed->program, &file) != 0 || !S_ISREG(file.st_mode)) {
        fprintf(stderr, "devbroker: QUEEN_S3_BIN=%s: not a file; expected the queen-s3 binary\n", embed->program);
        return false;
    }
    if (access(embed->program, X_OK) != 0) {
        fprintf(stderr,
                "devbroker: QUEEN_S3_BIN=%s: not executable; expected the queen-s3 binary with its execute "
                "bit (chmod +x)\n",
                embed->program);
        return false;
    }
    return true;
}

static bool plan_settings(struct embed *embed)
{
    const char *grace = variable("QUEEN_S3_SHUTDOWN_GRACE_MS");
    const char *jwt = variable("JWT_ENABLED");
    bool tokens = false;

    if (variable("QUEEN_S3_BUCKET") == NULL) {
        fputs("devbroker: QUEEN_S3_EMBEDDED=true without QUEEN_S3_BUCKET; expected QUEEN_S3_ENDPOINT, QUEEN_S3_REGION, "
              "QUEEN_S3_BUCKET and QUEEN_S3_QUEUES\n",
              stderr);
        return false;
    }
    embed->grace_ms = GRACE_DEFAULT_MS;
    if (grace != NULL && (!json_integer(slice_of(grace), &embed->grace_ms) || embed->grace_ms < GRACE_MIN_MS)) {
        fprintf(stderr, "devbroker: QUEEN_S3_SHUTDOWN_GRACE_MS=%s: expected a number of at least %d\n", grace,
                GRACE_MIN_MS);
        return false;
    }
    if (jwt != NULL && read_boolean(jwt, &tokens) && tokens && variable("QUEEN_TOKEN") == NULL &&
        variable("QUEEN_TOKEN_FILE") == NULL) {
        embed_log_say("warning: JWT_ENABLED=true without QUEEN_TOKEN: every call of the embedded sink will be answered "
                      "401, and nothing be written");
    }
    return true;
}

int embed_plan(bool asked, struct embed **embed)
{
    struct embed *planned;
    bool wanted = false;

    *embed = NULL;
    if (!plan_wanted(asked, &wanted)) {
        return EXIT_REFUSED;
    }
    if (!wanted) {
        return 0;
    }
    planned = memory_take(1, sizeof *planned);
    planned->output = -1;
    planned->deadline_ms = INT64_MAX;
    if (!plan_program(planned) || !plan_settings(planned)) {
        free(planned);
        return EXIT_REFUSED;
    }
    pthread_mutex_init(&planned->lock, NULL);
    *embed = planned;
    return 0;
}

void embed_free(struct embed *embed)
{
    if (embed == NULL) {
        return;
    }
    embed_environment_free(embed->environment);
    pthread_mutex_destroy(&embed->lock);
    free(embed);
}

/* ---- its life ---- */

static void move_to(struct embed *embed, enum embed_phase phase, int64_t deadline_ms)
{
    pthread_mutex_lock(&embed->lock);
    embed->phase = phase;
    pthread_mutex_unlock(&embed->lock);
    embed->deadline_ms = deadline_ms;
}

static void back_off(struct embed *embed)
{
    int64_t backoff_ms = embed->backoff_ms * 2;

    backoff_ms = backoff_ms < BACKOFF_MIN_MS ? BACKOFF_MIN_MS : backoff_ms;
    backoff_ms = backoff_ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : backoff_ms;
    pthread_mutex_lock(&embed->lock);
    embed->backoff_ms = backoff_ms;
    pthread_mutex_unlock(&embed->lock);
    move_to(embed, EMBED_BACKOFF, clock_mono_ms() + backoff_ms);
}

static bool start_process(struct embed *embed)
{
    pid_t pid = embed_child_start(embed->program, embed->environment, &embed->output);

    if (pid < 0) {
        back_off(embed);
        embed_log_say("queen-s3 sink not started: %s; again in %lld ms", strerror(errno), (long long)embed->backoff_ms);
        return false;
    }
    pthread_mutex_lock(&embed->lock);
    embed->pid = pid;
    embed->started_ms = clock_mono_ms();
    pthread_mutex_unlock(&embed->lock);
    move_to(embed, EMBED_RUNNING, INT64_MAX);
    return true;
}

void embed_start(struct embed *embed, const char *loopback_url)
{
    const char *given = variable("QUEEN_URL");

    if (embed == NULL) {
        return;
    }
    embed->environment = embed_environment(given != NULL ? given : loopback_url);
    if (start_process(embed)) {
        embed_log_say("queen-s3 sink started (embedded) pid=%d bin=%s queen_url=%s queen_url_from=\"%s\"",
                      (int)embed->pid, embed->program, given != NULL ? given : loopback_url,
                      given != NULL ? "QUEEN_URL (explicit)" : "loopback (bound listener)");
    }
}

static void start_again(struct embed *embed)
{
    pthread_mutex_lock(&embed->lock);
    embed->restarts++;
    pthread_mutex_unlock(&embed->lock);
    if (start_process(embed)) {
        embed_log_say("queen-s3 sink started again pid=%d", (int)embed->pid);
    }
}

static void read_output(struct embed *embed)
{
    for (int reads = 0; embed->output >= 0 && reads < READS_A_TURN; reads++) {
        char bytes[16384];
        ssize_t got = read(embed->output, bytes, sizeof bytes);

        if (got > 0) {
            embed_log_take(&embed->log, bytes, (size_t)got);
        } else if (got == 0 || errno != EAGAIN) {
            close(embed->output);
            embed->output = -1;
        } else {
            return;
        }
    }
}

/* The sink's processes are gone with it, so what the pipe holds now is all there is to come. */
static void end_output(struct embed *embed)
{
    read_output(embed);
    if (embed->output >= 0) {
        close(embed->output);
        embed->output = -1;
    }
    embed_log_end(&embed->log);
}

static void take_end(struct embed *embed, int wait_status)
{
    bool stopped = embed->phase == EMBED_STOPPING;
    bool killed = WIFSIGNALED(wait_status);

    pthread_mutex_lock(&embed->lock);
    snprintf(embed->last_exit, sizeof embed->last_exit, "%s %d", killed ? "signal" : "exit",
             killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
    if (clock_mono_ms() - embed->started_ms >= HEALTHY_MS) {
        embed->backoff_ms = 0;
    }
    embed->pid = 0;
    pthread_mutex_unlock(&embed->lock);
    if (stopped) {
        move_to(embed, EMBED_DOWN, INT64_MAX);
        embed_log_say("queen-s3 sink ended: %s", embed->last_exit);
    } else {
        back_off(embed);
        embed_log_say("queen-s3 sink ended: %s; started again in %lld ms", embed->last_exit,
                      (long long)embed->backoff_ms);
    }
}

/* What is left of its group is killed while its number can't be another's yet. */
static void reap(struct embed *embed)
{
    siginfo_t ended = {0};
    int wait_status = 0;

    if (embed->pid == 0 || waitid(P_PID, (id_t)embed->pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid == 0) {
        return;
    }
    (void)kill(-embed->pid, SIGKILL);
    if (waitpid(embed->pid, &wait_status, 0) == embed->pid) {
        end_output(embed);
        take_end(embed, wait_status);
    }
}

/* ---- the loop's side ---- */

int embed_descriptor(const struct embed *embed)
{
    return embed == NULL ? -1 : embed->output;
}

int64_t embed_wait_ms(const struct embed *embed)
{
    int64_t deadline_ms = embed == NULL ? INT64_MAX : embed->deadline_ms;
    int64_t left_ms;

    if (embed != NULL && embed_log_deadline(&embed->log) < deadline_ms) {
        deadline_ms = embed_log_deadline(&embed->log);
    }
    if (deadline_ms == INT64_MAX) {
        return -1;
    }
    left_ms = deadline_ms - clock_mono_ms();
    return left_ms < 0 ? 0 : left_ms;
}

void embed_turn(struct embed *embed)
{
    if (embed == NULL) {
        return;
    }
    read_output(embed);
    reap(embed);
    embed_log_tick(&embed->log);
    if (embed->deadline_ms > clock_mono_ms()) {
        return;
    }
    if (embed->phase == EMBED_BACKOFF) {
        start_again(embed);
    } else if (embed->phase == EMBED_STOPPING) {
        embed_log_say("queen-s3 sink: the grace of the stop is over: killing it");
        embed_kill(embed);
    }
}

void embed_stop(struct embed *embed)
{
    if (embed == NULL || embed->phase == EMBED_DOWN || embed->phase == EMBED_STOPPING) {
        return;
    }
    if (embed->pid == 0) {
        move_to(embed, EMBED_DOWN, INT64_MAX);
        return;
    }
    (void)kill(-embed->pid, SIGTERM);
    move_to(embed, EMBED_STOPPING, clock_mono_ms() + embed->grace_ms);
}

void embed_kill(struct embed *embed)
{
    embed_stop(embed);
    if (embed != NULL && embed->pid > 0) {
        (void)kill(-embed->pid, SIGKILL);
        embed->deadline_ms = INT64_MAX;
    }
}

bool embed_is_down(const struct embed *embed)
{
    return embed == NULL || embed->phase == EMBED_DOWN;
}

void embed_status(struct embed *embed, struct text *to)
{
    static const char *const names[] = {
        [EMBED_DOWN] = "down", [EMBED_RUNNING] = "running", [EMBED_BACKOFF] = "backoff", [EMBED_STOPPING] = "stopping"};

    if (embed == NULL) {
        return;
    }
    pthread_mutex_lock(&embed->lock);
    text_add_format(to, ",\"s3\":{\"mode\":\"embedded\",\"phase\":\"%s\",\"pid\":", names[embed->phase]);
    if (embed->pid > 0) {
        text_add_format(to, "%d", (int)embed->pid);
    } else {
        text_add_string(to, "null");
    }
    text_add_format(to, ",\"restarts\":%lld,\"lastExit\":", (long long)embed->restarts);
    if (embed->last_exit[0] != '\0') {
        text_add_format(to, "\"%s\"", embed->last_exit);
    } else {
        text_add_string(to, "null");
    }
    text_add_format(to, ",\"uptimeMs\":%lld,\"backoffMs\":%lld}",
                    (long long)(embed->pid > 0 ? clock_mono_ms() - embed->started_ms : 0),
                    (long long)(embed->phase == EMBED_BACKOFF ? embed->backoff_ms : 0));
    pthread_mutex_unlock(&embed->lock);
}
