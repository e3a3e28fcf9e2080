/*
 * Filling in the templates of `ddl`: conditions, names and quotings of ddl.h.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/lake/key.h"
#include "common/memory.h"
#include "supervisor/commands/ddl.h"

struct filling {
    const struct settings *settings;
    const char *queue;
    char escaped[LAKE_NAME_SIZE];
    const char *host; /* the endpoint behind its scheme */
    const char *extension;
};

/* ---- conditions ---- */

static bool has_wildcard(const struct settings *settings)
{
    static const char special[] = "*?[]{}\\,";

    return strpbrk(settings->prefix, special) != NULL ||
           (settings->file_root != NULL && strpbrk(settings->file_root, special) != NULL);
}

static bool is(const char *name, size_t size, const char *wanted)
{
    return strlen(wanted) == size && memcmp(name, wanted, size) == 0;
}

static bool holds(const struct filling *filling, const char *name, size_t size)
{
    const struct settings *settings = filling->settings;
    const struct {
        const char *name;
        bool holds;
    } conditions[] = {{"s3", settings->file_root == NULL},
                      {"file", settings->file_root != NULL},
                      {"jsonl", settings->format == FORMAT_JSONL},
                      {"parquet", settings->format == FORMAT_PARQUET},
                      {"zstd", settings->compression == COMPRESSION_ZSTD},
                      {"gzip", settings->compression == COMPRESSION_GZIP},
                      {"none", settings->compression == COMPRESSION_NONE},
                      {"snappy", settings->compression == COMPRESSION_SNAPPY},
                      {"hour", settings->align != ALIGN_DAY},
                      {"day", settings->align == ALIGN_DAY},
                      {"path-style", settings->path_style},
                      {"virtual-host", !settings->path_style},
                      {"amazon", settings->file_root == NULL && settings_at_amazon(settings)},
                      {"custom", settings->file_root == NULL && !settings_at_amazon(settings)},
                      {"http", strncmp(settings->endpoint, "http:", 5) == 0},
                      {"wildcard", has_wildcard(settings)}};

    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        if (is(name, size, conditions[i].name)) {
            return conditions[i].holds;
        }
    }
    return false;
}

/* Whether the line stays, and from where. */
static const char *judge(const struct filling *filling, const char *line)
{
    if (*line != '%') {
        return line;
    }
    do {
        line++;
        size_t size = strcspn(line, "+ ");
        if (!holds(filling, line, size)) {
            return NULL;
        }
        line += size;
    } while (*line == '+');
    return line + 1;
}

/* ---- names ---- */

static char *describe(const struct filling *filling)
{
    const struct settings *settings = filling->settings;
    bool parquet = settings->format == FORMAT_PARQUET;
    const char *codec = setting_compression_name(settings->compression);

    return memory_format("queue %s of %s, %s%s%s, %s layout, aligned to %s%s", filling->queue, settings->bucket,
                         parquet ? "Parquet" : "JSON Lines", settings->compression == COMPRESSION_NONE ? "" : " with ",
                         settings->compression == COMPRESSION_NONE ? "" : codec, setting_layout_name(settings->layout),
                         settings->align == ALIGN_NONE ? "nothing" : "the ",
                         settings->align == ALIGN_NONE ? "" : setting_align_name(settings->align));
}

/* prefix/queue=orders */
static char *key_of(const struct filling *filling)
{
    const char *prefix = filling->settings->prefix;

    return memory_format("%s%squeue=%s", prefix, prefix[0] != '\0' ? "/" : "", filling->escaped);
}

static char *path_of(const struct filling *filling)
{
    const struct settings *settings = filling->settings;
    bool file = settings->file_root != NULL;
    char *key = key_of(filling);
    /* A root of "/" has its slash already. */
    const char *root = !file ? "" : strcmp(settings->file_root, "/") == 0 ? "" : settings->file_root;
    char *path = memory_format("%s%s%s/%s", root, file ? "/" : "", settings->bucket, key);

    free(key);
    return path;
}

static char *folder_of(const struct filling *filling)
{
    char *path = path_of(filling);
    char *folder = memory_format("%s%s", filling->settings->file_root == NULL ? "s3://" : "", path);

    free(path);
    return folder;
}

static char *glob_of(const struct filling *filling)
{
    return memory_format("dt=*/%sw-*.%s", filling->settings->align == ALIGN_DAY ? "" : "hour=*/", filling->extension);
}

static char *objects_of(const struct filling *filling)
{
    char *folder = folder_of(filling);
    char *glob = glob_of(filling);
    char *objects = memory_format("%s/%s", folder, glob);

    free(folder);
    free(glob);
    return objects;
}

/* Polars encodes a listing's prefix once too often, and then finds nothing below a `%`; a set of one character ends the
 * prefix before it. */
static char *polars_objects_of(const struct filling *filling)
{
    char *objects = objects_of(filling);
    struct byte_buffer out = {0};

    for (const char *at = objects; *at != '\0'; at++) {
        bool odd = *at == '%' && filling->settings->file_root == NULL;
        byte_buffer_add(&out, odd ? "[%]" : at, odd ? 3 : 1);
    }
    free(objects);
    return byte_buffer_take(&out);
}

static char *file_url_of(const struct filling *filling)
{
    char *path = path_of(filling);
    char *url = memory_format("file://%s", path);

    free(path);
    return url;
}

static char *s3_url_of(const struct filling *filling)
{
    char *key = key_of(filling);
    char *url = memory_format("s3://%s/%s", filling->settings->bucket, key);

    free(key);
    return url;
}

static char *s3a_url_of(const struct filling *filling)
{
    char *path = path_of(filling);
    char *url = memory_format("s3a://%s", path);

    free(path);
    return url;
}

/* https://bucket.host[:port] */
static char *bucket_host(const struct filling *filling)
{
    const char *endpoint = filling->settings->endpoint;

    return memory_format("%.*s%s.%s", (int)(filling->host - endpoint), endpoint, filling->settings->bucket,
                         filling->host);
}

/* A key as it stands in a URL; its slashes stay. */
static void add_encoded(struct byte_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/=", *text) != NULL) {
            byte_buffer_add(out, text, 1);
        } else {
            byte_buffer_add_format(out, "%%%02X", (unsigned char)*text);
        }
    }
}

static char *url_of(const struct filling *filling)
{
    const struct settings *settings = filling->settings;
    struct byte_buffer out = {0};
    char *key = key_of(filling);
    char *host = bucket_host(filling);

    if (settings->path_style) {
        byte_buffer_add_format(&out, "%s/%s/", settings->endpoint, settings->bucket);
    } else {
        byte_buffer_add_format(&out, "%s/", host);
    }
    add_encoded(&out, key);
    free(key);
    free(host);
    return byte_buffer_take(&out);
}

static char *url_objects_of(const struct filling *filling)
{
    char *url = url_of(filling);
    char *glob = glob_of(filling);
    char *objects = memory_format("%s/%s", url, glob);

    free(url);
    free(glob);
    return objects;
}

static char *value_of(const struct filling *filling, const char *name, size_t size)
{
    static const struct {
        const char *name;
        char *(*make)(const struct filling *filling);
    } made[] = {{"what", describe},          {"key", key_of},
                {"path", path_of},           {"folder", folder_of},
                {"objects", objects_of},     {"polars-objects", polars_objects_of},
                {"file-url", file_url_of},   {"s3-url", s3_url_of},
                {"s3a-url", s3a_url_of},     {"url-objects", url_objects_of},
                {"bucket-host", bucket_host}};
    const struct settings *settings = filling->settings;
    const struct {
        const char *name;
        const char *value;
    } kept[] = {{"queue", filling->queue},
                {"extension", filling->extension},
                {"endpoint", settings->endpoint},
                {"host", filling->host},
                {"bucket", settings->bucket},
                {"region", settings->region != NULL ? settings->region : ""},
                {"compression", setting_compression_name(settings->compression)}};

    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        if (is(name, size, made[i].name)) {
            return made[i].make(filling);
        }
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (is(name, size, kept[i].name)) {
            return memory_copy_text(kept[i].value);
        }
    }
    return memory_copy("", 0);
}

/* ---- quotings ---- */

struct quoting {
    const char *name;
    char quote;
    bool doubled;   /* a quote inside is doubled, not given a backslash */
    bool backslash; /* a backslash inside is doubled */
    bool inside;    /* the quotes around it stand in the template */
};

static const struct quoting quotings[] = {
    {"sql", '\'', true, false, false},     {"escape", '\'', false, true, false},
    {"sql-part", '\'', true, false, true}, {"escape-part", '\'', false, true, true},
    {"id", '"', true, false, false},       {"id-escape", '"', false, true, false},
    {"tick", '`', true, false, false},     {"python", '"', false, true, false},
};

static void add_quoted(struct byte_buffer *out, const char *value, const struct quoting *quoting)
{
    byte_buffer_add(out, &quoting->quote, quoting->inside ? 0 : 1);
    for (; *value != '\0'; value++) {
        if (*value == quoting->quote) {
            byte_buffer_add(out, quoting->doubled ? &quoting->quote : "\\", 1);
        } else if (*value == '\\' && quoting->backslash) {
            byte_buffer_add_text(out, "\\");
        }
        byte_buffer_add(out, value, 1);
    }
    byte_buffer_add(out, &quoting->quote, quoting->inside ? 0 : 1);
}

/* What every catalogue takes for a name: lower-case letters, digits and underscores, no digit first. */
static void add_name(struct byte_buffer *out, const char *value)
{
    if (*value >= '0' && *value <= '9') {
        byte_buffer_add_text(out, "_");
    }
    for (; *value != '\0'; value++) {
        char byte = *value >= 'A' && *value <= 'Z' ? (char)(*value - 'A' + 'a') : *value;
        bool stays = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
        byte_buffer_add(out, stays ? &byte : "_", 1);
    }
}

static void add_value(struct byte_buffer *out, const char *value, const char *quoting, size_t size)
{
    for (size_t i = 0; i < sizeof quotings / sizeof *quotings; i++) {
        if (is(quoting, size, quotings[i].name)) {
            add_quoted(out, value, &quotings[i]);
            return;
        }
    }
    if (is(quoting, size, "name")) {
        add_name(out, value);
    } else {
        byte_buffer_add_text(out, value);
    }
}

/* `{{name quoting}}`, text behind its braces; returns what stands behind it. */
static const char *add_placeholder(struct byte_buffer *out, const struct filling *filling, const char *text)
{
    const char *end = strstr(text, "}}");
    size_t name = strcspn(text, " ");
    char *value = value_of(filling, text, name);

    add_value(out, value, text + name + 1, (size_t)(end - text) - name - 1);
    free(value);
    return end + 2;
}

static void add_line(struct byte_buffer *out, const struct filling *filling, const char *line, const char *end)
{
    while (line < end) {
        const char *braces = strstr(line, "{{");
        if (braces == NULL || braces > end) {
            byte_buffer_add(out, line, (size_t)(end - line));
            return;
        }
        byte_buffer_add(out, line, (size_t)(braces - line));
        line = add_placeholder(out, filling, braces + 2);
    }
}

char *ddl_fill(const char *text, const struct settings *settings, const char *queue)
{
    struct filling filling = {.settings = settings, .queue = queue};
    struct window_shape shape = {settings->format, settings->compression, settings->layout, settings->align};
    struct byte_buffer out = {0};
    const char *scheme = strstr(settings->endpoint, "://");

    filling.host = scheme != NULL ? scheme + 3 : settings->endpoint;
    filling.extension = lake_extension(&shape);
    lake_escape_name((struct name){queue, strlen(queue)}, filling.escaped);
    while (*text != '\0') {
        const char *end = strchr(text, '\n') + 1;
        const char *line = judge(&filling, text);
        if (line != NULL) {
            add_line(&out, &filling, line, end);
        }
        text = end;
    }
    return byte_buffer_take(&out);
}
