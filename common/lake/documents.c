/* A queue's documents in the broker: documents.h. */
#include "common/lake/documents.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/manifest.h"
#include "common/memory.h"

/* The largest integers that a double, and so a reader of JSON, can tell from their neighbours. */
#define EXACT 9007199254740992.0

char *document_key(const char *sink, const char *escaped_queue, const char *which)
{
    return memory_format("s3:%s:%s:%s", sink, escaped_queue, which);
}

/* cJSON would spell 1788512400000000 as 1.7885124e+15: the same number, but times are integers. */
static void add_integer(cJSON *object, const char *name, int64_t number)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    cJSON_AddRawToObject(object, name, digits);
}

/* As text of our own; object is gone afterwards. */
static char *print(cJSON *object)
{
    char *text = cJSON_PrintUnformatted(object);
    char *copy = memory_copy(text != NULL ? text : "", text != NULL ? strlen(text) : 0);

    cJSON_Delete(object);
    cJSON_free(text);
    return copy;
}

static bool read_integer(const cJSON *object, const char *name, int64_t *out)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsNumber(item) || item->valuedouble < -EXACT || item->valuedouble > EXACT) {
        return false;
    }
    *out = (int64_t)item->valuedouble;
    return (double)*out == item->valuedouble;
}

static const char *read_text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* ---- committed ---- */

char *pointer_format(const struct lake_pointer *pointer)
{
    char end[CLOCK_TEXT_SIZE];
    cJSON *value = cJSON_CreateObject();

    clock_format_broker(pointer->end, end);
    add_integer(value, "k", pointer->k);
    cJSON_AddStringToObject(value, "tEnd", end);
    cJSON_AddStringToObject(value, "manifest", pointer->manifest);
    add_integer(value, "records", (int64_t)pointer->records);
    add_integer(value, "bytes", (int64_t)pointer->bytes);
    add_integer(value, "committedAtMs", pointer->at.v);
    return print(value);
}

/* tEnd is a string spelled as a ts; the original wrote a number. */
bool pointer_read(const cJSON *value, int64_t *k, struct broker_us *end)
{
    const char *text = read_text(value, "tEnd");

    if (!read_integer(value, "k", k) || *k < 0) {
        return false;
    }
    if (text != NULL && clock_parse_broker(text, strlen(text), end)) {
        return true;
    }
    return text == NULL && read_integer(value, "tEnd", &end->v);
}

/* ---- intent ---- */

char *intent_format(const struct window_bounds *bounds, const struct window_shape *shape, const char *prefix)
{
    cJSON *value = cJSON_CreateObject();

    add_integer(value, "k", bounds->k);
    add_integer(value, "tStart", bounds->start.v);
    add_integer(value, "tEnd", bounds->end.v);
    cJSON_AddStringToObject(value, "format", setting_format_name(shape->format));
    cJSON_AddStringToObject(value, "compression", setting_compression_name(shape->compression));
    cJSON_AddStringToObject(value, "layout", setting_layout_name(shape->layout));
    cJSON_AddStringToObject(value, "align", setting_align_name(shape->align));
    cJSON_AddStringToObject(value, "prefix", prefix);
    cJSON_AddStringToObject(value, "writer", manifest_writer(shape));
    return print(value);
}

static bool read_shape(const cJSON *value, const struct settings *settings, struct window_shape *shape)
{
    const char *format = read_text(value, "format");
    const char *compression = read_text(value, "compression");
    const char *layout = read_text(value, "layout");
    const char *align = read_text(value, "align");

    if (format == NULL || compression == NULL || layout == NULL || !setting_format_parse(format, &shape->format) ||
        !setting_compression_parse(compression, &shape->compression) || !setting_layout_parse(layout, &shape->layout)) {
        return false;
    }
    if (shape->format == FORMAT_PARQUET && shape->compression == COMPRESSION_NONE) {
        shape->compression = COMPRESSION_SNAPPY; /* as the original wrote it */
    }
    shape->align = settings->align;
    return align == NULL || setting_align_parse(align, &shape->align);
}

bool intent_read(const cJSON *value, const struct settings *settings, struct lake_intent *intent)
{
    struct window_bounds *bounds = &intent->bounds;
    const char *prefix = read_text(value, "prefix");
    const char *writer = read_text(value, "writer");

    if (!read_integer(value, "k", &bounds->k) || !read_integer(value, "tStart", &bounds->start.v) ||
        !read_integer(value, "tEnd", &bounds->end.v) || bounds->start.v >= bounds->end.v ||
        !read_shape(value, settings, &intent->shape)) {
        return false;
    }
    if (prefix == NULL) {
        prefix = settings->prefix;
    }
    free(intent->prefix);
    free(intent->writer);
    intent->prefix = memory_copy_text(prefix);
    intent->writer = memory_copy_text(writer != NULL ? writer : "");
    return true;
}

void intent_free(struct lake_intent *intent)
{
    free(intent->prefix);
    free(intent->writer);
    *intent = (struct lake_intent){0};
}

/* ---- lease ---- */

char *lease_format(const char *instance, const char *incarnation, struct wall_ms since)
{
    cJSON *value = cJSON_CreateObject();

    cJSON_AddStringToObject(value, "instance", instance);
    cJSON_AddStringToObject(value, "incarnation", incarnation);
    add_integer(value, "sinceMs", since.v);
    return print(value);
}
