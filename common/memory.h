/*
 * Memory for structures whose size this program chooses: an allocation that fails here ends the process with one line.
 * A worker that is out of memory is a worker to be started again, which the supervisor does (spec 4.1); code that
 * limped on would have to be right in places that no test reaches. Sizes that come from outside (bodies of answers)
 * don't go through here: they are refused with an error (block.h).
 */
#ifndef COMMON_MEMORY_H
#define COMMON_MEMORY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* What to do instead of ending the process: for a library, which must not end its host. false: nothing, it ends after
 * all; true: try again, after a pause that is the handler's to make. Set once, before any other thread allocates. */
typedef bool memory_exhausted(void);
void memory_set_exhausted(memory_exhausted *handler);

/* count * size zeroed bytes, to be freed with free(). */
void *memory_new(size_t count, size_t size);

/* Grows an array to hold at least `needed` elements, at least doubling; *capacity is updated. */
void *memory_grow(void *array, size_t *capacity, size_t needed, size_t size);

/* A copy of size bytes with a NUL behind them. */
char *memory_copy(const char *bytes, size_t size);

/* A copy of a text; NULL of NULL. */
char *memory_copy_text(const char *text);

/* Wiped before it is freed; a text with its NUL, NULL is nothing. */
void memory_free_secret(char *secret);

/* printf into memory of its own. */
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *memory_format_list(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

#endif
