/*
 * The bytes of a file that is being filled: pieces of memory that are never moved, which an upload sends as they are. No
 * piece is larger than a mebibyte unless one record is, so a file takes little more than its bytes.
 *
 * Sizes come from outside, so an allocation that fails is told, not fatal.
 */
#ifndef WORKER_CONNECTOR_BODY_H
#define WORKER_CONNECTOR_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Zero it before its first use. */
struct sink_body {
    struct iovec *pieces;
    size_t count;
    size_t capacity; /* of pieces */
    size_t room;     /* unused bytes behind the last piece */
    uint64_t size;
};

/* Room for size contiguous bytes at the end, valid until the next call; NULL: out of memory, and nothing has changed. */
char *sink_body_reserve(struct sink_body *body, size_t size);
/* Takes in the first size bytes of what was reserved. */
void sink_body_commit(struct sink_body *body, size_t size);
/* Both, with a copy between; false: out of memory. */
bool sink_body_add(struct sink_body *body, const void *bytes, size_t size);
/* Frees everything; the body is then as new. */
void sink_body_clear(struct sink_body *body);

#endif
