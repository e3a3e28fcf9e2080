/*
 * Reading a manifest (manifest.h): ours, the original's, and what an operator's tools made of either. The text is walked
 * where it lies, not turned into a tree: all 64 bits of a number count, and ten thousand objects cost their own size.
 *
 * What is asked of it is what its users lean on: every member of spec 2.3 there and of its kind, counts that aren't
 * negative, bounds in order, a compression that its format has. Unknown members are passed over, for what comes later.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hex.h"
#include "common/json_walk.h"
#include "common/lake/manifest.h"
#include "common/memory.h"

struct reader {
    struct json_scan scan;
    struct manifest *manifest;
    const char *wrong; /* the member that isn't what it must be */
    unsigned seen;
    size_t object_capacity;
    size_t lost_capacity;
};

enum {
    SEEN_SINK = 1 << 0,
    SEEN_QUEUE = 1 << 1,
    SEEN_K = 1 << 2,
    SEEN_START = 1 << 3,
    SEEN_END = 1 << 4,
    SEEN_FORMAT = 1 << 5,
    SEEN_COMPRESSION = 1 << 6,
    SEEN_LAYOUT = 1 << 7,
    SEEN_OBJECTS = 1 << 8,
    SEEN_RECORDS = 1 << 9,
    SEEN_BYTES = 1 << 10,
    SEEN_PARTITIONS = 1 << 11,
    SEEN_WRITER = 1 << 12,
    SEEN_COMMITTED_AT = 1 << 13,
    SEEN_MIN = 1 << 14,
    SEEN_MAX = 1 << 15,
    SEEN_ALL = (1 << 14) - 1
};

static bool take_integer(struct json_text value, int64_t *out)
{
    return json_text_integer(value, out);
}

static bool take_count(struct json_text value, uint64_t *out)
{
    int64_t number = 0;

    if (!json_text_integer(value, &number) || number < 0) {
        return false;
    }
    *out = (uint64_t)number;
    return true;
}

/* A string without NUL, in place of what *out held. */
static bool take_text(struct json_text value, char **out)
{
    const char *text = NULL;

    if (!json_text_c_string(value, &text)) {
        return false;
    }
    free(*out);
    *out = memory_copy_text(text);
    return true;
}

static bool take_name(struct json_text value, char **out, size_t *size)
{
    struct name name;

    if (!json_text_string(value, &name)) {
        return false;
    }
    free(*out);
    *out = memory_copy(name.bytes, name.size);
    *size = name.size;
    return true;
}

static bool take_sha256(struct json_text value, uint8_t out[32])
{
    struct name text;

    if (!json_text_string(value, &text) || text.size != 64) {
        return false;
    }
    for (size_t i = 0; i < 32; i++) {
        int byte = hex_byte(text.bytes + 2 * i);
        if (byte < 0) {
            return false;
        }
        out[i] = (uint8_t)byte;
    }
    return true;
}

enum { OBJECT_KEY = 1, OBJECT_BYTES = 2, OBJECT_RECORDS = 4, OBJECT_SHA256 = 8, OBJECT_FIRST = 16, OBJECT_LAST = 32 };

static bool object_member(struct manifest_object *object, struct json_text key, struct json_text value, unsigned *seen)
{
    if (json_text_is(key, "key")) {
        *seen |= OBJECT_KEY;
        return take_text(value, &object->key);
    }
    if (json_text_is(key, "bytes")) {
        *seen |= OBJECT_BYTES;
        return take_count(value, &object->bytes);
    }
    if (json_text_is(key, "records")) {
        *seen |= OBJECT_RECORDS;
        return take_count(value, &object->records);
    }
    if (json_text_is(key, "sha256")) {
        *seen |= OBJECT_SHA256;
        return take_sha256(value, object->sha256);
    }
    if (json_text_is(key, "partition")) {
        object->has_partition = true;
        return take_name(value, &object->partition, &object->partition_size);
    }
    if (json_text_is(key, "firstOffset")) {
        *seen |= OBJECT_FIRST;
        return take_integer(value, &object->first_offset);
    }
    if (json_text_is(key, "lastOffset")) {
        *seen |= OBJECT_LAST;
        return take_integer(value, &object->last_offset);
    }
    return true;
}

static bool read_object(struct reader *reader, struct json_text text)
{
    struct manifest *manifest = reader->manifest;
    struct json_walk walk;
    struct json_text key;
    struct json_text value;
    unsigned seen = 0;
    unsigned needed = OBJECT_KEY | OBJECT_BYTES | OBJECT_RECORDS | OBJECT_SHA256;

    manifest->objects =
        memory_grow(manifest->objects, &reader->object_capacity, manifest->object_count + 1, sizeof *manifest->objects);
    struct manifest_object *object = &manifest->objects[manifest->object_count++];
    memset(object, 0, sizeof *object);
    if (!json_walk_object(&walk, &reader->scan, text)) {
        return false;
    }
    while (json_walk_member(&walk, &key, &value)) {
        if (!object_member(object, key, value, &seen)) {
            return false;
        }
    }
    needed |= object->has_partition ? OBJECT_FIRST | OBJECT_LAST : 0;
    return (seen & needed) == needed;
}

enum { LOST_PARTITION = 1, LOST_FROM = 2, LOST_TO = 4 };

static bool read_lost(struct reader *reader, struct json_text text)
{
    struct manifest *manifest = reader->manifest;
    struct json_walk walk;
    struct json_text key;
    struct json_text value;
    unsigned seen = 0;
    bool good = true;

    manifest->lost =
        memory_grow(manifest->lost, &reader->lost_capacity, manifest->lost_count + 1, sizeof *manifest->lost);
    struct manifest_lost *lost = &manifest->lost[manifest->lost_count++];
    memset(lost, 0, sizeof *lost);
    if (!json_walk_object(&walk, &reader->scan, text)) {
        return false;
    }
    while (good && json_walk_member(&walk, &key, &value)) {
        if (json_text_is(key, "partition")) {
            seen |= LOST_PARTITION;
            good = take_name(value, &lost->partition, &lost->partition_size);
        } else if (json_text_is(key, "from")) {
            seen |= LOST_FROM;
            good = take_integer(value, &lost->from);
        } else if (json_text_is(key, "to")) {
            seen |= LOST_TO;
            good = take_integer(value, &lost->to);
        } else if (json_text_is(key, "life")) {
            struct name life;
            good = json_text_string(value, &life);
            lost->previous_life = good && life.size == 8 && memcmp(life.bytes, "previous", 8) == 0;
        }
    }
    return good && seen == (LOST_PARTITION | LOST_FROM | LOST_TO);
}

static bool read_array(struct reader *reader, struct json_text text,
                       bool (*read)(struct reader *reader, struct json_text text))
{
    struct json_walk walk;
    struct json_text value;

    if (!json_walk_array(&walk, &reader->scan, text)) {
        return false;
    }
    while (json_walk_element(&walk, &value)) {
        if (!read(reader, value)) {
            return false;
        }
    }
    return true;
}

static bool take_format(struct json_text value, struct window_shape *shape)
{
    const char *text = NULL;

    return json_text_c_string(value, &text) && setting_format_parse(text, &shape->format);
}

static bool take_compression(struct json_text value, struct window_shape *shape)
{
    const char *text = NULL;

    return json_text_c_string(value, &text) && setting_compression_parse(text, &shape->compression);
}

static bool take_layout(struct json_text value, struct window_shape *shape)
{
    const char *text = NULL;

    return json_text_c_string(value, &text) && setting_layout_parse(text, &shape->layout);
}

static bool take_committed_at(struct json_text value, struct manifest *manifest)
{
    struct name text;
    struct broker_us parsed;

    if (!json_text_string(value, &text) || !clock_parse_broker(text.bytes, text.size, &parsed)) {
        return false;
    }
    manifest->committed_at = (struct wall_ms){parsed.v / 1000};
    return true;
}

static bool take_member(struct reader *reader, unsigned which, struct json_text value)
{
    struct manifest *manifest = reader->manifest;

    switch (which) {
    case SEEN_SINK: return take_text(value, &manifest->sink);
    case SEEN_QUEUE: return take_text(value, &manifest->queue);
    case SEEN_K: return take_integer(value, &manifest->bounds.k) && manifest->bounds.k >= 0;
    case SEEN_START: return take_integer(value, &manifest->bounds.start.v);
    case SEEN_END: return take_integer(value, &manifest->bounds.end.v);
    case SEEN_FORMAT: return take_format(value, &manifest->shape);
    case SEEN_COMPRESSION: return take_compression(value, &manifest->shape);
    case SEEN_LAYOUT: return take_layout(value, &manifest->shape);
    case SEEN_OBJECTS: return manifest->object_count == 0 && read_array(reader, value, read_object);
    case SEEN_RECORDS: return take_count(value, &manifest->records);
    case SEEN_BYTES: return take_count(value, &manifest->bytes);
    case SEEN_PARTITIONS: return take_count(value, &manifest->partitions);
    case SEEN_WRITER: return take_text(value, &manifest->writer);
    case SEEN_COMMITTED_AT: return take_committed_at(value, manifest);
    case SEEN_MIN: return take_integer(value, &manifest->min_ts.v);
    case SEEN_MAX: return take_integer(value, &manifest->max_ts.v);
    default: return manifest->lost_count == 0 && read_array(reader, value, read_lost);
    }
}

static const struct {
    const char *key;
    unsigned which;
} members[] = {{"sink", SEEN_SINK},
               {"queue", SEEN_QUEUE},
               {"k", SEEN_K},
               {"tStart", SEEN_START},
               {"tEnd", SEEN_END},
               {"format", SEEN_FORMAT},
               {"compression", SEEN_COMPRESSION},
               {"layout", SEEN_LAYOUT},
               {"objects", SEEN_OBJECTS},
               {"records", SEEN_RECORDS},
               {"bytes", SEEN_BYTES},
               {"partitions", SEEN_PARTITIONS},
               {"writer", SEEN_WRITER},
               {"committedAt", SEEN_COMMITTED_AT},
               {"minTs", SEEN_MIN},
               {"maxTs", SEEN_MAX},
               {"lost", 0}};

#define MEMBER_COUNT (sizeof members / sizeof *members)

/* Parquet knows two codecs; the original wrote `none` where it meant snappy (spec 2.3). */
static bool settle_shape(struct window_shape *shape)
{
    if (shape->format == FORMAT_PARQUET) {
        if (shape->compression == COMPRESSION_NONE) {
            shape->compression = COMPRESSION_SNAPPY;
        }
        return shape->compression != COMPRESSION_GZIP;
    }
    return shape->compression != COMPRESSION_SNAPPY;
}

static const char *missing_member(const struct reader *reader)
{
    unsigned needed = SEEN_ALL | (reader->manifest->records > 0 ? SEEN_MIN | SEEN_MAX : 0);

    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if ((members[i].which & needed & ~reader->seen) != 0) {
            return members[i].key;
        }
    }
    return NULL;
}

/* False where reader->wrong says why not. */
static bool read_manifest(struct reader *reader, struct json_text text)
{
    struct json_walk walk;
    struct json_text key;
    struct json_text value;

    if (!json_walk_object(&walk, &reader->scan, text)) {
        reader->wrong = "an object";
        return false;
    }
    while (json_walk_member(&walk, &key, &value)) {
        size_t i = 0;
        while (i < MEMBER_COUNT && !json_text_is(key, members[i].key)) {
            i++;
        }
        if (i < MEMBER_COUNT && !take_member(reader, members[i].which, value)) {
            reader->wrong = members[i].key;
            return false;
        }
        reader->seen |= i < MEMBER_COUNT ? members[i].which : 0;
    }
    reader->wrong = missing_member(reader);
    if (reader->wrong == NULL && !settle_shape(&reader->manifest->shape)) {
        reader->wrong = "compression";
    }
    if (reader->wrong == NULL && reader->manifest->bounds.start.v > reader->manifest->bounds.end.v) {
        reader->wrong = "tEnd";
    }
    return reader->wrong == NULL;
}

int manifest_parse(const char *text, size_t size, struct manifest *manifest, struct error *error)
{
    struct reader reader = {.manifest = manifest};
    char *copy = memory_copy(text, size);
    const char *end = copy + size;
    const char *start = json_skip_blank(copy, end);
    struct json_value value;
    int code = 0;

    memset(manifest, 0, sizeof *manifest);
    const char *after = json_scan_value(&reader.scan, start, end, &value);
    if (after == NULL || json_skip_blank(after, end) != end) {
        code = error_set(error, QS_ERROR_BODY, "not a manifest: not one JSON value");
    } else if (!read_manifest(&reader, (struct json_text){copy + (start - copy), value.size})) {
        code = error_set(error, QS_ERROR_BODY, "not a manifest: %s is missing or not what it must be", reader.wrong);
    }
    if (code != 0) {
        manifest_free(manifest);
    }
    free(reader.scan.bits);
    free(copy);
    return code;
}
