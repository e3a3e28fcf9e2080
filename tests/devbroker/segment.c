/*
 * Rendering of segments; see segment.h and store.h for the contract.
 */
#include "segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define OFFSET_KEY  ",{\"offset\":"
#define ID_KEY      ",\"transactionId\":"
#define PAYLOAD_KEY ",\"payload\":"
#define TS_KEY      ",\"ts\":\""
#define RECORD_END  "\"}"
#define TAIL_SIZE   (sizeof TS_KEY - 1 + CLOCK_TEXT_SIZE + sizeof RECORD_END - 1)

static size_t record_size(int64_t offset, const struct record *record)
{
    return sizeof OFFSET_KEY - 1 + number_size(offset) + sizeof ID_KEY - 1 + quoted_size(record->transaction_id) +
           sizeof PAYLOAD_KEY - 1 + record->payload.size + TAIL_SIZE;
}

static char *write_bytes(char *to, const char *bytes, size_t size)
{
    memcpy(to, bytes, size);
    return to + size;
}

static char *write_record(char *to, int64_t offset, const char *ts, const struct record *record)
{
    to = write_bytes(to, OFFSET_KEY, sizeof OFFSET_KEY - 1);
    to = number_write(to, offset);
    to = write_bytes(to, ID_KEY, sizeof ID_KEY - 1);
    to = quoted_write(to, record->transaction_id);
    to = write_bytes(to, PAYLOAD_KEY, sizeof PAYLOAD_KEY - 1);
    to = write_bytes(to, record->payload.at, record->payload.size);
    to = write_bytes(to, TS_KEY, sizeof TS_KEY - 1);
    to = write_bytes(to, ts, CLOCK_TEXT_SIZE);
    return write_bytes(to, RECORD_END, sizeof RECORD_END - 1);
}

struct segment *segment_render(int64_t offset, int64_t ts_us, const struct record *records, size_t count)
{
    size_t size = 0;
    size_t head = sizeof(struct segment) + (count + 1) * sizeof(uint32_t);
    struct segment *segment;
    char ts[CLOCK_TEXT_SIZE];
    char *to;

    for (size_t i = 0; i < count; i++) {
        size += record_size(offset + (int64_t)i, &records[i]);
    }
    if (size > SEGMENT_TEXT_LIMIT || count >= UINT32_MAX) {
        fputs("devbroker: a segment is larger than 4 GiB; use smaller ones (--segment-records)\n", stderr);
        exit(1);
    }
    segment = memory_resize(NULL, head + size, 1);
    segment->base_offset = offset;
    segment->ts_us = ts_us;
    segment->count = (uint32_t)count;
    segment->text = (char *)segment + head;
    atomic_init(&segment->references, 1);
    clock_write(ts, ts_us);
    to = segment->text;
    for (size_t i = 0; i < count; i++) {
        segment->starts[i] = (uint32_t)(to - segment->text);
        to = write_record(to, offset + (int64_t)i, ts, &records[i]);
    }
    segment->starts[count] = (uint32_t)(to - segment->text);
    return segment;
}

void segment_keep(struct segment *segment)
{
    atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
}

void segment_release(struct segment *segment)
{
    if (atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel) == 1) {
        free(segment);
    }
}

struct slice segment_record(const struct segment *segment, uint32_t index)
{
    uint32_t start = segment->starts[index] + 1;

    return (struct slice){segment->text + start, segment->starts[index + 1] - start};
}

void segment_pieces(const struct segment *segment, uint32_t index, struct slice *transaction_id, struct slice *payload)
{
    struct slice record = segment_record(segment, index);
    int64_t offset = segment->base_offset + (int64_t)index;
    const char *end = record.at + record.size - TAIL_SIZE;
    const char *at = record.at + sizeof OFFSET_KEY - 2 + number_size(offset) + sizeof ID_KEY - 1;

    transaction_id->at = at++;
    while (*at != '"') {
        at += *at == '\\' ? 2 : 1;
    }
    transaction_id->size = (size_t)(at + 1 - transaction_id->at);
    at += sizeof PAYLOAD_KEY;
    *payload = (struct slice){at, (size_t)(end - at)};
}
