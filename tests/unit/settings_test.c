/*
 * What each setting accepts, refuses and means, and its default: spec 3.1, row by row.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/settings.h"
#include "tests/unit/environments.h"

#define MB ((int64_t)1048576)

START_TEST(has_the_documented_defaults)
{
    struct environment environment = least;
    struct settings settings = must_read(&environment);
    char host[256] = "";

    ck_assert_str_eq(settings.queen_url, "http://localhost:6632");
    ck_assert_ptr_null(settings.queen_token);
    ck_assert_ptr_null(settings.queen_ca_file);
    ck_assert_ptr_null(settings.ca_file);
    ck_assert_str_eq(settings.sink, "default");
    ck_assert(!settings.all_queues);
    ck_assert_ptr_null(settings.file_root);
    ck_assert_str_eq(settings.prefix, "queen");
    ck_assert(!settings.path_style);
    ck_assert_int_eq(settings.sse, SSE_OFF);
    ck_assert_ptr_null(settings.sse_kms_key_id);
    ck_assert_int_eq(settings.format, FORMAT_JSONL);
    ck_assert_int_eq(settings.compression, COMPRESSION_ZSTD);
    ck_assert_int_eq(settings.layout, LAYOUT_MERGED);
    ck_assert_int_eq(settings.align, ALIGN_HOUR);
    ck_assert_int_eq(settings.start, START_LATEST);
    ck_assert_int_eq(settings.crash_at, CRASH_NEVER);
    ck_assert(!settings.log_json);
    ck_assert_int_eq(settings.log_level, LOG_INFO);
    ck_assert_str_eq(settings.listen_host, "127.0.0.1");
    ck_assert_str_eq(settings.listen_port, "9333");
    ck_assert_ptr_null(settings.control);
    ck_assert_ptr_null(settings.connectors);
    ck_assert_int_eq(settings.workers, cores() < 2 ? cores() : 2);
    ck_assert_int_eq(gethostname(host, sizeof host - 1), 0);
    if (host[0] != '\0') {
        ck_assert_str_eq(settings.instance, host);
        ck_assert(!settings.instance_generated);
    }
    settings_free(&settings);
    ck_assert_ptr_null(settings.queen_url);
}
END_TEST

struct number_case {
    const char *name;
    size_t offset;
    int64_t initial, least, most, unit;
};

#define NUMBER(variable, field, initial, from, to, unit)                                \
    {                                                                                   \
        "QUEEN_S3_" variable, offsetof(struct settings, field), initial, from, to, unit \
    }
static const struct number_case numbers[] = {
    NUMBER("TARGET_MB", target_bytes, 128, 1, 5120, MB),
    NUMBER("MAX_WINDOW_MS", max_window_ms, 300000, 100, 86400000, 1),
    NUMBER("CHECKPOINT_EVERY", checkpoint_every, 20, 1, 100000, 1),
    NUMBER("FETCH_CONCURRENCY", fetch_concurrency, 4, 1, 256, 1),
    NUMBER("DISCOVERY_INTERVAL_MS", discovery_interval_ms, 2000, 10, 3600000, 1),
    NUMBER("SAFE_GUARD_MS", safe_guard_ms, 5000, 0, 3600000, 1),
    NUMBER("LEASE_TTL_MS", lease_ttl_ms, 30000, 1000, 3600000, 1),
    NUMBER("MULTIPART_THRESHOLD_MB", multipart_threshold_bytes, 64, 5, 5120, MB),
    NUMBER("MEMORY_MB", memory_bytes, 1024, 64, 1048576, MB),
    NUMBER("WORKERS", workers, 0, 1, 1024, 1),
    NUMBER("SHUTDOWN_GRACE_MS", shutdown_grace_ms, 30000, 100, 0, 1),
};

static void expect_number(const struct number_case *number, const char *text, int64_t expected)
{
    struct environment environment = least;
    int64_t got;

    set(&environment, "QUEEN_S3_WORKERS", "2");
    set(&environment, number->name, text);
    struct settings settings = must_read(&environment);
    memcpy(&got, (char *)&settings + number->offset, sizeof got);
    ck_assert_msg(got == expected * number->unit, "%s=%s", number->name, text != NULL ? text : "");
    settings_free(&settings);
}

START_TEST(reads_numbers_within_their_range)
{
    const struct number_case *number = &numbers[_i];
    char text[64];

    if (number->initial > 0) {
        expect_number(number, NULL, number->initial);
        expect_number(number, "", number->initial);
        expect_number(number, " \t ", number->initial);
    }
    snprintf(text, sizeof text, "%lld", (long long)number->least);
    expect_number(number, text, number->least);
    snprintf(text, sizeof text, " 000%lld\t", (long long)number->least);
    expect_number(number, text, number->least);
    snprintf(text, sizeof text, "%lld", (long long)number->least - 1);
    refuse_with(number->name, text);
    if (number->most > 0) {
        snprintf(text, sizeof text, "%lld", (long long)number->most);
        expect_number(number, text, number->most);
        snprintf(text, sizeof text, "%lld", (long long)number->most + 1);
        refuse_with(number->name, text);
    }
}
END_TEST

START_TEST(refuses_what_is_no_number)
{
    static const char *const bad[] = {"abc",
                                      "-1",
                                      "+5",
                                      "1.5",
                                      "1e3",
                                      "0x40",
                                      "64 MB",
                                      "9223372036854775808",
                                      "18446744073709551617",
                                      "18446744073709551744",
                                      "340282366920938463463374607431768211584",
                                      "99999999999999999999999999999999999999999999999999999999999999999999999999999"};
    char start[64];

    for (size_t i = 0; i < LENGTH(bad); i++) {
        const char *line = refuse_with(numbers[_i].name, bad[i]);
        snprintf(start, sizeof start, "%s=%.8s", numbers[_i].name, bad[i]);
        ck_assert_msg(strncmp(line, start, strlen(start)) == 0, "%s", line);
        ck_assert_ptr_nonnull(strstr(line, ": expected a whole number"));
    }
}
END_TEST

struct choice_case {
    const char *name;
    size_t offset;
    const char *values[8];
    int means[8];
    const char *expected;
};

#define CHOICE(variable, field) "QUEEN_S3_" variable, offsetof(struct settings, field)
static const struct choice_case choices[] = {
    {CHOICE("SSE", sse), {"AES256", "aws:kms", "aes256", "AWS:KMS"}, {1, 2, 1, 2}, "AES256 or aws:kms"},
    {CHOICE("FORMAT", format), {"jsonl", "parquet", "Parquet"}, {0, 1, 1}, "jsonl or parquet"},
    {CHOICE("COMPRESSION", compression), {"zstd", "gzip", "none", "GZIP"}, {0, 1, 2, 1}, "zstd, gzip or none"},
    {CHOICE("LAYOUT", layout), {"merged", "per-partition", "MERGED"}, {0, 1, 0}, "merged or per-partition"},
    {CHOICE("ALIGN", align), {"hour", "day", "none", "Day"}, {0, 1, 2, 1}, "hour, day or none"},
    {CHOICE("START", start), {"latest", "earliest", "EARLIEST"}, {0, 1, 1}, "latest or earliest"},
    {CHOICE("CRASH_AT", crash_at),
     {"never", "after_intent", "mid_upload", "after_upload", "before_commit", "after_commit", "Mid_Upload"},
     {0, 1, 2, 3, 4, 5, 2},
     "never, after_intent, mid_upload, after_upload, before_commit or after_commit"},
    {CHOICE("LOG_LEVEL", log_level),
     {"error", "warn", "info", "debug", "DEBUG"},
     {LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_DEBUG},
     "error, warn, info or debug"},
};

START_TEST(reads_choices_in_any_case)
{
    const struct choice_case *choice = &choices[_i];
    char expected[256];

    for (size_t i = 0; choice->values[i] != NULL; i++) {
        int got;
        struct settings settings = read_with(choice->name, choice->values[i]);
        memcpy(&got, (char *)&settings + choice->offset, sizeof got);
        ck_assert_msg(got == choice->means[i], "%s=%s", choice->name, choice->values[i]);
        settings_free(&settings);
    }
    snprintf(expected, sizeof expected, "%s=other: expected %s", choice->name, choice->expected);
    ck_assert_str_eq(refuse_with(choice->name, "other"), expected);
}
END_TEST

START_TEST(reads_switches)
{
    static const char *const yes[] = {"true", "1", "yes", "on", "TRUE", "On"};
    static const char *const no[] = {"false", "0", "no", "off", "False", ""};

    for (size_t i = 0; i < LENGTH(yes); i++) {
        struct settings settings = read_with("QUEEN_S3_PATH_STYLE", yes[i]);
        ck_assert(settings.path_style);
        settings_free(&settings);
        settings = read_with("QUEEN_S3_PATH_STYLE", no[i]);
        ck_assert(!settings.path_style);
        settings_free(&settings);
    }
    ck_assert_str_eq(refuse_with("QUEEN_S3_PATH_STYLE", "2"),
                     "QUEEN_S3_PATH_STYLE=2: expected true, false, 1, 0, yes, no, on or off");
    struct settings settings = read_with("QUEEN_S3_LOG_FORMAT", "JSON");
    ck_assert(settings.log_json);
    settings_free(&settings);
    ck_assert_str_eq(refuse_with("QUEEN_S3_LOG_FORMAT", "xml"), "QUEEN_S3_LOG_FORMAT=xml: expected human or json");
}
END_TEST

START_TEST(takes_the_codec_for_parquet)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_FORMAT", "parquet");
    set(&environment, "QUEEN_S3_COMPRESSION", "none");
    struct settings settings = must_read(&environment);
    ck_assert_int_eq(settings.compression, COMPRESSION_ZSTD);
    settings_free(&settings);
    set(&environment, "QUEEN_S3_PARQUET_CODEC", "Snappy");
    settings = must_read(&environment);
    ck_assert_int_eq(settings.compression, COMPRESSION_SNAPPY);
    settings_free(&settings);
    settings = read_with("QUEEN_S3_PARQUET_CODEC", "snappy");
    ck_assert_int_eq(settings.compression, COMPRESSION_ZSTD);
    settings_free(&settings);
    ck_assert_str_eq(refuse_with("QUEEN_S3_PARQUET_CODEC", "gzip"),
                     "QUEEN_S3_PARQUET_CODEC=gzip: expected zstd or snappy");
    ck_assert_str_eq(refuse_with("QUEEN_S3_COMPRESSION", "snappy"),
                     "QUEEN_S3_COMPRESSION=snappy: expected zstd, gzip or none");
}
END_TEST

struct text_case {
    const char *name;
    size_t offset;
    const char *value;
    const char *means; /* NULL: refused */
};

#define TEXT(variable, field, value, means)                      \
    {                                                            \
        variable, offsetof(struct settings, field), value, means \
    }
static const struct text_case texts[] = {
    TEXT("QUEEN_URL", queen_url, "https://queen.example.com:443/", "https://queen.example.com:443"),
    TEXT("QUEEN_URL", queen_url, "HTTP://h/base/path//", "http://h/base/path"),
    TEXT("QUEEN_URL", queen_url, "http://[::1]:6632", "http://[::1]:6632"),
    TEXT("QUEEN_URL", queen_url, "http://u:p@h", "http://u:p@h"),
    TEXT("QUEEN_URL", queen_url, "localhost:6632", NULL),
    TEXT("QUEEN_URL", queen_url, "ftp://h", NULL),
    TEXT("QUEEN_URL", queen_url, "http://", NULL),
    TEXT("QUEEN_URL", queen_url, "http:///", NULL),
    TEXT("QUEEN_URL", queen_url, "http://h:0", NULL),
    TEXT("QUEEN_URL", queen_url, "http://h:65536", NULL),
    TEXT("QUEEN_URL", queen_url, "http://h:", NULL),
    TEXT("QUEEN_URL", queen_url, "http://::1", NULL),
    TEXT("QUEEN_URL", queen_url, "http://[::g]", NULL),
    TEXT("QUEEN_URL", queen_url, "http://[::1", NULL),
    TEXT("QUEEN_URL", queen_url, "http://h/?a=b", NULL),
    TEXT("QUEEN_URL", queen_url, "http://a b", NULL),
    TEXT("QUEEN_TOKEN", queen_token, " kept as it is ", " kept as it is "),
    TEXT("QUEEN_TOKEN", queen_token, "one\n", "one"),
    TEXT("QUEEN_TOKEN", queen_token, "one\ntwo", NULL),
    TEXT("QUEEN_CA_FILE", queen_ca_file, "/etc/passwd", "/etc/passwd"),
    TEXT("QUEEN_S3_CA_FILE", ca_file, "/etc/group", "/etc/group"),
    TEXT("QUEEN_S3_SINK", sink, "A.z_0-9", "A.z_0-9"),
    TEXT("QUEEN_S3_SINK", sink, "1234567890123456789012345678901234567890123456789012345678901234",
         "1234567890123456789012345678901234567890123456789012345678901234"),
    TEXT("QUEEN_S3_SINK", sink, "12345678901234567890123456789012345678901234567890123456789012345", NULL),
    TEXT("QUEEN_S3_SINK", sink, "a:b", NULL),
    TEXT("QUEEN_S3_SINK", sink, "caffè", NULL),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "http://127.0.0.1:9000", "http://127.0.0.1:9000"),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "https://h/", "https://h"),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "https://h/path", NULL),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "https://u:p@h", NULL),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "h:9000", NULL),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "s3://bucket", NULL),
    TEXT("QUEEN_S3_ENDPOINT", file_root, "file:///var/lake/", "/var/lake"),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "File:///var/lake", "file:///var/lake"),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "file://var/lake", NULL),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "file:/var/lake", NULL),
    TEXT("QUEEN_S3_ENDPOINT", endpoint, "file:///", NULL),
    TEXT("QUEEN_S3_REGION", region, " us-east-1 ", "us-east-1"),
    TEXT("QUEEN_S3_REGION", region, "us east", NULL),
    TEXT("QUEEN_S3_BUCKET", bucket, "a.b-c", "a.b-c"),
    TEXT("QUEEN_S3_BUCKET", bucket, "a/b", NULL),
    TEXT("QUEEN_S3_BUCKET", bucket, "a b", NULL),
    TEXT("QUEEN_S3_BUCKET", bucket, "..", NULL),
    TEXT("QUEEN_S3_PREFIX", prefix, "/a/b.c//", "a/b.c"),
    TEXT("QUEEN_S3_PREFIX", prefix, "...", "..."),
    TEXT("QUEEN_S3_PREFIX", prefix, ".a", ".a"),
    TEXT("QUEEN_S3_PREFIX", prefix, "a//b", NULL),
    TEXT("QUEEN_S3_PREFIX", prefix, "a/./b", NULL),
    TEXT("QUEEN_S3_PREFIX", prefix, "../a", NULL),
    TEXT("QUEEN_S3_PREFIX", prefix, "a/..", NULL),
    TEXT("QUEEN_S3_PREFIX", prefix, "/", NULL),
    TEXT("QUEEN_S3_PREFIX", prefix, "a\nb", NULL),
    TEXT("QUEEN_S3_LISTEN", listen_host, "0.0.0.0:0", "0.0.0.0"),
    TEXT("QUEEN_S3_LISTEN", listen_host, "[::1]:80", "::1"),
    TEXT("QUEEN_S3_LISTEN", listen_host, "localhost:80", "localhost"),
    TEXT("QUEEN_S3_LISTEN", listen_port, "h:00080", "80"),
    TEXT("QUEEN_S3_LISTEN", listen_port, "h:65535", "65535"),
    TEXT("QUEEN_S3_LISTEN", listen_port, "h:65536", NULL),
    TEXT("QUEEN_S3_LISTEN", listen_port, "h:4294967376", NULL),
    TEXT("QUEEN_S3_LISTEN", listen_port, "h", NULL),
    TEXT("QUEEN_S3_LISTEN", listen_port, "h:", NULL),
    TEXT("QUEEN_S3_LISTEN", listen_port, ":80", NULL),
    TEXT("QUEEN_S3_LISTEN", listen_port, "::1:80", NULL),
    TEXT("QUEEN_S3_LISTEN", listen_port, "[h]:80", NULL),
    TEXT("QUEEN_S3_LISTEN", listen_port, "9333", NULL),
    TEXT("QUEEN_S3_INSTANCE", instance, "sink-0", "sink-0"),
    TEXT("QUEEN_S3_INSTANCE", instance, "a\033[1mb", NULL),
    TEXT("QUEEN_S3_CONTROL", control, "/run/a.sock", "/run/a.sock"),
    TEXT("QUEEN_S3_CONTROL", control, "OFF", "off"),
    TEXT("QUEEN_S3_CONTROL", control, "run/a.sock", NULL),
    TEXT("QUEEN_S3_CONNECTORS", connectors, "/etc/connectors", "/etc/connectors"),
    TEXT("QUEEN_S3_ACCESS_KEY", access_key, "A B", NULL),
    TEXT("QUEEN_S3_SECRET_KEY", secret_key, "a/b+c=", "a/b+c="),
};

START_TEST(reads_texts)
{
    const struct text_case *text = &texts[_i];
    const char *got;

    if (text->means == NULL) {
        const char *line = refuse_with(text->name, text->value);
        ck_assert_msg(strncmp(line, text->name, strlen(text->name)) == 0, "%s", line);
        ck_assert_msg(strstr(line, "expected ") != NULL, "%s", line);
        return;
    }
    struct settings settings = read_with(text->name, text->value);
    memcpy(&got, (char *)&settings + text->offset, sizeof got);
    ck_assert_str_eq(got, text->means);
    settings_free(&settings);
}
END_TEST

START_TEST(reads_queues_in_order)
{
    struct settings settings = read_with("QUEEN_S3_QUEUES", " b , a/x,caffè d,* x,😀");
    static const char *const expected[] = {"b", "a/x", "caffè d", "* x", "😀"};

    ck_assert_uint_eq(settings.queue_count, LENGTH(expected));
    for (size_t i = 0; i < LENGTH(expected); i++) {
        ck_assert_str_eq(settings.queues[i], expected[i]);
    }
    settings_free(&settings);
    settings = read_with("QUEEN_S3_QUEUES", " * ");
    ck_assert(settings.all_queues);
    ck_assert_ptr_null(settings.queues);
    ck_assert_uint_eq(settings.queue_count, 0);
    settings_free(&settings);
    refuse_with("QUEEN_S3_QUEUES", "a,,b");
    refuse_with("QUEEN_S3_QUEUES", "a,");
    refuse_with("QUEEN_S3_QUEUES", ",");
    refuse_with("QUEEN_S3_QUEUES", "a,*");
    refuse_with("QUEEN_S3_QUEUES", "a,b\001");
    refuse_with("QUEEN_S3_QUEUES", "caff\xE8");
    refuse_with("QUEEN_S3_QUEUES", "\xC0\xAF");
    refuse_with("QUEEN_S3_QUEUES", "\xED\xA0\x80");
    refuse_with("QUEEN_S3_QUEUES", "\xF4\x90\x80\x80");
    refuse_with("QUEEN_S3_QUEUES", "a\xF0\x9F\x98");
    ck_assert_str_eq(refuse_with("QUEEN_S3_QUEUES", "b, a ,a"),
                     "QUEEN_S3_QUEUES=b, a ,a: expected each queue once (a is there twice)");
}
END_TEST

START_TEST(reads_many_queues)
{
    enum { COUNT = 40000 };
    char *text = calloc(COUNT, 8);
    char *at = text;

    for (int i = 0; i < COUNT; i++) {
        at += sprintf(at, "q%d,", i);
    }
    at[-1] = '\0';
    struct settings settings = read_with("QUEEN_S3_QUEUES", text);
    ck_assert_uint_eq(settings.queue_count, COUNT);
    ck_assert_str_eq(settings.queues[COUNT - 1], "q39999");
    settings_free(&settings);
    at[-1] = ',';
    strcpy(at, "q7");
    const char *line = refuse_with("QUEEN_S3_QUEUES", text);
    ck_assert_ptr_nonnull(strstr(line, "…: expected each queue once (q7 is there twice)"));
    free(text);
}
END_TEST

START_TEST(understands_rust_log)
{
    static const struct {
        const char *text;
        enum log_level level;
    } cases[] = {{"queen_s3=debug", LOG_DEBUG},
                 {"debug", LOG_DEBUG},
                 {"Warn", LOG_WARN},
                 {"trace", LOG_DEBUG},
                 {"off", LOG_ERROR},
                 {"queen_s3=error,debug", LOG_ERROR},
                 {"debug,queen_s3=warn", LOG_WARN},
                 {"tower=debug, warn", LOG_WARN},
                 {"tower=debug", LOG_INFO},
                 {"queen_s3=loud", LOG_INFO},
                 {"", LOG_INFO},
                 {",,=", LOG_INFO}};

    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct settings settings = read_with("RUST_LOG", cases[i].text);
        ck_assert_msg(settings.log_level == cases[i].level, "%s", cases[i].text);
        settings_free(&settings);
    }
    struct environment environment = least;
    set(&environment, "RUST_LOG", "debug");
    set(&environment, "QUEEN_S3_LOG_LEVEL", "error");
    struct settings settings = must_read(&environment);
    ck_assert_int_eq(settings.log_level, LOG_ERROR);
    settings_free(&settings);
}
END_TEST

START_TEST(reads_the_environment)
{
    struct settings settings;
    struct error error;

    for (size_t i = 0; i < least.count; i++) {
        setenv(least.variables[i].name, least.variables[i].value, 1);
    }
    setenv("QUEEN_S3_SINK", "from-environment", 1);
    ck_assert_int_eq(settings_load(NULL, &settings, &error), 0);
    ck_assert_str_eq(settings.sink, "from-environment");
    settings_free(&settings);
    settings_free(&settings);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("settings");
    TCase *cases = tcase_create("settings");
    tcase_add_test(cases, has_the_documented_defaults);
    tcase_add_loop_test(cases, reads_numbers_within_their_range, 0, (int)LENGTH(numbers));
    tcase_add_loop_test(cases, refuses_what_is_no_number, 0, (int)LENGTH(numbers));
    tcase_add_loop_test(cases, reads_choices_in_any_case, 0, (int)LENGTH(choices));
    tcase_add_test(cases, reads_switches);
    tcase_add_test(cases, takes_the_codec_for_parquet);
    tcase_add_loop_test(cases, reads_texts, 0, (int)LENGTH(texts));
    tcase_add_test(cases, reads_queues_in_order);
    tcase_add_test(cases, reads_many_queues);
    tcase_add_test(cases, understands_rust_log);
    tcase_add_test(cases, reads_the_environment);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
