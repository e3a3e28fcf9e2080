/*
 * The embedded sink's lines in the broker's log, which is its standard output (spec 4.6): line by line behind a prefix,
 * escape sequences and control bytes stripped, cut at 4 KiB, at most 200 in 10 s; a count tells of those that were
 * not let through. Nothing here ever waits for a reader: what a full pipe does not take counts with them.
 */
#ifndef DEVBROKER_EMBED_LOG_H
#define DEVBROKER_EMBED_LOG_H

#include "text.h"

#define EMBED_LOG_LINE 4096 /* with prefix and line feed: what a pipe that polls writable takes without blocking */

enum embed_escape { ESCAPE_NONE, ESCAPE_BEGUN, ESCAPE_CONTROL, ESCAPE_STRING };

struct embed_log { /* all zero to begin with */
    char line[EMBED_LOG_LINE];
    size_t size; /* 0: no line begun */
    enum embed_escape escape;
    int64_t window_ms; /* start of the 10 s that the budget is for */
    int64_t lines;     /* in them */
    int64_t suppressed;
};

/* What the child wrote, in whatever pieces it came. */
void embed_log_take(struct embed_log *log, const char *bytes, size_t size);
/* The child has ended: its last line may have no line feed, and what was suppressed is told now. */
void embed_log_end(struct embed_log *log);
/* Tells what was suppressed once the 10 s are over: at the deadline, on clock_mono_ms(); INT64_MAX: nothing to tell. */
void embed_log_tick(struct embed_log *log);
int64_t embed_log_deadline(const struct embed_log *log);

/* A line of the broker's own. False where nobody read it in time. */
bool embed_log_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
