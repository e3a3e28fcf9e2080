/*
 * A model of the bucket: objects appear whole or not at all (spec 3.9).
 */
#ifndef TESTS_SIM_BUCKET_H
#define TESTS_SIM_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bucket_object {
    char *key;
    uint8_t *bytes;
    size_t size;
    bool named; /* the check's: a manifest names it */
};

struct bucket_part {
    uint32_t number;
    uint8_t *bytes;
    size_t size;
};

struct bucket_upload {
    char *key;
    uint64_t id;
    struct bucket_part *parts;
    size_t part_count;
    size_t part_capacity;
    bool open;
};

struct bucket {
    struct bucket_object *objects; /* in key order */
    size_t object_count;
    size_t object_capacity;
    struct bucket_upload *uploads;
    size_t upload_count;
    size_t upload_capacity;
    uint64_t multipart_completed;
};

void bucket_free(struct bucket *bucket);
struct bucket_object *bucket_find(const struct bucket *bucket, const char *key);
/* Takes the bytes (malloc). Returns false where other bytes lay under the key. */
bool bucket_put(struct bucket *bucket, const char *key, uint8_t *bytes, size_t size);
void bucket_remove(struct bucket *bucket, const char *key);
uint64_t bucket_create_upload(struct bucket *bucket, const char *key);
struct bucket_upload *bucket_upload(struct bucket *bucket, uint64_t id); /* NULL: not open */
void bucket_put_part(struct bucket_upload *upload, uint32_t number, const uint8_t *bytes, size_t size);
/* All parts put together; malloc. */
uint8_t *bucket_join(const struct bucket_upload *upload, size_t *size);
void bucket_close_upload(struct bucket_upload *upload);

#endif
