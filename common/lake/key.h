/*
 * Names and keys of the lake: spec 2.1. Pure functions; the same input gives the same key for ever.
 */
#ifndef COMMON_LAKE_KEY_H
#define COMMON_LAKE_KEY_H

#include <stddef.h>

#include "common/queen_api.h"
#include "common/settings.h"

#define LAKE_NAME_SIZE 161  /* the longest escaped name, 160, and a NUL */
#define LAKE_KEY_SIZE  1025 /* S3's longest key, 1024, and a NUL */

/* What fixes a window's bytes and keys: the intent (spec 3.5). */
struct window_shape {
    enum setting_format format;
    enum setting_compression compression;
    enum setting_layout layout;
    enum setting_align align;
};

struct window_bounds {
    int64_t k;
    struct broker_us start; /* tStart, inclusive */
    struct broker_us end;   /* tEnd, exclusive */
};

/* Percent-escaped and cut by the long-name rule. */
void lake_escape_name(struct name name, char out[LAKE_NAME_SIZE]);

/* Each returns 0, or QS_ERROR_INPUT where the key would be longer than 1024 bytes. `escaped_queue` comes from
 * lake_escape_name; prefix is without slashes at its ends, may be empty. */
int lake_object_key(const char *prefix, const char *escaped_queue, const struct window_shape *shape,
                    const struct window_bounds *bounds, char out[LAKE_KEY_SIZE], struct error *error);
int lake_partition_object_key(const char *prefix, const char *escaped_queue, const struct window_shape *shape,
                              const struct window_bounds *bounds, const char *escaped_partition, int64_t first_offset,
                              int64_t last_offset, char out[LAKE_KEY_SIZE], struct error *error);
int lake_manifest_key(const char *prefix, const char *escaped_queue, int64_t k, char out[LAKE_KEY_SIZE],
                      struct error *error);
int lake_checkpoint_key(const char *prefix, const char *escaped_queue, int64_t k, char out[LAKE_KEY_SIZE],
                        struct error *error);
/* `<prefix>/_queen/<queue>/checkpoint/`, for listing. */
int lake_checkpoint_prefix(const char *prefix, const char *escaped_queue, char out[LAKE_KEY_SIZE], struct error *error);

/* "jsonl.zst", "jsonl.gz", "jsonl", "parquet". */
const char *lake_extension(const struct window_shape *shape);
const char *lake_content_type(const struct window_shape *shape);

/* The alignment unit, 0 for none; the boundary at or below time (floor, also below 1970). */
int64_t lake_align_unit_us(enum setting_align align);
struct broker_us lake_align_floor(enum setting_align align, struct broker_us time);

#endif
