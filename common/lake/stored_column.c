/*
 * Pages of a column chunk (stored_column.h; README.md of the Parquet format, "Data Pages"): a header, then the body;
 * one dictionary page, if any, comes first. In this schema nothing repeats and only the payload may be null, so that a
 * page of V1 is its values, before them the payload's definition levels behind their size, and a page of V2 has these
 * levels uncompressed and the values by themselves.
 *
 * A page's body is fetched when its first value is asked for, so that rows that aren't wanted cost what their headers
 * cost.
 */
#include "common/lake/stored_column.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/lake/object_reader.h"

/* What is read at once beyond what is needed: a page's header is some 20 to 200 bytes, and a request costs more. */
#define AHEAD_SIZE 131072u
/* Headers hold statistics, and these whole values where their writer doesn't cut them. */
#define HEADER_FIRST_SIZE 256u
#define HEADER_MAX        16777216u

static int refuse(const struct stored_column *column, const char *why, struct error *error)
{
    return error_refuse(error, QS_ERROR_BODY, "byte %" PRIu64 " of the object, a page of %s: %s", column->page_start,
                        stored_column_title(column->name), why);
}

static int no_memory(const struct stored_column *column, struct error *error)
{
    return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a page of %s at byte %" PRIu64 " of the object",
                     stored_column_title(column->name), column->page_start);
}

/* ---- bytes of the chunk ---- */

/* What was there need not stay. */
static bool reserve(struct stored_bytes *bytes, size_t size)
{
    if (bytes->bytes == NULL || size > bytes->capacity) {
        free(bytes->bytes);
        bytes->bytes = malloc(size > 0 ? size : 1);
        bytes->capacity = bytes->bytes != NULL ? size : 0;
    }
    return bytes->bytes != NULL;
}

/* Bytes of the chunk from the cursor on. */
static uint64_t chunk_left(const struct stored_column *column)
{
    return column->end - column->next + (column->ahead_size - column->ahead_at);
}

static uint64_t position(const struct stored_column *column)
{
    return column->next - (column->ahead_size - column->ahead_at);
}

/* Brings `size` bytes from the cursor on, at most chunk_left(), into memory. */
static int bring(struct stored_column *column, size_t size, struct error *error)
{
    size_t have = column->ahead_size - column->ahead_at;

    if (have >= size) {
        return 0;
    }
    uint64_t left = column->end - column->next;
    size_t fetch = size - have;
    fetch += left - fetch < AHEAD_SIZE ? (size_t)(left - fetch) : AHEAD_SIZE;
    if (have + fetch > column->ahead.capacity) {
        struct stored_bytes larger = {0};
        if (!reserve(&larger, have + fetch)) {
            return no_memory(column, error);
        }
        if (have > 0) {
            memcpy(larger.bytes, column->ahead.bytes + column->ahead_at, have);
        }
        free(column->ahead.bytes);
        column->ahead = larger;
    } else if (have > 0) {
        memmove(column->ahead.bytes, column->ahead.bytes + column->ahead_at, have);
    }
    column->ahead_at = 0;
    column->ahead_size = have;
    int code = column->source->read_at(column->source->source, column->next, column->ahead.bytes + have, fetch, error);
    if (code == 0) {
        column->next += fetch;
        column->ahead_size += fetch;
    }
    return code;
}

/* Moves the cursor over bytes that are within the chunk, in memory or not. */
static void pass(struct stored_column *column, size_t size)
{
    size_t have = column->ahead_size - column->ahead_at;

    if (size <= have) {
        column->ahead_at += size;
    } else {
        column->next += size - have;
        column->ahead_at = column->ahead_size = 0;
    }
}

static const uint8_t *cursor(const struct stored_column *column)
{
    return column->ahead.bytes + column->ahead_at;
}

/* ---- headers ---- */

static int read_header(struct stored_column *column, struct error *error)
{
    uint64_t left = chunk_left(column);
    size_t want = HEADER_FIRST_SIZE;
    size_t size = 0;
    bool cut = false;
    const char *why;

    column->page_start = position(column);
    do {
        want = want < left ? want : (size_t)left;
        int code = bring(column, want, error);
        if (code != 0) {
            return code;
        }
        want = column->ahead_size - column->ahead_at;
        why = stored_page_header_read(cursor(column), want, &column->header, &size, &cut);
        if (cut && (want == left || want > HEADER_MAX)) {
            break;
        }
        want *= 2;
    } while (cut);
    if (why != NULL) {
        return refuse(column, why, error);
    }
    pass(column, size);
    if (column->header.size > chunk_left(column)) {
        return refuse(column, "it is larger than its column chunk", error);
    }
    if (column->header.size > OBJECT_RECORD_MAX || column->header.plain_size > OBJECT_RECORD_MAX) {
        return refuse(column, "it is larger than any record", error);
    }
    return 0;
}

/* ---- bodies ---- */

/* The body at the cursor, all of it, as it lies in the object. */
static int bring_body(struct stored_column *column, struct error *error)
{
    const struct stored_page_header *header = &column->header;
    int code = bring(column, header->size, error);

    if (code == 0 && header->has_crc &&
        crc32_z(crc32_z(0, NULL, 0), header->size > 0 ? cursor(column) : (const uint8_t *)"", header->size) !=
            header->crc) {
        return refuse(column, "its checksum differs", error);
    }
    return code;
}

/* Decompresses `size` bytes into *out; they stay where they are if they are plain, and *plain says where. */
static int decompress(struct stored_column *column, bool is_compressed, const uint8_t *bytes, size_t size,
                      size_t plain_size, struct stored_bytes *out, const uint8_t **plain, struct error *error)
{
    enum stored_codec codec = is_compressed ? column->codec : STORED_UNCOMPRESSED;
    bool memory_ran_out = false;

    *plain = bytes;
    /* A page without values may have nothing to decompress. */
    if (plain_size == 0 && codec != STORED_UNCOMPRESSED) {
        return 0;
    }
    if (!stored_size_possible(codec, size, plain_size)) {
        return refuse(column, "its header says another size than it can have", error);
    }
    if (codec == STORED_UNCOMPRESSED) {
        return 0;
    }
    if (!reserve(out, plain_size)) {
        return no_memory(column, error);
    }
    *plain = out->bytes;
    const char *why = stored_decompress(column->decoders, codec, bytes, size, out->bytes, plain_size, &memory_ran_out);
    if (memory_ran_out) {
        return no_memory(column, error);
    }
    return why == NULL ? 0 : refuse(column, why, error);
}

static int read_dictionary(struct stored_column *column, struct error *error)
{
    const struct stored_page_header *header = &column->header;
    bool integers = column->name == STORED_OFFSET || column->name == STORED_TS;
    const uint8_t *plain = NULL;
    bool memory_ran_out = false;

    if (column->has_dictionary) {
        return refuse(column, "a second dictionary", error);
    }
    if (header->encoding != STORED_PLAIN && header->encoding != STORED_PLAIN_DICTIONARY) {
        return refuse(column, "a dictionary that isn't PLAIN", error);
    }
    int code = bring_body(column, error);
    if (code == 0) {
        code = decompress(column, true, cursor(column), header->size, header->plain_size, &column->dictionary_bytes,
                          &plain, error);
    }
    if (code != 0) {
        return code;
    }
    if (plain != column->dictionary_bytes.bytes) {
        /* It outlives what was read ahead. */
        if (!reserve(&column->dictionary_bytes, header->plain_size)) {
            return no_memory(column, error);
        }
        if (header->plain_size > 0) {
            memcpy(column->dictionary_bytes.bytes, plain, header->plain_size);
        }
    }
    column->has_dictionary = true;
    const char *why = stored_dictionary_read(&column->dictionary, integers, column->dictionary_bytes.bytes,
                                             header->plain_size, header->values, &memory_ran_out);
    pass(column, header->size);
    if (memory_ran_out) {
        return no_memory(column, error);
    }
    return why == NULL ? 0 : refuse(column, why, error);
}

/* Values of the page that aren't null: how many there are. */
static const char *count_values(struct stored_column *column, const uint8_t *levels, size_t size, uint64_t *count)
{
    const struct stored_page_header *header = &column->header;

    (void)bit_runs_begin(&column->levels, levels, size, 1);
    if (!bit_runs_count(column->levels, header->values, count)) {
        return "its definition levels end early";
    }
    if (header->type == STORED_PAGE_DATA_V2 && header->values - *count != header->nulls) {
        return "its definition levels have another number of nulls than its header";
    }
    return NULL;
}

static const char *open_v1(struct stored_column *column, const uint8_t *plain, size_t size)
{
    const struct stored_page_header *header = &column->header;
    bool integers = column->name == STORED_OFFSET || column->name == STORED_TS;
    const char *why = NULL;
    uint64_t count = header->values;

    if (column->name == STORED_PAYLOAD) {
        if (header->levels_encoding != STORED_RLE) {
            return "definition levels that aren't RLE";
        }
        if (size < 4 || stored_load32(plain) > size - 4) {
            return "its definition levels end early";
        }
        size_t levels_size = stored_load32(plain);
        why = count_values(column, plain + 4, levels_size, &count);
        plain += 4 + levels_size;
        size -= 4 + levels_size;
    }
    return why != NULL ? why
                       : stored_values_begin(&column->values, header->encoding, integers, plain, size, count,
                                             column->has_dictionary ? &column->dictionary : NULL);
}

static int open_v2(struct stored_column *column, struct error *error)
{
    const struct stored_page_header *header = &column->header;
    bool integers = column->name == STORED_OFFSET || column->name == STORED_TS;
    size_t levels_size = header->levels_size;
    const uint8_t *plain = NULL;
    const char *why = NULL;
    uint64_t count = header->values;

    if (levels_size > header->size || levels_size > header->plain_size) {
        return refuse(column, "its definition levels end early", error);
    }
    const uint8_t *levels = cursor(column);
    if (column->name == STORED_PAYLOAD) {
        why = count_values(column, levels, levels_size, &count);
    } else if (levels_size != 0 || header->nulls != 0) {
        why = "definition levels of a column that has none";
    }
    if (why != NULL) {
        return refuse(column, why, error);
    }
    size_t plain_size = header->plain_size - levels_size;
    int code = decompress(column, header->compressed, levels + levels_size, header->size - levels_size, plain_size,
                          &column->plain, &plain, error);
    if (code != 0) {
        return code;
    }
    why = stored_values_begin(&column->values, header->encoding, integers, plain, plain_size, count,
                              column->has_dictionary ? &column->dictionary : NULL);
    return why == NULL ? 0 : refuse(column, why, error);
}

/* The page's body into memory, its decoders to its first value. What is plain in the object is read where it lies, so
 * the cursor goes over it but nothing is brought before the page is done with. */
static int open_page(struct stored_column *column, struct error *error)
{
    const struct stored_page_header *header = &column->header;
    const uint8_t *plain = NULL;
    int code = bring_body(column, error);

    if (code != 0) {
        return code;
    }
    if (header->type == STORED_PAGE_DATA_V2) {
        code = open_v2(column, error);
    } else {
        code =
            decompress(column, true, cursor(column), header->size, header->plain_size, &column->plain, &plain, error);
        const char *why = code == 0 ? open_v1(column, plain, header->plain_size) : NULL;
        if (why != NULL) {
            code = refuse(column, why, error);
        }
    }
    if (code == 0) {
        pass(column, header->size);
        column->body_waits = false;
    }
    return code;
}

/* ---- rows ---- */

/* To the header of the next page that has rows; its body waits. */
static int next_page(struct stored_column *column, struct error *error)
{
    const struct stored_page_header *header = &column->header;

    while (column->rows_left == 0) {
        if (column->body_waits) {
            pass(column, header->size);
            column->body_waits = false;
        }
        if (chunk_left(column) == 0) {
            column->page_start = position(column);
            return refuse(column, "the column chunk has fewer values than its row group records", error);
        }
        int code = read_header(column, error);
        if (code != 0) {
            return code;
        }
        if (header->type == STORED_PAGE_DICTIONARY) {
            code = read_dictionary(column, error);
            if (code != 0) {
                return code;
            }
            continue;
        }
        /* Pages of another kind are to be passed over (parquet.thrift, PageType). */
        column->body_waits = true;
        if (header->type != STORED_PAGE_DATA && header->type != STORED_PAGE_DATA_V2) {
            continue;
        }
        if (header->values > column->chunk_rows_left) {
            return refuse(column, "the column chunk has more values than its row group records", error);
        }
        column->rows_left = header->values;
        column->chunk_rows_left -= header->values;
    }
    return 0;
}

/* Whether the next row's value is null; its value, if any, is the next of the page's. */
static const char *take_level(struct stored_column *column, bool *is_null)
{
    uint32_t level = 1;

    if (column->name == STORED_PAYLOAD && !bit_runs_next(&column->levels, &level)) {
        return "its definition levels end early";
    }
    *is_null = level == 0;
    column->rows_left--;
    return NULL;
}

static const char *take(struct stored_column *column, int64_t *integer, struct name *text)
{
    bool is_null = false;
    const char *why = take_level(column, &is_null);

    if (why != NULL) {
        return why;
    }
    if (column->name == STORED_OFFSET || column->name == STORED_TS) {
        why = stored_values_integer(&column->values, integer);
    } else if (is_null) {
        *text = (struct name){NULL, 0};
    } else {
        why = stored_values_text(&column->values, text);
    }
    if (why == NULL && column->rows_left == 0) {
        why = stored_values_finish(&column->values);
    }
    return why;
}

/* Over the rows that aren't wanted, to one that is. */
static int skip_rows(struct stored_column *column, struct error *error)
{
    while (column->to_skip > 0) {
        int64_t integer;
        struct name text;
        int code = next_page(column, error);
        if (code != 0) {
            return code;
        }
        if (column->body_waits && column->to_skip >= column->rows_left) {
            column->to_skip -= column->rows_left;
            column->rows_left = 0;
            continue;
        }
        code = column->body_waits ? open_page(column, error) : 0;
        if (code != 0) {
            return code;
        }
        column->to_skip--;
        const char *why = take(column, &integer, &text);
        if (why != NULL) {
            return refuse(column, why, error);
        }
    }
    return 0;
}

static int read_value(struct stored_column *column, int64_t *integer, struct name *text, struct error *error)
{
    int code = skip_rows(column, error);

    if (code == 0) {
        code = next_page(column, error);
    }
    if (code == 0 && column->body_waits) {
        code = open_page(column, error);
    }
    if (code != 0) {
        return code;
    }
    const char *why = take(column, integer, text);
    if (why != NULL && column->values.no_memory) {
        return no_memory(column, error);
    }
    return why == NULL ? 0 : refuse(column, why, error);
}

int stored_column_integer(struct stored_column *column, int64_t *value, struct error *error)
{
    struct name text;

    return read_value(column, value, &text, error);
}

int stored_column_text(struct stored_column *column, struct name *text, struct error *error)
{
    int64_t integer;

    return read_value(column, &integer, text, error);
}

void stored_column_skip(struct stored_column *column)
{
    column->to_skip++;
}

int stored_column_finish(struct stored_column *column, struct error *error)
{
    int code = skip_rows(column, error);

    /* Only pages without values may follow. */
    while (code == 0) {
        if (column->body_waits) {
            pass(column, column->header.size);
            column->body_waits = false;
        }
        if (chunk_left(column) == 0) {
            return 0;
        }
        code = read_header(column, error);
        column->body_waits = code == 0;
        if (code == 0 && column->header.values > 0) {
            return refuse(column, "the column chunk has more values than its row group records", error);
        }
    }
    return code;
}

void stored_column_begin(struct stored_column *column, const struct object_source *source,
                         struct stored_decoders *decoders, enum stored_column_name name,
                         const struct stored_chunk *chunk, uint64_t rows)
{
    stored_dictionary_free(&column->dictionary);
    column->source = source;
    column->decoders = decoders;
    column->name = name;
    column->codec = chunk->codec;
    column->next = chunk->start;
    column->end = chunk->start + chunk->size;
    column->ahead_at = column->ahead_size = 0;
    column->body_waits = false;
    column->rows_left = 0;
    column->chunk_rows_left = rows;
    column->to_skip = 0;
    column->has_dictionary = false;
}

void stored_column_free(struct stored_column *column)
{
    stored_values_free(&column->values);
    stored_dictionary_free(&column->dictionary);
    free(column->ahead.bytes);
    free(column->plain.bytes);
    free(column->dictionary_bytes.bytes);
    *column = (struct stored_column){0};
}
