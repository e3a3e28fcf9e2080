/*
 * See file_objects.h; the pages of a list are in file_list.c.
 */
#include "common/file_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder isn't an object, nor is what lies below a file. */
static int missing(struct error *error, const char *key, const char *path)
{
    return error_set(error, QS_ERROR_NOT_FOUND, "no object %s (no file %s)", key, path);
}

int file_object_size(const struct file_bucket *bucket, const char *key, uint64_t *size, struct error *error)
{
    char *path = file_object_path(bucket, key, error);

    if (path == NULL) {
        return (int)error->code;
    }
    struct stat status;
    int code = 0;
    if (stat(path, &status) != 0) {
        code = errno == ENOENT || errno == ENOTDIR ? missing(error, key, path) : file_error(error, "look at", path);
    } else if (!S_ISREG(status.st_mode)) {
        code = missing(error, key, path);
    } else {
        *size = (uint64_t)status.st_size;
    }
    free(path);
    return code;
}

/* An object that can be read. */
struct opened {
    char *path;
    int descriptor;
    uint64_t size;
};

static int look_at(struct opened *opened, const char *key, struct error *error)
{
    struct stat status;

    if (fstat(opened->descriptor, &status) != 0) {
        return file_error(error, "look at", opened->path);
    }
    if (!S_ISREG(status.st_mode)) {
        return missing(error, key, opened->path);
    }
    opened->size = (uint64_t)status.st_size;
    return 0;
}

static void close_object(struct opened *opened)
{
    if (opened->descriptor >= 0) {
        close(opened->descriptor);
    }
    free(opened->path);
}

/* After an error nothing is open. */
static int open_object(const struct file_bucket *bucket, const char *key, struct opened *opened, struct error *error)
{
    int code;

    *opened = (struct opened){.path = file_object_path(bucket, key, error), .descriptor = -1};
    if (opened->path == NULL) {
        return (int)error->code;
    }
    /* Not to wait for a writer where someone has put a pipe. */
    opened->descriptor = open(opened->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened->descriptor >= 0) {
        code = look_at(opened, key, error);
    } else if (errno == ENOENT || errno == ENOTDIR) {
        code = missing(error, key, opened->path);
    } else {
        code = file_error(error, "open", opened->path);
    }
    if (code != 0) {
        close_object(opened);
    }
    return code;
}

/* To the end that the size told: an object never changes under its name. */
static int read_bytes(const struct opened *opened, uint64_t position, size_t size, char **bytes, struct error *error)
{
    char *out = malloc(size + 1);

    if (out == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the %zu bytes of %s", size, opened->path);
    }
    size_t have = 0;
    while (have < size) {
        ssize_t got = pread(opened->descriptor, out + have, size - have, (off_t)(position + have));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            int code =
                got == 0 ? error_set(error, QS_ERROR_BODY, "%s ended after %zu of %zu bytes", opened->path, have, size)
                         : file_error(error, "read", opened->path);
            free(out);
            return code;
        }
        have += (size_t)got;
    }
    out[size] = '\0';
    *bytes = out;
    return 0;
}

int file_object_read(const struct file_bucket *bucket, const char *key, size_t size_limit, char **bytes, size_t *size,
                     struct error *error)
{
    struct opened opened;
    int code = open_object(bucket, key, &opened, error);

    if (code != 0) {
        return code;
    }
    if (opened.size > size_limit) {
        code = error_refuse(error, QS_ERROR_BODY, "%s has %" PRIu64 " bytes, more than the %zu that are read",
                            opened.path, opened.size, size_limit);
    } else {
        *size = (size_t)opened.size;
        code = read_bytes(&opened, 0, *size, bytes, error);
    }
    close_object(&opened);
    return code;
}

int file_object_read_range(const struct file_bucket *bucket, const char *key, uint64_t position, size_t size,
                           char **bytes, struct error *error)
{
    struct opened opened;
    int code = open_object(bucket, key, &opened, error);

    if (code != 0) {
        return code;
    }
    if (position > opened.size || size > opened.size - position) {
        code = error_refuse(error, QS_ERROR_BODY, "%s has %" PRIu64 " bytes, not the %zu from byte %" PRIu64 " on",
                            opened.path, opened.size, size, position);
    } else {
        code = read_bytes(&opened, position, size, bytes, error);
    }
    close_object(&opened);
    return code;
}

int file_object_remove(const struct file_bucket *bucket, const char *key, struct error *error)
{
    char *path = file_object_path(bucket, key, error);

    if (path == NULL) {
        return (int)error->code;
    }
    int code = 0;
    if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR && errno != EISDIR) {
        code = file_error(error, "remove", path);
    }
    free(path);
    return code;
}
