/*
 * See parquet_metadata.h. The numbers of fields are parquet.thrift's; a comment names each field where its function
 * doesn't.
 */
#include "worker/parquet_metadata.h"

#include <string.h>

enum { TYPE_INT64 = 2, TYPE_BYTE_ARRAY = 6 };
enum { REQUIRED = 0, OPTIONAL = 1 };
enum { CONVERTED_UTF8 = 0, CONVERTED_TIMESTAMP_MICROS = 10 };
enum { LOGICAL_STRING = 1, LOGICAL_TIMESTAMP = 8, UNIT_MICROS = 2 };
enum { CODEC_SNAPPY = 1, CODEC_ZSTD = 6 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };

static const struct {
    const char *name;
    int32_t type;
    enum parquet_encoding encoding;
} columns[COLUMN_COUNT] = {{"partition", TYPE_BYTE_ARRAY, ENCODING_RLE_DICTIONARY},
                           {"offset", TYPE_INT64, ENCODING_DELTA_BINARY_PACKED},
                           {"transaction_id", TYPE_BYTE_ARRAY, ENCODING_PLAIN},
                           {"ts", TYPE_INT64, ENCODING_DELTA_BINARY_PACKED},
                           {"payload", TYPE_BYTE_ARRAY, ENCODING_PLAIN}};

/* ---- pages: struct PageHeader ---- */

static void page_begin(struct thrift *thrift, int32_t type, const struct parquet_page *page)
{
    thrift_begin(thrift);
    thrift_i32(thrift, 1, type);
    thrift_i32(thrift, 2, page->uncompressed_size);
    thrift_i32(thrift, 3, page->compressed_size);
}

void parquet_data_page_header(struct thrift *thrift, const struct parquet_page *page)
{
    page_begin(thrift, PAGE_DATA, page);
    thrift_open(thrift, 5); /* data_page_header */
    thrift_i32(thrift, 1, page->values);
    thrift_i32(thrift, 2, (int32_t)page->encoding);
    thrift_i32(thrift, 3, ENCODING_RLE); /* definition levels: there are some in payload only, */
    thrift_i32(thrift, 4, ENCODING_RLE); /* and repetition levels in no column */
    thrift_end(thrift);
    thrift_end(thrift);
}

void parquet_dictionary_page_header(struct thrift *thrift, const struct parquet_page *page)
{
    page_begin(thrift, PAGE_DICTIONARY, page);
    thrift_open(thrift, 7); /* dictionary_page_header */
    thrift_i32(thrift, 1, page->values);
    thrift_i32(thrift, 2, (int32_t)page->encoding);
    thrift_end(thrift);
    thrift_end(thrift);
}

/* ---- row groups ---- */

static void put_encodings(struct thrift *thrift, enum parquet_column column, const struct parquet_chunk_facts *facts)
{
    bool plain = facts->dictionary || facts->plain > 0;
    bool other = facts->encoded > 0;

    thrift_list(thrift, 2, THRIFT_I32, 1u + plain + other);
    if (plain) {
        thrift_i32_element(thrift, ENCODING_PLAIN);
    }
    thrift_i32_element(thrift, ENCODING_RLE);
    if (other) {
        thrift_i32_element(thrift, (int32_t)columns[column].encoding);
    }
}

static void put_encoding_count(struct thrift *thrift, int32_t page_type, enum parquet_encoding encoding, uint32_t count)
{
    if (count > 0) {
        thrift_open_element(thrift);
        thrift_i32(thrift, 1, page_type);
        thrift_i32(thrift, 2, (int32_t)encoding);
        thrift_i32(thrift, 3, (int32_t)count);
        thrift_end(thrift);
    }
}

/* encoding_stats: a reader learns from them that all of a column is in its dictionary. */
static void put_encoding_stats(struct thrift *thrift, enum parquet_column column,
                               const struct parquet_chunk_facts *facts)
{
    thrift_list(thrift, 13, THRIFT_STRUCT, (size_t)facts->dictionary + (facts->encoded > 0) + (facts->plain > 0));
    put_encoding_count(thrift, PAGE_DICTIONARY, ENCODING_PLAIN, facts->dictionary);
    put_encoding_count(thrift, PAGE_DATA, columns[column].encoding, facts->encoded);
    put_encoding_count(thrift, PAGE_DATA, ENCODING_PLAIN, facts->plain);
}

static void put_text_bounds(struct thrift *thrift, const struct bounds *texts)
{
    struct bound least;
    struct bound greatest;
    bool greatest_exact = false;
    bool least_exact = bound_cut_least(&texts->least, &least);
    bool greatest_there = bound_cut_greatest(&texts->greatest, &greatest, &greatest_exact);

    if (greatest_there) {
        thrift_binary(thrift, 5, greatest.bytes, greatest.size);
    }
    thrift_binary(thrift, 6, least.bytes, least.size);
    if (greatest_there) {
        thrift_bool(thrift, 7, greatest_exact);
    }
    thrift_bool(thrift, 8, least_exact);
}

static void put_number(struct thrift *thrift, int16_t id, int64_t value)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * i);
    }
    thrift_binary(thrift, id, bytes, sizeof bytes);
}

/* max_value, min_value, is_max_value_exact, is_min_value_exact: the fields 1 and 2 (max, min) have no defined order and
 * are left to history. */
static void put_statistics(struct thrift *thrift, const struct parquet_chunk_facts *facts)
{
    thrift_open(thrift, 12);
    thrift_i64(thrift, 3, (int64_t)facts->nulls);
    if (facts->numbers) {
        put_number(thrift, 5, facts->greatest);
        put_number(thrift, 6, facts->least);
        thrift_bool(thrift, 7, true);
        thrift_bool(thrift, 8, true);
    } else if (facts->texts.any) {
        put_text_bounds(thrift, &facts->texts);
    }
    thrift_end(thrift);
}

static void put_chunk(struct thrift *thrift, enum parquet_column column, enum setting_compression codec,
                      const struct parquet_chunk_facts *facts)
{
    thrift_open_element(thrift);
    thrift_i64(thrift, 2, 0); /* file_offset: to be 0 where the metadata is here and nowhere else */
    thrift_open(thrift, 3);   /* meta_data */
    thrift_i32(thrift, 1, columns[column].type);
    put_encodings(thrift, column, facts);
    thrift_list(thrift, 3, THRIFT_BINARY, 1);
    thrift_text_element(thrift, columns[column].name);
    thrift_i32(thrift, 4, codec == COMPRESSION_SNAPPY ? CODEC_SNAPPY : CODEC_ZSTD);
    thrift_i64(thrift, 5, (int64_t)facts->values);
    thrift_i64(thrift, 6, (int64_t)facts->uncompressed_size);
    thrift_i64(thrift, 7, (int64_t)facts->compressed_size);
    thrift_i64(thrift, 9, (int64_t)facts->data);
    if (facts->dictionary) {
        thrift_i64(thrift, 11, (int64_t)facts->start);
    }
    put_statistics(thrift, facts);
    put_encoding_stats(thrift, column, facts);
    thrift_end(thrift);
    thrift_end(thrift);
}

void parquet_footer_add(struct parquet_footer *footer, enum setting_compression codec, uint64_t rows,
                        const struct parquet_chunk_facts facts[COLUMN_COUNT])
{
    struct thrift *thrift = &footer->groups;
    uint64_t uncompressed = 0;
    uint64_t compressed = 0;

    thrift_open_element(thrift);
    thrift_list(thrift, 1, THRIFT_STRUCT, COLUMN_COUNT);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        put_chunk(thrift, (enum parquet_column)i, codec, &facts[i]);
        uncompressed += facts[i].uncompressed_size;
        compressed += facts[i].compressed_size;
    }
    thrift_i64(thrift, 2, (int64_t)uncompressed); /* total_byte_size */
    thrift_i64(thrift, 3, (int64_t)rows);
    thrift_i64(thrift, 5, (int64_t)facts[0].start);
    thrift_i64(thrift, 6, (int64_t)compressed);
    thrift_end(thrift);
    footer->group_count++;
    footer->rows += rows;
}

/* ---- the file: struct FileMetaData ---- */

static void put_logical_type(struct thrift *thrift, enum parquet_column column)
{
    thrift_open(thrift, 10);
    if (column == COLUMN_TS) {
        thrift_open(thrift, LOGICAL_TIMESTAMP);
        thrift_bool(thrift, 1, true); /* isAdjustedToUTC */
        thrift_open(thrift, 2);
        thrift_nothing(thrift, UNIT_MICROS);
        thrift_end(thrift);
        thrift_end(thrift);
    } else {
        thrift_nothing(thrift, LOGICAL_STRING);
    }
    thrift_end(thrift);
}

static void put_schema(struct thrift *thrift)
{
    thrift_list(thrift, 2, THRIFT_STRUCT, 1 + COLUMN_COUNT);
    thrift_open_element(thrift);
    thrift_text(thrift, 4, "queen_record");
    thrift_i32(thrift, 5, COLUMN_COUNT);
    thrift_end(thrift);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        thrift_open_element(thrift);
        thrift_i32(thrift, 1, columns[i].type);
        thrift_i32(thrift, 3, i == COLUMN_PAYLOAD ? OPTIONAL : REQUIRED);
        thrift_text(thrift, 4, columns[i].name);
        if (i != COLUMN_OFFSET) {
            thrift_i32(thrift, 6, i == COLUMN_TS ? CONVERTED_TIMESTAMP_MICROS : CONVERTED_UTF8);
            put_logical_type(thrift, (enum parquet_column)i);
        }
        thrift_end(thrift);
    }
}

static void put_key_values(struct thrift *thrift, struct name queue)
{
    thrift_list(thrift, 5, THRIFT_STRUCT, 2);
    thrift_open_element(thrift);
    thrift_text(thrift, 1, "queen.envelope");
    thrift_text(thrift, 2, "1");
    thrift_end(thrift);
    thrift_open_element(thrift);
    thrift_text(thrift, 1, "queen.queue");
    thrift_binary(thrift, 2, queue.bytes, queue.size);
    thrift_end(thrift);
}

void parquet_footer_finish(const struct parquet_footer *footer, struct name queue, struct thrift *out)
{
    uint8_t size[4];

    thrift_begin(out);
    thrift_i32(out, 1, 1); /* version: readers go by encodings and page types, and all of these are as old as it */
    put_schema(out);
    thrift_i64(out, 3, (int64_t)footer->rows);
    thrift_list(out, 4, THRIFT_STRUCT, footer->group_count);
    if (footer->group_count > 0) {
        byte_buffer_add(&out->bytes, footer->groups.bytes.bytes, footer->groups.bytes.size);
    }
    put_key_values(out, queue);
    thrift_text(out, 6, "queen-s3");
    thrift_list(out, 7, THRIFT_STRUCT, COLUMN_COUNT); /* column_orders: each column's type says how it compares */
    for (int i = 0; i < COLUMN_COUNT; i++) {
        thrift_open_element(out);
        thrift_nothing(out, 1);
        thrift_end(out);
    }
    thrift_end(out);
    for (unsigned i = 0; i < sizeof size; i++) {
        size[i] = (uint8_t)(out->bytes.size >> 8 * i);
    }
    byte_buffer_add(&out->bytes, size, sizeof size);
    byte_buffer_add(&out->bytes, "PAR1", 4);
}

void parquet_footer_free(struct parquet_footer *footer)
{
    byte_buffer_free(&footer->groups.bytes);
}
