/*
 * The object store as a directory (spec 3.9): the same keys as files under <root>/<bucket>/, each written to a temporary
 * name under <root>/<bucket>/.tmp/, fsynced, renamed, its folder fsynced. Its calls run in order on one thread of its
 * own (all signals blocked there), so a slow disk never stalls the loop.
 */
#ifndef COMMON_FILE_STORE_H
#define COMMON_FILE_STORE_H

#include "common/object_store.h"
#include "common/reactor.h"

/* Makes the folders where they are missing. Does NOT empty .tmp: file_store_clean() does, once, before any worker
 * runs. */
struct object_store *file_store_create(struct reactor *reactor, const char *root, const char *bucket,
                                       store_observe *observe, void *argument, struct error *error);

/* For who only reads: the folder must be there, and nothing is made. */
struct object_store *file_store_open(struct reactor *reactor, const char *root, const char *bucket,
                                     struct error *error);

/* As s3_store_get_range(). */
struct store_call *file_store_get_range(struct object_store *store, const char *key, uint64_t position, size_t size,
                                        store_get_done *done, void *argument);

/* The boot probe and the cleaning of .tmp: the folder can be made and written. */
int file_store_probe(const char *root, const char *bucket, struct error *error);
int file_store_clean(const char *root, const char *bucket, struct error *error);

#endif
