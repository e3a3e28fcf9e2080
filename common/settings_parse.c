/*
 * How the plain kinds of settings are understood (spec 3.1): numbers, choices, switches, texts, secrets. Addresses are
 * in settings_address.c, names and lists in settings_lists.c.
 */
#include "common/settings_parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/small_file.h"

/* A message has room for the variable, this much of the value, and what is accepted. */
#define SHOWN_BYTES 160
/* Far more than any key or token; a file of this size was named by mistake. */
#define SECRET_BYTES 65536

static const struct setting_choice switches[] = {{"true", 1}, {"1", 1},  {"yes", 1}, {"on", 1}, {"false", 0},
                                                 {"0", 0},    {"no", 0}, {"off", 0}, {NULL, 0}};

static char **text_field(const struct setting_row *row, struct settings *settings)
{
    return (char **)(void *)((char *)settings + row->offset);
}

static int put_text(const struct setting_row *row, const char *text, struct settings *settings)
{
    char **field = text_field(row, settings);

    free(*field);
    *field = memory_copy_text(text);
    return 0;
}

static bool is_control(char byte)
{
    return (unsigned char)byte < 0x20 || byte == 0x7F;
}

int setting_refuse(const struct setting_row *row, const char *text, struct error *error)
{
    if ((row->flags & SETTING_SECRET) != 0) {
        return error_set(error, QS_ERROR_INPUT, "%s: expected %s", row->name, row->expected);
    }
    char *shown = memory_copy_text(text);
    size_t size = strlen(shown);
    bool cut = size > SHOWN_BYTES;

    if (cut) {
        size = SHOWN_BYTES;
        while (size > 0 && ((unsigned char)shown[size] & 0xC0u) == 0x80u) {
            size--;
        }
    }
    for (size_t i = 0; i < size; i++) {
        if (is_control(shown[i])) {
            shown[i] = '?';
        }
    }
    error_set(error, QS_ERROR_INPUT, "%s=%.*s%s: expected %s", row->name, (int)size, shown, cut ? "…" : "",
              row->expected);
    free(shown);
    return QS_ERROR_INPUT;
}

/* Digits only. What is above most stays above it however long it is. */
static bool parse_number(const char *text, int64_t least, int64_t most, int64_t *out)
{
    int64_t number = 0;

    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        if (number <= most) {
            number = number * 10 + (*text - '0');
        }
    }
    *out = number;
    return number >= least && number <= most;
}

int take_number(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    int64_t number = 0;

    if (!parse_number(text, row->least, row->most, &number)) {
        return setting_refuse(row, text, error);
    }
    number *= row->unit;
    memcpy((char *)settings + row->offset, &number, sizeof number);
    return 0;
}

static const struct setting_choice *find_choice(const struct setting_choice *choices, const char *text)
{
    while (choices->name != NULL && strcasecmp(choices->name, text) != 0) {
        choices++;
    }
    return choices->name != NULL ? choices : NULL;
}

const char *setting_choice_name(const struct setting_choice *choices, int value)
{
    while (choices->name != NULL && choices->value != value) {
        choices++;
    }
    return choices->name;
}

int take_choice(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    const struct setting_choice *choice = find_choice(row->choices, text);

    _Static_assert(sizeof(enum log_level) == sizeof choice->value, "a choice is copied into its enum");
    if (choice == NULL) {
        return setting_refuse(row, text, error);
    }
    memcpy((char *)settings + row->offset, &choice->value, sizeof choice->value);
    return 0;
}

int take_switch(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    const struct setting_choice *choice = find_choice(row->choices != NULL ? row->choices : switches, text);

    if (choice == NULL) {
        return setting_refuse(row, text, error);
    }
    *(bool *)((char *)settings + row->offset) = choice->value != 0;
    return 0;
}

int take_format(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    return setting_format_parse(text, &settings->format) ? 0 : setting_refuse(row, text, error);
}

int take_layout(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    return setting_layout_parse(text, &settings->layout) ? 0 : setting_refuse(row, text, error);
}

int take_align(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    return setting_align_parse(text, &settings->align) ? 0 : setting_refuse(row, text, error);
}

/* QUEEN_S3_COMPRESSION is of JSONL, QUEEN_S3_PARQUET_CODEC of Parquet. Both are checked whatever the format is; the
 * one that counts is kept, so the format's row comes before them. */
int take_compression(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    enum setting_compression compression;

    if (!setting_compression_parse(text, &compression) || compression == COMPRESSION_SNAPPY) {
        return setting_refuse(row, text, error);
    }
    if (settings->format == FORMAT_JSONL) {
        settings->compression = compression;
    }
    return 0;
}

int take_codec(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    enum setting_compression compression;

    if (!setting_compression_parse(text, &compression) ||
        (compression != COMPRESSION_ZSTD && compression != COMPRESSION_SNAPPY)) {
        return setting_refuse(row, text, error);
    }
    if (settings->format == FORMAT_PARQUET) {
        settings->compression = compression;
    }
    return 0;
}

/* Its control bytes were refused for all alike, before it came here. */
int take_text(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    (void)error;
    return put_text(row, text, settings);
}

/* One word of ASCII: what stands in a header or a signature. */
int take_word(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~') {
            return setting_refuse(row, text, error);
        }
    }
    return put_text(row, text, settings);
}

/* Blanks stay: they may be part of it. */
static bool put_secret(const struct setting_row *row, const char *text, struct settings *settings)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (is_control(*at)) {
            return false;
        }
    }
    put_text(row, text, settings);
    return true;
}

int take_secret(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    return put_secret(row, text, settings) ? 0 : setting_refuse(row, text, error);
}

/* What a file holds. One line feed at its end is not part of it; an empty file, a second line, a NUL or a file without
 * an end is no secret. */
static bool put_file(const struct setting_row *row, char *bytes, size_t size, struct settings *settings)
{
    if (size > 0 && bytes[size - 1] == '\n') {
        bytes[--size] = '\0';
    }
    return size > 0 && size < SECRET_BYTES - 1 && strlen(bytes) == size && put_secret(row, bytes, settings);
}

/* row is the …_FILE variable, which shares its field with the plain one. */
int take_secret_file(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    struct setting_row told = *row;
    char expected[192];
    struct error reason;

    if (*text_field(row, settings) != NULL) {
        told.expected = "either the secret itself or a file that holds it, not both";
        return setting_refuse(&told, text, error);
    }
    char *bytes = memory_new(SECRET_BYTES + 1, 1);
    ssize_t size = small_file_read(text, bytes, SECRET_BYTES, &reason);
    bool taken = false;

    if (size >= 0) {
        taken = put_file(row, bytes, (size_t)size, settings);
    } else {
        snprintf(expected, sizeof expected, "%s (%.100s)", row->expected, reason.message);
        told.expected = expected;
    }
    explicit_bzero(bytes, SECRET_BYTES);
    free(bytes);
    return taken ? 0 : setting_refuse(&told, text, error);
}

/* What it holds is for TLS to judge; that it isn't there would only be found out at the first https call. */
int take_readable_file(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    struct setting_row told = *row;
    char expected[192];
    char reason[128];
    struct stat status;
    int number = stat(text, &status) != 0 || access(text, R_OK) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;

    if (number == 0) {
        return put_text(row, text, settings);
    }
    snprintf(expected, sizeof expected, "%s (%s)", row->expected, strerror_r(number, reason, sizeof reason));
    told.expected = expected;
    return setting_refuse(&told, text, error);
}

/* Set at all, it is refused. */
int take_absent(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    (void)settings;
    return setting_refuse(row, text, error);
}

int take_control(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    if (strcasecmp(text, "off") == 0) {
        return put_text(row, "off", settings);
    }
    return text[0] == '/' ? put_text(row, text, settings) : setting_refuse(row, text, error);
}
