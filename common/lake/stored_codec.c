/* Parquet's codecs: stored_codec.h. */
#include "common/lake/stored_codec.h"

#include <limits.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* What a byte can become at the most. zstd: a block of 128 KiB takes four bytes (RFC 8878, 3.1.1.2); deflate: 258 bytes
 * take two bits (RFC 1951, 3.2.5); snappy: 64 bytes take three (format_description.txt, 2.2). */
bool stored_size_possible(enum stored_codec codec, uint64_t size, uint64_t plain_size)
{
    switch (codec) {
    case STORED_UNCOMPRESSED: return plain_size == size;
    case STORED_SNAPPY: return plain_size / 22 <= size;
    case STORED_GZIP: return plain_size / 1032 <= size;
    case STORED_ZSTD: return plain_size / 32768 <= size;
    }
    return false;
}

static const char *decompress_snappy(const uint8_t *bytes, size_t size, uint8_t *out, size_t plain_size)
{
    size_t length = 0;
    const char *in = (const char *)bytes;

    /* Its own idea of the size is checked first: snappy writes as much as that. */
    if (snappy_uncompressed_length(in, size, &length) != SNAPPY_OK || length != plain_size ||
        snappy_uncompress(in, size, (char *)out, &length) != SNAPPY_OK || length != plain_size) {
        return "a page that isn't snappy of its size";
    }
    return NULL;
}

static const char *decompress_zstd(struct stored_decoders *decoders, const uint8_t *bytes, size_t size, uint8_t *out,
                                   size_t plain_size, bool *no_memory)
{
    if (decoders->zstd == NULL) {
        decoders->zstd = ZSTD_createDCtx();
    }
    if (decoders->zstd == NULL) {
        *no_memory = true;
        return "out of memory for zstd";
    }
    size_t got = ZSTD_decompressDCtx(decoders->zstd, out, plain_size, bytes, size);
    if (ZSTD_isError(got)) {
        return ZSTD_getErrorName(got);
    }
    return got == plain_size ? NULL : "a page of another size than its header says";
}

static z_stream *gzip_decoder(struct stored_decoders *decoders)
{
    z_stream *stream = decoders->gzip;

    if (stream != NULL) {
        return inflateReset(stream) == Z_OK ? stream : NULL;
    }
    stream = calloc(1, sizeof *stream);
    /* 32: gzip, and the zlib format that some writers take for it (zlib.h, inflateInit2). */
    if (stream != NULL && inflateInit2(stream, 15 + 32) != Z_OK) {
        free(stream);
        return NULL;
    }
    decoders->gzip = stream;
    return stream;
}

static const char *decompress_gzip(struct stored_decoders *decoders, const uint8_t *bytes, size_t size, uint8_t *out,
                                   size_t plain_size, bool *no_memory)
{
    z_stream *stream = gzip_decoder(decoders);
    int result = Z_OK;

    if (stream == NULL) {
        *no_memory = true;
        return "out of memory for gzip";
    }
    if (size > UINT_MAX || plain_size > UINT_MAX) {
        return "a page larger than gzip takes";
    }
    stream->next_in = (z_const Bytef *)bytes;
    stream->avail_in = (uInt)size;
    stream->next_out = out;
    stream->avail_out = (uInt)plain_size;
    /* Members may follow each other (RFC 1952, 2.2). */
    do {
        result = inflate(stream, Z_FINISH);
    } while (result == Z_STREAM_END && stream->avail_in > 0 && inflateReset(stream) == Z_OK);
    return result == Z_STREAM_END && stream->avail_out == 0 ? NULL : "a page that isn't gzip of its size";
}

const char *stored_decompress(struct stored_decoders *decoders, enum stored_codec codec, const uint8_t *bytes,
                              size_t size, uint8_t *out, size_t plain_size, bool *no_memory)
{
    switch (codec) {
    case STORED_SNAPPY: return decompress_snappy(bytes, size, out, plain_size);
    case STORED_GZIP: return decompress_gzip(decoders, bytes, size, out, plain_size, no_memory);
    case STORED_ZSTD: return decompress_zstd(decoders, bytes, size, out, plain_size, no_memory);
    case STORED_UNCOMPRESSED: break;
    }
    return "a codec that isn't known";
}

void stored_decoders_free(struct stored_decoders *decoders)
{
    ZSTD_freeDCtx(decoders->zstd);
    if (decoders->gzip != NULL) {
        (void)inflateEnd(decoders->gzip);
        free(decoders->gzip);
    }
    *decoders = (struct stored_decoders){0};
}
