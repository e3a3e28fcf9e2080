/*
 * Reads shared/data/original-lakes.tar.zst: see lakes.h. Of tar as much as it takes: POSIX.1-1988 ustar headers and GNU
 * long names, plain files only.
 */
#include "lakes.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

static struct lake_file *files;
static size_t file_count;
static bool tried;

/* Or the test ends here. */
static void *grown(void *bytes, size_t size)
{
    void *larger = realloc(bytes, size);

    ck_assert_ptr_nonnull(larger);
    return larger;
}

static char *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t capacity = 0;

    if (file == NULL) {
        return NULL;
    }
    *size = 0;
    do {
        capacity = capacity == 0 ? 1 << 20 : capacity * 2;
        bytes = grown(bytes, capacity);
        *size += fread(bytes + *size, 1, capacity - *size, file);
    } while (*size == capacity);
    (void)fclose(file);
    return bytes;
}

char *unpack_zstd(const void *bytes, size_t size, size_t *unpacked)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {bytes, size, 0};
    ZSTD_outBuffer out = {NULL, 0, 0};
    size_t left = 1;

    while (left != 0 || in.pos < in.size) {
        if (out.size - out.pos < ZSTD_DStreamOutSize()) {
            out.size = out.size == 0 ? 1 << 20 : out.size * 2;
            out.dst = grown(out.dst, out.size);
        }
        size_t before = in.pos + out.pos;
        left = ZSTD_decompressStream(stream, &out, &in);
        ck_assert_msg(!ZSTD_isError(left), "zstd: %s", ZSTD_getErrorName(left));
        ck_assert_msg(left == 0 || in.pos + out.pos > before, "zstd: the frame ends early");
    }
    ZSTD_freeDStream(stream);
    *unpacked = out.pos;
    return out.dst;
}

char *unpack_gzip(const void *bytes, size_t size, size_t *unpacked)
{
    z_stream stream;
    char *out = NULL;
    size_t capacity = 0;
    int result = Z_OK;

    memset(&stream, 0, sizeof stream);
    ck_assert_int_eq(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)size;
    while (result == Z_OK) {
        if (stream.total_out == capacity) {
            capacity = capacity == 0 ? 1 << 20 : capacity * 2;
            out = grown(out, capacity);
        }
        stream.next_out = (Bytef *)out + stream.total_out;
        stream.avail_out = (uInt)(capacity - stream.total_out);
        result = inflate(&stream, Z_NO_FLUSH);
    }
    ck_assert_int_eq(result, Z_STREAM_END);
    ck_assert_uint_eq(stream.avail_in, 0);
    *unpacked = stream.total_out;
    (void)inflateEnd(&stream);
    return out;
}

char *shared_data(const char *name, size_t *size)
{
    const char *shared = getenv("QUEEN_S3_SHARED");
    char path[1024];
    size_t length = strlen(name);

    (void)snprintf(path, sizeof path, "%s/data/%s", shared != NULL ? shared : "../shared", name);
    char *bytes = read_whole(path, size);
    if (bytes == NULL) {
        (void)printf("%s is not there: built-in cases only (QUEEN_S3_SHARED names the folder)\n", path);
        return NULL;
    }
    if (length > 4 && strcmp(name + length - 4, ".zst") == 0) {
        char *unpacked = unpack_zstd(bytes, *size, size);
        free(bytes);
        return unpacked;
    }
    return bytes;
}

static void read_tar(const char *tar, size_t size)
{
    char long_name[512] = "";
    size_t at = 0;

    while (at + 512 <= size && tar[at] != '\0') {
        char digits[13] = "";
        memcpy(digits, tar + at + 124, 12);
        size_t length = strtoul(digits, NULL, 8);
        char kind = tar[at + 156];
        const char *content = tar + at + 512;
        ck_assert(length <= size - at - 512);
        if (kind == 'L') {
            (void)snprintf(long_name, sizeof long_name, "%.*s", (int)length, content);
        } else if (kind == '0' || kind == '\0') {
            files = grown(files, (file_count + 1) * sizeof *files);
            struct lake_file *file = &files[file_count++];
            if (long_name[0] != '\0') {
                (void)snprintf(file->path, sizeof file->path, "%s", long_name);
            } else {
                bool has_prefix = memcmp(tar + at + 257, "ustar", 6) == 0 && tar[at + 345] != '\0';
                (void)snprintf(file->path, sizeof file->path, "%.155s%s%.100s", has_prefix ? tar + at + 345 : "",
                               has_prefix ? "/" : "", tar + at);
            }
            if (strncmp(file->path, "./", 2) == 0) {
                memmove(file->path, file->path + 2, strlen(file->path + 2) + 1);
            }
            file->bytes = content;
            file->size = length;
            long_name[0] = '\0';
        }
        at += 512 + (length + 511) / 512 * 512;
    }
}

const struct lake_file *lakes_open(size_t *count)
{
    if (!tried) {
        size_t size = 0;
        char *tar = shared_data("original-lakes.tar.zst", &size);
        tried = true;
        if (tar != NULL) {
            read_tar(tar, size);
        }
    }
    *count = file_count;
    return files;
}

const struct lake_file *lakes_next(size_t *from, const char *prefix, const char *suffix)
{
    size_t count = 0;
    const struct lake_file *all = lakes_open(&count);

    while (*from < count) {
        const struct lake_file *file = &all[(*from)++];
        size_t length = strlen(file->path);
        if (strncmp(file->path, prefix, strlen(prefix)) == 0 && length >= strlen(suffix) &&
            strcmp(file->path + length - strlen(suffix), suffix) == 0) {
            return file;
        }
    }
    return NULL;
}

const struct lake_file *lakes_find(const char *path)
{
    size_t from = 0;
    const struct lake_file *file;

    do {
        file = lakes_next(&from, path, "");
    } while (file != NULL && strcmp(file->path, path) != 0);
    return file;
}
