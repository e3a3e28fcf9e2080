/* A file being filled: open_file.h. */
#include "worker/connector/open_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/file_bucket.h"
#include "worker/compress.h"

#define SEPARATOR_SIZE 1 /* `[` or `,` before a record, a line feed behind it */
#define CLOSING_SIZE   1 /* `]` */

int sink_place_render(const struct sink_place *place, uint64_t timestamp_ms, const struct sink_shape *shape,
                      char out[SINK_KEY_MAX + 1], struct error *error)
{
    char key[SINK_KEY_MAX + 1];
    int size =
        place->prefix != NULL && place->prefix[0] != '\0' ? snprintf(out, SINK_KEY_MAX + 1, "%s/", place->prefix) : 0;

    if (size < 0 || size >= SINK_KEY_MAX) {
        return error_set(error, QS_ERROR_INPUT, "prefix is longer than an object key may be (%d bytes)", SINK_KEY_MAX);
    }
    int code = path_template_render(place->path_template, place->topic, place->partition, timestamp_ms, out + size,
                                    (size_t)(SINK_KEY_MAX + 1 - size), error);
    if (code == 0) {
        code = open_file_key(out, place->partition, 0, 0, shape, key, error);
    }
    return code == 0 && place->is_folder ? file_key_check(key, error) : code;
}

bool open_file_is_behind(const struct open_file *file, uint64_t offset)
{
    return file->count > 0 && offset <= file->last_offset;
}

/* The first record of a file decides where it goes. */
static int begin(struct open_file *file, const struct sink_place *place, const struct sink_formatter *formatter,
                 const struct sink_record *record, struct error *error)
{
    int code = sink_place_render(place, record->timestamp_ms, &formatter->shape, file->directory, error);

    if (code == 0) {
        file->first_offset = record->offset;
        file->own_bytes = 0;
    }
    return code;
}

int open_file_add(struct open_file *file, const struct sink_place *place, struct sink_formatter *formatter,
                  const struct sink_record *record, uint64_t hash, enum open_file_added *added, unsigned *oddities,
                  struct error *error)
{
    enum sink_format format = formatter->shape.format;
    size_t before = format == SINK_JSON_ARRAY ? SEPARATOR_SIZE : 0;
    size_t behind = format == SINK_JSON_LINES ? SEPARATOR_SIZE : 0;
    char *bytes;
    size_t size;

    *added = OPEN_FILE_ADDED;
    if (file->count == 0 && begin(file, place, formatter, record, error) != 0) {
        return error->code;
    }
    if (!seen_reserve(&file->seen, 1)) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a record's offset");
    }
    int code = sink_format_record(formatter, record, &file->body, before, &bytes, &size, oddities, error);
    if (code != 0) {
        return code;
    }
    if (file->count > 0 && file->written + file->body.size + before + size + behind + CLOSING_SIZE > SINK_OBJECT_MAX) {
        *added = OPEN_FILE_NO_ROOM;
        return 0;
    }
    if (before > 0) {
        bytes[-1] = file->count == 0 ? '[' : ',';
    }
    if (behind > 0) {
        bytes[size] = '\n';
    }
    sink_body_commit(&file->body, before + size + behind);
    seen_add(&file->seen, record->offset, hash);
    file->count++;
    file->own_bytes += size;
    file->last_offset = record->offset;
    return 0;
}

bool open_file_is_full(const struct open_file *file, const struct sink_limits *limits)
{
    if (file->count == 0) {
        return false;
    }
    return limits->rotation == SINK_BY_MESSAGES ? file->count >= limits->max_messages
                                                : file->own_bytes >= limits->max_size;
}

static int take_compressed(void *argument, const uint8_t *bytes, size_t size)
{
    return sink_body_add(argument, bytes, size) ? 0 : QS_ERROR_NO_MEMORY;
}

/* As the shape says, in place. QS_ERROR_NO_MEMORY leaves it as it was. */
static int compress_body(struct sink_body *body, enum setting_compression compression, struct error *error)
{
    struct sink_body out = {0};
    int code = 0;

    error_clear(error);
    if (compression == COMPRESSION_NONE) {
        return 0;
    }
    struct compressor *compressor = compressor_create(compression, body->size, 1, take_compressed, &out, error);
    if (compressor == NULL) {
        return error->code;
    }
    for (size_t i = 0; i < body->count && code == 0; i++) {
        code = compressor_feed(compressor, body->pieces[i].iov_base, body->pieces[i].iov_len, error);
    }
    code = code == 0 ? compressor_finish(compressor, error) : code;
    compressor_destroy(compressor);
    sink_body_clear(code == 0 ? body : &out);
    if (code == 0) {
        *body = out;
    }
    return code;
}

int open_file_finish(struct open_file *file, const struct sink_shape *shape, struct error *error)
{
    bool closes = shape->format == SINK_JSON_ARRAY;

    error_clear(error);
    if (file->finished) {
        return 0;
    }
    if (closes && !sink_body_add(&file->body, "]", CLOSING_SIZE)) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the end of a file");
    }
    int code = compress_body(&file->body, shape->compression, error);
    file->finished = code == 0;
    if (code != 0 && closes) { /* it is tried again, and then closed again */
        file->body.pieces[file->body.count - 1].iov_len -= CLOSING_SIZE;
        file->body.room += CLOSING_SIZE;
        file->body.size -= CLOSING_SIZE;
    }
    return code;
}

int open_file_key(const char *directory, int32_t partition, uint64_t first, uint64_t last,
                  const struct sink_shape *shape, char out[SINK_KEY_MAX + 1], struct error *error)
{
    int size = snprintf(out, SINK_KEY_MAX + 1, "%s/%05" PRId32 "-%020" PRIu64 "-%020" PRIu64 ".%s", directory,
                        partition, first, last, sink_shape_extension(shape));

    if (size < 0 || size > SINK_KEY_MAX) {
        return error_set(error, QS_ERROR_INPUT, "the object key under %.120s... is longer than %d bytes", directory,
                         SINK_KEY_MAX);
    }
    error_clear(error);
    return 0;
}

void open_file_clear(struct open_file *file)
{
    sink_body_clear(&file->body);
    seen_free(&file->seen);
    file->count = 0;
    file->own_bytes = 0;
    file->written = 0;
    file->finished = false;
}
