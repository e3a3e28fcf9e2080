/*
 * See probe.h. What goes over the pipe: the code, the message, the number of names, and each name, every text preceded by
 * its size. Both ends are one binary; a child that died halfway is told from what is missing.
 */
#include "supervisor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/child.h"

struct errand {
    const struct settings *settings;
    probe_function *ask;
    probe_clean_function *clean;
    int descriptor;
};

static bool write_all(int descriptor, const void *bytes, size_t size)
{
    const char *next = bytes;

    while (size > 0) {
        ssize_t written = write(descriptor, next, size);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        next += written;
        size -= (size_t)written;
    }
    return true;
}

static bool write_number(int descriptor, size_t number)
{
    uint64_t wire = number;

    return write_all(descriptor, &wire, sizeof wire);
}

static bool write_text(int descriptor, const char *text)
{
    return write_number(descriptor, strlen(text)) && write_all(descriptor, text, strlen(text));
}

/* In the child. */
static int run_errand(void *argument)
{
    const struct errand *errand = argument;
    const struct settings *settings = errand->settings;
    struct error error;
    char **names = NULL;
    size_t count = 0;
    int code;
    bool told;

    error_clear(&error);
    code = errand->ask(settings, &names, &count, &error);
    if (code == 0 && errand->clean != NULL && settings->file_root != NULL &&
        errand->clean(settings->file_root, settings->bucket, &error) != 0) {
        code = PROBE_FAILED;
    }
    told = write_number(errand->descriptor, (size_t)code) && write_text(errand->descriptor, error.message) &&
           write_number(errand->descriptor, count);
    for (size_t i = 0; i < count; i++) {
        told = told && write_text(errand->descriptor, names[i]);
        free(names[i]);
    }
    free(names);
    return told ? code : 1;
}

void probe_init(struct probe *probe, struct log_forward *forward)
{
    *probe = (struct probe){.descriptor = -1};
    log_source_init(&probe->log, forward, "probe");
}

int probe_start(struct probe *probe, const struct settings *settings, probe_function *ask, probe_clean_function *clean,
                struct mono_ms now, struct error *error)
{
    int ends[2];
    struct errand errand = {settings, ask, clean, -1};
    struct child_options options = {.own_group = false, .title = "queen-s3: probe"};
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return error_set_errno(error, "pipe");
    }
    if (log_source_open(&probe->log, &options.output, error) != 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return QS_ERROR_SYSTEM;
    }
    errand.descriptor = ends[1];
    options.keep = ends[1];
    pid = child_fork(&options, run_errand, &errand, error);
    (void)close(ends[1]);
    (void)close(options.output);
    if (pid < 0) {
        (void)close(ends[0]);
        log_source_close(&probe->log, now);
        return (int)pid;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    probe->pid = pid;
    probe->descriptor = ends[0];
    probe->deadline = (struct mono_ms){now.v + PROBE_LIMIT_MS};
    probe->size = 0;
    return 0;
}

bool probe_read(struct probe *probe)
{
    while (probe->descriptor >= 0) {
        ssize_t got;

        if (probe->capacity - probe->size < 4096) {
            size_t capacity = probe->capacity == 0 ? 16384 : probe->capacity * 2;
            char *bytes = realloc(probe->bytes, capacity);

            if (bytes == NULL) {
                break;
            }
            probe->bytes = bytes;
            probe->capacity = capacity;
        }
        got = read(probe->descriptor, probe->bytes + probe->size, probe->capacity - probe->size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            return false;
        }
        if (got <= 0) {
            break;
        }
        probe->size += (size_t)got;
    }
    if (probe->descriptor >= 0) {
        (void)close(probe->descriptor);
        probe->descriptor = -1;
    }
    return true;
}

struct cursor {
    const char *next;
    size_t left;
};

static bool take_number(struct cursor *cursor, uint64_t *number)
{
    if (cursor->left < sizeof *number) {
        return false;
    }
    memcpy(number, cursor->next, sizeof *number);
    cursor->next += sizeof *number;
    cursor->left -= sizeof *number;
    return true;
}

static char *take_text(struct cursor *cursor)
{
    uint64_t size = 0;
    char *text;

    if (!take_number(cursor, &size) || size > cursor->left) {
        return NULL;
    }
    text = strndup(cursor->next, (size_t)size);
    cursor->next += size;
    cursor->left -= (size_t)size;
    return text;
}

static bool decode(const struct probe *probe, struct probe_result *result)
{
    struct cursor cursor = {probe->bytes, probe->size};
    uint64_t code = 0;
    uint64_t count = 0;
    char *message;

    if (!take_number(&cursor, &code) || (message = take_text(&cursor)) == NULL) {
        return false;
    }
    result->code = (int)code;
    (void)snprintf(result->message, sizeof result->message, "%s", message);
    free(message);
    if (!take_number(&cursor, &count) || count > cursor.left / sizeof count) {
        return false;
    }
    result->names = calloc((size_t)count + 1, sizeof *result->names);
    if (result->names == NULL) {
        return false;
    }
    for (; result->count < count; result->count++) {
        result->names[result->count] = take_text(&cursor);
        if (result->names[result->count] == NULL) {
            return false;
        }
    }
    return true;
}

void probe_finish(struct probe *probe, int wait_status, struct mono_ms now, struct probe_result *result)
{
    *result = (struct probe_result){0};
    log_source_close(&probe->log, now);
    (void)probe_read(probe);
    if (probe->descriptor >= 0) { /* something else holds the other end: what is here is all that it said */
        (void)close(probe->descriptor);
        probe->descriptor = -1;
    }
    if (!decode(probe, result)) {
        probe_result_free(result);
        result->code = PROBE_FAILED;
        if (WIFSIGNALED(wait_status)) {
            (void)snprintf(result->message, sizeof result->message,
                           "the probe of QUEEN_URL and QUEEN_S3_ENDPOINT was ended by signal %d",
                           WTERMSIG(wait_status));
        } else {
            (void)snprintf(result->message, sizeof result->message,
                           "the probe of QUEEN_URL and QUEEN_S3_ENDPOINT ended with %d and no result",
                           WEXITSTATUS(wait_status));
        }
    }
    free(probe->bytes);
    probe->bytes = NULL;
    probe->size = 0;
    probe->capacity = 0;
    probe->pid = 0;
}

void probe_kill(const struct probe *probe)
{
    if (probe->pid > 0) {
        (void)kill(probe->pid, SIGKILL);
    }
}

void probe_result_free(struct probe_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        free(result->names[i]);
    }
    free(result->names);
    *result = (struct probe_result){0};
}
