/*
 * Well-formed UTF-8 (RFC 3629; table 3-7 of the Unicode standard): no overlong form, no surrogate, nothing above
 * U+10FFFF.
 */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed character at text, of which size bytes can be read; 0 where there is none. */
size_t utf8_length(const char *text, size_t size);

bool utf8_is_valid(const char *text, size_t size);

#endif
