/*
 * Any bytes as the messages of a batch: nothing crashes or reads too far, and each record that is read makes one line of
 * JSON. The first byte chooses the schema, the rest is the buffer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/connector/format.h"
#include "worker/connector/postcard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool right)
{
    if (!right) {
        abort();
    }
}

static void format(struct sink_formatter *formatter, struct json_scan *scan, const struct sink_record *record)
{
    struct sink_body body = {0};
    struct error error;
    struct json_value value;
    unsigned oddities;
    char *bytes;
    size_t written;
    int code = sink_format_record(formatter, record, &body, 0, &bytes, &written, &oddities, &error);

    if (record->timestamp_ms > SINK_TIMESTAMP_MAX) {
        expect(code == QS_ERROR_INPUT);
    } else {
        expect(code == 0);
        expect(json_scan_value(scan, bytes, bytes + written, &value) == bytes + written);
        expect(memchr(bytes, '\n', written) == NULL && memchr(bytes, '\r', written) == NULL);
    }
    (void)sink_record_hash(record);
    sink_body_clear(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sink_shape shape = {
        .format = SINK_JSON_LINES, .compression = COMPRESSION_NONE, .include_metadata = true, .include_headers = true};
    struct sink_formatter formatter = {0};
    struct json_scan scan = {0};
    struct postcard cursor;
    struct error error;
    uint64_t count;

    if (size == 0) {
        return 0;
    }
    enum sink_schema schema = (enum sink_schema)(data[0] % SINK_SCHEMA_COUNT);
    struct sink_slice topic;
    struct postcard_batch batch;
    if (!postcard_topic(data + 1, size - 1, &topic)) {
        topic = (struct sink_slice){"t", 1};
    }
    (void)postcard_batch(data + 1, size - 1, &batch);
    if (postcard_messages(data + 1, size - 1, &cursor, &count)) {
        expect(sink_formatter_begin(&formatter, &shape, topic, 0, schema, &error) == 0);
        for (uint64_t i = 0; i < count; i++) {
            struct sink_record record;
            expect(postcard_message(&cursor, &record));
            format(&formatter, &scan, &record);
        }
        expect(cursor.at <= data + size);
    }
    sink_formatter_free(&formatter);
    free(scan.bits);
    return 0;
}
