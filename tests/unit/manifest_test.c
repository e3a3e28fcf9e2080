/*
 * Manifests: the example of spec 2.3, every one that the original wrote (read, and written again byte for byte but for
 * what the spec changes), and what isn't one.
 */
#include "common/lake/manifest.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "lakes.h"

static const char example[] =
    "{\"sink\":\"default\",\"queue\":\"orders\",\"k\":1842,\"tStart\":1788516000000000,\"tEnd\":1788516300000000,"
    "\"format\":\"jsonl\",\"compression\":\"zstd\",\"layout\":\"merged\",\"objects\":[{\"key\":\"queen/queue=orders/w\","
    "\"bytes\":44139012,\"records\":918442,"
    "\"sha256\":\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\"}],"
    "\"records\":918442,\"bytes\":44139012,\"partitions\":5183,\"minTs\":1788516000121004,\"maxTs\":1788516299904881,"
    "\"lost\":[{\"partition\":\"cust\\\"0420\",\"from\":1400,\"to\":1811},{\"partition\":\"\",\"from\":0,\"to\":0,"
    "\"life\":\"previous\"}],\"writer\":\"queen-s3/1.5.0 jsonl+zstd\",\"committedAt\":\"2026-09-04T10:05:07.412000Z\"}";

static void expect_same(const char *text, size_t size)
{
    struct manifest manifest = {0};
    struct error error;
    size_t written = 0;

    int code = manifest_parse(text, size, &manifest, &error);
    ck_assert_msg(code == 0, "%s", error.message);
    char *again = manifest_format(&manifest, &written);
    ck_assert_uint_eq(written, size);
    ck_assert_mem_eq(again, text, size);
    free(again);
    manifest_free(&manifest);
}

START_TEST(the_example_of_the_specification)
{
    struct manifest manifest;

    expect_same(example, strlen(example));
    ck_assert_int_eq(manifest_parse(example, strlen(example), &manifest, NULL), 0);
    ck_assert_str_eq(manifest.sink, "default");
    ck_assert_str_eq(manifest.queue, "orders");
    ck_assert_int_eq(manifest.bounds.k, 1842);
    ck_assert_uint_eq(manifest.objects[0].sha256[31], 0xff);
    ck_assert_uint_eq(manifest.lost_count, 2);
    ck_assert_uint_eq(manifest.lost[0].partition_size, 9);
    ck_assert_mem_eq(manifest.lost[0].partition, "cust\"0420", 9);
    ck_assert(!manifest.lost[0].previous_life);
    ck_assert(manifest.lost[1].previous_life);
    ck_assert_int_eq(manifest.committed_at.v, INT64_C(1788516307412));
    manifest_free(&manifest);
}
END_TEST

START_TEST(numbers_keep_all_their_digits)
{
    struct manifest_object object = {.key = "k",
                                     .bytes = UINT64_C(9007199254740993),
                                     .has_partition = true,
                                     .partition = "p\x01",
                                     .partition_size = 2,
                                     .first_offset = INT64_C(9007199254740993),
                                     .last_offset = INT64_MAX};
    struct manifest manifest = {.sink = "s",
                                .queue = "q\n",
                                .bounds = {1, {-5}, {INT64_C(9007199254740993)}},
                                .shape = {FORMAT_PARQUET, COMPRESSION_SNAPPY, LAYOUT_PER_PARTITION, ALIGN_HOUR},
                                .objects = &object,
                                .object_count = 1,
                                .writer = "w"};
    struct manifest read = {0};
    size_t size = 0;
    char *text = manifest_format(&manifest, &size);

    ck_assert_ptr_null(strstr(text, "minTs"));
    ck_assert_ptr_nonnull(strstr(text, "\"partition\":\"p\\u0001\""));
    expect_same(text, size);
    ck_assert_int_eq(manifest_parse(text, size, &read, NULL), 0);
    ck_assert_uint_eq(read.objects[0].bytes, object.bytes);
    ck_assert_int_eq(read.objects[0].last_offset, INT64_MAX);
    ck_assert_int_eq(read.bounds.start.v, -5);
    manifest_free(&read);
    free(text);
}
END_TEST

START_TEST(any_spelling_is_read)
{
    struct manifest manifest = {0};
    static const char text[] =
        " {\"later\":{\"a\":[1,{}]},\"writer\":\"\\u0077\",\"committedAt\":\"2026-09-04T10:05:07Z\",\"maxTs\":2,"
        "\"minTs\": 1,\n\"partitions\":1 , \"bytes\":3,\"records\":1,\"objects\":[ {\"sha256\":\"00000000000000000000"
        "00000000000000000000000000000000000000000000\",\"records\":1,\"x\":null,\"bytes\":3,\"key\":\"a\\/b\"} ],"
        "\"layout\":\"MERGED\",\"compression\":\"none\",\"format\":\"parquet\",\"tEnd\":2,\"tStart\":1,\"k\":1,"
        "\"queue\":\"caff\\u00e8\",\"sink\":\"s\"}\n";

    ck_assert_int_eq(manifest_parse(text, strlen(text), &manifest, NULL), 0);
    ck_assert_int_eq(manifest.shape.compression, COMPRESSION_SNAPPY);
    ck_assert_str_eq(manifest.queue, "caff\xc3\xa8");
    ck_assert_str_eq(manifest.writer, "w");
    ck_assert_str_eq(manifest.objects[0].key, "a/b");
    ck_assert_uint_eq(manifest.lost_count, 0);
    manifest_free(&manifest);
}
END_TEST

static char *replaced(const char *from, const char *to)
{
    const char *place = strstr(example, from);
    char *out = malloc(strlen(example) + strlen(to) + 1);

    ck_assert_ptr_nonnull(out);
    ck_assert_msg(place != NULL, "%s", from);
    memcpy(out, example, (size_t)(place - example));
    strcpy(out + (place - example), to);
    strcat(out, place + strlen(from));
    return out;
}

START_TEST(what_is_no_manifest_is_refused)
{
    static const char *const edits[][3] = {
        {"\"sink\":\"default\",", "", "sink"},
        {"\"queue\":\"orders\"", "\"queue\":null", "queue"},
        {"\"k\":1842", "\"k\":\"1842\"", "k"},
        {"\"k\":1842", "\"k\":-1", "k"},
        {"\"k\":1842", "\"k\":1.5", "k"},
        {"\"tEnd\":1788516300000000", "\"tEnd\":1788515999999999", "tEnd"},
        {"\"tStart\":1788516000000000", "\"tStart\":99999999999999999999", "tStart"},
        {"\"format\":\"jsonl\"", "\"format\":\"csv\"", "format"},
        {"\"compression\":\"zstd\"", "\"compression\":\"snappy\"", "compression"},
        {"\"format\":\"jsonl\",\"compression\":\"zstd\"", "\"format\":\"parquet\",\"compression\":\"gzip\"",
         "compression"},
        {"\"layout\":\"merged\"", "\"layout\":1", "layout"},
        {"\"objects\":[{\"key\":\"queen/queue=orders/w\",", "\"objects\":[{", "objects"},
        {"\"bytes\":44139012,\"records\":918442,\"sha", "\"bytes\":-1,\"records\":918442,\"sha", "objects"},
        {"1eff", "1ef", "objects"},
        {"1eff", "1efg", "objects"},
        {"\"objects\":[", "\"objects\":[1,", "objects"},
        {"1eff\"", "1eff\",\"partition\":\"p\",\"firstOffset\":1", "objects"},
        {"\"minTs\":1788516000121004,", "", "minTs"},
        {"\"maxTs\":1788516299904881", "\"maxTs\":true", "maxTs"},
        {"\"from\":1400,", "", "lost"},
        {"\"lost\":[", "\"lost\":{},\"x\":[", "lost"},
        {"07.412000Z", "67.412000Z", "committedAt"},
        {"\"writer\":\"queen-s3/1.5.0 jsonl+zstd\",", "", "writer"},
        {"\"writer\":\"queen-s3/1.5.0", "\"writer\":\"\\u0000", "writer"},
        {"Z\"}", "Z\"", "one JSON value"},
        {"Z\"}", "Z\"}{}", "one JSON value"},
    };

    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct manifest manifest;
        struct error error;
        char *text = replaced(edits[i][0], edits[i][1]);
        ck_assert_msg(manifest_parse(text, strlen(text), &manifest, &error) == QS_ERROR_BODY, "%s", text);
        ck_assert_msg(strstr(error.message, edits[i][2]) != NULL, "%s does not tell of %s", error.message, edits[i][2]);
        ck_assert_ptr_null(manifest.objects);
        free(text);
    }
}
END_TEST

START_TEST(a_text_cut_anywhere_is_refused)
{
    for (size_t size = 0; size < strlen(example); size++) {
        struct manifest manifest = {0};
        char *cut = malloc(size + 1);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, example, size);
        ck_assert_int_eq(manifest_parse(cut, size, &manifest, NULL), QS_ERROR_BODY);
        free(cut);
    }
}
END_TEST

START_TEST(writers_are_named_after_what_they_write)
{
    struct window_shape shape = {FORMAT_JSONL, COMPRESSION_ZSTD, LAYOUT_MERGED, ALIGN_HOUR};

    ck_assert_str_eq(manifest_writer(&shape), "queen-s3/1.5.0 jsonl+zstd");
    shape.compression = COMPRESSION_GZIP;
    ck_assert_str_eq(manifest_writer(&shape), "queen-s3/1.5.0 jsonl+gzip");
    shape.compression = COMPRESSION_NONE;
    ck_assert_str_eq(manifest_writer(&shape), "queen-s3/1.5.0 jsonl");
    shape.format = FORMAT_PARQUET;
    shape.compression = COMPRESSION_ZSTD;
    ck_assert_str_eq(manifest_writer(&shape), "queen-s3/1.5.0 parquet zstd");
    shape.compression = COMPRESSION_SNAPPY;
    ck_assert_str_eq(manifest_writer(&shape), "queen-s3/1.5.0 parquet snappy");
}
END_TEST

START_TEST(the_manifests_of_the_original)
{
    size_t from = 0;
    size_t seen = 0;
    const struct lake_file *file;

    while ((file = lakes_next(&from, "lake/", ".json")) != NULL) {
        struct manifest manifest = {0};
        struct error error;
        size_t size = 0;
        int code = manifest_parse(file->bytes, file->size, &manifest, &error);
        ck_assert_msg(code == 0, "%s: %s", file->path, error.message);
        /* Ours says snappy where the original said none; all else comes out as it was. */
        char *text = manifest_format(&manifest, &size);
        if (manifest.shape.compression == COMPRESSION_SNAPPY) {
            char *snappy = strstr(text, "\"compression\":\"snappy\"");
            ck_assert_ptr_nonnull(snappy);
            char *none = memory_format("%.*s\"compression\":\"none\"%s", (int)(snappy - text), text, snappy + 22);
            free(text);
            text = none;
            size -= 2;
        }
        ck_assert_uint_eq(size, file->size);
        ck_assert_mem_eq(text, file->bytes, size);
        free(text);
        manifest_free(&manifest);
        seen++;
    }
    ck_assert(seen == 0 || seen == 18);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("manifest");
    TCase *tests = tcase_create("documents");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, the_example_of_the_specification);
    tcase_add_test(tests, numbers_keep_all_their_digits);
    tcase_add_test(tests, any_spelling_is_read);
    tcase_add_test(tests, what_is_no_manifest_is_refused);
    tcase_add_test(tests, a_text_cut_anywhere_is_refused);
    tcase_add_test(tests, writers_are_named_after_what_they_write);
    tcase_add_test(tests, the_manifests_of_the_original);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
