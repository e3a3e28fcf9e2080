/*
 * Row groups to records (parquet_reader.h). Five columns go through a row group side by side. Of a record that isn't
 * asked for only the columns that decide about it are read; in the others it is passed over, and a page of which nothing
 * is wanted is never fetched. A row group whose bounds rule it out isn't touched at all.
 *
 * Bounds may be cut (spec 2.2): what they rule out isn't there, what they don't may not be there either.
 */
#include "common/lake/parquet_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/lake/parquet_format.h"
#include "common/lake/stored_column.h"

struct parquet_reader {
    struct object_source source;
    struct object_filter filter;
    struct stored_footer footer;
    struct stored_group group;
    struct stored_decoders decoders;
    struct stored_column columns[STORED_COLUMN_COUNT];
    bool in_group;
    uint64_t rows_left; /* of the row group */
    uint64_t row;       /* number of the record that came last */
    struct object_counts counts;
    struct json_scan scan;
    struct name known; /* the name that was proved last, by where it lies: a dictionary gives it again and again */
};

/* ---- what is asked for ---- */

static int compare(const uint8_t *left, size_t left_size, const char *right, size_t right_size)
{
    size_t common = left_size < right_size ? left_size : right_size;
    int order = common > 0 ? memcmp(left, right, common) : 0;

    return order != 0 ? order : (left_size > right_size) - (left_size < right_size);
}

static bool group_is_wanted(const struct parquet_reader *reader)
{
    const struct object_filter *filter = &reader->filter;
    const struct stored_bounds *names = &reader->group.chunks[STORED_PARTITION].bounds;
    const struct stored_bounds *times = &reader->group.chunks[STORED_TS].bounds;

    if (filter->partition != NULL) {
        const struct name *wanted = filter->partition;
        if ((names->has_min && compare(names->min.bytes, names->min.size, wanted->bytes, wanted->size) > 0) ||
            (names->has_max && compare(names->max.bytes, names->max.size, wanted->bytes, wanted->size) < 0)) {
            return false;
        }
    }
    if (filter->has_since && times->has_max && (int64_t)stored_load64(times->max.bytes) < filter->since.v) {
        return false;
    }
    return !filter->has_until || !times->has_min || (int64_t)stored_load64(times->min.bytes) < filter->until.v;
}

static bool partition_is_wanted(const struct parquet_reader *reader, struct name partition)
{
    const struct name *wanted = reader->filter.partition;

    return wanted == NULL || (wanted->size == partition.size &&
                              (wanted->size == 0 || memcmp(wanted->bytes, partition.bytes, wanted->size) == 0));
}

static bool time_is_wanted(const struct parquet_reader *reader, int64_t time)
{
    const struct object_filter *filter = &reader->filter;

    return (!filter->has_since || time >= filter->since.v) && (!filter->has_until || time < filter->until.v);
}

/* ---- one record ---- */

static int refuse(const struct parquet_reader *reader, const char *why, struct error *error)
{
    return error_refuse(error, QS_ERROR_BODY, "record %" PRIu64 ": %s", reader->row, why);
}

/* The size of the character at the start of these bytes, 0 where there is none: UTF-8 (RFC 3629, 4), and surrogates in
 * the three bytes that they would have, which is how a lone one of an id is kept (json_scan.h). */
static size_t character_size(const unsigned char *at, size_t left)
{
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF5 ? 4 : 0;

    if (size > left || (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90) ||
        (at[0] == 0xF4 && at[1] > 0x8F)) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return size;
}

static bool is_text(struct name text)
{
    const unsigned char *at = (const unsigned char *)text.bytes;
    size_t left = text.size;

    while (left > 0) {
        size_t size = character_size(at, left);
        if (size == 0) {
            return false;
        }
        at += size;
        left -= size;
    }
    return true;
}

/* The JSON text is stored verbatim: blanks around it are no part of the value. */
static bool prove_payload(struct parquet_reader *reader, struct name text, struct lake_record *record)
{
    const char *end = text.bytes + text.size;
    struct json_value value = {0};
    const char *start = json_skip_blank(text.bytes, end);
    const char *after = start < end ? json_scan_value(&reader->scan, start, end, &value) : NULL;

    if (after == NULL || json_skip_blank(after, end) != end) {
        return false;
    }
    record->payload = (struct name){value.start, value.size};
    record->payload_null = value.size == 4 && memcmp(value.start, "null", 4) == 0;
    record->line_breaks = value.line_breaks;
    return true;
}

static int check_record(struct parquet_reader *reader, struct name payload, struct lake_record *record,
                        struct error *error)
{
    const struct name *partition = &record->partition;

    if (partition->bytes != reader->known.bytes || partition->size != reader->known.size) {
        if (!is_text(*partition)) {
            return refuse(reader, "a partition's name that isn't UTF-8", error);
        }
        /* Only of a dictionary, whose memory doesn't change within a row group, does the place prove the name. */
        bool is_kept = reader->columns[STORED_PARTITION].values.encoding == STORED_RLE_DICTIONARY;
        reader->known = is_kept ? *partition : (struct name){NULL, 0};
    }
    if (!is_text(record->transaction_id)) {
        return refuse(reader, "a transaction id that isn't UTF-8", error);
    }
    if (record->offset < 0) {
        return refuse(reader, "an offset below zero", error);
    }
    if (payload.bytes == NULL) {
        record->payload = (struct name){"null", 4};
        record->payload_null = true;
        record->line_breaks = false;
    } else if (!prove_payload(reader, payload, record)) {
        return refuse(reader, "a payload that isn't JSON", error);
    }
    return 1;
}

static void skip_from(struct parquet_reader *reader, const enum stored_column_name *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        stored_column_skip(&reader->columns[names[i]]);
    }
}

/* 1: a record that is asked for, 2: another, or an error. */
static int read_record(struct parquet_reader *reader, struct lake_record *record, struct error *error)
{
    static const enum stored_column_name others[] = {STORED_OFFSET, STORED_TRANSACTION_ID, STORED_PAYLOAD, STORED_TS};
    struct stored_column *columns = reader->columns;
    struct name payload = {NULL, 0};
    int code = stored_column_text(&columns[STORED_PARTITION], &record->partition, error);

    if (code == 0 && !partition_is_wanted(reader, record->partition)) {
        skip_from(reader, others, 4);
        return 2;
    }
    if (code == 0) {
        code = stored_column_integer(&columns[STORED_TS], &record->ts.v, error);
    }
    if (code == 0 && !time_is_wanted(reader, record->ts.v)) {
        skip_from(reader, others, 3);
        return 2;
    }
    if (code == 0) {
        code = stored_column_integer(&columns[STORED_OFFSET], &record->offset, error);
    }
    if (code == 0) {
        code = stored_column_text(&columns[STORED_TRANSACTION_ID], &record->transaction_id, error);
    }
    if (code == 0) {
        code = stored_column_text(&columns[STORED_PAYLOAD], &payload, error);
    }
    return code != 0 ? code : check_record(reader, payload, record, error);
}

/* ---- row groups ---- */

static int finish_group(struct parquet_reader *reader, struct error *error)
{
    int code = 0;

    for (size_t i = 0; i < STORED_COLUMN_COUNT && code == 0; i++) {
        code = stored_column_finish(&reader->columns[i], error);
    }
    reader->in_group = false;
    return code;
}

/* 1: in a row group, 0: there is no further one. */
static int next_group(struct parquet_reader *reader, struct error *error)
{
    int code = reader->in_group ? finish_group(reader, error) : 0;

    if (code != 0) {
        return code;
    }
    while (stored_footer_next(&reader->footer, &reader->group)) {
        if (!group_is_wanted(reader)) {
            reader->counts.row_groups_skipped++;
            reader->row += reader->group.rows;
            continue;
        }
        for (size_t i = 0; i < STORED_COLUMN_COUNT; i++) {
            stored_column_begin(&reader->columns[i], &reader->source, &reader->decoders, (enum stored_column_name)i,
                                &reader->group.chunks[i], reader->group.rows);
        }
        reader->counts.row_groups++;
        reader->rows_left = reader->group.rows;
        reader->known = (struct name){NULL, 0};
        reader->in_group = true;
        return 1;
    }
    return 0;
}

int parquet_reader_next(struct parquet_reader *reader, struct lake_record *record, struct error *error)
{
    int result = 2;

    while (result == 2) {
        while (reader->rows_left == 0) {
            result = next_group(reader, error);
            if (result != 1) {
                return result;
            }
        }
        reader->rows_left--;
        reader->row++;
        reader->counts.records++;
        result = read_record(reader, record, error);
    }
    return result;
}

/* ---- the whole ---- */

uint64_t parquet_reader_where(const struct parquet_reader *reader)
{
    return reader->row;
}

void parquet_reader_counts(const struct parquet_reader *reader, struct object_counts *counts)
{
    *counts = reader->counts;
}

struct parquet_reader *parquet_reader_open(const struct object_source *source, const struct object_filter *filter,
                                           struct error *error)
{
    struct parquet_reader *reader;

    if (source->read_at == NULL) {
        (void)error_set(error, QS_ERROR_INPUT, "Parquet needs a source that is read at random");
        return NULL;
    }
    reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        (void)error_set(error, QS_ERROR_NO_MEMORY, "out of memory for reading an object");
        return NULL;
    }
    reader->source = *source;
    if (filter != NULL) {
        reader->filter = *filter;
    }
    if (stored_footer_read(&reader->footer, &reader->source, error) != 0) {
        parquet_reader_close(reader);
        return NULL;
    }
    return reader;
}

void parquet_reader_close(struct parquet_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    for (size_t i = 0; i < STORED_COLUMN_COUNT; i++) {
        stored_column_free(&reader->columns[i]);
    }
    stored_decoders_free(&reader->decoders);
    stored_footer_free(&reader->footer);
    free(reader->scan.bits);
    free(reader);
}
