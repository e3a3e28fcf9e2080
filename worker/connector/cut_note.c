/* See cut_note.h. */
#include "worker/connector/cut_note.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define MARK    "queen-s3"
#define VERSION 1
/* Beyond it a double, which is what cJSON reads numbers into, does not hold every offset. */
#define OFFSET_MAX ((double)(INT64_C(1) << 53))

static const char *const formats[] = {"json_lines", "json_array", "raw", NULL};

static bool find(const char *const *names, const char *name, int *out)
{
    for (int i = 0; name != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

char *cut_note_write(const struct cut_note *note, struct error *error)
{
    cJSON *json = cJSON_CreateObject();

    (void)cJSON_AddNumberToObject(json, MARK, VERSION);
    (void)cJSON_AddNumberToObject(json, "next", (double)note->next);
    (void)cJSON_AddStringToObject(json, "key", note->key);
    (void)cJSON_AddStringToObject(json, "schema", sink_schema_name(note->schema));
    (void)cJSON_AddStringToObject(json, "on_undecodable", on_undecodable_name(note->on_undecodable));
    (void)cJSON_AddStringToObject(json, "output_format", formats[note->shape.format]);
    (void)cJSON_AddStringToObject(json, "compression", setting_compression_name(note->shape.compression));
    (void)cJSON_AddBoolToObject(json, "include_metadata", note->shape.include_metadata);
    (void)cJSON_AddBoolToObject(json, "include_headers", note->shape.include_headers);
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    if (text == NULL || strlen(text) > CUT_NOTE_MAX || (double)note->next > OFFSET_MAX) {
        free(text);
        (void)error_set(error, QS_ERROR_INPUT, "the key %.200s...: too long to be noted with an offset", note->key);
        return NULL;
    }
    return text;
}

static const char *text_of(const cJSON *json, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, name));
}

static bool read_switch(const cJSON *json, const char *name, bool *out)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, name);

    *out = cJSON_IsTrue(value);
    return cJSON_IsBool(value);
}

static bool read_shape(const cJSON *json, struct sink_shape *shape)
{
    const char *compression = text_of(json, "compression");
    int format = 0;
    bool good = find(formats, text_of(json, "output_format"), &format) && compression != NULL &&
                setting_compression_parse(compression, &shape->compression) && shape->compression != COMPRESSION_SNAPPY;

    shape->format = (enum sink_format)format;
    return good && read_switch(json, "include_metadata", &shape->include_metadata) &&
           read_switch(json, "include_headers", &shape->include_headers);
}

static bool read_file(const cJSON *json, struct cut_note *note)
{
    const cJSON *next = cJSON_GetObjectItemCaseSensitive(json, "next");
    const char *key = text_of(json, "key");
    const char *schema = text_of(json, "schema");
    const char *undecodable = text_of(json, "on_undecodable");

    if (!cJSON_IsNumber(next) || !(next->valuedouble > 0 && next->valuedouble <= OFFSET_MAX) || key == NULL ||
        key[0] == '\0' || strlen(key) > SINK_KEY_MAX || schema == NULL || undecodable == NULL) {
        return false;
    }
    note->next = (int64_t)next->valuedouble;
    (void)strcpy(note->key, key);
    return (double)note->next == next->valuedouble && sink_schema_parse(schema, &note->schema) &&
           on_undecodable_parse(undecodable, &note->on_undecodable) && read_shape(json, &note->shape);
}

enum cut_note_kind cut_note_read(const char *bytes, size_t size, struct cut_note *note)
{
    cJSON *json = size > 0 && size <= CUT_NOTE_MAX ? cJSON_ParseWithLength(bytes, size) : NULL;
    const cJSON *mark = cJSON_GetObjectItemCaseSensitive(json, MARK);
    enum cut_note_kind kind = CUT_NOTE_NONE;

    if (mark != NULL) {
        bool ours = cJSON_IsNumber(mark) && mark->valuedouble == VERSION;
        bool blank = ours && cJSON_GetArraySize(json) == 1;
        kind = blank ? CUT_NOTE_NONE : ours && read_file(json, note) ? CUT_NOTE_FILE : CUT_NOTE_UNREADABLE;
    }
    cJSON_Delete(json);
    return kind;
}
