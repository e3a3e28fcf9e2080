/*
 * A line of the lake's envelope as the encoder spells it (spec 2.2), read back into a record: for tests and tools that
 * feed it its own output. By sizes: what strncmp() and strtoll() are given, a sanitizer walks to its NUL, which is at the
 * end of all lines.
 */
#ifndef TESTS_ENVELOPE_LINE_H
#define TESTS_ENVELOPE_LINE_H

#include <stdbool.h>
#include <string.h>

#include "common/block.h"
#include "common/clock.h"
#include "common/json_scan.h"
#include "common/queen_api.h"

static inline bool envelope_begins(const char *cursor, const char *end, const char *text)
{
    size_t size = strlen(text);

    return (size_t)(end - cursor) >= size && memcmp(cursor, text, size) == 0;
}

/* Behind the text and the string that follows it; NULL: they aren't there. */
static inline const char *envelope_string(const char *cursor, const char *end, const char *text, struct name *value)
{
    bool escaped = false;

    if (cursor == NULL || !envelope_begins(cursor, end, text)) {
        return NULL;
    }
    return json_scan_string(cursor + strlen(text), end, &value->bytes, &value->size, &escaped);
}

static inline const char *envelope_number(const char *cursor, const char *end, const char *text, int64_t *value)
{
    if (cursor == NULL || !envelope_begins(cursor, end, text)) {
        return NULL;
    }
    const char *first = cursor += strlen(text);
    for (*value = 0; cursor < end && *cursor >= '0' && *cursor <= '9'; cursor++) {
        *value = 10 * *value + (*cursor - '0');
    }
    return cursor > first ? cursor : NULL;
}

/* Behind the line; NULL: it is none. The partition is as it is spelled between its quotes. All slices lie in the text. */
static inline const char *envelope_line_read(const char *cursor, const char *end, struct name *partition,
                                             struct record *record)
{
    static const char before[] = ",\"payload\":";
    struct name id = {"", 0};
    struct name ts = {"", 0};

    cursor = envelope_string(cursor, end, "{\"partition\":", partition);
    cursor = envelope_number(cursor, end, ",\"offset\":", &record->offset);
    cursor = envelope_string(cursor, end, ",\"transactionId\":", &id);
    cursor = envelope_string(cursor, end, ",\"ts\":", &ts);
    if (cursor == NULL || !clock_parse_broker(ts.bytes, ts.size, &record->ts) ||
        !envelope_begins(cursor, end, before)) {
        return NULL;
    }
    record->transaction_id = id.bytes;
    record->transaction_id_size = (uint32_t)id.size;
    record->payload = cursor + strlen(before);
    const char *stop = memchr(record->payload, '\n', (size_t)(end - record->payload));
    if (stop == NULL) {
        return NULL;
    }
    record->payload_size = (uint32_t)(stop - record->payload - 1);
    record->flags = envelope_begins(record->payload, end, "null}") ? RECORD_PAYLOAD_NULL : 0;
    return stop + 1;
}

#endif
