/*
 * Parquet (spec 2.2): five columns of all records, in row groups of 100 000, as one stream of bytes that never goes back.
 * Nothing is allocated per record. Held in memory are a page of each column in the making and the finished pages of one
 * row group, compressed; a payload larger than a page is read from where it lies.
 */
#ifndef WORKER_PARQUET_H
#define WORKER_PARQUET_H

#include "worker/encode_stream.h"

struct parquet;

/* codec: COMPRESSION_ZSTD or COMPRESSION_SNAPPY. queue must outlive it. NULL and *error where out of memory or where the
 * codec is neither. emit is called with 0 bytes too, at each page. */
struct parquet *parquet_create(enum setting_compression codec, struct name queue, encode_emit *emit, void *argument,
                               struct error *error);
/* emit's nonzero return ends the call with that code. After any failure only parquet_destroy() is left. */
int parquet_write_run(struct parquet *parquet, const struct run *run, struct error *error);
/* Ends the last row group and the file. */
int parquet_finish(struct parquet *parquet, struct error *error);
void parquet_destroy(struct parquet *parquet);

/* Bytes that it holds at the most beside finished pages, and that a file can have, where the same records take text_size
 * bytes as lines (jsonl_run_size): a line spells out more than its columns do. */
uint64_t parquet_memory(enum setting_compression codec, uint64_t text_size);
uint64_t parquet_bound(enum setting_compression codec, uint64_t text_size);

#endif
