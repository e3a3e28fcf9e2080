/*
 * A record as the bytes of a file (seed, "What lands in the bucket"; spec 5.2).
 *
 *     {"offset":1042,"timestamp":"2026-09-03T21:15:04.118Z","topic":"orders.eu","partition":0,"key":"dXNlci0x",
 *      "headers":{…},"payload":{…}}
 *
 * without blanks, and with raw format the payload alone. A payload that is JSON is copied as it stands (its raw line
 * breaks become blanks); nothing is parsed into a tree, and nothing is allocated per record.
 */
#ifndef WORKER_CONNECTOR_FORMAT_H
#define WORKER_CONNECTOR_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/json_scan.h"
#include "common/settings.h"
#include "worker/connector/body.h"
#include "worker/connector/record.h"

enum sink_format { SINK_JSON_LINES, SINK_JSON_ARRAY, SINK_RAW };

/* What makes a file's bytes from its records, and the end of its key. */
struct sink_shape {
    enum sink_format format;
    enum setting_compression compression; /* none, gzip or zstd */
    bool include_metadata;
    bool include_headers;
};

/* "jsonl", "json.gz", "bin.zst" … */
const char *sink_shape_extension(const struct sink_shape *shape);
const char *sink_shape_content_type(const struct sink_shape *shape);

/* What a record had that its schema does not allow (spec 5.1); it is written all the same. */
enum sink_oddity {
    SINK_ODD_HEADERS = 1, /* they don't decode: written without */
    SINK_ODD_PAYLOAD = 2  /* schema json, not JSON; schema text, not UTF-8: written as a base64 string */
};

struct sink_header;

/* Scratch memory of who formats, one a thread. Zero it before its first use. */
struct sink_formatter {
    struct json_scan scan;
    struct sink_header *headers;
    size_t header_capacity;
    /* Of the batch under way. */
    struct sink_shape shape;
    enum sink_schema schema;
    char *head; /* `,"topic":"…","partition":0` */
    size_t head_size;
    /* The time written last, as text. */
    uint64_t second;
    bool second_known;
    char time[CLOCK_TEXT_SIZE];
};

/* Before the records of a batch. topic is UTF-8. QS_ERROR_NO_MEMORY. */
int sink_formatter_begin(struct sink_formatter *formatter, const struct sink_shape *shape, struct sink_slice topic,
                         int32_t partition, enum sink_schema schema, struct error *error);

/* A record's bytes at the end of body, reserved but not committed: *bytes, *size. No line feed, comma or bracket
 * belongs to them; `before` bytes in front of them and one behind are the caller's to use (*bytes is behind the former).
 * *oddities: enum sink_oddity. QS_ERROR_NO_MEMORY; QS_ERROR_INPUT where the time can't be spelled. */
int sink_format_record(struct sink_formatter *formatter, const struct sink_record *record, struct sink_body *body,
                       size_t before, char **bytes, size_t *size, unsigned *oddities, struct error *error);

/* Whether the payload is what its schema says, with none decoded before: JSON, UTF-8; all else is (spec 5.4). */
bool sink_payload_is_valid(struct sink_formatter *formatter, enum sink_schema schema, struct sink_slice payload);

void sink_formatter_free(struct sink_formatter *formatter);

/* A protobuf Any (google/protobuf/any.proto): type_url and value, and nothing else that would be lost. */
bool protobuf_any_decode(struct sink_slice message, struct sink_slice *type_url, struct sink_slice *value);

#endif
