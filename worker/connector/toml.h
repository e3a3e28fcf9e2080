/*
 * TOML 1.0 (https://toml.io/en/v1.0.0) as a tree that C can walk. The reading is toml++'s; this is all that the rest of
 * the program sees of it, and the only place where the program meets C++: no exception gets past these functions.
 */
#ifndef WORKER_CONNECTOR_TOML_H
#define WORKER_CONNECTOR_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "common/error.h"

/* A definition is a page of text: a longer document is refused, and so is one whose keys have more parts, so that what
 * is built from them can be walked (and torn down) by recursion. */
#define TOML_SIZE_MAX  1048576u
#define TOML_DEPTH_MAX 128

enum toml_type { TOML_TABLE, TOML_ARRAY, TOML_STRING, TOML_INTEGER, TOML_FLOAT, TOML_BOOLEAN, TOML_TIME };

struct toml_value {
    enum toml_type type;
    uint32_t line;            /* from 1; that of its key in a table */
    char *key;                /* in a table, with a NUL behind it; else NULL */
    size_t key_size;          /* a quoted key may hold NUL bytes of its own */
    char *text;               /* of a string, or of a date or time as RFC 3339 writes it; with a NUL behind it */
    size_t text_size;         /* a string may hold NUL bytes of its own */
    int64_t integer;          /* TOML_INTEGER */
    double number;            /* TOML_FLOAT: may be infinite or no number */
    bool boolean;             /* TOML_BOOLEAN */
    struct toml_value *items; /* of a table in the order of its keys as bytes, of an array in its own */
    size_t count;
};

/* The document's table, toml_free(); NULL and QS_ERROR_INPUT in *error, whose message says line and column. */
struct toml_value *toml_parse(const char *bytes, size_t size, struct error *error);
void toml_free(struct toml_value *document);

/* A table's member; NULL where it has none of that name. */
const struct toml_value *toml_find(const struct toml_value *table, const char *key);

/* "a string", "an integer": for messages. */
const char *toml_type_name(enum toml_type type);

#ifdef __cplusplus
}
#endif

#endif
