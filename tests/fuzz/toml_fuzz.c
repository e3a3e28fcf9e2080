/*
 * Any bytes as a TOML document: nothing crashes or reads too far, and what is accepted is a tree whose strings end and
 * whose lines are the document's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/connector/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool right)
{
    if (!right) {
        abort();
    }
}

static void walk(const struct toml_value *value, size_t lines, int depth)
{
    expect(depth <= TOML_DEPTH_MAX && value->line <= lines);
    expect(value->key == NULL || value->key[value->key_size] == '\0');
    expect((value->text != NULL) == (value->type == TOML_STRING || value->type == TOML_TIME));
    expect(value->text == NULL || value->text[value->text_size] == '\0');
    expect(value->count == 0 || value->type == TOML_TABLE || value->type == TOML_ARRAY);
    for (size_t i = 0; i < value->count; i++) {
        expect((value->items[i].key != NULL) == (value->type == TOML_TABLE));
        walk(&value->items[i], lines, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {0};
    struct toml_value *document = toml_parse((const char *)data, size, &error);
    size_t lines = 1;

    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n';
    }
    if (document == NULL) {
        expect(error.code == QS_ERROR_INPUT && error.message[0] != '\0');
    } else {
        expect(document->type == TOML_TABLE);
        walk(document, lines, 0);
    }
    toml_free(document);
    return 0;
}
