/* Lines of settings: settings_file.h. */
#include "common/settings_file.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/memory.h"
#include "common/setting_table.h"
#include "common/small_file.h"

/* Longer than any name, and short enough for a line that shows it. */
#define NAME_BYTES 100

struct cursor {
    const char *at;
    const char *end;
    size_t line;
    const char *path;
    struct byte_buffer value;
};

static bool at_line_end(const struct cursor *cursor)
{
    return cursor->at == cursor->end || *cursor->at == '\n' || *cursor->at == '\r';
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_blank(*cursor->at)) {
        cursor->at++;
    }
}

static void skip_line(struct cursor *cursor)
{
    while (!at_line_end(cursor)) {
        cursor->at++;
    }
}

/* The byte at the cursor, which moves on. A line of DOS ends in two bytes and counts once. */
static char take_byte(struct cursor *cursor)
{
    char byte = *cursor->at++;

    if (byte == '\n' || (byte == '\r' && (cursor->at == cursor->end || *cursor->at != '\n'))) {
        cursor->line++;
    }
    return byte;
}

static void put_byte(struct cursor *cursor, char byte)
{
    byte_buffer_add(&cursor->value, &byte, 1);
}

/* From behind the opening quote to behind the closing one. */
static bool take_single(struct cursor *cursor)
{
    while (cursor->at < cursor->end && *cursor->at != '\'') {
        put_byte(cursor, take_byte(cursor));
    }
    return cursor->at < cursor->end && take_byte(cursor) == '\'';
}

static void take_escape_in_double(struct cursor *cursor)
{
    char byte = take_byte(cursor);

    if (strchr("\"\\`$\n", byte) == NULL) {
        put_byte(cursor, '\\');
    }
    if (byte != '\n') {
        put_byte(cursor, byte);
    }
}

static bool take_double(struct cursor *cursor)
{
    while (cursor->at < cursor->end && *cursor->at != '"') {
        char byte = take_byte(cursor);
        if (byte == '\\' && cursor->at < cursor->end) {
            take_escape_in_double(cursor);
        } else {
            put_byte(cursor, byte);
        }
    }
    return cursor->at < cursor->end && take_byte(cursor) == '"';
}

/* To the end of the line. Blanks before that end go, unless a backslash stands before the last of them. */
static void take_plain(struct cursor *cursor)
{
    size_t kept = cursor->value.size;

    while (!at_line_end(cursor)) {
        char byte = take_byte(cursor);
        if (byte != '\\') {
            put_byte(cursor, byte);
            kept = is_blank(byte) ? kept : cursor->value.size;
            continue;
        }
        if (cursor->at < cursor->end) {
            byte = take_byte(cursor);
            if (byte != '\n' && byte != '\r') {
                put_byte(cursor, byte);
            }
        }
        kept = cursor->value.size;
    }
    if (kept < cursor->value.size) {
        cursor->value.size = kept;
        cursor->value.bytes[kept] = '\0';
    }
}

static int take_value(struct cursor *cursor, struct error *error)
{
    byte_buffer_clear(&cursor->value);
    byte_buffer_add(&cursor->value, "", 0);
    skip_blanks(cursor);
    while (!at_line_end(cursor) && (*cursor->at == '\'' || *cursor->at == '"')) {
        size_t line = cursor->line;
        bool closed = take_byte(cursor) == '\'' ? take_single(cursor) : take_double(cursor);
        if (!closed) {
            return error_set(error, QS_ERROR_INPUT, "%s:%zu: the quote that begins here never ends", cursor->path,
                             line);
        }
        skip_blanks(cursor);
    }
    take_plain(cursor);
    return 0;
}

static int refuse_line(const struct cursor *cursor, struct error *error)
{
    return error_set(error, QS_ERROR_INPUT, "%s:%zu: expected NAME=value, or a comment that begins with # or ;",
                     cursor->path, cursor->line);
}

static bool is_word(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') {
            return false;
        }
    }
    return size > 0 && size <= NAME_BYTES;
}

static int check_known(const struct cursor *cursor, const char *name, struct error *error)
{
    struct setting setting;

    if (setting_find(name, &setting)) {
        return 0;
    }
    const char *meant = setting_nearest(name);
    return error_set(error, QS_ERROR_INPUT, "%s:%zu: unknown setting %s%s%s%s", cursor->path, cursor->line, name,
                     meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "", meant != NULL ? "?" : "");
}

static int take_entry(struct cursor *cursor, struct settings_file *file, struct error *error)
{
    const char *start = cursor->at;
    size_t line = cursor->line;

    while (!at_line_end(cursor) && *cursor->at != '=') {
        cursor->at++;
    }
    size_t size = (size_t)(cursor->at - start);
    while (size > 0 && is_blank(start[size - 1])) {
        size--;
    }
    if (at_line_end(cursor) || !is_word(start, size)) {
        return refuse_line(cursor, error);
    }
    cursor->at++;
    char *name = memory_copy(start, size);
    int code = check_known(cursor, name, error);
    if (code == 0) {
        code = take_value(cursor, error);
    }
    if (code != 0) {
        free(name);
        return code;
    }
    file->entries = memory_grow(file->entries, &file->capacity, file->count + 1, sizeof *file->entries);
    file->entries[file->count++] =
        (struct settings_file_entry){name, memory_copy(cursor->value.bytes, cursor->value.size), line};
    return 0;
}

static int take_lines(struct cursor *cursor, struct settings_file *file, struct error *error)
{
    int code = 0;

    while (cursor->at < cursor->end && code == 0) {
        skip_blanks(cursor);
        if (cursor->at == cursor->end) {
            break;
        }
        if (at_line_end(cursor)) {
            (void)take_byte(cursor);
        } else if (*cursor->at == '#' || *cursor->at == ';') {
            skip_line(cursor);
        } else {
            code = take_entry(cursor, file, error);
        }
    }
    return code;
}

static int refuse_nul(const char *path, const char *text, const char *nul, struct error *error)
{
    size_t line = 1;

    for (; text < nul; text++) {
        line += *text == '\n' ? 1 : 0;
    }
    return error_set(error, QS_ERROR_INPUT, "%s:%zu: a NUL byte: expected text", path, line);
}

int settings_file_parse(const char *path, const char *text, size_t size, struct settings_file *file,
                        struct error *error)
{
    const char *nul = size > 0 ? memchr(text, '\0', size) : NULL;
    struct cursor cursor = {.at = text, .end = size > 0 ? text + size : text, .line = 1, .path = path};

    *file = (struct settings_file){0};
    if (nul != NULL) {
        return refuse_nul(path, text, nul, error);
    }
    file->path = memory_copy_text(path);
    int code = take_lines(&cursor, file, error);
    if (cursor.value.bytes != NULL) {
        explicit_bzero(cursor.value.bytes, cursor.value.capacity);
    }
    byte_buffer_free(&cursor.value);
    if (code != 0) {
        settings_file_free(file);
    }
    return code;
}

int settings_file_read(const char *path, struct settings_file *file, struct error *error)
{
    char *text = memory_new(SETTINGS_FILE_BYTES + 1, 1);
    ssize_t size = small_file_read(path, text, SETTINGS_FILE_BYTES + 1, error);
    int code;

    *file = (struct settings_file){0};
    if (size < 0) {
        error_prefix(error, "configuration file %s", path);
        code = QS_ERROR_SYSTEM;
    } else if ((size_t)size > SETTINGS_FILE_BYTES) {
        code = error_set(error, QS_ERROR_INPUT, "configuration file %s: expected at most %zu bytes", path,
                         SETTINGS_FILE_BYTES);
    } else {
        code = settings_file_parse(path, text, (size_t)size, file, error);
    }
    explicit_bzero(text, SETTINGS_FILE_BYTES);
    free(text);
    return code;
}

const struct settings_file_entry *settings_file_find(const struct settings_file *file, const char *name)
{
    for (size_t i = file->count; i > 0; i--) {
        if (strcmp(file->entries[i - 1].name, name) == 0) {
            return &file->entries[i - 1];
        }
    }
    return NULL;
}

void settings_file_free(struct settings_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        memory_free_secret(file->entries[i].value);
        free(file->entries[i].name);
    }
    free(file->entries);
    free(file->path);
    *file = (struct settings_file){0};
}
