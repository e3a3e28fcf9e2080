/*
 * Objects as files, written so that a crash at any instruction leaves either no file under the key or the whole of it:
 * the data is on the disk before the name is, and the name before anyone is told. A retried put makes a new temporary,
 * so pages that a failed fsync has dropped (the kernel reports such an error once, then calls them clean) are never
 * taken for written.
 *
 * A removal isn't made durable: only checkpoints are removed, and one that comes back with a power cut is removed by
 * the next round.
 *
 * Sources: POSIX rename(), fsync(); Linux fsync(2) ("fsync on the file descriptor of the directory is also needed").
 */
#include "common/file_objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/process.h"

#define TEMPORARIES  ".tmp"
#define WRITE_SIZE   1048576u /* how much is written before *stop is looked at again */
#define NAME_TRIES   1000
#define UNKNOWN_SIZE UINT64_MAX

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
    bucket->temporaries = file_join(bucket->folder, TEMPORARIES);
}

void file_bucket_free(struct file_bucket *bucket)
{
    free(bucket->folder);
    free(bucket->temporaries);
    bucket->folder = NULL;
    bucket->temporaries = NULL;
}

/* A file system that can't sync a folder says EINVAL; it has nothing better to offer. */
static int sync_folder(const char *path, struct error *error)
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
        return sync_folder("/", error);
    }
    *slash = '\0';
    int code = sync_folder(path, error);
    *slash = '/';
    return code;
}

static int make_folders(const char *path, struct error *error)
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
    return make_folders(bucket->temporaries, error);
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

/* Two pools may write to one folder: what another living process of this machine is writing stays. (A name whose process
 * is dead and whose pid somebody else has by now goes at a later start.) */
static bool is_being_written(const char *name)
{
    char *end;
    errno = 0;
    long pid = strtol(name, &end, 10);
    if (errno != 0 || *end != '-' || pid <= 0 || pid > INT_MAX || pid == (long)getpid()) {
        return false;
    }
    return process_runs((pid_t)pid);
}

int file_bucket_clean(const struct file_bucket *bucket, struct error *error)
{
    DIR *folder = opendir(bucket->temporaries);

    if (folder == NULL) {
        return errno == ENOENT ? 0 : file_error(error, "read", bucket->temporaries);
    }
    int code = 0;
    for (struct dirent *entry = readdir(folder); code == 0 && entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || is_being_written(entry->d_name)) {
            continue;
        }
        code = file_temporary_remove(bucket, entry->d_name, error);
    }
    closedir(folder);
    return code;
}

/* 0, a negative code, or 1 where the name is taken. */
static int create_empty(const struct file_bucket *bucket, const char *name, struct error *error)
{
    char *path = file_join(bucket->temporaries, name);

    int code = 0;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == ENOENT) {
        code = make_folders(bucket->temporaries, error);
        descriptor = code == 0 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    }
    if (descriptor >= 0) {
        close(descriptor);
    } else if (code == 0) {
        code = errno == EEXIST ? 1 : file_error(error, "create", path);
    }
    free(path);
    return code;
}

/* A pid is unique only within its namespace, and two containers can share a volume: a name that is there already is
 * passed over. */
int file_temporary_create(const struct file_bucket *bucket, char name[FILE_TEMPORARY_SIZE], struct error *error)
{
    static atomic_ulong counter;

    for (int i = 0; i < NAME_TRIES; i++) {
        snprintf(name, FILE_TEMPORARY_SIZE, "%ld-%lu", (long)getpid(), atomic_fetch_add(&counter, 1));
        int code = create_empty(bucket, name, error);
        if (code <= 0) {
            return code;
        }
    }
    return error_set(error, QS_ERROR_SYSTEM, "no name is free in %s (check what fills it)", bucket->temporaries);
}

/* An upload's id comes back from whoever keeps it: it must be one name and no path. */
static bool is_temporary_name(const char *name)
{
    return name[0] >= '0' && name[0] <= '9' && strchr(name, '/') == NULL && strlen(name) < FILE_TEMPORARY_SIZE;
}

/* A descriptor, or a negative code. */
static int open_temporary(const struct file_bucket *bucket, const char *name, int flags, struct error *error)
{
    if (!is_temporary_name(name)) {
        return error_set(error, QS_ERROR_NOT_FOUND, "no upload %s", name);
    }
    char *path = file_join(bucket->temporaries, name);
    int descriptor = open(path, flags | O_CLOEXEC);
    if (descriptor < 0) {
        descriptor = errno == ENOENT ? error_set(error, QS_ERROR_NOT_FOUND, "no upload %s (no file %s)", name, path)
                                     : file_error(error, "open", path);
    }
    free(path);
    return descriptor;
}

static int write_piece(int descriptor, const struct iovec *piece, uint64_t position, const atomic_bool *stop,
                       struct error *error)
{
    const char *at = piece->iov_base;
    size_t left = piece->iov_len;

    while (left > 0) {
        if (atomic_load(stop)) {
            return error_set(error, QS_ERROR_TRANSPORT, "cancelled");
        }
        ssize_t size = pwrite(descriptor, at, left < WRITE_SIZE ? left : WRITE_SIZE, (off_t)position);
        if (size < 0) {
            if (errno == EINTR) {
                continue;
            }
            return QS_ERROR_SYSTEM;
        }
        at += size;
        left -= (size_t)size;
        position += (uint64_t)size;
    }
    return 0;
}

int file_temporary_write(const struct file_bucket *bucket, const char *name, uint64_t position,
                         const struct object_body *body, const atomic_bool *stop, struct error *error)
{
    int descriptor = open_temporary(bucket, name, O_WRONLY, error);

    if (descriptor < 0) {
        return descriptor;
    }
    int code = 0;
    for (size_t i = 0; code == 0 && i < body->piece_count; i++) {
        code = write_piece(descriptor, &body->pieces[i], position, stop, error);
        position += body->pieces[i].iov_len;
    }
    if (code == QS_ERROR_SYSTEM) {
        code = file_error(error, "write to", bucket->temporaries);
    }
    close(descriptor);
    return code;
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
    if (strncmp(key, TEMPORARIES, sizeof TEMPORARIES - 1) == 0 && strcspn(key, "/") == sizeof TEMPORARIES - 1) {
        return error_set(error, QS_ERROR_INPUT, "key %s: %s is where a directory keeps its temporaries", key,
                         TEMPORARIES);
    }
    return 0;
}

/* NULL and *error where the key can't be a file. */
static char *object_path(const struct file_bucket *bucket, const char *key, struct error *error)
{
    return file_key_check(key, error) == 0 ? file_join(bucket->folder, key) : NULL;
}

static int sync_temporary(const struct file_bucket *bucket, const char *name, uint64_t size, struct error *error)
{
    int descriptor = open_temporary(bucket, name, O_WRONLY, error);

    if (descriptor < 0) {
        return descriptor;
    }
    struct stat status;
    int code = 0;
    if (fsync(descriptor) != 0 || fstat(descriptor, &status) != 0) {
        code = file_error(error, "sync a file in", bucket->temporaries);
    } else if (size != UNKNOWN_SIZE && (uint64_t)status.st_size != size) {
        code = error_set(error, QS_ERROR_INTEGRITY, "%s/%s has %lld bytes where %llu were written", bucket->temporaries,
                         name, (long long)status.st_size, (unsigned long long)size);
    }
    close(descriptor);
    return code;
}

/* The folder is made only once it is found missing: it is there for all but the first object of an hour. */
static int move_into_place(const char *from, const char *to, struct error *error)
{
    size_t folder_size = strlen(to);
    while (folder_size > 0 && to[folder_size - 1] != '/') {
        folder_size--;
    }
    char *folder = memory_copy(to, folder_size > 0 ? folder_size - 1 : 0);
    int code = 0;
    int failed = rename(from, to);
    if (failed != 0 && errno == ENOENT) {
        code = make_folders(folder, error);
        failed = code == 0 ? rename(from, to) : failed;
    }
    if (code == 0) {
        code = failed != 0 ? file_error(error, "rename a temporary to", to) : sync_folder(folder, error);
    }
    free(folder);
    return code;
}

int file_temporary_publish(const struct file_bucket *bucket, const char *name, uint64_t size, const char *key,
                           struct error *error)
{
    char *to = object_path(bucket, key, error);
    char *from = file_join(bucket->temporaries, name);
    int code = QS_ERROR_INPUT;

    if (to != NULL) {
        code = sync_temporary(bucket, name, size, error);
    }
    if (to != NULL && code == 0) {
        code = move_into_place(from, to, error);
    }
    if (code != 0) {
        struct error ignored;
        file_temporary_remove(bucket, name, &ignored);
    }
    free(from);
    free(to);
    return code;
}

int file_temporary_remove(const struct file_bucket *bucket, const char *name, struct error *error)
{
    if (strchr(name, '/') != NULL) {
        return 0;
    }
    char *path = file_join(bucket->temporaries, name);
    int code = 0;
    if (unlink(path) != 0 && errno != ENOENT && errno != EISDIR) {
        code = file_error(error, "remove", path);
    }
    free(path);
    return code;
}

void file_part_etag(uint64_t position, uint64_t size, char etag[FILE_TEMPORARY_SIZE])
{
    snprintf(etag, FILE_TEMPORARY_SIZE, "%" PRIu64 "-%" PRIu64, position, size);
}

static bool parse_part_etag(const char *etag, uint64_t *position, uint64_t *size)
{
    char *end = NULL;

    *position = strtoull(etag, &end, 10);
    if (end == etag || *end != '-') {
        return false;
    }
    *size = strtoull(end + 1, &end, 10);
    return *end == '\0';
}

int file_parts_size(const char *key, const struct object_part *parts, size_t count, uint64_t *size, struct error *error)
{
    *size = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t position = 0;
        uint64_t part_size = 0;
        if (parts[i].number != i + 1 || !parse_part_etag(parts[i].etag, &position, &part_size) || position != *size) {
            return error_set(error, QS_ERROR_INPUT, "part %zu of %s (number %u, \"%s\") isn't the one at %" PRIu64,
                             i + 1, key, parts[i].number, parts[i].etag, *size);
        }
        *size += part_size;
    }
    return 0;
}

/* A folder isn't an object, nor is what lies below a file. */
static int missing(struct error *error, const char *key, const char *path)
{
    return error_set(error, QS_ERROR_NOT_FOUND, "no object %s (no file %s)", key, path);
}

int file_object_size(const struct file_bucket *bucket, const char *key, uint64_t *size, struct error *error)
{
    char *path = object_path(bucket, key, error);

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

/* Reads to the end, which is where the size said: an object never changes under its name. */
static int read_whole(int descriptor, const char *path, size_t size, char **bytes, struct error *error)
{
    char *out = malloc(size + 1);

    if (out == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the %zu bytes of %s", size, path);
    }
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(descriptor, out + have, size - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            int code = got == 0 ? error_set(error, QS_ERROR_BODY, "%s ended after %zu of %zu bytes", path, have, size)
                                : file_error(error, "read", path);
            free(out);
            return code;
        }
        have += (size_t)got;
    }
    out[size] = '\0';
    *bytes = out;
    return 0;
}

static int read_open(int descriptor, const char *key, const char *path, size_t size_limit, char **bytes, size_t *size,
                     struct error *error)
{
    struct stat status;

    if (fstat(descriptor, &status) != 0) {
        return file_error(error, "look at", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return missing(error, key, path);
    }
    if ((uintmax_t)status.st_size > size_limit) {
        int code = error_set(error, QS_ERROR_BODY, "%s has %lld bytes, more than the %zu that are read", path,
                             (long long)status.st_size, size_limit);
        error->retriable = false;
        return code;
    }
    *size = (size_t)status.st_size;
    return read_whole(descriptor, path, *size, bytes, error);
}

/* A descriptor, or -1 and *error. Not to wait for a writer where someone has put a pipe. */
static int open_object(const char *key, const char *path, struct error *error)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        missing(error, key, path);
    } else if (descriptor < 0) {
        file_error(error, "open", path);
    }
    return descriptor;
}

int file_object_read(const struct file_bucket *bucket, const char *key, size_t size_limit, char **bytes, size_t *size,
                     struct error *error)
{
    char *path = object_path(bucket, key, error);

    if (path == NULL) {
        return (int)error->code;
    }
    int descriptor = open_object(key, path, error);
    int code = descriptor < 0 ? (int)error->code : 0;
    if (descriptor >= 0) {
        code = read_open(descriptor, key, path, size_limit, bytes, size, error);
        close(descriptor);
    }
    free(path);
    return code;
}

static int read_range(int descriptor, const char *key, const char *path, uint64_t position, size_t size, char **bytes,
                      struct error *error)
{
    struct stat status;

    if (fstat(descriptor, &status) != 0) {
        return file_error(error, "look at", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return missing(error, key, path);
    }
    if (position > (uint64_t)status.st_size || size > (uint64_t)status.st_size - position) {
        error_set(error, QS_ERROR_BODY, "%s has %lld bytes, not the %zu from byte %llu on", path,
                  (long long)status.st_size, size, (unsigned long long)position);
        error->retriable = false;
        return QS_ERROR_BODY;
    }
    if (lseek(descriptor, (off_t)position, SEEK_SET) < 0) {
        return file_error(error, "read", path);
    }
    return read_whole(descriptor, path, size, bytes, error);
}

int file_object_read_range(const struct file_bucket *bucket, const char *key, uint64_t position, size_t size,
                           char **bytes, struct error *error)
{
    char *path = object_path(bucket, key, error);

    if (path == NULL) {
        return (int)error->code;
    }
    int descriptor = open_object(key, path, error);
    int code = descriptor < 0 ? (int)error->code : 0;
    if (descriptor >= 0) {
        code = read_range(descriptor, key, path, position, size, bytes, error);
        close(descriptor);
    }
    free(path);
    return code;
}

int file_object_remove(const struct file_bucket *bucket, const char *key, struct error *error)
{
    char *path = object_path(bucket, key, error);

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
