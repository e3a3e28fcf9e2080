/*
 * How settings, intents and manifests spell formats, compressions, layouts and alignments (spec 2.3, 3.1, 3.5). One
 * table each, read both ways.
 */
#include <strings.h>

#include "common/settings.h"

static const char *const formats[] = {[FORMAT_JSONL] = "jsonl", [FORMAT_PARQUET] = "parquet"};
static const char *const compressions[] = {[COMPRESSION_ZSTD] = "zstd",
                                           [COMPRESSION_GZIP] = "gzip",
                                           [COMPRESSION_NONE] = "none",
                                           [COMPRESSION_SNAPPY] = "snappy"};
static const char *const layouts[] = {[LAYOUT_MERGED] = "merged", [LAYOUT_PER_PARTITION] = "per-partition"};
static const char *const aligns[] = {[ALIGN_HOUR] = "hour", [ALIGN_DAY] = "day", [ALIGN_NONE] = "none"};

/* The index of text in names, -1 where it isn't there. */
static int find(const char *text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(text, names[i]) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *setting_format_name(enum setting_format format)
{
    return formats[format];
}

const char *setting_compression_name(enum setting_compression compression)
{
    return compressions[compression];
}

const char *setting_layout_name(enum setting_layout layout)
{
    return layouts[layout];
}

const char *setting_align_name(enum setting_align align)
{
    return aligns[align];
}

bool setting_format_parse(const char *text, enum setting_format *out)
{
    int found = find(text, formats, sizeof formats / sizeof *formats);

    if (found >= 0) {
        *out = (enum setting_format)found;
    }
    return found >= 0;
}

bool setting_compression_parse(const char *text, enum setting_compression *out)
{
    int found = find(text, compressions, sizeof compressions / sizeof *compressions);

    if (found >= 0) {
        *out = (enum setting_compression)found;
    }
    return found >= 0;
}

bool setting_layout_parse(const char *text, enum setting_layout *out)
{
    int found = find(text, layouts, sizeof layouts / sizeof *layouts);

    if (found >= 0) {
        *out = (enum setting_layout)found;
    }
    return found >= 0;
}

bool setting_align_parse(const char *text, enum setting_align *out)
{
    int found = find(text, aligns, sizeof aligns / sizeof *aligns);

    if (found >= 0) {
        *out = (enum setting_align)found;
    }
    return found >= 0;
}
