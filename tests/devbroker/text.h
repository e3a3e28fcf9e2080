/*
 * Byte slices and growing buffers of the development broker.
 *
 * A slice borrows bytes and may hold any byte, NUL included: names of the log are counted, never terminated. A text
 * owns its bytes. Running out of memory ends the process with one line: the broker is memory only, so it has nothing
 * to save and no caller could go on.
 */
#ifndef DEVBROKER_TEXT_H
#define DEVBROKER_TEXT_H

#include "system.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
    const char *at; /* may be NULL when size is 0: "not given" is told from "empty" that way */
    size_t size;
};

struct text {
    char *at;
    size_t size;
    size_t capacity;
};

/* Zeroed memory, never NULL. The caller frees it with free(). */
void *memory_take(size_t count, size_t size);
/* As realloc() of count elements, never NULL; the new part is not zeroed. */
void *memory_resize(void *memory, size_t count, size_t size);
/* Makes room for one more element in a growing array; *capacity doubles. Returns the array, perhaps moved. */
void *memory_room(void *memory, size_t count, size_t *capacity, size_t size);

struct slice slice_of(const char *string);
struct slice slice_copy(struct slice from); /* the copy is terminated by a NUL that size does not count; free(at) */
bool slice_equal(struct slice left, struct slice right);
bool slice_is(struct slice left, const char *right);
bool slice_contains(struct slice hay, struct slice needle);
int slice_compare(struct slice left, struct slice right); /* as bytes, a prefix first */
uint64_t slice_hash(struct slice from, uint64_t seed);

void text_reserve(struct text *text, size_t more);
void text_add(struct text *text, const void *bytes, size_t size);
void text_add_slice(struct text *text, struct slice from);
void text_add_string(struct text *text, const char *string);
void text_add_number(struct text *text, int64_t number);
void text_add_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes: escapes what JSON makes us escape and nothing else (spec 02, 2.2). */
void text_add_quoted(struct text *text, struct slice from);
struct slice text_slice(const struct text *text);
void text_free(struct text *text);

/* The same, into memory of the caller's: the size of the quoted string, and the writing of it (returns its end). */
size_t quoted_size(struct slice from);
char *quoted_write(char *to, struct slice from);
char *number_write(char *to, int64_t number); /* number >= 0 */
size_t number_size(int64_t number);

#endif
