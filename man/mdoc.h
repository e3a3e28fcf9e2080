/*
 * Texts of the program's tables (supervisor/command.h says how they are written) as mdoc: what is literal, an option, a
 * setting or an argument gets the macro for it, a new sentence a new line.
 */
#ifndef MAN_MDOC_H
#define MAN_MDOC_H

#include <stddef.h>
#include <stdio.h>

#include "supervisor/command.h"

/* Paragraphs with .Pp between them. `command` (may be NULL) has the names of arguments that are to be known. */
void mdoc_paragraphs(FILE *out, const char *text, const struct command *command);
/* One text on lines of its own, with a full stop behind it where `stop` says so, its first letter made a capital. */
void mdoc_sentence(FILE *out, const char *text, const struct command *command, const char *stop);
/* A line of a literal display. */
void mdoc_literal(FILE *out, const char *line);
/* The arguments of .It or a line of the synopsis: " Fl -since Ar T". */
void mdoc_option(FILE *out, const struct command_option *option);
/* The words behind the options, each between `begin` and `end`: "Ar QUEUE ...". */
void mdoc_words(FILE *out, const struct command *command, const char *begin, const char *end);

#endif
