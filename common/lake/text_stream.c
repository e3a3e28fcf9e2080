/*
 * Decompressing as a stream: text_stream.h. The window of a zstd frame is the reader's to pay for, so it is bounded:
 * level 3, the lake's (spec 2.2), needs 2 MiB; RFC 8878, 3.1.1.1.2 asks decoders for 8. The original's frames declare no
 * content size, which a stream doesn't need.
 */
#include "common/lake/text_stream.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define CHUNK_SIZE     131072
#define WINDOW_LOG_MAX 23

struct text_stream {
    struct object_source source;
    enum setting_compression compression;
    ZSTD_DCtx *zstd;
    z_stream gzip;
    bool gzip_ready;
    bool frame_open; /* the last frame or member isn't whole yet */
    bool ended;      /* the source has */
    uint64_t before; /* bytes of the object before the chunk */
    size_t at;
    size_t size;
    unsigned char chunk[CHUNK_SIZE];
};

static int refuse(const struct text_stream *stream, const char *why, struct error *error)
{
    return error_refuse(error, QS_ERROR_BODY, "byte %" PRIu64 " of the object: %s", stream->before + stream->at, why);
}

/* The next chunk, once the one before is used up. */
static int refill(struct text_stream *stream, struct error *error)
{
    stream->before += stream->size;
    stream->at = 0;
    stream->size = 0;
    int code = stream->source.read(stream->source.source, stream->chunk, sizeof stream->chunk, &stream->size, error);
    if (code != 0) {
        stream->size = 0;
        return code;
    }
    stream->ended = stream->size == 0;
    return 0;
}

static int read_zstd(struct text_stream *stream, ZSTD_outBuffer *out, struct error *error)
{
    ZSTD_inBuffer in = {stream->chunk, stream->size, stream->at};
    size_t left = ZSTD_decompressStream(stream->zstd, out, &in);

    stream->at = in.pos;
    if (ZSTD_isError(left)) {
        return refuse(stream, ZSTD_getErrorName(left), error);
    }
    stream->frame_open = left != 0;
    return 0;
}

static int read_gzip(struct text_stream *stream, ZSTD_outBuffer *out, struct error *error)
{
    z_stream *gzip = &stream->gzip;
    size_t room = out->size - out->pos < UINT_MAX ? out->size - out->pos : UINT_MAX;

    gzip->next_in = stream->chunk + stream->at;
    gzip->avail_in = (uInt)(stream->size - stream->at);
    gzip->next_out = (Bytef *)out->dst + out->pos;
    gzip->avail_out = (uInt)room;
    int result = inflate(gzip, Z_NO_FLUSH);
    stream->at = stream->size - gzip->avail_in;
    out->pos += room - gzip->avail_out;
    stream->frame_open = true;
    if (result == Z_STREAM_END) {
        stream->frame_open = false;
        result = inflateReset(gzip);
    }
    /* Z_BUF_ERROR: there was nothing to do, which is no fault of the stream's (zlib.h). */
    if (result == Z_MEM_ERROR) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for gzip");
    }
    return result == Z_OK || result == Z_BUF_ERROR ? 0
                                                   : refuse(stream, gzip->msg != NULL ? gzip->msg : "not gzip", error);
}

static int read_frames(struct text_stream *stream, ZSTD_outBuffer *out, struct error *error)
{
    int code = 0;

    while (code == 0 && out->pos == 0) {
        if (stream->at == stream->size && !stream->ended) {
            code = refill(stream, error);
            continue;
        }
        if (stream->at == stream->size && !stream->frame_open) {
            return 0;
        }
        size_t before = stream->at;
        code = stream->compression == COMPRESSION_ZSTD ? read_zstd(stream, out, error) : read_gzip(stream, out, error);
        if (code == 0 && out->pos == 0 && stream->at == before && stream->ended && stream->frame_open) {
            return refuse(stream, "it ends inside a compressed frame", error);
        }
    }
    return code;
}

int text_stream_read(struct text_stream *stream, char *buffer, size_t size, size_t *got, struct error *error)
{
    ZSTD_outBuffer out = {buffer, size, 0};
    int code;

    if (stream->compression == COMPRESSION_NONE) {
        return stream->source.read(stream->source.source, buffer, size, got, error);
    }
    code = read_frames(stream, &out, error);
    *got = out.pos;
    return code;
}

static bool start_decoder(struct text_stream *stream)
{
    if (stream->compression == COMPRESSION_ZSTD) {
        stream->zstd = ZSTD_createDCtx();
        return stream->zstd != NULL &&
               !ZSTD_isError(ZSTD_DCtx_setParameter(stream->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX));
    }
    /* 16: a gzip header and trailer (zlib.h), 15: any window. */
    stream->gzip_ready = stream->compression != COMPRESSION_GZIP || inflateInit2(&stream->gzip, 15 + 16) == Z_OK;
    return stream->gzip_ready;
}

struct text_stream *text_stream_open(enum setting_compression compression, const struct object_source *source,
                                     struct error *error)
{
    struct text_stream *stream;

    if (source->read == NULL || compression == COMPRESSION_SNAPPY) {
        (void)error_set(error, QS_ERROR_INPUT, "%s",
                        source->read == NULL ? "JSON Lines need a source that is read forward"
                                             : "JSON Lines are compressed with zstd, gzip, or not at all");
        return NULL;
    }
    stream = calloc(1, sizeof *stream);
    if (stream != NULL) {
        stream->source = *source;
        stream->compression = compression;
        stream->frame_open = true; /* no frame at all is none that is whole */
    }
    if (stream == NULL || !start_decoder(stream)) {
        text_stream_close(stream);
        (void)error_set(error, QS_ERROR_NO_MEMORY, "out of memory for reading an object");
        return NULL;
    }
    return stream;
}

void text_stream_close(struct text_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    ZSTD_freeDCtx(stream->zstd);
    if (stream->gzip_ready && stream->compression == COMPRESSION_GZIP) {
        (void)inflateEnd(&stream->gzip);
    }
    free(stream);
}
