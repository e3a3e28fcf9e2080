/*
 * See encode_parts.h. MD5 is what S3 asks for: Content-MD5 of each request's body, RFC 1864. While an object may still
 * go up whole its own MD5 is kept up to date as bytes come; the parts of one that grew are hashed part by part instead,
 * each when it is complete, so that no byte is hashed for a request that is never made but those up to the threshold.
 */
#include "worker/encode_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define FIRST_CAPACITY 65536u

void part_buffer_free(struct part_buffer *buffer)
{
    if (buffer != NULL) {
        free(buffer->part.bytes);
        free(buffer);
    }
}

void part_buffers_free(struct part_buffer *first)
{
    while (first != NULL) {
        struct part_buffer *next = first->next;
        part_buffer_free(first);
        first = next;
    }
}

int encode_parts_begin(struct encode_parts *parts, uint64_t threshold, uint64_t known_size)
{
    parts->threshold = threshold;
    parts->multipart = known_size > threshold;
    parts->md5 = EVP_MD_CTX_new();
    if (parts->md5 == NULL || EVP_DigestInit_ex(parts->md5, EVP_md5(), NULL) != 1) {
        return QS_ERROR_NO_MEMORY;
    }
    return 0;
}

/* An empty buffer at the end of the list. */
static int add_buffer(struct encode_parts *parts)
{
    struct part_buffer *buffer = parts->multipart ? parts->reuse(parts->argument) : NULL;

    if (buffer == NULL) {
        buffer = calloc(1, sizeof *buffer);
        if (buffer == NULL) {
            return QS_ERROR_NO_MEMORY;
        }
    }
    buffer->part.size = 0;
    buffer->next = NULL;
    if (parts->last == NULL) {
        parts->first = buffer;
    } else {
        parts->last->next = buffer;
    }
    parts->last = buffer;
    return 0;
}

/* Room for `more` bytes, which with what is there don't exceed a part. */
static int grow(struct part_buffer *buffer, size_t more)
{
    size_t capacity = buffer->capacity == 0 ? FIRST_CAPACITY : buffer->capacity;

    while (capacity < buffer->part.size + more) {
        capacity *= 2;
    }
    if (capacity != buffer->capacity) {
        uint8_t *bytes = realloc(buffer->part.bytes, capacity);
        if (bytes == NULL) {
            return QS_ERROR_NO_MEMORY;
        }
        buffer->part.bytes = bytes;
        buffer->capacity = capacity;
    }
    return 0;
}

static int hand_first(struct encode_parts *parts)
{
    struct part_buffer *buffer = parts->first;

    if (EVP_Digest(buffer->part.bytes, buffer->part.size, buffer->part.md5, NULL, EVP_md5(), NULL) != 1) {
        return QS_ERROR_NO_MEMORY;
    }
    parts->first = buffer->next;
    if (parts->first == NULL) {
        parts->last = NULL;
    }
    buffer->next = NULL;
    return parts->hand(parts->argument, buffer);
}

/* Every part that is complete. */
static int hand_full(struct encode_parts *parts)
{
    int code = 0;

    while (code == 0 && parts->first != NULL && parts->first->part.size == OBJECT_PART_SIZE) {
        code = hand_first(parts);
    }
    return code;
}

static int hash_whole(struct encode_parts *parts, const uint8_t *bytes, size_t size)
{
    if (parts->multipart) {
        return 0;
    }
    if (parts->bytes > parts->threshold) {
        parts->multipart = true;
        return hand_full(parts);
    }
    return EVP_DigestUpdate(parts->md5, bytes, size) == 1 ? 0 : QS_ERROR_NO_MEMORY;
}

int encode_parts_add(struct encode_parts *parts, const uint8_t *bytes, size_t size)
{
    int code;

    parts->bytes += size;
    code = hash_whole(parts, bytes, size);
    while (code == 0 && size > 0) {
        if (parts->last == NULL || parts->last->part.size == OBJECT_PART_SIZE) {
            code = add_buffer(parts);
            if (code != 0) {
                break;
            }
        }
        struct part_buffer *buffer = parts->last;
        size_t piece = OBJECT_PART_SIZE - buffer->part.size;
        if (piece > size) {
            piece = size;
        }
        code = grow(buffer, piece);
        if (code == 0) {
            memcpy(buffer->part.bytes + buffer->part.size, bytes, piece);
            buffer->part.size += piece;
            bytes += piece;
            size -= piece;
            code = parts->multipart ? hand_full(parts) : 0;
        }
    }
    return code;
}

static int finish_whole(struct encode_parts *parts, struct encode_result *result)
{
    size_t count = 0;
    size_t i = 0;

    if (parts->first == NULL && add_buffer(parts) != 0) {
        return QS_ERROR_NO_MEMORY;
    }
    for (const struct part_buffer *buffer = parts->first; buffer != NULL; buffer = buffer->next) {
        count++;
    }
    parts->pieces = memory_new(count, sizeof *parts->pieces);
    if (EVP_DigestFinal_ex(parts->md5, result->md5, NULL) != 1) {
        return QS_ERROR_NO_MEMORY;
    }
    for (const struct part_buffer *buffer = parts->first; buffer != NULL; buffer = buffer->next) {
        parts->pieces[i++] = (struct iovec){buffer->part.bytes, buffer->part.size};
    }
    result->pieces = parts->pieces;
    result->piece_count = count;
    return 0;
}

int encode_parts_finish(struct encode_parts *parts, struct encode_result *result)
{
    result->pieces = NULL;
    result->piece_count = 0;
    if (!parts->multipart) {
        return finish_whole(parts, result);
    }
    return parts->first != NULL ? hand_first(parts) : 0;
}

void encode_parts_free(struct encode_parts *parts)
{
    EVP_MD_CTX_free(parts->md5);
    part_buffers_free(parts->first);
    free(parts->pieces);
    memset(parts, 0, sizeof *parts);
}
