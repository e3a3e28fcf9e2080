/*
 * Parquet files, read back by parquet_file.h: every row, the limits of pages, row groups and the dictionary, statistics,
 * and that the bytes are a function of the records alone.
 */
#include "worker/parquet.h"

#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/json_scan.h"
#include "lakes.h"
#include "parquet_file.h"
#include "runs.h"

#define MIB (1u << 20)

/* Records in the making: one block, a run a partition, an extent of at most `extent` records. */
struct table {
    struct run_source source;
    struct block block;
    struct extent *extents;
    struct run *runs;
    size_t run_count;
    size_t next;
};

static int next_run(struct run_source *source, struct run *run)
{
    struct table *table = (struct table *)source;

    if (table->next == table->run_count) {
        table->next = 0;
        return 0;
    }
    *run = table->runs[table->next++];
    return 1;
}

static void table_begin(struct table *table, size_t records)
{
    memset(table, 0, sizeof *table);
    table->source.next = next_run;
    table->source.queue = (struct name){"orders", 6};
    table->block.records = calloc(records, sizeof *table->block.records);
    table->extents = calloc(records, sizeof *table->extents);
    table->runs = calloc(records, sizeof *table->runs);
    if (table->block.records == NULL || table->extents == NULL || table->runs == NULL) {
        ck_abort_msg("out of memory");
    }
}

static void table_free(struct table *table)
{
    free(table->block.records);
    free(table->extents);
    free(table->runs);
}

/* payload NULL: null. */
static struct record *table_add(struct table *table, const char *partition, const char *id, const char *payload)
{
    size_t at = table->block.record_count++;
    struct record *record = &table->block.records[at];
    const struct run *last = table->run_count > 0 ? &table->runs[table->run_count - 1] : NULL;

    record->offset = (int64_t)at;
    record->ts.v = INT64_C(1788516000000000) + (int64_t)(at * 7919 % 1000003);
    record->transaction_id = id;
    record->transaction_id_size = (uint32_t)strlen(id);
    record->payload = payload;
    record->payload_size = payload == NULL ? 0 : (uint32_t)strlen(payload);
    record->flags = payload == NULL ? RECORD_PAYLOAD_NULL : 0;
    if (last == NULL || strcmp(last->partition.bytes, partition) != 0) {
        table->extents[table->run_count] = (struct extent){&table->block, at, 0};
        table->runs[table->run_count] =
            (struct run){{partition, strlen(partition)}, &table->extents[table->run_count], 1};
        table->run_count++;
    }
    table->extents[table->run_count - 1].count++;
    return record;
}

static int collect(void *argument, const uint8_t *bytes, size_t size)
{
    if (size > 0) {
        byte_buffer_add(argument, bytes, size);
    }
    return 0;
}

static const struct window_shape zstd = {FORMAT_PARQUET, COMPRESSION_ZSTD, LAYOUT_MERGED, ALIGN_HOUR};
static const struct window_shape snappy = {FORMAT_PARQUET, COMPRESSION_SNAPPY, LAYOUT_MERGED, ALIGN_HOUR};

static void encode(struct run_source *source, const struct window_shape *shape, struct byte_buffer *bytes)
{
    struct encode_result result;
    struct error error;

    byte_buffer_clear(bytes);
    int code = encode_stream(shape, source, 1, collect, bytes, &result, &error);
    ck_assert_msg(code == 0, "%s", error.message);
    ck_assert_uint_eq(result.bytes, bytes->size);
}

static void expect_text(const struct file_text *text, const char *bytes, size_t size, size_t row, const char *what)
{
    if (text->bytes == NULL || text->size != size || (size > 0 && memcmp(text->bytes, bytes, size) != 0)) {
        ck_abort_msg("%s of row %zu", what, row);
    }
}

static void expect_row(const struct file_row *row, size_t at, struct name partition, const struct record *record)
{
    char *id = malloc(record->transaction_id_size + 1u);

    if (id == NULL) {
        ck_abort_msg("out of memory");
    }
    size_t size = json_unescape(record->transaction_id, record->transaction_id_size, id);
    expect_text(&row->texts[PARTITION], partition.bytes, partition.size, at, "partition");
    expect_text(&row->texts[TRANSACTION_ID], id, size, at, "transaction_id");
    if ((record->flags & RECORD_PAYLOAD_NULL) == 0) {
        expect_text(&row->texts[PAYLOAD], record->payload, record->payload_size, at, "payload");
    } else if (row->texts[PAYLOAD].bytes != NULL) {
        ck_abort_msg("payload of row %zu isn't null", at);
    }
    if (row->numbers[OFFSET] != record->offset || row->numbers[TS] != record->ts.v) {
        ck_abort_msg("offset or ts of row %zu", at);
    }
    free(id);
}

/* Rows, and what can be said of every file. */
static void expect_file(const struct parquet_file *file, const struct run *runs, size_t run_count)
{
    size_t at = 0;

    for (size_t i = 0; i < run_count; i++) {
        for (size_t j = 0; j < runs[i].extent_count; j++) {
            const struct extent *extent = &runs[i].extents[j];
            for (size_t k = 0; k < extent->count; k++, at++) {
                if (at == file->row_count) {
                    ck_abort_msg("only %zu rows", at);
                }
                expect_row(&file->rows[at], at, runs[i].partition, &extent->block->records[extent->first + k]);
            }
        }
    }
    ck_assert_uint_eq(file->row_count, at);
    for (size_t i = 0; i < file->group_count; i++) {
        ck_assert_uint_eq(file->groups[i].rows, i + 1 < file->group_count ? 100000 : at - i * 100000);
        for (int column = 0; column < COLUMNS; column++) {
            const struct file_chunk *chunk = &file->groups[i].chunks[column];
            ck_assert_uint_le(chunk->largest_rows, 20000);
            ck_assert_uint_le(chunk->dictionary_size, MIB);
            ck_assert_int_eq(chunk->least.bytes != NULL, column != TRANSACTION_ID && column != PAYLOAD);
        }
    }
}

static void read_back(struct table *table, const struct window_shape *shape, struct byte_buffer *bytes,
                      struct parquet_file *file)
{
    encode(&table->source, shape, bytes);
    parquet_file_read(file, bytes->bytes, bytes->size,
                      shape->compression == COMPRESSION_ZSTD ? FILE_ZSTD : FILE_SNAPPY);
    expect_file(file, table->runs, table->run_count);
}

static void expect_number(const struct file_text *text, int64_t expected)
{
    uint64_t value = 0;

    ck_assert_uint_eq(text->size, 8);
    for (unsigned i = 0; i < 8; i++) {
        value |= (uint64_t)(uint8_t)text->bytes[i] << 8 * i;
    }
    ck_assert_int_eq((int64_t)value, expected);
}

START_TEST(one_record)
{
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;

    for (int i = 0; i < 2; i++) {
        table_begin(&table, 1);
        table_add(&table, "cust-0420", "ord-9f21", "{\"type\":\r\n\"paid\"}");
        read_back(&table, i == 0 ? &zstd : &snappy, &bytes, &file);
        const struct file_chunk *chunks = file.groups[0].chunks;
        expect_text(&file.queue, "orders", 6, 0, "queue");
        expect_text(&chunks[PARTITION].least, "cust-0420", 9, 0, "least");
        expect_text(&chunks[PARTITION].greatest, "cust-0420", 9, 0, "greatest");
        expect_number(&chunks[OFFSET].least, 0);
        expect_number(&chunks[TS].greatest, INT64_C(1788516000000000));
        for (int column = 0; column < COLUMNS; column++) {
            bool bounded = column != TRANSACTION_ID && column != PAYLOAD;
            ck_assert_uint_eq(chunks[column].pages, 1);
            ck_assert_int_eq(chunks[column].nulls, 0);
            ck_assert_int_eq(chunks[column].least_exact, bounded ? 1 : -1);
            ck_assert_int_eq(chunks[column].greatest_exact, bounded ? 1 : -1);
        }
        ck_assert_uint_eq(chunks[PARTITION].dictionary_values, 1);
        parquet_file_free(&file);
        table_free(&table);
    }
    byte_buffer_free(&bytes);
}
END_TEST

START_TEST(no_record_is_a_file_too)
{
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;

    table_begin(&table, 1);
    read_back(&table, &zstd, &bytes, &file);
    ck_assert_uint_eq(file.group_count, 0);
    parquet_file_free(&file);
    table_free(&table);
    byte_buffer_free(&bytes);
}
END_TEST

START_TEST(a_row_group_is_a_hundred_thousand_records)
{
    static const size_t counts[] = {99999, 100000, 100001, 200000, 230000};
    static const char *const partitions[] = {"a", "b", "c", "d", "e", "f"};
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        table_begin(&table, counts[i]);
        for (size_t j = 0; j < counts[i]; j++) {
            table_add(&table, partitions[j / 45000], "id", j % 3 == 0 ? NULL : "{}");
        }
        read_back(&table, &snappy, &bytes, &file);
        ck_assert_uint_eq(file.group_count, (counts[i] + 99999) / 100000);
        ck_assert_uint_eq(file.groups[0].chunks[OFFSET].pages, 5);
        ck_assert_uint_eq(file.groups[0].chunks[PAYLOAD].pages, 5);
        ck_assert_uint_eq(file.groups[0].chunks[PARTITION].pages, 5);
        ck_assert_uint_eq(file.groups[0].chunks[PARTITION].dictionary_values, 3);
        ck_assert_int_eq(file.groups[0].chunks[PAYLOAD].nulls, counts[i] < 100000 ? 33333 : 33334);
        if (file.group_count > 1) {
            expect_number(&file.groups[1].chunks[OFFSET].least, 100000);
            expect_number(&file.groups[0].chunks[OFFSET].greatest, 99999);
            expect_text(&file.groups[1].chunks[PARTITION].least, "c", 1, 0, "least");
        }
        parquet_file_free(&file);
        table_free(&table);
    }
    byte_buffer_free(&bytes);
}
END_TEST

START_TEST(nulls_wherever_they_are)
{
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;

    for (uint32_t kind = 0; kind < 40; kind++) {
        uint32_t seed = kind;
        int64_t nulls = 0;
        size_t count = 1 + kind * 1789 % 45000;
        table_begin(&table, count);
        for (size_t j = 0; j < count; j++) {
            seed = seed * 1664525u + 1013904223u;
            bool null = kind == 0 || (seed >> 16) % (kind + 1) < kind / 2;
            nulls += null;
            table_add(&table, "p", "", null ? NULL : "null");
        }
        read_back(&table, &snappy, &bytes, &file);
        ck_assert_int_eq(file.groups[0].chunks[PAYLOAD].nulls, nulls);
        parquet_file_free(&file);
        table_free(&table);
    }
    byte_buffer_free(&bytes);
}
END_TEST

static char *filled(size_t size, uint32_t seed)
{
    char *text = malloc(size + 1);

    if (text == NULL) {
        ck_abort_msg("out of memory");
    }
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        text[i] = i % 100 < 50 ? 'x' : (char)(' ' + 3 + (seed >> 16) % 56); /* no quote, no backslash */
    }
    text[size] = '\0';
    return text;
}

START_TEST(pages_are_about_a_mebibyte)
{
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;
    char *text = filled(300000, 1);

    table_begin(&table, 3000);
    for (size_t i = 0; i < 3000; i++) {
        struct record *record = table_add(&table, "p", "", text);
        record->payload_size = (uint32_t)(i % 40 == 39 ? 300000 : 1000 + i);
        record->transaction_id = text;
        record->transaction_id_size = 900;
    }
    for (int i = 0; i < 2; i++) {
        read_back(&table, i == 0 ? &zstd : &snappy, &bytes, &file);
        const struct file_chunk *payload = &file.groups[0].chunks[PAYLOAD];
        const struct file_chunk *id = &file.groups[0].chunks[TRANSACTION_ID];
        ck_assert_uint_le(payload->largest_size, MIB + 3000);
        ck_assert_uint_ge(payload->largest_size, MIB - 4000);
        ck_assert_uint_le(id->largest_size, MIB);
        ck_assert_uint_eq(id->pages, 3);
        parquet_file_free(&file);
    }
    free(text);
    table_free(&table);
    byte_buffer_free(&bytes);
}
END_TEST

/* Payloads around what a page holds, around what is compressed whole, and of sixty million bytes. */
START_TEST(a_payload_of_any_size)
{
    static const uint32_t sizes[] = {MIB - 5,          MIB - 4,         MIB - 3, MIB, MIB + 32768, 3 * 65536,
                                     MIB + 65536 - 10, MIB + 65536 - 4, 2 * MIB, 0,   7 * MIB + 1, 60000000};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;
    char *text = filled(60000000, 2);

    table_begin(&table, 2 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        table_add(&table, "p", "id", "\"small\"");
        struct record *record = table_add(&table, "p", "id", "");
        record->payload = text;
        record->payload_size = sizes[i];
    }
    for (int i = 0; i < 2; i++) {
        read_back(&table, i == 0 ? &zstd : &snappy, &bytes, &file);
        ck_assert_uint_gt(file.groups[0].chunks[PAYLOAD].largest_size, 60000000);
        parquet_file_free(&file);
    }
    free(text);
    table_free(&table);
    byte_buffer_free(&bytes);
}
END_TEST

START_TEST(a_payload_of_more_than_a_page_can_have_is_refused)
{
    struct encode_result result;
    struct byte_buffer bytes = {0};
    struct error error;
    struct table table;

    table_begin(&table, 1);
    table_add(&table, "p", "id", "")->payload_size = 0x7FFFFFFF;
    ck_assert_int_eq(encode_stream(&zstd, &table.source, 1, collect, &bytes, &result, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "2 GiB"));
    table_free(&table);
    byte_buffer_free(&bytes);
}
END_TEST

/* A hundred thousand and more names: those that fit are in the dictionary, the others spelled out, anew in each row
 * group. */
START_TEST(a_dictionary_has_at_most_a_mebibyte)
{
    enum { COUNT = 150000, NAME = 16 };
    char(*names)[NAME] = malloc(COUNT * sizeof *names);
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;

    ck_assert_ptr_nonnull(names);
    table_begin(&table, 2 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], NAME, "name-%07zu", i);
        for (size_t j = 0; j < 1 + (i % 100000 == 0); j++) {
            table_add(&table, names[i], "id", "1");
        }
    }
    read_back(&table, &zstd, &bytes, &file);
    ck_assert_uint_eq(file.group_count, 2);
    const struct file_chunk *first = &file.groups[0].chunks[PARTITION];
    const struct file_chunk *second = &file.groups[1].chunks[PARTITION];
    ck_assert_uint_eq(first->dictionary_values, MIB / 16);
    ck_assert_uint_eq(first->dictionary_size, MIB);
    ck_assert_uint_gt(first->plain_pages, 1);
    ck_assert_uint_eq(second->plain_pages, 0);
    ck_assert_uint_eq(second->dictionary_values, 50001);
    expect_text(&first->least, "name-0000000", 12, 0, "least");
    expect_text(&first->greatest, "name-0099998", 12, 0, "greatest");
    expect_text(&second->least, "name-0099999", 12, 0, "least");
    parquet_file_free(&file);
    table_free(&table);
    free(names);
    byte_buffer_free(&bytes);
}
END_TEST

START_TEST(a_name_that_no_dictionary_holds)
{
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;
    char *name = filled(2 * MIB, 3);

    table_begin(&table, 100);
    table_add(&table, "a", "id", "1");
    for (int i = 0; i < 5; i++) {
        table_add(&table, name, "id", "1");
    }
    read_back(&table, &zstd, &bytes, &file);
    ck_assert_uint_eq(file.groups[0].chunks[PARTITION].dictionary_values, 1);
    ck_assert_uint_eq(file.groups[0].chunks[PARTITION].plain_pages, 5);
    parquet_file_free(&file);
    table.runs++;
    table.run_count--;
    read_back(&table, &snappy, &bytes, &file);
    ck_assert_uint_eq(file.groups[0].chunks[PARTITION].dictionary_values, 0);
    ck_assert_int_eq(file.groups[0].chunks[PARTITION].greatest_exact, 0);
    ck_assert_int_eq(file.groups[0].chunks[PARTITION].least_exact, 0);
    ck_assert_uint_le(file.groups[0].chunks[PARTITION].greatest.size, 64);
    parquet_file_free(&file);
    table.runs--;
    table_free(&table);
    free(name);
    byte_buffer_free(&bytes);
}
END_TEST

START_TEST(ids_and_names_are_what_they_spell)
{
    static const char *const ids[] = {
        "",           "\\\"\\\\/",      "\\b\\f\\n\\r\\t\\u0001", "\xc3\xa8 \xf0\x9f\x98\x80",
        "\\u00e8\\/", "\\ud83d\\ude00", "ord/\\\"50\\\"\xc3\xa8"};
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;
    char *name = filled(3000, 4);
    char *id = filled(65535, 5);
    char *huge = filled(3 * MIB, 6);

    memset(huge + 100, '\\', 1000);
    memset(id + 100, '\\', 1000);
    table_begin(&table, 100);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        table_add(&table, "", ids[i], "1");
    }
    table_add(&table, name, id, "1");
    table_add(&table, "p \"\\\n\x01\x7f\xe2\x80\xa8", huge, "1");
    for (int i = 0; i < 2; i++) {
        read_back(&table, i == 0 ? &zstd : &snappy, &bytes, &file);
        expect_text(&file.rows[5].texts[TRANSACTION_ID], "\xf0\x9f\x98\x80", 4, 5, "id");
        ck_assert_uint_eq(file.groups[0].chunks[PARTITION].dictionary_values, 3);
        ck_assert_uint_eq(file.groups[0].chunks[PARTITION].least.size, 0);
        ck_assert_int_eq(file.groups[0].chunks[PARTITION].least_exact, 1);
        parquet_file_free(&file);
    }
    free(name);
    free(id);
    free(huge);
    table_free(&table);
    byte_buffer_free(&bytes);
}
END_TEST

/* Strings are UTF-8, whatever a JSON string can spell. */
START_TEST(a_lone_surrogate_becomes_a_replacement)
{
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;

    table_begin(&table, 3);
    table_add(&table, "p\xed\xa0\x80", "\\ud800x\\udfff", "\"\\ud800\"");
    table_add(&table, "\xed\x9f\xbf", "\xed\x9f\xbf", "1");
    table_add(&table, "\xed", "\\u00ed", "1");
    encode(&table.source, &zstd, &bytes);
    parquet_file_read(&file, bytes.bytes, bytes.size, FILE_ZSTD);
    expect_text(&file.rows[0].texts[PARTITION], "p\xef\xbf\xbd", 4, 0, "partition");
    expect_text(&file.rows[0].texts[TRANSACTION_ID], "\xef\xbf\xbdx\xef\xbf\xbd", 7, 0, "id");
    expect_text(&file.rows[0].texts[PAYLOAD], "\"\\ud800\"", 8, 0, "payload");
    expect_text(&file.rows[1].texts[PARTITION], "\xed\x9f\xbf", 3, 1, "partition");
    expect_text(&file.rows[1].texts[TRANSACTION_ID], "\xed\x9f\xbf", 3, 1, "id");
    expect_text(&file.rows[2].texts[TRANSACTION_ID], "\xc3\xad", 2, 2, "id");
    parquet_file_free(&file);
    table_free(&table);
    byte_buffer_free(&bytes);
}
END_TEST

START_TEST(the_bytes_do_not_depend_on_how_runs_are_cut)
{
    struct byte_buffer whole = {0};
    struct byte_buffer cut = {0};
    struct run_set set;
    size_t size = 0;
    char *text = made_up_lines(120000, 40, 7, &size);

    run_set_read(&set, text, size, INT64_MIN, INT64_MAX);
    set.source.queue = (struct name){"orders", 6};
    encode(&set.source, &zstd, &cut);
    /* The same records as extents of three, as one extent a run, and as a run for each extent. */
    struct run *runs = calloc(set.block.record_count, sizeof *runs);
    struct extent *extents = calloc(set.run_count, sizeof *extents);
    struct table table = {.source = {.next = next_run, .queue = set.source.queue}, .runs = runs};
    ck_assert(runs != NULL && extents != NULL);
    for (size_t i = 0; i < set.run_count; i++) {
        extents[i] = (struct extent){&set.block, set.runs[i].extents[0].first, 0};
        for (size_t j = 0; j < set.runs[i].extent_count; j++) {
            extents[i].count += set.runs[i].extents[j].count;
        }
        runs[table.run_count++] = (struct run){set.runs[i].partition, &extents[i], 1};
    }
    encode(&table.source, &zstd, &whole);
    ck_assert_uint_eq(whole.size, cut.size);
    ck_assert(memcmp(whole.bytes, cut.bytes, cut.size) == 0);
    table.run_count = 0;
    for (size_t i = 0; i < set.run_count; i++) {
        for (size_t j = 0; j < set.runs[i].extent_count; j++) {
            runs[table.run_count++] = (struct run){set.runs[i].partition, &set.runs[i].extents[j], 1};
        }
    }
    encode(&table.source, &zstd, &whole);
    ck_assert_uint_eq(whole.size, cut.size);
    ck_assert(memcmp(whole.bytes, cut.bytes, cut.size) == 0);
    free(runs);
    free(extents);
    run_set_free(&set);
    free(text);
    byte_buffer_free(&whole);
    byte_buffer_free(&cut);
}
END_TEST

START_TEST(other_compressions_are_refused)
{
    static const enum setting_compression kinds[] = {COMPRESSION_NONE, COMPRESSION_GZIP};
    struct window_shape shape = zstd;
    struct encode_result result;
    struct byte_buffer bytes = {0};
    struct error error;
    struct table table;

    table_begin(&table, 1);
    for (int i = 0; i < 2; i++) {
        shape.compression = kinds[i];
        ck_assert_int_eq(encode_stream(&shape, &table.source, 1, collect, &bytes, &result, &error), QS_ERROR_INPUT);
        ck_assert_ptr_nonnull(strstr(error.message, setting_compression_name(kinds[i])));
    }
    table_free(&table);
    byte_buffer_free(&bytes);
}
END_TEST

struct taker {
    size_t calls;
    size_t stop_at;
    size_t empty;
};

static int take_some(void *argument, const uint8_t *bytes, size_t size)
{
    struct taker *taker = argument;

    (void)bytes;
    taker->empty += size == 0;
    return taker->calls++ == taker->stop_at ? QS_ERROR_NO_ROOM : 0;
}

/* At whichever call it is refused: that is the end, with that code, and nothing leaks. Before the row group ends there
 * are calls too, so that an encoding can be stopped in the middle of one. */
START_TEST(who_takes_the_bytes_can_stop_it)
{
    struct encode_result result;
    struct taker taker = {.stop_at = SIZE_MAX};
    struct error error;
    struct table table;

    table_begin(&table, 120000);
    for (size_t i = 0; i < 120000; i++) {
        table_add(&table, i < 70000 ? "a" : "b", "id", "{\"a\":1}");
    }
    ck_assert_int_eq(encode_stream(&snappy, &table.source, 1, take_some, &taker, &result, &error), 0);
    size_t calls = taker.calls;
    ck_assert_uint_ge(taker.empty, 30);
    for (size_t i = 0; i < calls; i += 1 + i / 20) {
        taker = (struct taker){.stop_at = i};
        table.next = 0;
        ck_assert_int_eq(encode_stream(&snappy, &table.source, 1, take_some, &taker, &result, &error),
                         QS_ERROR_NO_ROOM);
        ck_assert_uint_eq(taker.calls, i + 1);
    }
    table_free(&table);
}
END_TEST

struct gauge {
    size_t bytes;
    size_t before;
    size_t most;
};

static size_t allocated(void)
{
    struct mallinfo2 now = mallinfo2();

    return now.uordblks + now.hblkhd;
}

static int gauge_memory(void *argument, const uint8_t *bytes, size_t size)
{
    struct gauge *gauge = argument;
    size_t now = allocated() - gauge->before;

    (void)bytes;
    gauge->bytes += size;
    gauge->most = now > gauge->most ? now : gauge->most;
    return 0;
}

/* What it says beforehand, and beside it never more than the file has. (Under a sanitizer nothing is measured.) */
START_TEST(memory_is_what_was_said)
{
    struct byte_buffer lines = {0};
    struct encode_result result;
    struct error error;
    struct table table;
    char *text = filled(30000000, 8);

    for (int i = 0; i < 4; i++) {
        size_t count = i < 2 ? 30000 : 3;
        table_begin(&table, count);
        for (size_t j = 0; j < count; j++) {
            struct record *record = table_add(&table, "p", "id", "");
            record->payload = text + j * (i < 2 ? 900 : 1);
            record->payload_size = i < 2 ? 900 : 20000000;
        }
        const struct window_shape *shape = i % 2 == 0 ? &zstd : &snappy;
        struct gauge gauge = {.before = allocated()};
        uint64_t text_size = jsonl_run_size(&table.runs[0]);
        ck_assert_int_eq(encode_stream(shape, &table.source, 1, gauge_memory, &gauge, &result, &error), 0);
        ck_assert_uint_le(gauge.most, parquet_memory(shape->compression, text_size) + gauge.bytes + 6 * 65536);
        ck_assert_uint_le(gauge.bytes, parquet_bound(shape->compression, text_size));
        ck_assert_uint_ge(encode_memory(shape, text_size, UINT64_MAX), gauge.most);
        table_free(&table);
    }
    byte_buffer_free(&lines);
    free(text);
}
END_TEST

START_TEST(nothing_shrinks_and_the_bound_holds)
{
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct table table;
    char *noise = malloc(4000001);
    uint32_t seed = 9;

    ck_assert_ptr_nonnull(noise);
    for (size_t i = 0; i < 4000000; i++) {
        seed = seed * 1664525u + 1013904223u;
        noise[i] = (char)((seed >> 24) % 255 + 1);
    }
    noise[4000000] = '\0';
    for (int i = 0; i < 6; i++) {
        size_t count = i < 2 ? 1 : i < 4 ? 10 : 2;
        table_begin(&table, count);
        for (size_t j = 0; j < count; j++) {
            struct record *record = table_add(&table, "p", "id", "");
            record->payload = noise + j * 100;
            record->payload_size = i < 2 ? 1 : i < 4 ? 300000 : 3999000;
        }
        const struct window_shape *shape = i % 2 == 0 ? &zstd : &snappy;
        read_back(&table, shape, &bytes, &file);
        ck_assert_uint_le(bytes.size, parquet_bound(shape->compression, jsonl_run_size(&table.runs[0])));
        parquet_file_free(&file);
        table_free(&table);
    }
    free(noise);
    byte_buffer_free(&bytes);
}
END_TEST

/* The log that the original's lakes were made of: real edits, nested documents, awkward names. */
START_TEST(the_originals_log)
{
    const struct lake_file *log = lakes_find("log.jsonl");
    struct byte_buffer bytes = {0};
    struct parquet_file file;
    struct run_set set;

    if (log == NULL) {
        return;
    }
    run_set_read(&set, log->bytes, log->size, INT64_MIN, INT64_MAX);
    set.source.queue = (struct name){"orders", 6};
    for (int i = 0; i < 2; i++) {
        run_set_rewind(&set);
        encode(&set.source, i == 0 ? &zstd : &snappy, &bytes);
        parquet_file_read(&file, bytes.bytes, bytes.size, i == 0 ? FILE_ZSTD : FILE_SNAPPY);
        ck_assert_uint_eq(file.row_count, 1422);
        expect_file(&file, set.runs, set.run_count);
        parquet_file_free(&file);
    }
    run_set_free(&set);
    byte_buffer_free(&bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parquet");
    TCase *tests = tcase_create("files");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, one_record);
    tcase_add_test(tests, no_record_is_a_file_too);
    tcase_add_test(tests, a_row_group_is_a_hundred_thousand_records);
    tcase_add_test(tests, nulls_wherever_they_are);
    tcase_add_test(tests, pages_are_about_a_mebibyte);
    tcase_add_test(tests, a_payload_of_any_size);
    tcase_add_test(tests, a_payload_of_more_than_a_page_can_have_is_refused);
    tcase_add_test(tests, a_dictionary_has_at_most_a_mebibyte);
    tcase_add_test(tests, a_name_that_no_dictionary_holds);
    tcase_add_test(tests, ids_and_names_are_what_they_spell);
    tcase_add_test(tests, a_lone_surrogate_becomes_a_replacement);
    tcase_add_test(tests, the_bytes_do_not_depend_on_how_runs_are_cut);
    tcase_add_test(tests, other_compressions_are_refused);
    tcase_add_test(tests, who_takes_the_bytes_can_stop_it);
    tcase_add_test(tests, memory_is_what_was_said);
    tcase_add_test(tests, nothing_shrinks_and_the_bound_holds);
    tcase_add_test(tests, the_originals_log);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
