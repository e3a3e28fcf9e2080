/*
 * The three kinds of columns that spec 2.2 has: numbers (offset, ts), texts (transaction_id, payload) and names that
 * come in runs (partition). Each gathers a page and hands it to its chunk when it is full.
 */
#ifndef WORKER_PARQUET_COLUMN_H
#define WORKER_PARQUET_COLUMN_H

#include "worker/parquet_chunk.h"
#include "worker/parquet_encoding.h"

/* Makes each lone surrogate (json_unescape gives it as three bytes) U+FFFD, which has three bytes too: a column of
 * strings is UTF-8 (LogicalTypes.md), and readers refuse a whole file for one that isn't. True where there was one. */
bool parquet_mend_text(char *bytes, size_t size);

#define PAGE_ROWS       20000
#define PAGE_SIZE       (1u << 20) /* bytes of values; one that is larger has a page of its own */
#define DICTIONARY_SIZE (1u << 20)

/* What a page of numbers or of indexes takes at the most. */
#define PAGE_SCRATCH_SIZE (DELTA_BOUND(PAGE_ROWS) + HYBRID_BOUND(PAGE_ROWS, HYBRID_WIDTH_MAX))

struct number_column {
    struct parquet_chunk chunk;
    size_t count;
    int64_t values[PAGE_ROWS];
};

int number_column_add(struct number_column *column, struct page_writer *writer, int64_t value, struct error *error);
int number_column_finish(struct number_column *column, struct page_writer *writer, struct error *error);

/* Definition levels, their size before them. */
#define LEVELS_SIZE (HYBRID_BOUND(PAGE_ROWS, 1) + 4)

struct text_column {
    struct parquet_chunk chunk;
    bool optional;
    size_t rows;
    size_t used; /* bytes of values */
    struct hybrid levels;
    uint8_t *page; /* LEVELS_SIZE bytes to write them in, then the values */
};

/* A zeroed column; once. */
int text_column_begin(struct text_column *column, bool optional, struct error *error);
void text_column_free(struct text_column *column);
int text_column_add(struct text_column *column, struct page_writer *writer, const char *bytes, size_t size,
                    struct error *error);
/* The same for what stands between the quotes of a JSON string. */
int text_column_add_spelled(struct text_column *column, struct page_writer *writer, const char *text, size_t size,
                            struct error *error);
int text_column_add_null(struct text_column *column, struct page_writer *writer, struct error *error);
int text_column_finish(struct text_column *column, struct page_writer *writer, struct error *error);

struct name_column {
    struct text_column plain; /* once the dictionary is full; its chunk is the column's */
    bool full;
    size_t dictionary_count;
    size_t dictionary_used;
    size_t dictionary_last; /* where the last name's length stands */
    uint8_t *dictionary;
    uint32_t first; /* index of the first run in the page */
    size_t rows;    /* of the page */
    size_t run_count;
    uint32_t runs[PAGE_ROWS]; /* rows of each; indexes ascend by one */
};

/* A zeroed column; once. */
int name_column_begin(struct name_column *column, struct error *error);
void name_column_free(struct name_column *column);
/* `count` rows of one name. */
int name_column_add(struct name_column *column, struct page_writer *writer, const char *bytes, size_t size,
                    size_t count, struct error *error);
/* Ends the row group: the dictionary is written, and the next name begins a new one. */
int name_column_finish(struct name_column *column, struct page_writer *writer, struct error *error);

#endif
