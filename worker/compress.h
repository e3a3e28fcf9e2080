/*
 * zstd, gzip and no compression as one stream: text in, in pieces of any size, bytes out to a callback. What comes out
 * depends on the text, its size and the kind alone: not on the pieces, the threads or the timing (spec 2.2: levels and
 * framing are part of the bytes).
 */
#ifndef WORKER_COMPRESS_H
#define WORKER_COMPRESS_H

#include "common/error.h"
#include "common/settings.h"
#include "worker/encode_stream.h"

struct compressor;

/* text_size: what will be fed, exactly: a zstd frame declares it. threads >= 1: libzstd's own, beside the caller's.
 * NULL and *error where out of memory or where the kind is none of the three. */
struct compressor *compressor_create(enum setting_compression kind, uint64_t text_size, int threads, encode_emit *emit,
                                     void *argument, struct error *error);
/* emit's nonzero return ends the call with that code. After any failure only compressor_destroy() is left. */
int compressor_feed(struct compressor *compressor, const void *bytes, size_t size, struct error *error);
/* Ends the frame. QS_ERROR_INPUT where not exactly text_size bytes were fed. */
int compressor_finish(struct compressor *compressor, struct error *error);
void compressor_destroy(struct compressor *compressor);

/* Bytes that it holds at the most, and that text_size bytes can become. */
uint64_t compressor_memory(enum setting_compression kind, uint64_t text_size, int threads);
uint64_t compressor_bound(enum setting_compression kind, uint64_t text_size);

/* Fills *error with what a result that ZSTD_isError() says, and returns its code: for whoever else compresses. */
int compress_zstd_failed(size_t result, struct error *error);

#endif
