/* Bytes in pieces: body.h. */
#include "worker/connector/body.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_MIN 4096u
#define PIECE_MAX 1048576u

/* Pieces grow with the file: a thousand partitions with a record each don't take a gigabyte. */
static size_t piece_size(const struct sink_body *body, size_t wanted)
{
    size_t size = body->size < PIECE_MIN ? PIECE_MIN : body->size > PIECE_MAX ? PIECE_MAX : (size_t)body->size;

    return wanted > size ? wanted : size;
}

static bool make_place(struct sink_body *body)
{
    if (body->count < body->capacity) {
        return true;
    }
    size_t capacity = body->capacity > 0 ? 2 * body->capacity : 4;
    struct iovec *pieces = realloc(body->pieces, capacity * sizeof *pieces);
    if (pieces == NULL) {
        return false;
    }
    body->pieces = pieces;
    body->capacity = capacity;
    return true;
}

char *sink_body_reserve(struct sink_body *body, size_t size)
{
    if (body->count > 0 && size <= body->room) {
        struct iovec *last = &body->pieces[body->count - 1];
        return (char *)last->iov_base + last->iov_len;
    }
    size_t capacity = piece_size(body, size);
    char *piece = make_place(body) ? malloc(capacity) : NULL;
    if (piece == NULL) {
        return NULL;
    }
    if (body->count > 0 && body->pieces[body->count - 1].iov_len == 0) {
        free(body->pieces[--body->count].iov_base);
    }
    body->pieces[body->count++] = (struct iovec){piece, 0};
    body->room = capacity;
    return piece;
}

void sink_body_commit(struct sink_body *body, size_t size)
{
    body->pieces[body->count - 1].iov_len += size;
    body->room -= size;
    body->size += size;
}

bool sink_body_add(struct sink_body *body, const void *bytes, size_t size)
{
    char *out = sink_body_reserve(body, size);

    if (out == NULL) {
        return false;
    }
    if (size > 0) {
        memcpy(out, bytes, size);
    }
    sink_body_commit(body, size);
    return true;
}

void sink_body_clear(struct sink_body *body)
{
    for (size_t i = 0; i < body->count; i++) {
        free(body->pieces[i].iov_base);
    }
    free(body->pieces);
    *body = (struct sink_body){0};
}
