/*
 * See parquet_codec.h.
 *
 * Snappy's C interface knows whole buffers only, but its format lets a page be put together from pieces: a stream is the
 * size of all as a varint, then literals and copies, and a copy reaches back into what is there already
 * (format_description.txt). So each piece is compressed by itself, its own size is left away, and the size of all
 * stands before the first. The library works in pieces of 64 KiB too, and nothing is lost by it.
 */
#include "worker/parquet_codec.h"

#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "worker/compress.h"
#include "worker/parquet_thrift.h"

#define ZSTD_LEVEL   3
#define SNAPPY_PIECE 65536u
/* What libzstd holds for level 3: tables, and for a stream its window too. */
#define ZSTD_TABLES_SIZE (2u << 20)
#define ZSTD_STREAM_SIZE (3u << 20)

struct parquet_codec {
    enum setting_compression kind;
    ZSTD_CCtx *zstd;
    size_t out_size;
    uint8_t *out;
    uint8_t *piece; /* of snappy's, where it has to be put together */
};

static size_t out_size(enum setting_compression kind)
{
    return kind == COMPRESSION_ZSTD ? ZSTD_compressBound(PARQUET_WHOLE_SIZE)
                                    : snappy_max_compressed_length(PARQUET_WHOLE_SIZE);
}

struct parquet_codec *parquet_codec_create(enum setting_compression kind, struct error *error)
{
    struct parquet_codec *codec = NULL;

    if (kind != COMPRESSION_ZSTD && kind != COMPRESSION_SNAPPY) {
        error_set(error, QS_ERROR_INPUT, "pages of Parquet are compressed with zstd or snappy, not with %s",
                  setting_compression_name(kind));
        return NULL;
    }
    codec = calloc(1, sizeof *codec);
    if (codec != NULL) {
        codec->kind = kind;
        codec->out_size = out_size(kind);
        codec->out = malloc(codec->out_size);
        if (kind == COMPRESSION_ZSTD) {
            codec->zstd = ZSTD_createCCtx();
        } else {
            codec->piece = malloc(SNAPPY_PIECE);
        }
    }
    if (codec == NULL || codec->out == NULL || (codec->zstd == NULL && codec->piece == NULL) ||
        (codec->zstd != NULL &&
         ZSTD_isError(ZSTD_CCtx_setParameter(codec->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)))) {
        parquet_codec_destroy(codec);
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a compressor of pages");
        return NULL;
    }
    return codec;
}

void parquet_codec_destroy(struct parquet_codec *codec)
{
    if (codec != NULL) {
        ZSTD_freeCCtx(codec->zstd);
        free(codec->out);
        free(codec->piece);
        free(codec);
    }
}

static int taken(int code, struct error *error)
{
    return code == 0 ? 0
                     : error_set(error, code < 0 ? (enum qs_error)code : QS_ERROR_SYSTEM,
                                 "a compressed page was not taken: encoding stopped");
}

/* ---- zstd ---- */

static int zstd_whole(struct parquet_codec *codec, const struct iovec *page, parquet_take *take, void *argument,
                      struct error *error)
{
    size_t size = ZSTD_compress2(codec->zstd, codec->out, codec->out_size, page->iov_base, page->iov_len);

    return ZSTD_isError(size) ? compress_zstd_failed(size, error) : taken(take(argument, codec->out, size), error);
}

static int zstd_stream(struct parquet_codec *codec, const struct iovec *pieces, size_t count, size_t total,
                       parquet_take *take, void *argument, struct error *error)
{
    size_t left = ZSTD_CCtx_setPledgedSrcSize(codec->zstd, total);

    for (size_t i = 0; i < count; i++) {
        ZSTD_inBuffer in = {pieces[i].iov_base, pieces[i].iov_len, 0};
        ZSTD_EndDirective directive = i + 1 == count ? ZSTD_e_end : ZSTD_e_continue;
        do {
            ZSTD_outBuffer out = {codec->out, codec->out_size, 0};
            left = ZSTD_isError(left) ? left : ZSTD_compressStream2(codec->zstd, &out, &in, directive);
            if (ZSTD_isError(left)) {
                return compress_zstd_failed(left, error);
            }
            int code = taken(take(argument, codec->out, out.pos), error);
            if (code != 0) {
                return code;
            }
        } while (directive == ZSTD_e_end ? left != 0 : in.pos < in.size);
    }
    return 0;
}

/* ---- snappy ---- */

static int snappy_piece(struct parquet_codec *codec, const char *bytes, size_t size, parquet_take *take, void *argument,
                        struct error *error)
{
    size_t written = codec->out_size;
    size_t head = 1;

    if (snappy_compress(bytes, size, (char *)codec->out, &written) != SNAPPY_OK) {
        return error_set(error, QS_ERROR_INPUT, "snappy: %zu bytes can't be compressed", size);
    }
    while ((codec->out[head - 1] & 0x80) != 0) {
        head++;
    }
    return taken(take(argument, codec->out + head, written - head), error);
}

static int snappy_stream(struct parquet_codec *codec, const struct iovec *pieces, size_t count, size_t total,
                         parquet_take *take, void *argument, struct error *error)
{
    uint8_t head[10];
    size_t used = 0;
    int code = taken(take(argument, head, (size_t)(varint_put(head, total) - head)), error);

    for (size_t i = 0; i < count; i++) {
        const char *bytes = pieces[i].iov_base;
        size_t left = pieces[i].iov_len;
        while (left > 0 && code == 0) {
            size_t size = left < SNAPPY_PIECE - used ? left : SNAPPY_PIECE - used;
            if (size == SNAPPY_PIECE) {
                code = snappy_piece(codec, bytes, size, take, argument, error);
            } else {
                memcpy(codec->piece + used, bytes, size);
                used += size;
            }
            if (used == SNAPPY_PIECE) {
                code = snappy_piece(codec, (const char *)codec->piece, used, take, argument, error);
                used = 0;
            }
            bytes += size;
            left -= size;
        }
    }
    return code != 0 || used == 0 ? code : snappy_piece(codec, (const char *)codec->piece, used, take, argument, error);
}

static int snappy_whole(struct parquet_codec *codec, const struct iovec *page, parquet_take *take, void *argument,
                        struct error *error)
{
    size_t written = codec->out_size;

    if (snappy_compress(page->iov_base, page->iov_len, (char *)codec->out, &written) != SNAPPY_OK) {
        return error_set(error, QS_ERROR_INPUT, "snappy: %zu bytes can't be compressed", page->iov_len);
    }
    return taken(take(argument, codec->out, written), error);
}

int parquet_codec_compress(struct parquet_codec *codec, const struct iovec *pieces, size_t count, parquet_take *take,
                           void *argument, struct error *error)
{
    bool zstd = codec->kind == COMPRESSION_ZSTD;
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += pieces[i].iov_len;
    }
    if (count == 1 && total <= PARQUET_WHOLE_SIZE) {
        return (zstd ? zstd_whole : snappy_whole)(codec, pieces, take, argument, error);
    }
    return (zstd ? zstd_stream : snappy_stream)(codec, pieces, count, total, take, argument, error);
}

uint64_t parquet_codec_memory(enum setting_compression kind, uint64_t page_size)
{
    uint64_t memory = sizeof(struct parquet_codec) + out_size(kind);

    if (kind == COMPRESSION_ZSTD) {
        return memory + ZSTD_TABLES_SIZE + (page_size > PARQUET_WHOLE_SIZE ? ZSTD_STREAM_SIZE : 0);
    }
    return memory + SNAPPY_PIECE;
}
