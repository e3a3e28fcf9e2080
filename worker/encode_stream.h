/*
 * The encoding itself, with no thread: runs in, bytes out. encode_thread.c drives it, and so do the simulator and the
 * tests.
 */
#ifndef WORKER_ENCODE_STREAM_H
#define WORKER_ENCODE_STREAM_H

#include "worker/encode.h"

/* Takes `size` bytes (valid during the call); nonzero stops the encoding with that error. Parquet calls it with none at
 * each page too, since its bytes come a row group at a time. */
typedef int encode_emit(void *argument, const uint8_t *bytes, size_t size);

/* Runs `source` to its end through the format and compression of `shape`. Fills records, partitions, min_ts, max_ts,
 * bytes and sha256 of result. compression_threads >= 1. */
int encode_stream(const struct window_shape *shape, struct run_source *source, int compression_threads,
                  encode_emit *emit, void *argument, struct encode_result *result, struct error *error);

/* The bytes of all lines of a run (uncompressed JSONL). */
uint64_t jsonl_run_size(const struct run *run);
/* What a record's line takes beside its partition's spelling; partition_spelled is json_spelled_size() of the name. */
uint64_t jsonl_record_size(const struct record *record, size_t partition_spelled);

#endif
