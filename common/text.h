/*
 * Small questions that several ask of a text.
 */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool text_ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);
    size_t end_size = strlen(end);

    return size >= end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

/* Blank, tab, CR or LF: what may stand around the value of an HTTP header (RFC 9110, 5.5). */
static inline bool text_is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

#endif
