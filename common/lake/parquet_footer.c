/*
 * The footer (parquet_format.h): PAR1, pages, FileMetaData in Thrift, its size in four bytes, PAR1 (README.md of the
 * format, "File format"). It stays in memory as it is; row groups are read from it one at a time, so that their number
 * costs nothing more. The first pass, at opening, checks them all.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/parquet_format.h"

#define MAGIC_SIZE 4
#define TAIL_SIZE  8 /* the footer's size and the magic */
/* A row group of 100 000 records takes about 700 bytes here: ten billion records. */
#define FOOTER_MAX 67108864u

enum { TYPE_INT64 = 2, TYPE_BYTE_ARRAY = 6 };
enum { REPETITION_REQUIRED = 0, REPETITION_OPTIONAL = 1 };
enum { CONVERTED_UTF8 = 0, CONVERTED_TIMESTAMP_MICROS = 10, CONVERTED_INT_64 = 18 };
enum { LOGICAL_STRING = 1, LOGICAL_TIMESTAMP = 8, LOGICAL_INTEGER = 10 };

/* What a column has to be: the schema of spec 2.2. Old readers and writers know only the converted type, others only the
 * logical one: either will do, and both must agree (LogicalTypes.md, "Compatibility"). */
static const struct column_rule {
    const char *name;
    int32_t type;
    int32_t repetition;
    int32_t converted;
    int32_t logical;
    bool annotated; /* one of the two has to be there */
} rules[STORED_COLUMN_COUNT] = {
    {"partition", TYPE_BYTE_ARRAY, REPETITION_REQUIRED, CONVERTED_UTF8, LOGICAL_STRING, true},
    {"offset", TYPE_INT64, REPETITION_REQUIRED, CONVERTED_INT_64, LOGICAL_INTEGER, false},
    {"transaction_id", TYPE_BYTE_ARRAY, REPETITION_REQUIRED, CONVERTED_UTF8, LOGICAL_STRING, true},
    {"ts", TYPE_INT64, REPETITION_REQUIRED, CONVERTED_TIMESTAMP_MICROS, LOGICAL_TIMESTAMP, true},
    {"payload", TYPE_BYTE_ARRAY, REPETITION_OPTIONAL, CONVERTED_UTF8, LOGICAL_STRING, true},
};

const char *stored_column_title(enum stored_column_name column)
{
    return rules[column].name;
}

/* ---- the schema ---- */

#define NONE (-1)

struct element {
    int32_t type;
    int32_t repetition;
    struct compact_binary name;
    int32_t children;
    int32_t converted;
    int32_t logical;
    bool logical_fits; /* its parameters are the schema's */
};

/* TimestampType: adjusted to UTC, in microseconds. */
static bool read_timestamp(struct compact *compact)
{
    struct compact_field field = {0};
    bool utc = false;
    int32_t unit = 0;

    while (compact_next_field(compact, &field)) {
        if (field.id == 1) {
            utc = compact_bool(compact, &field);
        } else if (field.id == 2 && compact_struct(compact, &field)) {
            struct compact_field choice = {0};
            while (compact_next_field(compact, &choice)) {
                unit = choice.id;
                compact_skip(compact, &choice);
            }
        } else {
            compact_skip(compact, &field);
        }
    }
    return utc && unit == 2;
}

/* IntType: 64 bits, signed. */
static bool read_integer(struct compact *compact)
{
    struct compact_field field = {0};
    int width = 0;
    bool is_signed = false;

    while (compact_next_field(compact, &field)) {
        if (field.id == 1 && field.type == COMPACT_BYTE) {
            width = compact->at < compact->end ? *compact->at : 0;
            compact_skip(compact, &field);
        } else if (field.id == 2) {
            is_signed = compact_bool(compact, &field);
        } else {
            compact_skip(compact, &field);
        }
    }
    return width == 64 && is_signed;
}

/* A union: the id of its one field says which type it is. */
static void read_logical(struct compact *compact, struct element *element)
{
    struct compact_field field = {0};

    while (compact_next_field(compact, &field)) {
        element->logical = field.id;
        element->logical_fits = true;
        if (field.id == LOGICAL_TIMESTAMP && compact_struct(compact, &field)) {
            element->logical_fits = read_timestamp(compact);
        } else if (field.id == LOGICAL_INTEGER && compact_struct(compact, &field)) {
            element->logical_fits = read_integer(compact);
        } else {
            compact_skip(compact, &field);
        }
    }
}

static void read_element(struct compact *compact, struct element *element)
{
    struct compact_field field = {0};

    *element = (struct element){NONE, NONE, {compact->at, 0}, 0, NONE, NONE, false};
    while (compact_next_field(compact, &field)) {
        switch (field.id) {
        case 1: element->type = compact_i32(compact, &field); break;
        case 3: element->repetition = compact_i32(compact, &field); break;
        case 4: element->name = compact_binary(compact, &field); break;
        case 5: element->children = compact_i32(compact, &field); break;
        case 6: element->converted = compact_i32(compact, &field); break;
        case 10:
            if (compact_struct(compact, &field)) {
                read_logical(compact, element);
            }
            break;
        default: compact_skip(compact, &field);
        }
    }
}

static bool fits(const struct element *element, const struct column_rule *rule)
{
    bool is_annotated = element->converted != NONE || element->logical != NONE;

    return element->name.size == strlen(rule->name) &&
           memcmp(element->name.bytes, rule->name, element->name.size) == 0 && element->type == rule->type &&
           element->repetition == rule->repetition && element->children == 0 &&
           (element->converted == NONE || element->converted == rule->converted) &&
           (element->logical == NONE || (element->logical == rule->logical && element->logical_fits)) &&
           (is_annotated || !rule->annotated);
}

static void read_schema(struct compact *compact, const struct compact_field *field)
{
    struct element element;
    uint32_t count = compact_list(compact, field, COMPACT_STRUCT);

    if (compact->why != NULL) {
        return;
    }
    if (count != STORED_COLUMN_COUNT + 1) {
        compact_fail(compact, "its schema hasn't the lake's five columns");
        return;
    }
    read_element(compact, &element);
    if (element.children != STORED_COLUMN_COUNT) {
        compact_fail(compact, "its schema hasn't the lake's five columns");
    }
    for (size_t i = 0; i < STORED_COLUMN_COUNT && compact->why == NULL; i++) {
        read_element(compact, &element);
        if (compact->why == NULL && !fits(&element, &rules[i])) {
            static const char *const complaints[STORED_COLUMN_COUNT] = {
                "column 1 isn't `required binary partition (STRING)`",
                "column 2 isn't `required int64 offset`",
                "column 3 isn't `required binary transaction_id (STRING)`",
                "column 4 isn't `required int64 ts (TIMESTAMP(MICROS,true))`",
                "column 5 isn't `optional binary payload (STRING)`",
            };
            compact_fail(compact, complaints[i]);
        }
    }
}

/* ColumnOrder is a union too, TYPE_ORDER its one member: without it the bounds of strings mean nothing. */
static void read_orders(struct compact *compact, const struct compact_field *field, bool ordered[STORED_COLUMN_COUNT])
{
    uint32_t count = compact_list(compact, field, COMPACT_STRUCT);

    if (compact->why == NULL && count != STORED_COLUMN_COUNT) {
        compact_fail(compact, "orders of another number of columns");
    }
    for (size_t i = 0; i < STORED_COLUMN_COUNT && compact->why == NULL; i++) {
        struct compact_field order = {0};
        while (compact_next_field(compact, &order)) {
            ordered[i] = order.id == 1;
            compact_skip(compact, &order);
        }
    }
}

/* ---- the whole ---- */

/* `groups` is left at the first row group. */
static void read_metadata(struct stored_footer *footer, struct compact *compact)
{
    enum { HAS_VERSION = 1, HAS_SCHEMA = 2, HAS_ROWS = 4, HAS_GROUPS = 8, HAS_ALL = 15 };
    struct compact_field field = {0};
    unsigned seen = 0;
    int64_t rows = 0;

    while (compact_next_field(compact, &field)) {
        seen |= field.id >= 1 && field.id <= 4 ? 1u << (field.id - 1) : 0;
        switch (field.id) {
        case 1: (void)compact_i32(compact, &field); break;
        case 2: read_schema(compact, &field); break;
        case 3: rows = compact_i64(compact, &field); break;
        case 4:
            footer->group_count = compact_list(compact, &field, COMPACT_STRUCT);
            footer->groups = *compact;
            for (uint32_t i = 0; i < footer->group_count && compact->why == NULL; i++) {
                compact_skip_struct(compact);
            }
            break;
        case 7: read_orders(compact, &field, footer->ordered); break;
        case 8: compact_fail(compact, "it is encrypted"); break;
        default: compact_skip(compact, &field);
        }
    }
    if (compact->why == NULL && seen != HAS_ALL) {
        compact_fail(compact, "version, schema, rows or row groups are missing");
    }
    if (compact->why == NULL && rows < 0) {
        compact_fail(compact, "a number of records below zero");
    }
    footer->rows = (uint64_t)rows;
}

/* A pass over all row groups; the cursor goes back to the first. */
static void check_groups(struct stored_footer *footer, struct compact *compact)
{
    struct compact first = footer->groups;
    uint64_t rows = 0;

    for (uint32_t i = 0; i < footer->group_count && compact->why == NULL; i++) {
        struct stored_group group;
        stored_group_read(&footer->groups, footer->start, footer->ordered, &group);
        if (footer->groups.why != NULL) {
            *compact = footer->groups;
        } else if (group.rows > footer->rows - rows) {
            compact_fail(compact, "its row groups have more records than the file");
        } else {
            rows += group.rows;
        }
    }
    if (compact->why == NULL && rows != footer->rows) {
        compact_fail(compact, "its row groups have fewer records than the file");
    }
    footer->groups = first;
    footer->groups_left = footer->group_count;
}

static int refuse(struct error *error, const char *format, uint64_t byte, const char *why)
    __attribute__((format(printf, 2, 0)));

static int refuse(struct error *error, const char *format, uint64_t byte, const char *why)
{
    return error_refuse(error, QS_ERROR_BODY, format, byte, why);
}

#define NO_PARQUET "byte %" PRIu64 " of the object: %s"

static int read_at(const struct object_source *source, uint64_t offset, void *buffer, size_t size, struct error *error)
{
    return source->read_at(source->source, offset, buffer, size, error);
}

/* Finds the footer and brings its bytes. */
static int fetch(struct stored_footer *footer, const struct object_source *source, struct error *error)
{
    uint8_t head[MAGIC_SIZE] = {0};
    uint8_t tail[TAIL_SIZE] = {0};
    uint32_t size = 0;

    if (source->size < MAGIC_SIZE + TAIL_SIZE) {
        return refuse(error, NO_PARQUET, source->size, "too short for a Parquet file");
    }
    int code = read_at(source, 0, head, sizeof head, error);
    if (code == 0) {
        code = read_at(source, source->size - TAIL_SIZE, tail, sizeof tail, error);
    }
    if (code != 0) {
        return code;
    }
    if (memcmp(head, "PAR1", MAGIC_SIZE) != 0) {
        return refuse(error, NO_PARQUET, 0, "no Parquet file begins so");
    }
    if (memcmp(tail + 4, "PAR1", MAGIC_SIZE) != 0) {
        return refuse(error, NO_PARQUET, source->size - MAGIC_SIZE, "no Parquet file ends so");
    }
    for (size_t i = 0; i < 4; i++) {
        size |= (uint32_t)tail[i] << (8 * i);
    }
    if (size > source->size - MAGIC_SIZE - TAIL_SIZE || size > FOOTER_MAX) {
        return refuse(error, NO_PARQUET, source->size - TAIL_SIZE, "a footer larger than the file, or than any");
    }
    footer->start = source->size - TAIL_SIZE - size;
    footer->size = size;
    footer->bytes = malloc((size_t)size + 1);
    if (footer->bytes == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a footer of %" PRIu32 " bytes", size);
    }
    return read_at(source, footer->start, footer->bytes, size, error);
}

int stored_footer_read(struct stored_footer *footer, const struct object_source *source, struct error *error)
{
    memset(footer, 0, sizeof *footer);
    int code = fetch(footer, source, error);
    if (code != 0) {
        return code;
    }
    struct compact compact = compact_begin(footer->bytes, footer->size);
    read_metadata(footer, &compact);
    if (compact.why == NULL) {
        check_groups(footer, &compact);
    }
    if (compact.why != NULL) {
        return refuse(error, "the footer, from byte %" PRIu64 " of the object on: %s", footer->start, compact.why);
    }
    return 0;
}

bool stored_footer_next(struct stored_footer *footer, struct stored_group *group)
{
    if (footer->groups_left == 0) {
        return false;
    }
    footer->groups_left--;
    stored_group_read(&footer->groups, footer->start, footer->ordered, group);
    return true;
}

void stored_footer_free(struct stored_footer *footer)
{
    free(footer->bytes);
    memset(footer, 0, sizeof *footer);
}
