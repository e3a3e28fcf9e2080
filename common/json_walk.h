/*
 * Reading small answers where they lie: member by member, with no tree. What cJSON would do with ten nodes a partition
 * is done here with none, and numbers keep their digits: a version may need all 64 bits, which a double doesn't hold.
 *
 * Texts must have been proved by json_scan_value() as a whole. Strings are unescaped in place, so each text is to be
 * walked once: from the outside in, a member or an element at a time.
 */
#ifndef COMMON_JSON_WALK_H
#define COMMON_JSON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json_scan.h"
#include "common/queen_api.h"

/* A whole value, or what stands between a key's quotes. */
struct json_text {
    char *bytes;
    size_t size;
};

struct json_walk {
    struct json_scan *scan;
    char *cursor;
    char *end;
};

/* False where the value isn't an object, an array. */
bool json_walk_object(struct json_walk *walk, struct json_scan *scan, struct json_text value);
bool json_walk_array(struct json_walk *walk, struct json_scan *scan, struct json_text value);
/* The next member, its key unescaped; the next element. False at the end. */
bool json_walk_member(struct json_walk *walk, struct json_text *key, struct json_text *value);
bool json_walk_element(struct json_walk *walk, struct json_text *value);

/* Whether the text (of a key, or of a literal such as `null`) is exactly this. */
bool json_text_is(struct json_text text, const char *wanted);
/* Each false where the value isn't of that kind. An integer has neither fraction nor exponent and fits 64 bits. */
bool json_text_string(struct json_text value, struct name *out);
bool json_text_boolean(struct json_text value, bool *out);
bool json_text_integer(struct json_text value, int64_t *out);
/* A string without NUL, given one at its end. */
bool json_text_c_string(struct json_text value, const char **out);

#endif
