/*
 * The log: one line an event on stderr, for people or as JSON (QUEEN_S3_LOG_FORMAT). Never a secret: who formats a
 * message has none to put in. A line is written with one write(); what a full pipe doesn't take is dropped and counted.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Process-wide, set once at start, kept over fork. */
void log_configure(enum log_level level, bool json);
bool log_enabled(enum log_level level);
/* Instead of stderr: for tests and the simulator; NULL for stderr again. */
void log_capture(void (*take)(void *argument, enum log_level level, const char *line), void *argument);

/* Instead of any line: what was to be said, before it is put together and cleaned, for a library whose host has a log
 * of its own. NULL: lines again. */
void log_divert(void (*take)(void *argument, enum log_level level, const char *subject, const char *message),
                void *argument);

/* `2026-09-04T10:05:07.412Z info  orders: window 12 …` (the level filled up to five characters), or
 * {"ts":…,"level":…,"queue":…,"message":…}. subject: the queue's name or NULL. What can't be seen is spelled
 * out (visible.h), in JSON what is merely invisible as \uNNNN. A line longer than 4096 bytes is cut, and says so with
 * `…`. */
void log_line(enum log_level level, const char *subject, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What somebody has asked for: an info line whatever the level is. */
void log_asked(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line of any length, with neither time nor level: what a process says before it ends, and the boot line. Spelled out
 * and written like a log line: it doesn't wait either. */
void log_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line that another process wrote, clean already and without its line feed: as it is where it has the form of this
 * log, else as a warning of `source`. */
void log_pass(const char *source, const char *line, size_t size);

/* log_output.h: for a process that stays, and for its children. */
void log_open(void);
void log_reset(void);

/* Lines that a full pipe did not take, since the process started. The next line that goes through is preceded by their
 * number; who has none to come waits for the descriptor (POLLOUT; -1: nothing to tell) and calls log_tell_dropped(). */
unsigned long log_dropped(void);
int log_waits_for(void);
/* True where there is nothing left to tell. */
bool log_tell_dropped(void);

/* Lines of this process itself so far: those of log_line() and log_limited(). */
unsigned long log_written(void);

/* Repeated failures of one kind: one line in 5 s, with the number suppressed (spec 3.7). One of these a kind and
 * queue; zero it before first use. */
struct log_limit {
    struct mono_ms last;
    bool started;
    unsigned long suppressed;
};
void log_limited(struct log_limit *limit, struct mono_ms now, enum log_level level, const char *subject,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
