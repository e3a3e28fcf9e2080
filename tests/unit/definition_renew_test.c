/*
 * Definitions read again: what takes the place of what, what stays, and what is said of it.
 */
#include "worker/connector/definition.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/unit/folders.h"

#define STAYS "goes on with the definition that it has: "

static char folder[64];
static struct definitions definitions;
static struct definitions fresh;
static char logged[4096];

static void take(void *argument, enum log_level level, const char *line)
{
    (void)argument;
    (void)level;
    ck_assert_uint_lt(strlen(logged) + strlen(line), sizeof logged - 1);
    strcat(logged, line);
    strcat(logged, "\n");
}

static void define_in(const char *file, const char *key, const char *more, const char *options)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "type = 'sink'\nname = 'n'\npath = 'p'\nkey = '%s'\n%s\n[[topics]]\ntopics = ['t']\n"
                   "schema = 'json'\n[plugin_config]\nbucket = 'b'\nendpoint = 'file:///lakes'\nregion = 'r'\n%s\n",
                   key, more, options);
    char name[64];
    (void)snprintf(name, sizeof name, "%s.toml", file);
    folder_write(folder, name, text);
}

static void define(const char *key, const char *more, const char *options)
{
    char with_version[64];
    (void)snprintf(with_version, sizeof with_version, "version = 1\n%s", more);
    define_in(key, key, with_version, options);
}

static void load(struct definitions *out)
{
    struct error error;
    char *environment[] = {NULL};
    const char *path = folder;
    ck_assert_int_eq(definitions_load(&path, 1, environment, out, &error), 0);
}

static void begin(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/definition-renew-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    define("clicks", "enabled = true", "max_file_age = '1m'");
    define("orders", "enabled = true", "max_file_age = '1m'");
    load(&definitions);
    ck_assert_uint_eq(definitions.count, 2);
    logged[0] = '\0';
    log_capture(take, NULL);
}

static void end(void)
{
    log_capture(NULL, NULL);
    definitions_free(&definitions);
    folder_remove(folder);
}

/* Reads them again. Of all that is logged there is this line, which may go on; "": nothing is. */
static void renew(const char *subject, const char *words)
{
    char line[512];

    load(&fresh);
    definitions_renew(&definitions, &fresh);
    definitions_free(&fresh);
    (void)snprintf(line, sizeof line, " %s: %s", subject, words);
    ck_assert_msg(words[0] == '\0' ? logged[0] == '\0' : strstr(logged, line) != NULL, "%sinstead of: %s", logged,
                  line);
    ck_assert_ptr_eq(strchr(logged, '\n'), strrchr(logged, '\n'));
    ck_assert_uint_eq(definitions.count, 2);
    ck_assert_str_eq(definitions.list[0].key, "clicks");
    ck_assert_str_eq(definitions.list[1].key, "orders");
}

static const char *in_folder(const char *before, const char *file)
{
    static char words[256];

    (void)snprintf(words, sizeof words, "%s%s/%s", before, folder, file);
    return words;
}

static void expect_ages(int64_t clicks, int64_t orders)
{
    ck_assert_int_eq(definitions.list[0].options.max_file_age_ms, clicks);
    ck_assert_int_eq(definitions.list[1].options.max_file_age_ms, orders);
}

START_TEST(what_is_other_counts_from_now_on)
{
    const char *key = definitions.list[1].key;

    define("orders", "enabled = true", "max_file_age = '2m'");
    renew("", "");
    expect_ages(60000, 120000);
    ck_assert_ptr_eq(definitions.list[1].key, key); /* whoever knows it by that still does */
    define("orders", "enabled = true", "");
    renew("", "");
    expect_ages(60000, 0);
}
END_TEST

START_TEST(a_broken_one_stays_as_it_was_alone)
{
    define("clicks", "enabled = true", "max_file_age = '3m'");
    define("orders", "enabled = true", "max_file_age = 'soon'");
    renew("orders", in_folder(STAYS, "orders.toml: [plugin_config]: "));
    expect_ages(180000, 60000);
}
END_TEST

/* It doesn't say whose it is, but by the file's name. */
START_TEST(one_that_is_no_toml_stays_as_it_was)
{
    folder_write(folder, "orders.toml", "key = 'orders\n");
    renew("orders", in_folder(STAYS, "orders.toml: line 1"));
    expect_ages(60000, 60000);
}
END_TEST

START_TEST(an_older_version_beside_it_does_not_step_in)
{
    define_in("older", "orders", "version = 0\nenabled = true", "");
    renew("", "");
    expect_ages(60000, 60000);
    folder_write(folder, "orders.toml", "key = 'orders\n");
    renew("orders", in_folder(STAYS, "orders.toml: line 1"));
    expect_ages(60000, 60000);
}
END_TEST

START_TEST(one_that_is_not_there_any_more_stays)
{
    define("orders", "enabled = false", "");
    renew("orders", STAYS "no file has an enabled one of its key any more");
    expect_ages(60000, 60000);
}
END_TEST

START_TEST(a_new_one_stays_out)
{
    define("views", "enabled = true", "");
    renew("views", in_folder("", "views.toml: a new definition, which takes a restart of the whole pool\n"));
}
END_TEST

START_TEST(a_new_one_that_is_broken_is_told_of)
{
    folder_write(folder, "views.toml", "key = 'views'\n");
    renew("views", in_folder("the connector stays down: ", "views.toml: "));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("definition_renew");
    TCase *cases = tcase_create("definition_renew");

    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, what_is_other_counts_from_now_on);
    tcase_add_test(cases, a_broken_one_stays_as_it_was_alone);
    tcase_add_test(cases, one_that_is_no_toml_stays_as_it_was);
    tcase_add_test(cases, an_older_version_beside_it_does_not_step_in);
    tcase_add_test(cases, one_that_is_not_there_any_more_stays);
    tcase_add_test(cases, a_new_one_stays_out);
    tcase_add_test(cases, a_new_one_that_is_broken_is_told_of);
    suite_add_tcase(suite, cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
