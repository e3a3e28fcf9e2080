/*
 * One text, one sequence of bytes: whatever the number of threads and the pieces it is fed in; and what stands in the
 * frames (RFC 8878, RFC 1952).
 */
#include "worker/compress.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/byte_buffer.h"
#include "lakes.h"
#include "runs.h"

static int collect(void *argument, const uint8_t *bytes, size_t size)
{
    byte_buffer_add(argument, bytes, size);
    return 0;
}

static struct byte_buffer compress(enum setting_compression kind, const char *text, size_t size, int threads,
                                   size_t piece)
{
    struct byte_buffer out = {0};
    struct error error;
    struct compressor *compressor = compressor_create(kind, size, threads, collect, &out, &error);

    ck_assert_msg(compressor != NULL, "%s", error.message);
    for (size_t at = 0; at < size; at += piece) {
        int code = compressor_feed(compressor, text + at, size - at < piece ? size - at : piece, &error);
        ck_assert_msg(code == 0, "%s", error.message);
    }
    ck_assert_int_eq(compressor_finish(compressor, &error), 0);
    compressor_destroy(compressor);
    return out;
}

static void expect_text(enum setting_compression kind, const struct byte_buffer *bytes, const char *text, size_t size)
{
    size_t unpacked_size = 0;
    char *unpacked;

    ck_assert_uint_le(bytes->size, compressor_bound(kind, size));
    if (kind == COMPRESSION_NONE) {
        ck_assert_uint_eq(bytes->size, size);
        ck_assert(size == 0 || memcmp(bytes->bytes, text, size) == 0);
        return;
    }
    unpacked = kind == COMPRESSION_ZSTD ? unpack_zstd(bytes->bytes, bytes->size, &unpacked_size)
                                        : unpack_gzip(bytes->bytes, bytes->size, &unpacked_size);
    ck_assert_uint_eq(unpacked_size, size);
    ck_assert(size == 0 || memcmp(unpacked, text, size) == 0);
    free(unpacked);
}

static void expect_same_in_every_way(enum setting_compression kind, const char *text, size_t size)
{
    const size_t pieces[] = {1, 7, 4096, 131072, 1000003, size + 1};
    static const int threads[] = {1, 2, 4};
    struct byte_buffer first = compress(kind, text, size, 1, 131072);

    expect_text(kind, &first, text, size);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (size_t j = 0; j < sizeof threads / sizeof *threads; j++) {
            bool slow = pieces[i] < 4096 && size / pieces[i] > 150000;
            if (slow || (kind != COMPRESSION_ZSTD && j > 0)) {
                continue;
            }
            struct byte_buffer other = compress(kind, text, size, threads[j], pieces[i]);
            ck_assert_msg(
                other.size == first.size && (first.size == 0 || memcmp(other.bytes, first.bytes, first.size) == 0),
                "%zu bytes of text in pieces of %zu with %d threads came out otherwise", size, pieces[i], threads[j]);
            byte_buffer_free(&other);
        }
    }
    byte_buffer_free(&first);
}

/* Around the sizes where libzstd changes its ways: 512 KiB (threads at all), 4 MiB (a job). */
START_TEST(the_bytes_depend_on_the_text_alone)
{
    static const size_t sizes[] = {0,       1,       100,     131072,  524287,  524288,   524289,
                                   2097152, 4194303, 4194304, 4194305, 8388608, 12582913, 41943040};
    size_t all = 0;
    char *text = made_up_lines(140000, 256, 1, &all);

    ck_assert_uint_ge(all, 41943040);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_same_in_every_way(COMPRESSION_ZSTD, text, sizes[i]);
    }
    for (size_t i = 0; i < 10; i++) {
        expect_same_in_every_way(COMPRESSION_GZIP, text, sizes[i]);
        expect_same_in_every_way(COMPRESSION_NONE, text, sizes[i]);
    }
    free(text);
}
END_TEST

/* Whether one does would depend on whether a thread was free when the last job was full. */
START_TEST(no_empty_block_ends_a_frame)
{
    static const size_t sizes[] = {1, 131072, 524288, 4194304, 8388608};
    size_t all = 0;
    char *text = made_up_lines(30000, 300, 1, &all);

    ck_assert_uint_ge(all, 8388608);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int threads = 1; threads <= 4; threads *= 2) {
            struct byte_buffer bytes = compress(COMPRESSION_ZSTD, text, sizes[i], threads, 131072);
            ck_assert_uint_gt(bytes.size, 3);
            ck_assert_msg(memcmp(bytes.bytes + bytes.size - 3, "\x01\x00\x00", 3) != 0, "%zu bytes, %d threads",
                          sizes[i], threads);
            byte_buffer_free(&bytes);
        }
    }
    free(text);
}
END_TEST

START_TEST(text_that_does_not_shrink_stays_within_the_bound)
{
    static char noise[6000000];
    unsigned seed = 1;

    for (size_t i = 0; i < sizeof noise; i++) {
        seed = seed * 1664525u + 1013904223u;
        noise[i] = (char)(seed >> 24);
    }
    for (size_t size = 1; size <= sizeof noise; size = size * 4 + 3) {
        struct byte_buffer zstd = compress(COMPRESSION_ZSTD, noise, size, 2, 65536);
        struct byte_buffer gzip = compress(COMPRESSION_GZIP, noise, size, 2, 65536);
        expect_text(COMPRESSION_ZSTD, &zstd, noise, size);
        expect_text(COMPRESSION_GZIP, &gzip, noise, size);
        byte_buffer_free(&zstd);
        byte_buffer_free(&gzip);
    }
}
END_TEST

START_TEST(a_zstd_frame_declares_its_size_and_has_no_checksum)
{
    size_t size = 0;
    char *text = made_up_lines(10000, 300, 2, &size);
    struct byte_buffer bytes = compress(COMPRESSION_ZSTD, text, size, 1, 65536);

    ck_assert_mem_eq(bytes.bytes, "\x28\xb5\x2f\xfd", 4);
    ck_assert_int_eq(bytes.bytes[4] & 0x04, 0);
    ck_assert_uint_eq(ZSTD_getFrameContentSize(bytes.bytes, bytes.size), size);
    ck_assert_uint_eq(ZSTD_findFrameCompressedSize(bytes.bytes, bytes.size), bytes.size);
    byte_buffer_free(&bytes);
    bytes = compress(COMPRESSION_ZSTD, text, 0, 1, 1);
    ck_assert_uint_eq(ZSTD_getFrameContentSize(bytes.bytes, bytes.size), 0);
    byte_buffer_free(&bytes);
    free(text);
}
END_TEST

START_TEST(a_gzip_member_says_nothing_about_where_and_when)
{
    struct byte_buffer bytes = compress(COMPRESSION_GZIP, "x", 1, 1, 1);

    ck_assert_mem_eq(bytes.bytes, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
    byte_buffer_free(&bytes);
}
END_TEST

START_TEST(a_text_of_another_size_than_promised_is_an_error)
{
    static const enum setting_compression kinds[] = {COMPRESSION_ZSTD, COMPRESSION_GZIP, COMPRESSION_NONE};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct byte_buffer out = {0};
        struct error error;
        struct compressor *compressor = compressor_create(kinds[i], 3, 1, collect, &out, &error);
        ck_assert_int_eq(compressor_feed(compressor, "ab", 2, &error), 0);
        ck_assert_int_eq(compressor_finish(compressor, &error), QS_ERROR_INPUT);
        compressor_destroy(compressor);
        compressor = compressor_create(kinds[i], 3, 1, collect, &out, &error);
        ck_assert_int_eq(compressor_feed(compressor, "abcd", 4, &error), QS_ERROR_INPUT);
        compressor_destroy(compressor);
        byte_buffer_free(&out);
    }
}
END_TEST

static int refuse(void *argument, const uint8_t *bytes, size_t size)
{
    (void)argument;
    (void)bytes;
    (void)size;
    return QS_ERROR_NO_ROOM;
}

START_TEST(who_takes_the_bytes_can_stop_it)
{
    static const enum setting_compression kinds[] = {COMPRESSION_ZSTD, COMPRESSION_GZIP, COMPRESSION_NONE};
    size_t size = 0;
    char *text = made_up_lines(3000, 3000, 3, &size);

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct error error;
        struct compressor *compressor = compressor_create(kinds[i], size, 2, refuse, NULL, &error);
        int code = compressor_feed(compressor, text, size, &error);
        if (code == 0) {
            code = compressor_finish(compressor, &error);
        }
        ck_assert_int_eq(code, QS_ERROR_NO_ROOM);
        ck_assert_int_eq(error.code, QS_ERROR_NO_ROOM);
        compressor_destroy(compressor);
    }
    free(text);
}
END_TEST

START_TEST(snappy_is_for_parquet)
{
    struct error error;

    ck_assert_ptr_null(compressor_create(COMPRESSION_SNAPPY, 3, 1, collect, NULL, &error));
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compress");
    TCase *tests = tcase_create("streams");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 600);
    tcase_add_test(tests, the_bytes_depend_on_the_text_alone);
    tcase_add_test(tests, no_empty_block_ends_a_frame);
    tcase_add_test(tests, text_that_does_not_shrink_stays_within_the_bound);
    tcase_add_test(tests, a_zstd_frame_declares_its_size_and_has_no_checksum);
    tcase_add_test(tests, a_gzip_member_says_nothing_about_where_and_when);
    tcase_add_test(tests, a_text_of_another_size_than_promised_is_an_error);
    tcase_add_test(tests, who_takes_the_bytes_can_stop_it);
    tcase_add_test(tests, snappy_is_for_parquet);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
