/*
 * See log_forward.h.
 */
#include "supervisor/log_forward.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

#define READ_SIZE        16384
#define READS_A_TURN     8
#define READS_AT_THE_END 128 /* more than any pipe holds: only a process that still writes goes on longer */

static bool is_pipe(int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode);
}

void log_forward_init(struct log_forward *forward)
{
    *forward = (struct log_forward){.pooled = is_pipe(STDERR_FILENO) || is_pipe(STDOUT_FILENO)};
    forward->counted = log_written();
}

void log_source_init(struct log_source *source, struct log_forward *forward, const char *name)
{
    *source = (struct log_source){.forward = forward, .descriptor = -1};
    (void)snprintf(source->name, sizeof source->name, "%s", name);
}

int log_source_open(struct log_source *source, int *output, struct error *error)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return error_set_errno(error, "pipe");
    }
    source->descriptor = ends[0];
    *output = ends[1];
    return 0;
}

/* ---- budgets ---- */

static void count_own(struct log_forward *forward, struct mono_ms now)
{
    unsigned long written = log_written();

    if (written - forward->counted > LOG_BUDGET_LINES) {
        forward->counted = written - LOG_BUDGET_LINES; /* more makes no difference */
    }
    for (; forward->counted != written; forward->counted++) {
        log_budget_take(&forward->pool, now);
    }
}

static bool is_open(struct log_source *source, struct mono_ms now)
{
    struct log_forward *forward = source->forward;
    bool open = log_budget_open(&source->budget, now);

    if (forward->pooled) {
        count_own(forward, now);
        open = log_budget_open(&forward->pool, now) && open;
    }
    return open;
}

/* A line of this source was written, which log_written() may count too or not. */
static void take_room(struct log_source *source, struct mono_ms now)
{
    log_budget_take(&source->budget, now);
    log_budget_take(&source->forward->pool, now);
    source->forward->counted = log_written();
}

static void tell_left_out(struct log_source *source)
{
    log_line(LOG_WARN, NULL, "%s: %lu lines were left out, more than %d in %d s", source->name, source->left_out,
             LOG_BUDGET_LINES, LOG_BUDGET_MS / 1000);
    source->left_out = 0;
}

void log_source_tick(struct log_source *source, struct mono_ms now)
{
    if (source->left_out > 0 && is_open(source, now)) {
        tell_left_out(source);
        take_room(source, now);
    }
}

void log_source_finish(struct log_source *source)
{
    if (source->left_out > 0) {
        tell_left_out(source);
    }
}

bool log_source_deadline(const struct log_source *source, struct mono_ms *deadline)
{
    const struct log_budget *budget = &source->budget;
    const struct log_budget *pool = &source->forward->pool;

    if (source->left_out == 0) {
        return false;
    }
    deadline->v = 0;
    if (budget->spent) {
        *deadline = log_budget_reopens(budget);
    }
    if (pool->spent && log_budget_reopens(pool).v > deadline->v) {
        *deadline = log_budget_reopens(pool);
    }
    return true;
}

/* ---- lines ---- */

struct arrival {
    struct log_source *source;
    struct mono_ms now;
};

static void take_line(void *argument, const char *line, size_t size)
{
    struct arrival *arrival = argument;
    struct log_source *source = arrival->source;

    log_source_tick(source, arrival->now);
    if (source->left_out > 0 || !is_open(source, arrival->now)) {
        source->left_out++;
        return;
    }
    log_pass(source->name, line, size);
    take_room(source, arrival->now);
}

/* False: nothing now. Closes at the end. */
static bool read_once(struct log_source *source, struct arrival *arrival)
{
    char bytes[READ_SIZE];
    ssize_t got = read(source->descriptor, bytes, sizeof bytes);

    if (got > 0) {
        log_splitter_feed(&source->splitter, bytes, (size_t)got, take_line, arrival);
        return true;
    }
    if (got < 0 && errno == EINTR) {
        return true;
    }
    if (got == 0 || errno != EAGAIN) {
        log_splitter_end(&source->splitter, take_line, arrival);
        (void)close(source->descriptor);
        source->descriptor = -1;
    }
    return false;
}

static void read_some(struct log_source *source, int most, struct mono_ms now)
{
    struct arrival arrival = {source, now};

    for (int i = 0; i < most && source->descriptor >= 0; i++) {
        if (!read_once(source, &arrival)) {
            return;
        }
    }
}

void log_source_read(struct log_source *source, struct mono_ms now)
{
    read_some(source, READS_A_TURN, now);
}

void log_source_close(struct log_source *source, struct mono_ms now)
{
    struct arrival arrival = {source, now};

    read_some(source, READS_AT_THE_END, now);
    if (source->descriptor >= 0) { /* someone else holds the other end */
        log_splitter_end(&source->splitter, take_line, &arrival);
        (void)close(source->descriptor);
        source->descriptor = -1;
    }
}
