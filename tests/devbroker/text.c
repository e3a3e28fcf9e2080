/*
 * Byte slices and growing buffers; see text.h for the contract.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *memory_checked(void *memory)
{
    if (memory == NULL) {
        fputs("devbroker: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

void *memory_take(size_t count, size_t size)
{
    return memory_checked(calloc(count == 0 ? 1 : count, size == 0 ? 1 : size));
}

void *memory_resize(void *memory, size_t count, size_t size)
{
    size_t bytes = 0;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        return memory_checked(NULL);
    }
    return memory_checked(realloc(memory, bytes == 0 ? 1 : bytes));
}

void *memory_room(void *memory, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return memory;
    }
    *capacity = *capacity == 0 ? 1 : *capacity * 2;
    return memory_resize(memory, *capacity, size);
}

struct slice slice_of(const char *string)
{
    return (struct slice){string, strlen(string)};
}

struct slice slice_copy(struct slice from)
{
    char *copy = memory_take(from.size + 1, 1);

    if (from.size > 0) {
        memcpy(copy, from.at, from.size);
    }
    return (struct slice){copy, from.size};
}

bool slice_equal(struct slice left, struct slice right)
{
    return left.size == right.size && (left.size == 0 || memcmp(left.at, right.at, left.size) == 0);
}

bool slice_is(struct slice left, const char *right)
{
    return slice_equal(left, slice_of(right));
}

bool slice_contains(struct slice hay, struct slice needle)
{
    for (size_t i = 0; i + needle.size <= hay.size; i++) {
        if (needle.size == 0 || memcmp(hay.at + i, needle.at, needle.size) == 0) {
            return true;
        }
    }
    return false;
}

int slice_compare(struct slice left, struct slice right)
{
    size_t common = left.size < right.size ? left.size : right.size;
    int order = common == 0 ? 0 : memcmp(left.at, right.at, common);

    if (order != 0) {
        return order;
    }
    return left.size < right.size ? -1 : left.size > right.size;
}

uint64_t slice_hash(struct slice from, uint64_t seed)
{
    /* Spread: a seed merely xored in would make up for another first byte, and two partitions' ids look alike. */
    uint64_t hash = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < from.size; i++) {
        hash = (hash ^ (unsigned char)from.at[i]) * UINT64_C(0x100000001b3);
    }
    /* FNV leaves the low bits of similar names close together, and the table uses the low bits. */
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    return hash ^ (hash >> 33);
}

void text_reserve(struct text *text, size_t more)
{
    size_t wanted = 0;

    if (__builtin_add_overflow(text->size, more, &wanted)) {
        memory_checked(NULL);
    }
    if (wanted <= text->capacity) {
        return;
    }
    if (wanted < text->capacity * 2) {
        wanted = text->capacity * 2;
    }
    if (wanted < 256) {
        wanted = 256;
    }
    text->at = memory_resize(text->at, wanted, 1);
    text->capacity = wanted;
}

void text_add(struct text *text, const void *bytes, size_t size)
{
    if (size == 0) {
        return;
    }
    text_reserve(text, size);
    memcpy(text->at + text->size, bytes, size);
    text->size += size;
}

void text_add_slice(struct text *text, struct slice from)
{
    text_add(text, from.at, from.size);
}

void text_add_string(struct text *text, const char *string)
{
    text_add(text, string, strlen(string));
}

void text_add_number(struct text *text, int64_t number)
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%lld", (long long)number);

    text_add(text, digits, (size_t)size);
}

void text_add_format(struct text *text, const char *format, ...)
{
    va_list values;
    va_list again;
    int size;

    va_start(values, format);
    va_copy(again, values);
    size = vsnprintf(NULL, 0, format, values);
    va_end(values);
    if (size > 0) {
        text_reserve(text, (size_t)size + 1);
        vsnprintf(text->at + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
}

struct slice text_slice(const struct text *text)
{
    return (struct slice){text->at == NULL ? "" : text->at, text->size};
}

void text_free(struct text *text)
{
    free(text->at);
    *text = (struct text){0};
}

/* The letter after the backslash, 'u' for the long form, 0 for a byte that stays as it is. */
static char quoted_escape(unsigned char byte)
{
    switch (byte) {
    case '"': return '"';
    case '\\': return '\\';
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return byte < 0x20 ? 'u' : '\0';
    }
}

size_t quoted_size(struct slice from)
{
    size_t size = from.size + 2;

    for (size_t i = 0; i < from.size; i++) {
        char escape = quoted_escape((unsigned char)from.at[i]);

        size += escape == '\0' ? 0 : (escape == 'u' ? 5 : 1);
    }
    return size;
}

char *quoted_write(char *to, struct slice from)
{
    static const char hex[] = "0123456789abcdef";

    *to++ = '"';
    for (size_t i = 0; i < from.size; i++) {
        unsigned char byte = (unsigned char)from.at[i];
        char escape = quoted_escape(byte);

        if (escape == '\0') {
            *to++ = (char)byte;
            continue;
        }
        *to++ = '\\';
        *to++ = escape;
        if (escape == 'u') {
            *to++ = '0';
            *to++ = '0';
            *to++ = hex[byte >> 4];
            *to++ = hex[byte & 15];
        }
    }
    *to++ = '"';
    return to;
}

void text_add_quoted(struct text *text, struct slice from)
{
    text_reserve(text, quoted_size(from));
    text->size = (size_t)(quoted_write(text->at + text->size, from) - text->at);
}

size_t number_size(int64_t number)
{
    size_t size = 1;

    for (; number >= 10; number /= 10) {
        size++;
    }
    return size;
}

char *number_write(char *to, int64_t number)
{
    size_t size = number_size(number);

    for (size_t i = size; i > 0; i--) {
        to[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    return to + size;
}
