/*
 * How far long work has come: one line on standard error that is written over, on a terminal alone (spec 4.4).
 */
#ifndef SUPERVISOR_COMMANDS_PROGRESS_H
#define SUPERVISOR_COMMANDS_PROGRESS_H

/* At most a few times a second, whatever calls it. */
void progress_show(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Takes the line away, so that something else can be written. */
void progress_clear(void);

#endif
