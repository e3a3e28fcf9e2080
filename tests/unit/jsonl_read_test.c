/*
 * JSON Lines held against the envelope of spec 2.2: every spelling but its own is refused, with line, byte and reason;
 * what is accepted, spelled again, is what was there, whatever byte of it was damaged; and all of it through every
 * compression, framed in every way, cut anywhere.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "lake_lines.h"

static const char text[] =
    "{\"partition\":\"cust-0420\",\"offset\":1811,\"transactionId\":\"ord-9f21\",\"ts\":\"2026-09-04T10:03:41.918204Z\","
    "\"payload\":{\"type\":\"paid\",\"amount\":1290}}\n"
    "{\"partition\":\"quo\\\"te\\\\\",\"offset\":0,\"transactionId\":\"\\b\\u0001\\ud800\",\"ts\":"
    "\"1969-12-31T23:59:59.000001Z\",\"payload\":null}\n"
    "{\"partition\":\"caff\xc3\xa8\",\"offset\":9223372036854775807,\"transactionId\":\"\",\"ts\":"
    "\"9999-12-31T23:59:59.999999Z\",\"payload\":[1, \"\\u00e8\\/\" ]}\n";

#define TEXT_SIZE (sizeof text - 1)

static int read_plain(const char *bytes, size_t size, struct byte_buffer *lines, struct error *error)
{
    return lake_lines(FORMAT_JSONL, COMPRESSION_NONE, bytes, size, NULL, lines, NULL, error);
}

static void expect_text(enum setting_compression compression, const char *bytes, size_t size, const char *expected,
                        size_t expected_size)
{
    struct byte_buffer lines = {0};
    struct error error;
    int code = lake_lines(FORMAT_JSONL, compression, bytes, size, NULL, &lines, NULL, &error);

    ck_assert_msg(code == 0, "%s", error.message);
    ck_assert_uint_eq(lines.size, expected_size);
    ck_assert_mem_eq(lines.bytes, expected, expected_size);
    byte_buffer_free(&lines);
}

START_TEST(the_envelope_is_read_as_it_is_spelled)
{
    expect_text(COMPRESSION_NONE, text, TEXT_SIZE, text, TEXT_SIZE);
}
END_TEST

START_TEST(other_spellings_are_refused)
{
    static const char *const edits[][3] = {
        {"{\"partition\"", " {\"partition\"", "line 1, byte 0 of the text: not the envelope"},
        {"{\"partition\"", "\n{\"partition\"", "line 1, byte 0 of the text: not the envelope"},
        {"\"offset\":1811,", "", "line 1, byte 26 of the text: not the envelope"},
        {",\"offset\"", ", \"offset\"", "line 1, byte 25 "},
        {"1811", "01811", "no plain number"},
        {"1811", "-1", "no plain number"},
        {"1811", "\"1811\"", "no plain number"},
        {"1811", "18.5", "not the envelope"},
        {"1811", "9223372036854775808", "beyond 64 bits"},
        {"ord-9f21", "ord\\u002d9f21", "another spelling"},
        {"ord-9f21", "ord\\/9f21", "another spelling"},
        {"\\u0001", "\\u0008", "another spelling"},
        {"\\ud800", "\\uD800", "another spelling"},
        {"\\ud800", "\\ud83d\\ude00", "another spelling"},
        {"\"ord-9f21\"", "null", "a string that is none"},
        {"ord-9f21", "ord\t9f21", "a string that is none"},
        {"ord-9f21", "\xff", "a string that is none"},
        {"41.918204Z", "41.91820Z", "a time"},
        {"41.918204Z", "41.918204+00:00", "a time"},
        {"09-04T", "02-30T", "a time"},
        {"T10:", " 10:", "a time"},
        {"{\"type\":\"paid\",\"amount\":1290}", "", "a payload that isn't JSON"},
        {"1290}", "1290,}", "a payload that isn't JSON"},
        {"1290}", "+1290}", "a payload that isn't JSON"},
        {"1290}", "1290} ", "not the envelope"},
        {"1290}", "1290},\"more\":1", "not the envelope"},
        {"1290}", "1290}}", "something follows"},
        {"\"paid\",", "\"paid\",\r", "a raw line break"},
        {"null}\n", "null}\r\n", "something follows"},
        {"null}\n", "null}", "line 2, byte 261 of the text: something follows"},
        {"]}\n", "]}", "line 3, byte 394 of the text: the last line has no end"},
    };

    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        const char *place = strstr(text, edits[i][0]);
        struct byte_buffer edited = {0};
        struct byte_buffer lines = {0};
        struct error error = {0};
        ck_assert_msg(place != NULL, "%s", edits[i][0]);
        byte_buffer_add(&edited, text, (size_t)(place - text));
        byte_buffer_add_text(&edited, edits[i][1]);
        byte_buffer_add_text(&edited, place + strlen(edits[i][0]));
        ck_assert_msg(read_plain(edited.bytes, edited.size, &lines, &error) == QS_ERROR_BODY, "%s", edited.bytes);
        ck_assert_msg(strstr(error.message, edits[i][2]) != NULL, "%s: %s", edits[i][1], error.message);
        byte_buffer_free(&edited);
        byte_buffer_free(&lines);
    }
}
END_TEST

/* There is one spelling, so whatever is accepted comes out as it went in: a damaged byte is refused, or it is another
 * digit, another letter of a string, and nothing else changes. */
START_TEST(damage_is_refused_or_changes_nothing_but_itself)
{
    static const char bytes[] = {'\0', '\n', '\r', ' ', '"', '\\', '0', '9', '{', '}', ',', 'u', '\xff', '\xc3'};
    size_t refused = 0;

    for (size_t at = 0; at < TEXT_SIZE; at++) {
        for (unsigned i = 0; i < sizeof bytes + 8; i++) {
            char damaged[TEXT_SIZE];
            struct byte_buffer lines = {0};
            struct error error = {0};
            memcpy(damaged, text, TEXT_SIZE);
            damaged[at] = i < 8 ? (char)((unsigned char)damaged[at] ^ 1u << i) : bytes[i - 8];
            if (read_plain(damaged, TEXT_SIZE, &lines, &error) == 0) {
                ck_assert_uint_eq(lines.size, TEXT_SIZE);
                ck_assert_mem_eq(lines.bytes, damaged, TEXT_SIZE);
            } else {
                ck_assert_msg(strncmp(error.message, "line ", 5) == 0, "%s", error.message);
                refused++;
            }
            byte_buffer_free(&lines);
        }
    }
    ck_assert_uint_gt(refused, TEXT_SIZE * 8);
}
END_TEST

START_TEST(a_text_cut_anywhere_but_behind_a_line_is_refused)
{
    for (size_t size = 0; size < TEXT_SIZE; size++) {
        struct byte_buffer lines = {0};
        struct error error = {0};
        bool is_whole = size == 0 || text[size - 1] == '\n';
        char *cut = malloc(size + 1);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, text, size);
        ck_assert_int_eq(read_plain(cut, size, &lines, &error), is_whole ? 0 : QS_ERROR_BODY);
        free(cut);
        byte_buffer_free(&lines);
    }
}
END_TEST

/* ---- compressed ---- */

/* One frame, with or without its content size declared. */
static void add_zstd(struct byte_buffer *out, const char *bytes, size_t size, bool declared, int window_log)
{
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    size_t bound = ZSTD_compressBound(size);
    char *frame = malloc(bound);
    ZSTD_outBuffer to = {frame, bound, 0};
    ZSTD_inBuffer from = {bytes, size, 0};

    ck_assert_ptr_nonnull(frame);
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, declared ? 1 : 0);
    if (window_log > 0) {
        (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, window_log);
    }
    if (!declared) {
        ck_assert_uint_ne(ZSTD_compressStream2(zstd, &to, &from, ZSTD_e_flush), SIZE_MAX);
    }
    ck_assert_uint_eq(ZSTD_compressStream2(zstd, &to, &from, ZSTD_e_end), 0);
    byte_buffer_add(out, frame, to.pos);
    free(frame);
    ZSTD_freeCCtx(zstd);
}

static void add_gzip(struct byte_buffer *out, const char *bytes, size_t size)
{
    z_stream stream;
    size_t bound = size + 1024;
    Bytef *member = malloc(bound);

    memset(&stream, 0, sizeof stream);
    ck_assert_ptr_nonnull(member);
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (z_const Bytef *)bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = member;
    stream.avail_out = (uInt)bound;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    byte_buffer_add(out, member, stream.total_out);
    (void)deflateEnd(&stream);
    free(member);
}

START_TEST(frames_and_members_follow_each_other)
{
    for (size_t split = 0; split <= TEXT_SIZE; split++) {
        struct byte_buffer zstd = {0};
        struct byte_buffer gzip = {0};
        add_zstd(&zstd, text, split, split % 2 == 0, 0);
        add_zstd(&zstd, text + split, TEXT_SIZE - split, split % 3 == 0, 0);
        expect_text(COMPRESSION_ZSTD, zstd.bytes, zstd.size, text, TEXT_SIZE);
        add_gzip(&gzip, text, split);
        add_gzip(&gzip, text + split, TEXT_SIZE - split);
        expect_text(COMPRESSION_GZIP, gzip.bytes, gzip.size, text, TEXT_SIZE);
        byte_buffer_free(&zstd);
        byte_buffer_free(&gzip);
    }
}
END_TEST

static void expect_refused(enum setting_compression compression, const char *bytes, size_t size, const char *why)
{
    struct byte_buffer lines = {0};
    struct error error = {0};
    int code = lake_lines(FORMAT_JSONL, compression, bytes, size, NULL, &lines, NULL, &error);

    ck_assert_int_eq(code, QS_ERROR_BODY);
    ck_assert_msg(strstr(error.message, why) != NULL, "%s", error.message);
    ck_assert_msg(strstr(error.message, "byte ") != NULL, "%s", error.message);
    byte_buffer_free(&lines);
}

static void damage(enum setting_compression compression, const struct byte_buffer *whole)
{
    for (size_t size = 0; size < whole->size; size++) {
        expect_refused(compression, whole->bytes, size, "");
    }
    for (size_t at = 0; at < whole->size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct byte_buffer lines = {0};
            struct error error = {0};
            whole->bytes[at] ^= (char)(1u << bit);
            if (lake_lines(FORMAT_JSONL, compression, whole->bytes, whole->size, NULL, &lines, NULL, &error) != 0) {
                ck_assert_int_eq(error.code, QS_ERROR_BODY);
                ck_assert_msg(strstr(error.message, "byte ") != NULL, "%s", error.message);
            } else if (compression == COMPRESSION_GZIP) {
                /* Its checksum proves the text, if not the header's time and system, nor padding. */
                ck_assert_mem_eq(lines.bytes, text, TEXT_SIZE);
            }
            whole->bytes[at] ^= (char)(1u << bit);
            byte_buffer_free(&lines);
        }
    }
}

START_TEST(damaged_and_cut_frames)
{
    struct byte_buffer zstd = {0};
    struct byte_buffer gzip = {0};

    add_zstd(&zstd, text, TEXT_SIZE, true, 0);
    damage(COMPRESSION_ZSTD, &zstd);
    add_gzip(&gzip, text, TEXT_SIZE);
    damage(COMPRESSION_GZIP, &gzip);
    expect_refused(COMPRESSION_ZSTD, gzip.bytes, gzip.size, "byte 0 of the object: ");
    expect_refused(COMPRESSION_GZIP, zstd.bytes, zstd.size, "incorrect header check");
    expect_refused(COMPRESSION_NONE, zstd.bytes, zstd.size, "line 1, byte 0 of the text");
    byte_buffer_add(&zstd, "x", 1);
    expect_refused(COMPRESSION_ZSTD, zstd.bytes, zstd.size, "");
    byte_buffer_add(&gzip, "x", 1);
    expect_refused(COMPRESSION_GZIP, gzip.bytes, gzip.size, "");
    byte_buffer_free(&zstd);
    byte_buffer_free(&gzip);
}
END_TEST

START_TEST(a_window_larger_than_decoders_owe_is_refused)
{
    size_t size = (size_t)1 << 24;
    char *bytes = calloc(1, size);
    struct byte_buffer zstd = {0};

    ck_assert_ptr_nonnull(bytes);
    add_zstd(&zstd, bytes, size, false, 24);
    expect_refused(COMPRESSION_ZSTD, zstd.bytes, zstd.size, "memory");
    byte_buffer_free(&zstd);
    free(bytes);
}
END_TEST

START_TEST(long_lines_grow_the_buffer)
{
    struct byte_buffer lines = {0};
    struct byte_buffer zstd = {0};
    size_t size = 3000000;
    char *payload = malloc(size);

    ck_assert_ptr_nonnull(payload);
    memset(payload, 'x', size);
    payload[0] = payload[size - 1] = '"';
    for (size_t i = 0; i < 4; i++) {
        byte_buffer_add(&lines, text, TEXT_SIZE);
        byte_buffer_add_format(&lines,
                               "{\"partition\":\"\",\"offset\":%zu,\"transactionId\":\"\",\"ts\":"
                               "\"2026-09-04T10:03:41.918204Z\",\"payload\":",
                               i);
        byte_buffer_add(&lines, payload, size >> i);
        byte_buffer_add_text(&lines, i == 0 ? "}\n" : "\"}\n");
    }
    expect_text(COMPRESSION_NONE, lines.bytes, lines.size, lines.bytes, lines.size);
    add_zstd(&zstd, lines.bytes, lines.size, true, 0);
    expect_text(COMPRESSION_ZSTD, zstd.bytes, zstd.size, lines.bytes, lines.size);
    free(payload);
    byte_buffer_free(&lines);
    byte_buffer_free(&zstd);
}
END_TEST

/* A source that gives one byte at a time, and then fails. */
struct dripping {
    size_t at;
    size_t fails_at;
};

static int drip(void *source, void *buffer, size_t size, size_t *got, struct error *error)
{
    struct dripping *dripping = source;

    if (dripping->at == dripping->fails_at) {
        return error_set(error, QS_ERROR_TRANSPORT, "the connection broke");
    }
    *got = size > 0 && dripping->at < TEXT_SIZE ? 1 : 0;
    if (*got > 0) {
        *(char *)buffer = text[dripping->at++];
    }
    return 0;
}

START_TEST(a_source_may_give_little_and_fail)
{
    for (size_t fails_at = 0; fails_at <= TEXT_SIZE + 1; fails_at++) {
        struct dripping dripping = {0, fails_at};
        struct object_source source = {.source = &dripping, .read = drip};
        struct object_reader *reader = object_reader_open(FORMAT_JSONL, COMPRESSION_NONE, &source, NULL, NULL);
        struct lake_record record;
        struct error error = {0};
        int result;
        do {
            result = object_reader_next(reader, &record, &error);
        } while (result == 1);
        ck_assert_int_eq(result, fails_at > TEXT_SIZE ? 0 : QS_ERROR_TRANSPORT);
        ck_assert(fails_at > TEXT_SIZE || error.retriable);
        object_reader_close(reader);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jsonl_read");
    TCase *tests = tcase_create("lines");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, the_envelope_is_read_as_it_is_spelled);
    tcase_add_test(tests, other_spellings_are_refused);
    tcase_add_test(tests, damage_is_refused_or_changes_nothing_but_itself);
    tcase_add_test(tests, a_text_cut_anywhere_but_behind_a_line_is_refused);
    tcase_add_test(tests, frames_and_members_follow_each_other);
    tcase_add_test(tests, damaged_and_cut_frames);
    tcase_add_test(tests, a_window_larger_than_decoders_owe_is_refused);
    tcase_add_test(tests, long_lines_grow_the_buffer);
    tcase_add_test(tests, a_source_may_give_little_and_fail);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
