/*
 * Reading objects back: the six lakes that the original wrote hold the records of its log, each and in order; filters;
 * what is no object. jsonl_read_test.c and parquet_reader_test.c have what is particular to a format.
 */
#include "common/lake/object_reader.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"
#include "lake_lines.h"
#include "lakes.h"

static const struct lake {
    const char *folder;
    const char *suffix;
    enum setting_format format;
    enum setting_compression compression;
} lakes[] = {
    {"lake/jsonl-zstd/queue=orders/", ".jsonl.zst", FORMAT_JSONL, COMPRESSION_ZSTD},
    {"lake/jsonl-gzip/queue=orders/", ".jsonl.gz", FORMAT_JSONL, COMPRESSION_GZIP},
    {"lake/jsonl/queue=orders/", ".jsonl", FORMAT_JSONL, COMPRESSION_NONE},
    {"lake/parquet-zstd/queue=orders/", ".parquet", FORMAT_PARQUET, COMPRESSION_ZSTD},
    {"lake/parquet-snappy/queue=orders/", ".parquet", FORMAT_PARQUET, COMPRESSION_SNAPPY},
    {"lake/per-partition/queue=orders/", ".parquet", FORMAT_PARQUET, COMPRESSION_ZSTD},
};

#define LAKE_COUNT (sizeof lakes / sizeof *lakes)

static int compare_lines(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The text with its lines sorted; freed by the caller, as the text is. */
static char *sorted_lines(char *text, size_t *count)
{
    char **lines = NULL;
    size_t capacity = 0;
    size_t size = strlen(text);
    char *out = malloc(size + 1);
    char *to = out;

    *count = 0;
    ck_assert_ptr_nonnull(out);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        lines = memory_grow(lines, &capacity, *count + 1, sizeof *lines);
        lines[(*count)++] = line;
    }
    if (*count > 0) {
        qsort(lines, *count, sizeof *lines, compare_lines);
    }
    for (size_t i = 0; i < *count; i++) {
        size_t length = strlen(lines[i]);
        memcpy(to, lines[i], length);
        to[length] = '\n';
        to += length + 1;
    }
    *to = '\0';
    free(lines);
    free(text);
    return out;
}

/* All records of a lake, sorted. */
static char *lake_text(const struct lake *lake, const struct object_filter *filter, size_t *count)
{
    struct byte_buffer lines = {0};
    const struct lake_file *file;
    size_t from = 0;

    while ((file = lakes_next(&from, lake->folder, lake->suffix)) != NULL) {
        struct error error;
        int code = lake_lines(lake->format, lake->compression, file->bytes, file->size, filter, &lines, NULL, &error);
        ck_assert_msg(code == 0, "%s: %s", file->path, error.message);
    }
    return sorted_lines(byte_buffer_take(&lines), count);
}

START_TEST(the_lakes_of_the_original_hold_its_log)
{
    const struct lake_file *log = lakes_find("log.jsonl");
    size_t count = 0;

    if (log == NULL) {
        return;
    }
    char *text = malloc(log->size + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, log->bytes, log->size);
    text[log->size] = '\0';
    char *expected = sorted_lines(text, &count);
    ck_assert_uint_eq(count, 1422);
    for (size_t i = 0; i < LAKE_COUNT; i++) {
        char *read = lake_text(&lakes[i], NULL, &count);
        ck_assert_msg(strcmp(read, expected) == 0, "%s: %zu records, not those of the log", lakes[i].folder, count);
        free(read);
    }
    free(expected);
}
END_TEST

START_TEST(filters_choose_the_same_records_in_every_lake)
{
    static const struct name names[] = {{"#en.wikipedia", 13}, {"caff\xc3\xa8", 6}, {"", 0}, {"nobody", 6}, {"A", 1}};
    static const int64_t since = INT64_C(1788518000000000);
    size_t seen = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (unsigned times = 0; times < 4; times++) {
            const struct object_filter filter = {.partition = &names[i],
                                                 .has_since = (times & 1) != 0,
                                                 .has_until = (times & 2) != 0,
                                                 .since = {since},
                                                 .until = {since + INT64_C(3600000000)}};
            size_t count = 0;
            size_t here = 0;
            char *expected = lake_text(&lakes[2], &filter, &count);
            for (size_t j = 0; j < LAKE_COUNT; j++) {
                char *read = lake_text(&lakes[j], &filter, &here);
                ck_assert_msg(strcmp(read, expected) == 0, "%s: %zu records, not %zu", lakes[j].folder, here, count);
                free(read);
            }
            free(expected);
            seen += count;
        }
    }
    ck_assert(seen > 0 || lakes_find("log.jsonl") == NULL);
}
END_TEST

static const char two_lines[] =
    "{\"partition\":\"a\",\"offset\":0,\"transactionId\":\"x\",\"ts\":\"2026-09-04T10:03:41.918204Z\",\"payload\":{}}\n"
    "{\"partition\":\"b\",\"offset\":9,\"transactionId\":\"\",\"ts\":\"2026-09-04T10:03:41.918205Z\",\"payload\":null}"
    "\n";

START_TEST(a_time_range_is_half_open)
{
    const int64_t first = INT64_C(1788516221918204);
    const struct {
        int64_t since;
        int64_t until;
        size_t records;
    } cases[] = {{first, first + 2, 2}, {first, first + 1, 1}, {first + 1, first + 1, 0}, {first + 1, first + 9, 1}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct object_filter filter = {
            .has_since = true, .has_until = true, .since = {cases[i].since}, .until = {cases[i].until}};
        struct byte_buffer lines = {0};
        struct object_counts counts;
        struct error error;
        ck_assert_int_eq(
            lake_lines(FORMAT_JSONL, COMPRESSION_NONE, two_lines, strlen(two_lines), &filter, &lines, &counts, &error),
            0);
        size_t count = 0;
        char *text = sorted_lines(byte_buffer_take(&lines), &count);
        ck_assert_uint_eq(count, cases[i].records);
        ck_assert_uint_eq(counts.records, 2);
        free(text);
    }
}
END_TEST

START_TEST(a_reader_says_where_it_is)
{
    struct memory_object object = {two_lines, strlen(two_lines), 0};
    struct object_source source = object_source_memory(&object);
    struct lake_record record;
    struct error error;
    struct object_reader *reader = object_reader_open(FORMAT_JSONL, COMPRESSION_NONE, &source, NULL, &error);

    ck_assert_int_eq(object_reader_next(reader, &record, &error), 1);
    ck_assert_str_eq(object_reader_where(reader), "line 1, byte 0");
    ck_assert_int_eq(object_reader_next(reader, &record, &error), 1);
    ck_assert_str_eq(object_reader_where(reader), "line 2, byte 97");
    ck_assert(record.payload_null);
    ck_assert_int_eq(object_reader_next(reader, &record, &error), 0);
    ck_assert_int_eq(object_reader_next(reader, &record, &error), 0);
    object_reader_close(reader);
}
END_TEST

START_TEST(files_are_sources_too)
{
    char path[] = "/tmp/object_reader_test.XXXXXX";
    struct file_object file = {mkstemp(path), 0};
    struct object_source source;
    struct lake_record record;
    struct error error;
    char bytes[8];

    ck_assert_int_ge(file.descriptor, 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(write(file.descriptor, two_lines, strlen(two_lines)), (int)strlen(two_lines));
    ck_assert_int_eq(object_source_file(&file, &source, &error), 0);
    ck_assert_uint_eq(source.size, strlen(two_lines));
    ck_assert_int_eq(source.read_at(source.source, 2, bytes, 8, &error), 0);
    ck_assert_mem_eq(bytes, two_lines + 2, 8);
    ck_assert_int_eq(source.read_at(source.source, source.size - 7, bytes, 8, &error), QS_ERROR_BODY);
    struct object_reader *reader = object_reader_open(FORMAT_JSONL, COMPRESSION_NONE, &source, NULL, &error);
    ck_assert_int_eq(object_reader_next(reader, &record, &error), 1);
    ck_assert_int_eq(object_reader_next(reader, &record, &error), 1);
    ck_assert_int_eq(object_reader_next(reader, &record, &error), 0);
    object_reader_close(reader);
    ck_assert_int_eq(close(file.descriptor), 0);
    reader = object_reader_open(FORMAT_JSONL, COMPRESSION_NONE, &source, NULL, &error);
    ck_assert_int_eq(object_reader_next(reader, &record, &error), QS_ERROR_SYSTEM);
    object_reader_close(reader);
    ck_assert_ptr_null(object_reader_open(FORMAT_PARQUET, COMPRESSION_ZSTD, &source, NULL, &error));
    ck_assert_int_eq(error.code, QS_ERROR_SYSTEM);
}
END_TEST

START_TEST(a_source_must_fit_its_format)
{
    struct object_source source = {0};
    struct error error;

    ck_assert_ptr_null(object_reader_open(FORMAT_JSONL, COMPRESSION_ZSTD, &source, NULL, &error));
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
    ck_assert_ptr_null(object_reader_open(FORMAT_PARQUET, COMPRESSION_ZSTD, &source, NULL, &error));
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
    struct memory_object object = {"", 0, 0};
    source = object_source_memory(&object);
    ck_assert_ptr_null(object_reader_open(FORMAT_JSONL, COMPRESSION_SNAPPY, &source, NULL, &error));
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("object_reader");
    TCase *tests = tcase_create("objects");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, the_lakes_of_the_original_hold_its_log);
    tcase_add_test(tests, filters_choose_the_same_records_in_every_lake);
    tcase_add_test(tests, a_time_range_is_half_open);
    tcase_add_test(tests, a_reader_says_where_it_is);
    tcase_add_test(tests, files_are_sources_too);
    tcase_add_test(tests, a_source_must_fit_its_format);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
