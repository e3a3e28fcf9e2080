/*
 * Compression as a stream (compress.h). Frame and member formats: RFC 8878 (zstd), RFC 1952 (gzip).
 *
 * zstd always runs with nbWorkers >= 1: libzstd then cuts the text into jobs of a fixed size, each compressed with the
 * end of the job before as its history, and the frame comes out the same however many threads share the jobs. Job size
 * and history are therefore part of the bytes, and constants. Measured with libzstd 1.5.4 at level 3, one thread, on
 * envelope lines of real events in 51 partitions (23 MB; 273 MB where the same events come twelve times over, which
 * flatters long histories); processor time of the latter; memory is what libzstd allocates, with 1 / 2 threads:
 *
 *     job      history        23 MB       273 MB   processor time   memory
 *     plain zstd -3      2 836 786   25 810 738   1                3.5 MB
 *     8 MiB    256 KiB   2 828 108   25 871 509   1.0 to 1.1       41 / 59 MB   (the library's default)
 *     4 MiB    256 KiB   2 832 908   26 175 299   1.1 to 1.2       21 / 35 MB   (chosen)
 *     4 MiB    1 MiB     2 827 572   25 522 311   1.2 to 1.4       21 / 35 MB
 *     2 MiB    256 KiB   2 837 860   26 852 969   1.2 to 1.5       11 / 19 MB
 *     2 MiB    1 MiB     2 828 740   25 473 810   1.6              11 / 19 MB
 *     1 MiB    256 KiB   2 849 294   28 462 151   1.6               6 / 11 MB
 *
 * Half the memory of the default for a tenth more time, and for two per-mille of ratio where nothing repeats: a pool in
 * 256 MB (spec 4.1) has to hold it beside a window. Below 4 MiB what each job takes to start is felt.
 */
#include "worker/compress.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define ZSTD_LEVEL        3
#define ZSTD_JOB_SIZE     (4 << 20)
#define ZSTD_OVERLAP_LOG  6 /* 9 is the whole window, each step less halves it: 256 KiB of level 3's 2 MiB */
#define ZSTD_STATE_SIZE   (5u << 19)
#define GZIP_LEVEL        6
#define GZIP_MEMORY_LEVEL 8
#define GZIP_OS_UNKNOWN   255
#define OUT_SIZE          131072

struct compressor {
    enum setting_compression kind;
    encode_emit *emit;
    void *argument;
    uint64_t text_size;
    uint64_t fed;
    ZSTD_CCtx *zstd;
    uint8_t last; /* the text's last byte, fed when it is complete */
    z_stream gzip;
    bool gzip_ready;
    gz_header gzip_header;
    uint8_t out[OUT_SIZE];
};

int compress_zstd_failed(size_t result, struct error *error)
{
    enum qs_error code =
        ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? QS_ERROR_NO_MEMORY : QS_ERROR_INPUT;

    return error_set(error, code, "zstd: %s", ZSTD_getErrorName(result));
}

static int give(struct compressor *compressor, const void *bytes, size_t size, struct error *error)
{
    int code = size == 0 ? 0 : compressor->emit(compressor->argument, bytes, size);

    if (code != 0) {
        return error_set(error, code < 0 ? (enum qs_error)code : QS_ERROR_SYSTEM,
                         "the encoded bytes were not taken: encoding stopped");
    }
    return 0;
}

static int zstd_begin(struct compressor *compressor, int threads, struct error *error)
{
    const struct {
        ZSTD_cParameter parameter;
        int value;
    } parameters[] = {{ZSTD_c_compressionLevel, ZSTD_LEVEL}, {ZSTD_c_nbWorkers, threads < 1 ? 1 : threads},
                      {ZSTD_c_jobSize, ZSTD_JOB_SIZE},       {ZSTD_c_overlapLog, ZSTD_OVERLAP_LOG},
                      {ZSTD_c_contentSizeFlag, 1},           {ZSTD_c_checksumFlag, 0}};
    size_t result = 0;

    compressor->zstd = ZSTD_createCCtx();
    if (compressor->zstd == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the zstd compressor");
    }
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters && !ZSTD_isError(result); i++) {
        result = ZSTD_CCtx_setParameter(compressor->zstd, parameters[i].parameter, parameters[i].value);
    }
    if (!ZSTD_isError(result)) {
        result = ZSTD_CCtx_setPledgedSrcSize(compressor->zstd, compressor->text_size);
    }
    return ZSTD_isError(result) ? compress_zstd_failed(result, error) : 0;
}

static int zstd_run(struct compressor *compressor, const void *bytes, size_t size, ZSTD_EndDirective directive,
                    struct error *error)
{
    ZSTD_inBuffer in = {bytes, size, 0};
    size_t left = 0;

    do {
        ZSTD_outBuffer out = {compressor->out, sizeof compressor->out, 0};
        left = ZSTD_compressStream2(compressor->zstd, &out, &in, directive);
        if (ZSTD_isError(left)) {
            return compress_zstd_failed(left, error);
        }
        int code = give(compressor, compressor->out, out.pos, error);
        if (code != 0) {
            return code;
        }
    } while (directive == ZSTD_e_end ? left != 0 : in.pos < in.size);
    return 0;
}

/* The last byte waits for the end of the frame. Were the last job full before that is told, it depended on whether a
 * thread is free whether the job ends the frame or an empty block behind it does. */
static int zstd_feed(struct compressor *compressor, const uint8_t *bytes, size_t size, struct error *error)
{
    if (compressor->fed == compressor->text_size) {
        compressor->last = bytes[--size];
    }
    return size == 0 ? 0 : zstd_run(compressor, bytes, size, ZSTD_e_continue, error);
}

static int zstd_finish(struct compressor *compressor, struct error *error)
{
    return zstd_run(compressor, &compressor->last, compressor->text_size == 0 ? 0 : 1, ZSTD_e_end, error);
}

static int gzip_begin(struct compressor *compressor, struct error *error)
{
    int result =
        deflateInit2(&compressor->gzip, GZIP_LEVEL, Z_DEFLATED, MAX_WBITS + 16, GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY);

    compressor->gzip_ready = result == Z_OK;
    if (result == Z_OK) {
        compressor->gzip_header.os = GZIP_OS_UNKNOWN; /* and no time, no name, no comment: all else is zero */
        result = deflateSetHeader(&compressor->gzip, &compressor->gzip_header);
    }
    if (result != Z_OK) {
        return error_set(error, result == Z_MEM_ERROR ? QS_ERROR_NO_MEMORY : QS_ERROR_INPUT,
                         "gzip: the compressor can't be set up (zlib says %d)", result);
    }
    return 0;
}

static int gzip_run(struct compressor *compressor, const uint8_t *bytes, size_t size, int flush, struct error *error)
{
    z_stream *gzip = &compressor->gzip;

    do {
        uInt piece = size > UINT_MAX ? UINT_MAX : (uInt)size;
        int result;
        /* zlib reads next_in only; without ZLIB_CONST its type just does not say so. */
        gzip->next_in = (Bytef *)(uintptr_t)bytes;
        gzip->avail_in = piece;
        bytes += piece;
        size -= piece;
        do {
            gzip->next_out = compressor->out;
            gzip->avail_out = sizeof compressor->out;
            result = deflate(gzip, flush);
            if (result == Z_STREAM_ERROR) {
                return error_set(error, QS_ERROR_INPUT, "gzip: the stream's state is broken");
            }
            int code = give(compressor, compressor->out, sizeof compressor->out - gzip->avail_out, error);
            if (code != 0) {
                return code;
            }
        } while (flush == Z_FINISH ? result != Z_STREAM_END : gzip->avail_out == 0);
    } while (size > 0);
    return 0;
}

struct compressor *compressor_create(enum setting_compression kind, uint64_t text_size, int threads, encode_emit *emit,
                                     void *argument, struct error *error)
{
    struct compressor *compressor = calloc(1, sizeof *compressor);
    int result = 0;

    if (compressor == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a compressor");
        return NULL;
    }
    compressor->kind = kind;
    compressor->emit = emit;
    compressor->argument = argument;
    compressor->text_size = text_size;
    switch (kind) {
    case COMPRESSION_ZSTD: result = zstd_begin(compressor, threads, error); break;
    case COMPRESSION_GZIP: result = gzip_begin(compressor, error); break;
    case COMPRESSION_NONE: break;
    case COMPRESSION_SNAPPY:
        result = error_set(error, QS_ERROR_INPUT, "snappy compresses pages of Parquet, not JSON Lines");
        break;
    }
    if (result != 0) {
        compressor_destroy(compressor);
        return NULL;
    }
    return compressor;
}

static int more_than_promised(const struct compressor *compressor, struct error *error)
{
    return error_set(error, QS_ERROR_INPUT, "the lines take more or fewer bytes than the %llu that were counted before",
                     (unsigned long long)compressor->text_size);
}

int compressor_feed(struct compressor *compressor, const void *bytes, size_t size, struct error *error)
{
    if (size == 0) {
        return 0;
    }
    if (size > compressor->text_size - compressor->fed) {
        return more_than_promised(compressor, error);
    }
    compressor->fed += size;
    switch (compressor->kind) {
    case COMPRESSION_ZSTD: return zstd_feed(compressor, bytes, size, error);
    case COMPRESSION_GZIP: return gzip_run(compressor, bytes, size, Z_NO_FLUSH, error);
    case COMPRESSION_NONE:
    case COMPRESSION_SNAPPY: break;
    }
    return give(compressor, bytes, size, error);
}

int compressor_finish(struct compressor *compressor, struct error *error)
{
    if (compressor->fed != compressor->text_size) {
        return more_than_promised(compressor, error);
    }
    switch (compressor->kind) {
    case COMPRESSION_ZSTD: return zstd_finish(compressor, error);
    case COMPRESSION_GZIP: return gzip_run(compressor, NULL, 0, Z_FINISH, error);
    case COMPRESSION_NONE:
    case COMPRESSION_SNAPPY: break;
    }
    return 0;
}

void compressor_destroy(struct compressor *compressor)
{
    if (compressor == NULL) {
        return;
    }
    ZSTD_freeCCtx(compressor->zstd);
    if (compressor->gzip_ready) {
        (void)deflateEnd(&compressor->gzip);
    }
    free(compressor);
}

uint64_t compressor_memory(enum setting_compression kind, uint64_t text_size, int threads)
{
    uint64_t workers = threads < 1 ? 1 : (uint64_t)threads;
    uint64_t jobs;

    switch (kind) {
    case COMPRESSION_ZSTD:
        /* Input: a job each and three to spare; output: a job each and one being written out; each worker's tables and
         * the stream's own. A short text fills none of it further than it is long, twice. */
        jobs = (2 * workers + 3) * ZSTD_JOB_SIZE;
        if (text_size < jobs / 2) {
            jobs = 2 * text_size;
        }
        return sizeof(struct compressor) + jobs + (workers + 1) * ZSTD_STATE_SIZE;
    case COMPRESSION_GZIP: return sizeof(struct compressor) + (1u << (MAX_WBITS + 2)) + (1u << (GZIP_MEMORY_LEVEL + 9));
    case COMPRESSION_NONE:
    case COMPRESSION_SNAPPY: break;
    }
    return sizeof(struct compressor);
}

uint64_t compressor_bound(enum setting_compression kind, uint64_t text_size)
{
    /* Blocks that don't shrink are stored: 3 bytes in 128 KiB (zstd), 5 in 16 KiB (zlib), and the ends. */
    return kind == COMPRESSION_NONE ? text_size : text_size + text_size / 2048 + 4096;
}
