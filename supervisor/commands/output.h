/*
 * Standard output of a command. A reader that goes away (`queen-s3 cat orders | head`) is no fault: the command ends
 * quietly, with the code that it has by then. A disk that is full is one.
 */
#ifndef SUPERVISOR_COMMANDS_OUTPUT_H
#define SUPERVISOR_COMMANDS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* First of all: SIGPIPE becomes an error of write(). */
void output_begin(void);
void output_write(const void *bytes, size_t size);
void output_text(const char *text);
void output_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line for people, whatever names are in it (visible.h), and its line feed. */
void output_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Nobody takes what is written any more: the rest of the work is for nothing. */
bool output_closed(void);
/* Last of all: `code`, also where nobody reads; or COMMAND_FAULT and one line where something could not be written. */
int output_end(int code);

/* Likewise on standard error, behind "queen-s3: "; returns code. */
int command_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
