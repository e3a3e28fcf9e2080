/*
 * Thrift's compact protocol, read from memory: what Parquet's footer and page headers are spelled in ("Thrift Compact
 * protocol encoding", thrift-compact-protocol.md; Parquet's parquet.thrift says what the fields mean).
 *
 * A cursor that can't be led astray: once something isn't right, `why` says what, everything further yields zeros, and
 * structs and lists end. So a reader looks at `why` once, behind its loops. Nothing is allocated, and no count is
 * believed beyond the bytes that are there.
 */
#ifndef COMMON_LAKE_COMPACT_READ_H
#define COMMON_LAKE_COMPACT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum compact_type {
    COMPACT_STOP = 0,
    COMPACT_TRUE = 1,
    COMPACT_FALSE = 2,
    COMPACT_BYTE = 3,
    COMPACT_I16 = 4,
    COMPACT_I32 = 5,
    COMPACT_I64 = 6,
    COMPACT_DOUBLE = 7,
    COMPACT_BINARY = 8,
    COMPACT_LIST = 9,
    COMPACT_SET = 10,
    COMPACT_MAP = 11,
    COMPACT_STRUCT = 12,
    COMPACT_UUID = 13
};

struct compact {
    const uint8_t *at;
    const uint8_t *end;
    const char *why; /* NULL: all was right so far */
    bool cut;        /* why it isn't right: the bytes ended, more may follow */
};

/* A struct's fields one after the other. Zero it before the first compact_next_field(). */
struct compact_field {
    int32_t id;
    enum compact_type type;
};

struct compact_binary {
    const uint8_t *bytes;
    uint32_t size;
};

struct compact compact_begin(const void *bytes, size_t size);

/* The next field of the struct at hand, whose value is then to be read or skipped. False at its end. */
bool compact_next_field(struct compact *compact, struct compact_field *field);

/* Values of the field at hand. Each fails where the field is of another type. */
bool compact_bool(struct compact *compact, const struct compact_field *field);
int32_t compact_i32(struct compact *compact, const struct compact_field *field);
int64_t compact_i64(struct compact *compact, const struct compact_field *field);
struct compact_binary compact_binary(struct compact *compact, const struct compact_field *field);
/* The struct begins at the cursor. */
bool compact_struct(struct compact *compact, const struct compact_field *field);
/* How many elements of this type follow; there is at least a byte for each. 0 after a failure. */
uint32_t compact_list(struct compact *compact, const struct compact_field *field, enum compact_type of);
/* An element of a list of binaries. */
struct compact_binary compact_binary_element(struct compact *compact);

void compact_skip(struct compact *compact, const struct compact_field *field);
/* A whole struct that begins at the cursor. */
void compact_skip_struct(struct compact *compact);

/* Fails from outside: what was read can't be. */
void compact_fail(struct compact *compact, const char *why);

#endif
