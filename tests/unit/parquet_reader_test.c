/*
 * Parquet as another writer makes it, in every encoding, page version and codec that the reader takes (data/parquet,
 * made by make.py there); row groups and pages that nobody asks for and so nobody reads; other schemas; damage at every
 * byte, cuts everywhere, and counts that mean harm.
 *
 * A hundred thousand readings: a sanitizer on a busy machine takes its time for them.
 * TIME_LIMIT = 900
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lake_lines.h"
#include "lakes.h"

static const char *const names[] = {"plain-none",      "plain-snappy-v2", "dictionary-none-v2", "dictionary-gzip",
                                    "dictionary-full", "deltas-zstd-v2",  "deltas-snappy",      "mixed-gzip-v2",
                                    "mixed-codecs",    "checksums",       "checksums-v2",       "row-groups"};

#define NAME_COUNT (sizeof names / sizeof *names)

static char *read_file(const char *name, size_t *size)
{
    char file[64];

    snprintf(file, sizeof file, "%s.parquet", name);
    return lake_fixture(file, size);
}

static int read_bytes(const char *bytes, size_t size, struct byte_buffer *lines, struct error *error)
{
    return lake_lines(FORMAT_PARQUET, COMPRESSION_ZSTD, bytes, size, NULL, lines, NULL, error);
}

START_TEST(every_way_of_writing_holds_the_same_records)
{
    size_t expected_size = 0;
    char *expected = lake_fixture("records.jsonl", &expected_size);

    for (size_t i = 0; i < NAME_COUNT; i++) {
        struct byte_buffer lines = {0};
        struct error error;
        size_t size = 0;
        char *bytes = read_file(names[i], &size);
        int code = read_bytes(bytes, size, &lines, &error);
        ck_assert_msg(code == 0, "%s: %s", names[i], error.message);
        ck_assert_msg(lines.size == expected_size && memcmp(lines.bytes, expected, expected_size) == 0,
                      "%s holds other records", names[i]);
        byte_buffer_free(&lines);
        free(bytes);
    }
    free(expected);
}
END_TEST

START_TEST(other_schemas_are_refused)
{
    static const char *const others[][2] = {
        {"other-nullable", "column 1 isn't `required binary partition (STRING)`"},
        {"other-milliseconds", "column 4 isn't `required int64 ts (TIMESTAMP(MICROS,true))`"},
        {"other-local-time", "column 4 isn't"},
        {"other-binary", "column 1 isn't"},
        {"other-unsigned", "column 2 isn't `required int64 offset`"},
        {"other-order", "column 1 isn't"},
        {"other-columns", "five columns"},
        {"other-codec", "a codec other than zstd, snappy, gzip and none"},
    };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct byte_buffer lines = {0};
        struct error error = {0};
        size_t size = 0;
        char *bytes = read_file(others[i][0], &size);
        ck_assert_int_eq(read_bytes(bytes, size, &lines, &error), QS_ERROR_BODY);
        ck_assert_msg(strstr(error.message, others[i][1]) != NULL, "%s: %s", others[i][0], error.message);
        ck_assert_msg(strstr(error.message, "byte ") != NULL, "%s", error.message);
        free(bytes);
    }
}
END_TEST

/* ---- what isn't read ---- */

struct watched {
    const char *bytes;
    size_t size;
    size_t read;
    size_t calls;
    size_t fails_at; /* this call fails */
};

static int watched_read_at(void *source, uint64_t offset, void *buffer, size_t size, struct error *error)
{
    struct watched *watched = source;

    if (watched->calls++ == watched->fails_at) {
        return error_set(error, QS_ERROR_TRANSPORT, "the connection broke");
    }
    ck_assert(offset <= watched->size && size <= watched->size - offset);
    memcpy(buffer, watched->bytes + offset, size);
    watched->read += size;
    return 0;
}

static size_t count_records(struct watched *watched, const struct object_filter *filter, struct object_counts *counts)
{
    struct object_source source = {.source = watched, .read_at = watched_read_at, .size = watched->size};
    struct error error;
    struct object_reader *reader = object_reader_open(FORMAT_PARQUET, COMPRESSION_ZSTD, &source, filter, &error);
    struct lake_record record;
    size_t count = 0;
    int result;

    ck_assert_msg(reader != NULL, "%s", error.message);
    while ((result = object_reader_next(reader, &record, &error)) == 1) {
        count++;
    }
    ck_assert_msg(result == 0, "%s", error.message);
    object_reader_counts(reader, counts);
    object_reader_close(reader);
    return count;
}

START_TEST(row_groups_that_cannot_match_are_not_read)
{
    const int64_t base = INT64_C(1788516000000000);
    const struct {
        const char *partition;
        int64_t since; /* after base; -1: none */
        int64_t until;
        size_t records;
        uint64_t groups;
    } cases[] = {
        {NULL, -1, -1, 50, 5},
        {"A", -1, -1, 10, 1},
        {"", -1, -1, 10, 1},
        {"B", -1, -1, 0, 0},
        {"caff\xc3\xa8", -1, -1, 10, 1},
        {"zzz", -1, -1, 0, 0},
        {NULL, 6999997, -1, 1, 1},
        {NULL, 6999998, -1, 0, 0},
        {NULL, -1, 1, 1, 1},
        {NULL, -1, 0, 0, 0},
        {"A", 0, 1333334, 2, 1},
    };
    size_t size = 0;
    char *bytes = read_file("row-groups", &size);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watched watched = {bytes, size, 0, 0, SIZE_MAX};
        struct name name = {cases[i].partition, cases[i].partition != NULL ? strlen(cases[i].partition) : 0};
        struct object_filter filter = {.partition = cases[i].partition != NULL ? &name : NULL,
                                       .has_since = cases[i].since >= 0,
                                       .has_until = cases[i].until >= 0,
                                       .since = {base + cases[i].since},
                                       .until = {base + cases[i].until}};
        struct object_counts counts;
        ck_assert_uint_eq(count_records(&watched, &filter, &counts), cases[i].records);
        ck_assert_uint_eq(counts.row_groups, cases[i].groups);
        ck_assert_uint_eq(counts.row_groups_skipped, 5 - cases[i].groups);
        ck_assert_uint_eq(counts.records, 10 * cases[i].groups);
        /* Head, tail and footer, and a row group five columns. */
        ck_assert_uint_eq(watched.calls, 3 + 5 * cases[i].groups);
    }
    free(bytes);
}
END_TEST

START_TEST(pages_that_nobody_wants_are_passed_over)
{
    size_t size = 0;
    char *bytes = read_file("deltas-snappy", &size);

    /* 8 rows a page in one row group: whichever records are asked for, they are the right ones. */
    for (int64_t since = 0; since < 50; since++) {
        struct watched watched = {bytes, size, 0, 0, SIZE_MAX};
        struct object_filter filter = {.has_since = true, .has_until = true};
        struct object_counts counts;
        filter.since.v = INT64_C(1788516000000000) + since / 10 * 1000000 + since % 10 * 333333;
        filter.until.v = filter.since.v + 1;
        ck_assert_uint_ge(count_records(&watched, &filter, &counts), 1);
    }
    free(bytes);
}
END_TEST

START_TEST(a_source_that_fails_is_told_of)
{
    size_t size = 0;
    char *bytes = read_file("row-groups", &size);

    for (size_t fails_at = 0; fails_at < 28; fails_at++) {
        struct watched watched = {bytes, size, 0, 0, fails_at};
        struct object_source source = {.source = &watched, .read_at = watched_read_at, .size = size};
        struct error error = {0};
        struct object_reader *reader = object_reader_open(FORMAT_PARQUET, COMPRESSION_ZSTD, &source, NULL, &error);
        struct lake_record record;
        int result = 1;
        while (reader != NULL && result == 1) {
            result = object_reader_next(reader, &record, &error);
        }
        ck_assert_int_eq(error.code, QS_ERROR_TRANSPORT);
        ck_assert(error.retriable);
        object_reader_close(reader);
    }
    free(bytes);
}
END_TEST

/* ---- damage ---- */

/* A line without the part of the column, so that two texts can be compared but for it. */
static bool differ_in_one_column(const struct byte_buffer *left, const struct byte_buffer *right)
{
    static const char *const titles[] = {
        "\"partition\":", ",\"offset\":", ",\"transactionId\":", ",\"ts\":", ",\"payload\":"};
    const char *a = left->bytes;
    const char *b = right->bytes;
    unsigned differing = 0;

    while (*a != '\0' && *b != '\0') {
        for (size_t i = 0; i < 5; i++) {
            const char *a_end = i < 4 ? strstr(a, titles[i + 1]) : strchr(a, '\n') + 1;
            const char *b_end = i < 4 ? strstr(b, titles[i + 1]) : strchr(b, '\n') + 1;
            if (a_end - a != b_end - b || memcmp(a, b, (size_t)(a_end - a)) != 0) {
                differing |= 1u << i;
            }
            a = a_end;
            b = b_end;
        }
    }
    return *a == *b && (differing & (differing - 1)) == 0;
}

static void expect_place(const struct error *error)
{
    bool has_place = strstr(error->message, "byte ") != NULL || strstr(error->message, "record ") != NULL;

    if (error->code != QS_ERROR_BODY || !has_place) {
        ck_abort_msg("%s", error->message);
    }
}

/* A damaged byte is refused, or changes values of one column and the number of records never. Where pages have
 * checksums it changes nothing. */
START_TEST(damage_is_refused_or_stays_in_its_column)
{
    const char *name = names[_i];
    bool has_checksums = strncmp(name, "checksums", 9) == 0;
    struct byte_buffer expected = {0};
    struct error error;
    size_t size = 0;
    size_t refused = 0;
    char *bytes = read_file(name, &size);

    ck_assert_int_eq(read_bytes(bytes, size, &expected, &error), 0);
    for (size_t at = 0; at < size; at++) {
        char was = bytes[at];
        for (unsigned i = at % 2; i < 3; i += 2) {
            struct byte_buffer lines = {0};
            error = (struct error){0};
            bytes[at] = i == 0 ? (char)((unsigned char)was ^ 1u << at % 8) : i == 1 ? (char)0xff : (char)0;
            if (read_bytes(bytes, size, &lines, &error) != 0) {
                expect_place(&error);
                refused++;
            } else {
                bool is_same = lines.size == expected.size && memcmp(lines.bytes, expected.bytes, lines.size) == 0;
                if (!is_same && (has_checksums || lines.size == 0 || !differ_in_one_column(&lines, &expected))) {
                    ck_abort_msg("%s, byte %zu: %02x", name, at, (unsigned char)bytes[at]);
                }
            }
            byte_buffer_free(&lines);
        }
        bytes[at] = was;
    }
    ck_assert_uint_gt(refused, size / 2);
    byte_buffer_free(&expected);
    free(bytes);
}
END_TEST

START_TEST(a_file_cut_anywhere_is_refused)
{
    size_t size = 0;
    char *bytes = read_file(names[_i], &size);

    for (size_t end = 0; end < size; end++) {
        struct byte_buffer lines = {0};
        struct error error = {0};
        ck_assert_int_ne(read_bytes(bytes, end, &lines, &error), 0);
        expect_place(&error);
        /* And with the end that a whole file has. */
        char *cut = malloc(end + 8);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, bytes, end);
        memcpy(cut + end, bytes + size - 8, 8);
        error = (struct error){0};
        if (end % 4 == 0 && end != size - 8) {
            ck_assert_int_ne(read_bytes(cut, end + 8, &lines, &error), 0);
            expect_place(&error);
        }
        free(cut);
        byte_buffer_free(&lines);
    }
    free(bytes);
}
END_TEST

START_TEST(the_footer_s_size_is_not_believed)
{
    static const uint32_t sizes[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
    size_t size = 0;
    char *bytes = read_file("plain-none", &size);

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct byte_buffer lines = {0};
        struct error error = {0};
        for (unsigned j = 0; j < 4; j++) {
            bytes[size - 8 + j] = (char)(sizes[i] >> 8 * j & 0xff);
        }
        ck_assert_int_eq(read_bytes(bytes, size, &lines, &error), QS_ERROR_BODY);
        expect_place(&error);
    }
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parquet_reader");
    TCase *tests = tcase_create("files");
    TCase *damage = tcase_create("damage");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, every_way_of_writing_holds_the_same_records);
    tcase_add_test(tests, other_schemas_are_refused);
    tcase_add_test(tests, row_groups_that_cannot_match_are_not_read);
    tcase_add_test(tests, pages_that_nobody_wants_are_passed_over);
    tcase_add_test(tests, a_source_that_fails_is_told_of);
    tcase_add_test(tests, the_footer_s_size_is_not_believed);
    tcase_set_timeout(damage, 30);
    tcase_add_loop_test(damage, damage_is_refused_or_stays_in_its_column, 0, (int)NAME_COUNT);
    tcase_add_loop_test(damage, a_file_cut_anywhere_is_refused, 0, (int)NAME_COUNT);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, damage);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
