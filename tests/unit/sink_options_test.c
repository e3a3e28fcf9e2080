/*
 * [plugin_config]: defaults, every key, every refusal with its code and its message, and that no message tells a
 * credential.
 */
#include "worker/connector/options.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/guarded.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BASE         "\"bucket\":\"archive\",\"region\":\"eu-central-1\""

static struct error error;
static struct sink_options options;

static enum sink_refusal parse(const char *json)
{
    size_t size = strlen(json);
    return sink_options_parse(guarded_copy(json, size), size, &options, &error);
}

static enum sink_refusal parse_with(const char *more)
{
    char json[1024];
    int size = snprintf(json, sizeof json, "{" BASE ",%s}", more);
    ck_assert_int_lt(size, (int)sizeof json);
    return parse(json);
}

START_TEST(defaults_are_those_of_the_table)
{
    ck_assert_int_eq(parse("{" BASE "}"), SINK_ACCEPTED);
    ck_assert_str_eq(options.store.bucket, "archive");
    ck_assert_str_eq(options.store.region, "eu-central-1");
    ck_assert_str_eq(options.store.endpoint, "https://s3.eu-central-1.amazonaws.com");
    ck_assert(!options.store.path_style);
    ck_assert_ptr_null(options.store.prefix);
    ck_assert_ptr_null(options.store.access_key);
    ck_assert_ptr_null(options.store.secret_key);
    ck_assert_ptr_null(options.store.file_root);
    ck_assert_str_eq(options.path_template, "{topic}/{date}/{hour}");
    ck_assert_int_eq(options.limits.rotation, SINK_BY_SIZE);
    ck_assert_uint_eq(options.limits.max_size, 8388608);
    ck_assert_uint_eq(options.limits.max_messages, 0);
    ck_assert_int_eq(options.shape.format, SINK_JSON_LINES);
    ck_assert_int_eq(options.shape.compression, COMPRESSION_NONE);
    ck_assert(options.shape.include_metadata);
    ck_assert(!options.shape.include_headers);
    ck_assert_uint_eq(options.max_attempts, 3);
    ck_assert_int_eq(options.retry_delay_ms, 1000);
    ck_assert_int_eq(options.max_file_age_ms, 0);
    ck_assert_int_eq(options.durability, SINK_BUFFERED);
    ck_assert(!options.durability_given && !options.spool_dir_given);
    sink_options_free(&options);
}
END_TEST

START_TEST(every_key_is_read)
{
    ck_assert_int_eq(
        parse_with("\"prefix\":\"/raw/x//\",\"endpoint\":\"http://127.0.0.1:9000/\","
                   "\"access_key_id\":\"AKIA\",\"secret_access_key\":\"s/e+c\",\"path_template\":\"{topic}\","
                   "\"file_rotation\":\"messages\",\"max_file_size\":1000,\"max_messages_per_file\":7,"
                   "\"output_format\":\"Json_Array\",\"include_metadata\":false,\"include_headers\":true,"
                   "\"max_retries\":0,\"retry_delay\":\"1m 30s\",\"path_style\":false,"
                   "\"durability\":\"spooled\",\"spool_dir\":\"/spool\",\"max_file_age\":\"5m\","
                   "\"compression\":\"zstd\""),
        SINK_ACCEPTED);
    ck_assert_str_eq(options.store.prefix, "raw/x");
    ck_assert_str_eq(options.store.endpoint, "http://127.0.0.1:9000");
    ck_assert_str_eq(options.store.access_key, "AKIA");
    ck_assert_str_eq(options.store.secret_key, "s/e+c");
    ck_assert_str_eq(options.path_template, "{topic}");
    ck_assert_int_eq(options.limits.rotation, SINK_BY_MESSAGES);
    ck_assert_uint_eq(options.limits.max_size, 1000);
    ck_assert_uint_eq(options.limits.max_messages, 7);
    ck_assert_int_eq(options.shape.format, SINK_JSON_ARRAY);
    ck_assert_int_eq(options.shape.compression, COMPRESSION_ZSTD);
    ck_assert(!options.shape.include_metadata && options.shape.include_headers);
    ck_assert_uint_eq(options.max_attempts, 1);
    ck_assert_int_eq(options.retry_delay_ms, 90000);
    ck_assert(!options.store.path_style);
    ck_assert_int_eq(options.durability, SINK_SPOOLED);
    ck_assert_str_eq(options.spool_dir, "/spool");
    ck_assert_int_eq(options.max_file_age_ms, 300000);
    ck_assert(options.durability_given && options.spool_dir_given);
    sink_options_free(&options);
}
END_TEST

static const char *const accepted[] = {
    "\"output_format\":\"JSONL\"",
    "\"output_format\":\"jsonlines\"",
    "\"output_format\":\"RAW\"",
    "\"max_file_size\":\"5GiB\"",
    "\"max_file_size\":\" 8 mib \"",
    "\"max_file_size\":1048576",
    "\"retry_delay\":\"0\"",
    "\"retry_delay\":0",
    "\"retry_delay\":null",
    "\"prefix\":null",
    "\"access_key_id\":\"\",\"secret_access_key\":\"\"",
    "\"max_messages_per_file\":5",
    "\"max_attempts\":4294967295",
    "\"endpoint\":\"https://s3.example.org\"",
    "\"endpoint\":\"file:///tmp/objects\"",
    "\"path_template\":\"{unknown}//x\"",
    "\"compression\":\"GZIP\"",
    "\"durability\":\"uploaded\"",
    "\"max_file_size\":\"8MiB\\u0020\"",
};

START_TEST(what_is_accepted)
{
    ck_assert_msg(parse_with(accepted[_i]) == SINK_ACCEPTED, "%s: %s", accepted[_i], error.message);
    sink_options_free(&options);
}
END_TEST

static const struct {
    const char *json; /* more members, or the whole text */
    enum sink_refusal refusal;
    const char *message;
} refused[] = {
    {"", SINK_UNREADABLE, "not JSON"},
    {"{", SINK_UNREADABLE, "not JSON"},
    {"{}x", SINK_UNREADABLE, "not JSON"},
    {"{}", SINK_UNREADABLE, "no bucket"},
    {"null", SINK_UNREADABLE, "plugin_config is null, not a table of keys: bucket and region are missing"},
    {"[]", SINK_UNREADABLE, "bucket and region are missing"},
    {"{\"bucket\":\"b\"}", SINK_UNREADABLE, "no region"},
    {"{\"bucket\":\"\",\"region\":\"r\"}", SINK_REFUSED, "bucket must not be empty"},
    {"{\"bucket\":\"b\",\"region\":\"\"}", SINK_REFUSED, "region must not be empty"},
    {"{\"bucket\":\"a/b\",\"region\":\"eu-central-1\"}", SINK_REFUSED, "without slash or blank"},
    {"{\"bucket\":\"..\",\"region\":\"eu-central-1\"}", SINK_REFUSED, "without slash or blank"},
    {"{\"bucket\":\"b\",\"region\":\"nowhere\"}", SINK_REFUSED, "Invalid S3 region 'nowhere'"},
    {"{\"bucket\":5,\"region\":\"eu-central-1\"}", SINK_UNREADABLE, "bucket = 5: expected a string"},
    {"\"path_template\":\"\"", SINK_REFUSED, "path_template must not be empty"},
    {"\"path_template\":\"{topic_segment[x]}\"", SINK_REFUSED, "{topic_segment[x]}"},
    {"\"path_template\":\"{topic_segment[99\"", SINK_REFUSED, "{topic_segment[99"},
    {"\"output_format\":\"xml\"", SINK_REFUSED, "Invalid output_format 'xml': expected json_lines, json_array or raw"},
    {"\"output_format\":\"json\"", SINK_REFUSED, "expected json_lines"},
    {"\"output_format\":1", SINK_UNREADABLE, "output_format = 1: expected json_lines"},
    {"\"max_file_size\":\"abc\"", SINK_REFUSED, "Invalid max_file_size 'abc'"},
    {"\"max_file_size\":\"0\"", SINK_REFUSED, "max_file_size must be greater than 0"},
    {"\"max_file_size\":\"6GiB\"", SINK_REFUSED, "max_file_size (6GiB) exceeds S3 single PutObject limit of 5 GiB"},
    {"\"max_file_size\":5368709121", SINK_REFUSED, "(5368709121) exceeds S3 single PutObject limit of 5 GiB"},
    {"\"max_file_size\":-1", SINK_UNREADABLE, "max_file_size = -1"},
    {"\"max_file_size\":1.5", SINK_UNREADABLE, "max_file_size = 1.5"},
    {"\"retry_delay\":\"abc\"", SINK_REFUSED, "Invalid retry_delay 'abc'"},
    {"\"retry_delay\":\"5\"", SINK_REFUSED, "Invalid retry_delay '5'"},
    {"\"retry_delay\":5", SINK_UNREADABLE, "retry_delay = 5: expected a duration"},
    {"\"file_rotation\":\"messages\"", SINK_REFUSED,
     "file_rotation is 'messages' but max_messages_per_file is not configured"},
    {"\"file_rotation\":\"messages\",\"max_messages_per_file\":0", SINK_REFUSED, "must be greater than 0"},
    {"\"file_rotation\":\"size\",\"max_messages_per_file\":0", SINK_REFUSED, "must be greater than 0"},
    {"\"file_rotation\":\"Messages\",\"max_messages_per_file\":5", SINK_UNREADABLE, "\"size\" or \"messages\""},
    {"\"file_rotation\":\"age\"", SINK_UNREADABLE, "'age'"},
    {"\"max_messages_per_file\":-1", SINK_UNREADABLE, "max_messages_per_file = -1"},
    {"\"max_messages_per_file\":\"5\"", SINK_UNREADABLE, "max_messages_per_file = \"5\""},
    {"\"max_messages_per_file\":18446744073709551616", SINK_UNREADABLE, "max_messages_per_file"},
    {"\"max_attempts\":1,\"max_retries\":2", SINK_UNREADABLE, "max_attempts and max_retries"},
    {"\"max_attempts\":-1", SINK_UNREADABLE, "max_attempts = -1"},
    {"\"max_attempts\":4294967296", SINK_UNREADABLE, "max_attempts"},
    {"\"bucket\":\"twice\"", SINK_UNREADABLE, "bucket is given twice"},
    {"\"prefix\":null,\"prefix\":\"x\"", SINK_UNREADABLE, "prefix is given twice"},
    {"\"include_metadata\":\"true\"", SINK_UNREADABLE, "include_metadata = \"true\": expected true or false"},
    {"\"prefix\":5", SINK_UNREADABLE, "prefix = 5"},
    {"\"prefix\":\"a\\u0000b\"", SINK_UNREADABLE, "prefix holds a NUL"},
    {"\"path_style\":\"yes\"", SINK_UNREADABLE, "path_style = \"yes\""},
    {"\"access_key_id\":\"AKIATEST\"", SINK_REFUSED, "Partially configured credentials"},
    {"\"secret_access_key\":\"AKIATEST\",\"access_key_id\":\"\"", SINK_REFUSED, "Partially configured credentials"},
    {"\"secret_access_key\":[\"AKIATEST\"]", SINK_UNREADABLE, "secret_access_key is not a string"},
    {"\"access_key_id\":123456", SINK_UNREADABLE, "access_key_id is not a string"},
    {"\"endpoint\":\"127.0.0.1:7171\"", SINK_REFUSED, "endpoint=127.0.0.1:7171: expected http://"},
    {"\"endpoint\":\"\"", SINK_REFUSED, "endpoint"},
    {"\"endpoint\":\"file://relative\"", SINK_REFUSED, "file:///dir"},
    {"\"endpoint\":\"ftp://x\"", SINK_REFUSED, "endpoint"},
    {"\"buket\":\"x\"", SINK_REFUSED, "unknown key 'buket'; did you mean 'bucket'?"},
    {"\"unknown_field\":true", SINK_REFUSED, "unknown key 'unknown_field'"},
    {"\"durability\":\"disk\"", SINK_REFUSED, "Invalid durability 'disk': expected buffered, spooled or uploaded"},
    {"\"durability\":\"spooled\"", SINK_REFUSED, "spool_dir"},
    {"\"durability\":\"spooled\",\"spool_dir\":\"relative\"", SINK_REFUSED, "absolute"},
    {"\"spool_dir\":\"/x\"", SINK_REFUSED, "durability 'spooled' only"},
    {"\"compression\":\"snappy\"", SINK_REFUSED, "Invalid compression 'snappy'"},
    {"\"max_file_age\":\"0\"", SINK_REFUSED, "max_file_age must be greater than 0"},
    {"\"max_file_age\":\"soon\"", SINK_REFUSED, "Invalid max_file_age 'soon'"},
    /* Unreadable goes before refused, wherever it stands. */
    {"\"nonsense\":1,\"prefix\":5", SINK_UNREADABLE, "prefix = 5"},
};

START_TEST(what_is_refused_says_why)
{
    const char *json = refused[_i].json;
    bool whole = json[0] != '"';
    ck_assert_msg((whole ? parse(json) : parse_with(json)) == refused[_i].refusal, "%s: %s", json, error.message);
    ck_assert_msg(strstr(error.message, refused[_i].message) != NULL, "%s: %s", json, error.message);
    ck_assert_ptr_null(strstr(error.message, "AKIATEST"));
    ck_assert_ptr_null(strstr(error.message, "123456"));
    ck_assert_ptr_null(options.store.bucket); /* nothing is left behind */
}
END_TEST

static const char *const regions[] = {"eu-west-1",      "us-gov-west-1",  "cn-north-1",  "ap-southeast-12",
                                      "us-isob-east-1", "eusc-de-east-1", "me-central-1"};
static const char *const no_regions[] = {"eu",         "eu-west",     "EU-WEST-1", "eu_west_1",
                                         "eu-west-1a", "eu-west-123", "1-eu-1"};

START_TEST(regions_are_checked_by_shape_and_only_without_an_endpoint)
{
    char json[256];
    for (size_t i = 0; i < COUNT(regions); i++) {
        snprintf(json, sizeof json, "{\"bucket\":\"b\",\"region\":\"%s\"}", regions[i]);
        ck_assert_msg(parse(json) == SINK_ACCEPTED, "%s", regions[i]);
        sink_options_free(&options);
    }
    for (size_t i = 0; i < COUNT(no_regions); i++) {
        snprintf(json, sizeof json, "{\"bucket\":\"b\",\"region\":\"%s\"}", no_regions[i]);
        ck_assert_msg(parse(json) == SINK_REFUSED, "%s", no_regions[i]);
        snprintf(json, sizeof json, "{\"bucket\":\"b\",\"region\":\"%s\",\"endpoint\":\"http://h\"}", no_regions[i]);
        ck_assert_msg(parse(json) == SINK_ACCEPTED, "%s", no_regions[i]);
        sink_options_free(&options);
    }
}
END_TEST

START_TEST(the_endpoint_follows_the_partition_of_aws)
{
    char *endpoint = sink_aws_endpoint("sts", "cn-north-1");
    ck_assert_str_eq(endpoint, "https://sts.cn-north-1.amazonaws.com.cn");
    free(endpoint);
    endpoint = sink_aws_endpoint("s3", "us-gov-west-1");
    ck_assert_str_eq(endpoint, "https://s3.us-gov-west-1.amazonaws.com");
    free(endpoint);
}
END_TEST

START_TEST(an_endpoint_or_a_dotted_bucket_turns_path_style_on)
{
    ck_assert_int_eq(parse_with("\"endpoint\":\"http://h:1\""), SINK_ACCEPTED);
    ck_assert(options.store.path_style);
    sink_options_free(&options);
    ck_assert_int_eq(parse("{\"bucket\":\"a.b\",\"region\":\"eu-central-1\"}"), SINK_ACCEPTED);
    ck_assert(options.store.path_style);
    sink_options_free(&options);
    ck_assert_int_eq(parse("{\"bucket\":\"b\",\"endpoint\":\"file:///srv/x\"}"), SINK_ACCEPTED);
    ck_assert_str_eq(options.store.file_root, "/srv/x");
    sink_options_free(&options);
}
END_TEST

START_TEST(the_manual_has_every_key)
{
    static char page[65536];
    FILE *file = fopen("man/picomq-s3-sink.7.in", "r");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(page, 1, sizeof page - 1, file);
    page[size] = '\0';
    fclose(file);
    for (const char *const *name = sink_option_names(); *name != NULL; name++) {
        char macro[64];
        snprintf(macro, sizeof macro, ".Ic %s\n", *name);
        char item[64];
        snprintf(item, sizeof item, ".It Ic %s", *name);
        char second[64];
        snprintf(second, sizeof second, " , %s\n", *name);
        ck_assert_msg(strstr(page, macro) != NULL || strstr(page, item) != NULL || strstr(page, second) != NULL, "%s",
                      *name);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sink_options");
    TCase *test = tcase_create("options");
    tcase_add_test(test, defaults_are_those_of_the_table);
    tcase_add_test(test, every_key_is_read);
    tcase_add_loop_test(test, what_is_accepted, 0, (int)COUNT(accepted));
    tcase_add_loop_test(test, what_is_refused_says_why, 0, (int)COUNT(refused));
    tcase_add_test(test, regions_are_checked_by_shape_and_only_without_an_endpoint);
    tcase_add_test(test, the_endpoint_follows_the_partition_of_aws);
    tcase_add_test(test, an_endpoint_or_a_dotted_bucket_turns_path_style_on);
    tcase_add_test(test, the_manual_has_every_key);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
