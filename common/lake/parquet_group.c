/*
 * Row groups and page headers (parquet_format.h; RowGroup, ColumnChunk, Statistics, PageHeader of parquet.thrift).
 * Whatever says where something lies or how much there is of it is checked here, once.
 */
#include <string.h>

#include "common/lake/parquet_format.h"

#define MAGIC_SIZE 4

enum { TYPE_INT64 = 2, TYPE_BYTE_ARRAY = 6 };

static bool is_integer(size_t column)
{
    return column == STORED_OFFSET || column == STORED_TS;
}

/* Statistics: min_value and max_value count where the column's order is declared; min and max, older, were always
 * compared as signed, which is right for integers alone (parquet.thrift, Statistics). */
static void read_statistics(struct compact *compact, size_t column, bool ordered, struct stored_bounds *bounds)
{
    struct compact_field field = {0};
    struct stored_bounds old = {0};

    while (compact_next_field(compact, &field)) {
        switch (field.id) {
        case 1:
            old.max = compact_binary(compact, &field);
            old.has_max = is_integer(column);
            break;
        case 2:
            old.min = compact_binary(compact, &field);
            old.has_min = is_integer(column);
            break;
        case 5:
            bounds->max = compact_binary(compact, &field);
            bounds->has_max = ordered;
            break;
        case 6:
            bounds->min = compact_binary(compact, &field);
            bounds->has_min = ordered;
            break;
        default: compact_skip(compact, &field);
        }
    }
    if (!bounds->has_min && !bounds->has_max) {
        *bounds = old;
    }
    /* Eight bytes, or it bounds nothing. */
    bounds->has_min = bounds->has_min && (!is_integer(column) || bounds->min.size == 8);
    bounds->has_max = bounds->has_max && (!is_integer(column) || bounds->max.size == 8);
}

struct chunk_data {
    int32_t type;
    int32_t codec;
    int64_t values;
    int64_t size;
    int64_t data_page;
    int64_t dictionary_page; /* 0: none; some writers say so */
    bool path_fits;
};

static void read_path(struct compact *compact, const struct compact_field *field, size_t column,
                      struct chunk_data *data)
{
    const char *name = stored_column_title((enum stored_column_name)column);
    uint32_t count = compact_list(compact, field, COMPACT_BINARY);

    for (uint32_t i = 0; i < count && compact->why == NULL; i++) {
        struct compact_binary part = compact_binary_element(compact);
        data->path_fits = count == 1 && part.size == strlen(name) && memcmp(part.bytes, name, part.size) == 0;
    }
}

static void read_chunk_data(struct compact *compact, size_t column, bool ordered, struct chunk_data *data,
                            struct stored_bounds *bounds)
{
    struct compact_field field = {0};

    *data = (struct chunk_data){-1, -1, -1, -1, -1, 0, false};
    while (compact_next_field(compact, &field)) {
        switch (field.id) {
        case 1: data->type = compact_i32(compact, &field); break;
        case 3: read_path(compact, &field, column, data); break;
        case 4: data->codec = compact_i32(compact, &field); break;
        case 5: data->values = compact_i64(compact, &field); break;
        case 7: data->size = compact_i64(compact, &field); break;
        case 9: data->data_page = compact_i64(compact, &field); break;
        case 11: data->dictionary_page = compact_i64(compact, &field); break;
        case 12:
            if (compact_struct(compact, &field)) {
                read_statistics(compact, column, ordered, bounds);
            }
            break;
        default: compact_skip(compact, &field);
        }
    }
}

static const char *check_chunk(const struct chunk_data *data, size_t column, uint64_t end, struct stored_chunk *chunk)
{
    int64_t start = data->data_page;

    if (data->type != (is_integer(column) ? TYPE_INT64 : TYPE_BYTE_ARRAY) || !data->path_fits) {
        return "a column chunk of another column than the schema's";
    }
    if (data->codec != STORED_UNCOMPRESSED && data->codec != STORED_SNAPPY && data->codec != STORED_GZIP &&
        data->codec != STORED_ZSTD) {
        return "a codec other than zstd, snappy, gzip and none";
    }
    if (data->dictionary_page > 0 && data->dictionary_page < start) {
        start = data->dictionary_page;
    }
    if (start < MAGIC_SIZE || (uint64_t)start > end || data->size < 0 || (uint64_t)data->size > end - (uint64_t)start) {
        return "a column chunk that lies outside of the file";
    }
    chunk->start = (uint64_t)start;
    chunk->size = (uint64_t)data->size;
    chunk->codec = (enum stored_codec)data->codec;
    return NULL;
}

/* Returns the number of its values. */
static int64_t read_chunk(struct compact *compact, size_t column, uint64_t end, bool ordered,
                          struct stored_chunk *chunk)
{
    struct compact_field field = {0};
    struct chunk_data data = {.values = -1};
    bool has_data = false;

    memset(chunk, 0, sizeof *chunk);
    while (compact_next_field(compact, &field)) {
        if (field.id == 1) {
            compact_fail(compact, "a column chunk in another file");
        } else if (field.id == 3 && compact_struct(compact, &field)) {
            read_chunk_data(compact, column, ordered, &data, &chunk->bounds);
            has_data = true;
        } else {
            compact_skip(compact, &field);
        }
    }
    if (compact->why == NULL) {
        const char *why = has_data ? check_chunk(&data, column, end, chunk) : "a column chunk that says nothing";
        if (why != NULL) {
            compact_fail(compact, why);
        }
    }
    return data.values;
}

void stored_group_read(struct compact *compact, uint64_t end, const bool ordered[STORED_COLUMN_COUNT],
                       struct stored_group *group)
{
    struct compact_field field = {0};
    int64_t values[STORED_COLUMN_COUNT] = {0};
    int64_t rows = -1;
    bool has_columns = false;

    while (compact_next_field(compact, &field)) {
        if (field.id == 1) {
            has_columns = compact_list(compact, &field, COMPACT_STRUCT) == STORED_COLUMN_COUNT;
            for (size_t i = 0; i < STORED_COLUMN_COUNT && has_columns; i++) {
                values[i] = read_chunk(compact, i, end, ordered[i], &group->chunks[i]);
            }
            if (!has_columns) {
                compact_fail(compact, "a row group without the schema's columns");
            }
        } else if (field.id == 3) {
            rows = compact_i64(compact, &field);
        } else {
            compact_skip(compact, &field);
        }
    }
    if (compact->why == NULL && (!has_columns || rows < 0)) {
        compact_fail(compact, "a row group without columns or a number of records");
    }
    for (size_t i = 0; i < STORED_COLUMN_COUNT && compact->why == NULL; i++) {
        if (values[i] != rows) {
            compact_fail(compact, "a column chunk with another number of values than its row group has records");
        }
    }
    group->rows = (uint64_t)rows;
}

/* ---- page headers ---- */

/* Sizes and counts are i32 and mean no less than nothing. */
static uint32_t take_count(struct compact *compact, const struct compact_field *field)
{
    int32_t value = compact_i32(compact, field);

    if (value < 0) {
        compact_fail(compact, "a size or a count below zero");
        return 0;
    }
    return (uint32_t)value;
}

/* DataPageHeader and DictionaryPageHeader share their first two fields. */
static void read_data_header(struct compact *compact, struct stored_page_header *header)
{
    struct compact_field field = {0};

    while (compact_next_field(compact, &field)) {
        switch (field.id) {
        case 1: header->values = take_count(compact, &field); break;
        case 2: header->encoding = compact_i32(compact, &field); break;
        case 3:
            if (field.type == COMPACT_I32) {
                header->levels_encoding = compact_i32(compact, &field);
            } /* else is_sorted of a dictionary, whose truth is in the field's head */
            break;
        default: compact_skip(compact, &field);
        }
    }
}

static void read_data_header_v2(struct compact *compact, struct stored_page_header *header)
{
    struct compact_field field = {0};
    uint32_t repetition_size = 0;
    uint32_t rows = 0;

    while (compact_next_field(compact, &field)) {
        switch (field.id) {
        case 1: header->values = take_count(compact, &field); break;
        case 2: header->nulls = take_count(compact, &field); break;
        case 3: rows = take_count(compact, &field); break;
        case 4: header->encoding = compact_i32(compact, &field); break;
        case 5: header->levels_size = take_count(compact, &field); break;
        case 6: repetition_size = take_count(compact, &field); break;
        case 7: header->compressed = compact_bool(compact, &field); break;
        default: compact_skip(compact, &field);
        }
    }
    /* Nothing repeats in this schema: a value is a row, and has no repetition level. */
    if (compact->why == NULL && (repetition_size != 0 || rows != header->values)) {
        compact_fail(compact, "a page of values that repeat");
    }
}

const char *stored_page_header_read(const uint8_t *bytes, size_t size, struct stored_page_header *header,
                                    size_t *header_size, bool *cut)
{
    struct compact compact = compact_begin(bytes, size);
    struct compact_field field = {0};
    int32_t kind = -1; /* whose header it is: a page type */
    unsigned sizes = 0;

    *header = (struct stored_page_header){.type = -1, .encoding = -1, .compressed = true};
    header->levels_encoding = STORED_RLE;
    while (compact_next_field(&compact, &field)) {
        switch (field.id) {
        case 1: header->type = compact_i32(&compact, &field); break;
        case 2:
            header->plain_size = take_count(&compact, &field);
            sizes |= 1;
            break;
        case 3:
            header->size = take_count(&compact, &field);
            sizes |= 2;
            break;
        case 4:
            header->crc = (uint32_t)compact_i32(&compact, &field);
            header->has_crc = true;
            break;
        case 5:
        case 7:
            if (compact_struct(&compact, &field)) {
                kind = field.id == 5 ? STORED_PAGE_DATA : STORED_PAGE_DICTIONARY;
                read_data_header(&compact, header);
            }
            break;
        case 8:
            if (compact_struct(&compact, &field)) {
                kind = STORED_PAGE_DATA_V2;
                read_data_header_v2(&compact, header);
            }
            break;
        default: compact_skip(&compact, &field);
        }
    }
    bool is_known = header->type == STORED_PAGE_DATA || header->type == STORED_PAGE_DICTIONARY ||
                    header->type == STORED_PAGE_DATA_V2;
    if (compact.why == NULL && (header->type < 0 || sizes != 3 || (is_known && kind != header->type))) {
        compact_fail(&compact, "a page header without what a page of its kind needs");
    }
    *header_size = size - (size_t)(compact.end - compact.at);
    *cut = compact.cut;
    return compact.why;
}
