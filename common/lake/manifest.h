/*
 * The manifest of a window (spec 2.3): one object each committed window, the only place with a wall-clock value.
 */
#ifndef COMMON_LAKE_MANIFEST_H
#define COMMON_LAKE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lake/key.h"

struct manifest_object {
    char *key;
    uint64_t bytes;
    uint64_t records;
    uint8_t sha256[32];
    bool has_partition; /* per-partition layout */
    char *partition;    /* its name, partition_size bytes */
    size_t partition_size;
    int64_t first_offset;
    int64_t last_offset;
};

struct manifest_lost {
    char *partition;
    size_t partition_size;
    int64_t from; /* inclusive */
    int64_t to;   /* inclusive */
    bool previous_life;
};

struct manifest {
    char *sink;
    char *queue;
    struct window_bounds bounds;
    struct window_shape shape; /* align isn't part of the document: 0 */
    struct manifest_object *objects;
    size_t object_count;
    uint64_t records;
    uint64_t bytes;
    uint64_t partitions;
    struct broker_us min_ts; /* of no meaning where records is 0 */
    struct broker_us max_ts;
    struct manifest_lost *lost;
    size_t lost_count;
    char *writer;
    struct wall_ms committed_at;
};

/* "queen-s3/1.5.0 jsonl+zstd" and the like; static storage. */
const char *manifest_writer(const struct window_shape *shape);

/* The document, spelled as in 2.3 (this order of keys, no blanks, one line without a line feed); malloc, NULL if out of
 * memory. Strings are spelled the lake's way. Written as a stream: no tree. */
char *manifest_format(const struct manifest *manifest, size_t *size);

/* Reads any spelling of it, unknown keys ignored (`lost` may be missing), `compression` none with parquet read as snappy. QS_ERROR_BODY where it
 * isn't a manifest. On success the caller owns it: manifest_free(). */
int manifest_parse(const char *text, size_t size, struct manifest *manifest, struct error *error);
void manifest_free(struct manifest *manifest);

#endif
