/*
 * See parquet_thrift.h. A field's head is one byte where its id is at most 15 above the last one's, which those of
 * parquet.thrift always are.
 */
#include "worker/parquet_thrift.h"

#include <string.h>

enum { TYPE_TRUE = 1, TYPE_FALSE = 2, TYPE_I32 = 5, TYPE_I64 = 6, TYPE_BINARY = 8, TYPE_LIST = 9, TYPE_STRUCT = 12 };

#define LONG_LIST 15

uint8_t *varint_put(uint8_t *out, uint64_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}

uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static void put_byte(struct thrift *thrift, unsigned value)
{
    uint8_t byte = (uint8_t)value;

    byte_buffer_add(&thrift->bytes, &byte, 1);
}

static void put_varint(struct thrift *thrift, uint64_t value)
{
    uint8_t bytes[10];

    byte_buffer_add(&thrift->bytes, bytes, (size_t)(varint_put(bytes, value) - bytes));
}

static void put_binary(struct thrift *thrift, const void *bytes, size_t size)
{
    put_varint(thrift, size);
    if (size > 0) {
        byte_buffer_add(&thrift->bytes, bytes, size);
    }
}

static void put_head(struct thrift *thrift, int16_t id, unsigned type)
{
    int16_t *last = &thrift->last[thrift->depth];
    unsigned step = (unsigned)(id - *last);

    put_byte(thrift, step << 4 | type);
    *last = id;
}

void thrift_begin(struct thrift *thrift)
{
    byte_buffer_clear(&thrift->bytes);
    thrift->depth = 0;
    thrift->last[0] = 0;
}

void thrift_open_element(struct thrift *thrift)
{
    thrift->last[++thrift->depth] = 0;
}

void thrift_open(struct thrift *thrift, int16_t id)
{
    put_head(thrift, id, TYPE_STRUCT);
    thrift_open_element(thrift);
}

void thrift_end(struct thrift *thrift)
{
    put_byte(thrift, 0);
    thrift->depth--;
}

void thrift_i32(struct thrift *thrift, int16_t id, int32_t value)
{
    put_head(thrift, id, TYPE_I32);
    put_varint(thrift, zigzag(value));
}

void thrift_i64(struct thrift *thrift, int16_t id, int64_t value)
{
    put_head(thrift, id, TYPE_I64);
    put_varint(thrift, zigzag(value));
}

void thrift_bool(struct thrift *thrift, int16_t id, bool value)
{
    put_head(thrift, id, value ? TYPE_TRUE : TYPE_FALSE);
}

void thrift_binary(struct thrift *thrift, int16_t id, const void *bytes, size_t size)
{
    put_head(thrift, id, TYPE_BINARY);
    put_binary(thrift, bytes, size);
}

void thrift_text(struct thrift *thrift, int16_t id, const char *text)
{
    thrift_binary(thrift, id, text, strlen(text));
}

void thrift_nothing(struct thrift *thrift, int16_t id)
{
    put_head(thrift, id, TYPE_STRUCT);
    put_byte(thrift, 0);
}

void thrift_list(struct thrift *thrift, int16_t id, enum thrift_type type, size_t count)
{
    put_head(thrift, id, TYPE_LIST);
    if (count < LONG_LIST) {
        put_byte(thrift, (unsigned)count << 4 | type);
    } else {
        put_byte(thrift, LONG_LIST << 4 | type);
        put_varint(thrift, count);
    }
}

void thrift_i32_element(struct thrift *thrift, int32_t value)
{
    put_varint(thrift, zigzag(value));
}

void thrift_text_element(struct thrift *thrift, const char *text)
{
    put_binary(thrift, text, strlen(text));
}
