/*
 * The directory store's objects as they lie there: their size, their bytes, which there are, and their removal. (How one
 * comes to be there is in file_temporary.h.)
 *
 * It blocks. Every function returns 0 or error->code and fills *error: QS_ERROR_NOT_FOUND, QS_ERROR_INPUT for a key that
 * can't be a file, QS_ERROR_BODY, QS_ERROR_NO_MEMORY, or QS_ERROR_SYSTEM, retriable where the disk is ill.
 */
#ifndef COMMON_FILE_OBJECTS_H
#define COMMON_FILE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/file_bucket.h"
#include "common/object_store.h"

int file_object_size(const struct file_bucket *bucket, const char *key, uint64_t *size, struct error *error);
/* *bytes is malloc and NUL-terminated. */
int file_object_read(const struct file_bucket *bucket, const char *key, size_t size_limit, char **bytes, size_t *size,
                     struct error *error);
/* size bytes from position on; QS_ERROR_BODY where the object ends before. */
int file_object_read_range(const struct file_bucket *bucket, const char *key, uint64_t position, size_t size,
                           char **bytes, struct error *error);
/* What isn't there is removed already. Not made durable: only checkpoints are removed, and one that comes back with a
 * power cut is removed by the next round. */
int file_object_remove(const struct file_bucket *bucket, const char *key, struct error *error);

#define FILE_PAGE_SIZE 1000

struct file_page {
    struct listed_object *objects; /* keys are malloc */
    size_t count;
    bool more;
};

/* The first FILE_PAGE_SIZE keys that begin with prefix and come after `after` (NULL: from the start), in order of
 * bytes. No folder: an empty page. */
int file_objects_list(const struct file_bucket *bucket, const char *prefix, const char *after, struct file_page *page,
                      struct error *error);
void file_page_free(struct file_page *page);

#endif
