/* Objects in memory and in files, as sources: object_source.h. */
#include "common/lake/object_source.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int memory_read(void *source, void *buffer, size_t size, size_t *got, struct error *error)
{
    struct memory_object *object = source;
    size_t left = object->size - object->at;

    (void)error;
    *got = size < left ? size : left;
    if (*got > 0) {
        memcpy(buffer, (const char *)object->bytes + object->at, *got);
        object->at += *got;
    }
    return 0;
}

static int memory_read_at(void *source, uint64_t offset, void *buffer, size_t size, struct error *error)
{
    const struct memory_object *object = source;

    if (offset > object->size || size > object->size - offset) {
        return error_set(error, QS_ERROR_BODY, "the object ends before what is to be read of it");
    }
    if (size > 0) {
        memcpy(buffer, (const char *)object->bytes + offset, size);
    }
    return 0;
}

struct object_source object_source_memory(struct memory_object *object)
{
    return (struct object_source){object, memory_read, memory_read_at, object->size};
}

static int file_read(void *source, void *buffer, size_t size, size_t *got, struct error *error)
{
    struct file_object *file = source;
    ssize_t count;

    do {
        count = pread(file->descriptor, buffer, size, (off_t)file->at);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        return error_set_errno(error, "reading the object failed");
    }
    file->at += (uint64_t)count;
    *got = (size_t)count;
    return 0;
}

static int file_read_at(void *source, uint64_t offset, void *buffer, size_t size, struct error *error)
{
    const struct file_object *file = source;
    size_t done = 0;

    while (done < size) {
        ssize_t count = pread(file->descriptor, (char *)buffer + done, size - done, (off_t)(offset + done));
        if (count < 0 && errno != EINTR) {
            return error_set_errno(error, "reading the object failed");
        }
        if (count == 0) {
            return error_set(error, QS_ERROR_BODY, "the object became shorter while it was read");
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return 0;
}

int object_source_file(struct file_object *file, struct object_source *source, struct error *error)
{
    struct stat status;

    if (fstat(file->descriptor, &status) != 0) {
        return error_set_errno(error, "the object's size can't be had");
    }
    *source = (struct object_source){file, file_read, file_read_at, (uint64_t)status.st_size};
    return 0;
}
