/* An object of the bucket, in blocks: stored_object.h. */
#include "supervisor/commands/stored_object.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define AHEAD 2 /* blocks asked for beyond the one that is needed */

struct stored_block {
    struct stored_object *object;
    bool used;
    bool done;
    uint64_t number;
    uint64_t last_use;
    struct bucket_fetch fetch;
    char *bytes;
    size_t size;
};

struct stored_object {
    struct bucket *bucket;
    const char *key;
    uint64_t size;
    uint64_t at;     /* of the forward stream */
    uint64_t newest; /* the block that was needed last */
    uint64_t uses;
    struct error failure;
    struct stored_block blocks[STORED_BLOCKS];
};

static void take(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct stored_block *block = argument;

    block->done = true;
    block->bytes = bytes;
    block->size = size;
    if (error->code != QS_OK && block->object->failure.code == QS_OK) {
        block->object->failure = *error;
    }
}

static struct stored_block *find(struct stored_object *object, uint64_t number)
{
    for (size_t i = 0; i < STORED_BLOCKS; i++) {
        if (object->blocks[i].used && object->blocks[i].number == number) {
            return &object->blocks[i];
        }
    }
    return NULL;
}

static void drop(struct stored_block *block)
{
    bucket_fetch_cancel(block->object->bucket, &block->fetch);
    free(block->bytes);
    memset(block, 0, sizeof *block);
}

/* A free place, or that of the block whose use is longest ago. One under way is never given up: there are more places
 * than can be under way. */
static struct stored_block *make_room(struct stored_object *object)
{
    struct stored_block *oldest = NULL;

    for (size_t i = 0; i < STORED_BLOCKS; i++) {
        struct stored_block *block = &object->blocks[i];
        if (!block->used) {
            return block;
        }
        if (block->done && (oldest == NULL || block->last_use < oldest->last_use)) {
            oldest = block;
        }
    }
    drop(oldest);
    return oldest;
}

static struct stored_block *begin(struct stored_object *object, uint64_t number)
{
    struct stored_block *block = find(object, number);
    uint64_t position = number * STORED_BLOCK_BYTES;
    uint64_t left = object->size - position;

    if (block == NULL) {
        block = make_room(object);
        block->object = object;
        block->used = true;
        block->number = number;
        bucket_fetch_range(object->bucket, &block->fetch, object->key, position,
                           left < STORED_BLOCK_BYTES ? (size_t)left : STORED_BLOCK_BYTES, take, block);
    }
    block->last_use = ++object->uses;
    return block;
}

/* The block with its bytes; NULL and *error where the bucket failed. */
static const struct stored_block *need(struct stored_object *object, uint64_t number, struct error *error)
{
    struct stored_block *block = begin(object, number);

    if (number == 0 || number == object->newest || number == object->newest + 1) {
        for (uint64_t next = number + 1; next <= number + AHEAD && next * STORED_BLOCK_BYTES < object->size; next++) {
            begin(object, next);
        }
    }
    object->newest = number;
    while (!block->done) {
        bucket_turn(object->bucket);
    }
    if (block->bytes == NULL) {
        *error = object->failure;
        return NULL;
    }
    return block;
}

static int copy(struct stored_object *object, uint64_t offset, void *buffer, size_t size, size_t *got,
                struct error *error)
{
    const struct stored_block *block = need(object, offset / STORED_BLOCK_BYTES, error);

    if (block == NULL) {
        return (int)error->code;
    }
    size_t skip = (size_t)(offset % STORED_BLOCK_BYTES);
    *got = block->size - skip < size ? block->size - skip : size;
    memcpy(buffer, block->bytes + skip, *got);
    return 0;
}

static int read_forward(void *source, void *buffer, size_t size, size_t *got, struct error *error)
{
    struct stored_object *object = source;

    *got = 0;
    if (object->at >= object->size || size == 0) {
        return 0;
    }
    int code = copy(object, object->at, buffer, size, got, error);
    object->at += *got;
    return code;
}

static int read_at(void *source, uint64_t offset, void *buffer, size_t size, struct error *error)
{
    struct stored_object *object = source;
    int code = 0;

    if (offset > object->size || size > object->size - offset) {
        return error_set(error, QS_ERROR_BODY, "the object ends before what is to be read of it");
    }
    for (size_t done = 0, got = 0; done < size && code == 0; done += got) {
        code = copy(object, offset + done, (char *)buffer + done, size - done, &got, error);
    }
    return code;
}

struct stored_object *stored_object_open(struct bucket *bucket, const char *key, uint64_t size)
{
    struct stored_object *object = memory_new(1, sizeof *object);

    object->bucket = bucket;
    object->key = key;
    object->size = size;
    return object;
}

void stored_object_close(struct stored_object *object)
{
    for (size_t i = 0; i < STORED_BLOCKS; i++) {
        if (object->blocks[i].used) {
            drop(&object->blocks[i]);
        }
    }
    free(object);
}

struct object_source stored_object_source(struct stored_object *object)
{
    return (struct object_source){object, read_forward, read_at, object->size};
}

const struct error *stored_object_failure(const struct stored_object *object)
{
    return &object->failure;
}
