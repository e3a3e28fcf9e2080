/*
 * What a person is told about each setting is complete, is well formed, and is what the program does: accepted is the
 * text of the line that refuses, a default is what is read where the variable is unset.
 */
#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/setting_table.h"
#include "tests/unit/environments.h"

/* No setting accepts it, but where any text is one. */
#define NONSENSE "%%% not % this"

static size_t count(void)
{
    struct setting setting;
    size_t size = 0;

    while (setting_at(size, &setting)) {
        size++;
    }
    return size;
}

START_TEST(describes_each_setting)
{
    struct setting setting;
    struct setting again;

    ck_assert_uint_ge(count(), 45);
    for (size_t i = 0; setting_at(i, &setting); i++) {
        ck_assert_msg(setting.description != NULL && setting.accepted != NULL, "%s", setting.name);
        size_t size = strlen(setting.description);
        ck_assert_msg(size > 20 && setting.description[size - 1] == '.', "%s", setting.name);
        ck_assert_msg(isupper((unsigned char)setting.description[0]), "%s", setting.name);
        ck_assert_msg(strstr(setting.description, "  ") == NULL, "%s", setting.name);
        ck_assert_msg(strpbrk(setting.description, "\n\t\r") == NULL, "%s", setting.name);
        ck_assert_msg(setting.accepted[strlen(setting.accepted) - 1] != '.' || strstr(setting.accepted, "..") != NULL,
                      "%s", setting.name);
        ck_assert(setting_find(setting.name, &again));
        ck_assert_ptr_eq(again.description, setting.description);
        ck_assert_msg((setting.flags & SETTING_REQUIRED) == 0 || setting.initial == NULL, "%s", setting.name);
    }
    ck_assert(!setting_find("QUEEN_S3_BUKET", &setting));
    ck_assert(!setting_find("queen_s3_bucket", &setting));
}
END_TEST

START_TEST(names_each_once)
{
    struct setting setting;
    struct setting other;

    for (size_t i = 0; setting_at(i, &setting); i++) {
        for (size_t j = i + 1; setting_at(j, &other); j++) {
            ck_assert_str_ne(setting.name, other.name);
        }
    }
}
END_TEST

START_TEST(pairs_secrets_with_their_files)
{
    struct setting setting;
    struct setting other;
    size_t files = 0;

    for (size_t i = 0; setting_at(i, &setting); i++) {
        if (setting.file_of == NULL) {
            continue;
        }
        files++;
        ck_assert(setting_find(setting.file_of, &other));
        ck_assert((other.flags & SETTING_SECRET) != 0);
        ck_assert_int_eq(strncmp(setting.name, other.name, strlen(other.name)), 0);
        ck_assert_str_eq(setting.name + strlen(other.name), "_FILE");
    }
    ck_assert_uint_eq(files, 2);
}
END_TEST

static bool takes_any_text(const struct setting *setting)
{
    static const char *const names[] = {"QUEEN_TOKEN",         "QUEEN_S3_SECRET_KEY", "QUEEN_S3_INSTANCE",
                                        "QUEEN_S3_CONNECTORS", "QUEEN_S3_QUEUES",     "QUEEN_S3_PREFIX"};

    for (size_t i = 0; i < LENGTH(names); i++) {
        if (strcmp(names[i], setting->name) == 0) {
            return true;
        }
    }
    return (setting->flags & (SETTING_BROKERS | SETTING_SHARED)) != 0;
}

START_TEST(says_of_each_what_its_error_says)
{
    struct setting setting;
    char expected[512];
    size_t refused = 0;

    for (size_t i = 0; setting_at(i, &setting); i++) {
        if (takes_any_text(&setting) || (setting.flags & SETTING_REFUSED) != 0) {
            continue;
        }
        struct environment environment = least;
        if (setting.file_of != NULL) {
            set(&environment, setting.file_of, NULL);
        }
        set(&environment, setting.name, NONSENSE);
        const char *line = must_refuse(&environment);
        snprintf(expected, sizeof expected, ": expected %s", setting.accepted);
        ck_assert_msg(strncmp(line, setting.name, strlen(setting.name)) == 0, "%s: %s", setting.name, line);
        ck_assert_msg(strstr(line, expected) != NULL, "%s: %s", setting.name, line);
        refused++;
    }
    ck_assert_uint_ge(refused, 30);
}
END_TEST

START_TEST(requires_what_it_calls_required)
{
    struct setting setting;
    char expected[128];

    for (size_t i = 0; setting_at(i, &setting); i++) {
        struct environment environment = least;
        set(&environment, setting.name, NULL);
        if ((setting.flags & SETTING_REQUIRED) != 0) {
            const char *line = must_refuse(&environment);
            snprintf(expected, sizeof expected, "%s is not set: expected ", setting.name);
            ck_assert_msg(strncmp(line, expected, strlen(expected)) == 0, "%s", line);
        } else {
            struct settings settings = must_read(&environment);
            settings_free(&settings);
        }
    }
}
END_TEST

/* The boot line with a default left out and with it written down are the same. */
START_TEST(reads_the_defaults_it_names)
{
    struct setting setting;
    size_t read = 0;

    for (size_t i = 0; setting_at(i, &setting); i++) {
        /* What is no value but says where one comes from. */
        if (setting.initial == NULL || strpbrk(setting.initial, " (<") != NULL) {
            continue;
        }
        struct environment environment = least;
        struct settings plain = must_read(&environment);
        set(&environment, setting.name, setting.initial);
        struct settings written = must_read(&environment);
        char *line = settings_boot_line(&plain);
        char *other = settings_boot_line(&written);
        ck_assert_str_eq(line, other);
        ck_assert_int_eq(plain.log_level, written.log_level);
        ck_assert_int_eq(plain.log_json, written.log_json);
        ck_assert_int_eq(plain.shutdown_grace_ms, written.shutdown_grace_ms);
        free(line);
        free(other);
        settings_free(&plain);
        settings_free(&written);
        read++;
    }
    ck_assert_uint_ge(read, 20);
}
END_TEST

static const char *asked[256];
static size_t asked_count;

static const char *note_and_find(void *argument, const char *name)
{
    ck_assert_uint_lt(asked_count, LENGTH(asked));
    asked[asked_count++] = name;
    return environment_find(argument, name);
}

static bool was_asked_for(const char *name)
{
    for (size_t i = 0; i < asked_count; i++) {
        if (strcmp(asked[i], name) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(is_all_that_is_looked_up_and_no_more)
{
    struct environment environment = least;
    struct settings settings;
    struct setting setting;
    struct error error;

    asked_count = 0;
    ck_assert_int_eq(settings_read(note_and_find, &environment, &settings, &error), 0);
    settings_free(&settings);
    for (size_t i = 0; i < asked_count; i++) {
        ck_assert_msg(setting_find(asked[i], &setting), "%s", asked[i]);
    }
    for (size_t i = 0; setting_at(i, &setting); i++) {
        ck_assert_msg(was_asked_for(setting.name) || (setting.flags & SETTING_BROKERS) != 0, "%s", setting.name);
    }
}
END_TEST

START_TEST(ignores_what_is_the_brokers)
{
    struct environment environment = least;

    set(&environment, "QUEEN_S3_EMBEDDED", "\001");
    set(&environment, "QUEEN_S3_BIN", "no such file\xFF");
    struct settings settings = must_read(&environment);
    settings_free(&settings);
}
END_TEST

START_TEST(suggests_what_was_meant)
{
    ck_assert_str_eq(setting_nearest("QUEEN_S3_BUKET"), "QUEEN_S3_BUCKET");
    ck_assert_str_eq(setting_nearest("QUEEN_S3_TARGET"), "QUEEN_S3_TARGET_MB");
    ck_assert_str_eq(setting_nearest("QUEEN_S3_SECRETKEY"), "QUEEN_S3_SECRET_KEY");
    ck_assert_ptr_null(setting_nearest("QUEEN_S3_PARTITION")); /* what would be refused is no help */
    ck_assert_ptr_null(setting_nearest("PATH"));
}
END_TEST

int main(void)
{
    Suite *all = suite_create("setting_table");
    TCase *cases = tcase_create("setting_table");
    tcase_add_test(cases, describes_each_setting);
    tcase_add_test(cases, names_each_once);
    tcase_add_test(cases, pairs_secrets_with_their_files);
    tcase_add_test(cases, says_of_each_what_its_error_says);
    tcase_add_test(cases, requires_what_it_calls_required);
    tcase_add_test(cases, reads_the_defaults_it_names);
    tcase_add_test(cases, is_all_that_is_looked_up_and_no_more);
    tcase_add_test(cases, ignores_what_is_the_brokers);
    tcase_add_test(cases, suggests_what_was_meant);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
