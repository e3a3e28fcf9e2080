/*
 * Collects an object's bytes until it is clear how they go up: whole, with one MD5 over all, or, once they outgrow the
 * threshold, in parts of exactly OBJECT_PART_SIZE with an MD5 each. No thread here; encode_thread.c says where a part
 * goes.
 */
#ifndef WORKER_ENCODE_PARTS_H
#define WORKER_ENCODE_PARTS_H

#include <openssl/evp.h>

#include "worker/encode.h"

struct part_buffer {
    struct encode_part part; /* first: a part that is handed back is its buffer */
    size_t capacity;
    struct part_buffer *next;
};

struct encode_parts {
    uint64_t threshold;
    /* A buffer to use again, empty; NULL where there is none. */
    struct part_buffer *(*reuse)(void *argument);
    /* Takes a finished part over; may wait. Nonzero stops the encoding. */
    int (*hand)(void *argument, struct part_buffer *buffer);
    void *argument;
    bool multipart;
    uint64_t bytes;
    EVP_MD_CTX *md5;           /* of all bytes, while it may still be one PUT */
    struct part_buffer *first; /* held back, in order; the last one is being filled */
    struct part_buffer *last;
    struct iovec *pieces;
};

/* known_size: of the object where it is certain beforehand, 0 where it isn't. */
int encode_parts_begin(struct encode_parts *parts, uint64_t threshold, uint64_t known_size);
int encode_parts_add(struct encode_parts *parts, const uint8_t *bytes, size_t size);
/* The last part, or pieces and md5 of result; these stay parts' until encode_parts_free(). */
int encode_parts_finish(struct encode_parts *parts, struct encode_result *result);
void encode_parts_free(struct encode_parts *parts);

void part_buffer_free(struct part_buffer *buffer);
void part_buffers_free(struct part_buffer *first);

#endif
