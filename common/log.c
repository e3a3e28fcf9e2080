/*
 * The log (log.h). A line is put together on the stack and written with one write(), so lines of several processes on
 * one pipe never mix: 4096 bytes, PIPE_BUF, is what pipe(7) keeps whole, and what a supervisor reads of a line (spec
 * 4.1). Nobody ever waits for a reader: where there is no room the line is dropped, and the next one that goes
 * through is preceded by the number of those that did not.
 *
 * What is logged comes from names and answers that strangers write. Control bytes, DEL, C1 controls (a terminal acts on
 * them too) and bytes that are no UTF-8 come out as \xNN: a line stays one line, and the JSON form stays JSON.
 */
#include "common/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"

#define LINE_SIZE         4096
#define LIMIT_INTERVAL_MS 5000

static enum log_level configured_level = LOG_INFO;
static bool configured_json;
static void (*capture)(void *argument, enum log_level level, const char *line);
static void *capture_argument;
static void (*divert)(void *argument, enum log_level level, const char *subject, const char *message);
static void *divert_argument;
static atomic_ulong dropped_total;
static atomic_ulong dropped_untold;

static const char *const level_names[] = {
    [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};

/* A line being put together. `limit` leaves room for what has to follow: the end of the JSON form, the line feed. */
struct line {
    char bytes[LINE_SIZE + 1];
    size_t size;
    size_t limit;
    bool full;
};

void log_configure(enum log_level level, bool json)
{
    configured_level = level;
    configured_json = json;
}

bool log_enabled(enum log_level level)
{
    return level <= configured_level;
}

void log_capture(void (*take)(void *argument, enum log_level level, const char *line), void *argument)
{
    capture = take;
    capture_argument = argument;
}

void log_divert(void (*take)(void *argument, enum log_level level, const char *subject, const char *message),
                void *argument)
{
    divert = take;
    divert_argument = argument;
}

unsigned long log_dropped(void)
{
    return atomic_load(&dropped_total);
}

/* All of it or nothing, and once something did not fit nothing more: a line is cut, it never has holes. */
static void line_put(struct line *line, const char *bytes, size_t size)
{
    if (line->full || size > line->limit - line->size) {
        line->full = true;
        return;
    }
    memcpy(line->bytes + line->size, bytes, size);
    line->size += size;
}

static void line_put_text(struct line *line, const char *text, bool json)
{
    const unsigned char *cursor = (const unsigned char *)text;

    while (*cursor != '\0' && !line->full) {
        size_t length = utf8_next((const char *)cursor);
        if (length == 0 || utf8_is_control((const char *)cursor, length)) {
            char escape[6];
            int size = snprintf(escape, sizeof escape, json ? "\\\\x%02x" : "\\x%02x", *cursor);
            line_put(line, escape, (size_t)size);
            cursor++;
        } else if (json && (*cursor == '"' || *cursor == '\\')) {
            const char escape[2] = {'\\', (char)*cursor};
            line_put(line, escape, 2);
            cursor++;
        } else {
            line_put(line, (const char *)cursor, length);
            cursor += length;
        }
    }
}

static void line_put_string(struct line *line, const char *text)
{
    line_put(line, text, strlen(text));
}

/* The milliseconds of clock_format_wall(), without its three zeros. */
static void line_put_time(struct line *line)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format_wall(clock_wall(), time);
    line_put(line, time, 23);
    line_put_string(line, "Z");
}

static void line_finish(struct line *line, const char *end)
{
    static const char cut[] = "…";

    line->limit = LINE_SIZE;
    if (line->full) {
        line->full = false;
        line_put(line, cut, sizeof cut - 1);
    }
    line_put_string(line, end);
    line->bytes[line->size] = '\0';
}

static void compose(struct line *line, enum log_level level, const char *subject, const char *message)
{
    line->size = 0;
    line->full = false;
    line->limit = LINE_SIZE - 8;
    if (configured_json) {
        line_put_string(line, "{\"ts\":\"");
        line_put_time(line);
        line_put_string(line, "\",\"level\":\"");
        line_put_string(line, level_names[level]);
        if (subject != NULL) {
            line_put_string(line, "\",\"queue\":\"");
            line->limit = LINE_SIZE / 2;
            line_put_text(line, subject, true);
            line->limit = LINE_SIZE - 8;
            line->full = false;
        }
        line_put_string(line, "\",\"message\":\"");
        line_put_text(line, message, true);
        line_finish(line, "\"}");
        return;
    }
    line_put_time(line);
    line_put_string(line, " ");
    line_put_string(line, level_names[level]);
    line_put(line, "   ", 6 - strlen(level_names[level]));
    if (subject != NULL) {
        line_put_text(line, subject, false);
        line_put_string(line, ": ");
    }
    line_put_text(line, message, false);
    line_finish(line, "");
}

/* poll() first: standard error may be a blocking pipe that is shared with others, whose flags are not ours to change. A
 * pipe that polls writable takes PIPE_BUF bytes without blocking (pipe(7)). */
static bool write_line(struct line *line)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

    line->bytes[line->size++] = '\n';
    if (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) {
        return false;
    }
    return write(STDERR_FILENO, line->bytes, line->size) >= 0;
}

static void put_out(enum log_level level, const char *subject, const char *message)
{
    struct line line;
    unsigned long untold;

    if (divert != NULL) {
        divert(divert_argument, level, subject, message);
        return;
    }
    if (capture != NULL) {
        compose(&line, level, subject, message);
        capture(capture_argument, level, line.bytes);
        return;
    }
    untold = atomic_exchange(&dropped_untold, 0);
    if (untold > 0) {
        char told[80];
        snprintf(told, sizeof told, "%lu log lines were dropped: nobody read them in time", untold);
        compose(&line, LOG_WARN, NULL, told);
        if (!write_line(&line)) {
            atomic_fetch_add(&dropped_untold, untold + 1);
            atomic_fetch_add(&dropped_total, 1);
            return;
        }
    }
    compose(&line, level, subject, message);
    if (!write_line(&line)) {
        atomic_fetch_add(&dropped_untold, 1);
        atomic_fetch_add(&dropped_total, 1);
    }
}

void log_line(enum log_level level, const char *subject, const char *format, ...)
{
    char message[LINE_SIZE];
    va_list arguments;

    if (!log_enabled(level)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    put_out(level, subject, message);
}

void log_limited(struct log_limit *limit, struct mono_ms now, enum log_level level, const char *subject,
                 const char *format, ...)
{
    char message[LINE_SIZE];
    size_t used;
    va_list arguments;

    if (!log_enabled(level)) {
        return;
    }
    if (limit->started && now.v - limit->last.v < LIMIT_INTERVAL_MS) {
        limit->suppressed++;
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    used = strlen(message);
    if (limit->suppressed > 0) {
        snprintf(message + used, sizeof message - used, " (%lu more like this since the last one)", limit->suppressed);
    }
    limit->started = true;
    limit->last = now;
    limit->suppressed = 0;
    put_out(level, subject, message);
}
