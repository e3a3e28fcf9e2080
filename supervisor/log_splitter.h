/*
 * A stream of bytes that another process wrote, as lines that do no harm on a terminal or in a log (spec 4.1): escape
 * sequences (ECMA-48: CSI, and the strings of OSC, DCS, SOS, PM and APC, in their 7-bit form and as C1 controls) go
 * whole, other control characters singly, a tab becomes a space, bytes that are no UTF-8 come out as \xNN. A line feed
 * ends everything, also a sequence that has no end of its own. No line is kept that has nothing in it.
 */
#ifndef SUPERVISOR_LOG_SPLITTER_H
#define SUPERVISOR_LOG_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/utf8.h"

/* With the `…` of one that was cut; a line feed makes it 4 KiB, which a pipe takes whole. */
#define LOG_SPLITTER_LINE_MAX 4095

enum log_splitter_state {
    LOG_SPLITTER_TEXT,
    LOG_SPLITTER_ESCAPE,     /* behind ESC */
    LOG_SPLITTER_CONTROL,    /* in a CSI sequence */
    LOG_SPLITTER_STRING,     /* in OSC, DCS, SOS, PM or APC */
    LOG_SPLITTER_STRING_C1,  /* there, behind 0xC2 */
    LOG_SPLITTER_STRING_ENDS /* there, behind ESC */
};

/* All zero to begin with. */
struct log_splitter {
    enum log_splitter_state state;
    unsigned char begun[UTF8_LENGTH_MAX]; /* of a character that isn't whole yet */
    size_t begun_size;
    char line[LOG_SPLITTER_LINE_MAX + 1];
    size_t size;
    size_t marked; /* where `…` still fits behind a whole character */
    bool cut;
};

/* A line without its line feed, NUL behind it; valid during the call. */
typedef void log_splitter_take(void *argument, const char *line, size_t size);

void log_splitter_feed(struct log_splitter *splitter, const char *bytes, size_t size, log_splitter_take *take,
                       void *argument);
/* The stream is at its end: what is there is the last line. */
void log_splitter_end(struct log_splitter *splitter, log_splitter_take *take, void *argument);

#endif
