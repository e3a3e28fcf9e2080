/*
 * What the environment says of a definition, put into its tree before that is read: so it is checked like all else. A
 * value takes the type that its field has; one that can't have it stays text, and is refused with its field's words.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"
#include "worker/connector/definition_internal.h"

#define PREFIX "PICOMQ_CONNECTORS_SINK_"

static struct toml_value *find(struct toml_value *table, const char *key)
{
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->items[i].key, key) == 0) {
            return &table->items[i];
        }
    }
    return NULL;
}

/* The member of that name, made where there is none. */
static struct toml_value *member(struct toml_value *table, const char *key)
{
    struct toml_value *value = find(table, key);

    if (value == NULL) {
        struct toml_value *items = memory_new(table->count + 1, sizeof *items);
        if (table->count > 0) {
            memcpy(items, table->items, table->count * sizeof *items);
        }
        free(table->items);
        table->items = items;
        value = &items[table->count++];
        value->key = memory_format("%s", key);
        value->key_size = strlen(key);
        value->type = TOML_TABLE;
    }
    return value;
}

static void clear(struct toml_value *value)
{
    for (size_t i = 0; i < value->count; i++) {
        clear(&value->items[i]);
        free(value->items[i].key);
    }
    free(value->items);
    free(value->text);
    value->items = NULL;
    value->count = 0;
    value->text = NULL;
    value->text_size = 0;
    value->line = 0;
}

static void set_text(struct toml_value *value, const char *text)
{
    value->type = TOML_STRING;
    value->text = memory_format("%s", text);
    value->text_size = strlen(text);
}

/* Without the blanks around it. */
static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t size = strlen(text);

    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t')) {
        text[--size] = '\0';
    }
    return text;
}

/* `a,b` */
static void set_list(struct toml_value *value, const char *text)
{
    char *copy = memory_format("%s", text);
    size_t capacity = 0;

    value->type = TOML_ARRAY;
    for (char *rest = copy, *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ",")) {
        value->items = memory_grow(value->items, &capacity, value->count + 1, sizeof *value->items);
        value->items[value->count] = (struct toml_value){0};
        set_text(&value->items[value->count++], trim(item));
    }
    free(copy);
}

static void set(struct toml_value *table, const char *key, enum toml_type type, const char *text)
{
    struct toml_value *value = member(table, key);
    char *end = NULL;

    clear(value);
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (type == TOML_BOOLEAN && (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)) {
        value->type = TOML_BOOLEAN;
        value->boolean = strcasecmp(text, "true") == 0;
    } else if (type == TOML_INTEGER && end != text && *end == '\0' && errno == 0) {
        value->type = TOML_INTEGER;
        value->integer = integer;
    } else if (type == TOML_ARRAY) {
        set_list(value, text);
    } else {
        set_text(value, text);
    }
}

/* ---- names ---- */

static char environment_byte(char byte)
{
    return isalnum((unsigned char)byte) ? (char)tolower((unsigned char)byte) : '_';
}

/* How many bytes of `name` the key and a `_` take; 0 where they don't stand there. */
static size_t key_fits(const char *key, const char *name)
{
    size_t size = strlen(key);

    for (size_t i = 0; i < size; i++) {
        if (environment_byte(key[i]) != (char)tolower((unsigned char)name[i])) {
            return 0;
        }
    }
    return name[size] == '_' ? size + 1 : 0;
}

/* Whose it is: the longest key that fits. */
static bool is_own(const char *const *keys, size_t count, size_t own, const char *name, size_t *taken)
{
    *taken = key_fits(keys[own], name);
    for (size_t i = 0; i<count && * taken> 0; i++) {
        if (key_fits(keys[i], name) > *taken) {
            return false;
        }
    }
    return *taken > 0;
}

static const struct definition_field *find_field(const struct definition_field *fields, const char *name)
{
    for (; fields->name != NULL; fields++) {
        if (strcasecmp(fields->name, name) == 0) {
            return fields;
        }
    }
    return NULL;
}

static int refuse_name(const char *entry, struct error *error)
{
    return error_set(error, QS_ERROR_INPUT,
                     "%.*s: expected the name of a field behind %s<KEY>_, <KEY>_TOPICS_<n>_ or <KEY>_PLUGIN_CONFIG_",
                     (int)strcspn(entry, "="), entry, PREFIX);
}

/* ---- one variable ---- */

static int override_topic(struct toml_value *root, const char *entry, const char *rest, const char *text,
                          struct error *error)
{
    struct toml_value *topics = find(root, "topics");
    char *end = NULL;
    unsigned long number = strtoul(rest, &end, 10);

    if (end == rest || *end != '_' || topics == NULL || number >= topics->count) {
        return error_set(error, QS_ERROR_INPUT, "%.*s: expected the number of a [[topics]] that is there, from 0",
                         (int)strcspn(entry, "="), entry);
    }
    const struct definition_field *field = find_field(definition_topic_fields, end + 1);
    if (field == NULL || field->type == TOML_TABLE || topics->items[number].type != TOML_TABLE) {
        return refuse_name(entry, error);
    }
    set(&topics->items[number], field->name, field->type, text);
    return 0;
}

static enum toml_type option_type(const char *name)
{
    switch (sink_option_form(name)) {
    case SINK_OPTION_NUMBER: return TOML_INTEGER;
    case SINK_OPTION_SWITCH: return TOML_BOOLEAN;
    case SINK_OPTION_TEXT: break;
    }
    return TOML_STRING;
}

static int override_option(struct toml_value *root, const char *rest, const char *text)
{
    struct toml_value *options = member(root, "plugin_config");
    char *name = memory_format("%s", rest);

    for (char *at = name; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    if (options->type == TOML_TABLE) {
        set(options, name, option_type(name), text);
    }
    free(name);
    return 0; /* an unknown one is refused as it would be in the file */
}

static int override_field(struct toml_value *root, const char *entry, const char *rest, const char *text,
                          struct error *error)
{
    if (strncasecmp(rest, "PLUGIN_CONFIG_", 14) == 0) {
        return override_option(root, rest + 14, text);
    }
    if (strncasecmp(rest, "TOPICS_", 7) == 0) {
        return override_topic(root, entry, rest + 7, text, error);
    }
    const struct definition_field *field = find_field(definition_fields, rest);
    if (field == NULL || field->type == TOML_TABLE || field->type == TOML_ARRAY || strcmp(field->name, "key") == 0) {
        return refuse_name(entry, error);
    }
    set(root, field->name, field->type, text);
    return 0;
}

int definition_override(struct toml_value *root, const char *const *keys, size_t key_count, size_t own,
                        char *const *environment, struct error *error)
{
    int status = 0;

    for (; *environment != NULL && status == 0; environment++) {
        const char *entry = *environment;
        const char *equals = strchr(entry, '=');
        size_t taken = 0;

        if (equals == NULL || strncasecmp(entry, PREFIX, strlen(PREFIX)) != 0 ||
            !is_own(keys, key_count, own, entry + strlen(PREFIX), &taken)) {
            continue;
        }
        const char *rest = entry + strlen(PREFIX) + taken;
        char *name = memory_copy(rest, equals > rest ? (size_t)(equals - rest) : 0);
        status = override_field(root, entry, name, equals + 1, error);
        free(name);
    }
    return status;
}
