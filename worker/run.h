/*
 * Records in the order they are written in: a run is one partition's records, in offset order, as extents of blocks.
 */
#ifndef WORKER_RUN_H
#define WORKER_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "common/block.h"
#include "common/queen_api.h"

/* count records of block->records from first on. Holds one reference to the block. */
struct extent {
    struct block *block;
    size_t first;
    size_t count;
};

struct run {
    struct name partition;
    const struct extent *extents;
    size_t extent_count;
};

/* Where an encoder takes its runs from, partitions ascending as bytes. next() is called on the encoder's thread and may
 * block there; what it gives stays valid until the call after. 1: a run; 0: the end; negative enum qs_error: give up. */
struct run_source {
    int (*next)(struct run_source *source, struct run *run);
    /* The exact number of bytes of all lines (jsonl_run_size over all runs): a zstd frame declares it. */
    uint64_t text_size;
    struct name queue; /* whose records they are: Parquet says so in its footer. Stays as long as the source. */
};

#endif
