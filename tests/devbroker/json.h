/*
 * Reading JSON without building it: values are slices of the body they came in.
 *
 * A library's tree would not do here. A payload must come back byte for byte, whatever its number spelling, duplicate
 * keys, blanks or lone surrogates; it may nest 100 000 levels deep, so nothing here recurses; names may hold NUL (which
 * must be answered, not cut); and kv numbers keep all their digits.
 */
#ifndef DEVBROKER_JSON_H
#define DEVBROKER_JSON_H

#include "text.h"

/* True when the whole body is exactly one JSON value, in valid UTF-8. Everything below expects such bytes. */
bool json_is_valid(struct slice body);

/* Takes one value (blanks around it dropped) off the front of rest. False when there is none. */
bool json_take(struct slice *rest, struct slice *value);

/* The members of an object that have these names, the last of equals; .at is NULL for one that is missing.
 * False when the value is not an object. */
bool json_members(struct slice object, const char *const *names, struct slice *values, size_t count);

/* Steps through an object: rest begins as the object. The key is raw, with its quotes. False at the end. */
bool json_next_member(struct slice *rest, struct slice *key, struct slice *value);

/* Steps through an array: rest begins as the array. False at the end, or when it is no array. */
bool json_next_element(struct slice *rest, struct slice *element);
bool json_is_array(struct slice value);
bool json_is_object(struct slice value);
bool json_is_string(struct slice value);
bool json_is_null(struct slice value); /* a missing value is not null */
bool json_is_true(struct slice value);

/* Adds the decoded string. False for another kind of value, and for a lone surrogate, which has no UTF-8. */
bool json_string(struct slice value, struct text *decoded);
/* An integer that fits, spelled without fraction or exponent. */
bool json_integer(struct slice value, int64_t *number);

#endif
