/*
 * Standard error as the log writes to it: never waiting for a reader (spec 4.1). Its open file description may be shared
 * with whoever started this process, so its flags are not ours to change.
 */
#ifndef COMMON_LOG_OUTPUT_H
#define COMMON_LOG_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* For a process that stays: takes a description of its own where stderr is a pipe or a terminal, so that no other writer
 * can fill it up between a look at it and the write. Where that can't be had, writes go on as before, after a look. */
void log_output_open(void);
/* In a child, whose descriptors are its own: writes to stderr again. */
void log_output_reset(void);

/* Whole lines, as much of them as it takes at once. True: all; false: nothing or, of more than PIPE_BUF bytes or on a
 * terminal, a part. The rest is not written later: what comes next begins on a line of its own. */
bool log_output_write(const char *bytes, size_t size);

/* To wait for with POLLOUT until there is room; -1 once nobody reads any more. */
int log_output_descriptor(void);

#endif
