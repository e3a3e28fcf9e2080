/*
 * Any bytes as a configuration file: nothing crashes or reads too far, an error is one line without control bytes, and
 * what is accepted means the same when it is written down again in quotes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/setting_table.h"
#include "common/settings_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool right)
{
    if (!right) {
        abort();
    }
}

static void add_quoted(struct byte_buffer *text, const struct settings_file_entry *entry)
{
    byte_buffer_add_format(text, "%s=\"", entry->name);
    for (const char *at = entry->value; *at != '\0'; at++) {
        if (strchr("\"\\`$", *at) != NULL) {
            byte_buffer_add_text(text, "\\");
        }
        byte_buffer_add(text, at, 1);
    }
    byte_buffer_add_text(text, "\"\n");
}

static void compare(const struct settings_file *file, const struct settings_file *again)
{
    expect(file->count == again->count);
    for (size_t i = 0; i < file->count; i++) {
        expect(strcmp(file->entries[i].name, again->entries[i].name) == 0);
        expect(strcmp(file->entries[i].value, again->entries[i].value) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings_file file;
    struct settings_file again;
    struct setting setting;
    struct error error;
    struct byte_buffer text = {0};
    size_t line = 0;

    if (settings_file_parse("F", (const char *)data, size, &file, &error) != 0) {
        expect(error.code == QS_ERROR_INPUT && strncmp(error.message, "F:", 2) == 0);
        for (const char *at = error.message; *at != '\0'; at++) {
            expect(*at >= ' ' && *at <= '~');
        }
        return 0;
    }
    for (size_t i = 0; i < file.count; i++) {
        expect(setting_find(file.entries[i].name, &setting));
        expect(file.entries[i].line > line && file.entries[i].line <= size);
        line = file.entries[i].line;
        add_quoted(&text, &file.entries[i]);
    }
    expect(settings_file_parse("F", text.bytes, text.size, &again, &error) == 0);
    compare(&file, &again);
    byte_buffer_free(&text);
    settings_file_free(&file);
    settings_file_free(&again);
    return 0;
}
