/*
 * JSON Lines (spec 2.2): a record a line, written through a buffer of fixed size into a compressor. Nothing is
 * allocated per record, and no payload is ever held twice, whatever its size.
 */
#ifndef WORKER_JSONL_H
#define WORKER_JSONL_H

#include "worker/compress.h"
#include "worker/run.h"

struct jsonl;

/* Writes into compressor, which must outlive it. NULL if out of memory. */
struct jsonl *jsonl_create(struct compressor *compressor);
int jsonl_write_run(struct jsonl *jsonl, const struct run *run, struct error *error);
/* Hands on what is still in the buffer: once, after the last run. */
int jsonl_flush(struct jsonl *jsonl, struct error *error);
void jsonl_destroy(struct jsonl *jsonl);

/* Bytes that it holds, beside a partition's name in the lake's spelling. */
uint64_t jsonl_memory(void);

#endif
