/* See parquet_bound.h. Bytes compare unsigned, which for UTF-8 is the order of code points (RFC 3629). */
#include "worker/parquet_bound.h"

#include <string.h>

static int compare(const struct bound *left, const struct bound *right)
{
    size_t size = left->size < right->size ? left->size : right->size;
    int order = memcmp(left->bytes, right->bytes, size);

    if (order == 0 && left->size != right->size) {
        order = left->size < right->size ? -1 : 1;
    }
    return order;
}

void bounds_add(struct bounds *bounds, const void *bytes, size_t size)
{
    struct bound value;

    value.size = size > sizeof value.bytes ? sizeof value.bytes : size;
    if (size > 0) {
        memcpy(value.bytes, bytes, value.size);
    }
    if (!bounds->any || compare(&value, &bounds->least) < 0) {
        bounds->least = value;
    }
    if (!bounds->any || compare(&value, &bounds->greatest) > 0) {
        bounds->greatest = value;
    }
    bounds->any = true;
}

/* Bytes of the character that begins at bytes[0], of which `size` are there; 0 where it is none or isn't all there. */
static size_t read_character(const uint8_t *bytes, size_t size, uint32_t *code)
{
    static const uint32_t shortest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xC0 ? 0 : bytes[0] < 0xE0 ? 2 : bytes[0] < 0xF0 ? 3 : 4;

    if (length == 0 || length > size || bytes[0] > 0xF4) {
        return 0;
    }
    *code = length == 1 ? bytes[0] : bytes[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
        *code = *code << 6 | (bytes[i] & 0x3Fu);
    }
    return *code < shortest[length] || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000) ? 0 : length;
}

static size_t write_character(uint32_t code, uint8_t *bytes)
{
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    if (length == 1) {
        bytes[0] = (uint8_t)code;
        return 1;
    }
    for (size_t i = length - 1; i > 0; i--) {
        bytes[i] = (uint8_t)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    bytes[0] = (uint8_t)((0xF00u >> length) | code);
    return length;
}

/* Whole characters at the beginning of what is there, at most BOUND_SIZE bytes of them. *text: nothing else is there but
 * the beginning of one more. */
static size_t whole_characters(const struct bound *value, bool *text)
{
    uint32_t code;
    size_t length;
    size_t at = 0;

    while (at < BOUND_SIZE) {
        length = read_character(value->bytes + at, value->size - at, &code);
        if (length == 0 || at + length > BOUND_SIZE) {
            break;
        }
        at += length;
    }
    /* Only bytes that go on with the last character may stand between it and the cut; there are three at most. */
    *text = at + 4 > BOUND_SIZE;
    for (size_t i = at + 1; i < BOUND_SIZE && *text; i++) {
        *text = (value->bytes[i] & 0xC0) == 0x80;
    }
    *text = *text && (at == BOUND_SIZE || (value->bytes[at] >= 0xC2 && value->bytes[at] <= 0xF4));
    return at;
}

/* The first bytes of a value that is too long, as text where it is text; false where it isn't. */
static bool cut(const struct bound *value, struct bound *out)
{
    bool text;
    size_t size = whole_characters(value, &text);

    *out = *value;
    out->size = text ? size : BOUND_SIZE;
    return text;
}

bool bound_cut_least(const struct bound *value, struct bound *out)
{
    if (value->size <= BOUND_SIZE) {
        *out = *value;
        return true;
    }
    (void)cut(value, out);
    return false;
}

/* Makes the last character the next one; false where there is none, or where it would be too long. */
static bool next_character(struct bound *bound)
{
    size_t start = bound->size - 1;
    uint32_t code = 0;
    uint8_t bytes[4];

    while ((bound->bytes[start] & 0xC0) == 0x80) {
        start--;
    }
    (void)read_character(bound->bytes + start, bound->size - start, &code);
    bound->size = start;
    code = code == 0xD7FF ? 0xE000 : code + 1;
    if (code > 0x10FFFF) {
        return false;
    }
    size_t length = write_character(code, bytes);
    if (start + length > BOUND_SIZE) {
        return false;
    }
    memcpy(bound->bytes + start, bytes, length);
    bound->size += length;
    return true;
}

static bool next_byte(struct bound *bound)
{
    uint8_t *last = &bound->bytes[bound->size - 1];

    if (*last == 0xFF) {
        bound->size--;
        return false;
    }
    ++*last;
    return true;
}

bool bound_cut_greatest(const struct bound *value, struct bound *out, bool *exact)
{
    *exact = value->size <= BOUND_SIZE;
    if (*exact) {
        *out = *value;
        return true;
    }
    bool text = cut(value, out);
    while (out->size > 0) {
        if (text ? next_character(out) : next_byte(out)) {
            return true;
        }
    }
    return false;
}
