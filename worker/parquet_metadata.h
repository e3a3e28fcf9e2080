/*
 * What stands in a Parquet file beside the values: page headers and the footer, for the one schema of spec 2.2. Names and
 * numbers are those of parquet-format's parquet.thrift.
 */
#ifndef WORKER_PARQUET_METADATA_H
#define WORKER_PARQUET_METADATA_H

#include "common/queen_api.h"
#include "common/settings.h"
#include "worker/parquet_bound.h"
#include "worker/parquet_thrift.h"

enum parquet_column { COLUMN_PARTITION, COLUMN_OFFSET, COLUMN_TRANSACTION_ID, COLUMN_TS, COLUMN_PAYLOAD, COLUMN_COUNT };

enum parquet_encoding {
    ENCODING_PLAIN = 0,
    ENCODING_RLE = 3,
    ENCODING_DELTA_BINARY_PACKED = 5,
    ENCODING_RLE_DICTIONARY = 8
};

struct parquet_page {
    int32_t values; /* nulls too */
    enum parquet_encoding encoding;
    int32_t uncompressed_size;
    int32_t compressed_size;
};

/* One column of one row group, as the footer tells it. */
struct parquet_chunk_facts {
    uint64_t values; /* nulls too */
    uint64_t nulls;
    uint64_t uncompressed_size; /* of all pages with their headers */
    uint64_t compressed_size;
    uint64_t start;   /* in the file: of the first page */
    uint64_t data;    /* of the first data page */
    bool dictionary;  /* start is that of a dictionary page */
    uint32_t plain;   /* data pages with ENCODING_PLAIN */
    uint32_t encoded; /* with the column's other one */
    bool numbers;     /* least and greatest are there */
    int64_t least;    /* offset, ts */
    int64_t greatest;
    struct bounds texts; /* partition */
};

void parquet_data_page_header(struct thrift *thrift, const struct parquet_page *page);
void parquet_dictionary_page_header(struct thrift *thrift, const struct parquet_page *page);

/* The footer grows by a row group at a time: parquet_footer_add() for each, then parquet_footer_finish() once. */
struct parquet_footer {
    struct thrift groups; /* row groups, as they will stand in the footer's list */
    size_t group_count;
    uint64_t rows;
};

/* Zero it before its first use. */
void parquet_footer_add(struct parquet_footer *footer, enum setting_compression codec, uint64_t rows,
                        const struct parquet_chunk_facts facts[COLUMN_COUNT]);
/* All that follows the last row group: the file metadata, its size and the magic. */
void parquet_footer_finish(const struct parquet_footer *footer, struct name queue, struct thrift *out);
void parquet_footer_free(struct parquet_footer *footer);

#endif
