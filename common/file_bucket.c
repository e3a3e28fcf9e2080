/*
 * See file_bucket.h.
 *
 * Source: Linux fsync(2) ("fsync on the file descriptor of the directory is also needed").
 */
#include "common/file_bucket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memory.h"

static const char *what_to_check(int number)
{
    switch (number) {
    case ENOSPC: return " (check the free space and the free inodes there)";
    case EDQUOT: return " (check the quota there)";
    case EACCES:
    case EPERM: return " (check that the user of queen-s3 may write there)";
    case EROFS: return " (check why it is mounted read-only)";
    case ENOTDIR: return " (check that every part of the path is a folder)";
    case EIO: return " (check the disk and the kernel's log)";
    case EFBIG: return " (check the limit on the size of a file)";
    default: return "";
    }
}

/* Those that pass by themselves or once someone has made room, with no change to the configuration. ENOENT: a folder
 * was removed under us; the next attempt makes it anew. */
static bool passes(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case ENOENT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EINTR:
    case ESTALE:
    case ETIMEDOUT: return true;
    default: return false;
    }
}

int file_error(struct error *error, const char *what, const char *path)
{
    int number = errno;
    int code = error_set_errno(error, "can't %s %s%s", what, path, what_to_check(number));

    error->retriable = passes(number);
    return code;
}

char *file_join(const char *folder, const char *name)
{
    return memory_format("%s/%s", folder, name);
}

void file_bucket_open(struct file_bucket *bucket, const char *root, const char *name)
{
    bucket->folder = file_join(root, name);
    bucket->temporaries = file_join(bucket->folder, FILE_TEMPORARIES);
}

void file_bucket_free(struct file_bucket *bucket)
{
    free(bucket->folder);
    free(bucket->temporaries);
    bucket->folder = NULL;
    bucket->temporaries = NULL;
}

/* A file system that can't sync a folder says EINVAL; it has nothing better to offer. */
int file_folder_sync(const char *path, struct error *error)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor < 0) {
        return file_error(error, "open", path);
    }
    int code = 0;
    if (fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP) {
        code = file_error(error, "sync", path);
    }
    close(descriptor);
    return code;
}

static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* One level; path is cut and mended at its last slash to name the folder above, whose entry has to be durable too. */
static int make_level(char *path, struct error *error)
{
    if (mkdir(path, 0777) != 0) {
        int number = errno;
        if (number == EEXIST || is_folder(path)) {
            return 0;
        }
        errno = number;
        return file_error(error, "make the folder", path);
    }
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) {
        return file_folder_sync("/", error);
    }
    *slash = '\0';
    int code = file_folder_sync(path, error);
    *slash = '/';
    return code;
}

int file_folders_make(const char *path, struct error *error)
{
    char *copy = memory_copy_text(path);
    int code = 0;

    for (char *slash = copy; code == 0 && slash != NULL;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
        code = make_level(copy, error);
        if (slash != NULL) {
            *slash = '/';
        }
    }
    free(copy);
    return code;
}

int file_bucket_make(const struct file_bucket *bucket, struct error *error)
{
    return file_folders_make(bucket->temporaries, error);
}

int file_bucket_look(const struct file_bucket *bucket, struct error *error)
{
    struct stat status;

    if (stat(bucket->folder, &status) == 0 && S_ISDIR(status.st_mode)) {
        return 0;
    }
    return error_set(error, QS_ERROR_NOT_FOUND, "there is no folder %s (QUEEN_S3_ENDPOINT and QUEEN_S3_BUCKET name it)",
                     bucket->folder);
}

int file_key_check(const char *key, struct error *error)
{
    const char *part = key;

    for (;;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.')) {
            return error_set(error, QS_ERROR_INPUT, "key %s: no part of a key in a directory may be empty, . or ..",
                             key);
        }
        if (size > NAME_MAX) {
            return error_set(error, QS_ERROR_INPUT,
                             "key %.80s...: no part of a key in a directory may be longer than %d bytes", key,
                             NAME_MAX);
        }
        if (part[size] == '\0') {
            break;
        }
        part += size + 1;
    }
    if (strncmp(key, FILE_TEMPORARIES, sizeof FILE_TEMPORARIES - 1) == 0 &&
        strcspn(key, "/") == sizeof FILE_TEMPORARIES - 1) {
        return error_set(error, QS_ERROR_INPUT, "key %s: %s is where a directory keeps its temporaries", key,
                         FILE_TEMPORARIES);
    }
    return 0;
}

char *file_object_path(const struct file_bucket *bucket, const char *key, struct error *error)
{
    return file_key_check(key, error) == 0 ? file_join(bucket->folder, key) : NULL;
}
