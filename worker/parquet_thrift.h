/*
 * Thrift's compact protocol, writing only, as much of it as Parquet's metadata takes (thrift-compact-protocol.md):
 * structs, integers, booleans, binaries and lists of these.
 *
 * Fields of a struct are written in ascending order of their ids, which the caller must keep to.
 */
#ifndef WORKER_PARQUET_THRIFT_H
#define WORKER_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/byte_buffer.h"

/* Types of list elements, as the protocol numbers them. */
enum thrift_type { THRIFT_I32 = 5, THRIFT_BINARY = 8, THRIFT_STRUCT = 12 };

#define THRIFT_DEPTH 8 /* structs within structs; the metadata of a file has five */

/* Zero it and call thrift_begin() before its first use. */
struct thrift {
    struct byte_buffer bytes;
    int depth;
    int16_t last[THRIFT_DEPTH]; /* the id of the field written last, of each open struct */
};

/* Forgets what was written and opens the outermost struct. */
void thrift_begin(struct thrift *thrift);
/* Opens a struct as a field; as an element of a list. thrift_end() closes it, and the outermost one. */
void thrift_open(struct thrift *thrift, int16_t id);
void thrift_open_element(struct thrift *thrift);
void thrift_end(struct thrift *thrift);

void thrift_i32(struct thrift *thrift, int16_t id, int32_t value); /* enums too */
void thrift_i64(struct thrift *thrift, int16_t id, int64_t value);
void thrift_bool(struct thrift *thrift, int16_t id, bool value);
void thrift_binary(struct thrift *thrift, int16_t id, const void *bytes, size_t size);
void thrift_text(struct thrift *thrift, int16_t id, const char *text);
/* An empty struct: how a union says which of its kinds it is. */
void thrift_nothing(struct thrift *thrift, int16_t id);

/* The head of a list; count elements of the type must follow. */
void thrift_list(struct thrift *thrift, int16_t id, enum thrift_type type, size_t count);
void thrift_i32_element(struct thrift *thrift, int32_t value);
void thrift_text_element(struct thrift *thrift, const char *text);

/* ULEB128, at most 10 bytes, and what makes small numbers of either sign small; Parquet's encodings use both too.
 * Returns the end. */
uint8_t *varint_put(uint8_t *out, uint64_t value);
uint64_t zigzag(int64_t value);

#endif
