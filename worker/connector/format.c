/*
 * Formatting (format.h), in two steps: what a record will take is worked out first (its payload scanned, its headers
 * read and put in order), then everything is written in one go into room that is known to be enough.
 */
#include "worker/connector/format.h"

#include <inttypes.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/decimal.h"
#include "common/json_scan.h"
#include "common/utf8.h"
#include "worker/connector/postcard.h"

/* Of all that is neither head, key, headers nor payload: names, quotes, the offset, the time. */
#define FIXED_SIZE 160
/* A slice from here on could make a sum wrap around; no memory holds one. */
#define SLICE_MAX (SIZE_MAX / 16)
#define TIME_SIZE 24 /* 2026-09-03T21:15:04.118Z */

struct sink_header {
    struct sink_slice name;
    struct sink_slice value;
    size_t index;
    bool text;
};

enum payload_kind { PAYLOAD_NULL, PAYLOAD_JSON, PAYLOAD_TEXT, PAYLOAD_BASE64, PAYLOAD_ANY };

struct payload_plan {
    enum payload_kind kind;
    struct sink_slice bytes; /* of JSON: without the blanks around it; of an Any: its type_url */
    struct sink_slice value; /* of an Any */
    bool line_breaks;
};

struct record_plan {
    struct payload_plan payload;
    bool has_headers;
    size_t header_count;
};

const char *sink_shape_extension(const struct sink_shape *shape)
{
    static const char *const extensions[][3] = {
        [SINK_JSON_LINES] = {"jsonl", "jsonl.gz", "jsonl.zst"},
        [SINK_JSON_ARRAY] = {"json", "json.gz", "json.zst"},
        [SINK_RAW] = {"bin", "bin.gz", "bin.zst"},
    };
    int compressed = shape->compression == COMPRESSION_GZIP ? 1 : shape->compression == COMPRESSION_ZSTD ? 2 : 0;

    return extensions[shape->format][compressed];
}

const char *sink_shape_content_type(const struct sink_shape *shape)
{
    switch (shape->compression) {
    case COMPRESSION_GZIP: return "application/gzip";
    case COMPRESSION_ZSTD: return "application/zstd";
    case COMPRESSION_NONE:
    case COMPRESSION_SNAPPY: break;
    }
    switch (shape->format) {
    case SINK_JSON_LINES: return "application/x-ndjson";
    case SINK_JSON_ARRAY: return "application/json";
    case SINK_RAW: break;
    }
    return "application/octet-stream";
}

static char *put(char *out, const void *bytes, size_t size)
{
    if (size > 0) {
        memcpy(out, bytes, size);
    }
    return out + size;
}

#define PUT_TEXT(out, text) put(out, text, sizeof(text) - 1)

static size_t base64_size(size_t size)
{
    return (size / 3 + 1) * 4;
}

static char *put_base64(char *out, struct sink_slice slice)
{
    const size_t most = INT_MAX / 8 * 3; /* a multiple of 3, whose text an int counts */

    while (slice.size > 0) {
        size_t part = slice.size < most ? slice.size : most;
        out += EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)slice.bytes, (int)part);
        slice = (struct sink_slice){slice.bytes + part, slice.size - part};
    }
    return out;
}

static char *put_base64_string(char *out, struct sink_slice slice)
{
    *out++ = '"';
    out = put_base64(out, slice);
    *out++ = '"';
    return out;
}

static char *put_string(char *out, struct sink_slice slice)
{
    *out++ = '"';
    out = json_spell_string(slice.bytes, slice.size, out);
    *out++ = '"';
    return out;
}

int sink_formatter_begin(struct sink_formatter *formatter, const struct sink_shape *shape, struct sink_slice topic,
                         int32_t partition, enum sink_schema schema, struct error *error)
{
    static const char open[] = ",\"topic\":";
    static const char middle[] = ",\"partition\":";
    int64_t number = partition;
    size_t most = topic.size < SLICE_MAX
                      ? json_spelled_size(topic.bytes, topic.size) + sizeof open + sizeof middle + DECIMAL_DIGITS_MAX
                      : SIZE_MAX;
    char *head = realloc(formatter->head, most);

    if (head == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a topic's name");
    }
    formatter->head = head;
    formatter->shape = *shape;
    formatter->schema = schema;
    char *end = put_string(PUT_TEXT(head, open), topic);
    end = PUT_TEXT(end, middle);
    if (number < 0) {
        *end++ = '-';
        number = -number;
    }
    formatter->head_size = (size_t)(decimal_write(end, (uint64_t)number) - head);
    error_clear(error);
    return 0;
}

/* ---- what a record will take ---- */

static bool find_json(struct sink_formatter *formatter, struct sink_slice payload, struct payload_plan *plan)
{
    struct json_value value;

    if (payload.size == 0) {
        return false;
    }
    const char *end = payload.bytes + payload.size;
    const char *after = json_scan_value(&formatter->scan, json_skip_blank(payload.bytes, end), end, &value);
    if (after == NULL || json_skip_blank(after, end) != end) {
        return false;
    }
    *plan = (struct payload_plan){
        .kind = PAYLOAD_JSON, .bytes = {value.start, value.size}, .line_breaks = value.line_breaks};
    return true;
}

bool sink_payload_is_valid(struct sink_formatter *formatter, enum sink_schema schema, struct sink_slice payload)
{
    struct payload_plan ignored;

    switch (schema) {
    case SINK_SCHEMA_JSON: return find_json(formatter, payload, &ignored);
    case SINK_SCHEMA_TEXT: return utf8_is_valid(payload.bytes, payload.size);
    case SINK_SCHEMA_RAW:
    case SINK_SCHEMA_PROTO:
    case SINK_SCHEMA_FLATBUFFER:
    case SINK_SCHEMA_AVRO: break;
    }
    return true;
}

static void plan_payload(struct sink_formatter *formatter, const struct sink_record *record, struct payload_plan *plan,
                         unsigned *oddities)
{
    struct sink_slice type_url;
    struct sink_slice value;

    *plan = (struct payload_plan){.kind = PAYLOAD_BASE64, .bytes = record->payload};
    if (record->payload_null) {
        plan->kind = PAYLOAD_NULL;
        return;
    }
    switch (formatter->schema) {
    case SINK_SCHEMA_JSON:
        if (!find_json(formatter, record->payload, plan)) {
            *oddities |= SINK_ODD_PAYLOAD;
        }
        break;
    case SINK_SCHEMA_RAW: find_json(formatter, record->payload, plan); break;
    case SINK_SCHEMA_TEXT:
        if (utf8_is_valid(record->payload.bytes, record->payload.size)) {
            plan->kind = PAYLOAD_TEXT;
        } else {
            *oddities |= SINK_ODD_PAYLOAD;
        }
        break;
    case SINK_SCHEMA_PROTO:
        if (!find_json(formatter, record->payload, plan) && protobuf_any_decode(record->payload, &type_url, &value)) {
            *plan = (struct payload_plan){.kind = PAYLOAD_ANY, .bytes = type_url, .value = value};
        }
        break;
    case SINK_SCHEMA_FLATBUFFER:
    case SINK_SCHEMA_AVRO: break;
    }
}

static size_t payload_size(const struct payload_plan *plan)
{
    switch (plan->kind) {
    case PAYLOAD_NULL: return 4;
    case PAYLOAD_JSON: return plan->bytes.size;
    case PAYLOAD_TEXT: return json_spelled_size(plan->bytes.bytes, plan->bytes.size) + 2;
    case PAYLOAD_BASE64: return base64_size(plan->bytes.size) + 2;
    case PAYLOAD_ANY: break;
    }
    return json_spelled_size(plan->bytes.bytes, plan->bytes.size) + base64_size(plan->value.size) + 40;
}

/* By name, and those of one name as they came. */
static int compare_headers(const void *left, const void *right)
{
    const struct sink_header *a = left;
    const struct sink_header *b = right;
    size_t common = a->name.size < b->name.size ? a->name.size : b->name.size;
    int order = common > 0 ? memcmp(a->name.bytes, b->name.bytes, common) : 0;

    if (order != 0) {
        return order;
    }
    if (a->name.size != b->name.size) {
        return a->name.size < b->name.size ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool make_header_room(struct sink_formatter *formatter, size_t count)
{
    if (count <= formatter->header_capacity) {
        return true;
    }
    struct sink_header *headers = realloc(formatter->headers, count * sizeof *headers);
    if (headers == NULL) {
        return false;
    }
    formatter->headers = headers;
    formatter->header_capacity = count;
    return true;
}

/* The map's entries in order of their names, each name once: the last of the same counts. */
static size_t order_headers(struct sink_header *headers, size_t count)
{
    size_t kept = 0;

    if (count > 1) {
        qsort(headers, count, sizeof *headers, compare_headers);
    }
    for (size_t i = 0; i < count; i++) {
        const struct sink_header *next = i + 1 < count ? &headers[i + 1] : NULL;
        if (next == NULL || next->name.size != headers[i].name.size ||
            (next->name.size > 0 && memcmp(next->name.bytes, headers[i].name.bytes, next->name.size) != 0)) {
            headers[kept++] = headers[i];
        }
    }
    return kept;
}

static int plan_headers(struct sink_formatter *formatter, struct sink_slice bytes, struct record_plan *plan,
                        unsigned *oddities, struct error *error)
{
    const uint8_t *start = (const uint8_t *)bytes.bytes;
    struct postcard in = {start, start + bytes.size};
    uint64_t count;

    *oddities |= SINK_ODD_HEADERS; /* until they have proved well */
    /* A name and a value take a byte at least. */
    if (!postcard_u64(&in, &count) || count > (uint64_t)(in.end - in.at) / 2) {
        return 0;
    }
    if (!make_header_room(formatter, (size_t)count)) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a record's %" PRIu64 " headers", count);
    }
    for (size_t i = 0; i < count; i++) {
        struct sink_header *header = &formatter->headers[i];
        if (!postcard_string(&in, &header->name) || !postcard_bytes(&in, &header->value)) {
            return 0;
        }
        header->index = i;
        header->text = utf8_is_valid(header->value.bytes, header->value.size);
    }
    *oddities &= ~(unsigned)SINK_ODD_HEADERS;
    plan->has_headers = true;
    plan->header_count = order_headers(formatter->headers, (size_t)count);
    return 0;
}

static size_t headers_size(const struct sink_formatter *formatter, const struct record_plan *plan)
{
    size_t size = 16;

    for (size_t i = 0; i < plan->header_count; i++) {
        const struct sink_header *header = &formatter->headers[i];
        size += json_spelled_size(header->name.bytes, header->name.size) + 6;
        size +=
            header->text ? json_spelled_size(header->value.bytes, header->value.size) : base64_size(header->value.size);
    }
    return size;
}

/* ---- writing it ---- */

static char *put_time(struct sink_formatter *formatter, uint64_t time_ms, char *out)
{
    uint64_t second = time_ms / 1000;
    unsigned ms = (unsigned)(time_ms % 1000);

    if (!formatter->second_known || second != formatter->second) {
        clock_format_wall((struct wall_ms){(int64_t)time_ms}, formatter->time);
        formatter->second = second;
        formatter->second_known = true;
    }
    out = put(out, formatter->time, TIME_SIZE - 4);
    *out++ = (char)('0' + ms / 100);
    *out++ = (char)('0' + ms / 10 % 10);
    *out++ = (char)('0' + ms % 10);
    *out++ = 'Z';
    return out;
}

static char *put_headers(const struct sink_formatter *formatter, const struct record_plan *plan, char *out)
{
    *out++ = '{';
    for (size_t i = 0; i < plan->header_count; i++) {
        const struct sink_header *header = &formatter->headers[i];
        if (i > 0) {
            *out++ = ',';
        }
        out = put_string(out, header->name);
        *out++ = ':';
        out = header->text ? put_string(out, header->value) : put_base64_string(out, header->value);
    }
    *out++ = '}';
    return out;
}

static char *put_payload(const struct payload_plan *plan, char *out)
{
    char *start = out;

    switch (plan->kind) {
    case PAYLOAD_NULL: out = PUT_TEXT(out, "null"); break;
    case PAYLOAD_TEXT: out = put_string(out, plan->bytes); break;
    case PAYLOAD_BASE64: out = put_base64_string(out, plan->bytes); break;
    case PAYLOAD_ANY:
        out = put_string(PUT_TEXT(out, "{\"type_url\":"), plan->bytes);
        out = put_base64_string(PUT_TEXT(out, ",\"value\":"), plan->value);
        *out++ = '}';
        break;
    case PAYLOAD_JSON:
        out = put(out, plan->bytes.bytes, plan->bytes.size);
        if (plan->line_breaks) {
            json_blank_line_breaks(start, plan->bytes.size);
        }
        break;
    }
    return out;
}

static char *put_record(struct sink_formatter *formatter, const struct sink_record *record,
                        const struct record_plan *plan, char *out)
{
    const char *comma = "";

    *out++ = '{';
    if (formatter->shape.include_metadata) {
        out = decimal_write(PUT_TEXT(out, "\"offset\":"), record->offset);
        out = put_time(formatter, record->timestamp_ms, PUT_TEXT(out, ",\"timestamp\":\""));
        *out++ = '"';
        out = put(out, formatter->head, formatter->head_size);
        if (record->has_key) {
            out = put_base64_string(PUT_TEXT(out, ",\"key\":"), record->key);
        }
        comma = ",";
    }
    if (plan->has_headers) {
        out = put(out, comma, strlen(comma));
        out = put_headers(formatter, plan, PUT_TEXT(out, "\"headers\":"));
        comma = ",";
    }
    out = put(out, comma, strlen(comma));
    out = put_payload(&plan->payload, PUT_TEXT(out, "\"payload\":"));
    *out++ = '}';
    return out;
}

static int format_raw(const struct sink_record *record, struct sink_body *body, size_t before, char **bytes,
                      size_t *size, struct error *error)
{
    char *room = record->payload.size < SLICE_MAX ? sink_body_reserve(body, before + record->payload.size + 1) : NULL;

    if (room == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a record of %zu bytes", record->payload.size);
    }
    put(room + before, record->payload.bytes, record->payload.size);
    *bytes = room + before;
    *size = record->payload.size;
    return 0;
}

int sink_format_record(struct sink_formatter *formatter, const struct sink_record *record, struct sink_body *body,
                       size_t before, char **bytes, size_t *size, unsigned *oddities, struct error *error)
{
    struct record_plan plan = {0};

    *oddities = 0;
    if (formatter->shape.format == SINK_RAW) {
        return format_raw(record, body, before, bytes, size, error);
    }
    if (formatter->shape.include_metadata && record->timestamp_ms > SINK_TIMESTAMP_MAX) {
        return error_set(error, QS_ERROR_INPUT,
                         "the record at offset %" PRIu64 " has a time of %" PRIu64
                         " ms, after year 9999: no date can be written for it",
                         record->offset, record->timestamp_ms);
    }
    if (record->key.size > SLICE_MAX || record->headers.size > SLICE_MAX || record->payload.size > SLICE_MAX) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a record");
    }
    if (formatter->shape.include_headers && record->headers.size > 0 &&
        plan_headers(formatter, record->headers, &plan, oddities, error) != 0) {
        return error->code;
    }
    plan_payload(formatter, record, &plan.payload, oddities);
    size_t most = before + FIXED_SIZE + formatter->head_size + base64_size(record->key.size) +
                  headers_size(formatter, &plan) + payload_size(&plan.payload);
    char *room = sink_body_reserve(body, most);
    if (room == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a record of %zu bytes", record->payload.size);
    }
    *bytes = room + before;
    *size = (size_t)(put_record(formatter, record, &plan, *bytes) - *bytes);
    return 0;
}

void sink_formatter_free(struct sink_formatter *formatter)
{
    free(formatter->scan.bits);
    free(formatter->headers);
    free(formatter->head);
    *formatter = (struct sink_formatter){0};
}
