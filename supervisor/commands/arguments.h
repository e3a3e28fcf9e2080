/*
 * What a command is given on its line: words and options. Errors are one line for a person, with exit code 2.
 */
#ifndef SUPERVISOR_COMMANDS_ARGUMENTS_H
#define SUPERVISOR_COMMANDS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/lake/window_list.h"

struct argument_option {
    const char *name;   /* with its dashes, "--since" */
    const char **value; /* where it takes one: "--since T" or "--since=T" */
    bool *flag;         /* where it doesn't */
};

struct arguments {
    const struct argument_option *options;
    size_t option_count;
    size_t least; /* words */
    size_t most;
    const char **words; /* what isn't an option, in order; malloc, free() */
    size_t word_count;
};

/* Options may stand anywhere; all behind `--` is words. 0, or QS_ERROR_INPUT. Words and values point into argv. */
int arguments_parse(struct arguments *arguments, int argc, char **argv, struct error *error);

/* A queue's name as the broker takes it: not empty, no control byte but DEL. */
int arguments_queue(const char *text, struct error *error);
/* A time: RFC 3339 with any offset, or microseconds since 1970. NULL leaves *out. `option` names it in the error. */
int arguments_time(const char *option, const char *text, struct broker_us *out, struct error *error);
/* --since and --until of a query for windows. */
int arguments_stretch(const char *since, const char *until, struct window_query *query, struct error *error);
/* --window: a number from 1 on, as first_k and last_k; NULL leaves both. */
int arguments_window(const char *window, struct window_query *query, struct error *error);

#endif
