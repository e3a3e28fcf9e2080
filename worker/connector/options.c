/* Reading [plugin_config]: options.h. What the values mean together is checked in options_check.c. */
#include "worker/connector/options.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/json_walk.h"
#include "common/memory.h"
#include "common/nearest.h"
#include "worker/connector/options_internal.h"
#include "worker/connector/quantity.h"

#define SHOWN_MAX 120

static const struct option_choice formats[] = {
    {"json_lines", SINK_JSON_LINES}, {"jsonl", SINK_JSON_LINES}, {"jsonlines", SINK_JSON_LINES},
    {"json_array", SINK_JSON_ARRAY}, {"raw", SINK_RAW},          {NULL, 0}};
static const struct option_choice rotations[] = {{"size", SINK_BY_SIZE}, {"messages", SINK_BY_MESSAGES}, {NULL, 0}};
static const struct option_choice durabilities[] = {
    {"buffered", SINK_BUFFERED}, {"spooled", SINK_SPOOLED}, {"uploaded", SINK_UPLOADED}, {NULL, 0}};
static const struct option_choice compressions[] = {
    {"none", COMPRESSION_NONE}, {"gzip", COMPRESSION_GZIP}, {"zstd", COMPRESSION_ZSTD}, {NULL, 0}};

#define AT(field) offsetof(struct option_values, field)

static const struct option_row rows[] = {
    {"bucket", OPTION_TEXT, AT(bucket), .expected = "a string"},
    {"region", OPTION_TEXT, AT(region), .expected = "a string"},
    {"prefix", OPTION_TEXT, AT(prefix), .expected = "a string"},
    {"endpoint", OPTION_TEXT, AT(endpoint), .expected = "a string such as \"http://127.0.0.1:9000\""},
    {"access_key_id", OPTION_TEXT, AT(access_key_id), .expected = "a string", .secret = true},
    {"secret_access_key", OPTION_TEXT, AT(secret_access_key), .expected = "a string", .secret = true},
    {"path_template", OPTION_TEXT, AT(path_template), .expected = "a string"},
    {"file_rotation", OPTION_CHOICE, AT(file_rotation), .expected = "\"size\" or \"messages\"", .choices = rotations,
     .refusal = SINK_UNREADABLE, .exact = true},
    {"max_file_size", OPTION_SIZE, AT(max_file_size), .expected = "a size such as \"8MiB\", or a number of bytes"},
    {"max_messages_per_file", OPTION_COUNT, AT(max_messages_per_file), .expected = "a whole number above 0",
     .most = UINT64_MAX},
    {"output_format", OPTION_CHOICE, AT(output_format), .expected = "json_lines, json_array or raw", .choices = formats,
     .refusal = SINK_REFUSED},
    {"include_metadata", OPTION_SWITCH, AT(include_metadata), .expected = "true or false"},
    {"include_headers", OPTION_SWITCH, AT(include_headers), .expected = "true or false"},
    {"max_attempts", OPTION_COUNT, AT(max_attempts), .expected = "a whole number from 0 to 4294967295",
     .most = UINT32_MAX},
    {"max_retries", OPTION_COUNT, AT(max_retries), .expected = "a whole number from 0 to 4294967295",
     .most = UINT32_MAX},
    {"retry_delay", OPTION_DURATION, AT(retry_delay), .expected = "a duration such as \"1s\", \"500ms\" or \"1m 30s\""},
    {"path_style", OPTION_SWITCH, AT(path_style), .expected = "true or false"},
    {"durability", OPTION_CHOICE, AT(durability), .expected = "buffered, spooled or uploaded", .choices = durabilities,
     .refusal = SINK_REFUSED},
    {"spool_dir", OPTION_TEXT, AT(spool_dir), .expected = "a string"},
    {"max_file_age", OPTION_DURATION, AT(max_file_age), .expected = "a duration such as \"5m\""},
    {"compression", OPTION_CHOICE, AT(compression), .expected = "none, gzip or zstd", .choices = compressions,
     .refusal = SINK_REFUSED},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

const char *const *sink_option_names(void)
{
    static const char *names[ROW_COUNT + 1];

    for (size_t i = 0; i < ROW_COUNT; i++) {
        names[i] = rows[i].name;
    }
    return names;
}

enum sink_option_form sink_option_form(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].kind == OPTION_COUNT    ? SINK_OPTION_NUMBER
                   : rows[i].kind == OPTION_SWITCH ? SINK_OPTION_SWITCH
                                                   : SINK_OPTION_TEXT;
        }
    }
    return SINK_OPTION_TEXT;
}

static enum sink_refusal refuse(enum sink_refusal refusal, const struct option_row *row, struct json_text value,
                                struct error *error)
{
    if (row->secret) {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: %s is not %s (its value is not shown)", row->name,
                  row->expected);
    } else {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: %s = %.*s%s: expected %s", row->name,
                  value.size < SHOWN_MAX ? (int)value.size : SHOWN_MAX, value.bytes,
                  value.size > SHOWN_MAX ? "..." : "", row->expected);
    }
    return refusal;
}

/* A value that reads in place: a string loses its quotes, and with them the spelling that a message shows. */
static enum sink_refusal take_string(const struct option_row *row, struct json_text value, const char **text,
                                     struct error *error)
{
    if (value.bytes[0] != '"') {
        return refuse(SINK_UNREADABLE, row, value, error);
    }
    if (!json_text_c_string(value, text)) {
        error_set(error, QS_ERROR_INPUT, "Invalid config value: %s holds a NUL byte", row->name);
        return SINK_UNREADABLE;
    }
    return SINK_ACCEPTED;
}

static enum sink_refusal refuse_text(enum sink_refusal refusal, const struct option_row *row, const char *text,
                                     struct error *error)
{
    error_set(error, QS_ERROR_INPUT, "Invalid config value: Invalid %s '%.*s'%s: expected %s", row->name, SHOWN_MAX,
              text, strlen(text) > SHOWN_MAX ? "..." : "", row->expected);
    return refusal;
}

static enum sink_refusal take_choice(const struct option_row *row, struct json_text value, struct option_choice *out,
                                     struct error *error)
{
    const char *text = "";
    enum sink_refusal refusal = take_string(row, value, &text, error);

    for (const struct option_choice *choice = row->choices; refusal == SINK_ACCEPTED && choice->name != NULL;
         choice++) {
        if ((row->exact ? strcmp(text, choice->name) : strcasecmp(text, choice->name)) == 0) {
            *out = *choice;
            return SINK_ACCEPTED;
        }
    }
    return refusal == SINK_ACCEPTED ? refuse_text(row->refusal, row, text, error) : refusal;
}

/* Digits alone, as TOML's and JSON's whole numbers arrive. */
static bool read_count(struct json_text value, uint64_t *out)
{
    uint64_t number = 0;

    for (size_t i = 0; i < value.size; i++) {
        if (value.bytes[i] < '0' || value.bytes[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(value.bytes[i] - '0'), &number)) {
            return false;
        }
    }
    *out = number;
    return true;
}

static enum sink_refusal take_size(const struct option_row *row, struct json_text value, struct option_number *out,
                                   struct error *error)
{
    const char *text = "";

    if (value.bytes[0] != '"') {
        return read_count(value, &out->value) ? SINK_ACCEPTED : refuse(SINK_UNREADABLE, row, value, error);
    }
    enum sink_refusal refusal = take_string(row, value, &text, error);
    if (refusal == SINK_ACCEPTED && !quantity_parse_size(text, &out->value)) {
        return refuse_text(SINK_REFUSED, row, text, error);
    }
    out->text = refusal == SINK_ACCEPTED ? text : NULL;
    return refusal;
}

static enum sink_refusal take_duration(const struct option_row *row, struct json_text value, struct option_number *out,
                                       struct error *error)
{
    const char *text = "";
    int64_t milliseconds = 0;

    if (json_text_is(value, "0")) {
        out->value = 0;
        return SINK_ACCEPTED;
    }
    enum sink_refusal refusal = take_string(row, value, &text, error);
    if (refusal == SINK_ACCEPTED && !quantity_parse_duration(text, &milliseconds)) {
        return refuse_text(SINK_REFUSED, row, text, error);
    }
    if (refusal == SINK_ACCEPTED) {
        out->value = (uint64_t)milliseconds;
    }
    return refusal;
}

static enum sink_refusal take_value(const struct option_row *row, struct json_text value, struct option_values *values,
                                    struct error *error)
{
    void *field = (char *)values + row->offset;
    struct option_number *number = field;

    switch (row->kind) {
    case OPTION_TEXT: return take_string(row, value, field, error);
    case OPTION_CHOICE: return take_choice(row, value, field, error);
    case OPTION_SIZE: number->given = true; return take_size(row, value, number, error);
    case OPTION_DURATION: number->given = true; return take_duration(row, value, number, error);
    case OPTION_SWITCH:
        number->given = true;
        number->value = json_text_is(value, "true") ? 1 : 0;
        return number->value == 1 || json_text_is(value, "false") ? SINK_ACCEPTED
                                                                  : refuse(SINK_UNREADABLE, row, value, error);
    case OPTION_COUNT: break;
    }
    number->given = true;
    return read_count(value, &number->value) && number->value <= row->most ? SINK_ACCEPTED
                                                                           : refuse(SINK_UNREADABLE, row, value, error);
}

static enum sink_refusal refuse_unknown(struct json_text key, struct error *error)
{
    char name[NEAREST_BYTES + 1];
    size_t size = key.size < sizeof name - 1 ? key.size : sizeof name - 1;

    memcpy(name, key.bytes, size);
    name[size] = '\0';
    struct nearest nearest;
    nearest_begin(&nearest, name);
    for (size_t i = 0; i < ROW_COUNT && key.size < sizeof name; i++) {
        nearest_offer(&nearest, rows[i].name);
    }
    const char *near = nearest.name;
    error_set(error, QS_ERROR_INPUT, "Invalid config value: unknown key '%s'%s%s%s", name,
              near != NULL ? "; did you mean '" : " (the manual picomq-s3-sink(7) lists all)", near != NULL ? near : "",
              near != NULL ? "'?" : "");
    return SINK_REFUSED;
}

static enum sink_refusal take_member(struct json_text key, struct json_text value, struct option_values *values,
                                     struct error *error)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (!json_text_is(key, rows[i].name)) {
            continue;
        }
        if (values->met[i]) {
            error_set(error, QS_ERROR_INPUT, "Invalid config value: %s is given twice", rows[i].name);
            return SINK_UNREADABLE;
        }
        values->met[i] = true;
        return json_text_is(value, "null") ? SINK_ACCEPTED : take_value(&rows[i], value, values, error);
    }
    return refuse_unknown(key, error);
}

static enum sink_refusal read_members(struct json_scan *scan, struct json_text text, struct option_values *values,
                                      struct error *error)
{
    struct json_walk walk;
    struct json_text key;
    struct json_text value;
    enum sink_refusal refusal = SINK_ACCEPTED;

    if (!json_walk_object(&walk, scan, text)) {
        error_set(error, QS_ERROR_INPUT, "plugin_config is %.*s, not a table of keys: bucket and region are missing",
                  text.size < SHOWN_MAX ? (int)text.size : SHOWN_MAX, text.bytes);
        return SINK_UNREADABLE;
    }
    /* What is wrong with the text as a whole comes before what is wrong with a value. */
    while (json_walk_member(&walk, &key, &value)) {
        struct error other;
        enum sink_refusal told = take_member(key, value, values, &other);
        if (told != SINK_ACCEPTED && (refusal == SINK_ACCEPTED || (refusal == SINK_REFUSED && told != SINK_REFUSED))) {
            refusal = told;
            *error = other;
        }
    }
    return refusal;
}

static enum sink_refusal read_text(char *text, size_t size, struct sink_options *options, struct error *error)
{
    struct json_scan scan = {0};
    struct json_value whole;
    struct option_values values = {0};
    const char *end = text + size;
    const char *start = json_skip_blank(text, end);
    const char *after = json_scan_value(&scan, start, end, &whole);
    enum sink_refusal refusal = SINK_UNREADABLE;

    if (after == NULL || json_skip_blank(after, end) != end) {
        error_set(error, QS_ERROR_INPUT, "plugin_config is not JSON text");
    } else {
        refusal = read_members(&scan, (struct json_text){text + (start - text), whole.size}, &values, error);
        if (refusal != SINK_UNREADABLE) {
            enum sink_refusal checked = sink_options_check(&values, options, refusal == SINK_ACCEPTED ? error : NULL);
            refusal = refusal == SINK_ACCEPTED ? checked : refusal;
        }
    }
    free(scan.bits);
    return refusal;
}

enum sink_refusal sink_options_parse(const char *json, size_t size, struct sink_options *options, struct error *error)
{
    char *text = malloc(size + 1);

    *options = (struct sink_options){0};
    error_clear(error);
    if (text == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a plugin_config of %zu bytes", size);
        return SINK_REFUSED;
    }
    if (size > 0) {
        memcpy(text, json, size);
    }
    text[size] = '\0';
    enum sink_refusal refusal = read_text(text, size, options, error);
    OPENSSL_cleanse(text, size);
    free(text);
    if (refusal != SINK_ACCEPTED) {
        sink_options_free(options);
    }
    return refusal;
}

void sink_options_free(struct sink_options *options)
{
    settings_free(&options->store);
    free(options->path_template);
    free(options->spool_dir);
    *options = (struct sink_options){0};
}
