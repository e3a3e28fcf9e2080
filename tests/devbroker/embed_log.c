/*
 * See embed_log.h.
 */
#include "embed_log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define PREFIX     "[s3] "
#define WINDOW_MS  10000
#define LINE_LIMIT 200

/* poll() first: standard output may be a blocking pipe that is shared with others, whose flags aren't ours to change. */
static bool write_out(const char *bytes, size_t size)
{
    struct pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0 && write(STDOUT_FILENO, bytes, size) >= 0;
}

bool embed_log_say(const char *format, ...)
{
    char line[EMBED_LOG_LINE] = "devbroker: ";
    size_t size = strlen(line);
    va_list arguments;
    int wanted;

    va_start(arguments, format);
    wanted = vsnprintf(line + size, sizeof line - size, format, arguments);
    va_end(arguments);
    size = wanted < 0 ? size : size + (size_t)wanted;
    size = size < sizeof line ? size : sizeof line - 1;
    line[size++] = '\n';
    return write_out(line, size);
}

/* A count that nobody reads in time is told with the next one. */
static void tell_suppressed(struct embed_log *log)
{
    if (log->suppressed > 0 &&
        embed_log_say("%lld lines of the queen-s3 sink suppressed", (long long)log->suppressed)) {
        log->suppressed = 0;
    }
}

void embed_log_tick(struct embed_log *log)
{
    int64_t now_ms = clock_mono_ms();

    if (now_ms - log->window_ms >= WINDOW_MS) {
        tell_suppressed(log);
        log->window_ms = now_ms;
        log->lines = 0;
    }
}

static void end_line(struct embed_log *log)
{
    embed_log_tick(log);
    log->line[log->size++] = '\n';
    if (log->lines < LINE_LIMIT && write_out(log->line, log->size)) {
        log->lines++;
    } else {
        log->suppressed++;
    }
    log->size = 0;
    log->escape = ESCAPE_NONE;
}

/* What a terminal would act on is swallowed: ESC and one byte, a control sequence up to its final byte, a string up to
 * BEL or the ESC of its end (ECMA-48). True when the byte belongs to the line. */
static bool is_text(struct embed_log *log, unsigned char byte)
{
    switch (log->escape) {
    case ESCAPE_NONE: log->escape = byte == 0x1b ? ESCAPE_BEGUN : ESCAPE_NONE; return byte >= 0x20 && byte != 0x7f;
    case ESCAPE_BEGUN:
        if (byte == '[') {
            log->escape = ESCAPE_CONTROL;
        } else if (byte == ']' || byte == 'P' || byte == 'X' || byte == '^' || byte == '_') {
            log->escape = ESCAPE_STRING;
        } else if (byte < 0x20 || byte > 0x2f) {
            log->escape = ESCAPE_NONE;
        }
        return false;
    case ESCAPE_CONTROL:
        if (byte >= 0x40 && byte <= 0x7e) {
            log->escape = ESCAPE_NONE;
        }
        return false;
    default:
        if (byte == 0x07 || byte == 0x1b) {
            log->escape = byte == 0x07 ? ESCAPE_NONE : ESCAPE_BEGUN;
        }
        return false;
    }
}

void embed_log_take(struct embed_log *log, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (log->size == 0) {
            log->size = sizeof PREFIX - 1;
            memcpy(log->line, PREFIX, log->size);
        }
        if (bytes[i] == '\n') {
            end_line(log);
        } else if (is_text(log, (unsigned char)bytes[i]) && log->size < sizeof log->line - 1) {
            log->line[log->size++] = bytes[i];
        }
    }
}

void embed_log_end(struct embed_log *log)
{
    if (log->size > 0) {
        end_line(log);
    }
    tell_suppressed(log);
}

int64_t embed_log_deadline(const struct embed_log *log)
{
    return log->suppressed > 0 ? log->window_ms + WINDOW_MS : INT64_MAX;
}
