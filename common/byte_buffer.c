/*
 * Growth by doubling, so that n bytes cost O(n) copies whatever the size of the pieces. After a failure every call is
 * a no-op until the buffer is freed or taken: half a signed text must never look like a whole one.
 */
#include "common/byte_buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct byte_buffer *buffer, size_t more)
{
    if (buffer->failed || more > SIZE_MAX / 2 - buffer->size) {
        buffer->failed = true;
        return false;
    }
    size_t need = buffer->size + more + 1;
    if (need <= buffer->capacity) {
        return true;
    }
    size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
    while (capacity < need) {
        capacity *= 2;
    }
    char *bytes = realloc(buffer->bytes, capacity);
    if (bytes == NULL) {
        buffer->failed = true;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void byte_buffer_add(struct byte_buffer *buffer, const void *bytes, size_t size)
{
    if (!reserve(buffer, size)) {
        return;
    }
    if (size > 0) {
        memcpy(buffer->bytes + buffer->size, bytes, size);
    }
    buffer->size += size;
    buffer->bytes[buffer->size] = '\0';
}

void byte_buffer_add_text(struct byte_buffer *buffer, const char *text)
{
    byte_buffer_add(buffer, text, strlen(text));
}

void byte_buffer_add_format(struct byte_buffer *buffer, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0) {
        buffer->failed = true;
        return;
    }
    if (!reserve(buffer, (size_t)size)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(buffer->bytes + buffer->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)size;
}

void byte_buffer_clear(struct byte_buffer *buffer)
{
    buffer->size = 0;
    if (buffer->bytes != NULL) {
        buffer->bytes[0] = '\0';
    }
}

char *byte_buffer_take(struct byte_buffer *buffer)
{
    byte_buffer_add(buffer, "", 0);
    if (buffer->failed) {
        byte_buffer_free(buffer);
        return NULL;
    }
    char *text = buffer->bytes;
    memset(buffer, 0, sizeof *buffer);
    return text;
}

void byte_buffer_free(struct byte_buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof *buffer);
}
