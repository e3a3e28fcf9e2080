/*
 * One object, line by line (spec 2.2). Each line has to be, byte for byte, what its record in the log spells.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>
#include <zstd.h>

#include "common/memory.h"
#include "tests/sim/check.h"

#define NAME_MAX_SIZE 64

static char *inflate_all(const uint8_t *bytes, size_t size, size_t *out_size)
{
    z_stream stream = {0};
    size_t capacity = size * 8 + 4096;
    char *out = memory_new(capacity, 1);
    size_t filled = 0;
    if (inflateInit2(&stream, 31) != Z_OK) {
        free(out);
        return NULL;
    }
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)size;
    int status = Z_OK;
    while (status == Z_OK) {
        out = memory_grow(out, &capacity, filled + 4096, 1);
        stream.next_out = (Bytef *)out + filled;
        stream.avail_out = (uInt)(capacity - filled);
        status = inflate(&stream, Z_NO_FLUSH);
        filled = capacity - stream.avail_out;
    }
    bool whole = status == Z_STREAM_END && stream.avail_in == 0;
    inflateEnd(&stream);
    if (!whole) {
        free(out);
        return NULL;
    }
    *out_size = filled;
    return out;
}

char *check_decompress(const struct bucket_object *object, const char *compression, size_t *size)
{
    if (strcmp(compression, "none") == 0) {
        *size = object->size;
        return memory_copy((const char *)object->bytes, object->size);
    }
    if (strcmp(compression, "gzip") == 0)
        return inflate_all(object->bytes, object->size, size);
    unsigned long long declared = ZSTD_getFrameContentSize(object->bytes, object->size);
    if (strcmp(compression, "zstd") != 0 || declared > 1u << 30)
        return NULL;
    char *out = memory_new((size_t)declared + 1, 1);
    size_t written = ZSTD_decompress(out, (size_t)declared, object->bytes, object->size);
    if (ZSTD_isError(written) || written != declared) {
        free(out);
        return NULL;
    }
    *size = written;
    return out;
}

static const char *compression_of(const char *key)
{
    size_t size = strlen(key);
    return strcmp(key + size - 3, ".gz") == 0 ? "gzip" : strcmp(key + size - 4, ".zst") == 0 ? "zstd" : "none";
}

/* The size of the line at `at`, with its line feed. */
static size_t line_size(const char *at, const char *end)
{
    const char *feed = memchr(at, '\n', (size_t)(end - at));
    return feed != NULL ? (size_t)(feed + 1 - at) : (size_t)(end - at);
}

bool check_has_grown(const struct bucket_object *from, const struct bucket_object *to)
{
    size_t few_size = 0;
    size_t many_size = 0;
    char *few = check_decompress(from, compression_of(from->key), &few_size);
    char *many = check_decompress(to, compression_of(to->key), &many_size);
    const char *wanted = few;
    for (const char *at = many; wanted != NULL && at != NULL && at < many + many_size;) {
        size_t size = line_size(at, many + many_size);
        if (wanted < few + few_size && line_size(wanted, few + few_size) == size && memcmp(wanted, at, size) == 0)
            wanted += size;
        at += size;
    }
    bool grown = few != NULL && many != NULL && wanted == few + few_size && many_size > few_size;
    free(few);
    free(many);
    return grown;
}

/* ---- the parts of a line ---- */

struct reader {
    const char *at;
    const char *end;
};

static bool skip_text(struct reader *reader, const char *text)
{
    size_t size = strlen(text);
    if ((size_t)(reader->end - reader->at) < size || memcmp(reader->at, text, size) != 0)
        return false;
    reader->at += size;
    return true;
}

/* To the closing quote, unescaped; only the two escapes that names here can need. */
static bool read_name(struct reader *reader, char *name, size_t *size)
{
    *size = 0;
    while (reader->at < reader->end && *reader->at != '"' && *size < NAME_MAX_SIZE) {
        if (*reader->at == '\\' && ++reader->at == reader->end)
            return false;
        name[(*size)++] = *reader->at++;
    }
    return skip_text(reader, "\"");
}

static bool read_number(struct reader *reader, int64_t *number)
{
    const char *from = reader->at;
    *number = 0;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9' && reader->at - from < 18)
        *number = *number * 10 + (*reader->at++ - '0');
    return reader->at > from;
}

static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool read_ts(struct reader *reader, int64_t *ts)
{
    int64_t part[7];
    static const char *const between[7] = {"-", "-", "T", ":", ":", ".", "Z"};
    static const size_t widths[7] = {4, 2, 2, 2, 2, 2, 6};
    for (size_t i = 0; i < 7; i++) {
        const char *from = reader->at;
        if (!read_number(reader, &part[i]) || (size_t)(reader->at - from) != widths[i] ||
            !skip_text(reader, between[i]))
            return false;
    }
    int64_t seconds = days_from_civil(part[0], part[1], part[2]) * 86400 + part[3] * 3600 + part[4] * 60 + part[5];
    *ts = seconds * 1000000 + part[6];
    return true;
}

/* ---- a line against its record ---- */

static size_t spell_rest(const struct log_record *record, char *out)
{
    size_t size = 0;
    memcpy(out, record->id_spelled, record->id_spelled_size);
    size += record->id_spelled_size;
    time_t seconds = (time_t)(record->segment->ts / 1000000);
    struct tm civil;
    gmtime_r(&seconds, &civil);
    size += (size_t)sprintf(out + size,
                            "\",\"ts\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06dZ\",\"payload\":", civil.tm_year + 1900,
                            civil.tm_mon + 1, civil.tm_mday, civil.tm_hour, civil.tm_min, civil.tm_sec,
                            (int)(record->segment->ts % 1000000));
    for (size_t i = 0; i < record->payload_size; i++) {
        char byte = record->payload[i];
        out[size++] = byte == '\n' || byte == '\r' ? ' ' : byte;
    }
    out[size++] = '}';
    return size;
}

struct log_partition *check_partition(struct simulation *simulation, size_t queue, const char *name, size_t size)
{
    struct log_queue *where = &simulation->log.queues[queue];
    for (size_t p = 0; p < where->partition_count; p++)
        if (where->partitions[p].name_size == size && memcmp(where->partitions[p].name, name, size) == 0)
            return &where->partitions[p];
    return NULL;
}

struct log_record *check_record(struct log_partition *partition, size_t life, int64_t offset)
{
    struct log_life *which = &partition->lives[life];
    for (size_t s = 0; s < which->segment_count; s++) {
        struct log_segment *segment = which->segments[s];
        if (offset >= segment->first && offset < segment->first + (int64_t)segment->count)
            return segment->records[offset - segment->first];
    }
    return NULL;
}

static struct log_record *find_record(struct log_partition *partition, int64_t offset, int64_t ts)
{
    for (size_t life = 0; partition != NULL && life < partition->life_count; life++) {
        struct log_record *record = check_record(partition, life, offset);
        if (record != NULL && record->segment->ts == ts)
            return record;
    }
    return NULL;
}

static bool bad_line(struct simulation *simulation, const struct checked_window *window, const char *why,
                     const char *line, const char *end)
{
    sim_fail(simulation, "window %lld of %s: %s: %.*s", (long long)window->k, simulation->queues[window->queue], why,
             (int)(end - line > 200 ? 200 : end - line), line);
    return false;
}

static int compare_places(const char *a, size_t a_size, int64_t a_offset, const char *b, size_t b_size,
                          int64_t b_offset)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    if (order == 0)
        order = (a_size > b_size) - (a_size < b_size);
    return order != 0 ? order : (a_offset > b_offset) - (a_offset < b_offset);
}

struct place {
    char name[NAME_MAX_SIZE];
    size_t name_size;
    int64_t offset;
    bool any;
};

static bool check_line(struct simulation *simulation, struct checked_window *window, const char *line, const char *end,
                       struct place *last)
{
    struct reader reader = {line, end};
    char name[NAME_MAX_SIZE];
    size_t name_size;
    int64_t offset;
    int64_t ts;
    if (!skip_text(&reader, "{\"partition\":\"") || !read_name(&reader, name, &name_size) ||
        !skip_text(&reader, ",\"offset\":") || !read_number(&reader, &offset) ||
        !skip_text(&reader, ",\"transactionId\":\""))
        return bad_line(simulation, window, "not an envelope", line, end);
    const char *rest = reader.at;
    const char *ts_at = rest;
    while (ts_at < end && strncmp(ts_at, "\",\"ts\":\"", 8) != 0)
        ts_at++;
    reader.at = ts_at;
    if (!skip_text(&reader, "\",\"ts\":\"") || !read_ts(&reader, &ts))
        return bad_line(simulation, window, "no ts", line, end);
    struct log_partition *partition = check_partition(simulation, window->queue, name, name_size);
    struct log_record *record = find_record(partition, offset, ts);
    if (record == NULL)
        return bad_line(simulation, window, "the log has no such record", line, end);
    char *expected = memory_new(record->payload_size + record->id_spelled_size + 128, 1);
    size_t expected_size = spell_rest(record, expected);
    bool same = expected_size == (size_t)(end - rest) && memcmp(expected, rest, expected_size) == 0;
    free(expected);
    if (!same)
        return bad_line(simulation, window, "not the record's bytes", line, end);
    if (ts < window->start || ts >= window->end)
        return bad_line(simulation, window, "outside of the window", line, end);
    if (++record->windows > 1)
        return bad_line(simulation, window, "twice in the lake", line, end);
    if (last->any && compare_places(last->name, last->name_size, last->offset, name, name_size, offset) >= 0)
        return bad_line(simulation, window, "out of order", line, end);
    if (!last->any || last->name_size != name_size || memcmp(last->name, name, name_size) != 0)
        window->partitions++;
    if (window->records == 0 || ts < window->min_ts)
        window->min_ts = ts;
    if (window->records == 0 || ts > window->max_ts)
        window->max_ts = ts;
    memcpy(last->name, name, name_size);
    last->name_size = name_size;
    last->offset = offset;
    last->any = true;
    window->records++;
    return true;
}

bool check_lines(struct simulation *simulation, struct checked_window *window, const char *text, size_t size)
{
    struct place last = {.any = false};
    const char *end = text + size;
    while (text < end) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        if (feed == NULL)
            return bad_line(simulation, window, "no line feed at the end", text, end);
        if (!check_line(simulation, window, text, feed, &last))
            return false;
        text = feed + 1;
    }
    return true;
}
