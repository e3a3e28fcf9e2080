/*
 * A scanner over JSON text; see json.h for the contract.
 */
#include "json.h"

#include <stdlib.h>
#include <string.h>

/* One bit a level: set for an object. The first levels need no memory of their own. */
struct levels {
    unsigned char first[64];
    unsigned char *bits;
    size_t capacity; /* in levels */
    size_t depth;
};

static void levels_push(struct levels *levels, bool object)
{
    size_t at = levels->depth;

    if (at == levels->capacity) {
        unsigned char *grown = memory_take(levels->capacity / 8 * 2, 1);

        memcpy(grown, levels->bits, levels->capacity / 8);
        if (levels->bits != levels->first) {
            free(levels->bits);
        }
        levels->bits = grown;
        levels->capacity *= 2;
    }
    if (object) {
        levels->bits[at / 8] = (unsigned char)(levels->bits[at / 8] | (1U << (at % 8)));
    } else {
        levels->bits[at / 8] = (unsigned char)(levels->bits[at / 8] & ~(1U << (at % 8)));
    }
    levels->depth++;
}

static bool levels_in_object(const struct levels *levels)
{
    size_t at = levels->depth - 1;

    return (levels->bits[at / 8] >> (at % 8) & 1U) != 0;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_hex(char byte)
{
    return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

static const char *skip_escape(const char *at, const char *end)
{
    if (at == end) {
        return NULL;
    }
    if (*at != 'u') {
        return *at != '\0' && strchr("\"\\/bfnrt", *at) != NULL ? at + 1 : NULL;
    }
    if (end - at < 5 || !is_hex(at[1]) || !is_hex(at[2]) || !is_hex(at[3]) || !is_hex(at[4])) {
        return NULL;
    }
    return at + 5;
}

/* at is behind the opening quote. */
static const char *skip_string(const char *at, const char *end)
{
    while (at < end) {
        unsigned char byte = (unsigned char)*at++;

        if (byte == '"') {
            return at;
        }
        if (byte == '\\') {
            at = skip_escape(at, end);
            if (at == NULL) {
                return NULL;
            }
        } else if (byte < 0x20) {
            return NULL;
        }
    }
    return NULL;
}

static const char *skip_digits(const char *at, const char *end)
{
    if (at == end || !is_digit(*at)) {
        return NULL;
    }
    while (at < end && is_digit(*at)) {
        at++;
    }
    return at;
}

static const char *skip_number(const char *at, const char *end)
{
    at += *at == '-';
    if (at < end && *at == '0') {
        at++;
    } else {
        at = skip_digits(at, end);
    }
    if (at != NULL && at < end && *at == '.') {
        at = skip_digits(at + 1, end);
    }
    if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        at = skip_digits(at, end);
    }
    return at;
}

static const char *skip_word(const char *at, const char *end, const char *word)
{
    size_t size = strlen(word);

    return (size_t)(end - at) >= size && memcmp(at, word, size) == 0 ? at + size : NULL;
}

static const char *skip_scalar(const char *at, const char *end)
{
    switch (*at) {
    case '"': return skip_string(at + 1, end);
    case 't': return skip_word(at, end, "true");
    case 'f': return skip_word(at, end, "false");
    case 'n': return skip_word(at, end, "null");
    default: return *at == '-' || is_digit(*at) ? skip_number(at, end) : NULL;
    }
}

/* From a member's opening quote to behind its colon. */
static const char *skip_key(const char *at, const char *end)
{
    if (at == end || *at != '"') {
        return NULL;
    }
    at = skip_string(at + 1, end);
    if (at == NULL) {
        return NULL;
    }
    at = skip_blanks(at, end);
    return at < end && *at == ':' ? at + 1 : NULL;
}

/* What stands before the next value of the container that is open: its first key, a comma, a comma and a key, or its
 * end. *closed says that it ended. */
static const char *skip_to_value(struct levels *levels, const char *at, const char *end, bool first, bool *closed)
{
    bool object = levels_in_object(levels);

    at = skip_blanks(at, end);
    *closed = at < end && *at == (object ? '}' : ']');
    if (*closed) {
        levels->depth--;
        return at + 1;
    }
    if (!first) {
        if (at == end || *at != ',') {
            return NULL;
        }
        at = skip_blanks(at + 1, end);
    }
    return object ? skip_key(at, end) : at;
}

static const char *skip_nested(struct levels *levels, const char *at, const char *end)
{
    bool first = false;

    do {
        bool closed = false;

        if (levels->depth > 0) {
            at = skip_to_value(levels, at, end, first, &closed);
            first = false;
        }
        if (at == NULL || closed) {
            continue;
        }
        at = skip_blanks(at, end);
        if (at == end) {
            return NULL;
        }
        if (*at == '{' || *at == '[') {
            levels_push(levels, *at == '{');
            first = true;
            at++;
        } else {
            at = skip_scalar(at, end);
        }
    } while (at != NULL && levels->depth > 0);
    return at;
}

static const char *skip_value(const char *at, const char *end)
{
    struct levels levels = {.capacity = sizeof levels.first * 8};

    levels.bits = levels.first;
    at = skip_nested(&levels, at, end);
    if (levels.bits != levels.first) {
        free(levels.bits);
    }
    return at;
}

bool json_take(struct slice *rest, struct slice *value)
{
    const char *end;
    const char *start;
    const char *after;

    if (rest->at == NULL) {
        return false;
    }
    end = rest->at + rest->size;
    start = skip_blanks(rest->at, end);
    after = start == end ? NULL : skip_value(start, end);
    if (after == NULL) {
        return false;
    }
    *value = (struct slice){start, (size_t)(after - start)};
    after = skip_blanks(after, end);
    *rest = (struct slice){after, (size_t)(end - after)};
    return true;
}

/* The bytes that may follow the first byte of a UTF-8 sequence: how many, and the range of the next one. */
static size_t utf8_following(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = lead == 0xE0 ? 0xA0 : (lead == 0xF0 ? 0x90 : 0x80);
    *high = lead == 0xED ? 0x9F : (lead == 0xF4 ? 0x8F : 0xBF);
    if (lead >= 0xC2 && lead <= 0xDF) {
        return 1;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        return 2;
    }
    return lead >= 0xF0 && lead <= 0xF4 ? 3 : 0;
}

static bool is_utf8(struct slice body)
{
    const unsigned char *at = (const unsigned char *)body.at;
    const unsigned char *end = at + body.size;

    while (at < end) {
        unsigned char low, high;
        size_t following;

        if (*at < 0x80) {
            at++;
            continue;
        }
        following = utf8_following(*at, &low, &high);
        if (following == 0 || (size_t)(end - at) <= following || at[1] < low || at[1] > high) {
            return false;
        }
        for (size_t i = 2; i <= following; i++) {
            if ((at[i] & 0xC0) != 0x80) {
                return false;
            }
        }
        at += following + 1;
    }
    return true;
}

bool json_is_valid(struct slice body)
{
    struct slice value;

    return json_take(&body, &value) && body.size == 0 && is_utf8(value);
}

bool json_next_member(struct slice *rest, struct slice *key, struct slice *value)
{
    const char *end = rest->at + rest->size;
    const char *at;

    if (rest->size == 0 || (*rest->at != '{' && *rest->at != ',')) {
        return false;
    }
    at = skip_blanks(rest->at + 1, end);
    key->at = at;
    if (at == end || *at != '"' || (at = skip_string(at + 1, end)) == NULL) {
        return false;
    }
    key->size = (size_t)(at - key->at);
    at = skip_blanks(at, end);
    if (at == end) {
        return false;
    }
    *rest = (struct slice){at + 1, (size_t)(end - at - 1)};
    return json_take(rest, value);
}

static bool key_is(struct slice key, const char *name)
{
    struct text decoded = {0};
    bool same;

    if (memchr(key.at, '\\', key.size) == NULL) {
        return slice_is((struct slice){key.at + 1, key.size - 2}, name);
    }
    same = json_string(key, &decoded) && slice_is(text_slice(&decoded), name);
    text_free(&decoded);
    return same;
}

bool json_members(struct slice object, const char *const *names, struct slice *values, size_t count)
{
    struct slice key, value;

    memset(values, 0, count * sizeof *values);
    if (!json_is_object(object)) {
        return false;
    }
    while (json_next_member(&object, &key, &value)) {
        for (size_t i = 0; i < count; i++) {
            if (key_is(key, names[i])) {
                values[i] = value;
            }
        }
    }
    return true;
}

bool json_next_element(struct slice *rest, struct slice *element)
{
    struct slice behind;

    if (rest->size == 0 || (*rest->at != '[' && *rest->at != ',')) {
        return false;
    }
    behind = (struct slice){rest->at + 1, rest->size - 1};
    if (!json_take(&behind, element)) {
        return false;
    }
    *rest = behind;
    return true;
}

bool json_is_array(struct slice value)
{
    return value.size > 0 && value.at[0] == '[';
}

bool json_is_object(struct slice value)
{
    return value.size > 0 && value.at[0] == '{';
}

bool json_is_string(struct slice value)
{
    return value.size > 0 && value.at[0] == '"';
}

bool json_is_null(struct slice value)
{
    return value.size > 0 && value.at[0] == 'n';
}

bool json_is_true(struct slice value)
{
    return value.size > 0 && value.at[0] == 't';
}

static unsigned hex_value(const char *at)
{
    unsigned value = 0;

    for (size_t i = 0; i < 4; i++) {
        unsigned char byte = (unsigned char)at[i];
        unsigned digit = byte <= '9' ? byte - 0x30U : (byte | 0x20U) - 0x61U + 10U;

        value = value * 16 + digit;
    }
    return value;
}

static void add_code_point(struct text *to, unsigned point)
{
    unsigned char bytes[4];
    size_t size;

    if (point < 0x80) {
        bytes[0] = (unsigned char)point;
        size = 1;
    } else if (point < 0x800) {
        bytes[0] = (unsigned char)(0xC0U | point >> 6);
        size = 2;
    } else if (point < 0x10000) {
        bytes[0] = (unsigned char)(0xE0U | point >> 12);
        size = 3;
    } else {
        bytes[0] = (unsigned char)(0xF0U | point >> 18);
        size = 4;
    }
    for (size_t i = 1; i < size; i++) {
        bytes[i] = (unsigned char)(0x80U | (point >> (6 * (size - 1 - i)) & 0x3FU));
    }
    text_add(to, bytes, size);
}

/* at is behind the backslash; returns what comes after the escape, NULL for a lone surrogate. */
static const char *decode_escape(const char *at, const char *end, struct text *to)
{
    static const char letters[] = "bfnrt";
    static const char bytes[] = "\b\f\n\r\t";
    unsigned point;

    if (*at != 'u') {
        const char *letter = strchr(letters, *at);

        text_add(to, letter == NULL ? at : bytes + (letter - letters), 1);
        return at + 1;
    }
    point = hex_value(at + 1);
    at += 5;
    if (point >= 0xD800 && point <= 0xDBFF) {
        unsigned low = end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? hex_value(at + 2) : 0;

        if (low < 0xDC00 || low > 0xDFFF) {
            return NULL;
        }
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        at += 6;
    } else if (point >= 0xDC00 && point <= 0xDFFF) {
        return NULL;
    }
    add_code_point(to, point);
    return at;
}

bool json_string(struct slice value, struct text *decoded)
{
    const char *at;
    const char *end;

    if (!json_is_string(value)) {
        return false;
    }
    at = value.at + 1;
    end = value.at + value.size - 1;
    while (at != NULL && at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        const char *plain_end = escape == NULL ? end : escape;

        text_add(decoded, at, (size_t)(plain_end - at));
        at = escape == NULL ? end : decode_escape(escape + 1, end, decoded);
    }
    return at != NULL;
}

bool json_integer(struct slice value, int64_t *number)
{
    bool negative = value.size > 0 && value.at[0] == '-';
    int64_t sum = 0;

    if (value.size == (size_t)negative) {
        return false;
    }
    for (size_t i = negative; i < value.size; i++) {
        if (!is_digit(value.at[i]) || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_sub_overflow(sum, value.at[i] - '0', &sum)) {
            return false;
        }
    }
    if (!negative && sum == INT64_MIN) {
        return false;
    }
    *number = negative ? sum : -sum;
    return true;
}
