/*
 * The log (log.h). A line is put together on the stack and written with one write(), so lines of several processes on
 * one pipe never mix: 4096 bytes, PIPE_BUF, is what pipe(7) keeps whole, and what a supervisor reads of a line (spec
 * 4.1). Nobody ever waits for a reader: where there is no room the line is dropped, and the next one that goes
 * through is preceded by the number of those that did not.
 *
 * What is logged comes from names and answers that strangers write. What can't be seen (visible.h) comes out as \xNN: a
 * line stays one line, and the JSON form stays JSON. That form spells what is merely invisible as JSON does, so that
 * whoever parses it has the name itself.
 */
#include "common/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log_output.h"
#include "common/utf8.h"
#include "common/visible.h"

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
static atomic_ulong lines_total;

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

void log_open(void)
{
    log_output_open();
}

void log_reset(void)
{
    log_output_reset();
    atomic_store(&dropped_untold, 0);
}

unsigned long log_dropped(void)
{
    return atomic_load(&dropped_total);
}

unsigned long log_written(void)
{
    return atomic_load(&lines_total);
}

int log_waits_for(void)
{
    return atomic_load(&dropped_untold) > 0 ? log_output_descriptor() : -1;
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

static void line_put_plain(struct line *line, const char *text)
{
    while (*text != '\0' && !line->full) {
        size_t length = utf8_next(text);
        if (visible_is(text, length)) {
            line_put(line, text, length);
            text += length;
        } else {
            char escape[5];
            int size = snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*text);
            line_put(line, escape, (size_t)size);
            text++;
        }
    }
}

static void line_put_point(struct line *line, uint32_t point)
{
    char escape[13];
    int size;

    if (point < 0x10000) {
        size = snprintf(escape, sizeof escape, "\\u%04x", (unsigned)point);
    } else {
        size = snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xd7c0u + (unsigned)(point >> 10),
                        0xdc00u + (unsigned)(point & 0x3ff));
    }
    line_put(line, escape, (size_t)size);
}

static void line_put_json(struct line *line, const char *text)
{
    while (*text != '\0' && !line->full) {
        size_t length = utf8_next(text);
        if (length == 0 || utf8_is_control(text, length)) {
            char escape[6];
            int size = snprintf(escape, sizeof escape, "\\\\x%02x", (unsigned char)*text);
            line_put(line, escape, (size_t)size);
            length = 1;
        } else if (!visible_is(text, length)) {
            line_put_point(line, utf8_point(text, length));
        } else if (*text == '"' || *text == '\\') {
            const char escape[2] = {'\\', *text};
            line_put(line, escape, 2);
        } else {
            line_put(line, text, length);
        }
        text += length;
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
            line_put_json(line, subject);
            line->limit = LINE_SIZE - 8;
            line->full = false;
        }
        line_put_string(line, "\",\"message\":\"");
        line_put_json(line, message);
        line_finish(line, "\"}");
        return;
    }
    line_put_time(line);
    line_put_string(line, " ");
    line_put_string(line, level_names[level]);
    line_put(line, "   ", 6 - strlen(level_names[level]));
    if (subject != NULL) {
        line_put_plain(line, subject);
        line_put_string(line, ": ");
    }
    line_put_plain(line, message);
    line_finish(line, "");
}

bool log_tell_dropped(void)
{
    unsigned long untold = atomic_exchange(&dropped_untold, 0);
    struct line line;
    char told[80];

    if (untold == 0) {
        return true;
    }
    snprintf(told, sizeof told, "%lu log lines were dropped: nobody read them in time", untold);
    compose(&line, LOG_WARN, NULL, told);
    line.bytes[line.size++] = '\n';
    if (log_output_write(line.bytes, line.size)) {
        return true;
    }
    atomic_fetch_add(&dropped_untold, untold);
    return false;
}

/* With the line feed. What was lost before is told of first. */
static void put_bytes(const char *bytes, size_t size)
{
    if (!log_tell_dropped() || !log_output_write(bytes, size)) {
        atomic_fetch_add(&dropped_untold, 1);
        atomic_fetch_add(&dropped_total, 1);
    }
}

static void put_out(enum log_level level, const char *subject, const char *message)
{
    struct line line;

    if (divert != NULL) {
        divert(divert_argument, level, subject, message);
        return;
    }
    atomic_fetch_add(&lines_total, 1);
    compose(&line, level, subject, message);
    if (capture != NULL) {
        capture(capture_argument, level, line.bytes);
        return;
    }
    line.bytes[line.size++] = '\n';
    put_bytes(line.bytes, line.size);
}

void log_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *text = visible_format(format, arguments);
    va_end(arguments);
    if (capture != NULL) {
        capture(capture_argument, LOG_ERROR, text);
    } else {
        size_t size = strlen(text);
        text[size] = '\n'; /* where its NUL was */
        put_bytes(text, size + 1);
    }
    free(text);
}

/* The time in front is what tells. */
static bool is_own(const char *line, size_t size)
{
    static const char shape[] = "0000-00-00T00:00:00.000Z";
    static const char opening[] = "{\"ts\":\"";
    const char *time = configured_json ? line + sizeof opening - 1 : line;
    size_t before = (size_t)(time - line);

    if (size < before + sizeof shape || memcmp(line, opening, before) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        bool digit = time[i] >= '0' && time[i] <= '9';
        if (shape[i] == '0' ? !digit : time[i] != shape[i]) {
            return false;
        }
    }
    return time[sizeof shape - 1] == (configured_json ? '"' : ' ');
}

void log_pass(const char *source, const char *line, size_t size)
{
    char bytes[LINE_SIZE];

    if (!is_own(line, size) || size >= sizeof bytes) {
        log_line(LOG_WARN, NULL, "%s: %.*s", source, (int)size, line);
        return;
    }
    memcpy(bytes, line, size);
    if (capture != NULL) {
        bytes[size] = '\0';
        capture(capture_argument, LOG_INFO, bytes);
        return;
    }
    bytes[size] = '\n';
    put_bytes(bytes, size + 1);
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

void log_asked(const char *subject, const char *format, ...)
{
    char message[LINE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    put_out(LOG_INFO, subject, message);
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
