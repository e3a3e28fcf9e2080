/*
 * One column of a Parquet file: the pages of its chunk in the row group at hand, and the values in them. In memory are
 * at most one page, as it lies in the object and decompressed, the chunk's dictionary, and a little that was read ahead.
 */
#ifndef COMMON_LAKE_STORED_COLUMN_H
#define COMMON_LAKE_STORED_COLUMN_H

#include "common/lake/stored_codec.h"
#include "common/lake/stored_values.h"

/* Bytes whose size comes from outside. */
struct stored_bytes {
    uint8_t *bytes;
    size_t capacity;
};

struct stored_column {
    const struct object_source *source;
    struct stored_decoders *decoders;
    enum stored_column_name name;
    enum stored_codec codec;

    /* The chunk: what isn't read yet, and what was read ahead and isn't used. */
    uint64_t next; /* in the object */
    uint64_t end;
    struct stored_bytes ahead;
    size_t ahead_at;
    size_t ahead_size;

    /* The page. */
    struct stored_page_header header;
    uint64_t page_start; /* of its header, in the object */
    bool body_waits;     /* its body isn't fetched yet: it may never be wanted */
    uint32_t rows_left;  /* of the page; beyond those to be skipped */
    struct stored_bytes plain;
    struct bit_runs levels; /* of an optional column */
    struct stored_values values;

    uint64_t chunk_rows_left; /* rows of the chunk in pages that are still to come */
    uint64_t to_skip;         /* rows to be passed over before the next value */
    bool has_dictionary;
    struct stored_bytes dictionary_bytes;
    struct stored_dictionary dictionary;
};

/* Zero *column before its first chunk. Source and decoders must outlive it. */
void stored_column_begin(struct stored_column *column, const struct object_source *source,
                         struct stored_decoders *decoders, enum stored_column_name name,
                         const struct stored_chunk *chunk, uint64_t rows);

/* The value of the next row. 0, or error->code, with the place in the object and the reason. A text is valid until the
 * next call with the same column; *text is {NULL, 0} for a null. */
int stored_column_integer(struct stored_column *column, int64_t *value, struct error *error);
int stored_column_text(struct stored_column *column, struct name *text, struct error *error);

/* Passes over a row. A page in which no row is wanted is neither read nor decompressed. */
void stored_column_skip(struct stored_column *column);

/* Once all rows were read or skipped: whether the chunk ends there. */
int stored_column_finish(struct stored_column *column, struct error *error);

void stored_column_free(struct stored_column *column);

#endif
