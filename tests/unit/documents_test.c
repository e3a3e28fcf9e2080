/*
 * The documents of a queue as spec 3.5 spells them, read back as the sink reads them, and what the original wrote.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/documents.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* 2026-09-04T10:05:00Z */
#define END INT64_C(1788516300000000)

static const struct settings plain = {.prefix = (char *)(uintptr_t) "queen", .align = ALIGN_DAY};

START_TEST(spells_keys)
{
    char *key = document_key("default", "a%2Fb", "committed");

    ck_assert_str_eq(key, "s3:default:a%2Fb:committed");
    free(key);
}
END_TEST

START_TEST(spells_the_pointer)
{
    const struct lake_pointer pointer = {.k = 1842,
                                         .end = {END},
                                         .manifest = "queen/_queen/orders/windows/0000001842.json",
                                         .records = 918442,
                                         .bytes = INT64_C(44139012000000),
                                         .at = {INT64_C(1788516301234)}};
    char *text = pointer_format(&pointer);

    ck_assert_str_eq(text, "{\"k\":1842,\"tEnd\":\"2026-09-04T10:05:00.000000Z\","
                           "\"manifest\":\"queen/_queen/orders/windows/0000001842.json\",\"records\":918442,"
                           "\"bytes\":44139012000000,\"committedAtMs\":1788516301234}");
    free(text);
}
END_TEST

START_TEST(reads_pointers)
{
    static const struct {
        const char *text;
        int64_t k; /* -1: no pointer */
        int64_t end;
    } cases[] = {
        {"{\"k\":7,\"tEnd\":\"2026-09-04T10:05:00.000000Z\"}", 7, END},
        {"{\"tEnd\":\"2026-09-04T10:05:00Z\",\"k\":0,\"more\":[]}", 0, END},
        {"{\"k\":7,\"tEnd\":1788516300000000}", 7, END}, /* the original's */
        {"{\"k\":7,\"tEnd\":1.7885163e15}", 7, END},
        {"{\"k\":-1,\"tEnd\":1}", -1, 0},
        {"{\"k\":1.5,\"tEnd\":1}", -1, 0},
        {"{\"k\":\"7\",\"tEnd\":1}", -1, 0},
        {"{\"k\":1e300,\"tEnd\":1}", -1, 0},
        {"{\"k\":7}", -1, 0},
        {"{\"k\":7,\"tEnd\":\"yesterday\"}", -1, 0},
        {"{\"k\":7,\"tEnd\":null}", -1, 0},
        {"{\"tEnd\":1}", -1, 0},
        {"[7]", -1, 0},
        {"\"text\"", -1, 0},
        {"null", -1, 0},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        cJSON *value = cJSON_Parse(cases[i].text);
        int64_t k = -1;
        struct broker_us end = {0};
        bool read = pointer_read(value, &k, &end);
        ck_assert_msg(read == (cases[i].k >= 0), "%s", cases[i].text);
        if (read) {
            ck_assert_int_eq(k, cases[i].k);
            ck_assert_int_eq(end.v, cases[i].end);
        }
        cJSON_Delete(value);
    }
}
END_TEST

START_TEST(reads_the_intent_it_spells)
{
    const struct window_bounds bounds = {1842, {END - 300000000}, {END}};
    const struct window_shape shape = {FORMAT_JSONL, COMPRESSION_ZSTD, LAYOUT_MERGED, ALIGN_HOUR};
    char *text = intent_format(&bounds, &shape, "lake/a");
    struct lake_intent intent = {0};
    cJSON *value = cJSON_Parse(text);

    ck_assert_ptr_eq(strstr(text, "{\"k\":1842,\"tStart\":1788516000000000,\"tEnd\":1788516300000000,"
                                  "\"format\":\"jsonl\",\"compression\":\"zstd\",\"layout\":\"merged\","
                                  "\"align\":\"hour\",\"prefix\":\"lake/a\",\"writer\":\"queen-s3/"),
                     text);
    ck_assert(intent_read(value, &plain, &intent));
    ck_assert_mem_eq(&intent.bounds, &bounds, sizeof bounds);
    ck_assert_mem_eq(&intent.shape, &shape, sizeof shape);
    ck_assert_str_eq(intent.prefix, "lake/a");
    ck_assert_ptr_nonnull(strstr(intent.writer, "jsonl+zstd"));
    ck_assert(intent_read(value, &plain, &intent)); /* over one that was read before */
    intent_free(&intent);
    ck_assert_ptr_null(intent.prefix);
    cJSON_Delete(value);
    free(text);
}
END_TEST

START_TEST(reads_the_originals_intent)
{
    cJSON *value = cJSON_Parse("{\"k\":3,\"tStart\":1,\"tEnd\":2,\"format\":\"parquet\",\"compression\":\"none\","
                               "\"layout\":\"per-partition\"}");
    struct lake_intent intent = {0};

    ck_assert(intent_read(value, &plain, &intent));
    ck_assert_int_eq(intent.shape.compression, COMPRESSION_SNAPPY);
    ck_assert_int_eq(intent.shape.align, ALIGN_DAY);
    ck_assert_str_eq(intent.prefix, "queen");
    ck_assert_str_eq(intent.writer, "");
    intent_free(&intent);
    cJSON_Delete(value);
}
END_TEST

START_TEST(refuses_what_is_no_intent)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"k\":3,\"tStart\":2,\"tEnd\":2,\"format\":\"jsonl\",\"compression\":\"none\",\"layout\":\"merged\"}",
        "{\"k\":3,\"tStart\":1,\"tEnd\":2,\"format\":\"avro\",\"compression\":\"none\",\"layout\":\"merged\"}",
        "{\"k\":3,\"tStart\":1,\"tEnd\":2,\"format\":\"jsonl\",\"compression\":\"none\"}",
        ("{\"k\":3,\"tStart\":1,\"tEnd\":2,\"format\":\"jsonl\",\"compression\":\"none\",\"layout\":\"merged\","
         "\"align\":\"week\"}"),
        "{\"tStart\":1,\"tEnd\":2,\"format\":\"jsonl\",\"compression\":\"none\",\"layout\":\"merged\"}",
    };

    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct lake_intent intent = {0};
        cJSON *value = cJSON_Parse(bad[i]);
        ck_assert_ptr_nonnull(value);
        ck_assert_msg(!intent_read(value, &plain, &intent), "%s", bad[i]);
        intent_free(&intent);
        cJSON_Delete(value);
    }
}
END_TEST

START_TEST(spells_the_lease)
{
    char *text = lease_format("sink-0", "00000000000000ff", (struct wall_ms){INT64_C(1788516300000)});

    ck_assert_str_eq(text, "{\"instance\":\"sink-0\",\"incarnation\":\"00000000000000ff\",\"sinceMs\":1788516300000}");
    free(text);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("documents");
    TCase *cases = tcase_create("documents");
    tcase_add_test(cases, spells_keys);
    tcase_add_test(cases, spells_the_pointer);
    tcase_add_test(cases, reads_pointers);
    tcase_add_test(cases, reads_the_intent_it_spells);
    tcase_add_test(cases, reads_the_originals_intent);
    tcase_add_test(cases, refuses_what_is_no_intent);
    tcase_add_test(cases, spells_the_lease);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
