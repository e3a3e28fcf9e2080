#include "tests/sim/bucket.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

static void upload_free(struct bucket_upload *upload)
{
    for (size_t i = 0; i < upload->part_count; i++)
        free(upload->parts[i].bytes);
    free(upload->parts);
    free(upload->key);
}

void bucket_free(struct bucket *bucket)
{
    for (size_t i = 0; i < bucket->object_count; i++) {
        free(bucket->objects[i].key);
        free(bucket->objects[i].bytes);
    }
    for (size_t i = 0; i < bucket->upload_count; i++)
        upload_free(&bucket->uploads[i]);
    free(bucket->objects);
    free(bucket->uploads);
    *bucket = (struct bucket){0};
}

/* The place of a key, or where it would go. */
static size_t place_of(const struct bucket *bucket, const char *key)
{
    size_t low = 0;
    size_t high = bucket->object_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(bucket->objects[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct bucket_object *bucket_find(const struct bucket *bucket, const char *key)
{
    size_t at = place_of(bucket, key);
    if (at < bucket->object_count && strcmp(bucket->objects[at].key, key) == 0)
        return &bucket->objects[at];
    return NULL;
}

bool bucket_put(struct bucket *bucket, const char *key, uint8_t *bytes, size_t size)
{
    struct bucket_object *object = bucket_find(bucket, key);
    if (object != NULL) {
        bool same = object->size == size && memcmp(object->bytes, bytes, size) == 0;
        free(object->bytes);
        object->bytes = bytes;
        object->size = size;
        return same;
    }
    size_t at = place_of(bucket, key);
    bucket->objects =
        memory_grow(bucket->objects, &bucket->object_capacity, bucket->object_count + 1, sizeof *bucket->objects);
    memmove(bucket->objects + at + 1, bucket->objects + at, (bucket->object_count - at) * sizeof *bucket->objects);
    bucket->objects[at] = (struct bucket_object){memory_copy_text(key), bytes, size, false};
    bucket->object_count++;
    return true;
}

void bucket_remove(struct bucket *bucket, const char *key)
{
    struct bucket_object *object = bucket_find(bucket, key);
    if (object == NULL)
        return;
    free(object->key);
    free(object->bytes);
    size_t at = (size_t)(object - bucket->objects);
    memmove(object, object + 1, (--bucket->object_count - at) * sizeof *object);
}

uint64_t bucket_create_upload(struct bucket *bucket, const char *key)
{
    bucket->uploads =
        memory_grow(bucket->uploads, &bucket->upload_capacity, bucket->upload_count + 1, sizeof *bucket->uploads);
    struct bucket_upload *upload = &bucket->uploads[bucket->upload_count++];
    *upload = (struct bucket_upload){.key = memory_copy_text(key), .id = bucket->upload_count, .open = true};
    return upload->id;
}

struct bucket_upload *bucket_upload(struct bucket *bucket, uint64_t id)
{
    return id > 0 && id <= bucket->upload_count && bucket->uploads[id - 1].open ? &bucket->uploads[id - 1] : NULL;
}

void bucket_put_part(struct bucket_upload *upload, uint32_t number, const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at < upload->part_count && upload->parts[at].number < number)
        at++;
    if (at < upload->part_count && upload->parts[at].number == number) {
        free(upload->parts[at].bytes);
    } else {
        upload->parts =
            memory_grow(upload->parts, &upload->part_capacity, upload->part_count + 1, sizeof *upload->parts);
        memmove(upload->parts + at + 1, upload->parts + at, (upload->part_count - at) * sizeof *upload->parts);
        upload->part_count++;
    }
    upload->parts[at] = (struct bucket_part){number, (uint8_t *)memory_copy((const char *)bytes, size), size};
}

uint8_t *bucket_join(const struct bucket_upload *upload, size_t *size)
{
    *size = 0;
    for (size_t i = 0; i < upload->part_count; i++)
        *size += upload->parts[i].size;
    uint8_t *bytes = memory_new(*size + 1, 1);
    size_t at = 0;
    for (size_t i = 0; i < upload->part_count; i++) {
        memcpy(bytes + at, upload->parts[i].bytes, upload->parts[i].size);
        at += upload->parts[i].size;
    }
    return bytes;
}

void bucket_close_upload(struct bucket_upload *upload)
{
    upload->open = false;
}
