/* See parquet_file.h. Numbers of fields are parquet.thrift's. */
#include "parquet_file.h"

#include <check.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* An assertion of Check's costs a system call or two: asked first, then asserted. */
#define MUST(condition)                             \
    do {                                            \
        if (!(condition)) {                         \
            ck_abort_msg("not so: %s", #condition); \
        }                                           \
    } while (0)

static void *grown(void *array, size_t count, size_t size)
{
    /* At each power of two. */
    if ((count & (count - 1)) == 0) {
        array = realloc(array, (count == 0 ? 1 : 2 * count) * size);
        MUST(array != NULL);
    }
    return array;
}

/* ---- thrift's compact protocol ---- */

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

/* A value: a number (booleans too), bytes, or the values of a struct or list. */
struct node {
    int id; /* of the field that it is; 0 in a list */
    int64_t number;
    struct file_text text;
    struct node *parts;
    size_t count;
};

static uint8_t take_byte(struct cursor *cursor)
{
    MUST(cursor->at < cursor->end);
    return *cursor->at++;
}

static uint64_t take_varint(struct cursor *cursor)
{
    uint64_t value = 0;
    uint8_t byte;
    unsigned shift = 0;

    do {
        MUST(shift < 64);
        byte = take_byte(cursor);
        value |= (uint64_t)(byte & 0x7F) << shift;
        shift += 7;
    } while (byte >= 0x80);
    return value;
}

static int64_t take_zigzag(struct cursor *cursor)
{
    uint64_t value = take_varint(cursor);

    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static const uint8_t *take_bytes(struct cursor *cursor, size_t size)
{
    const uint8_t *bytes = cursor->at;

    MUST(size <= (size_t)(cursor->end - cursor->at));
    cursor->at += size;
    return bytes;
}

static void read_struct(struct cursor *cursor, struct node *node);

static void read_value(struct cursor *cursor, int type, struct node *node)
{
    size_t size;
    uint8_t head;

    switch (type) {
    case 1:
    case 2: node->number = type == 1; break;
    case 4:
    case 5:
    case 6: node->number = take_zigzag(cursor); break;
    case 8:
        size = take_varint(cursor);
        node->text = (struct file_text){(const char *)take_bytes(cursor, size), size};
        break;
    case 9:
        head = take_byte(cursor);
        size = head >> 4 < 15 ? head >> 4 : take_varint(cursor);
        for (size_t i = 0; i < size; i++) {
            node->parts = grown(node->parts, node->count, sizeof *node->parts);
            memset(&node->parts[node->count], 0, sizeof *node->parts);
            read_value(cursor, head & 15, &node->parts[node->count++]);
        }
        break;
    case 12: read_struct(cursor, node); break;
    default: ck_abort_msg("a value of type %d", type);
    }
}

static void read_struct(struct cursor *cursor, struct node *node)
{
    uint8_t head;
    int id = 0;

    while ((head = take_byte(cursor)) != 0) {
        id = head >> 4 > 0 ? id + (head >> 4) : (int)take_zigzag(cursor);
        node->parts = grown(node->parts, node->count, sizeof *node->parts);
        struct node *part = &node->parts[node->count++];
        memset(part, 0, sizeof *part);
        part->id = id;
        MUST(node->count == 1 || part->id > part[-1].id);
        read_value(cursor, head & 15, part);
    }
}

static void node_free(struct node *node)
{
    for (size_t i = 0; i < node->count; i++) {
        node_free(&node->parts[i]);
    }
    free(node->parts);
    memset(node, 0, sizeof *node);
}

static const struct node *find(const struct node *node, int id)
{
    for (size_t i = 0; i < node->count; i++) {
        if (node->parts[i].id == id) {
            return &node->parts[i];
        }
    }
    return NULL;
}

static const struct node *field(const struct node *node, int id)
{
    const struct node *found = find(node, id);

    if (found == NULL) {
        ck_abort_msg("there is no field %d", id);
    }
    return found;
}

static int64_t number(const struct node *node, int id)
{
    return field(node, id)->number;
}

static bool is_text(const struct file_text *text, const char *expected)
{
    return text->size == strlen(expected) && memcmp(text->bytes, expected, text->size) == 0;
}

/* ---- encodings ---- */

static uint64_t bits_at(const uint8_t *bytes, size_t at, unsigned width)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < width; i++) {
        value |= (uint64_t)(bytes[(at + i) / 8] >> (at + i) % 8 & 1) << i;
    }
    return value;
}

static void read_hybrid(struct cursor *cursor, unsigned width, uint32_t *values, size_t count)
{
    for (size_t seen = 0; seen < count;) {
        uint64_t head = take_varint(cursor);
        size_t run = head >> 1;
        if ((head & 1) == 0) {
            uint32_t value = (uint32_t)bits_at(take_bytes(cursor, (width + 7) / 8), 0, width);
            MUST(run > 0 && run <= count - seen);
            while (run-- > 0) {
                values[seen++] = value;
            }
            continue;
        }
        const uint8_t *packed = take_bytes(cursor, run * width);
        MUST(run * 8 < count - seen + 8);
        for (size_t i = 0; i < run * 8 && seen < count; i++) {
            values[seen++] = (uint32_t)bits_at(packed, i * width, width);
        }
    }
}

static void read_delta(struct cursor *cursor, int64_t *values, size_t stride, size_t count)
{
    size_t block = take_varint(cursor);
    size_t minis = take_varint(cursor);
    uint64_t value;

    MUST(block % 128 == 0 && minis > 0 && block / minis % 32 == 0 && take_varint(cursor) == count);
    value = (uint64_t)take_zigzag(cursor);
    values[0] = (int64_t)value;
    for (size_t seen = 1; seen < count;) {
        uint64_t least = (uint64_t)take_zigzag(cursor);
        const uint8_t *widths = take_bytes(cursor, minis);
        for (size_t i = 0; i < minis && seen < count; i++) {
            const uint8_t *packed = take_bytes(cursor, block / minis * widths[i] / 8);
            for (size_t j = 0; j < block / minis && seen < count; j++) {
                value += least + bits_at(packed, j * widths[i], widths[i]);
                values[stride * seen++] = (int64_t)value;
            }
        }
    }
}

static struct file_text take_text(struct cursor *cursor)
{
    size_t size = (size_t)bits_at(take_bytes(cursor, 4), 0, 32);

    return (struct file_text){(const char *)take_bytes(cursor, size), size};
}

/* ---- pages ---- */

struct column_reader {
    struct parquet_file *file;
    enum file_codec codec;
    int column;
    struct file_chunk *chunk;
    struct file_row *row; /* the next */
    struct file_text *dictionary;
};

static char *unpack(struct column_reader *reader, const uint8_t *bytes, size_t packed, size_t size)
{
    struct parquet_file *file = reader->file;
    char *page = malloc(size + 1);

    MUST(page != NULL);
    if (reader->codec == FILE_ZSTD) {
        MUST(ZSTD_getFrameContentSize(bytes, packed) == size);
        MUST(ZSTD_findFrameCompressedSize(bytes, packed) == packed);
        MUST(ZSTD_decompress(page, size, bytes, packed) == size);
    } else {
        size_t unpacked = size;
        MUST(snappy_uncompress((const char *)bytes, packed, page, &unpacked) == SNAPPY_OK && unpacked == size);
    }
    file->pages = grown(file->pages, file->page_count, sizeof *file->pages);
    file->pages[file->page_count++] = page;
    return page;
}

static void read_dictionary(struct column_reader *reader, const struct node *header, struct cursor *page)
{
    const struct node *dictionary = field(header, 7);
    size_t count = (size_t)number(dictionary, 1);

    MUST(reader->column == PARTITION && reader->dictionary == NULL && number(dictionary, 2) == 0 && count > 0);
    reader->chunk->dictionary_values = count;
    reader->chunk->dictionary_size = (size_t)(page->end - page->at);
    reader->dictionary = calloc(count, sizeof *reader->dictionary);
    MUST(reader->dictionary != NULL);
    for (size_t i = 0; i < count; i++) {
        reader->dictionary[i] = take_text(page);
    }
    MUST(page->at == page->end);
}

static void read_texts(struct column_reader *reader, int encoding, struct cursor *page, size_t count)
{
    uint32_t *values = malloc(count * sizeof *values);

    MUST(values != NULL);
    if (reader->column == PAYLOAD) {
        struct cursor levels;
        size_t size = (size_t)bits_at(take_bytes(page, 4), 0, 32);
        levels.at = take_bytes(page, size);
        levels.end = page->at;
        read_hybrid(&levels, 1, values, count);
        MUST(levels.at == levels.end);
    }
    if (encoding == 8) {
        read_hybrid(page, take_byte(page), values, count);
    }
    for (size_t i = 0; i < count; i++) {
        struct file_text *text = &reader->row[i].texts[reader->column];
        if (encoding == 8) {
            MUST(values[i] < reader->chunk->dictionary_values);
            *text = reader->dictionary[values[i]];
        } else if (reader->column != PAYLOAD || values[i] == 1) {
            *text = take_text(page);
        }
    }
    free(values);
}

static void read_data(struct column_reader *reader, const struct node *header, struct cursor *page, size_t left)
{
    const struct node *data = field(header, 5);
    size_t count = (size_t)number(data, 1);
    int encoding = (int)number(data, 2);
    bool numbers = reader->column == OFFSET || reader->column == TS;

    MUST(number(data, 3) == 3 && number(data, 4) == 3 && data->count == 4);
    MUST(count > 0 && count <= left);
    MUST(numbers ? encoding == 5 : encoding == 0 || (encoding == 8 && reader->dictionary != NULL));
    reader->chunk->pages++;
    reader->chunk->plain_pages += encoding == 0;
    if (count > reader->chunk->largest_rows) {
        reader->chunk->largest_rows = count;
    }
    if (numbers) {
        read_delta(page, &reader->row->numbers[reader->column], sizeof *reader->row / sizeof(int64_t), count);
    } else {
        read_texts(reader, encoding, page, count);
    }
    MUST(page->at == page->end);
    reader->row += count;
}

/* From the first page to the last: returns what the metadata has to say. */
static size_t read_pages(struct column_reader *reader, struct cursor *cursor, size_t rows, size_t *first_data)
{
    const uint8_t *start = cursor->at;
    const struct file_row *end = reader->row + rows;
    size_t unpacked = 0;

    *first_data = 0;
    while (cursor->at < cursor->end) {
        struct node header = {0};
        const uint8_t *page_start = cursor->at;
        read_struct(cursor, &header);
        size_t size = (size_t)number(&header, 2);
        size_t packed = (size_t)number(&header, 3);
        MUST(header.count == 4);
        unpacked += (size_t)(cursor->at - page_start) + size;
        const char *bytes = unpack(reader, take_bytes(cursor, packed), packed, size);
        struct cursor page = {(const uint8_t *)bytes, (const uint8_t *)bytes + size};
        if (size > reader->chunk->largest_size) {
            reader->chunk->largest_size = size;
        }
        if (number(&header, 1) == 2) {
            MUST(page_start == start);
            read_dictionary(reader, &header, &page);
            *first_data = (size_t)(cursor->at - start);
        } else {
            MUST(number(&header, 1) == 0);
            read_data(reader, &header, &page, (size_t)(end - reader->row));
        }
        node_free(&header);
    }
    MUST(reader->row == end);
    return unpacked;
}

/* ---- metadata ---- */

static void check_encodings(const struct node *meta, const struct file_chunk *chunk, bool numbers)
{
    const struct node *list = field(meta, 2);
    const struct node *stats = field(meta, 13);
    bool known[9] = {false};
    size_t kinds = 0;

    for (size_t i = 0; i < list->count; i++) {
        MUST(list->parts[i].number >= 0 && list->parts[i].number < 9 && !known[list->parts[i].number]);
        known[list->parts[i].number] = true;
    }
    MUST(known[3]);
    MUST(known[0] == (chunk->plain_pages > 0 || chunk->dictionary_values > 0));
    MUST(known[5] == numbers);
    MUST(known[8] == (!numbers && chunk->pages > chunk->plain_pages));
    MUST(list->count == 1u + known[0] + known[5] + known[8]);
    for (size_t i = 0; i < stats->count; i++) {
        const struct node *kind = &stats->parts[i];
        int64_t encoding = number(kind, 2);
        size_t count = number(kind, 1) == 2 ? 1
                       : encoding == 0      ? chunk->plain_pages
                                            : chunk->pages - chunk->plain_pages;
        MUST(number(kind, 3) == (int64_t)count && known[encoding]);
        kinds++;
    }
    MUST(kinds ==
         (size_t)(chunk->dictionary_values > 0) + (chunk->plain_pages > 0) + (chunk->pages > chunk->plain_pages));
}

static void read_statistics(const struct node *meta, struct file_chunk *chunk)
{
    const struct node *statistics = field(meta, 12);
    const struct node *least = find(statistics, 6);
    const struct node *greatest = find(statistics, 5);
    const struct node *least_exact = find(statistics, 8);
    const struct node *greatest_exact = find(statistics, 7);

    MUST(find(statistics, 1) == NULL && find(statistics, 2) == NULL && find(statistics, 4) == NULL);
    chunk->nulls = number(statistics, 3);
    chunk->least = least != NULL ? least->text : (struct file_text){NULL, 0};
    chunk->greatest = greatest != NULL ? greatest->text : (struct file_text){NULL, 0};
    chunk->least_exact = least_exact != NULL ? (int)least_exact->number : -1;
    chunk->greatest_exact = greatest_exact != NULL ? (int)greatest_exact->number : -1;
}

struct whole {
    const uint8_t *bytes;
    size_t at; /* where the next chunk must begin */
};

static void read_chunk(struct column_reader *reader, const struct node *chunk, struct whole *whole, size_t rows,
                       int64_t sizes[2])
{
    static const char *const names[] = {"partition", "offset", "transaction_id", "ts", "payload"};
    const struct node *meta = field(chunk, 3);
    const struct node *dictionary = find(meta, 11);
    bool numbers = reader->column == OFFSET || reader->column == TS;
    size_t packed = (size_t)number(meta, 7);
    size_t first_data = 0;

    MUST(chunk->count == 2 && number(chunk, 2) == 0);
    MUST(number(meta, 1) == (numbers ? 2 : 6) && number(meta, 4) == (int64_t)reader->codec);
    MUST(field(meta, 3)->count == 1 && is_text(&field(meta, 3)->parts[0].text, names[reader->column]));
    MUST(number(meta, 5) == (int64_t)rows);
    struct cursor cursor = {whole->bytes + whole->at, whole->bytes + whole->at + packed};
    size_t unpacked = read_pages(reader, &cursor, rows, &first_data);
    MUST(number(meta, 6) == (int64_t)unpacked);
    MUST(number(meta, 9) == (int64_t)(whole->at + first_data));
    MUST((dictionary != NULL) == (reader->dictionary != NULL));
    MUST(dictionary == NULL || dictionary->number == (int64_t)whole->at);
    whole->at += packed;
    sizes[0] += number(meta, 6);
    sizes[1] += number(meta, 7);
    check_encodings(meta, reader->chunk, numbers);
    read_statistics(meta, reader->chunk);
    free(reader->dictionary);
}

static void read_group(struct parquet_file *file, const struct node *group, enum file_codec codec, struct whole *whole)
{
    struct file_group *facts = &file->groups[file->group_count++];
    const struct node *chunks = field(group, 1);
    int64_t sizes[2] = {0, 0};

    facts->rows = (size_t)number(group, 3);
    MUST(chunks->count == COLUMNS && number(group, 5) == (int64_t)whole->at);
    MUST(facts->rows > 0 && facts->rows <= 100000);
    struct file_row *more = realloc(file->rows, (file->row_count + facts->rows) * sizeof *more);
    MUST(more != NULL);
    file->rows = more;
    memset(more + file->row_count, 0, facts->rows * sizeof *more);
    for (int i = 0; i < COLUMNS; i++) {
        struct column_reader reader = {file, codec, i, &facts->chunks[i], file->rows + file->row_count, NULL};
        read_chunk(&reader, &chunks->parts[i], whole, facts->rows, sizes);
    }
    file->row_count += facts->rows;
    MUST(number(group, 2) == sizes[0] && number(group, 6) == sizes[1]);
}

static void check_schema(const struct node *schema)
{
    static const char *const names[] = {"queen_record", "partition", "offset", "transaction_id", "ts", "payload"};
    const struct node *time;

    MUST(schema->count == 6 && number(&schema->parts[0], 5) == 5 && find(&schema->parts[0], 1) == NULL);
    for (int i = 0; i < 6; i++) {
        const struct node *element = &schema->parts[i];
        MUST(is_text(&field(element, 4)->text, names[i]));
        if (i > 0) {
            bool texts = i - 1 != OFFSET && i - 1 != TS;
            MUST(number(element, 3) == (i - 1 == PAYLOAD) && number(element, 1) == (texts ? 6 : 2));
            MUST(!texts || (number(element, 6) == 0 && find(field(element, 10), 1) != NULL));
        }
    }
    MUST(find(&schema->parts[1 + OFFSET], 6) == NULL && find(&schema->parts[1 + OFFSET], 10) == NULL);
    MUST(number(&schema->parts[1 + TS], 6) == 10);
    time = field(field(&schema->parts[1 + TS], 10), 8);
    MUST(number(time, 1) == 1 && find(field(time, 2), 2) != NULL);
}

static void check_footer(struct parquet_file *file, const struct node *footer)
{
    const struct node *values = field(footer, 5);

    check_schema(field(footer, 2));
    MUST(number(footer, 1) == 1 && is_text(&field(footer, 6)->text, "queen-s3") && footer->count == 7);
    MUST(values->count == 2 && is_text(&field(&values->parts[0], 1)->text, "queen.envelope") &&
         is_text(&field(&values->parts[0], 2)->text, "1") &&
         is_text(&field(&values->parts[1], 1)->text, "queen.queue"));
    file->queue = field(&values->parts[1], 2)->text;
    MUST(field(footer, 7)->count == COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        MUST(find(&field(footer, 7)->parts[i], 1) != NULL);
    }
}

void parquet_file_read(struct parquet_file *file, const void *bytes, size_t size, enum file_codec codec)
{
    struct whole whole = {bytes, 4};
    const uint8_t *end = whole.bytes + size;
    struct node footer = {0};

    memset(file, 0, sizeof *file);
    MUST(size > 12 && memcmp(bytes, "PAR1", 4) == 0 && memcmp(end - 4, "PAR1", 4) == 0);
    size_t footer_size = (size_t)bits_at(end - 8, 0, 32);
    MUST(footer_size <= size - 12);
    struct cursor cursor = {end - 8 - footer_size, end - 8};
    read_struct(&cursor, &footer);
    MUST(cursor.at == end - 8);
    check_footer(file, &footer);
    const struct node *groups = field(&footer, 4);
    file->groups = calloc(groups->count + 1, sizeof *file->groups);
    MUST(file->groups != NULL);
    for (size_t i = 0; i < groups->count; i++) {
        read_group(file, &groups->parts[i], codec, &whole);
    }
    MUST(whole.at == size - 8 - footer_size && number(&footer, 3) == (int64_t)file->row_count);
    node_free(&footer);
}

void parquet_file_free(struct parquet_file *file)
{
    for (size_t i = 0; i < file->page_count; i++) {
        free(file->pages[i]);
    }
    free(file->pages);
    free(file->groups);
    free(file->rows);
}
