/*
 * Objects as files (file_temporary.h), written so that a crash at any instruction leaves either no file under the key or
 * the whole of it: the data is on the disk before the name is, and the name before anyone is told. A retried put makes a
 * new temporary, so pages that a failed fsync has dropped (the kernel reports such an error once, then calls them clean)
 * are never taken for written.
 *
 * Sources: POSIX rename(), fsync().
 */
#include "common/file_temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/process.h"

#define WRITE_SIZE 1048576u /* how much is written before *stop is looked at again */
#define NAME_TRIES 10

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

int file_temporaries_clean(const struct file_bucket *bucket, struct error *error)
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
        code = file_folders_make(bucket->temporaries, error);
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

/* Where the kernel has none yet, the counter alone tells names apart. */
static uint64_t random_bits(void)
{
    uint64_t bits = 0;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        bits = (uint64_t)clock_mono().v;
    }
    return bits;
}

/* A pid is unique only within its namespace, and two containers that are started alike and share a volume count alike:
 * one whose temporary the other's start has removed must not find the other's under its name. */
int file_temporary_create(const struct file_bucket *bucket, char name[FILE_TEMPORARY_SIZE], struct error *error)
{
    static atomic_uint counter;

    for (int i = 0; i < NAME_TRIES; i++) {
        snprintf(name, FILE_TEMPORARY_SIZE, "%ld-%u-%016" PRIx64, (long)getpid(), atomic_fetch_add(&counter, 1),
                 random_bits());
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
    } else if ((uint64_t)status.st_size != size) {
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
        code = file_folders_make(folder, error);
        failed = code == 0 ? rename(from, to) : failed;
    }
    if (code == 0) {
        code = failed != 0 ? file_error(error, "rename a temporary to", to) : file_folder_sync(folder, error);
    }
    free(folder);
    return code;
}

int file_temporary_publish(const struct file_bucket *bucket, const char *name, uint64_t size, const char *key,
                           struct error *error)
{
    char *to = file_object_path(bucket, key, error);
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
