/*
 * Any bytes as a JSON Lines object: nothing crashes or reads too far, and what is accepted, spelled again, is what was
 * there: there is one spelling (spec 2.2). The first byte chooses the compression.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/json_scan.h"
#include "common/lake/object_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool right)
{
    if (!right) {
        abort();
    }
}

static void add_string(struct byte_buffer *line, struct name text)
{
    size_t size = json_spelled_size(text.bytes, text.size);
    char *spelled = malloc(size + 1);

    expect(spelled != NULL);
    expect(json_spell_string(text.bytes, text.size, spelled) == spelled + size);
    byte_buffer_add(line, spelled, size);
    free(spelled);
}

static void add_line(struct byte_buffer *lines, const struct lake_record *record)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format_broker(record->ts, time);
    byte_buffer_add_text(lines, "{\"partition\":\"");
    add_string(lines, record->partition);
    byte_buffer_add_format(lines, "\",\"offset\":%" PRId64 ",\"transactionId\":\"", record->offset);
    add_string(lines, record->transaction_id);
    byte_buffer_add_format(lines, "\",\"ts\":\"%s\",\"payload\":", time);
    byte_buffer_add(lines, record->payload.bytes, record->payload.size);
    byte_buffer_add_text(lines, "}\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum setting_compression compressions[] = {COMPRESSION_NONE, COMPRESSION_ZSTD, COMPRESSION_GZIP};
    if (size == 0) {
        return 0;
    }
    enum setting_compression compression = compressions[data[0] % 3];
    struct memory_object object = {data + 1, size - 1, 0};
    struct object_source source = object_source_memory(&object);
    struct error error;
    struct object_reader *reader = object_reader_open(FORMAT_JSONL, compression, &source, NULL, &error);
    struct byte_buffer lines = {0};
    struct lake_record record;
    int result;

    expect(reader != NULL);
    while ((result = object_reader_next(reader, &record, &error)) == 1) {
        add_line(&lines, &record);
    }
    expect(result == 0 || (result == QS_ERROR_BODY && !error.retriable));
    if (compression == COMPRESSION_NONE) {
        expect(lines.size <= object.size && (lines.size == 0 || memcmp(lines.bytes, object.bytes, lines.size) == 0));
        expect(result < 0 || lines.size == object.size);
    }
    object_reader_close(reader);
    byte_buffer_free(&lines);
    return 0;
}
