/* Allocation that can't fail: see memory.h. */
#include "common/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static memory_exhausted *exhausted;

void memory_set_exhausted(memory_exhausted *handler)
{
    exhausted = handler;
}

static _Noreturn void end(void)
{
    static const char line[] = "queen-s3: out of memory\n";
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0) {
        /* Nothing is left to tell it to. */
    }
    abort();
}

/* Returns where the allocation is to be tried again. */
static void give_up(void)
{
    if (exhausted == NULL || !exhausted())
        end();
}

void *memory_new(size_t count, size_t size)
{
    void *memory;
    while ((memory = calloc(count > 0 ? count : 1, size > 0 ? size : 1)) == NULL)
        give_up();
    return memory;
}

void *memory_grow(void *array, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return array;
    size_t wanted = *capacity > SIZE_MAX / 2 ? needed : *capacity * 2;
    if (wanted < needed)
        wanted = needed;
    if (wanted < 8)
        wanted = 8;
    if (wanted > SIZE_MAX / size)
        end(); /* no address space holds it, however long one waits */
    void *grown;
    while ((grown = realloc(array, wanted * size)) == NULL)
        give_up();
    *capacity = wanted;
    return grown;
}

char *memory_copy(const char *bytes, size_t size)
{
    char *copy = memory_new(size + 1, 1);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

char *memory_copy_text(const char *text)
{
    return text != NULL ? memory_copy(text, strlen(text)) : NULL;
}

void memory_free_secret(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

char *memory_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = memory_format_list(format, arguments);
    va_end(arguments);
    return text;
}

char *memory_format_list(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    if (size < 0)
        end(); /* more than INT_MAX bytes: no text that this program makes */
    char *text = memory_new((size_t)size + 1, 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}
