/*
 * How the directory store writes an object: a temporary is made, filled, and published under its key. Only publishing
 * makes it visible, whole and durable; a crash before it leaves a temporary, which the next start removes. An upload of
 * parts is a temporary too.
 *
 * It blocks. Every function returns 0 or error->code and fills *error: QS_ERROR_NOT_FOUND for a temporary that isn't
 * there, QS_ERROR_INPUT for a key that can't be a file, QS_ERROR_INTEGRITY, or QS_ERROR_SYSTEM, retriable where the disk
 * is full or ill.
 */
#ifndef COMMON_FILE_TEMPORARY_H
#define COMMON_FILE_TEMPORARY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/file_bucket.h"
#include "common/object_store.h"

#define FILE_TEMPORARY_SIZE 48

/* Removes every temporary. */
int file_temporaries_clean(const struct file_bucket *bucket, struct error *error);

/* A new, empty file under a name that no other has, in this process or another. */
int file_temporary_create(const struct file_bucket *bucket, char name[FILE_TEMPORARY_SIZE], struct error *error);
/* Writes at the position. Once *stop is set it ends soon, with QS_ERROR_TRANSPORT. */
int file_temporary_write(const struct file_bucket *bucket, const char *name, uint64_t position,
                         const struct object_body *body, const atomic_bool *stop, struct error *error);
/* fsync, rename, fsync of the folder. size: what the file must hold. After an error nothing is left under the
 * temporary's name. */
int file_temporary_publish(const struct file_bucket *bucket, const char *name, uint64_t size, const char *key,
                           struct error *error);
int file_temporary_remove(const struct file_bucket *bucket, const char *name, struct error *error);

/* A part's "ETag" is where it lies, `<position>-<size>`: from those, complete knows that the parts tile the file before
 * it is given its name. */
void file_part_etag(uint64_t position, uint64_t size, char etag[FILE_TEMPORARY_SIZE]);
/* The size of the whole; QS_ERROR_INPUT where the parts don't lie end to end from 0. */
int file_parts_size(const char *key, const struct object_part *parts, size_t count, uint64_t *size,
                    struct error *error);

#endif
