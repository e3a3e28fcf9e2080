/*
 * Bytes that grow at the end: what requests and documents are put together in. Memory as in memory.h.
 */
#ifndef COMMON_BYTE_BUFFER_H
#define COMMON_BYTE_BUFFER_H

#include <stddef.h>

/* Zero it before its first use. bytes is NUL-terminated whenever it isn't NULL; size doesn't count the NUL. */
struct byte_buffer {
    char *bytes;
    size_t size;
    size_t capacity;
};

void byte_buffer_add(struct byte_buffer *buffer, const void *bytes, size_t size);
void byte_buffer_add_text(struct byte_buffer *buffer, const char *text);
void byte_buffer_add_format(struct byte_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Forgets what is in it and keeps the memory. */
void byte_buffer_clear(struct byte_buffer *buffer);
/* The text, malloc'ed and now the caller's, "" where nothing was added. The buffer is empty afterwards. */
char *byte_buffer_take(struct byte_buffer *buffer);
void byte_buffer_free(struct byte_buffer *buffer);

#endif
