/*
 * Where a process has its settings from: the environment, and behind it a configuration file (spec 3.1, 4.4).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/settings_file.h"
#include "common/settings_parse.h"

static const char family[] = "QUEEN_S3_";

static bool is_set(const char *value)
{
    if (value == NULL) {
        return false;
    }
    while (isspace((unsigned char)*value)) {
        value++;
    }
    return *value != '\0';
}

static const char *find(void *argument, const char *name)
{
    const struct settings_file *file = argument;
    const char *value = getenv(name);

    if (is_set(value)) {
        return value;
    }
    const struct settings_file_entry *entry = settings_file_find(file, name);
    return entry != NULL ? entry->value : NULL;
}

static void say_where(void *argument, const char *name, struct error *error)
{
    const struct settings_file *file = argument;
    const struct settings_file_entry *entry = settings_file_find(file, name);

    if (entry != NULL && !is_set(getenv(name))) {
        error_prefix(error, "%s:%zu", file->path, entry->line);
    }
}

static int load(const char *path, enum setting_need need, struct settings *settings, struct error *error)
{
    struct settings_file file = {0};
    const struct settings_source source = {find, say_where, &file};
    int code = path != NULL ? settings_file_read(path, &file, error) : 0;

    if (code == 0) {
        code = settings_read_from(&source, need, settings, error);
        settings_file_free(&file);
    }
    return code;
}

int settings_load(const char *file, struct settings *settings, struct error *error)
{
    return load(file, SETTING_NEED_ALL, settings, error);
}

int settings_load_connect(const char *file, struct settings *settings, struct error *error)
{
    return load(file, SETTING_NEED_NOTHING, settings, error);
}

int settings_load_bucket(const char *file, bool keys, struct settings *settings, struct error *error)
{
    return load(file, keys ? SETTING_NEED_BUCKET : SETTING_NEED_PLACE, settings, error);
}

int settings_load_control(const char *file, struct settings *settings, struct error *error)
{
    return load(file, SETTING_NEED_CONTROL, settings, error);
}

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* What Kubernetes tells of a service called queen-s3, in every pod of its namespace. */
static bool is_service_link(const char *rest)
{
    return strcmp(rest, "PORT") == 0 || begins(rest, "PORT_") || strcmp(rest, "SERVICE_HOST") == 0 ||
           strcmp(rest, "SERVICE_PORT") == 0 || begins(rest, "SERVICE_PORT_");
}

void settings_tell_unknown(settings_unknown *tell, void *argument)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (!begins(*entry, family)) {
            continue;
        }
        struct setting setting;
        char *name = memory_copy(*entry, strcspn(*entry, "="));
        if (!setting_find(name, &setting) && !is_service_link(name + strlen(family))) {
            tell(argument, name, setting_nearest(name));
        }
        free(name);
    }
}
