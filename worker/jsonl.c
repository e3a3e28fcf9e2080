/*
 * Lines as in spec 2.2 (jsonl.h):
 *
 *   {"partition":"…","offset":1811,"transactionId":"…","ts":"2026-09-04T10:03:41.918204Z","payload":{…}}
 *
 * The payload is the producer's own bytes. Of them only a raw line break between tokens is touched, and becomes a blank:
 * a line feed would end the line, and inside a JSON string neither can stand raw (RFC 8259, section 7), so that the
 * blank never changes a value. The decoder has marked the few records that hold one; all others are copied whole.
 *
 * What repeats is spelled once: the line's head with the partition's name a run, the time as long as it stays in the
 * same second. All that is left a record are copies.
 */
#include "worker/jsonl.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/decimal.h"
#include "common/json_scan.h"

#define BUFFER_SIZE 131072
/* A payload from this size on goes to the compressor from where it lies. */
#define DIRECT_SIZE 16384
#define TIME_SIZE   27

static const char head_open[] = "{\"partition\":\"";
static const char head_close[] = "\",\"offset\":";
static const char before_id[] = ",\"transactionId\":\"";
static const char before_time[] = "\",\"ts\":\"";
static const char before_payload[] = "\",\"payload\":";
static const char line_end[] = "}\n";

#define TEXT_SIZE(text) (sizeof(text) - 1)
/* Of all that is neither name, id nor payload: the longest offset has 20 digits. */
#define FIXED_SIZE (TEXT_SIZE(before_id) + TEXT_SIZE(before_time) + TEXT_SIZE(before_payload) + TIME_SIZE + 20 + 2)

struct jsonl {
    struct compressor *compressor;
    size_t used;
    char *head; /* `{"partition":"…","offset":` */
    size_t head_size;
    size_t head_capacity;
    bool time_known;
    int64_t time_second;
    int64_t time_us;
    char time[CLOCK_TEXT_SIZE];
    char buffer[BUFFER_SIZE];
};

static char *put(char *out, const void *bytes, size_t size)
{
    memcpy(out, bytes, size);
    return out + size;
}

/* The time's text into jsonl->time. Within one second only its six last digits are written anew. */
static void spell_time(struct jsonl *jsonl, struct broker_us time)
{
    int64_t fraction = time.v % 1000000;
    int64_t second = time.v / 1000000 - (fraction < 0);

    if (jsonl->time_known && time.v == jsonl->time_us) {
        return;
    }
    if (jsonl->time_known && second == jsonl->time_second) {
        fraction += fraction < 0 ? 1000000 : 0;
        for (char *digit = jsonl->time + TIME_SIZE - 2; *digit != '.'; digit--) {
            *digit = (char)('0' + fraction % 10);
            fraction /= 10;
        }
    } else {
        clock_format_broker(time, jsonl->time);
    }
    /* Beyond year 9999 the text is clamped, and its digits are not those of the second. */
    jsonl->time_known = second >= INT64_C(-62167219200) && second < INT64_C(253402300800);
    jsonl->time_second = second;
    jsonl->time_us = time.v;
}

static int begin_run(struct jsonl *jsonl, struct name partition, struct error *error)
{
    size_t spelled = json_spelled_size(partition.bytes, partition.size);
    size_t size;

    if (spelled > SIZE_MAX - TEXT_SIZE(head_open) - TEXT_SIZE(head_close)) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a partition's name");
    }
    size = spelled + TEXT_SIZE(head_open) + TEXT_SIZE(head_close);
    if (size > jsonl->head_capacity) {
        char *head = realloc(jsonl->head, size);
        if (head == NULL) {
            return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a partition's name");
        }
        jsonl->head = head;
        jsonl->head_capacity = size;
    }
    char *out = put(jsonl->head, head_open, TEXT_SIZE(head_open));
    out = json_spell_string(partition.bytes, partition.size, out);
    put(out, head_close, TEXT_SIZE(head_close));
    jsonl->head_size = size;
    return 0;
}

int jsonl_flush(struct jsonl *jsonl, struct error *error)
{
    size_t used = jsonl->used;

    jsonl->used = 0;
    return compressor_feed(jsonl->compressor, jsonl->buffer, used, error);
}

/* Any number of bytes through the buffer. */
static int stream(struct jsonl *jsonl, const char *bytes, size_t size, struct error *error)
{
    while (size > 0) {
        size_t piece = sizeof jsonl->buffer - jsonl->used;
        if (piece > size) {
            piece = size;
        }
        memcpy(jsonl->buffer + jsonl->used, bytes, piece);
        jsonl->used += piece;
        bytes += piece;
        size -= piece;
        if (jsonl->used == sizeof jsonl->buffer) {
            int code = jsonl_flush(jsonl, error);
            if (code != 0) {
                return code;
            }
        }
    }
    return 0;
}

static int stream_payload(struct jsonl *jsonl, const struct record *record, struct error *error)
{
    const char *bytes = record->payload;
    size_t size = record->payload_size;

    if ((record->flags & RECORD_LINE_BREAKS) == 0) {
        int code = jsonl_flush(jsonl, error);
        return code != 0 ? code : compressor_feed(jsonl->compressor, bytes, size, error);
    }
    while (size > 0) {
        if (jsonl->used == sizeof jsonl->buffer) {
            int code = jsonl_flush(jsonl, error);
            if (code != 0) {
                return code;
            }
        }
        size_t piece = sizeof jsonl->buffer - jsonl->used;
        if (piece > size) {
            piece = size;
        }
        memcpy(jsonl->buffer + jsonl->used, bytes, piece);
        json_blank_line_breaks(jsonl->buffer + jsonl->used, piece);
        jsonl->used += piece;
        bytes += piece;
        size -= piece;
    }
    return 0;
}

/* A line that is too long for what is free in the buffer, or better not copied. */
static int write_long(struct jsonl *jsonl, const struct record *record, struct error *error)
{
    char number[20];
    size_t digits = (size_t)(decimal_write(number, (uint64_t)record->offset) - number);
    const struct {
        const char *bytes;
        size_t size;
    } before[] = {{jsonl->head, jsonl->head_size},
                  {number, digits},
                  {before_id, TEXT_SIZE(before_id)},
                  {record->transaction_id, record->transaction_id_size},
                  {before_time, TEXT_SIZE(before_time)},
                  {jsonl->time, TIME_SIZE},
                  {before_payload, TEXT_SIZE(before_payload)}};
    int code = 0;

    for (size_t i = 0; i < sizeof before / sizeof *before && code == 0; i++) {
        code = stream(jsonl, before[i].bytes, before[i].size, error);
    }
    if (code == 0) {
        code = (record->flags & RECORD_PAYLOAD_NULL) != 0 ? stream(jsonl, "null", 4, error)
                                                          : stream_payload(jsonl, record, error);
    }
    return code != 0 ? code : stream(jsonl, line_end, TEXT_SIZE(line_end), error);
}

static int write_record(struct jsonl *jsonl, const struct record *record, struct error *error)
{
    size_t room = sizeof jsonl->buffer - jsonl->used;
    size_t need = FIXED_SIZE + jsonl->head_size;

    spell_time(jsonl, record->ts);
    if (record->payload_size >= DIRECT_SIZE || record->transaction_id_size >= DIRECT_SIZE || need > DIRECT_SIZE) {
        return write_long(jsonl, record, error);
    }
    need += (size_t)record->transaction_id_size + record->payload_size + 4;
    if (need > room) {
        int code = jsonl_flush(jsonl, error);
        if (code != 0) {
            return code;
        }
    }
    char *out = jsonl->buffer + jsonl->used;
    out = put(out, jsonl->head, jsonl->head_size);
    out = decimal_write(out, (uint64_t)record->offset);
    out = put(out, before_id, TEXT_SIZE(before_id));
    if (record->transaction_id_size > 0) {
        out = put(out, record->transaction_id, record->transaction_id_size);
    }
    out = put(out, before_time, TEXT_SIZE(before_time));
    out = put(out, jsonl->time, TIME_SIZE);
    out = put(out, before_payload, TEXT_SIZE(before_payload));
    if ((record->flags & RECORD_PAYLOAD_NULL) != 0) {
        out = put(out, "null", 4);
    } else if (record->payload_size > 0) {
        out = put(out, record->payload, record->payload_size);
        if ((record->flags & RECORD_LINE_BREAKS) != 0) {
            json_blank_line_breaks(out - record->payload_size, record->payload_size);
        }
    }
    out = put(out, line_end, TEXT_SIZE(line_end));
    jsonl->used = (size_t)(out - jsonl->buffer);
    return 0;
}

int jsonl_write_run(struct jsonl *jsonl, const struct run *run, struct error *error)
{
    int code = begin_run(jsonl, run->partition, error);

    for (size_t i = 0; i < run->extent_count && code == 0; i++) {
        const struct extent *extent = &run->extents[i];
        const struct record *record = extent->block->records + extent->first;
        const struct record *end = record + extent->count;
        for (; record < end && code == 0; record++) {
            code = write_record(jsonl, record, error);
        }
    }
    return code;
}

struct jsonl *jsonl_create(struct compressor *compressor)
{
    struct jsonl *jsonl = malloc(sizeof *jsonl);

    if (jsonl != NULL) {
        memset(jsonl, 0, offsetof(struct jsonl, buffer));
        jsonl->compressor = compressor;
    }
    return jsonl;
}

void jsonl_destroy(struct jsonl *jsonl)
{
    if (jsonl != NULL) {
        free(jsonl->head);
        free(jsonl);
    }
}

uint64_t jsonl_memory(void)
{
    return sizeof(struct jsonl);
}

uint64_t jsonl_record_size(const struct record *record, size_t partition_spelled)
{
    uint64_t payload = (record->flags & RECORD_PAYLOAD_NULL) != 0 ? 4 : record->payload_size;

    return TEXT_SIZE(head_open) + (uint64_t)partition_spelled + TEXT_SIZE(head_close) +
           decimal_digits((uint64_t)record->offset) + TEXT_SIZE(before_id) + record->transaction_id_size +
           TEXT_SIZE(before_time) + TIME_SIZE + TEXT_SIZE(before_payload) + payload + TEXT_SIZE(line_end);
}

uint64_t jsonl_run_size(const struct run *run)
{
    size_t spelled = json_spelled_size(run->partition.bytes, run->partition.size);
    uint64_t size = 0;

    for (size_t i = 0; i < run->extent_count; i++) {
        const struct extent *extent = &run->extents[i];
        for (size_t j = 0; j < extent->count; j++) {
            size += jsonl_record_size(&extent->block->records[extent->first + j], spelled);
        }
    }
    return size;
}
