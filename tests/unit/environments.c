/* Environments that tests of the settings make up: see environments.h. */
#include "tests/unit/environments.h"

#include <check.h>
#include <sched.h>
#include <string.h>

const struct environment least = {.variables = {{"QUEEN_S3_QUEUES", "orders,clicks"},
                                                {"QUEEN_S3_ENDPOINT", "https://s3.example.com"},
                                                {"QUEEN_S3_REGION", "eu-central-1"},
                                                {"QUEEN_S3_BUCKET", "my-lake"},
                                                {"QUEEN_S3_ACCESS_KEY", "AKIA"},
                                                {"QUEEN_S3_SECRET_KEY", "hidden"}},
                                  .count = 6};

const char *environment_find(void *argument, const char *name)
{
    const struct environment *environment = argument;
    const char *value = NULL;

    for (size_t i = 0; i < environment->count; i++) {
        if (strcmp(environment->variables[i].name, name) == 0) {
            value = environment->variables[i].value;
        }
    }
    return value;
}

void set(struct environment *environment, const char *name, const char *value)
{
    ck_assert_uint_lt(environment->count, VARIABLES_MAX);
    environment->variables[environment->count++] = (struct variable){name, value};
}

struct settings must_read(struct environment *environment)
{
    struct settings settings;
    struct error error;
    int code = settings_read(environment_find, environment, &settings, &error);

    ck_assert_msg(code == 0, "%s", code != 0 ? error.message : "");
    return settings;
}

const char *must_refuse(struct environment *environment)
{
    static struct error error;
    struct settings settings;

    ck_assert_int_eq(settings_read(environment_find, environment, &settings, &error), QS_ERROR_INPUT);
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
    ck_assert_ptr_null(strchr(error.message, '\n'));
    ck_assert_ptr_null(settings.queues);
    ck_assert_ptr_null(settings.queen_url);
    ck_assert_int_eq(settings_read(environment_find, environment, &settings, NULL), QS_ERROR_INPUT);
    return error.message;
}

struct settings read_with(const char *name, const char *value)
{
    struct environment environment = least;

    set(&environment, name, value);
    return must_read(&environment);
}

const char *refuse_with(const char *name, const char *value)
{
    struct environment environment = least;

    set(&environment, name, value);
    return must_refuse(&environment);
}

int64_t cores(void)
{
    cpu_set_t available;

    ck_assert_int_eq(sched_getaffinity(0, sizeof available, &available), 0);
    return CPU_COUNT(&available);
}
