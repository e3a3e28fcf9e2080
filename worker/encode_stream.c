/*
 * Runs in, bytes out (encode_stream.h): takes each run to the format, counts it, and hashes what comes out on its way to
 * whoever asked. SHA-256 is the manifest's (spec 2.3); hashes that a store wants are the business of who uploads.
 */
#include "worker/encode_stream.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "worker/compress.h"
#include "worker/jsonl.h"
#include "worker/parquet.h"

struct outlet {
    encode_emit *emit;
    void *argument;
    EVP_MD_CTX *sha256;
    uint64_t bytes;
};

static int outlet_take(void *argument, const uint8_t *bytes, size_t size)
{
    struct outlet *outlet = argument;

    if (size > 0 && EVP_DigestUpdate(outlet->sha256, bytes, size) != 1) {
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

/* Of one of the two formats. */
typedef int write_run(void *format, const struct run *run, struct error *error);

static int write_jsonl_run(void *format, const struct run *run, struct error *error)
{
    return jsonl_write_run(format, run, error);
}

static int write_parquet_run(void *format, const struct run *run, struct error *error)
{
    return parquet_write_run(format, run, error);
}

static int write_runs(void *format, write_run *write, struct run_source *source, struct encode_result *result,
                      struct error *error)
{
    struct name last = {NULL, 0};
    struct run run;
    int next;

    while ((next = source->next(source, &run)) == 1) {
        count_run(result, &run, &last);
        int code = write(format, &run, error);
        if (code != 0) {
            return code;
        }
    }
    if (next < 0) {
        return error_set(error, (enum qs_error)next, "the window's records could not be had: encoding stopped");
    }
    return 0;
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
        code = write_runs(jsonl, write_jsonl_run, source, result, error);
    }
    if (code == 0) {
        code = jsonl_flush(jsonl, error);
    }
    if (code == 0) {
        code = compressor_finish(compressor, error);
    }
    jsonl_destroy(jsonl);
    compressor_destroy(compressor);
    return code;
}

static int encode_parquet(const struct window_shape *shape, struct run_source *source, struct outlet *outlet,
                          struct encode_result *result, struct error *error)
{
    struct parquet *parquet = parquet_create(shape->compression, source->queue, outlet_take, outlet, error);
    int code;

    if (parquet == NULL) {
        return error != NULL ? (int)error->code : QS_ERROR_NO_MEMORY;
    }
    code = write_runs(parquet, write_parquet_run, source, result, error);
    if (code == 0) {
        code = parquet_finish(parquet, error);
    }
    parquet_destroy(parquet);
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
        code = encode_parquet(shape, source, &outlet, result, error);
    }
    if (code == 0 && EVP_DigestFinal_ex(outlet.sha256, result->sha256, NULL) != 1) {
        code = error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a SHA-256");
    }
    result->bytes = outlet.bytes;
    EVP_MD_CTX_free(outlet.sha256);
    return code;
}
