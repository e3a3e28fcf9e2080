/*
 * A bucket as a folder of the directory store (file_store.h): where it lies, what may be a key there, and what to tell an
 * operator whose disk refuses. It blocks. Functions that can fail return 0 or error->code and fill *error.
 */
#ifndef COMMON_FILE_BUCKET_H
#define COMMON_FILE_BUCKET_H

#include "common/error.h"

/* In a bucket's folder, beside its objects. */
#define FILE_TEMPORARIES ".tmp"

struct file_bucket {
    char *folder;      /* <root>/<bucket> */
    char *temporaries; /* <root>/<bucket>/.tmp */
};

/* The two paths; nothing is touched. */
void file_bucket_open(struct file_bucket *bucket, const char *root, const char *name);
void file_bucket_free(struct file_bucket *bucket);
/* Both folders, and those above, where they are missing; what was made is durable. */
int file_bucket_make(const struct file_bucket *bucket, struct error *error);
/* That the bucket's folder is there: 0, or QS_ERROR_NOT_FOUND. */
int file_bucket_look(const struct file_bucket *bucket, struct error *error);

/* QS_ERROR_INPUT for a key that can't be a file. Spec 2.1 makes none; but a key is also what a command is given, and what
 * a topic's name makes of it: it must not lead out of the bucket. */
int file_key_check(const char *key, struct error *error);
/* Where an object lies, malloc; NULL and *error where the key can't be a file. */
char *file_object_path(const struct file_bucket *bucket, const char *key, struct error *error);

/* "<folder>/<name>", malloc. */
char *file_join(const char *folder, const char *name);
/* A folder and those above it, where they are missing, each durable; and a folder's entries made durable. */
int file_folders_make(const char *path, struct error *error);
int file_folder_sync(const char *path, struct error *error);

/* As error_set_errno(), retriable where time or an operator can mend it, with what to check for the errno. `what`
 * says what can't be done, `path` to what. */
int file_error(struct error *error, const char *what, const char *path);

#endif
