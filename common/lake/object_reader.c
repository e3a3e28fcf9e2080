/* One reader for both formats: object_reader.h. */
#include "common/lake/object_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/jsonl_read.h"
#include "common/lake/parquet_reader.h"

struct object_reader {
    struct jsonl_reader *jsonl; /* one of the two */
    struct parquet_reader *parquet;
    struct object_filter filter;
    uint64_t lines; /* read */
    int result;     /* what the last call gave: after 0 or an error it stays */
    struct error error;
    char where[64];
};

static bool is_wanted(const struct object_filter *filter, const struct lake_record *record)
{
    const struct name *wanted = filter->partition;

    if (wanted != NULL && (wanted->size != record->partition.size ||
                           (wanted->size > 0 && memcmp(wanted->bytes, record->partition.bytes, wanted->size) != 0))) {
        return false;
    }
    return (!filter->has_since || record->ts.v >= filter->since.v) &&
           (!filter->has_until || record->ts.v < filter->until.v);
}

/* The error is kept: a call after it gives the same answer. */
static int next_record(struct object_reader *reader, struct lake_record *record)
{
    if (reader->parquet != NULL) {
        return parquet_reader_next(reader->parquet, record, &reader->error);
    }
    int result;
    do {
        result = jsonl_reader_next(reader->jsonl, record, &reader->error);
        reader->lines += result == 1 ? 1 : 0;
    } while (result == 1 && !is_wanted(&reader->filter, record));
    return result;
}

int object_reader_next(struct object_reader *reader, struct lake_record *record, struct error *error)
{
    if (reader->result == 1) {
        reader->result = next_record(reader, record);
    }
    if (reader->result < 0 && error != NULL) {
        *error = reader->error;
    }
    return reader->result;
}

const char *object_reader_where(struct object_reader *reader)
{
    if (reader->parquet != NULL) {
        snprintf(reader->where, sizeof reader->where, "record %" PRIu64, parquet_reader_where(reader->parquet));
    } else {
        uint64_t line;
        uint64_t byte;
        jsonl_reader_where(reader->jsonl, &line, &byte);
        snprintf(reader->where, sizeof reader->where, "line %" PRIu64 ", byte %" PRIu64, line, byte);
    }
    return reader->where;
}

void object_reader_counts(const struct object_reader *reader, struct object_counts *counts)
{
    if (reader->parquet != NULL) {
        parquet_reader_counts(reader->parquet, counts);
    } else {
        *counts = (struct object_counts){.records = reader->lines};
    }
}

struct object_reader *object_reader_open(enum setting_format format, enum setting_compression compression,
                                         const struct object_source *source, const struct object_filter *filter,
                                         struct error *error)
{
    struct object_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL) {
        (void)error_set(error, QS_ERROR_NO_MEMORY, "out of memory for reading an object");
        return NULL;
    }
    reader->result = 1;
    if (filter != NULL) {
        reader->filter = *filter;
    }
    if (format == FORMAT_PARQUET) {
        reader->parquet = parquet_reader_open(source, filter, error);
    } else {
        reader->jsonl = jsonl_reader_open(compression, source, error);
    }
    if (reader->parquet == NULL && reader->jsonl == NULL) {
        free(reader);
        return NULL;
    }
    return reader;
}

void object_reader_close(struct object_reader *reader)
{
    if (reader != NULL) {
        parquet_reader_close(reader->parquet);
        jsonl_reader_close(reader->jsonl);
        free(reader);
    }
}
