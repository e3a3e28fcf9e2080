/*
 * Holding lines against the envelope (jsonl_read.h, spec 2.2):
 *
 *   {"partition":"…","offset":1811,"transactionId":"…","ts":"2026-09-04T10:03:41.918204Z","payload":{…}}
 *
 * There is one spelling of it, so there is nothing to parse but what varies: two strings in the lake's own spelling, a
 * number, a time of 27 characters, and a payload that has to be a JSON value and to end where the line does. All else is
 * compared.
 *
 * The buffer holds the line at hand and what was read behind it, and grows to the longest line.
 */
#include "common/lake/jsonl_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/lake/text_stream.h"

#define BUFFER_SIZE 262144
#define TIME_SIZE   27

struct jsonl_reader {
    struct text_stream *text;
    struct json_scan scan;
    char *buffer;
    size_t capacity;
    size_t at;          /* of the next line */
    size_t used;        /* bytes in the buffer */
    bool ended;         /* the text has: what is in the buffer is all */
    uint64_t before;    /* bytes of the text before the buffer */
    uint64_t line;      /* number of the line that came last, from 1 */
    uint64_t line_byte; /* its first byte in the text */
    char *names;        /* partition and transaction id, where they are unescaped */
    size_t names_capacity;
};

/* ---- one line ---- */

/* A cursor on the line at hand, and why it is none. */
struct line {
    struct jsonl_reader *reader;
    const char *start;
    const char *at;
    const char *end; /* of the line, its line feed not included */
    const char *why;
    bool no_memory;
};

static void fail(struct line *line, const char *why)
{
    if (line->why == NULL) {
        line->why = why;
    }
}

static void need(struct line *line, const char *text, size_t size)
{
    if (line->why == NULL && ((size_t)(line->end - line->at) < size || memcmp(line->at, text, size) != 0)) {
        size_t same = 0;
        while (line->at + same < line->end && same < size && line->at[same] == text[same]) {
            same++;
        }
        line->at += same;
        fail(line, "not the envelope's fields in their order and spelling");
    }
    if (line->why == NULL) {
        line->at += size;
    }
}

#define NEED(line, text) need(line, text, sizeof(text) - 1)

/* Room in `names` for all that a line's strings can become. False: out of memory. */
static bool reserve_names(struct jsonl_reader *reader, size_t size)
{
    if (size > reader->names_capacity) {
        char *names = realloc(reader->names, size);
        if (names == NULL) {
            return false;
        }
        reader->names = names;
        reader->names_capacity = size;
    }
    return true;
}

/* A string in the lake's spelling, from its opening quote on. It is unescaped at the same place of `names` that it has
 * in the line, so that two strings never meet, and then spelled again behind that to see that it was the lake's. */
static struct name take_string(struct line *line)
{
    struct name name = {"", 0};
    bool escaped = false;
    const char *after;

    if (line->why != NULL) {
        return name;
    }
    after = json_scan_string(line->at, line->end, &name.bytes, &name.size, &escaped);
    if (after == NULL) {
        fail(line, "a string that is none");
        return name;
    }
    if (escaped) {
        struct jsonl_reader *reader = line->reader;
        size_t place = (size_t)(name.bytes - line->start);
        size_t length = (size_t)(line->end - line->start);
        if (!reserve_names(reader, 2 * length)) {
            line->no_memory = true;
            fail(line, "out of memory for its strings");
            return name;
        }
        char *raw = reader->names + place;
        size_t size = json_unescape(name.bytes, name.size, raw);
        char *again = reader->names + length;
        if (json_spelled_size(raw, size) != name.size) {
            fail(line, "a string in another spelling than the lake's");
            return name;
        }
        (void)json_spell_string(raw, size, again);
        if (memcmp(again, name.bytes, name.size) != 0) {
            fail(line, "a string in another spelling than the lake's");
            return name;
        }
        name = (struct name){raw, size};
    }
    line->at = after;
    return name;
}

static int64_t take_offset(struct line *line)
{
    const char *first = line->at;
    int64_t value = 0;

    while (line->why == NULL && line->at < line->end && *line->at >= '0' && *line->at <= '9') {
        int64_t digit = *line->at - '0';
        if (value > (INT64_MAX - digit) / 10) {
            fail(line, "an offset beyond 64 bits");
            return 0;
        }
        value = value * 10 + digit;
        line->at++;
    }
    if (line->at == first || (*first == '0' && line->at - first > 1)) {
        fail(line, "an offset that is no plain number");
    }
    return value;
}

/* Six fractional digits and Z, always: the parser accepts fewer, and +00:00, which the lake doesn't write. */
static struct broker_us take_time(struct line *line)
{
    struct broker_us time = {0};

    if (line->why == NULL && (line->end - line->at < TIME_SIZE || line->at[19] != '.' ||
                              line->at[TIME_SIZE - 1] != 'Z' || !clock_parse_broker(line->at, TIME_SIZE, &time))) {
        fail(line, "a time that isn't spelled YYYY-MM-DDTHH:MM:SS.ffffffZ");
    }
    if (line->why == NULL) {
        line->at += TIME_SIZE;
    }
    return time;
}

/* A JSON value that ends one byte before the line does. */
static void take_payload(struct line *line, struct lake_record *record)
{
    struct json_value value = {0};
    const char *after = NULL;

    if (line->why != NULL) {
        return;
    }
    if (line->at < line->end) {
        after = json_scan_value(&line->reader->scan, line->at, line->end, &value);
    }
    if (after == NULL) {
        fail(line, "a payload that isn't JSON");
        return;
    }
    if (value.line_breaks) {
        fail(line, "a raw line break between a payload's tokens");
        return;
    }
    line->at = after;
    record->payload = (struct name){value.start, value.size};
    record->payload_null = value.size == 4 && memcmp(value.start, "null", 4) == 0;
    record->line_breaks = false;
}

static int refuse(const struct jsonl_reader *reader, size_t in_line, const char *why, struct error *error)
{
    return error_refuse(error, QS_ERROR_BODY, "line %" PRIu64 ", byte %" PRIu64 " of the text: %s", reader->line,
                        reader->line_byte + in_line, why);
}

static int read_line(struct jsonl_reader *reader, size_t size, struct lake_record *record, struct error *error)
{
    const char *start = reader->buffer + reader->at;
    struct line line = {.reader = reader, .start = start, .at = start, .end = start + size};

    NEED(&line, "{\"partition\":");
    record->partition = take_string(&line);
    NEED(&line, ",\"offset\":");
    record->offset = take_offset(&line);
    NEED(&line, ",\"transactionId\":");
    record->transaction_id = take_string(&line);
    NEED(&line, ",\"ts\":\"");
    record->ts = take_time(&line);
    NEED(&line, "\",\"payload\":");
    take_payload(&line, record);
    NEED(&line, "}");
    if (line.why == NULL && line.at != line.end) {
        fail(&line, "something follows the envelope");
    }
    if (line.no_memory) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a line of %zu bytes", size);
    }
    if (line.why != NULL) {
        return refuse(reader, (size_t)(line.at - line.start), line.why, error);
    }
    reader->at += size + 1;
    return 1;
}

/* ---- lines of a text ---- */

/* More of the text behind what is there: first the lines that are done with leave, then the buffer grows. */
static int read_more(struct jsonl_reader *reader, struct error *error)
{
    size_t got = 0;

    if (reader->at > 0) {
        memmove(reader->buffer, reader->buffer + reader->at, reader->used - reader->at);
        reader->before += reader->at;
        reader->used -= reader->at;
        reader->at = 0;
    }
    if (reader->used == reader->capacity) {
        size_t wanted = reader->capacity < BUFFER_SIZE ? BUFFER_SIZE : reader->capacity * 2;
        if (reader->capacity >= OBJECT_RECORD_MAX) {
            return refuse(reader, 0, "a line longer than any record", error);
        }
        char *buffer = realloc(reader->buffer, wanted);
        if (buffer == NULL) {
            return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a line of %zu bytes", wanted);
        }
        reader->buffer = buffer;
        reader->capacity = wanted;
    }
    int code =
        text_stream_read(reader->text, reader->buffer + reader->used, reader->capacity - reader->used, &got, error);
    if (code != 0) {
        return code;
    }
    reader->used += got;
    reader->ended = got == 0;
    return 0;
}

int jsonl_reader_next(struct jsonl_reader *reader, struct lake_record *record, struct error *error)
{
    size_t searched = 0;

    reader->line++;
    reader->line_byte = reader->before + reader->at;
    while (true) {
        const char *start = reader->buffer + reader->at;
        size_t size = reader->used - reader->at;
        const char *feed = size > searched ? memchr(start + searched, '\n', size - searched) : NULL;
        if (feed != NULL) {
            return read_line(reader, (size_t)(feed - start), record, error);
        }
        if (reader->ended) {
            return size == 0 ? 0 : refuse(reader, size, "the last line has no end", error);
        }
        searched = size;
        int code = read_more(reader, error);
        if (code != 0) {
            return code;
        }
    }
}

void jsonl_reader_where(const struct jsonl_reader *reader, uint64_t *line, uint64_t *byte)
{
    *line = reader->line;
    *byte = reader->line_byte;
}

struct jsonl_reader *jsonl_reader_open(enum setting_compression compression, const struct object_source *source,
                                       struct error *error)
{
    struct text_stream *text = text_stream_open(compression, source, error);
    struct jsonl_reader *reader = text != NULL ? calloc(1, sizeof *reader) : NULL;

    if (text == NULL) {
        return NULL;
    }
    if (reader != NULL) {
        reader->text = text;
        reader->capacity = BUFFER_SIZE;
        reader->buffer = malloc(BUFFER_SIZE);
    }
    if (reader == NULL || reader->buffer == NULL) {
        free(reader);
        text_stream_close(text);
        (void)error_set(error, QS_ERROR_NO_MEMORY, "out of memory for reading an object");
        return NULL;
    }
    return reader;
}

void jsonl_reader_close(struct jsonl_reader *reader)
{
    if (reader != NULL) {
        text_stream_close(reader->text);
        free(reader->scan.bits);
        free(reader->names);
        free(reader->buffer);
        free(reader);
    }
}
