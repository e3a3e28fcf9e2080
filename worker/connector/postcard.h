/*
 * Reading postcard, the encoding of what the connectors runtime hands over (spec 5.1): integers as LEB128 varints
 * (signed ones zigzag), strings and byte vectors as a length and the bytes, an option as 0 or 1 and the value.
 * Source: the Postcard Wire Format specification, 1.0.
 *
 * Each function moves the cursor behind what it has read; false where the bytes end before or can't be that, and the
 * cursor then stands anywhere. Nothing is copied.
 */
#ifndef WORKER_CONNECTOR_POSTCARD_H
#define WORKER_CONNECTOR_POSTCARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/connector/record.h"

struct postcard {
    const uint8_t *at;
    const uint8_t *end;
};

bool postcard_u64(struct postcard *in, uint64_t *out);
bool postcard_u32(struct postcard *in, uint32_t *out);
bool postcard_i32(struct postcard *in, int32_t *out);
bool postcard_bytes(struct postcard *in, struct sink_slice *out);
/* As bytes, and they must be UTF-8. */
bool postcard_string(struct postcard *in, struct sink_slice *out);
/* *has is whether the value follows. */
bool postcard_option(struct postcard *in, bool *has);

/* The three buffers. Bytes behind what they hold are ignored. */
bool postcard_topic(const uint8_t *bytes, size_t size, struct sink_slice *topic);

struct postcard_batch {
    int32_t partition;
    uint64_t current_offset;
    enum sink_schema schema;
};
bool postcard_batch(const uint8_t *bytes, size_t size, struct postcard_batch *batch);

/* Proves the whole of a messages buffer and makes a cursor for postcard_message(), to be called *count times, which then
 * can't fail. */
bool postcard_messages(const uint8_t *bytes, size_t size, struct postcard *cursor, uint64_t *count);
bool postcard_message(struct postcard *cursor, struct sink_record *record);

#endif
