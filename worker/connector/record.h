/*
 * A record on its way into a file of the S3 sink (spec 5.1, 5.2): slices of the batch that it came in, which must
 * outlive it.
 */
#ifndef WORKER_CONNECTOR_RECORD_H
#define WORKER_CONNECTOR_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As the batch's enum counts them (spec 5.1). */
enum sink_schema {
    SINK_SCHEMA_JSON,
    SINK_SCHEMA_RAW,
    SINK_SCHEMA_TEXT,
    SINK_SCHEMA_PROTO,
    SINK_SCHEMA_FLATBUFFER,
    SINK_SCHEMA_AVRO
};
#define SINK_SCHEMA_COUNT 6

struct sink_slice {
    const char *bytes; /* may be NULL where size is 0 */
    size_t size;
};

struct sink_record {
    uint64_t offset;
    uint64_t timestamp_ms; /* since 1970; whatever the producer said */
    bool has_key;
    bool payload_null; /* written as `null`; only where no runtime has decoded (spec 5.4) */
    struct sink_slice key;
    struct sink_slice headers; /* nothing: none; else postcard, map<string, bytes>, not yet looked at */
    struct sink_slice payload;
};

/* The last millisecond of year 9999: what is later has no date that a key or a line can spell. */
#define SINK_TIMESTAMP_MAX UINT64_C(253402300799999)

/* Of time, key, headers and payload (not the offset): the same in every build, since spools keep it. */
uint64_t sink_record_hash(const struct sink_record *record);

#endif
