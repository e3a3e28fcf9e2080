/*
 * The values of one Parquet page, one by one, in whichever encoding its writer chose (Encodings.md of the format).
 */
#ifndef COMMON_LAKE_STORED_VALUES_H
#define COMMON_LAKE_STORED_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lake/stored_numbers.h"
#include "common/queen_api.h"

/* The distinct values of a chunk. Of integers the page itself is the table. */
struct stored_dictionary {
    const uint8_t *bytes; /* the page, decompressed; must stay */
    uint32_t count;
    struct name *texts; /* NULL for integers */
};

/* NULL, or why these bytes aren't `count` values in PLAIN; *no_memory: only for lack of memory. */
const char *stored_dictionary_read(struct stored_dictionary *dictionary, bool integers, const uint8_t *bytes,
                                   size_t size, uint32_t count, bool *no_memory);
void stored_dictionary_free(struct stored_dictionary *dictionary);

struct stored_values {
    const struct stored_dictionary *dictionary;
    int32_t encoding;
    uint64_t left; /* values not yet read */
    const uint8_t *at;
    const uint8_t *end;
    struct bit_runs indices;
    struct deltas deltas;   /* integers; lengths of texts; of suffixes */
    struct deltas prefixes; /* how much of the text before each text begins with */
    char *text;             /* the last, where it was put together */
    size_t text_size;
    size_t text_capacity;
    bool no_memory; /* why the last value isn't there */
};

/* Zero it before its first use. Any number of pages; stored_values_free() at the end. NULL, or why these bytes don't
 * hold `count` values in this encoding (as far as it shows at once); *dictionary may be NULL. */
const char *stored_values_begin(struct stored_values *values, int32_t encoding, bool integers, const uint8_t *bytes,
                                size_t size, uint64_t count, const struct stored_dictionary *dictionary);

/* The next value; NULL, or why there is none. A text is valid until the next one, and lies in the page, in the
 * dictionary or in *values. */
const char *stored_values_integer(struct stored_values *values, int64_t *value);
const char *stored_values_text(struct stored_values *values, struct name *value);

/* Once the last is read: NULL, or why something is left that no writer leaves. */
const char *stored_values_finish(const struct stored_values *values);

void stored_values_free(struct stored_values *values);

#endif
