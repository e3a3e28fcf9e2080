/*
 * Scanning JSON without parsing it (RFC 8259): see json_scan.h.
 *
 * Containers and long strings go to the block scanner (json_scan_blocks.h tells how it works), in the widest form that
 * the processor has. Here is what is done byte by byte: scalars, escapes, short strings, and the lake's spelling of
 * strings (spec 2.2).
 */
#include "common/json_scan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#    include <emmintrin.h>
#endif

#include "common/hex.h"
#include "common/json_scan_inner.h"

/* ---- scalars ---- */

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at)) {
        at++;
    }
    return at;
}

/* NULL where no digit stands there. */
static const char *need_digits(const char *at, const char *end)
{
    const char *after = skip_digits(at, end);
    return after == at ? NULL : after;
}

static const char *scan_number(const char *at, const char *end)
{
    if (*at == '-') {
        at++;
    }
    if (at < end && *at == '0') {
        at++;
    } else {
        at = need_digits(at, end);
    }
    if (at != NULL && at < end && *at == '.') {
        at = need_digits(at + 1, end);
    }
    if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) {
            at++;
        }
        at = need_digits(at, end);
    }
    return at;
}

static const char *scan_literal(const char *at, const char *end, const char *literal, size_t size)
{
    return (size_t)(end - at) >= size && memcmp(at, literal, size) == 0 ? at + size : NULL;
}

/* The byte after the number, true, false or null that begins at *start, or NULL. */
static const char *scan_scalar(const char *start, const char *end)
{
    switch (*start) {
    case 'n': return scan_literal(start, end, "null", 4);
    case 't': return scan_literal(start, end, "true", 4);
    case 'f': return scan_literal(start, end, "false", 5);
    default: return scan_number(start, end);
    }
}

const unsigned char json_scan_may_follow[256] = {
    [','] = 1, [']'] = 1, ['}'] = 1, [' '] = 1, ['\t'] = 1, ['\n'] = 1, ['\r'] = 1,
};

bool json_scan_member(const char *start, const char *end)
{
    const char *after = scan_scalar(start, end);
    return after != NULL && after < end && json_scan_may_follow[(unsigned char)*after] != 0;
}

/* ---- escapes ---- */

static bool is_hex_quad(const char *at)
{
    return hex_byte(at) >= 0 && hex_byte(at + 2) >= 0;
}

static unsigned hex_quad(const char *at)
{
    return (unsigned)hex_byte(at) << 8 | (unsigned)hex_byte(at + 2);
}

bool json_scan_escape(const char *start, const char *end)
{
    if (end - start < 2) {
        return false;
    }
    switch (start[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return true;
    case 'u': return end - start >= 6 && is_hex_quad(start + 2);
    default: return false;
    }
}

/* ---- nesting ---- */

bool json_scan_spill(struct json_scan *scan, size_t depth, uint64_t levels)
{
    if (depth > scan->capacity) {
        size_t capacity = depth < 512 ? 1024 : depth * 2; /* depth is below the size of a text in memory */
        unsigned char *bits = realloc(scan->bits, capacity / 8);
        if (bits == NULL) {
            return false;
        }
        scan->bits = bits;
        scan->capacity = capacity;
    }
    memcpy(scan->bits + depth / 8 - sizeof levels, &levels, sizeof levels);
    return true;
}

uint64_t json_scan_reload(const struct json_scan *scan, size_t depth)
{
    uint64_t levels;
    memcpy(&levels, scan->bits + depth / 8 - sizeof levels, sizeof levels);
    return levels;
}

/* ---- the choice ---- */

static const char *scan_container(struct json_scan *scan, const char *start, const char *end, bool *line_breaks)
{
#ifdef __x86_64__
    return json_scan_has_avx2() ? json_scan_container_avx2(scan, start, end, line_breaks)
                                : json_scan_container_sse2(scan, start, end, line_breaks);
#else
    return json_scan_container_plain(scan, start, end, line_breaks);
#endif
}

static const char *scan_rest(const char *start, const char *end, bool *escaped)
{
#ifdef __x86_64__
    return json_scan_has_avx2() ? json_scan_rest_avx2(start, end, escaped) : json_scan_rest_sse2(start, end, escaped);
#else
    return json_scan_rest_plain(start, end, escaped);
#endif
}

/* ---- what the header promises ---- */

const char *json_skip_blank(const char *cursor, const char *end)
{
    while (cursor < end && (*cursor == ' ' || *cursor == '\n' || *cursor == '\r' || *cursor == '\t')) {
        cursor++;
    }
    return cursor;
}

/* Most strings are short and plain ASCII: goes on to the first byte that isn't, or to where less than a vector is
 * left. */
static const char *skip_plain(const char *at, const char *end)
{
#ifdef __SSE2__
    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
        __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
        /* as signed bytes, the high ones are below 0x20 too */
        __m128i outside = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
        int special = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), outside));
        if (special != 0) {
            return at + __builtin_ctz((unsigned)special);
        }
        at += 16;
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80) {
        at++;
    }
    return at;
}

const char *json_scan_string(const char *cursor, const char *end, const char **text, size_t *size, bool *escaped)
{
    if (cursor >= end || *cursor != '"') {
        return NULL;
    }
    const char *start = cursor + 1;
    const char *after = skip_plain(start, end);
    *escaped = false;
    if (after < end && *after == '"') {
        after++;
    } else {
        after = scan_rest(after, end, escaped);
        if (after == NULL) {
            return NULL;
        }
    }
    *text = start;
    *size = (size_t)(after - 1 - start);
    return after;
}

const char *json_scan_value(struct json_scan *scan, const char *cursor, const char *end, struct json_value *value)
{
    if (cursor >= end) {
        return NULL;
    }
    const char *after;
    value->start = cursor;
    value->line_breaks = false;
    if (*cursor == '{' || *cursor == '[') {
        after = scan_container(scan, cursor, end, &value->line_breaks);
    } else if (*cursor == '"') {
        const char *text;
        size_t size;
        bool escaped;
        after = json_scan_string(cursor, end, &text, &size, &escaped);
    } else {
        after = scan_scalar(cursor, end);
    }
    if (after != NULL) {
        value->size = (size_t)(after - cursor);
    }
    return after;
}

/* ---- spelling ---- */

/* Writes a character as UTF-8, a lone surrogate too. */
static char *write_character(unsigned code, char *out)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *out++ = (char)(0xE0 | code >> 12);
        } else {
            *out++ = (char)(0xF0 | code >> 18);
            *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        }
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    }
    *out++ = (char)(0x80 | (code & 0x3F));
    return out;
}

/* Reads the well-formed escape at *at, or two of them that are one character, and moves *at behind. */
static unsigned read_escape(const char **at, const char *end)
{
    static const char plain[] = "bfnrt";
    static const char meant[] = "\b\f\n\r\t";
    char c = (*at)[1];
    if (c != 'u') {
        const char *found = strchr(plain, c);
        *at += 2;
        return (unsigned char)(found != NULL ? meant[found - plain] : c);
    }
    unsigned code = hex_quad(*at + 2);
    *at += 6;
    if (code >= 0xD800 && code < 0xDC00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        unsigned low = hex_quad(*at + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            *at += 6;
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return code;
}

/* How many bytes stand before the next backslash. */
static size_t before_escape(const char *at, const char *end)
{
    const char *found = memchr(at, '\\', (size_t)(end - at));
    return (size_t)((found != NULL ? found : end) - at);
}

size_t json_unescape(const char *text, size_t size, char *out)
{
    const char *end = text + size;
    char *to = out;
    while (text < end) {
        size_t plain = before_escape(text, end);
        memmove(to, text, plain);
        to += plain;
        text += plain;
        if (text < end) {
            to = write_character(read_escape(&text, end), to);
        }
    }
    return (size_t)(to - out);
}

size_t json_respell(char *text, size_t size, size_t *unescaped_size)
{
    const char *from = text;
    const char *end = text + size;
    char *to = text;
    *unescaped_size = 0;
    while (from < end) {
        size_t plain = before_escape(from, end);
        memmove(to, from, plain);
        to += plain;
        from += plain;
        *unescaped_size += plain;
        if (from < end) {
            char character[4];
            size_t bytes = (size_t)(write_character(read_escape(&from, end), character) - character);
            *unescaped_size += bytes;
            to = json_spell_string(character, bytes, to);
        }
    }
    return (size_t)(to - text);
}

/* The letter of a two-character escape in the lake's spelling, or 0. */
static char short_escape(unsigned char c)
{
    switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
    }
}

/* A surrogate as UTF-8 would have it if it could: no valid text holds one. */
static bool is_surrogate(const char *text, size_t size)
{
    return size >= 3 && (unsigned char)text[0] == 0xED && (unsigned char)text[1] >= 0xA0;
}

size_t json_spelled_size(const char *text, size_t size)
{
    size_t spelled = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (short_escape(c) != 0) {
            spelled += 2;
        } else if (c < 0x20) {
            spelled += 6;
        } else if (c == 0xED && is_surrogate(text + i, size - i)) {
            spelled += 6;
            i += 2;
        } else {
            spelled++;
        }
    }
    return spelled;
}

static char *write_hex_escape(unsigned code, char *out)
{
    static const char digits[] = "0123456789abcdef";
    *out++ = '\\';
    *out++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4) {
        *out++ = digits[code >> shift & 0xF];
    }
    return out;
}

char *json_spell_string(const char *text, size_t size, char *out)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        char letter = short_escape(c);
        if (letter != 0) {
            *out++ = '\\';
            *out++ = letter;
        } else if (c < 0x20) {
            out = write_hex_escape(c, out);
        } else if (c == 0xED && is_surrogate(text + i, size - i)) {
            out = write_hex_escape(
                0xD000u | ((unsigned char)text[i + 1] & 0x3Fu) << 6 | ((unsigned char)text[i + 2] & 0x3Fu), out);
            i += 2;
        } else {
            *out++ = (char)c;
        }
    }
    return out;
}

void json_blank_line_breaks(char *json, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (json[i] == '\n' || json[i] == '\r') {
            json[i] = ' ';
        }
    }
}
