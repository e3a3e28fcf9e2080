/*
 * The blocking half of the directory store (file_store.h): what each operation does on the disk. No thread, no loop.
 *
 * An object is written in three steps: a temporary is made, filled, and published under its key. Only publishing makes
 * it visible, whole and durable; a crash before it leaves a temporary, which the next start removes.
 *
 * Every function returns 0 or error->code and fills *error: QS_ERROR_NOT_FOUND, QS_ERROR_INPUT for a key that can't be
 * a file, QS_ERROR_BODY, QS_ERROR_NO_MEMORY, or QS_ERROR_SYSTEM, retriable where the disk is full or ill.
 */
#ifndef COMMON_FILE_OBJECTS_H
#define COMMON_FILE_OBJECTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/object_store.h"

struct file_bucket {
    char *folder;      /* <root>/<bucket> */
    char *temporaries; /* <root>/<bucket>/.tmp */
};

/* QS_ERROR_INPUT for a key that can't be a file. Spec 2.1 makes none; but a key is also what a command is given, and what
 * a topic's name makes of it: it must not lead out of the bucket. */
int file_key_check(const char *key, struct error *error);

/* The two paths; nothing is touched. */
void file_bucket_open(struct file_bucket *bucket, const char *root, const char *name);
void file_bucket_free(struct file_bucket *bucket);
/* Both folders, and those above, where they are missing; what was made is durable. */
int file_bucket_make(const struct file_bucket *bucket, struct error *error);
/* That the bucket's folder is there: 0, or QS_ERROR_NOT_FOUND. */
int file_bucket_look(const struct file_bucket *bucket, struct error *error);
/* Removes every temporary. */
int file_bucket_clean(const struct file_bucket *bucket, struct error *error);

#define FILE_TEMPORARY_SIZE 48

/* A new, empty file under a name that no other has, in this process or another. */
int file_temporary_create(const struct file_bucket *bucket, char name[FILE_TEMPORARY_SIZE], struct error *error);
/* Writes at the position. Once *stop is set it ends soon, with QS_ERROR_TRANSPORT. */
int file_temporary_write(const struct file_bucket *bucket, const char *name, uint64_t position,
                         const struct object_body *body, const atomic_bool *stop, struct error *error);
/* fsync, rename, fsync of the folder. size: what the file must hold, UINT64_MAX: whatever it holds. After an error
 * nothing is left under the temporary's name. */
int file_temporary_publish(const struct file_bucket *bucket, const char *name, uint64_t size, const char *key,
                           struct error *error);
int file_temporary_remove(const struct file_bucket *bucket, const char *name, struct error *error);

/* A part's "ETag" is where it lies, `<position>-<size>`: from those, complete knows that the parts tile the file before
 * it is given its name. */
void file_part_etag(uint64_t position, uint64_t size, char etag[FILE_TEMPORARY_SIZE]);
/* The size of the whole; QS_ERROR_INPUT where the parts don't lie end to end from 0. */
int file_parts_size(const char *key, const struct object_part *parts, size_t count, uint64_t *size,
                    struct error *error);

int file_object_size(const struct file_bucket *bucket, const char *key, uint64_t *size, struct error *error);
/* *bytes is malloc and NUL-terminated. */
int file_object_read(const struct file_bucket *bucket, const char *key, size_t size_limit, char **bytes, size_t *size,
                     struct error *error);
/* size bytes from position on; QS_ERROR_BODY where the object ends before. */
int file_object_read_range(const struct file_bucket *bucket, const char *key, uint64_t position, size_t size,
                           char **bytes, struct error *error);
/* What isn't there is removed already. */
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

/* "<folder>/<name>", malloc. */
char *file_join(const char *folder, const char *name);
/* As error_set_errno(), retriable where time or an operator can mend it, with what to check for the errno. `what`
 * says what can't be done, `path` to what. */
int file_error(struct error *error, const char *what, const char *path);

#endif
