/*
 * What a command is given on its line: words and options. Errors are one line for a person, with exit code 2.
 */
#ifndef SUPERVISOR_COMMANDS_ARGUMENTS_H
#define SUPERVISOR_COMMANDS_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/lake/window_list.h"
#include "supervisor/command.h"

struct arguments {
    /* By the option's place in the command's table: what it was given, "" where it takes nothing; NULL: not there. */
    const char *values[COMMAND_OPTIONS_MAX];
    const char **words; /* what isn't an option, in order; malloc, free() */
    size_t word_count;
};

/* As the command's table has it. Options may stand anywhere, with their value behind them or behind a =; all behind `--`
 * is words. 0, or QS_ERROR_INPUT. Words and values point into argv. */
int arguments_parse(const struct command *command, int argc, char **argv, struct arguments *arguments,
                    struct error *error);

/* A queue's name as the broker takes it: not empty, no control byte but DEL. */
int arguments_queue(const char *text, struct error *error);
/* A time: RFC 3339 with any offset, or microseconds since 1970. NULL leaves *out. `option` names it in the error. */
int arguments_time(const char *option, const char *text, struct broker_us *out, struct error *error);
/* --since and --until of a query for windows. */
int arguments_stretch(const char *since, const char *until, struct window_query *query, struct error *error);
/* --window: a number from 1 on, as first_k and last_k; NULL leaves both. */
int arguments_window(const char *window, struct window_query *query, struct error *error);

#endif
