/*
 * The commands of spec 4.4 as one table: main() dispatches from it and `help` prints from it, so the two never differ.
 * A command is a file in supervisor/commands/ that defines its entry; nothing that the running pool is made of calls
 * into that folder.
 */
#ifndef SUPERVISOR_COMMAND_H
#define SUPERVISOR_COMMAND_H

/* What a command ends with, beside 0. */
#define COMMAND_FAULT         1 /* what was asked for isn't there, or doesn't hold */
#define COMMAND_CONFIGURATION 2 /* arguments or settings */
#define COMMAND_UNREACHABLE   3 /* the bucket doesn't answer, or refuses */

struct command {
    const char *name;
    const char *arguments; /* as usage shows them behind the name, "" for none */
    const char *summary;   /* one line, no full stop */
    const char *help;      /* paragraphs, the last line ended */
    /* Gets main()'s arguments whole: its own begin at argv[2]. Returns the exit code. */
    int (*run)(int argc, char **argv);
};

/* The program: main() is this. */
int command_main(int argc, char **argv);

#endif
