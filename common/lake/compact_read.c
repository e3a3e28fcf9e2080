/* Thrift's compact protocol: compact_read.h. */
#include "common/lake/compact_read.h"

/* How deep structs and lists that are passed over may nest: Parquet's own are at most six deep. */
#define DEPTH_MAX 24

struct compact compact_begin(const void *bytes, size_t size)
{
    return (struct compact){.at = bytes, .end = (const uint8_t *)bytes + size};
}

void compact_fail(struct compact *compact, const char *why)
{
    if (compact->why == NULL) {
        compact->why = why;
    }
    compact->at = compact->end;
}

static void fail_cut(struct compact *compact)
{
    if (compact->why == NULL) {
        compact->cut = true;
    }
    compact_fail(compact, "it ends early");
}

static size_t left(const struct compact *compact)
{
    return (size_t)(compact->end - compact->at);
}

static uint8_t take_byte(struct compact *compact)
{
    if (compact->at == compact->end) {
        fail_cut(compact);
        return 0;
    }
    return *compact->at++;
}

/* Seven bits a byte, the least significant first; ten bytes hold 64 bits. */
static uint64_t take_varint(struct compact *compact)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = take_byte(compact);
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    compact_fail(compact, "a number beyond 64 bits");
    return 0;
}

static int64_t take_zigzag(struct compact *compact)
{
    uint64_t value = take_varint(compact);
    uint64_t sign = 0 - (value & 1);

    return (int64_t)(value >> 1 ^ sign);
}

static struct compact_binary take_binary(struct compact *compact)
{
    uint64_t size = take_varint(compact);
    struct compact_binary binary = {compact->at, 0};

    if (size > INT32_MAX) {
        compact_fail(compact, "a text longer than Thrift's");
    } else if (size > left(compact)) {
        fail_cut(compact);
    } else {
        binary.size = (uint32_t)size;
        compact->at += size;
    }
    return binary;
}

bool compact_next_field(struct compact *compact, struct compact_field *field)
{
    uint8_t head = take_byte(compact);
    unsigned delta = head >> 4;

    field->type = head & 15;
    if (compact->why != NULL || field->type == COMPACT_STOP) {
        return false;
    }
    int64_t id = delta != 0 ? (int64_t)field->id + delta : take_zigzag(compact);
    if (compact->why == NULL && (id < INT16_MIN || id > INT16_MAX || field->type > COMPACT_UUID)) {
        compact_fail(compact, "a field that Thrift doesn't have");
    }
    field->id = (int32_t)id;
    return compact->why == NULL;
}

static bool is(struct compact *compact, const struct compact_field *field, enum compact_type type)
{
    if (field->type != type) {
        compact_fail(compact, "a field of another type than the format's");
    }
    return compact->why == NULL;
}

bool compact_bool(struct compact *compact, const struct compact_field *field)
{
    return field->type == COMPACT_TRUE || (is(compact, field, COMPACT_FALSE) && false);
}

int32_t compact_i32(struct compact *compact, const struct compact_field *field)
{
    int64_t value = is(compact, field, COMPACT_I32) ? take_zigzag(compact) : 0;

    if (value < INT32_MIN || value > INT32_MAX) {
        compact_fail(compact, "a number beyond 32 bits");
        return 0;
    }
    return (int32_t)value;
}

int64_t compact_i64(struct compact *compact, const struct compact_field *field)
{
    return is(compact, field, COMPACT_I64) ? take_zigzag(compact) : 0;
}

struct compact_binary compact_binary(struct compact *compact, const struct compact_field *field)
{
    return is(compact, field, COMPACT_BINARY) ? take_binary(compact) : (struct compact_binary){compact->at, 0};
}

struct compact_binary compact_binary_element(struct compact *compact)
{
    return take_binary(compact);
}

bool compact_struct(struct compact *compact, const struct compact_field *field)
{
    return is(compact, field, COMPACT_STRUCT);
}

static uint32_t take_list(struct compact *compact, enum compact_type *of)
{
    uint8_t head = take_byte(compact);
    uint64_t count = head >> 4 != 15 ? head >> 4 : take_varint(compact);

    *of = head & 15;
    if (count > INT32_MAX) {
        compact_fail(compact, "a list longer than Thrift's");
    } else if (count > left(compact)) {
        fail_cut(compact);
    }
    return compact->why == NULL ? (uint32_t)count : 0;
}

uint32_t compact_list(struct compact *compact, const struct compact_field *field, enum compact_type of)
{
    enum compact_type type = of;
    uint32_t count = is(compact, field, COMPACT_LIST) ? take_list(compact, &type) : 0;

    if (count > 0 && type != of) {
        compact_fail(compact, "a list of another type than the format's");
        return 0;
    }
    return count;
}

static void skip_value(struct compact *compact, enum compact_type type, unsigned depth);

static void skip_fields(struct compact *compact, unsigned depth)
{
    struct compact_field field = {0};

    while (compact_next_field(compact, &field)) {
        /* A field's truth is in its head; only an element's has a byte of its own. */
        if (field.type != COMPACT_TRUE && field.type != COMPACT_FALSE) {
            skip_value(compact, field.type, depth);
        }
    }
}

static void skip_bytes(struct compact *compact, size_t size)
{
    if (size > left(compact)) {
        fail_cut(compact);
    } else {
        compact->at += size;
    }
}

static void skip_map(struct compact *compact, unsigned depth)
{
    uint64_t count = take_varint(compact);
    uint8_t types = count > 0 ? take_byte(compact) : 0;

    for (; count > 0 && compact->why == NULL; count--) {
        skip_value(compact, types >> 4, depth);
        skip_value(compact, types & 15, depth);
    }
}

/* Every kind takes at least a byte, so that no count makes a loop longer than the bytes are. */
static void skip_value(struct compact *compact, enum compact_type type, unsigned depth)
{
    enum compact_type of = COMPACT_STOP;

    if (depth == DEPTH_MAX) {
        compact_fail(compact, "nested too deeply");
        return;
    }
    switch (type) {
    case COMPACT_TRUE:
    case COMPACT_FALSE:
    case COMPACT_BYTE: skip_bytes(compact, 1); break;
    case COMPACT_I16:
    case COMPACT_I32:
    case COMPACT_I64: (void)take_varint(compact); break;
    case COMPACT_DOUBLE: skip_bytes(compact, 8); break;
    case COMPACT_UUID: skip_bytes(compact, 16); break;
    case COMPACT_BINARY: (void)take_binary(compact); break;
    case COMPACT_LIST:
    case COMPACT_SET:
        for (uint32_t count = take_list(compact, &of); count > 0 && compact->why == NULL; count--) {
            skip_value(compact, of, depth + 1);
        }
        break;
    case COMPACT_MAP: skip_map(compact, depth + 1); break;
    case COMPACT_STRUCT: skip_fields(compact, depth + 1); break;
    case COMPACT_STOP:
    default: compact_fail(compact, "a type that Thrift doesn't have");
    }
}

void compact_skip(struct compact *compact, const struct compact_field *field)
{
    if (field->type != COMPACT_TRUE && field->type != COMPACT_FALSE) {
        skip_value(compact, field->type, 0);
    }
}

void compact_skip_struct(struct compact *compact)
{
    skip_fields(compact, 0);
}
