/*
 * Reading a checkpoint (checkpoint.h, spec 2.4) as a stream: zstd chunk by chunk, and of the JSON never more than the
 * value at hand, which is a number or a name. The frame's window is bounded too: it is the reader that pays for it, and
 * level 3 needs 2 MiB (RFC 8878, 3.1.1.1.2 asks decoders for 8).
 *
 * Any order of members and any blanks are accepted, unknown members and elements behind the third of an entry are
 * passed over. Whatever else is odd makes it no checkpoint: it is a cache, and costs re-reads.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/json_scan.h"
#include "common/lake/checkpoint.h"
#include "common/memory.h"
#include "common/partition_id.h"

#define CHUNK_SIZE     131072
#define WINDOW_LOG_MAX 23
#define STRING_MAX     1048576
#define DEPTH_MAX      64
#define END            (-1)

struct reader {
    ZSTD_DCtx *zstd;
    ZSTD_inBuffer in;
    bool frame_open; /* the last frame isn't whole yet */
    const char *why; /* why it is no checkpoint; NULL: so far it is one */
    char *string;    /* the string at hand, quotes and all, then unescaped */
    size_t string_capacity;
    size_t at;
    size_t size;
    char chunk[CHUNK_SIZE];
};

static void fail(struct reader *reader, const char *why)
{
    if (reader->why == NULL) {
        reader->why = why;
    }
    reader->at = reader->size;
}

/* The next chunk; false at the end or at an error. */
static bool refill(struct reader *reader)
{
    ZSTD_outBuffer out = {reader->chunk, sizeof reader->chunk, 0};

    while (reader->why == NULL && out.pos == 0) {
        size_t before = reader->in.pos;
        if (before == reader->in.size && !reader->frame_open) {
            return false;
        }
        size_t left = ZSTD_decompressStream(reader->zstd, &out, &reader->in);
        if (ZSTD_isError(left)) {
            fail(reader, ZSTD_getErrorName(left));
        } else if (left != 0 && out.pos == 0 && reader->in.pos == before) {
            fail(reader, "the zstd frame ends early");
        }
        reader->frame_open = left != 0;
    }
    reader->at = 0;
    reader->size = reader->why == NULL ? out.pos : 0;
    return reader->size > 0;
}

/* The byte at hand, END at the end. */
static int peek(struct reader *reader)
{
    if (reader->at == reader->size && !refill(reader)) {
        return END;
    }
    return (unsigned char)reader->chunk[reader->at];
}

static int peek_token(struct reader *reader)
{
    int byte = peek(reader);

    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
        reader->at++;
        byte = peek(reader);
    }
    return byte;
}

/* True, and passed, where the next token is this byte. */
static bool take(struct reader *reader, char token)
{
    if (peek_token(reader) != token) {
        return false;
    }
    reader->at++;
    return true;
}

static void need(struct reader *reader, char token)
{
    if (!take(reader, token)) {
        fail(reader, "not the JSON of a checkpoint");
    }
}

/* Raw bytes of the string up to and with its closing quote into reader->string. */
static size_t collect_string(struct reader *reader)
{
    bool escaped = false;
    size_t size = 0;

    do {
        int byte = peek(reader);
        if (byte == END || size == STRING_MAX) {
            fail(reader, byte == END ? "it ends inside a string" : "a string longer than 1 MiB");
            return 0;
        }
        reader->string = memory_grow(reader->string, &reader->string_capacity, size + 1, 1);
        reader->string[size++] = (char)byte;
        reader->at++;
        if (size > 1 && byte == '"' && !escaped) {
            return size;
        }
        escaped = byte == '\\' && !escaped;
    } while (true);
}

/* The string at hand, unescaped, valid until the next; size 0 after a failure too. */
static struct name take_string(struct reader *reader)
{
    const char *text = NULL;
    size_t size = 0;
    bool escaped = false;

    if (peek_token(reader) != '"') {
        fail(reader, "a string was expected");
        return (struct name){"", 0};
    }
    size_t collected = collect_string(reader);
    if (collected == 0 || json_scan_string(reader->string, reader->string + collected, &text, &size, &escaped) !=
                              reader->string + collected) {
        fail(reader, "a string that is none");
        return (struct name){"", 0};
    }
    if (escaped) {
        size = json_unescape(text, size, reader->string);
        text = reader->string;
    }
    return (struct name){text, size};
}

/* An integer of 64 bits, without fraction or exponent. */
static int64_t take_integer(struct reader *reader)
{
    bool negative = take(reader, '-');
    bool leading_zero = peek(reader) == '0';
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    uint64_t value = 0;
    int digits = 0;
    int byte;

    while ((byte = peek(reader)) >= '0' && byte <= '9') {
        uint64_t digit = (uint64_t)(byte - '0');
        if (value > (limit - digit) / 10) {
            fail(reader, "a number beyond 64 bits");
            return 0;
        }
        value = value * 10 + digit;
        digits++;
        reader->at++;
    }
    if (digits == 0 || (leading_zero && digits > 1) || byte == '.' || byte == 'e' || byte == 'E') {
        fail(reader, "a whole number was expected");
        return 0;
    }
    return negative ? (int64_t)(0 - value) : (int64_t)value;
}

/* A number, true, false, null: what they spell is nobody's business here, only where they end. */
static void skip_literal(struct reader *reader)
{
    int byte = peek_token(reader);
    size_t size = 0;

    while ((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '+' || byte == '.' ||
           byte == 'E') {
        reader->at++;
        size++;
        byte = peek(reader);
    }
    if (size == 0) {
        fail(reader, "a value was expected");
    }
}

/* Opens what opens, closes what closes, until as much is closed as was opened. */
static void skip_value(struct reader *reader)
{
    char closers[DEPTH_MAX];
    size_t depth = 0;

    do {
        if (depth > 0 && take(reader, closers[depth - 1])) {
            depth--;
        } else if (take(reader, '{') || take(reader, '[')) {
            if (depth == DEPTH_MAX) {
                fail(reader, "nested too deeply");
                return;
            }
            closers[depth] = reader->chunk[reader->at - 1] == '{' ? '}' : ']';
            depth++;
            continue;
        } else if (peek_token(reader) == '"') {
            (void)take_string(reader);
            if (take(reader, ':')) {
                continue;
            }
        } else {
            skip_literal(reader);
        }
        if (depth > 0) {
            (void)take(reader, ',');
        }
    } while (depth > 0 && reader->why == NULL);
}

/* [name, position] or [name, position, id]; null for an id is none. */
static void read_entry(struct reader *reader, checkpoint_entry *entry, void *argument)
{
    struct partition_id id;
    bool has_id = false;
    char *name_bytes = NULL;
    struct name name;

    need(reader, '[');
    name = take_string(reader);
    need(reader, ',');
    int64_t position = take_integer(reader);
    if (reader->why == NULL && take(reader, ',')) {
        /* What follows is read into the same memory that the name is in. */
        name_bytes = memory_copy(name.bytes, name.size);
        name.bytes = name_bytes;
        if (peek_token(reader) == '"') {
            has_id = partition_id_read(take_string(reader), &id);
            if (!has_id) {
                fail(reader, "an id that is no UUID");
            }
        } else {
            skip_value(reader);
        }
        while (reader->why == NULL && take(reader, ',')) {
            skip_value(reader);
        }
    }
    need(reader, ']');
    if (reader->why == NULL && position < 0) {
        fail(reader, "a position below zero");
    }
    if (reader->why == NULL && entry(argument, name, position, has_id ? &id : NULL) != 0) {
        fail(reader, "its reader refused an entry");
    }
    free(name_bytes);
}

static void read_positions(struct reader *reader, checkpoint_entry *entry, void *argument)
{
    need(reader, '[');
    if (take(reader, ']')) {
        return;
    }
    do {
        read_entry(reader, entry, argument);
    } while (reader->why == NULL && take(reader, ','));
    need(reader, ']');
}

static bool is(struct name name, const char *text)
{
    return name.size == strlen(text) && memcmp(name.bytes, text, name.size) == 0;
}

static void read_document(struct reader *reader, int64_t *k, struct broker_us *end, checkpoint_entry *entry,
                          void *argument)
{
    enum { HAS_K = 1, HAS_END = 2, HAS_POSITIONS = 4, HAS_ALL = 7 };
    unsigned seen = 0;

    need(reader, '{');
    do {
        struct name key = take_string(reader);
        unsigned which = is(key, "k") ? HAS_K : is(key, "tEnd") ? HAS_END : is(key, "positions") ? HAS_POSITIONS : 0;
        need(reader, ':');
        if ((seen & which) != 0) {
            fail(reader, "a member that comes twice");
        }
        seen |= which;
        if (which == HAS_K) {
            *k = take_integer(reader);
        } else if (which == HAS_END) {
            end->v = take_integer(reader);
        } else if (which == HAS_POSITIONS) {
            read_positions(reader, entry, argument);
        } else {
            skip_value(reader);
        }
    } while (reader->why == NULL && take(reader, ','));
    need(reader, '}');
    if (peek_token(reader) != END) {
        fail(reader, "something follows it");
    }
    if (seen != HAS_ALL) {
        fail(reader, "k, tEnd or positions is missing");
    }
}

int checkpoint_read(const char *bytes, size_t size, int64_t *k, struct broker_us *end, checkpoint_entry *entry,
                    void *argument, struct error *error)
{
    struct reader *reader = memory_new(1, sizeof *reader);
    int code = 0;

    reader->in = (ZSTD_inBuffer){bytes, size, 0};
    reader->zstd = ZSTD_createDCtx();
    if (reader->zstd == NULL) {
        code = error_set(error, QS_ERROR_NO_MEMORY, "out of memory for reading a checkpoint");
    } else {
        (void)ZSTD_DCtx_setParameter(reader->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
        read_document(reader, k, end, entry, argument);
        if (reader->why != NULL) {
            code = error_set(error, QS_ERROR_BODY, "not a checkpoint: %s", reader->why);
        }
    }
    ZSTD_freeDCtx(reader->zstd);
    free(reader->string);
    free(reader);
    return code;
}
