/* Objects as lines: lake_lines.h. */
#include "lake_lines.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"

/* Check writes a message for each assertion that holds: these are made by the million. */
static void expect(bool right, const char *what)
{
    if (!right) {
        ck_abort_msg("%s", what);
    }
}

static void add_string(struct byte_buffer *lines, struct name text)
{
    size_t size = json_spelled_size(text.bytes, text.size);
    char *spelled = malloc(size + 1);

    expect(spelled != NULL, "out of memory");
    (void)json_spell_string(text.bytes, text.size, spelled);
    byte_buffer_add(lines, spelled, size);
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
    size_t at = lines->size;
    byte_buffer_add(lines, record->payload.bytes, record->payload.size);
    bool has_breaks = false;
    for (; at < lines->size; at++) {
        if (lines->bytes[at] == '\n' || lines->bytes[at] == '\r') {
            lines->bytes[at] = ' ';
            has_breaks = true;
        }
    }
    expect(record->line_breaks == has_breaks, "line breaks that aren't told of");
    expect(record->payload_null == (record->payload.size == 4 && memcmp(record->payload.bytes, "null", 4) == 0),
           "a null that isn't told of");
    byte_buffer_add_text(lines, "}\n");
}

int lake_lines(enum setting_format format, enum setting_compression compression, const void *bytes, size_t size,
               const struct object_filter *filter, struct byte_buffer *lines, struct object_counts *counts,
               struct error *error)
{
    struct memory_object object = {bytes, size, 0};
    struct object_source source = object_source_memory(&object);
    struct object_reader *reader = object_reader_open(format, compression, &source, filter, error);
    struct lake_record record;
    int result;

    if (reader == NULL) {
        return error->code;
    }
    while ((result = object_reader_next(reader, &record, error)) == 1) {
        add_line(lines, &record);
    }
    if (result < 0) {
        struct error again;
        expect(object_reader_next(reader, &record, &again) == result, "an error that doesn't stay");
        expect(strcmp(again.message, error->message) == 0 && (int)error->code == result && !error->retriable,
               "an error that isn't one of the object");
    }
    if (counts != NULL) {
        object_reader_counts(reader, counts);
    }
    object_reader_close(reader);
    return result;
}

char *lake_fixture(const char *name, size_t *size)
{
    char path[256];
    char *bytes = malloc(1 << 16);

    snprintf(path, sizeof path, "tests/unit/data/parquet/%s", name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is not there", path);
    ck_assert_ptr_nonnull(bytes);
    *size = fread(bytes, 1, 1 << 16, file);
    ck_assert(*size > 0 && *size < 1 << 16);
    (void)fclose(file);
    return bytes;
}
