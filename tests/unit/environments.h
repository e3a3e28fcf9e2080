/*
 * Environments that tests of the settings make up: the least that is accepted, and one or more variables on top.
 */
#ifndef TESTS_UNIT_ENVIRONMENTS_H
#define TESTS_UNIT_ENVIRONMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/settings.h"

#define VARIABLES_MAX 24
#define LENGTH(array) (sizeof(array) / sizeof *(array))

struct variable {
    const char *name;
    const char *value;
};

/* The last of one name counts; NULL takes it away. */
struct environment {
    struct variable variables[VARIABLES_MAX];
    size_t count;
};

/* What has to be set: two queues, a bucket over https, its region and keys. */
extern const struct environment least;

/* For settings_read(); argument is a struct environment. */
settings_lookup environment_find;
void set(struct environment *environment, const char *name, const char *value);

/* Fail the test where the settings are refused. */
struct settings must_read(struct environment *environment);
/* The line that refuses them; static. Fails the test where they are accepted, or where something is left of them. */
const char *must_refuse(struct environment *environment);
/* The least and one variable. */
struct settings read_with(const char *name, const char *value);
const char *refuse_with(const char *name, const char *value);

/* The processors that this process may use. */
int64_t cores(void);

#endif
