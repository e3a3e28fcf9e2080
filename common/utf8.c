/* UTF-8: utf8.h. */
#include "common/utf8.h"

#include <string.h>

#define UNFINISHED (-1)

static int length_by_lead(unsigned char lead)
{
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) {
        return 0;
    }
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The length, 0 for no character, UNFINISHED. size at least 1. */
static int look_at(const unsigned char *bytes, size_t size)
{
    int length = length_by_lead(bytes[0]);
    unsigned char low = bytes[0] == 0xe0 ? 0xa0 : bytes[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = bytes[0] == 0xed ? 0x9f : bytes[0] == 0xf4 ? 0x8f : 0xbf;

    for (int i = 1; i < length; i++) {
        if ((size_t)i == size) {
            return UNFINISHED;
        }
        if (bytes[i] < low || bytes[i] > high) {
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

size_t utf8_length(const char *text, size_t size)
{
    int length = size > 0 ? look_at((const unsigned char *)text, size) : 0;

    return length > 0 ? (size_t)length : 0;
}

bool utf8_is_unfinished(const char *text, size_t size)
{
    return size > 0 && look_at((const unsigned char *)text, size) == UNFINISHED;
}

size_t utf8_next(const char *text)
{
    return utf8_length(text, strnlen(text, UTF8_LENGTH_MAX));
}

uint32_t utf8_point(const char *text, size_t length)
{
    static const unsigned char bits_of_lead[UTF8_LENGTH_MAX + 1] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = (unsigned char)text[0] & bits_of_lead[length];

    for (size_t i = 1; i < length; i++) {
        point = point << 6 | ((unsigned char)text[i] & 0x3fu);
    }
    return point;
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
