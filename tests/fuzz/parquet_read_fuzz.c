/*
 * Any bytes as a Parquet object: nothing crashes, reads too far or takes memory that the bytes don't warrant; what is
 * read is a record; and a filter finds what a reading of everything finds. The corpus is files of tests/unit/data.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/lake/object_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A few bytes may say truthfully that one record comes a billion times. */
#define RECORDS_MAX 5000

static struct json_scan scan;

static void expect(bool right)
{
    if (!right) {
        abort();
    }
}

static uint64_t sum(struct name text)
{
    uint64_t total = text.size;

    for (size_t i = 0; i < text.size; i++) {
        total = total * 31 + (unsigned char)text.bytes[i];
    }
    return total;
}

static void check_record(const struct lake_record *record)
{
    struct json_value value;
    const char *end = record->payload.bytes + record->payload.size;

    expect(record->offset >= 0);
    expect(json_scan_value(&scan, record->payload.bytes, end, &value) == end);
    expect(value.line_breaks == record->line_breaks);
    (void)sum(record->partition);
    (void)sum(record->transaction_id);
}

/* Counts the records of partition A in *matching; 0: all was read, and the object was whole. */
static int read_all(const uint8_t *data, size_t size, const struct object_filter *filter, size_t *matching)
{
    struct memory_object object = {data, size, 0};
    struct object_source source = object_source_memory(&object);
    struct error error;
    struct object_reader *reader = object_reader_open(FORMAT_PARQUET, COMPRESSION_ZSTD, &source, filter, &error);
    struct lake_record record;
    struct object_counts counts;
    int result = 1;

    if (reader == NULL) {
        expect(error.code == QS_ERROR_BODY && !error.retriable);
        return QS_ERROR_BODY;
    }
    do {
        result = object_reader_next(reader, &record, &error);
        if (result == 1) {
            check_record(&record);
            if (record.partition.size == 1 && record.partition.bytes[0] == 'A') {
                (*matching)++;
            }
        }
        object_reader_counts(reader, &counts);
    } while (result == 1 && counts.records < RECORDS_MAX);
    expect(result >= 0 || (result == QS_ERROR_BODY && !error.retriable));
    object_reader_close(reader);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct name name = {"A", 1};
    const struct object_filter filter = {.partition = &name};
    size_t all = 0;
    size_t some = 0;

    if (read_all(data, size, NULL, &all) == 0) {
        /* Bounds that lie hide records, but never make any. */
        expect(read_all(data, size, &filter, &some) == 0 && some <= all);
    }
    return 0;
}
