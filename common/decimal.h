/*
 * Numbers as decimal text, for who writes millions of them: inline, with no format to interpret.
 */
#ifndef COMMON_DECIMAL_H
#define COMMON_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

#define DECIMAL_DIGITS_MAX 20

static inline size_t decimal_digits(uint64_t value)
{
    size_t count = 1;

    while (value >= 10000) {
        value /= 10000;
        count += 4;
    }
    return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

/* The byte behind the last digit; no NUL. */
static inline char *decimal_write(char *out, uint64_t value)
{
    char *end = out + decimal_digits(value);
    char *cursor = end;

    do {
        *--cursor = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return end;
}

#endif
