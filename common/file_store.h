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

/* The boot probe and the cleaning of .tmp: the folder can be made and written. */
int file_store_probe(const char *root, const char *bucket, struct error *error);
int file_store_clean(const char *root, const char *bucket, struct error *error);

#endif
