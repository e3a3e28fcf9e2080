/*
 * Well-formed UTF-8 (RFC 3629; table 3-7 of the Unicode standard): no overlong form, no surrogate, nothing above
 * U+10FFFF.
 */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_LENGTH_MAX 4

/* Bytes of the well-formed character at text, of which size bytes can be read; 0 where there is none. */
size_t utf8_length(const char *text, size_t size);

/* Of a text that a NUL ends. */
size_t utf8_next(const char *text);

/* The code point of the character at text, of utf8_length() bytes, which are not none. */
uint32_t utf8_point(const char *text, size_t length);

/* The character at text, of utf8_length() bytes, is one that a terminal acts on: a control byte, DEL, or a C1 control in
 * its two-byte form. */
bool utf8_is_control(const char *text, size_t length);

/* All size bytes, one at least, are the beginning of a character whose end isn't there yet. */
bool utf8_is_unfinished(const char *text, size_t size);

bool utf8_is_valid(const char *text, size_t size);

#endif
