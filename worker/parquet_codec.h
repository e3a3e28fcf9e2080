/*
 * Compresses one page after another: zstd at level 3 or snappy, one frame a page (parquet-format, Compression.md), with
 * one context for all of them. The bytes are a function of the page's own.
 */
#ifndef WORKER_PARQUET_CODEC_H
#define WORKER_PARQUET_CODEC_H

#include <sys/uio.h>

#include "common/error.h"
#include "common/settings.h"

/* Pages of up to this many bytes are compressed whole, larger ones as a stream, so that they are never in memory twice. */
#define PARQUET_WHOLE_SIZE ((1u << 20) + (32u << 10))

struct parquet_codec;

/* COMPRESSION_ZSTD or COMPRESSION_SNAPPY. NULL and *error for any other, and where out of memory. */
struct parquet_codec *parquet_codec_create(enum setting_compression kind, struct error *error);
void parquet_codec_destroy(struct parquet_codec *codec);

/* Takes compressed bytes, valid during the call; nonzero stops the compression with that error. */
typedef int parquet_take(void *argument, const uint8_t *bytes, size_t size);

/* A page, given as the pieces that it consists of. */
int parquet_codec_compress(struct parquet_codec *codec, const struct iovec *pieces, size_t count, parquet_take *take,
                           void *argument, struct error *error);

/* Bytes that it holds at the most, if no page is larger than this. */
uint64_t parquet_codec_memory(enum setting_compression kind, uint64_t page_size);

#endif
