/*
 * Decompressing the pages of a Parquet file (Compression.md of the format): each is compressed by itself and says how
 * large it will be.
 */
#ifndef COMMON_LAKE_STORED_CODEC_H
#define COMMON_LAKE_STORED_CODEC_H

#include "common/lake/parquet_format.h"

/* Decoders, made at first need and kept. Zero it before its first use. */
struct stored_decoders {
    void *zstd;
    void *gzip;
};

/* Whether so few bytes can become so many with this codec at all: before memory is found for them. */
bool stored_size_possible(enum stored_codec codec, uint64_t size, uint64_t plain_size);

/* Fills all of `out`. NULL, or why not; *no_memory: only for lack of memory. */
const char *stored_decompress(struct stored_decoders *decoders, enum stored_codec codec, const uint8_t *bytes,
                              size_t size, uint8_t *out, size_t plain_size, bool *no_memory);

void stored_decoders_free(struct stored_decoders *decoders);

#endif
