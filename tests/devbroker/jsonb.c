/*
 * Values the way PostgreSQL's jsonb gives them back (kv.h): the sink has to compare them by meaning, so this spells
 * them as differently from what was sent as the real store does.
 */
#include "kv.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

#define DEPTH_LIMIT  500
#define DIGITS_LIMIT 16384

struct member {
    struct slice key; /* decoded, owned */
    struct slice value;
    size_t position;
};

static bool add_value(struct slice value, struct text *text, unsigned depth);

static int member_compare(const void *left_member, const void *right_member)
{
    const struct member *left = left_member;
    const struct member *right = right_member;

    if (left->key.size != right->key.size) {
        return left->key.size < right->key.size ? -1 : 1;
    }
    if (!slice_equal(left->key, right->key)) {
        return slice_compare(left->key, right->key);
    }
    return left->position < right->position ? -1 : 1;
}

static bool decode(struct slice value, struct text *decoded)
{
    return json_string(value, decoded) && (decoded->size == 0 || memchr(decoded->at, '\0', decoded->size) == NULL);
}

static struct member *take_members(struct slice object, size_t *count, bool *fine)
{
    struct member *members = NULL;
    size_t capacity = 0;
    struct slice key, value;

    *count = 0;
    *fine = true;
    while (json_next_member(&object, &key, &value)) {
        struct text decoded = {0};

        members = memory_room(members, *count, &capacity, sizeof *members);
        *fine = decode(key, &decoded) && *fine;
        members[*count] = (struct member){slice_copy(text_slice(&decoded)), value, *count};
        ++*count;
        text_free(&decoded);
    }
    return members;
}

static bool add_object(struct slice object, struct text *text, unsigned depth)
{
    size_t count;
    bool fine;
    bool first = true;
    struct member *members = take_members(object, &count, &fine);

    if (count > 0) {
        qsort(members, count, sizeof *members, member_compare);
    }
    text_add_string(text, "{");
    for (size_t i = 0; i < count; i++) {
        if (fine && (i + 1 == count || !slice_equal(members[i].key, members[i + 1].key))) {
            text_add_string(text, first ? "" : ", ");
            text_add_quoted(text, members[i].key);
            text_add_string(text, ": ");
            fine = add_value(members[i].value, text, depth + 1);
            first = false;
        }
    }
    text_add_string(text, "}");
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)members[i].key.at);
    }
    free(members);
    return fine;
}

static bool add_array(struct slice array, struct text *text, unsigned depth)
{
    struct slice element;
    bool first = true;

    text_add_string(text, "[");
    while (json_next_element(&array, &element)) {
        text_add_string(text, first ? "" : ", ");
        first = false;
        if (!add_value(element, text, depth + 1)) {
            return false;
        }
    }
    text_add_string(text, "]");
    return true;
}

static int64_t read_exponent(struct slice from)
{
    bool negative = from.size > 0 && from.at[0] == '-';
    int64_t exponent = 0;

    for (size_t i = 0; i < from.size && exponent <= DIGITS_LIMIT; i++) {
        if (from.at[i] >= '0' && from.at[i] <= '9') {
            exponent = exponent * 10 + (from.at[i] - '0');
        }
    }
    return negative ? -exponent : exponent;
}

/* Writes digits with the point before digits[point]; point may lie outside of them on either side. */
static void add_digits(const struct text *digits, int64_t point, bool negative, struct text *text)
{
    int64_t size = (int64_t)digits->size;
    int64_t at = 0;
    bool zero = true;

    for (int64_t i = 0; i < size; i++) {
        zero = zero && digits->at[i] == '0';
    }
    text_add_string(text, negative && !zero ? "-" : "");
    while (at < point - 1 && (at >= size || digits->at[at] == '0') && !zero && at < size) {
        at++;
    }
    if (zero) {
        at = point > 0 ? point - 1 : 0;
    }
    if (point <= 0) {
        text_add_string(text, "0");
    }
    for (; at < point; at++) {
        text_add(text, at < size ? &digits->at[at] : "0", 1);
    }
    if (point < size) {
        text_add_string(text, ".");
        for (int64_t i = point; i < 0; i++) {
            text_add_string(text, "0");
        }
        for (at = point < 0 ? 0 : point; at < size; at++) {
            text_add(text, &digits->at[at], 1);
        }
    }
}

/* numeric keeps every digit and the scale, and drops the exponent and the sign of zero. */
static bool add_number(struct slice number, struct text *text)
{
    struct text digits = {0};
    bool negative = number.at[0] == '-';
    int64_t point = -1;
    int64_t exponent = 0;
    bool fine;

    for (size_t i = negative; i < number.size; i++) {
        char byte = number.at[i];

        if (byte == '.') {
            point = (int64_t)digits.size;
        } else if (byte == 'e' || byte == 'E') {
            exponent = read_exponent((struct slice){number.at + i + 1, number.size - i - 1});
            break;
        } else {
            text_add(&digits, &byte, 1);
        }
    }
    point = (point < 0 ? (int64_t)digits.size : point) + exponent;
    fine = point <= DIGITS_LIMIT && point >= -DIGITS_LIMIT;
    if (fine) {
        add_digits(&digits, point, negative, text);
    }
    text_free(&digits);
    return fine;
}

static bool add_string(struct slice value, struct text *text)
{
    struct text decoded = {0};
    bool fine = decode(value, &decoded);

    text_add_quoted(text, text_slice(&decoded));
    text_free(&decoded);
    return fine;
}

static bool add_value(struct slice value, struct text *text, unsigned depth)
{
    if (depth > DEPTH_LIMIT) {
        return false;
    }
    switch (value.at[0]) {
    case '{': return add_object(value, text, depth);
    case '[': return add_array(value, text, depth);
    case '"': return add_string(value, text);
    case 't':
    case 'f':
    case 'n': text_add_slice(text, value); return true;
    default: return add_number(value, text);
    }
}

bool jsonb_add(struct slice value, struct text *text)
{
    return add_value(value, text, 0);
}
