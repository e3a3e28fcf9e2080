/*
 * What settings have to be to each other, how they are refused without showing a secret, and the boot line: spec 3.1.
 */
#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/settings.h"
#include "common/settings_parse.h"
#include "tests/unit/environments.h"

START_TEST(refuses_a_static_list_of_partitions)
{
    const char *line = refuse_with("QUEEN_S3_PARTITIONS", "a,b");

    ck_assert_ptr_nonnull(strstr(line, "QUEEN_S3_PARTITIONS=a,b"));
    ck_assert_ptr_nonnull(strstr(line, "safeTime"));
    ck_assert_ptr_nonnull(strstr(line, "POST /api/v1/partitions/changed"));
    struct settings settings = read_with("QUEEN_S3_PARTITIONS", "  ");
    settings_free(&settings);
}
END_TEST

START_TEST(says_what_is_missing)
{
    static const char *const required[] = {"QUEEN_S3_QUEUES", "QUEEN_S3_ENDPOINT",   "QUEEN_S3_REGION",
                                           "QUEEN_S3_BUCKET", "QUEEN_S3_ACCESS_KEY", "QUEEN_S3_SECRET_KEY"};
    char start[64];

    snprintf(start, sizeof start, "%s is not set: expected ", required[_i]);
    const char *line = refuse_with(required[_i], NULL);
    ck_assert_msg(strncmp(line, start, strlen(start)) == 0, "%s", line);
    line = refuse_with(required[_i], "\t ");
    ck_assert_msg(strncmp(line, start, strlen(start)) == 0, "%s", line);
}
END_TEST

START_TEST(needs_no_region_or_keys_for_a_folder)
{
    struct environment environment = {
        .variables = {{"QUEEN_S3_QUEUES", "a"}, {"QUEEN_S3_ENDPOINT", "file:///lake"}, {"QUEEN_S3_BUCKET", "b"}},
        .count = 3};
    struct settings settings = must_read(&environment);

    ck_assert_str_eq(settings.file_root, "/lake");
    ck_assert_ptr_null(settings.region);
    ck_assert_ptr_null(settings.access_key);
    char *line = settings_boot_line(&settings);
    ck_assert_ptr_nonnull(strstr(line, " s3=file:///lake bucket=b prefix=queen region=- addressing="));
    free(line);
    settings_free(&settings);
    set(&environment, "QUEEN_S3_ACCESS_KEY", "a");
    ck_assert_ptr_nonnull(strstr(must_refuse(&environment), "both keys or neither"));
    set(&environment, "QUEEN_S3_ACCESS_KEY", NULL);
    set(&environment, "QUEEN_S3_SECRET_KEY", "hidden");
    ck_assert_ptr_nonnull(strstr(must_refuse(&environment), "both keys or neither"));
    set(&environment, "QUEEN_S3_ACCESS_KEY", "a");
    settings = must_read(&environment);
    settings_free(&settings);
}
END_TEST

/* Commands that only read the bucket, and those that only name it (no keys). */
START_TEST(needs_only_the_bucket_for_commands)
{
    struct environment environment = least;
    struct settings settings;
    struct error error;

    set(&environment, "QUEEN_S3_QUEUES", NULL);
    set(&environment, "QUEEN_S3_WORKERS", "1000"); /* for which there is too little memory */
    ck_assert_int_eq(settings_read_bucket(environment_find, &environment, true, &settings, &error), 0);
    settings_free(&settings);
    set(&environment, "QUEEN_S3_SECRET_KEY", NULL);
    ck_assert_int_eq(settings_read_bucket(environment_find, &environment, false, &settings, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "both keys or neither"));
    set(&environment, "QUEEN_S3_ACCESS_KEY", NULL);
    ck_assert_int_eq(settings_read_bucket(environment_find, &environment, true, &settings, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_S3_ACCESS_KEY"));
    ck_assert_int_eq(settings_read_bucket(environment_find, &environment, false, &settings, &error), 0);
    settings_free(&settings);
    set(&environment, "QUEEN_S3_TARGET_MB", "0");
    ck_assert_int_eq(settings_read_bucket(environment_find, &environment, false, &settings, &error), QS_ERROR_INPUT);
    set(&environment, "QUEEN_S3_TARGET_MB", NULL);
    set(&environment, "QUEEN_S3_BUCKET", NULL);
    ck_assert_int_eq(settings_read_bucket(environment_find, &environment, false, &settings, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_S3_BUCKET"));
}
END_TEST

START_TEST(needs_no_queues_beside_connectors)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_QUEUES", NULL);
    set(&environment, "QUEEN_S3_CONNECTORS", "/etc/connectors");
    struct settings settings = must_read(&environment);
    ck_assert_uint_eq(settings.queue_count, 0);
    ck_assert_int_eq(settings.workers, 1);
    char *line = settings_boot_line(&settings);
    ck_assert_ptr_nonnull(strstr(line, " queues=- partitions="));
    free(line);
    settings_free(&settings);
}
END_TEST

START_TEST(takes_a_kms_key_only_with_kms)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_SSE_KMS_KEY_ID", "1234-cafe");
    ck_assert_ptr_nonnull(strstr(must_refuse(&environment), "QUEEN_S3_SSE_KMS_KEY_ID=1234-cafe: expected "));
    set(&environment, "QUEEN_S3_SSE", "AES256");
    ck_assert_ptr_nonnull(strstr(must_refuse(&environment), "QUEEN_S3_SSE_KMS_KEY_ID=1234-cafe: expected "));
    set(&environment, "QUEEN_S3_SSE", "aws:kms");
    struct settings settings = must_read(&environment);
    ck_assert_str_eq(settings.sse_kms_key_id, "1234-cafe");
    settings_free(&settings);
}
END_TEST

/* A file that holds size bytes; its name is kept until the next call. */
static const char *file_of(const char *bytes, size_t size)
{
    static char path[64];

    strcpy(path, "/tmp/settings-test-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
    return path;
}

START_TEST(reads_secrets_from_files)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_SECRET_KEY", NULL);
    set(&environment, "QUEEN_S3_SECRET_KEY_FILE", file_of(" a secret \n", 11));
    struct settings settings = must_read(&environment);
    ck_assert_str_eq(settings.secret_key, " a secret ");
    settings_free(&settings);
    set(&environment, "QUEEN_S3_SECRET_KEY", "other");
    ck_assert_ptr_nonnull(strstr(must_refuse(&environment), "not both"));
    unlink(environment_find(&environment, "QUEEN_S3_SECRET_KEY_FILE"));
    settings = read_with("QUEEN_TOKEN_FILE", file_of("token", 5));
    ck_assert_str_eq(settings.queen_token, "token");
    settings_free(&settings);
}
END_TEST

START_TEST(refuses_a_file_without_a_secret)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {{"", 0}, {"\n", 1}, {"hidden\ntwo\n", 11}, {"hidden\n\n", 8}, {"hid\0den", 7}, {"hidden\r\n", 8}};

    for (size_t i = 0; i < LENGTH(bad); i++) {
        const char *path = file_of(bad[i].bytes, bad[i].size);
        const char *line = refuse_with("QUEEN_TOKEN_FILE", path);
        ck_assert_ptr_nonnull(strstr(line, path));
        ck_assert_ptr_null(strstr(line, "hid"));
        unlink(path);
    }
    char *large = malloc(100000);
    memset(large, 'x', 100000);
    const char *path = file_of(large, 100000);
    refuse_with("QUEEN_TOKEN_FILE", path);
    unlink(path);
    free(large);
    ck_assert_str_eq(refuse_with("QUEEN_TOKEN_FILE", "/nowhere/at/all"),
                     "QUEEN_TOKEN_FILE=/nowhere/at/all: expected a readable file that holds the secret in one line "
                     "(No such file or directory)");
    ck_assert_ptr_nonnull(strstr(refuse_with("QUEEN_TOKEN_FILE", "/"), "(Is a directory)"));
    ck_assert_ptr_nonnull(strstr(refuse_with("QUEEN_CA_FILE", "/"), "(Is a directory)"));
    ck_assert_ptr_nonnull(strstr(refuse_with("QUEEN_S3_CA_FILE", "/nowhere"), "(No such file or directory)"));
}
END_TEST

START_TEST(shows_no_secret)
{
    static const struct variable bad[] = {{"QUEEN_TOKEN", "hid\001den"},
                                          {"QUEEN_S3_SECRET_KEY", "hid\nden"},
                                          {"QUEEN_S3_ACCESS_KEY", "hid den"},
                                          {"QUEEN_URL", "http://user:hidden@h:x"},
                                          {"QUEEN_URL", "http://user:hidden/@h"},
                                          {"QUEEN_URL", "user:hidden@h"},
                                          {"QUEEN_S3_ENDPOINT", "https://user:hidden@h"}};

    for (size_t i = 0; i < LENGTH(bad); i++) {
        const char *line = refuse_with(bad[i].name, bad[i].value);
        ck_assert_msg(strstr(line, "hid") == NULL && strstr(line, "user") == NULL, "%s", line);
    }
    struct environment environment = least;
    set(&environment, "QUEEN_URL", "https://user:hidden@queen:6632/a@b");
    set(&environment, "QUEEN_TOKEN", "hidden");
    struct settings settings = must_read(&environment);
    char *line = settings_boot_line(&settings);
    ck_assert_ptr_null(strstr(line, "hidden"));
    ck_assert_ptr_nonnull(strstr(line, " queen=https://queen:6632/a@b token=<set> "));
    free(line);
    settings_free(&settings);
}
END_TEST

START_TEST(refuses_in_one_readable_line)
{
    char text[2000];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    const char *line = refuse_with("QUEEN_S3_FORMAT", text);
    ck_assert_uint_lt(strlen(line), 300);
    ck_assert_ptr_nonnull(strstr(line, "…: expected jsonl or parquet"));
    ck_assert_str_eq(refuse_with("QUEEN_S3_TARGET_MB", "abc"),
                     "QUEEN_S3_TARGET_MB=abc: expected a whole number from 1 to 5120");
    ck_assert_str_eq(refuse_with("QUEEN_S3_FORMAT", "a\033[2J\nb"),
                     "QUEEN_S3_FORMAT=a?[2J?b: expected UTF-8 text without control bytes");
    line = refuse_with("QUEEN_S3_ENDPOINT", "https://h:9000/a");
    ck_assert_ptr_nonnull(strstr(line, "QUEEN_S3_ENDPOINT=https://h:9000/a: expected "));
    ck_assert_ptr_nonnull(strstr(line, "QUEEN_S3_PREFIX"));
    memset(text, 'a', sizeof text - 1);
    text[159] = (char)0xC3;
    text[160] = (char)0xA8;
    ck_assert_ptr_nonnull(strstr(refuse_with("QUEEN_S3_ALIGN", text), "aa…: expected hour"));
}
END_TEST

START_TEST(asks_for_the_memory_that_workers_need)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_WORKERS", "900");
    set(&environment, "QUEEN_S3_MEMORY_MB", "63");
    const char *line = must_refuse(&environment);
    ck_assert_ptr_nonnull(strstr(line, "QUEEN_S3_MEMORY_MB=63: expected at least 64 for 2 workers"));
    set(&environment, "QUEEN_S3_MEMORY_MB", "64");
    struct settings settings = must_read(&environment);
    ck_assert_int_eq(settings.workers, 900);
    settings_free(&settings);
    set(&environment, "QUEEN_S3_QUEUES", "*");
    ck_assert_ptr_nonnull(strstr(must_refuse(&environment), "expected at least 14432 for 900 workers"));
    set(&environment, "QUEEN_S3_MEMORY_MB", "14432");
    settings = must_read(&environment);
    settings_free(&settings);
    set(&environment, "QUEEN_S3_WORKERS", NULL);
    settings = must_read(&environment);
    ck_assert_int_eq(settings.workers, cores() < 1024 ? cores() : 1024);
    settings_free(&settings);
}
END_TEST

START_TEST(spells_the_boot_line)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_ENDPOINT", "https://s3.eu-central-1.amazonaws.com");
    set(&environment, "QUEEN_S3_INSTANCE", "sink-0");
    set(&environment, "QUEEN_TOKEN", "hidden");
    set(&environment, "QUEEN_S3_SSE", "aes256");
    set(&environment, "QUEEN_S3_WORKERS", "2");
    struct settings settings = must_read(&environment);
    char *line = settings_boot_line(&settings);
    ck_assert_str_eq(
        line, "queen-s3 1.5.0 sink=default instance=sink-0 queues=orders,clicks partitions=discovery "
              "queen=http://localhost:6632 token=<set> s3=https://s3.eu-central-1.amazonaws.com bucket=my-lake "
              "prefix=queen region=eu-central-1 addressing=virtual-host sse=AES256 format=jsonl compression=zstd "
              "layout=merged align=hour target_mb=128 max_window_ms=300000 start=latest checkpoint_every=20 "
              "memory_mb=1024 fetch_concurrency=4 discovery_interval_ms=2000 safe_guard_ms=5000 lease_ttl_ms=30000 "
              "multipart_threshold_mb=64 listen=127.0.0.1:9333 crash_at=never workers=2");
    free(line);
    settings_free(&settings);
}
END_TEST

START_TEST(spells_the_other_boot_line)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_QUEUES", "*");
    set(&environment, "QUEEN_S3_INSTANCE", "i");
    set(&environment, "QUEEN_S3_PATH_STYLE", "on");
    set(&environment, "QUEEN_S3_SSE", "AWS:KMS");
    set(&environment, "QUEEN_S3_SSE_KMS_KEY_ID", "arn:aws:kms:1:key/0000cafe");
    set(&environment, "QUEEN_S3_FORMAT", "PARQUET");
    set(&environment, "QUEEN_S3_PARQUET_CODEC", "snappy");
    set(&environment, "QUEEN_S3_LAYOUT", "PER-partition");
    set(&environment, "QUEEN_S3_ALIGN", "none");
    set(&environment, "QUEEN_S3_START", "Earliest");
    set(&environment, "QUEEN_S3_LISTEN", "[::1]:0");
    set(&environment, "QUEEN_S3_CRASH_AT", "mid_upload");
    set(&environment, "QUEEN_S3_WORKERS", "3");
    struct settings settings = must_read(&environment);
    settings.instance_generated = true;
    char *line = settings_boot_line(&settings);
    ck_assert_str_eq(
        line, "queen-s3 1.5.0 sink=default instance=i(generated) queues=* partitions=discovery "
              "queen=http://localhost:6632 token=<unset> s3=https://s3.example.com bucket=my-lake "
              "prefix=queen region=eu-central-1 addressing=path-style sse=aws:kms(…cafe) format=parquet "
              "compression=snappy layout=per-partition align=none target_mb=128 max_window_ms=300000 start=earliest "
              "checkpoint_every=20 memory_mb=1024 fetch_concurrency=4 discovery_interval_ms=2000 safe_guard_ms=5000 "
              "lease_ttl_ms=30000 multipart_threshold_mb=64 listen=[::1]:0 crash_at=mid_upload workers=3");
    free(line);
    settings_free(&settings);
}
END_TEST

/* In a host without a name, which takes a namespace of our own; where that is not allowed there is nothing to see. */
START_TEST(makes_up_an_instance_without_a_hostname)
{
    pid_t child = fork();
    int status = 0;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct environment environment = least;
        if (unshare(CLONE_NEWUTS) != 0 || sethostname("", 0) != 0) {
            _exit(0);
        }
        struct settings settings = must_read(&environment);
        bool right = settings.instance_generated && strncmp(settings.instance, "queen-s3-", 9) == 0;
        settings_free(&settings);
        _exit(right ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(spells_the_boot_line_of_connectors_alone)
{
    struct environment environment = {0};
    struct settings settings;
    struct error error;

    set(&environment, "QUEEN_S3_SINK", "connect-orders");
    set(&environment, "QUEEN_S3_LISTEN", "[::1]:0");
    const struct settings_source source = {environment_find, NULL, &environment};
    ck_assert_int_eq(settings_read_from(&source, SETTING_NEED_NOTHING, &settings, &error), 0);
    char *line = settings_boot_line(&settings);
    ck_assert_str_eq(line, "queen-s3 1.5.0 sink=connect-orders memory_mb=1024 listen=[::1]:0 shutdown_grace_ms=30000");
    free(line);
    settings_free(&settings);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("settings rules");
    TCase *cases = tcase_create("settings rules");
    tcase_add_test(cases, refuses_a_static_list_of_partitions);
    tcase_add_loop_test(cases, says_what_is_missing, 0, 6);
    tcase_add_test(cases, needs_no_region_or_keys_for_a_folder);
    tcase_add_test(cases, needs_only_the_bucket_for_commands);
    tcase_add_test(cases, needs_no_queues_beside_connectors);
    tcase_add_test(cases, takes_a_kms_key_only_with_kms);
    tcase_add_test(cases, reads_secrets_from_files);
    tcase_add_test(cases, refuses_a_file_without_a_secret);
    tcase_add_test(cases, shows_no_secret);
    tcase_add_test(cases, refuses_in_one_readable_line);
    tcase_add_test(cases, asks_for_the_memory_that_workers_need);
    tcase_add_test(cases, spells_the_boot_line);
    tcase_add_test(cases, spells_the_other_boot_line);
    tcase_add_test(cases, spells_the_boot_line_of_connectors_alone);
    tcase_add_test(cases, makes_up_an_instance_without_a_hostname);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
