/*
 * The commands of spec 4.4 as tables. main() dispatches from them, arguments.c understands a command's line by them, and
 * `help`, the manual pages and the shells' completions print from them: nothing can be given that isn't described, and
 * nothing is described that can't be given. A command is a file in supervisor/commands/ that defines its entry; nothing
 * that the running pool is made of calls into that folder.
 *
 * Texts are ASCII without line breaks of their own: whoever prints them breaks them. `Backquotes` hold what is to be
 * typed or read literally; options (--since), settings (QUEEN_S3_ALIGN) and the names of arguments (QUEUE) stand bare,
 * for the pages know them by their shape.
 */
#ifndef SUPERVISOR_COMMAND_H
#define SUPERVISOR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What a command ends with, beside 0. */
#define COMMAND_FAULT         1 /* what was asked for isn't there, or doesn't hold */
#define COMMAND_CONFIGURATION 2 /* arguments or settings */
#define COMMAND_UNREACHABLE   3 /* the bucket doesn't answer, or refuses */

#define COMMAND_OPTIONS_MAX 8

struct command_option {
    const char *name;     /* with its dashes, "--since" */
    const char *argument; /* the name of what it takes, "T"; NULL: it takes nothing */
    const char *help;     /* what it does, no full stop */
};

/* What every command takes, the first of its options; it may stand before the command's name too. */
#define COMMAND_FILE 0
#define COMMAND_FILE_OPTION                                                                                        \
    {                                                                                                              \
        "-f", "FILE", "read settings from FILE too, lines as `NAME=value`; what the environment sets wins over it" \
    }
/* The options of a command that takes no other. */
extern const struct command_option command_only_file[];

struct command_exit {
    int code;
    const char *when; /* "everything holds": no full stop */
};

struct command_example {
    const char *line; /* a whole line for a shell */
    const char *what; /* it does: "counts the records of a day", no full stop */
};

/* Lists end with a NULL name, `when` or `line`; NULL for none. */
struct command {
    const char *name;
    const char *words;   /* that the line has beside options: "QUEUE", "ENGINE QUEUE", "QUEUE...", "[COMMAND]", "" */
    const char *summary; /* one line, no full stop */
    const char *help;    /* paragraphs, a line feed between two; "" for none */
    const struct command_option *options;
    const struct command_exit *exits;
    const struct command_example *examples;
    /* What the first word can be, by number, NULL behind the last; NULL: anything. */
    const char *(*choice)(size_t number);
    /* argv[0] is the program, argv[1] the command; its own begin at argv[2]. Returns the exit code. */
    int (*run)(int argc, char **argv);
};

/* The program: main() is this. */
int command_main(int argc, char **argv);

/* The commands in the order in which help shows them, by number; NULL behind the last. */
const struct command *command_at(size_t number);
/* NULL where there is none of that name. */
const struct command *command_find(const char *name);

/* One of `words`: its name without what marks it. */
struct command_word {
    const char *name;
    size_t size;
    bool optional; /* [NAME] */
    bool many;     /* NAME...: one or more */
};

/* Takes the word at *at and moves behind it; false at the end. */
bool command_next_word(const char **at, struct command_word *word);

/* How many words the line may have. SIZE_MAX: any number. */
void command_word_limits(const struct command *command, size_t *least, size_t *most);

/* All that the table says of it, for a terminal of 80 columns. */
void command_print_help(FILE *out, const struct command *command);
/* A text's paragraphs in lines for it, an empty one before each. */
void command_print_paragraphs(FILE *out, const char *text);

#endif
