/* UTF-8: utf8.h. */
#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

#define UTF8_MOST 4 /* bytes of a character */

size_t utf8_length(const char *text, size_t size)
{
    unsigned char lead = size > 0 ? (unsigned char)text[0] : 0xff;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;

    if (length > size) {
        return 0;
    }
    if (lead == 0xe0) {
        low = 0xa0;
    } else if (lead == 0xed) {
        high = 0x9f;
    } else if (lead == 0xf0) {
        low = 0x90;
    } else if (lead == 0xf4) {
        high = 0x8f;
    }
    for (size_t i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < low || byte > high) {
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

size_t utf8_next(const char *text)
{
    return utf8_length(text, strnlen(text, UTF8_MOST));
}

bool utf8_is_control(const char *text, size_t length)
{
    unsigned char lead = (unsigned char)text[0];

    return lead < 0x20 || lead == 0x7f || (length == 2 && lead == 0xc2 && (unsigned char)text[1] < 0xa0);
}

/* Most text is ASCII: eight bytes at a time, as long as no high bit shows. */
static size_t ascii_run(const char *text, size_t size)
{
    size_t at = 0;

    for (uint64_t word; size - at >= sizeof word; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if ((word & UINT64_C(0x8080808080808080)) != 0) {
            break;
        }
    }
    return at;
}

bool utf8_is_valid(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t run = ascii_run(text + at, size - at);
        at += run;
        if (run == 0) {
            size_t length = utf8_length(text + at, size - at);
            if (length == 0) {
                return false;
            }
            at += length;
        }
    }
    return true;
}
