/*
 * Keys: the examples of spec 2.1, the long-name rule at its edges, and every key that the original wrote.
 */
#include "common/lake/key.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "lakes.h"

static const struct window_shape at_the_defaults = {FORMAT_JSONL, COMPRESSION_ZSTD, LAYOUT_MERGED, ALIGN_HOUR};
static const struct window_bounds example = {1842, {INT64_C(1788516000000000)}, {INT64_C(1788516300000000)}};

static struct name name_of(const char *text)
{
    return (struct name){text, strlen(text)};
}

static const char *escaped(const char *text)
{
    static char out[LAKE_NAME_SIZE];

    lake_escape_name(name_of(text), out);
    return out;
}

START_TEST(names_are_escaped_byte_by_byte)
{
    ck_assert_str_eq(escaped("Az09._-"), "Az09._-");
    ck_assert_str_eq(escaped("a/b"), "a%2Fb");
    ck_assert_str_eq(escaped("caff\xc3\xa8"), "caff%C3%A8");
    ck_assert_str_eq(escaped("dt=x"), "dt%3Dx");
    ck_assert_str_eq(escaped("~+*@^ %"), "%7E%2B%2A%40%5E%20%25");
    ck_assert_str_eq(escaped(""), "");
    ck_assert_str_eq(escaped("."), "%2E");
    ck_assert_str_eq(escaped(".."), "%2E%2E");
    ck_assert_str_eq(escaped("..."), "...");
    ck_assert_str_eq(escaped(".a"), ".a");
    ck_assert_str_eq(escaped("\xff\x80"), "%FF%80");
}
END_TEST

/* Hashes from sha256sum(1). */
START_TEST(long_names_are_cut_and_told_apart)
{
    char name[200];
    char expected[LAKE_NAME_SIZE];

    memset(name, 'a', sizeof name);
    name[160] = '\0';
    ck_assert_str_eq(escaped(name), name);
    name[160] = 'a';
    name[161] = '\0';
    memset(expected, 'a', 143);
    memcpy(expected + 143, "~1668eb4fad53ba7b", 18);
    ck_assert_str_eq(escaped(name), expected);
    ck_assert_uint_eq(strlen(escaped(name)), 160);
}
END_TEST

/* 142 plain bytes and then escapes: the cut falls before the %XX that would cross byte 143. */
START_TEST(a_cut_never_splits_an_escape)
{
    char name[200];

    for (size_t plain = 130; plain <= 143; plain++) {
        memset(name, 'b', plain);
        memset(name + plain, '/', 20);
        name[plain + 20] = '\0';
        const char *out = escaped(name);
        size_t cut = plain + (143 - plain) / 3 * 3;
        ck_assert_int_eq(out[cut], '~');
        ck_assert_uint_eq(strlen(out), cut + 17);
        ck_assert_uint_eq(strspn(out + cut + 1, "0123456789abcdef"), 16);
        if (cut > plain) {
            ck_assert_mem_eq(out + cut - 3, "%2F", 3);
        }
    }
}
END_TEST

START_TEST(the_examples_of_the_specification)
{
    struct window_shape parquet = {FORMAT_PARQUET, COMPRESSION_ZSTD, LAYOUT_PER_PARTITION, ALIGN_HOUR};
    char key[LAKE_KEY_SIZE];

    ck_assert_int_eq(lake_object_key("queen", "orders", &at_the_defaults, &example, key, NULL), 0);
    ck_assert_str_eq(key, "queen/queue=orders/dt=2026-09-04/hour=10/"
                          "w-0000001842-1788516000000000-1788516300000000.jsonl.zst");
    ck_assert_int_eq(
        lake_partition_object_key("queen", "orders", &parquet, &example, "cust-0420", 1400, 1811, key, NULL), 0);
    ck_assert_str_eq(key, "queen/queue=orders/dt=2026-09-04/hour=10/w-0000001842-1788516000000000-1788516300000000"
                          "-p-cust-0420-000000001400-000000001811.parquet");
    ck_assert_int_eq(lake_manifest_key("queen", "orders", 1842, key, NULL), 0);
    ck_assert_str_eq(key, "queen/_queen/orders/windows/0000001842.json");
    ck_assert_int_eq(lake_checkpoint_key("queen", "orders", 1840, key, NULL), 0);
    ck_assert_str_eq(key, "queen/_queen/orders/checkpoint/0000001840.json.zst");
    ck_assert_int_eq(lake_checkpoint_prefix("queen", "orders", key, NULL), 0);
    ck_assert_str_eq(key, "queen/_queen/orders/checkpoint/");
    ck_assert_int_eq(lake_manifest_key("", "orders", 1, key, NULL), 0);
    ck_assert_str_eq(key, "_queen/orders/windows/0000000001.json");
}
END_TEST

START_TEST(alignment_and_format_show_in_the_key)
{
    struct window_shape shape = at_the_defaults;
    char key[LAKE_KEY_SIZE];

    shape.align = ALIGN_DAY;
    shape.compression = COMPRESSION_GZIP;
    ck_assert_int_eq(lake_object_key("", "q", &shape, &example, key, NULL), 0);
    ck_assert_str_eq(key, "queue=q/dt=2026-09-04/w-0000001842-1788516000000000-1788516300000000.jsonl.gz");
    shape.align = ALIGN_NONE;
    shape.compression = COMPRESSION_NONE;
    ck_assert_int_eq(lake_object_key("a/b", "q", &shape, &example, key, NULL), 0);
    ck_assert_str_eq(key, "a/b/queue=q/dt=2026-09-04/hour=10/w-0000001842-1788516000000000-1788516300000000.jsonl");
    ck_assert_str_eq(lake_content_type(&shape), "application/x-ndjson");
    shape.format = FORMAT_PARQUET;
    shape.compression = COMPRESSION_SNAPPY;
    ck_assert_str_eq(lake_extension(&shape), "parquet");
    ck_assert_str_eq(lake_content_type(&shape), "application/vnd.apache.parquet");
}
END_TEST

START_TEST(a_key_longer_than_s3_takes_is_an_error)
{
    char prefix[LAKE_KEY_SIZE];
    char key[LAKE_KEY_SIZE];
    struct error error;
    size_t rest = strlen("/_queen/q/windows/0000000001.json");

    memset(prefix, 'p', sizeof prefix);
    prefix[1024 - rest] = '\0';
    ck_assert_int_eq(lake_manifest_key(prefix, "q", 1, key, &error), 0);
    ck_assert_uint_eq(strlen(key), 1024);
    prefix[1024 - rest] = 'p';
    prefix[1025 - rest] = '\0';
    ck_assert_int_eq(lake_manifest_key(prefix, "q", 1, key, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_S3_PREFIX"));
}
END_TEST

START_TEST(boundaries_are_floored_on_both_sides_of_1970)
{
    const int64_t hour = INT64_C(3600000000);
    static const int64_t times[] = {0,
                                    1,
                                    -1,
                                    INT64_C(3599999999),
                                    INT64_C(3600000000),
                                    INT64_C(-3600000000),
                                    INT64_C(-3600000001),
                                    INT64_MAX,
                                    INT64_C(1788516000000001)};

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct broker_us floor = lake_align_floor(ALIGN_HOUR, (struct broker_us){times[i]});
        ck_assert_int_eq(floor.v % hour, 0);
        ck_assert(floor.v <= times[i] && times[i] - floor.v < hour);
        ck_assert_int_eq(lake_align_floor(ALIGN_NONE, (struct broker_us){times[i]}).v, times[i]);
    }
    ck_assert_int_eq(lake_align_floor(ALIGN_DAY, (struct broker_us){-1}).v, INT64_C(-86400000000));
    ck_assert_int_eq(lake_align_floor(ALIGN_DAY, (struct broker_us){INT64_MIN}).v, INT64_MIN);
    ck_assert_int_eq(lake_align_unit_us(ALIGN_NONE), 0);
}
END_TEST

static int64_t number(const cJSON *item, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, key);

    ck_assert(cJSON_IsNumber(value));
    return (int64_t)value->valuedouble;
}

static const char *text(const cJSON *item, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, key));
}

static void check_objects(const cJSON *manifest, const char *prefix)
{
    struct window_shape shape = at_the_defaults;
    struct window_bounds bounds = {number(manifest, "k"), {number(manifest, "tStart")}, {number(manifest, "tEnd")}};
    char key[LAKE_KEY_SIZE];
    const cJSON *object;

    ck_assert(setting_format_parse(text(manifest, "format"), &shape.format));
    ck_assert(setting_compression_parse(text(manifest, "compression"), &shape.compression));
    cJSON_ArrayForEach (object, cJSON_GetObjectItemCaseSensitive(manifest, "objects")) {
        const char *partition = text(object, "partition");
        if (partition == NULL) {
            ck_assert_int_eq(lake_object_key(prefix, "orders", &shape, &bounds, key, NULL), 0);
        } else {
            ck_assert_int_eq(lake_partition_object_key(prefix, "orders", &shape, &bounds, escaped(partition),
                                                       number(object, "firstOffset"), number(object, "lastOffset"), key,
                                                       NULL),
                             0);
        }
        ck_assert_str_eq(key, text(object, "key"));
    }
    ck_assert_int_eq(lake_manifest_key(prefix, "orders", bounds.k, key, NULL), 0);
    char path[LAKE_KEY_SIZE + 8] = "lake/";
    strcat(path, key);
    ck_assert_ptr_nonnull(lakes_find(path));
}

START_TEST(the_keys_of_the_original)
{
    size_t from = 0;
    size_t seen = 0;
    size_t count = 0;
    const struct lake_file *file;

    if (lakes_open(&count) == NULL) {
        return;
    }
    while ((file = lakes_next(&from, "lake/", ".json")) != NULL) {
        cJSON *manifest = cJSON_ParseWithLength(file->bytes, file->size);
        ck_assert_ptr_nonnull(manifest);
        char prefix[64];
        size_t size = strcspn(file->path + 5, "/");
        ck_assert_uint_lt(size, sizeof prefix);
        memcpy(prefix, file->path + 5, size);
        prefix[size] = '\0';
        check_objects(manifest, prefix);
        cJSON_Delete(manifest);
        seen++;
    }
    ck_assert_uint_eq(seen, 18);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lake key");
    TCase *tests = tcase_create("keys");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, names_are_escaped_byte_by_byte);
    tcase_add_test(tests, long_names_are_cut_and_told_apart);
    tcase_add_test(tests, a_cut_never_splits_an_escape);
    tcase_add_test(tests, the_examples_of_the_specification);
    tcase_add_test(tests, alignment_and_format_show_in_the_key);
    tcase_add_test(tests, a_key_longer_than_s3_takes_is_an_error);
    tcase_add_test(tests, boundaries_are_floored_on_both_sides_of_1970);
    tcase_add_test(tests, the_keys_of_the_original);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
