/*
 * Where the bytes of a lake object come from when it is read back: a file, memory, or a body under way.
 *
 * JSON Lines are read forward, Parquet from its end and then here and there, so a source gives one of two calls or both.
 * Both block until they have their bytes or know that there are none.
 */
#ifndef COMMON_LAKE_OBJECT_SOURCE_H
#define COMMON_LAKE_OBJECT_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct object_source {
    void *source; /* what the calls are given; must outlive the reader */
    /* The next bytes, 1 … size of them, *got says how many; 0: the object has ended. NULL: can't be read forward. */
    int (*read)(void *source, void *buffer, size_t size, size_t *got, struct error *error);
    /* Exactly these bytes, which lie within the object; fewer is an error. NULL: can't be read at random. */
    int (*read_at)(void *source, uint64_t offset, void *buffer, size_t size, struct error *error);
    uint64_t size; /* of the object; only read_at needs it */
};

/* An object in memory, which is borrowed. */
struct memory_object {
    const void *bytes;
    size_t size;
    size_t at; /* of the forward stream: 0 to begin with */
};

struct object_source object_source_memory(struct memory_object *object);

/* A regular file open for reading, whose descriptor stays the caller's. */
struct file_object {
    int descriptor;
    uint64_t at; /* of the forward stream: 0 to begin with */
};

/* 0, or QS_ERROR_SYSTEM. */
int object_source_file(struct file_object *file, struct object_source *source, struct error *error);

#endif
