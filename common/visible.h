/*
 * Texts of strangers (names, answers) as a person is to see them, on a terminal, in a log or in a browser: nothing in
 * them acts on what shows them, nothing hides, and two names that differ look different. What can't be shown comes out
 * as \xNN, byte by byte: controls, bytes that are no UTF-8, and what is invisible.
 *
 * Invisible are the code points that Unicode calls default-ignorable (all that turn the direction of text are among
 * them, the joiners, the byte order mark, variation selectors, tags), the separators of lines and of paragraphs, and
 * interlinear annotations. Joiners have their place in words of some languages and in emoji; that a name is the one it
 * seems to be is worth more.
 */
#ifndef COMMON_VISIBLE_H
#define COMMON_VISIBLE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* The character at text, of utf8_length() bytes, can be shown. False where length is 0. */
bool visible_is(const char *text, size_t length);

/* malloc. */
char *visible_text(const char *text);

/* The same of printf's. */
char *visible_format(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* For programs, in JSON: what is merely invisible stays as it is. malloc. */
char *visible_in_data(const char *text);

#endif
