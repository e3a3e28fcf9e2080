/*
 * Writing a manifest (manifest.h): spec 2.3's order of keys, one line, no blanks, as a stream of pieces into one buffer:
 * a window in per-partition layout has an object for each of its partitions.
 */
#include "common/lake/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/hex.h"
#include "common/json_scan.h"
#include "common/memory.h"

const char *manifest_writer(const struct window_shape *shape)
{
    if (shape->format == FORMAT_PARQUET) {
        return shape->compression == COMPRESSION_SNAPPY ? "queen-s3/" QUEEN_S3_VERSION " parquet snappy"
                                                        : "queen-s3/" QUEEN_S3_VERSION " parquet zstd";
    }
    switch (shape->compression) {
    case COMPRESSION_ZSTD: return "queen-s3/" QUEEN_S3_VERSION " jsonl+zstd";
    case COMPRESSION_GZIP: return "queen-s3/" QUEEN_S3_VERSION " jsonl+gzip";
    case COMPRESSION_NONE:
    case COMPRESSION_SNAPPY: break;
    }
    return "queen-s3/" QUEEN_S3_VERSION " jsonl";
}

static void add_string(struct byte_buffer *out, const char *text, size_t size)
{
    size_t spelled = json_spelled_size(text, size);

    byte_buffer_add_text(out, "\"");
    if (spelled == size) {
        byte_buffer_add(out, text, size);
    } else {
        char *escaped = memory_new(spelled, 1);
        json_spell_string(text, size, escaped);
        byte_buffer_add(out, escaped, spelled);
        free(escaped);
    }
    byte_buffer_add_text(out, "\"");
}

static void add_member(struct byte_buffer *out, const char *before, const char *text)
{
    byte_buffer_add_text(out, before);
    add_string(out, text, strlen(text));
}

static void add_object(struct byte_buffer *out, const struct manifest_object *object)
{
    char sha256[2 * sizeof object->sha256];

    add_member(out, "{\"key\":", object->key);
    byte_buffer_add_format(out, ",\"bytes\":%" PRIu64 ",\"records\":%" PRIu64 ",\"sha256\":\"", object->bytes,
                           object->records);
    byte_buffer_add(out, sha256, (size_t)(hex_write(sha256, object->sha256, sizeof object->sha256) - sha256));
    byte_buffer_add_text(out, "\"");
    if (object->has_partition) {
        byte_buffer_add_text(out, ",\"partition\":");
        add_string(out, object->partition, object->partition_size);
        byte_buffer_add_format(out, ",\"firstOffset\":%" PRId64 ",\"lastOffset\":%" PRId64, object->first_offset,
                               object->last_offset);
    }
    byte_buffer_add_text(out, "}");
}

static void add_lost(struct byte_buffer *out, const struct manifest_lost *lost)
{
    byte_buffer_add_text(out, "{\"partition\":");
    add_string(out, lost->partition, lost->partition_size);
    byte_buffer_add_format(out, ",\"from\":%" PRId64 ",\"to\":%" PRId64 "%s}", lost->from, lost->to,
                           lost->previous_life ? ",\"life\":\"previous\"" : "");
}

char *manifest_format(const struct manifest *manifest, size_t *size)
{
    struct byte_buffer out = {0};
    char committed_at[CLOCK_TEXT_SIZE];

    add_member(&out, "{\"sink\":", manifest->sink);
    add_member(&out, ",\"queue\":", manifest->queue);
    byte_buffer_add_format(&out, ",\"k\":%" PRId64 ",\"tStart\":%" PRId64 ",\"tEnd\":%" PRId64, manifest->bounds.k,
                           manifest->bounds.start.v, manifest->bounds.end.v);
    byte_buffer_add_format(&out, ",\"format\":\"%s\",\"compression\":\"%s\",\"layout\":\"%s\",\"objects\":[",
                           setting_format_name(manifest->shape.format),
                           setting_compression_name(manifest->shape.compression),
                           setting_layout_name(manifest->shape.layout));
    for (size_t i = 0; i < manifest->object_count; i++) {
        byte_buffer_add_text(&out, i > 0 ? "," : "");
        add_object(&out, &manifest->objects[i]);
    }
    byte_buffer_add_format(&out, "],\"records\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"partitions\":%" PRIu64,
                           manifest->records, manifest->bytes, manifest->partitions);
    if (manifest->records > 0) {
        byte_buffer_add_format(&out, ",\"minTs\":%" PRId64 ",\"maxTs\":%" PRId64, manifest->min_ts.v,
                               manifest->max_ts.v);
    }
    byte_buffer_add_text(&out, ",\"lost\":[");
    for (size_t i = 0; i < manifest->lost_count; i++) {
        byte_buffer_add_text(&out, i > 0 ? "," : "");
        add_lost(&out, &manifest->lost[i]);
    }
    add_member(&out, "],\"writer\":", manifest->writer);
    clock_format_wall(manifest->committed_at, committed_at);
    byte_buffer_add_format(&out, ",\"committedAt\":\"%s\"}", committed_at);
    *size = out.size;
    return byte_buffer_take(&out);
}

void manifest_free(struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->object_count; i++) {
        free(manifest->objects[i].key);
        free(manifest->objects[i].partition);
    }
    for (size_t i = 0; i < manifest->lost_count; i++) {
        free(manifest->lost[i].partition);
    }
    free(manifest->objects);
    free(manifest->lost);
    free(manifest->sink);
    free(manifest->queue);
    free(manifest->writer);
    memset(manifest, 0, sizeof *manifest);
}
