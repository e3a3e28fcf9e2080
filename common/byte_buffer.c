/*
 * Growth by doubling, so that n bytes cost O(n) copies whatever the size of the pieces.
 */
#include "common/byte_buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

/* One more, for the NUL. */
static char *reserve(struct byte_buffer *buffer, size_t more)
{
    buffer->bytes = memory_grow(buffer->bytes, &buffer->capacity, buffer->size + more + 1, 1);
    return buffer->bytes + buffer->size;
}

void byte_buffer_add(struct byte_buffer *buffer, const void *bytes, size_t size)
{
    char *at = reserve(buffer, size);

    if (size > 0) {
        memcpy(at, bytes, size);
    }
    at[size] = '\0';
    buffer->size += size;
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
        return;
    }
    char *at = reserve(buffer, (size_t)size);
    va_start(arguments, format);
    vsnprintf(at, (size_t)size + 1, format, arguments);
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
    char *text = buffer->bytes;
    memset(buffer, 0, sizeof *buffer);
    return text;
}

void byte_buffer_free(struct byte_buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof *buffer);
}
