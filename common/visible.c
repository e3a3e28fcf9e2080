/* Texts of strangers: visible.h. */
#include "common/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/utf8.h"

#define SPELLED_SIZE 4 /* \xNN */

/* Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, with U+2028, U+2029 and U+FFF9 to U+FFFB. */
static const struct {
    uint32_t first;
    uint32_t last;
} invisible[] = {
    {0x00ad, 0x00ad}, {0x034f, 0x034f}, {0x061c, 0x061c},   {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool is_invisible(uint32_t point)
{
    for (size_t i = 0; i < sizeof invisible / sizeof *invisible && invisible[i].first <= point; i++) {
        if (point <= invisible[i].last) {
            return true;
        }
    }
    return false;
}

static bool is_harmless(const char *text, size_t length)
{
    return length > 0 && !utf8_is_control(text, length);
}

bool visible_is(const char *text, size_t length)
{
    return is_harmless(text, length) && !(length > 1 && is_invisible(utf8_point(text, length)));
}

static char *spell(const char *text, bool (*stays)(const char *text, size_t length))
{
    char *out = memory_new(SPELLED_SIZE * strlen(text) + 1, 1);
    char *end = out;

    while (*text != '\0') {
        size_t size = utf8_next(text);

        if (stays(text, size)) {
            memcpy(end, text, size);
            end += size;
            text += size;
        } else {
            end += snprintf(end, SPELLED_SIZE + 1, "\\x%02x", (unsigned char)*text);
            text++;
        }
    }
    return out;
}

char *visible_text(const char *text)
{
    return spell(text, visible_is);
}

char *visible_format(const char *format, va_list arguments)
{
    char *text = memory_format_list(format, arguments);
    char *out = visible_text(text);

    free(text);
    return out;
}

char *visible_in_data(const char *text)
{
    return spell(text, is_harmless);
}
