/*
 * Bytes as hexadecimal digits, and back: inline, as decimal.h.
 */
#ifndef COMMON_HEX_H
#define COMMON_HEX_H

#include <stddef.h>
#include <stdint.h>

/* 0 … 15 for a digit of either case, else -1. */
static inline int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* 0 … 255 for two digits, else -1. The second is only looked at where the first is one. */
static inline int hex_byte(const char *two)
{
    int high = hex_value(two[0]);
    int low = high >= 0 ? hex_value(two[1]) : -1;

    return low >= 0 ? high * 16 + low : -1;
}

/* Two lower-case digits a byte; the byte behind the last one, no NUL. */
static inline char *hex_write(char *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    return out;
}

#endif
