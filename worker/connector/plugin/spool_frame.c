/* Frames: spool_frame.h. */
#include "worker/connector/plugin/spool_frame.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#define MAGIC       UINT32_C(0x53505150)
#define READ_SIZE   ((size_t)1 << 20)
#define TABLE_LIMIT (UINT64_C(1) << 36)

static void table_add(struct spool_table *table, const void *bytes, size_t size)
{
    if (size > table->capacity - table->size) {
        size_t capacity = 2 * table->capacity > table->size + size ? 2 * table->capacity : table->size + size + 64;
        uint8_t *grown = realloc(table->bytes, capacity);
        if (grown == NULL) {
            table->failed = true;
            return;
        }
        table->bytes = grown;
        table->capacity = capacity;
    }
    if (size > 0) {
        memcpy(table->bytes + table->size, bytes, size);
    }
    table->size += size;
}

void spool_table_add_number(struct spool_table *table, uint64_t number)
{
    uint64_t little = htole64(number);

    table_add(table, &little, sizeof little);
}

void spool_table_add_text(struct spool_table *table, const char *bytes, size_t size)
{
    spool_table_add_number(table, size);
    table_add(table, bytes, size);
}

const void *spool_table_bytes(struct spool_table *table, uint64_t size)
{
    if (table->failed || size > table->size - table->at) {
        table->failed = true;
        return NULL;
    }
    const void *bytes = table->bytes + table->at;
    table->at += (size_t)size;
    return bytes;
}

uint64_t spool_table_number(struct spool_table *table)
{
    uint64_t little = 0;
    const void *bytes = spool_table_bytes(table, sizeof little);

    if (bytes != NULL) {
        memcpy(&little, bytes, sizeof little);
    }
    return le64toh(little);
}

void spool_table_free(struct spool_table *table)
{
    free(table->bytes);
    *table = (struct spool_table){0};
}

struct header {
    uint32_t magic;
    uint32_t kind;
    uint32_t table_crc;
    uint32_t body_crc;
    uint32_t table_size; /* low half; a table is below 64 GiB, the high half is in kind */
    uint32_t body_low;
    uint32_t body_high;
    uint32_t crc;
};
_Static_assert(sizeof(struct header) == SPOOL_HEADER_SIZE, "a header has no holes");

static uint32_t crc_of(const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(0, bytes, size);
}

static uint32_t crc_of_body(const struct sink_body *body)
{
    uLong crc = 0;

    for (size_t i = 0; body != NULL && i < body->count; i++) {
        crc = crc32_z(crc, body->pieces[i].iov_base, body->pieces[i].iov_len);
    }
    return (uint32_t)crc;
}

bool spool_is_within_limit(uint64_t end)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

static int write_all(int descriptor, const char *path, uint64_t *position, const void *bytes, size_t size,
                     struct error *error)
{
    const char *at = bytes;

    while (size > 0) {
        ssize_t written = pwrite(descriptor, at, size, (off_t)*position);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return error_set_errno(error, "can't write to %s", path);
        }
        at += written;
        size -= (size_t)written;
        *position += (uint64_t)written;
    }
    return 0;
}

int spool_frame_write(int descriptor, const char *path, uint64_t *position, enum spool_kind kind,
                      const struct spool_table *table, const struct sink_body *body, struct error *error)
{
    uint64_t body_size = body != NULL ? body->size : 0;
    struct header header = {.magic = htole32(MAGIC),
                            .kind = htole32((uint32_t)kind | (uint32_t)((uint64_t)table->size >> 32) << 8),
                            .table_crc = htole32(crc_of(table->bytes, table->size)),
                            .body_crc = htole32(crc_of_body(body)),
                            .table_size = htole32((uint32_t)table->size),
                            .body_low = htole32((uint32_t)body_size),
                            .body_high = htole32((uint32_t)(body_size >> 32))};

    if (table->failed || table->size >= TABLE_LIMIT) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the spool's records");
    }
    if (!spool_is_within_limit(*position + sizeof header + table->size + body_size)) {
        errno = EFBIG;
        return error_set_errno(error, "can't write to %s", path);
    }
    header.crc = htole32(crc_of(&header, offsetof(struct header, crc)));
    int code = write_all(descriptor, path, position, &header, sizeof header, error);
    if (code == 0) {
        code = write_all(descriptor, path, position, table->bytes, table->size, error);
    }
    for (size_t i = 0; code == 0 && body != NULL && i < body->count; i++) {
        code = write_all(descriptor, path, position, body->pieces[i].iov_base, body->pieces[i].iov_len, error);
    }
    return code;
}

/* SPOOL_TORN where the file ends before. */
static enum spool_read read_all(int descriptor, const char *path, uint64_t position, void *out, size_t size,
                                struct error *error)
{
    char *at = out;

    while (size > 0) {
        ssize_t got = pread(descriptor, at, size, (off_t)position);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            error_set_errno(error, "can't read %s", path);
            return SPOOL_FAILED;
        }
        if (got == 0) {
            return SPOOL_TORN;
        }
        at += got;
        size -= (size_t)got;
        position += (uint64_t)got;
    }
    return SPOOL_READ;
}

static enum spool_read read_table(int descriptor, const char *path, struct spool_frame *frame, uint32_t crc,
                                  struct error *error)
{
    uint8_t *bytes = malloc(frame->table_size > 0 ? (size_t)frame->table_size : 1);

    if (bytes == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the records of %s", path);
        return SPOOL_FAILED;
    }
    enum spool_read read = read_all(descriptor, path, frame->table_at, bytes, (size_t)frame->table_size, error);
    if (read == SPOOL_READ && crc_of(bytes, (size_t)frame->table_size) != crc) {
        read = SPOOL_TORN;
    }
    if (read != SPOOL_READ) {
        free(bytes);
        return read;
    }
    frame->table =
        (struct spool_table){.bytes = bytes, .size = (size_t)frame->table_size, .capacity = (size_t)frame->table_size};
    return SPOOL_READ;
}

enum spool_read spool_frame_read(int descriptor, const char *path, uint64_t position, uint64_t size,
                                 struct spool_frame *frame, struct error *error)
{
    struct header header;

    *frame = (struct spool_frame){0};
    if (position == size) {
        return SPOOL_END;
    }
    if (size - position < sizeof header) {
        return SPOOL_TORN;
    }
    enum spool_read read = read_all(descriptor, path, position, &header, sizeof header, error);
    if (read != SPOOL_READ) {
        return read;
    }
    uint32_t kind = le32toh(header.kind);
    if (le32toh(header.magic) != MAGIC || le32toh(header.crc) != crc_of(&header, offsetof(struct header, crc))) {
        return SPOOL_TORN;
    }
    frame->kind = (enum spool_kind)(kind & 0xff);
    frame->table_size = (uint64_t)(kind >> 8) << 32 | le32toh(header.table_size);
    frame->body_size = (uint64_t)le32toh(header.body_high) << 32 | le32toh(header.body_low);
    frame->body_crc = le32toh(header.body_crc);
    frame->table_at = position + sizeof header;
    frame->body_at = frame->table_at + frame->table_size;
    frame->next = frame->body_at + frame->body_size;
    if (frame->table_size >= TABLE_LIMIT || frame->table_size > size || frame->body_size > size || frame->next > size) {
        return SPOOL_TORN;
    }
    return read_table(descriptor, path, frame, le32toh(header.table_crc), error);
}

static bool is_header(const char *bytes)
{
    struct header header;

    memcpy(&header, bytes, sizeof header);
    return le32toh(header.crc) == crc_of(&header, offsetof(struct header, crc));
}

enum spool_read spool_frame_find(int descriptor, const char *path, uint64_t position, uint64_t size,
                                 struct error *error)
{
    const uint32_t magic = htole32(MAGIC);
    enum spool_read read = SPOOL_END;
    char *bytes = malloc(READ_SIZE);

    if (bytes == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the bytes of %s", path);
        return SPOOL_FAILED;
    }
    while (read == SPOOL_END && position < size && size - position >= SPOOL_HEADER_SIZE) {
        size_t part = size - position < READ_SIZE ? (size_t)(size - position) : READ_SIZE;
        read = read_all(descriptor, path, position, bytes, part, error) == SPOOL_READ ? SPOOL_END : SPOOL_FAILED;
        const char *at = bytes;
        while (read == SPOOL_END && (at = memmem(at, part - (size_t)(at - bytes), &magic, sizeof magic)) != NULL) {
            read = part - (size_t)(at - bytes) >= SPOOL_HEADER_SIZE && is_header(at) ? SPOOL_READ : SPOOL_END;
            at++;
        }
        position += part - SPOOL_HEADER_SIZE + 1; /* one that goes on behind the part is found whole with the next */
    }
    free(bytes);
    return read;
}

enum spool_read spool_frame_body(int descriptor, const char *path, const struct spool_frame *frame,
                                 struct sink_body *out, struct error *error)
{
    struct sink_body scratch = {0};
    struct sink_body *into = out != NULL ? out : &scratch;
    uint64_t left = frame->body_size;
    uint64_t position = frame->body_at;
    enum spool_read read = SPOOL_READ;
    uLong crc = 0;

    while (left > 0 && read == SPOOL_READ) {
        size_t part = left < READ_SIZE ? (size_t)left : READ_SIZE;
        char *room = sink_body_reserve(into, part);
        if (room == NULL) {
            error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the bytes of %s", path);
            read = SPOOL_FAILED;
            break;
        }
        read = read_all(descriptor, path, position, room, part, error);
        if (read == SPOOL_READ) {
            crc = crc32_z(crc, (const Bytef *)room, part);
            if (out != NULL) {
                sink_body_commit(out, part);
            }
        }
        left -= part;
        position += part;
    }
    sink_body_clear(&scratch);
    return read == SPOOL_READ && (uint32_t)crc != frame->body_crc ? SPOOL_TORN : read;
}
