/*
 * See json_walk.h. Each level scans its values to find where they end, so a text is read once for every level it lies
 * below: three or four times at several hundred megabytes a second, with no allocation.
 */
#include "common/json_walk.h"

#include <string.h>

static bool walk_start(struct json_walk *walk, struct json_scan *scan, struct json_text value, char open)
{
    if (value.size < 2 || value.bytes[0] != open) {
        return false;
    }
    *walk = (struct json_walk){.scan = scan, .cursor = value.bytes + 1, .end = value.bytes + value.size - 1};
    return true;
}

bool json_walk_object(struct json_walk *walk, struct json_scan *scan, struct json_text value)
{
    return walk_start(walk, scan, value, '{');
}

bool json_walk_array(struct json_walk *walk, struct json_scan *scan, struct json_text value)
{
    return walk_start(walk, scan, value, '[');
}

/* The scanner hands out places in what it was given, which here is a text that may be written to. */
static char *writable(const struct json_walk *walk, const char *place)
{
    return walk->cursor + (place - walk->cursor);
}

static void skip_blank(struct json_walk *walk)
{
    walk->cursor = writable(walk, json_skip_blank(walk->cursor, walk->end));
}

static bool take_value(struct json_walk *walk, struct json_text *value)
{
    struct json_value scanned;
    skip_blank(walk);
    const char *after = json_scan_value(walk->scan, walk->cursor, walk->end, &scanned);
    if (after == NULL) {
        return false;
    }
    *value = (struct json_text){walk->cursor, scanned.size};
    walk->cursor = writable(walk, after);
    skip_blank(walk);
    if (walk->cursor < walk->end && *walk->cursor == ',') {
        walk->cursor++;
    }
    return true;
}

bool json_walk_element(struct json_walk *walk, struct json_text *value)
{
    return take_value(walk, value);
}

bool json_walk_member(struct json_walk *walk, struct json_text *key, struct json_text *value)
{
    const char *text;
    size_t size;
    bool escaped;
    skip_blank(walk);
    if (walk->cursor == walk->end) {
        return false;
    }
    const char *after = json_scan_string(walk->cursor, walk->end, &text, &size, &escaped);
    if (after == NULL) {
        return false;
    }
    *key = (struct json_text){writable(walk, text), size};
    if (escaped) {
        key->size = json_unescape(key->bytes, size, key->bytes);
    }
    walk->cursor = writable(walk, after);
    skip_blank(walk);
    if (walk->cursor == walk->end || *walk->cursor != ':') {
        return false;
    }
    walk->cursor++;
    return take_value(walk, value);
}

bool json_text_is(struct json_text text, const char *wanted)
{
    return text.size == strlen(wanted) && memcmp(text.bytes, wanted, text.size) == 0;
}

bool json_text_string(struct json_text value, struct name *out)
{
    if (value.size < 2 || value.bytes[0] != '"') {
        return false;
    }
    char *text = value.bytes + 1;
    size_t size = value.size - 2;
    if (memchr(text, '\\', size) != NULL) {
        size = json_unescape(text, size, text);
    }
    *out = (struct name){text, size};
    return true;
}

bool json_text_c_string(struct json_text value, const char **out)
{
    struct name text;
    if (!json_text_string(value, &text) || memchr(text.bytes, '\0', text.size) != NULL) {
        return false;
    }
    char *start = value.bytes + 1;
    start[text.size] = '\0'; /* where the closing quote was, or before it */
    *out = start;
    return true;
}

bool json_text_boolean(struct json_text value, bool *out)
{
    *out = json_text_is(value, "true");
    return *out || json_text_is(value, "false");
}

bool json_text_integer(struct json_text value, int64_t *out)
{
    bool negative = value.size > 0 && value.bytes[0] == '-';
    size_t at = negative ? 1 : 0;
    int64_t number = 0;
    if (at == value.size) {
        return false;
    }
    for (; at < value.size; at++) {
        int digit = value.bytes[at] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_sub_overflow(number, digit, &number)) { /* downwards: the smallest has no opposite */
            return false;
        }
    }
    if (!negative && number == INT64_MIN) {
        return false;
    }
    *out = negative ? number : -number;
    return true;
}
