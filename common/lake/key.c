/*
 * Names and keys of the lake (key.h, spec 2.1). A key is a function of the window's intent and of nothing else, so what
 * is written here is written for ever: a change to any of it puts a second copy of a redone window beside the first.
 */
#include "common/lake/key.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/hex.h"

/* The long-name rule: at most 160 bytes stay; of a longer name 143, then `~` and 16 hex digits, 160 again. */
#define NAME_MAX_SIZE 160
#define NAME_CUT_SIZE 143

static bool stays(unsigned char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
           byte == '.' || byte == '_' || byte == '-';
}

static void append_digest(struct name name, char *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};

    /* One-shot SHA-256 over memory fails only where the library itself is unusable; TLS and signing are gone then too,
     * and no key of a lake is ever made. */
    EVP_Digest(name.bytes, name.size, digest, NULL, EVP_sha256(), NULL);
    *out++ = '~';
    *hex_write(out, digest, 8) = '\0';
}

void lake_escape_name(struct name name, char out[LAKE_NAME_SIZE])
{
    static const char digits[] = "0123456789ABCDEF";
    bool dots = (name.size == 1 || name.size == 2) && memcmp(name.bytes, "..", name.size) == 0;
    size_t size = 0;
    size_t cut = 0;

    for (size_t i = 0; i < name.size; i++) {
        unsigned char byte = (unsigned char)name.bytes[i];
        size_t length = stays(byte) && !dots ? 1 : 3;
        if (size + length > NAME_MAX_SIZE) {
            append_digest(name, out + cut);
            return;
        }
        if (length == 1) {
            out[size] = (char)byte;
        } else {
            out[size] = '%';
            out[size + 1] = digits[byte >> 4];
            out[size + 2] = digits[byte & 15];
        }
        size += length;
        if (size <= NAME_CUT_SIZE) {
            cut = size;
        }
    }
    out[size] = '\0';
}

static int put_key(char out[LAKE_KEY_SIZE], struct error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int put_key(char out[LAKE_KEY_SIZE], struct error *error, const char *format, ...)
{
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(out, LAKE_KEY_SIZE, format, arguments);
    va_end(arguments);
    if (size < 0 || size >= LAKE_KEY_SIZE) {
        out[0] = '\0';
        return error_set(error, QS_ERROR_INPUT,
                         "an object key would be %d bytes long, S3 takes at most %d: shorten QUEEN_S3_PREFIX", size,
                         LAKE_KEY_SIZE - 1);
    }
    return 0;
}

/* A prefix stands before its slash, none before nothing. */
static const char *slash(const char *prefix)
{
    return prefix[0] == '\0' ? "" : "/";
}

/* `dt=2026-09-04/hour=10`, from the window's start; `align=day` has no hour. */
static void put_date(const struct window_shape *shape, struct broker_us start, char out[32])
{
    char time[CLOCK_TEXT_SIZE];

    clock_format_broker(start, time);
    if (shape->align == ALIGN_DAY) {
        snprintf(out, 32, "dt=%.10s", time);
    } else {
        snprintf(out, 32, "dt=%.10s/hour=%.2s", time, time + 11);
    }
}

int lake_object_key(const char *prefix, const char *escaped_queue, const struct window_shape *shape,
                    const struct window_bounds *bounds, char out[LAKE_KEY_SIZE], struct error *error)
{
    char date[32];

    put_date(shape, bounds->start, date);
    return put_key(out, error, "%s%squeue=%s/%s/w-%010" PRId64 "-%016" PRId64 "-%016" PRId64 ".%s", prefix,
                   slash(prefix), escaped_queue, date, bounds->k, bounds->start.v, bounds->end.v,
                   lake_extension(shape));
}

int lake_partition_object_key(const char *prefix, const char *escaped_queue, const struct window_shape *shape,
                              const struct window_bounds *bounds, const char *escaped_partition, int64_t first_offset,
                              int64_t last_offset, char out[LAKE_KEY_SIZE], struct error *error)
{
    char date[32];

    put_date(shape, bounds->start, date);
    return put_key(out, error,
                   "%s%squeue=%s/%s/w-%010" PRId64 "-%016" PRId64 "-%016" PRId64 "-p-%s-%012" PRId64 "-%012" PRId64
                   ".%s",
                   prefix, slash(prefix), escaped_queue, date, bounds->k, bounds->start.v, bounds->end.v,
                   escaped_partition, first_offset, last_offset, lake_extension(shape));
}

int lake_manifest_key(const char *prefix, const char *escaped_queue, int64_t k, char out[LAKE_KEY_SIZE],
                      struct error *error)
{
    return put_key(out, error, "%s%s_queen/%s/windows/%010" PRId64 ".json", prefix, slash(prefix), escaped_queue, k);
}

int lake_checkpoint_key(const char *prefix, const char *escaped_queue, int64_t k, char out[LAKE_KEY_SIZE],
                        struct error *error)
{
    return put_key(out, error, "%s%s_queen/%s/checkpoint/%010" PRId64 ".json.zst", prefix, slash(prefix), escaped_queue,
                   k);
}

int lake_checkpoint_prefix(const char *prefix, const char *escaped_queue, char out[LAKE_KEY_SIZE], struct error *error)
{
    return put_key(out, error, "%s%s_queen/%s/checkpoint/", prefix, slash(prefix), escaped_queue);
}

const char *lake_extension(const struct window_shape *shape)
{
    if (shape->format == FORMAT_PARQUET) {
        return "parquet";
    }
    switch (shape->compression) {
    case COMPRESSION_ZSTD: return "jsonl.zst";
    case COMPRESSION_GZIP: return "jsonl.gz";
    case COMPRESSION_NONE:
    case COMPRESSION_SNAPPY: break;
    }
    return "jsonl";
}

const char *lake_content_type(const struct window_shape *shape)
{
    return shape->format == FORMAT_PARQUET ? "application/vnd.apache.parquet" : "application/x-ndjson";
}

int64_t lake_align_unit_us(enum setting_align align)
{
    switch (align) {
    case ALIGN_HOUR: return INT64_C(3600000000);
    case ALIGN_DAY: return INT64_C(86400000000);
    case ALIGN_NONE: break;
    }
    return 0;
}

struct broker_us lake_align_floor(enum setting_align align, struct broker_us time)
{
    int64_t unit = lake_align_unit_us(align);
    int64_t past;

    if (unit == 0) {
        return time;
    }
    past = time.v % unit;
    if (past < 0) {
        past += unit;
    }
    /* Below the first whole unit that the type holds there is no boundary. */
    return (struct broker_us){time.v < INT64_MIN + past ? INT64_MIN : time.v - past};
}
