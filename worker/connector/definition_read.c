/* A definition from its tree: definition_internal.h. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"
#include "common/nearest.h"
#include "worker/connector/definition_internal.h"
#include "worker/connector/quantity.h"

#define KEY_MAX           128
#define BATCH_LENGTH      1000
#define BATCH_LENGTH_MAX  1000000
#define POLL_INTERVAL_MS  100
#define POLL_INTERVAL_MAX 3600000
#define GROUP_PREFIX      "picomq-connect-sink-"

const struct definition_field definition_fields[] = {
    {"type", TOML_STRING},         {"key", TOML_STRING},  {"enabled", TOML_BOOLEAN},       {"version", TOML_INTEGER},
    {"name", TOML_STRING},         {"path", TOML_STRING}, {"on_undecodable", TOML_STRING}, {"topics", TOML_ARRAY},
    {"plugin_config", TOML_TABLE}, {NULL, TOML_TABLE}};

const struct definition_field definition_topic_fields[] = {
    {"pattern", TOML_STRING},           {"topics", TOML_ARRAY},         {"schema", TOML_STRING},
    {"batch_length", TOML_INTEGER},     {"poll_interval", TOML_STRING}, {"consumer_group", TOML_STRING},
    {"auto_offset_reset", TOML_STRING}, {"properties", TOML_TABLE},     {NULL, TOML_TABLE}};

/* ---- what is refused ---- */

static void show(const struct toml_value *value, char out[160])
{
    switch (value->type) {
    case TOML_STRING: (void)snprintf(out, 160, "\"%.120s\"", value->text); break;
    case TOML_TIME: (void)snprintf(out, 160, "%.120s", value->text); break;
    case TOML_INTEGER: (void)snprintf(out, 160, "%lld", (long long)value->integer); break;
    case TOML_FLOAT: (void)snprintf(out, 160, "%g", value->number); break;
    case TOML_BOOLEAN: (void)snprintf(out, 160, "%s", value->boolean ? "true" : "false"); break;
    case TOML_TABLE:
    case TOML_ARRAY: (void)snprintf(out, 160, "%s", toml_type_name(value->type)); break;
    }
}

int definition_refuse(const char *name, const struct toml_value *value, const char *expected, struct error *error)
{
    char shown[160];

    if (value == NULL) {
        return error_set(error, QS_ERROR_INPUT, "%s is missing: expected %s", name, expected);
    }
    show(value, shown);
    if (value->line == 0) {
        return error_set(error, QS_ERROR_INPUT, "%s = %s (from the environment): expected %s", name, shown, expected);
    }
    return error_set(error, QS_ERROR_INPUT, "line %u: %s = %s: expected %s", value->line, name, shown, expected);
}

int definition_unknown(const struct toml_value *value, const struct definition_field *fields, struct error *error)
{
    struct nearest nearest;

    nearest_begin(&nearest, value->key);
    for (; fields->name != NULL; fields++) {
        nearest_offer(&nearest, fields->name);
    }
    return error_set(error, QS_ERROR_INPUT, "line %u: unknown key %.100s%s%s%s", value->line, value->key,
                     nearest.name == NULL ? "" : "; did you mean ", nearest.name == NULL ? "" : nearest.name,
                     nearest.name == NULL ? "" : "?");
}

static bool is_known(const struct toml_value *value, const struct definition_field *fields)
{
    for (; fields->name != NULL; fields++) {
        if (strcmp(fields->name, value->key) == 0) {
            return true;
        }
    }
    return false;
}

static int check_known(const struct toml_value *table, const struct definition_field *fields, struct error *error)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct toml_value *value = &table->items[i];

        if (strcmp(value->key, "transforms") == 0 || strncmp(value->key, "avro_schema_", 12) == 0) {
            return error_set(error, QS_ERROR_INPUT, "line %u: %.100s: not supported here, expected to be absent",
                             value->line, value->key);
        }
        if (!is_known(value, fields)) {
            return definition_unknown(value, fields, error);
        }
    }
    return 0;
}

/* ---- values ---- */

static bool is_text(const struct toml_value *value)
{
    return value != NULL && value->type == TOML_STRING && strlen(value->text) == value->text_size;
}

static int take_text(const struct toml_value *table, const char *name, bool required, const char **out,
                     struct error *error)
{
    const struct toml_value *value = toml_find(table, name);

    if (value == NULL && !required) {
        return 0;
    }
    if (!is_text(value) || (required && value->text_size == 0)) {
        return definition_refuse(name, value, "a string", error);
    }
    *out = value->text;
    return 0;
}

static int take_integer(const struct toml_value *table, const char *name, int64_t least, int64_t most, int64_t *out,
                        struct error *error)
{
    const struct toml_value *value = toml_find(table, name);
    char expected[80];

    if (value == NULL && *out >= least) {
        return 0; /* its default */
    }
    if (value == NULL || value->type != TOML_INTEGER || value->integer < least || value->integer > most) {
        (void)snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)least,
                       (long long)most);
        return definition_refuse(name, value, expected, error);
    }
    *out = value->integer;
    return 0;
}

static int take_choice(const struct toml_value *table, const char *name, const char *const *choices, bool required,
                       const char *expected, int *out, struct error *error)
{
    const struct toml_value *value = toml_find(table, name);

    if (value == NULL && !required) {
        return 0;
    }
    for (int i = 0; is_text(value) && choices[i] != NULL; i++) {
        if (strcasecmp(choices[i], value->text) == 0) {
            *out = i;
            return 0;
        }
    }
    return definition_refuse(name, value, expected, error);
}

/* As sink_schema counts them, and one more spelling. */
static const char *const schemas[] = {"json", "raw", "text", "proto", "flat_buffer", "avro", "flatbuffer", NULL};
static const char *const undecodables[] = {"base64", "skip", "stop", NULL};
static const char *const resets[] = {"earliest", "latest", NULL};

static bool find_name(const char *const *names, const char *name, int *out)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *sink_schema_name(enum sink_schema schema)
{
    return schemas[schema];
}

bool sink_schema_parse(const char *name, enum sink_schema *schema)
{
    int number = 0;
    bool found = find_name(schemas, name, &number);

    *schema = number == SINK_SCHEMA_COUNT ? SINK_SCHEMA_FLATBUFFER : (enum sink_schema)number;
    return found;
}

const char *on_undecodable_name(enum on_undecodable what)
{
    return undecodables[what];
}

bool on_undecodable_parse(const char *name, enum on_undecodable *what)
{
    int number = 0;
    bool found = find_name(undecodables, name, &number);

    *what = (enum on_undecodable)number;
    return found;
}

/* ---- [[topics]] ---- */

static int add_subscription(struct definition_topics *topics, const struct toml_value *value, const char *name,
                            struct error *error)
{
    bool pattern = strcmp(name, "pattern") == 0 || (is_text(value) && value->text[0] == '^');
    size_t count = topics->subscription_count;

    if (!is_text(value) || value->text_size == 0 || value->text_size > 512) {
        return definition_refuse(name, value, "topic names, or patterns that begin with ^", error);
    }
    char *subscription = pattern ? definition_pattern(value->text, error) : memory_copy(value->text, value->text_size);
    if (subscription == NULL) {
        return QS_ERROR_INPUT;
    }
    char **larger = memory_new(count + 1, sizeof *larger);
    if (count > 0) {
        memcpy(larger, topics->subscriptions, count * sizeof *larger);
    }
    free(topics->subscriptions);
    topics->subscriptions = larger;
    topics->subscriptions[topics->subscription_count++] = subscription;
    return 0;
}

static int read_subscriptions(const struct toml_value *table, struct definition_topics *topics, struct error *error)
{
    const struct toml_value *pattern = toml_find(table, "pattern");
    const struct toml_value *names = toml_find(table, "topics");

    if ((pattern == NULL) == (names == NULL)) {
        return error_set(error, QS_ERROR_INPUT, "line %u: [[topics]]: expected either pattern or topics", table->line);
    }
    if (pattern != NULL) {
        return add_subscription(topics, pattern, "pattern", error);
    }
    if (names->type != TOML_ARRAY || names->count == 0) {
        return definition_refuse("topics", names, "an array of topic names", error);
    }
    for (size_t i = 0; i < names->count; i++) {
        if (add_subscription(topics, &names->items[i], "topics", error) != 0) {
            return QS_ERROR_INPUT;
        }
    }
    return 0;
}

/* What the sink decides by itself, since it owns the offsets. */
static bool is_ours(const char *name)
{
    static const char *const ours[] = {"enable.auto.commit", "enable.auto.offset.store", "group.id",
                                       "auto.offset.reset",  "enable.partition.eof",     NULL};
    int number;

    return find_name(ours, name, &number);
}

static int add_property(struct definition_topics *topics, const char *name, const struct toml_value *value,
                        struct error *error)
{
    char shown[160];

    if (is_ours(name)) {
        return error_set(error, QS_ERROR_INPUT, "line %u: property %s: the sink sets it, expected to be absent",
                         value->line, name);
    }
    if (value->type == TOML_ARRAY || value->type == TOML_TIME || (value->type == TOML_STRING && !is_text(value))) {
        return definition_refuse(name, value, "a string, a number, true or false", error);
    }
    show(value, shown);
    struct definition_property *larger = memory_new(topics->property_count + 1, sizeof *larger);
    if (topics->property_count > 0) {
        memcpy(larger, topics->properties, topics->property_count * sizeof *larger);
    }
    free(topics->properties);
    topics->properties = larger;
    larger[topics->property_count++] = (struct definition_property){
        memory_format("%s", name), memory_format("%s", value->type == TOML_STRING ? value->text : shown)};
    return 0;
}

/* Keys with dots that aren't quoted are tables in tables. */
static int read_properties(const struct toml_value *table, const char *before, struct definition_topics *topics,
                           struct error *error)
{
    int status = 0;

    if (table->type != TOML_TABLE) {
        return definition_refuse("properties", table, "a table", error);
    }
    for (size_t i = 0; i < table->count && status == 0; i++) {
        const struct toml_value *value = &table->items[i];
        char *name = memory_format("%s%s%s", before, before[0] == '\0' ? "" : ".", value->key);

        status = value->type == TOML_TABLE ? read_properties(value, name, topics, error)
                                           : add_property(topics, name, value, error);
        free(name);
    }
    return status;
}

static int read_interval(const struct toml_value *table, int64_t *out, struct error *error)
{
    const struct toml_value *value = toml_find(table, "poll_interval");

    *out = POLL_INTERVAL_MS;
    if (value != NULL && (!is_text(value) || !quantity_parse_duration(value->text, out) || *out > POLL_INTERVAL_MAX)) {
        return definition_refuse("poll_interval", value, "a duration such as \"100ms\", at most an hour", error);
    }
    return 0;
}

static int read_one_topics(const struct toml_value *table, const char *key, struct definition_topics *topics,
                           struct error *error)
{
    int64_t batch_length = BATCH_LENGTH;
    const char *group = NULL;
    int schema = 0;
    int reset = 0;

    if (table->type != TOML_TABLE) {
        return definition_refuse("topics", table, "[[topics]] tables", error);
    }
    if (check_known(table, definition_topic_fields, error) != 0 || read_subscriptions(table, topics, error) != 0 ||
        take_choice(table, "schema", schemas, true, "json, raw, text, proto, flat_buffer or avro", &schema, error) !=
            0 ||
        take_integer(table, "batch_length", 1, BATCH_LENGTH_MAX, &batch_length, error) != 0 ||
        read_interval(table, &topics->poll_interval_ms, error) != 0 ||
        take_text(table, "consumer_group", false, &group, error) != 0 ||
        take_choice(table, "auto_offset_reset", resets, false, "earliest or latest", &reset, error) != 0) {
        return QS_ERROR_INPUT;
    }
    topics->schema = schema == SINK_SCHEMA_COUNT ? SINK_SCHEMA_FLATBUFFER : (enum sink_schema)schema;
    topics->batch_length = (uint32_t)batch_length;
    topics->from_end = reset == 1;
    topics->consumer_group =
        group != NULL && group[0] != '\0' ? memory_format("%s", group) : memory_format(GROUP_PREFIX "%s", key);
    const struct toml_value *properties = toml_find(table, "properties");
    return properties == NULL ? 0 : read_properties(properties, "", topics, error);
}

static int read_topics(const struct toml_value *root, struct definition *definition, struct error *error)
{
    const struct toml_value *list = toml_find(root, "topics");

    if (list == NULL || list->type != TOML_ARRAY || list->count == 0) {
        return definition_refuse("topics", list, "at least one [[topics]]", error);
    }
    definition->topics = memory_new(list->count, sizeof *definition->topics);
    for (size_t i = 0; i < list->count; i++) {
        definition->topic_count++;
        if (read_one_topics(&list->items[i], definition->key, &definition->topics[i], error) != 0) {
            return QS_ERROR_INPUT;
        }
    }
    return 0;
}

/* ---- [plugin_config] ---- */

static cJSON *to_json(const struct toml_value *value);

static cJSON *container_to_json(const struct toml_value *value)
{
    cJSON *json = value->type == TOML_TABLE ? cJSON_CreateObject() : cJSON_CreateArray();

    for (size_t i = 0; i < value->count; i++) {
        cJSON *item = to_json(&value->items[i]);
        if (value->type == TOML_TABLE) {
            (void)cJSON_AddItemToObject(json, value->items[i].key, item);
        } else {
            (void)cJSON_AddItemToArray(json, item);
        }
    }
    return json;
}

/* As the runtime hands it over (spec 5.1): numbers as they are, a date as a text that no key accepts. */
static cJSON *to_json(const struct toml_value *value)
{
    char number[64];

    switch (value->type) {
    case TOML_TABLE:
    case TOML_ARRAY: return container_to_json(value);
    case TOML_STRING: return cJSON_CreateString(value->text);
    case TOML_INTEGER: (void)snprintf(number, sizeof number, "%lld", (long long)value->integer); break;
    case TOML_FLOAT: (void)snprintf(number, sizeof number, "%.17g", value->number); break;
    case TOML_BOOLEAN: return cJSON_CreateBool(value->boolean);
    case TOML_TIME: return cJSON_CreateArray();
    }
    return value->type == TOML_FLOAT && !isfinite(value->number) ? cJSON_CreateNull() : cJSON_CreateRaw(number);
}

static int read_options(const struct toml_value *root, struct definition *definition, struct error *error)
{
    const struct toml_value *table = toml_find(root, "plugin_config");

    if (table != NULL && table->type != TOML_TABLE) {
        return definition_refuse("plugin_config", table, "a table", error);
    }
    for (size_t i = 0; table != NULL && i < table->count; i++) {
        if (table->items[i].type == TOML_STRING && !is_text(&table->items[i])) {
            return error_set(error, QS_ERROR_INPUT, "line %u: %.100s: expected no NUL byte", table->items[i].line,
                             table->items[i].key);
        }
    }
    cJSON *json = table == NULL ? cJSON_CreateNull() : container_to_json(table);
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    if (text == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory");
    }
    enum sink_refusal refusal = sink_options_parse(text, strlen(text), &definition->options, error);
    memory_free_secret(text);
    if (refusal != SINK_ACCEPTED) {
        error_prefix(error, "[plugin_config]");
        return QS_ERROR_INPUT;
    }
    if (definition->options.durability_given || definition->options.spool_dir_given) {
        (void)error_set(
            error, QS_ERROR_INPUT,
            "[plugin_config]: %s: a connector worker owns the offsets and needs none, expected to be absent",
            definition->options.durability_given ? "durability" : "spool_dir");
        sink_options_free(&definition->options);
        return QS_ERROR_INPUT;
    }
    return 0;
}

/* ---- the whole ---- */

int definition_check_key(const struct toml_value *root, struct error *error)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const struct toml_value *key = toml_find(root, "key");

    if (!is_text(key) || key->text_size == 0 || key->text_size > KEY_MAX ||
        strspn(key->text, allowed) != key->text_size) {
        return definition_refuse("key", key, "1 to 128 letters, digits, - _ .", error);
    }
    return 0;
}

static int read_head(const struct toml_value *root, struct definition *definition, struct error *error)
{
    static const char *const types[] = {"sink", NULL};
    const struct toml_value *enabled = toml_find(root, "enabled");
    const char *name = NULL;
    const char *path = NULL;
    int type = 0;
    int undecodable = UNDECODABLE_BASE64;

    definition->version = -1;
    if (check_known(root, definition_fields, error) != 0 || definition_check_key(root, error) != 0 ||
        take_choice(root, "type", types, true, "sink", &type, error) != 0 ||
        take_integer(root, "version", 0, UINT32_MAX, &definition->version, error) != 0 ||
        take_text(root, "name", true, &name, error) != 0 || take_text(root, "path", true, &path, error) != 0 ||
        take_choice(root, "on_undecodable", undecodables, false, "base64, skip or stop", &undecodable, error) != 0) {
        return QS_ERROR_INPUT;
    }
    if (enabled == NULL || enabled->type != TOML_BOOLEAN) {
        return definition_refuse("enabled", enabled, "true or false", error);
    }
    definition->key = memory_format("%s", toml_find(root, "key")->text);
    definition->name = memory_format("%s", name);
    definition->on_undecodable = (enum on_undecodable)undecodable;
    return 0;
}

int definition_read(const struct toml_value *root, struct definition *definition, struct error *error)
{
    *definition = (struct definition){0};
    if (read_head(root, definition, error) != 0 || read_topics(root, definition, error) != 0 ||
        read_options(root, definition, error) != 0) {
        definition->options = (struct sink_options){0};
        definition_free(definition);
        return QS_ERROR_INPUT;
    }
    return 0;
}

static void free_topics(struct definition_topics *topics)
{
    for (size_t i = 0; i < topics->subscription_count; i++) {
        free(topics->subscriptions[i]);
    }
    for (size_t i = 0; i < topics->property_count; i++) {
        free(topics->properties[i].name);
        memory_free_secret(topics->properties[i].value);
    }
    free(topics->subscriptions);
    free(topics->properties);
    free(topics->consumer_group);
}

void definition_free(struct definition *definition)
{
    for (size_t i = 0; i < definition->topic_count; i++) {
        free_topics(&definition->topics[i]);
    }
    free(definition->topics);
    free(definition->source);
    free(definition->key);
    free(definition->name);
    sink_options_free(&definition->options);
    *definition = (struct definition){0};
}
