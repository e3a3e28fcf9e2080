/*
 * Runs in, bytes out (encode_stream.h): takes each run to the format, counts it, and hashes what comes out on its way to
 * whoever asked. SHA-256 is the manifest's (spec 2.3); hashes that a store wants are the business of who uploads.
 */
#include "worker/encode_stream.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "worker/compress.h"
#include "worker/jsonl.h"

struct outlet {
    encode_emit *emit;
    void *argument;
    EVP_MD_CTX *sha256;
    uint64_t bytes;
};

static int outlet_take(void *argument, const uint8_t *bytes, size_t size)
{
    struct outlet *outlet = argument;

    if (EVP_DigestUpdate(outlet->sha256, bytes, size) != 1) {
        return QS_ERROR_NO_MEMORY;
    }
    outlet->bytes += size;
    return outlet->emit(outlet->argument, bytes, size);
}

/* A partition may come in several runs, one behind the other: it counts once. */
static void count_run(struct encode_result *result, const struct run *run, struct name *last)
{
    uint64_t before = result->records;

    for (size_t i = 0; i < run->extent_count; i++) {
        const struct extent *extent = &run->extents[i];
        for (size_t j = 0; j < extent->count; j++) {
            struct broker_us ts = extent->block->records[extent->first + j].ts;
            if (result->records + j == 0 || ts.v < result->min_ts.v) {
                result->min_ts = ts;
            }
            if (result->records + j == 0 || ts.v > result->max_ts.v) {
                result->max_ts = ts;
            }
        }
        result->records += extent->count;
    }
    if (result->records > before && (last->bytes != run->partition.bytes || last->size != run->partition.size)) {
        result->partitions++;
        *last = run->partition;
    }
}

static int write_runs(struct jsonl *jsonl, struct run_source *source, struct encode_result *result, struct error *error)
{
    struct name last = {NULL, 0};
    struct run run;
    int next;

    while ((next = source->next(source, &run)) == 1) {
        count_run(result, &run, &last);
        int code = jsonl_write_run(jsonl, &run, error);
        if (code != 0) {
            return code;
        }
    }
    if (next < 0) {
        return error_set(error, (enum qs_error)next, "the window's records could not be had: encoding stopped");
    }
    return jsonl_flush(jsonl, error);
}

static int encode_jsonl(const struct window_shape *shape, struct run_source *source, int compression_threads,
                        struct outlet *outlet, struct encode_result *result, struct error *error)
{
    struct compressor *compressor =
        compressor_create(shape->compression, source->text_size, compression_threads, outlet_take, outlet, error);
    struct jsonl *jsonl;
    int code;

    if (compressor == NULL) {
        return error != NULL ? (int)error->code : QS_ERROR_NO_MEMORY;
    }
    jsonl = jsonl_create(compressor);
    if (jsonl == NULL) {
        code = error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a line buffer");
    } else {
        code = write_runs(jsonl, source, result, error);
    }
    if (code == 0) {
        code = compressor_finish(compressor, error);
    }
    jsonl_destroy(jsonl);
    compressor_destroy(compressor);
    return code;
}

int encode_stream(const struct window_shape *shape, struct run_source *source, int compression_threads,
                  encode_emit *emit, void *argument, struct encode_result *result, struct error *error)
{
    struct outlet outlet = {emit, argument, EVP_MD_CTX_new(), 0};
    int code;

    result->records = 0;
    result->partitions = 0;
    result->min_ts = (struct broker_us){0};
    result->max_ts = (struct broker_us){0};
    if (outlet.sha256 == NULL || EVP_DigestInit_ex(outlet.sha256, EVP_sha256(), NULL) != 1) {
        code = error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a SHA-256");
    } else if (shape->format == FORMAT_JSONL) {
        code = encode_jsonl(shape, source, compression_threads, &outlet, result, error);
    } else {
        code = error_set(error, QS_ERROR_INPUT, "format parquet: not written by this version");
    }
    if (code == 0 && EVP_DigestFinal_ex(outlet.sha256, result->sha256, NULL) != 1) {
        code = error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a SHA-256");
    }
    result->bytes = outlet.bytes;
    EVP_MD_CTX_free(outlet.sha256);
    return code;
}
