/*
 * One column of the row group being written: its finished pages, compressed, until the row group ends and they can
 * follow those of the columns before it.
 *
 * The format would let the payloads, which are nearly all there is, stand first and so leave memory at once. But readers
 * that divide a file among themselves by the middle of each row group take the first column's place for its beginning,
 * and would lose one whose first column isn't first.
 */
#ifndef WORKER_PARQUET_CHUNK_H
#define WORKER_PARQUET_CHUNK_H

#include "worker/encode_stream.h"
#include "worker/parquet_codec.h"
#include "worker/parquet_metadata.h"

struct chunk_block;
struct chunk_page;

struct chunk_pages {
    struct chunk_block *first;
    struct chunk_block *last;
    struct chunk_page *pages;
    size_t count;
    size_t capacity;
};

struct parquet_chunk {
    struct chunk_pages dictionary; /* one page or none; it stands first and is written last */
    struct chunk_pages data;
    struct parquet_chunk_facts facts;
};

/* What page writing needs for all columns. */
struct page_writer {
    struct parquet_codec *codec;
    struct thrift header;
    uint8_t *scratch; /* PAGE_SCRATCH_SIZE bytes for a page in the making */
    encode_emit *emit;
    void *argument;
    uint64_t position; /* in the file */
};

/* Compresses a page, given in pieces, and keeps it. emit is called with no bytes, so that who is no longer interested can
 * stop the encoding at each page. */
int parquet_chunk_add(struct parquet_chunk *chunk, struct page_writer *writer, enum parquet_encoding encoding,
                      size_t values, const struct iovec *pieces, size_t count, struct error *error);
int parquet_chunk_add_dictionary(struct parquet_chunk *chunk, struct page_writer *writer, size_t values,
                                 const void *bytes, size_t size, struct error *error);
/* Hands all pages on, and frees each block of them as it goes. The facts are complete then. */
int parquet_chunk_emit(struct parquet_chunk *chunk, struct page_writer *writer, struct error *error);
/* Forgets the facts: for the next row group. */
void parquet_chunk_reset(struct parquet_chunk *chunk);
void parquet_chunk_free(struct parquet_chunk *chunk);

int page_writer_give(struct page_writer *writer, const void *bytes, size_t size, struct error *error);

#endif
