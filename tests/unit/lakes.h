/*
 * The lakes that the original sink wrote (shared/data/README.md), unpacked into memory for the tests that hold ours
 * against them byte for byte. They lie beside the project, not in it: where QUEEN_S3_SHARED (default ../shared) does
 * not have them, a test says so in one line and goes on with the cases it has built in.
 */
#ifndef TESTS_UNIT_LAKES_H
#define TESTS_UNIT_LAKES_H

#include <stddef.h>
#include <stdint.h>

struct lake_file {
    char path[512]; /* "lake/jsonl/queue=orders/…", "log.jsonl" */
    const char *bytes;
    size_t size;
};

/* Read once a process and kept; NULL and a printed line where they are not there. */
const struct lake_file *lakes_open(size_t *count);
/* NULL where there is no such file. */
const struct lake_file *lakes_find(const char *path);
/* The next file at or after index `*from` whose path begins and ends so; moves *from behind it. NULL: no more. */
const struct lake_file *lakes_next(size_t *from, const char *prefix, const char *suffix);

/* A file of shared/data, decompressed where its name ends in .zst; malloc, NULL and a printed line where absent. */
char *shared_data(const char *name, size_t *size);

/* Whole bytes of a zstd frame or a gzip member; malloc. Fail the test where they are damaged. */
char *unpack_zstd(const void *bytes, size_t size, size_t *unpacked);
char *unpack_gzip(const void *bytes, size_t size, size_t *unpacked);

#endif
