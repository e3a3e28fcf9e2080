/*
 * New settings in the place of the old ones: what changes, what stays and is logged, what is refused.
 */
#include "supervisor/reload.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "environments.h"

static struct environment environment;
static struct settings settings;
static char logged[4096];

static void take(void *argument, enum log_level level, const char *line)
{
    (void)argument;
    ck_assert_int_eq(level, LOG_WARN);
    ck_assert_ptr_nonnull(strstr(line, " has changed, which takes a restart of the whole pool: left as it was"));
    ck_assert_uint_lt(strlen(logged) + strlen(line), sizeof logged - 1);
    strcat(logged, line);
    strcat(logged, "\n");
}

static int read_fresh(void *argument, struct settings *fresh, struct error *error)
{
    return settings_read(environment_find, argument, fresh, error);
}

static void begin(void)
{
    environment = least;
    set(&environment, "QUEEN_S3_WORKERS", "2");
    settings = must_read(&environment);
    logged[0] = '\0';
    log_capture(take, NULL);
}

static void end(void)
{
    log_capture(NULL, NULL);
    settings_free(&settings);
}

static void reload(void)
{
    struct error error;

    ck_assert_msg(reload_settings(&settings, 2, read_fresh, &environment, &error) == 0, "%s", error.message);
}

START_TEST(what_can_change_does)
{
    set(&environment, "QUEEN_S3_MAX_WINDOW_MS", "1234");
    set(&environment, "QUEEN_S3_BUCKET", "other-bucket");
    set(&environment, "QUEEN_S3_SECRET_KEY", "other");
    set(&environment, "QUEEN_S3_MEMORY_MB", "777");
    set(&environment, "QUEEN_S3_LOG_LEVEL", "error");
    set(&environment, "QUEEN_S3_INSTANCE", "named");
    reload();
    ck_assert_int_eq(settings.max_window_ms, 1234);
    ck_assert_str_eq(settings.bucket, "other-bucket");
    ck_assert_str_eq(settings.secret_key, "other");
    ck_assert_int_eq(settings.memory_bytes, INT64_C(777) << 20);
    ck_assert_int_eq(settings.log_level, LOG_ERROR);
    ck_assert_str_eq(settings.instance, "named");
    ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(what_takes_a_real_restart_stays_and_is_logged)
{
    static const struct {
        const char *name;
        const char *value;
    } cases[] = {
        {"QUEEN_S3_SINK", "other"},
        {"QUEEN_S3_QUEUES", "one,other,third"},
        {"QUEEN_S3_QUEUES", "*"},
        {"QUEEN_S3_WORKERS", "1"},
        {"QUEEN_S3_LISTEN", "127.0.0.1:1234"},
        {"QUEEN_S3_LISTEN", "[::1]:9464"},
        {"QUEEN_S3_CONTROL", "/tmp/socket"},
        {"QUEEN_S3_CONTROL", "off"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct settings before = settings;
        const char *lines;

        environment = least;
        set(&environment, "QUEEN_S3_WORKERS", "2");
        set(&environment, cases[i].name, cases[i].value);
        set(&environment, "QUEEN_S3_MAX_WINDOW_MS", i % 2 == 0 ? "5000" : "6000");
        logged[0] = '\0';
        reload();
        ck_assert_msg(strstr(logged, cases[i].name) != NULL, "%s: %s", cases[i].name, logged);
        lines = strchr(logged, '\n');
        ck_assert_str_eq(lines, "\n"); /* one */
        ck_assert_ptr_eq(settings.sink, before.sink);
        ck_assert_ptr_eq(settings.queues, before.queues);
        ck_assert_uint_eq(settings.queue_count, before.queue_count);
        ck_assert_int_eq(settings.all_queues, before.all_queues);
        ck_assert_int_eq(settings.workers, before.workers);
        ck_assert_ptr_eq(settings.listen_host, before.listen_host);
        ck_assert_ptr_eq(settings.listen_port, before.listen_port);
        ck_assert_ptr_eq(settings.control, before.control);
        ck_assert_int_eq(settings.max_window_ms, i % 2 == 0 ? 5000 : 6000);
    }
}
END_TEST

static int read_made_up(void *argument, struct settings *fresh, struct error *error)
{
    int code = read_fresh(argument, fresh, error);

    fresh->instance_generated = true;
    fresh->instance[0] = '#';
    return code;
}

START_TEST(an_instance_that_was_made_up_stays_the_same)
{
    const char *before = settings.instance;
    struct error error;

    settings.instance_generated = true;
    ck_assert_int_eq(reload_settings(&settings, 2, read_made_up, &environment, &error), 0);
    ck_assert_ptr_eq(settings.instance, before);
    ck_assert_int_ne(settings.instance[0], '#');
}
END_TEST

START_TEST(what_is_refused_changes_nothing)
{
    struct settings before = settings;
    struct error error;

    set(&environment, "QUEEN_S3_MAX_WINDOW_MS", "soon");
    ck_assert_int_eq(reload_settings(&settings, 2, read_fresh, &environment, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_S3_MAX_WINDOW_MS"));
    ck_assert_mem_eq(&settings, &before, sizeof settings);
    set(&environment, "QUEEN_S3_MAX_WINDOW_MS", NULL);
    set(&environment, "QUEEN_S3_MEMORY_MB", "64");
    set(&environment, "QUEEN_S3_WORKERS", "1"); /* which isn't how many there are */
    ck_assert_int_eq(reload_settings(&settings, 3, read_fresh, &environment, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_S3_MEMORY_MB=64: expected at least 80 for 3 workers"));
    ck_assert_mem_eq(&settings, &before, sizeof settings);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reload");
    TCase *tests = tcase_create("settings");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, what_can_change_does);
    tcase_add_test(tests, what_takes_a_real_restart_stays_and_is_logged);
    tcase_add_test(tests, an_instance_that_was_made_up_stays_the_same);
    tcase_add_test(tests, what_is_refused_changes_nothing);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
