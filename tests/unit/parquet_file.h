/*
 * Reads Parquet files as spec 2.2 describes them, from parquet-format's documents and with nothing of the writer's: all
 * pages are unpacked and decoded, every size and offset is held against what is there, and what the tests ask for is
 * kept. What is wrong fails the test.
 */
#ifndef TESTS_UNIT_PARQUET_FILE_H
#define TESTS_UNIT_PARQUET_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PARTITION, OFFSET, TRANSACTION_ID, TS, PAYLOAD, COLUMNS };

struct file_text {
    const char *bytes; /* NULL: null, or not there */
    size_t size;
};

struct file_row {
    struct file_text texts[COLUMNS]; /* of offset and ts: none */
    int64_t numbers[COLUMNS];
};

struct file_chunk {
    size_t pages; /* data pages */
    size_t plain_pages;
    size_t dictionary_values; /* 0: no dictionary page */
    size_t dictionary_size;
    size_t largest_rows; /* of a data page */
    size_t largest_size; /* of a page, unpacked */
    int64_t nulls;       /* as the statistics have them */
    struct file_text least;
    struct file_text greatest;
    int least_exact; /* 1, 0; -1: not said */
    int greatest_exact;
};

struct file_group {
    size_t rows;
    struct file_chunk chunks[COLUMNS];
};

struct parquet_file {
    struct file_row *rows;
    size_t row_count;
    struct file_group *groups;
    size_t group_count;
    struct file_text queue;
    /* what rows point into */
    char **pages;
    size_t page_count;
};

enum file_codec { FILE_SNAPPY = 1, FILE_ZSTD = 6 };

/* The bytes must outlive it. */
void parquet_file_read(struct parquet_file *file, const void *bytes, size_t size, enum file_codec codec);
void parquet_file_free(struct parquet_file *file);

#endif
