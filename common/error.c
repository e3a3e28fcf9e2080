/*
 * What a failed call says about itself: see error.h.
 *
 * A message is made aside and then copied, so that what goes into it may be the message that is there now. It stays one
 * line whatever is formatted into it (an answer's text can hold line feeds), and is cut between characters.
 */
#include "common/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_SIZE sizeof(((struct error *)0)->message)

static bool is_retriable(enum qs_error code)
{
    switch (code) {
    case QS_ERROR_TRANSPORT:
    case QS_ERROR_STATUS:
    case QS_ERROR_BODY:
    case QS_ERROR_INTEGRITY:
    case QS_ERROR_NO_ROOM: return true;
    case QS_OK:
    case QS_ERROR_REFUSED:
    case QS_ERROR_NOT_FOUND:
    case QS_ERROR_FORBIDDEN:
    case QS_ERROR_UNKNOWN_QUEUE:
    case QS_ERROR_NO_MEMORY:
    case QS_ERROR_INPUT:
    case QS_ERROR_SYSTEM: return false;
    }
    return false;
}

/* Where a text that fills its buffer is cut: not inside a UTF-8 character. */
static size_t whole_characters(const char *text, size_t size)
{
    size_t lead = size;
    while (lead > 0 && size - lead < 3 && ((unsigned char)text[lead - 1] & 0xC0u) == 0x80u) {
        lead--;
    }
    if (lead == 0) {
        return size;
    }
    unsigned char byte = (unsigned char)text[lead - 1];
    size_t expected = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return byte >= 0xC0 && size - (lead - 1) < expected ? lead - 1 : size;
}

/* Copies what fits and keeps it one line. */
static void message_put(char message[MESSAGE_SIZE], const char *text)
{
    size_t size = strnlen(text, MESSAGE_SIZE);
    if (size == MESSAGE_SIZE) {
        size = MESSAGE_SIZE - 1;
    }
    if (size == MESSAGE_SIZE - 1) {
        size = whole_characters(text, size);
    }
    for (size_t i = 0; i < size; i++) {
        message[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
    }
    message[size] = '\0';
}

static void error_fill(struct error *error, enum qs_error code, const char *text)
{
    error->code = code;
    error->retriable = is_retriable(code);
    error->status = 0;
    error->retry_after_ms = -1;
    message_put(error->message, text);
}

static void error_fill_format(struct error *error, enum qs_error code, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

static void error_fill_format(struct error *error, enum qs_error code, const char *format, va_list arguments)
{
    char text[MESSAGE_SIZE];
    vsnprintf(text, sizeof text, format, arguments);
    error_fill(error, code, text);
}

int error_set(struct error *error, enum qs_error code, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        error_fill_format(error, code, format, arguments);
        va_end(arguments);
    }
    return code;
}

int error_refuse(struct error *error, enum qs_error code, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        error_fill_format(error, code, format, arguments);
        va_end(arguments);
        error->retriable = false;
    }
    return code;
}

int error_set_errno(struct error *error, const char *format, ...)
{
    int number = errno;
    if (error != NULL) {
        char text[MESSAGE_SIZE];
        char whole[MESSAGE_SIZE];
        char reason[128];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        /* The reason is what a person needs most: a long text in front of it gives way. */
        const char *what = strerror_r(number, reason, sizeof reason);
        size_t reason_size = strnlen(what, sizeof reason - 1);
        int room = (int)(sizeof whole - 1 - reason_size - 2);
        snprintf(whole, sizeof whole, "%.*s: %.*s", room, text, (int)reason_size, what);
        error_fill(error, QS_ERROR_SYSTEM, whole);
    }
    return QS_ERROR_SYSTEM;
}

void error_prefix(struct error *error, const char *format, ...)
{
    if (error == NULL) {
        return;
    }
    char prefix[MESSAGE_SIZE];
    char whole[MESSAGE_SIZE * 2 + 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "%s: %s", prefix, error->message);
    message_put(error->message, whole);
}

void error_clear(struct error *error)
{
    if (error != NULL) {
        error_fill(error, QS_OK, "");
    }
}
