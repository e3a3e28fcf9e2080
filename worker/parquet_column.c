/* See parquet_column.h. What a page looks like inside: parquet-format's README.md (Data Pages) and Encodings.md. */
#include "worker/parquet_column.h"

#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"

#define LENGTH_SIZE 4 /* before each text: PLAIN */

bool parquet_mend_text(char *bytes, size_t size)
{
    static const char replacement[] = {'\xEF', '\xBF', '\xBD'};
    const char *end = bytes + size;
    bool mended = false;

    while (size >= 3 && (bytes = memchr(bytes, 0xED, size)) != NULL && end - bytes >= 3) {
        if ((uint8_t)bytes[1] >= 0xA0) {
            memcpy(bytes, replacement, sizeof replacement);
            mended = true;
        }
        bytes += 3;
        size = (size_t)(end - bytes);
    }
    return mended;
}

static void put_length(uint8_t *out, size_t length)
{
    for (unsigned i = 0; i < LENGTH_SIZE; i++) {
        out[i] = (uint8_t)(length >> 8 * i);
    }
}

/* ---- numbers ---- */

static int number_column_flush(struct number_column *column, struct page_writer *writer, struct error *error)
{
    struct parquet_chunk_facts *facts = &column->chunk.facts;
    int64_t least = facts->numbers ? facts->least : INT64_MAX;
    int64_t greatest = facts->numbers ? facts->greatest : INT64_MIN;

    for (size_t i = 0; i < column->count; i++) {
        least = column->values[i] < least ? column->values[i] : least;
        greatest = column->values[i] > greatest ? column->values[i] : greatest;
    }
    facts->numbers = true;
    facts->least = least;
    facts->greatest = greatest;
    struct iovec piece = {writer->scratch, delta_encode(column->values, column->count, writer->scratch)};
    int code = parquet_chunk_add(&column->chunk, writer, ENCODING_DELTA_BINARY_PACKED, column->count, &piece, 1, error);
    column->count = 0;
    return code;
}

int number_column_add(struct number_column *column, struct page_writer *writer, int64_t value, struct error *error)
{
    column->values[column->count++] = value;
    return column->count < PAGE_ROWS ? 0 : number_column_flush(column, writer, error);
}

int number_column_finish(struct number_column *column, struct page_writer *writer, struct error *error)
{
    return column->count == 0 ? 0 : number_column_flush(column, writer, error);
}

/* ---- texts ---- */

static void text_page_begin(struct text_column *column)
{
    column->rows = 0;
    column->used = 0;
    hybrid_begin(&column->levels, column->page + LENGTH_SIZE, 1);
}

int text_column_begin(struct text_column *column, bool optional, struct error *error)
{
    column->optional = optional;
    column->page = malloc(LEVELS_SIZE + PAGE_SIZE);
    if (column->page == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a page of Parquet");
    }
    text_page_begin(column);
    return 0;
}

void text_column_free(struct text_column *column)
{
    parquet_chunk_free(&column->chunk);
    free(column->page);
}

/* Definition levels end where the values begin, so that a page is one piece: they are moved up to them. What they take,
 * 0 in a column without. */
static size_t finish_levels(struct text_column *column)
{
    size_t size;

    if (!column->optional) {
        return 0;
    }
    size = hybrid_finish(&column->levels);
    put_length(column->page, size);
    size += LENGTH_SIZE;
    memmove(column->page + LEVELS_SIZE - size, column->page, size);
    return size;
}

int text_column_finish(struct text_column *column, struct page_writer *writer, struct error *error)
{
    size_t levels;

    if (column->rows == 0) {
        return 0;
    }
    levels = finish_levels(column);
    struct iovec piece = {column->page + LEVELS_SIZE - levels, levels + column->used};
    int code = parquet_chunk_add(&column->chunk, writer, ENCODING_PLAIN, column->rows, &piece, 1, error);
    text_page_begin(column);
    return code;
}

static int make_room(struct text_column *column, struct page_writer *writer, size_t size, struct error *error)
{
    if (column->rows == PAGE_ROWS || size > PAGE_SIZE - column->used) {
        return text_column_finish(column, writer, error);
    }
    return 0;
}

static void count_row(struct text_column *column)
{
    column->rows++;
    if (column->optional) {
        hybrid_add(&column->levels, 1, 1);
    }
}

/* A page of one text, which stays where it is. */
static int add_alone(struct text_column *column, struct page_writer *writer, const char *bytes, size_t size,
                     struct error *error)
{
    int code = text_column_finish(column, writer, error);
    size_t levels;

    if (code != 0) {
        return code;
    }
    count_row(column);
    put_length(column->page + LEVELS_SIZE, size);
    levels = finish_levels(column);
    struct iovec pieces[] = {{column->page + LEVELS_SIZE - levels, levels + LENGTH_SIZE},
                             {(void *)(uintptr_t)bytes, size}};
    code = parquet_chunk_add(&column->chunk, writer, ENCODING_PLAIN, 1, pieces, 2, error);
    text_page_begin(column);
    return code;
}

int text_column_add(struct text_column *column, struct page_writer *writer, const char *bytes, size_t size,
                    struct error *error)
{
    if (size > PAGE_SIZE - LENGTH_SIZE) {
        return add_alone(column, writer, bytes, size, error);
    }
    int code = make_room(column, writer, LENGTH_SIZE + size, error);
    if (code == 0) {
        uint8_t *out = column->page + LEVELS_SIZE + column->used;
        put_length(out, size);
        if (size > 0) {
            memcpy(out + LENGTH_SIZE, bytes, size);
        }
        column->used += LENGTH_SIZE + size;
        count_row(column);
    }
    return code;
}

static int add_long_spelled(struct text_column *column, struct page_writer *writer, const char *text, size_t size,
                            struct error *error)
{
    char *bytes = malloc(size);
    int code;

    if (bytes == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a transaction id of %zu bytes", size);
    }
    size = json_unescape(text, size, bytes);
    (void)parquet_mend_text(bytes, size);
    code = text_column_add(column, writer, bytes, size, error);
    free(bytes);
    return code;
}

int text_column_add_spelled(struct text_column *column, struct page_writer *writer, const char *text, size_t size,
                            struct error *error)
{
    if (size == 0 || memchr(text, '\\', size) == NULL) {
        return text_column_add(column, writer, text, size, error);
    }
    if (size > PAGE_SIZE - LENGTH_SIZE) {
        return add_long_spelled(column, writer, text, size, error);
    }
    int code = make_room(column, writer, LENGTH_SIZE + size, error);
    if (code == 0) {
        uint8_t *out = column->page + LEVELS_SIZE + column->used;
        size = json_unescape(text, size, (char *)out + LENGTH_SIZE);
        (void)parquet_mend_text((char *)out + LENGTH_SIZE, size);
        put_length(out, size);
        column->used += LENGTH_SIZE + size;
        count_row(column);
    }
    return code;
}

int text_column_add_null(struct text_column *column, struct page_writer *writer, struct error *error)
{
    int code = make_room(column, writer, 0, error);

    if (code == 0) {
        column->rows++;
        column->chunk.facts.nulls++;
        hybrid_add(&column->levels, 0, 1);
    }
    return code;
}

/* ---- names ---- */

/* Records come by partition, so a name's index is its place among the names: nothing is looked up. */

int name_column_begin(struct name_column *column, struct error *error)
{
    column->dictionary = malloc(DICTIONARY_SIZE);
    if (column->dictionary == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a dictionary of Parquet");
    }
    return text_column_begin(&column->plain, false, error);
}

void name_column_free(struct name_column *column)
{
    text_column_free(&column->plain);
    free(column->dictionary);
}

static int name_column_flush(struct name_column *column, struct page_writer *writer, struct error *error)
{
    struct hybrid indexes;
    uint32_t greatest = column->first + (uint32_t)column->run_count - 1;
    unsigned width = 1; /* also for a dictionary of one: older readers know no width of 0 */

    if (column->rows == 0) {
        return 0;
    }
    while (greatest >> width > 0) {
        width++;
    }
    writer->scratch[0] = (uint8_t)width;
    hybrid_begin(&indexes, writer->scratch + 1, width);
    for (size_t i = 0; i < column->run_count; i++) {
        hybrid_add(&indexes, column->first + (uint32_t)i, column->runs[i]);
    }
    struct iovec piece = {writer->scratch, 1 + hybrid_finish(&indexes)};
    int code = parquet_chunk_add(&column->plain.chunk, writer, ENCODING_RLE_DICTIONARY, column->rows, &piece, 1, error);
    column->rows = 0;
    column->run_count = 0;
    return code;
}

static bool is_last(const struct name_column *column, const char *bytes, size_t size)
{
    const uint8_t *last = column->dictionary + column->dictionary_last + LENGTH_SIZE;

    return column->dictionary_count > 0 && size == column->dictionary_used - column->dictionary_last - LENGTH_SIZE &&
           (size == 0 || memcmp(last, bytes, size) == 0);
}

static bool into_dictionary(struct name_column *column, const char *bytes, size_t size)
{
    uint8_t *out = column->dictionary + column->dictionary_used;

    if (size > DICTIONARY_SIZE - LENGTH_SIZE || LENGTH_SIZE + size > DICTIONARY_SIZE - column->dictionary_used) {
        return false;
    }
    put_length(out, size);
    if (size > 0) {
        memcpy(out + LENGTH_SIZE, bytes, size);
    }
    column->dictionary_last = column->dictionary_used;
    column->dictionary_used += LENGTH_SIZE + size;
    column->dictionary_count++;
    return true;
}

/* Up to as many rows as the page has room for, of the name that was the last to go into the dictionary. */
static int add_index(struct name_column *column, struct page_writer *writer, bool new_name, size_t *count,
                     struct error *error)
{
    size_t room = PAGE_ROWS - column->rows;
    size_t rows = *count < room ? *count : room;

    if (column->run_count == 0) {
        column->first = (uint32_t)column->dictionary_count - 1;
    }
    if (column->run_count == 0 || new_name) {
        column->runs[column->run_count++] = 0;
    }
    column->runs[column->run_count - 1] += (uint32_t)rows;
    column->rows += rows;
    *count -= rows;
    return column->rows < PAGE_ROWS ? 0 : name_column_flush(column, writer, error);
}

int name_column_add(struct name_column *column, struct page_writer *writer, const char *bytes, size_t size,
                    size_t count, struct error *error)
{
    bool new_name = column->full || !is_last(column, bytes, size);
    int code = 0;

    if (new_name) {
        bounds_add(&column->plain.chunk.facts.texts, bytes, size);
        if (!column->full && !into_dictionary(column, bytes, size)) {
            column->full = true;
            code = name_column_flush(column, writer, error);
        }
    }
    while (count > 0 && code == 0 && column->full) {
        code = text_column_add(&column->plain, writer, bytes, size, error);
        count--;
    }
    while (count > 0 && code == 0) {
        code = add_index(column, writer, new_name, &count, error);
        new_name = false;
    }
    return code;
}

int name_column_finish(struct name_column *column, struct page_writer *writer, struct error *error)
{
    int code = name_column_flush(column, writer, error);

    if (code == 0) {
        code = text_column_finish(&column->plain, writer, error);
    }
    if (code == 0 && column->dictionary_count > 0) {
        code = parquet_chunk_add_dictionary(&column->plain.chunk, writer, column->dictionary_count, column->dictionary,
                                            column->dictionary_used, error);
    }
    column->dictionary_count = 0;
    column->dictionary_used = 0;
    column->full = false;
    return code;
}
