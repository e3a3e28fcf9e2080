/*
 * A configuration file: settings as lines `NAME=value`, read as systemd reads an EnvironmentFile (systemd.exec(5)), so
 * that one file serves both.
 *
 * Blank lines and lines that begin with # or ; are nothing. Blanks around a name and around a value are dropped. Behind
 * the equals sign stand pieces, put together to one value: in single quotes everything is itself; in double quotes a
 * backslash takes the meaning from " \ ` and $, goes with a line feed behind it, and is itself before anything else;
 * outside quotes a backslash makes the next byte itself and goes with a line feed behind it, and quotes that don't begin
 * the value or follow a quoted piece are themselves. A quoted piece may hold line feeds. There is no comment behind a
 * value. A carriage return ends a line too. The last line of one name counts.
 *
 * What systemd passes over is refused here: a name that nobody knows, with the one that was meant; a line without an
 * equals sign; a quote that never ends; a NUL.
 */
#ifndef COMMON_SETTINGS_FILE_H
#define COMMON_SETTINGS_FILE_H

#include <stddef.h>

#include "common/error.h"

/* A list of all queues of a large broker is far below it. */
#define SETTINGS_FILE_BYTES ((size_t)1 << 20)

struct settings_file_entry {
    char *name; /* of setting_table.h */
    char *value;
    size_t line; /* on which the name stands, from 1 on */
};

struct settings_file {
    char *path; /* as given, for messages */
    struct settings_file_entry *entries;
    size_t count;
    size_t capacity;
};

/* 0; QS_ERROR_INPUT with `PATH:LINE: …`, which shows no value; or QS_ERROR_SYSTEM where the file can't be read. On an
 * error there is nothing to free. path may be a pipe (small_file.h says how long it may take). */
int settings_file_read(const char *path, struct settings_file *file, struct error *error);
/* The same of text in memory. */
int settings_file_parse(const char *path, const char *text, size_t size, struct settings_file *file,
                        struct error *error);

/* NULL where the file doesn't say it. */
const struct settings_file_entry *settings_file_find(const struct settings_file *file, const char *name);

/* Values are overwritten: a secret may be among them. */
void settings_file_free(struct settings_file *file);

#endif
