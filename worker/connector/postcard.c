/* Reading postcard: postcard.h. */
#include "worker/connector/postcard.h"

#include "common/utf8.h"

/* A varint of at most `bits` bits. Longer spellings than needed are accepted, as the reference decoder does. */
static bool read_varint(struct postcard *in, unsigned bits, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < bits; shift += 7) {
        if (in->at == in->end) {
            return false;
        }
        uint8_t byte = *in->at++;
        uint64_t low = byte & 0x7f;
        if (bits - shift < 7 && low >> (bits - shift) != 0) {
            return false;
        }
        value |= low << shift;
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

bool postcard_u64(struct postcard *in, uint64_t *out)
{
    return read_varint(in, 64, out);
}

bool postcard_u32(struct postcard *in, uint32_t *out)
{
    uint64_t value;

    if (!read_varint(in, 32, &value)) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

bool postcard_i32(struct postcard *in, int32_t *out)
{
    uint32_t folded;

    if (!postcard_u32(in, &folded)) {
        return false;
    }
    int64_t half = folded >> 1;
    *out = (int32_t)((folded & 1) != 0 ? -half - 1 : half);
    return true;
}

bool postcard_bytes(struct postcard *in, struct sink_slice *out)
{
    uint64_t size;

    if (!postcard_u64(in, &size) || size > (uint64_t)(in->end - in->at)) {
        return false;
    }
    *out = (struct sink_slice){(const char *)in->at, (size_t)size};
    in->at += size;
    return true;
}

bool postcard_string(struct postcard *in, struct sink_slice *out)
{
    return postcard_bytes(in, out) && utf8_is_valid(out->bytes, out->size);
}

bool postcard_option(struct postcard *in, bool *has)
{
    if (in->at == in->end || *in->at > 1) {
        return false;
    }
    *has = *in->at++ == 1;
    return true;
}

/* From memory that may be nowhere where it is empty. */
static struct postcard open_buffer(const uint8_t *bytes, size_t size)
{
    return size > 0 ? (struct postcard){bytes, bytes + size} : (struct postcard){bytes, bytes};
}

bool postcard_topic(const uint8_t *bytes, size_t size, struct sink_slice *topic)
{
    struct postcard in = open_buffer(bytes, size);

    return postcard_string(&in, topic);
}

bool postcard_batch(const uint8_t *bytes, size_t size, struct postcard_batch *batch)
{
    struct postcard in = open_buffer(bytes, size);
    uint32_t schema;

    if (!postcard_i32(&in, &batch->partition) || !postcard_u64(&in, &batch->current_offset) ||
        !postcard_u32(&in, &schema) || schema >= SINK_SCHEMA_COUNT) {
        return false;
    }
    batch->schema = (enum sink_schema)schema;
    return true;
}

bool postcard_message(struct postcard *cursor, struct sink_record *record)
{
    *record = (struct sink_record){0};
    return postcard_u64(cursor, &record->offset) && postcard_u64(cursor, &record->timestamp_ms) &&
           postcard_option(cursor, &record->has_key) && (!record->has_key || postcard_bytes(cursor, &record->key)) &&
           postcard_bytes(cursor, &record->headers) && postcard_bytes(cursor, &record->payload);
}

bool postcard_messages(const uint8_t *bytes, size_t size, struct postcard *cursor, uint64_t *count)
{
    struct postcard in = open_buffer(bytes, size);
    uint32_t schema; /* the batch's counts */

    if (!postcard_u32(&in, &schema) || !postcard_u64(&in, count)) {
        return false;
    }
    *cursor = in;
    for (uint64_t i = 0; i < *count; i++) {
        struct sink_record record;
        if (!postcard_message(&in, &record)) {
            return false;
        }
    }
    return true;
}
