/*
 * What a Parquet file says about itself (parquet.thrift and README.md of the Parquet format): the footer, held against
 * the lake's schema (spec 2.2), and the headers of pages. For parquet_*.c alone.
 */
#ifndef COMMON_LAKE_PARQUET_FORMAT_H
#define COMMON_LAKE_PARQUET_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lake/compact_read.h"
#include "common/lake/object_source.h"

/* The columns of the lake's schema, in its order. */
enum stored_column_name {
    STORED_PARTITION,
    STORED_OFFSET,
    STORED_TRANSACTION_ID,
    STORED_TS,
    STORED_PAYLOAD,
    STORED_COLUMN_COUNT
};

/* CompressionCodec of parquet.thrift; the others are refused. */
enum stored_codec { STORED_UNCOMPRESSED = 0, STORED_SNAPPY = 1, STORED_GZIP = 2, STORED_ZSTD = 6 };

/* Encoding of parquet.thrift. */
enum stored_encoding {
    STORED_PLAIN = 0,
    STORED_PLAIN_DICTIONARY = 2,
    STORED_RLE = 3,
    STORED_DELTA_BINARY_PACKED = 5,
    STORED_DELTA_LENGTH_BYTE_ARRAY = 6,
    STORED_DELTA_BYTE_ARRAY = 7,
    STORED_RLE_DICTIONARY = 8
};

/* Bounds of a chunk's values, NULL where they aren't known; in the footer's memory. Bounds may be cut (a minimum down,
 * a maximum up), so they rule out what lies outside and prove nothing of what lies inside. */
struct stored_bounds {
    struct compact_binary min;
    struct compact_binary max;
    bool has_min;
    bool has_max;
};

struct stored_chunk {
    uint64_t start; /* its first byte in the object, of a dictionary page if there is one */
    uint64_t size;  /* of all its pages, headers and all; lies between the magic and the footer */
    enum stored_codec codec;
    struct stored_bounds bounds;
};

struct stored_group {
    uint64_t rows; /* and each chunk has as many values */
    struct stored_chunk chunks[STORED_COLUMN_COUNT];
};

struct stored_footer {
    uint8_t *bytes;
    size_t size;
    uint64_t start; /* its first byte in the object */
    uint64_t rows;
    uint32_t group_count;
    struct compact groups; /* at the next row group */
    uint32_t groups_left;
    bool ordered[STORED_COLUMN_COUNT]; /* min_value and max_value are bounds by the type's own order */
};

/* "partition" and so on. */
const char *stored_column_title(enum stored_column_name column);

/* Reads and checks all of the footer, row groups included: what it says of places lies within the object, what it says
 * of counts adds up. 0, or error->code; stored_footer_free() in either case. */
int stored_footer_read(struct stored_footer *footer, const struct object_source *source, struct error *error);
/* The next row group; false after the last. */
bool stored_footer_next(struct stored_footer *footer, struct stored_group *group);
void stored_footer_free(struct stored_footer *footer);

/* For parquet_footer.c: one RowGroup; fails the cursor where it can't be one of an object whose pages end at `end`. */
void stored_group_read(struct compact *compact, uint64_t end, const bool ordered[STORED_COLUMN_COUNT],
                       struct stored_group *group);

enum stored_page_type {
    STORED_PAGE_DATA = 0,
    STORED_PAGE_INDEX = 1,
    STORED_PAGE_DICTIONARY = 2,
    STORED_PAGE_DATA_V2 = 3
};

struct stored_page_header {
    int32_t type;        /* one of the above, or one to be passed over */
    uint32_t size;       /* of the page's body as it lies in the object */
    uint32_t plain_size; /* once it is decompressed */
    bool has_crc;
    uint32_t crc; /* of the body as it lies in the object */
    uint32_t values;
    int32_t encoding;
    int32_t levels_encoding; /* V1, definition levels */
    uint32_t levels_size;    /* V2: bytes of definition levels before the values, never compressed */
    uint32_t nulls;          /* V2 */
    bool compressed;         /* V2: false where the values aren't, whatever the codec */
};

/* Reads a header at the start of these bytes. NULL: *header_size is its own size. Otherwise why there is none; *cut:
 * there may be one once more bytes are there. */
const char *stored_page_header_read(const uint8_t *bytes, size_t size, struct stored_page_header *header,
                                    size_t *header_size, bool *cut);

#endif
