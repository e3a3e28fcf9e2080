/*
 * A file being filled: what rotates it, its bytes and key in each format, and what was taken.
 */
#include "worker/connector/open_file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define MOMENT UINT64_C(1788470104118) /* 2026-09-03T21:15:04.118Z */

static struct sink_formatter formatter;
static struct open_file file;
static struct error error;
static struct sink_shape shape = {.format = SINK_JSON_LINES, .compression = COMPRESSION_NONE};
static const struct sink_place place = {.prefix = "raw", .path_template = "{topic}/{date}", .topic = {"orders", 6}};

static void tear_down(void)
{
    sink_formatter_free(&formatter);
    open_file_clear(&file);
}

static enum open_file_added add(uint64_t offset, const char *payload)
{
    struct sink_record record = {.offset = offset, .timestamp_ms = MOMENT, .payload = {payload, strlen(payload)}};
    enum open_file_added added;
    unsigned oddities;
    ck_assert_int_eq(sink_formatter_begin(&formatter, &shape, place.topic, 0, SINK_SCHEMA_JSON, &error), 0);
    ck_assert_int_eq(
        open_file_add(&file, &place, &formatter, &record, sink_record_hash(&record), &added, &oddities, &error), 0);
    return added;
}

static const char *body(void)
{
    static char text[4096];
    size_t size = 0;
    for (size_t i = 0; i < file.body.count; i++) {
        memcpy(text + size, file.body.pieces[i].iov_base, file.body.pieces[i].iov_len);
        size += file.body.pieces[i].iov_len;
    }
    ck_assert_uint_eq(size, file.body.size);
    text[size] = '\0';
    return text;
}

static const char *key(void)
{
    static char text[SINK_KEY_MAX + 1];
    ck_assert_int_eq(open_file_key(file.directory, 0, file.first_offset, file.last_offset, &shape, text, &error), 0);
    return text;
}

START_TEST(lines)
{
    shape = (struct sink_shape){.format = SINK_JSON_LINES, .compression = COMPRESSION_NONE};
    ck_assert_int_eq(add(1000, "1"), OPEN_FILE_ADDED);
    ck_assert_int_eq(add(1999, "[]"), OPEN_FILE_ADDED);
    ck_assert_int_eq(open_file_finish(&file, &shape, &error), 0);
    ck_assert_str_eq(body(), "{\"payload\":1}\n{\"payload\":[]}\n");
    ck_assert_str_eq(key(), "raw/orders/2026-09-03/00000-00000000000000001000-00000000000000001999.jsonl");
    ck_assert_uint_eq(file.count, 2);
    ck_assert(seen_has(&file.seen, 1999, file.seen.records[1].hash));
}
END_TEST

START_TEST(an_array)
{
    shape = (struct sink_shape){.format = SINK_JSON_ARRAY, .compression = COMPRESSION_NONE};
    add(0, "1");
    add(1, "2");
    ck_assert_int_eq(open_file_finish(&file, &shape, &error), 0);
    ck_assert_str_eq(body(), "[{\"payload\":1},{\"payload\":2}]");
    ck_assert_str_eq(key(), "raw/orders/2026-09-03/00000-00000000000000000000-00000000000000000001.json");
}
END_TEST

START_TEST(raw_bytes)
{
    shape = (struct sink_shape){.format = SINK_RAW, .compression = COMPRESSION_NONE};
    add(0, "ab");
    add(7, "");
    add(9, "c");
    ck_assert_int_eq(open_file_finish(&file, &shape, &error), 0);
    ck_assert_str_eq(body(), "abc");
    ck_assert_uint_eq(file.own_bytes, 3);
    ck_assert_str_eq(key(), "raw/orders/2026-09-03/00000-00000000000000000000-00000000000000000009.bin");
}
END_TEST

START_TEST(size_counts_the_records_own_bytes)
{
    struct sink_limits limits = {.rotation = SINK_BY_SIZE, .max_size = 38, .max_messages = 1};
    shape = (struct sink_shape){.format = SINK_JSON_ARRAY, .compression = COMPRESSION_NONE};
    ck_assert(!open_file_is_full(&file, &limits));
    add(0, "1234567"); /* 19 bytes */
    ck_assert_uint_eq(file.own_bytes, 19);
    ck_assert(!open_file_is_full(&file, &limits));
    add(1, "1234567");
    ck_assert(open_file_is_full(&file, &limits));
    limits = (struct sink_limits){.rotation = SINK_BY_MESSAGES, .max_size = 1, .max_messages = 3};
    ck_assert(!open_file_is_full(&file, &limits));
    add(2, "1");
    ck_assert(open_file_is_full(&file, &limits));
}
END_TEST

START_TEST(a_body_ends_before_five_gibibytes)
{
    shape = (struct sink_shape){.format = SINK_JSON_ARRAY, .compression = COMPRESSION_NONE};
    add(0, "1");
    ck_assert_uint_eq(file.body.size, 14);
    file.written = SINK_OBJECT_MAX - 14 - 14 - 1; /* room for a comma, thirteen bytes and the bracket */
    ck_assert_int_eq(add(1, "12"), OPEN_FILE_NO_ROOM);
    ck_assert_uint_eq(file.count, 1);
    ck_assert_uint_eq(file.body.size, 14);
    ck_assert_int_eq(add(1, "1"), OPEN_FILE_ADDED);
    ck_assert_int_eq(add(2, ""), OPEN_FILE_NO_ROOM);
}
END_TEST

START_TEST(an_offset_that_does_not_rise_belongs_to_another_file)
{
    ck_assert(!open_file_is_behind(&file, 0));
    add(5, "1");
    ck_assert(open_file_is_behind(&file, 5));
    ck_assert(open_file_is_behind(&file, 0));
    ck_assert(!open_file_is_behind(&file, 6));
}
END_TEST

START_TEST(what_is_compressed_is_the_same_text)
{
    char text[256];
    shape = (struct sink_shape){.format = SINK_JSON_LINES, .compression = COMPRESSION_ZSTD};
    add(0, "1");
    ck_assert_int_eq(open_file_finish(&file, &shape, &error), 0);
    ck_assert_uint_eq(ZSTD_decompress(text, sizeof text, file.body.pieces[0].iov_base, file.body.size), 14);
    ck_assert_int_eq(memcmp(text, "{\"payload\":1}\n", 14), 0);
    ck_assert_str_eq(key(), "raw/orders/2026-09-03/00000-00000000000000000000-00000000000000000000.jsonl.zst");
    open_file_clear(&file);
    shape.compression = COMPRESSION_GZIP;
    add(0, "1");
    ck_assert_int_eq(open_file_finish(&file, &shape, &error), 0);
    z_stream stream = {.next_in = file.body.pieces[0].iov_base,
                       .avail_in = (uInt)file.body.size,
                       .next_out = (Bytef *)text,
                       .avail_out = sizeof text};
    ck_assert_int_eq(inflateInit2(&stream, 31), Z_OK);
    ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
    ck_assert_int_eq(inflateEnd(&stream), Z_OK);
    ck_assert_int_eq(memcmp(text, "{\"payload\":1}\n", 14), 0);
    ck_assert_str_eq(key(), "raw/orders/2026-09-03/00000-00000000000000000000-00000000000000000000.jsonl.gz");
}
END_TEST

START_TEST(the_first_record_decides_the_directory)
{
    struct sink_record late = {.offset = 0, .timestamp_ms = SINK_TIMESTAMP_MAX + 1, .payload = {"1", 1}};
    enum open_file_added added;
    unsigned oddities;
    ck_assert_int_eq(sink_formatter_begin(&formatter, &shape, place.topic, 0, SINK_SCHEMA_JSON, &error), 0);
    ck_assert_int_eq(open_file_add(&file, &place, &formatter, &late, 0, &added, &oddities, &error), QS_ERROR_INPUT);
    ck_assert_uint_eq(file.count, 0);
    ck_assert_uint_eq(file.body.size, 0);
}
END_TEST

START_TEST(a_key_may_be_too_long)
{
    char directory[SINK_KEY_MAX + 1];
    char text[SINK_KEY_MAX + 1];
    memset(directory, 'd', SINK_KEY_MAX);
    directory[SINK_KEY_MAX] = '\0';
    ck_assert_int_eq(open_file_key(directory, 0, 0, 1, &shape, text, &error), QS_ERROR_INPUT);
    directory[900] = '\0';
    ck_assert_int_eq(open_file_key(directory, 0, 7, 12, &shape, text, &error), 0);
}
END_TEST

START_TEST(pieces_never_move_and_hold_much)
{
    struct sink_body large = {0};
    char *first = sink_body_reserve(&large, 1);
    sink_body_commit(&large, 1);
    char block[10000];
    memset(block, 'x', sizeof block);
    for (size_t i = 0; i < 1000; i++) {
        ck_assert(sink_body_add(&large, block, sizeof block));
    }
    ck_assert_ptr_eq(large.pieces[0].iov_base, first);
    ck_assert_uint_eq(large.size, 10000001);
    size_t size = 0;
    for (size_t i = 0; i < large.count; i++) {
        ck_assert_uint_gt(large.pieces[i].iov_len, 0);
        size += large.pieces[i].iov_len;
    }
    ck_assert_uint_eq(size, large.size);
    ck_assert_ptr_null(sink_body_reserve(&large, SIZE_MAX / 2));
    ck_assert(sink_body_add(&large, "", 0));
    sink_body_clear(&large);
}
END_TEST

START_TEST(what_was_taken_is_known_by_offset_and_hash)
{
    struct seen seen = {0};
    ck_assert(seen_reserve(&seen, 3));
    seen_add(&seen, 5, 50);
    seen_add(&seen, 3, 30);
    seen_add(&seen, 3, 29);
    seen_sort(&seen);
    ck_assert(seen_has(&seen, 3, 30) && seen_has(&seen, 3, 29) && seen_has(&seen, 5, 50));
    ck_assert(!seen_has(&seen, 5, 51) && !seen_has(&seen, 4, 30) && !seen_has(&seen, 6, 0) && !seen_has(&seen, 0, 0));
    struct seen gone = {0};
    ck_assert(seen_reserve(&gone, 1));
    seen_add(&gone, 3, 30);
    seen_forget(&seen, &gone);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert(!seen_has(&seen, 3, 30) && seen_has(&seen, 3, 29));
    ck_assert(!seen_reserve(&seen, SIZE_MAX / 2));
    seen_free(&gone);
    seen_free(&seen);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("open_file");
    TCase *test = tcase_create("open_file");
    tcase_add_checked_fixture(test, NULL, tear_down);
    tcase_add_test(test, lines);
    tcase_add_test(test, an_array);
    tcase_add_test(test, raw_bytes);
    tcase_add_test(test, size_counts_the_records_own_bytes);
    tcase_add_test(test, a_body_ends_before_five_gibibytes);
    tcase_add_test(test, an_offset_that_does_not_rise_belongs_to_another_file);
    tcase_add_test(test, what_is_compressed_is_the_same_text);
    tcase_add_test(test, the_first_record_decides_the_directory);
    tcase_add_test(test, a_key_may_be_too_long);
    tcase_add_test(test, pieces_never_move_and_hold_much);
    tcase_add_test(test, what_was_taken_is_known_by_offset_and_hash);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
