/*
 * The checkpoint (spec 2.4): where each partition's reading stands after a window; a cache, never the truth. Written
 * and read as a stream: a million entries make no tree.
 */
#ifndef COMMON_LAKE_CHECKPOINT_H
#define COMMON_LAKE_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/queen_api.h"

struct checkpoint_writer;

/* zstd level 3, into memory. Positions must be added sorted by name as bytes. NULL if out of memory. */
struct checkpoint_writer *checkpoint_begin(int64_t k, struct broker_us end);
int checkpoint_add(struct checkpoint_writer *writer, struct name partition, int64_t position,
                   const struct partition_id *id);
/* Ends it and frees the writer; *bytes is malloc. */
int checkpoint_finish(struct checkpoint_writer *writer, char **bytes, size_t *size);
void checkpoint_discard(struct checkpoint_writer *writer);

/* Calls `entry` for each position (name valid during the call only; id NULL where there is none). QS_ERROR_BODY where it
 * isn't a checkpoint, or where entry returns nonzero; what was told before must then be forgotten. Memory is independent
 * of the number of entries. */
typedef int checkpoint_entry(void *argument, struct name partition, int64_t position, const struct partition_id *id);
int checkpoint_read(const char *bytes, size_t size, int64_t *k, struct broker_us *end, checkpoint_entry *entry,
                    void *argument, struct error *error);

#endif
