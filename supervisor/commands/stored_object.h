/*
 * An object of the bucket as a source for object_reader.h: read in blocks that are fetched a few ahead where reading goes
 * forward, and kept a while, since a Parquet file's columns are read side by side. Memory is STORED_BLOCKS blocks.
 */
#ifndef SUPERVISOR_COMMANDS_STORED_OBJECT_H
#define SUPERVISOR_COMMANDS_STORED_OBJECT_H

#include "common/lake/object_source.h"
#include "supervisor/commands/bucket.h"

#define STORED_BLOCK_BYTES ((size_t)4 << 20)
#define STORED_BLOCKS      12

struct stored_object;

/* size: the object's. key and bucket must outlive it. */
struct stored_object *stored_object_open(struct bucket *bucket, const char *key, uint64_t size);
void stored_object_close(struct stored_object *object);
/* Both calls; the forward stream begins at 0. */
struct object_source stored_object_source(struct stored_object *object);
/* The failure of the bucket that ended a read, code 0 where there was none: what is read can then be right or wrong. */
const struct error *stored_object_failure(const struct stored_object *object);

#endif
