/* Words and options of a command's line: arguments.h. */
#include "supervisor/commands/arguments.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define MINUTE_US INT64_C(60000000)
#define FRACTION  6 /* digits that count */

/* The option's place in the command's table; COMMAND_OPTIONS_MAX where it has none. */
static size_t find(const struct command *command, const char *text, size_t size)
{
    for (size_t i = 0; command->options != NULL && command->options[i].name != NULL; i++) {
        const char *name = command->options[i].name;
        if (strlen(name) == size && memcmp(name, text, size) == 0) {
            return i;
        }
    }
    return COMMAND_OPTIONS_MAX;
}

/* One option at argv[*at], its value perhaps behind it. */
static int take_option(const struct command *command, struct arguments *arguments, int argc, char **argv, int *at,
                       struct error *error)
{
    char *text = argv[*at];
    char *equals = strchr(text, '=');
    size_t place = find(command, text, equals != NULL ? (size_t)(equals - text) : strlen(text));

    if (place == COMMAND_OPTIONS_MAX) {
        return error_set(error, QS_ERROR_INPUT, "unknown option %s; see queen-s3 help %s", text, command->name);
    }
    const struct command_option *option = &command->options[place];
    if (option->argument == NULL) {
        arguments->values[place] = "";
        return equals == NULL ? 0
                              : error_set(error, QS_ERROR_INPUT, "%s takes no value; see queen-s3 help %s",
                                          option->name, command->name);
    }
    if (arguments->values[place] != NULL) {
        return error_set(error, QS_ERROR_INPUT, "%s is given twice", option->name);
    }
    if (equals == NULL && *at + 1 >= argc) {
        return error_set(error, QS_ERROR_INPUT, "%s wants a value; see queen-s3 help %s", option->name, command->name);
    }
    arguments->values[place] = equals != NULL ? equals + 1 : argv[++*at];
    return 0;
}

static int check_count(const struct command *command, const struct arguments *arguments, struct error *error)
{
    size_t least = 0;
    size_t most = 0;

    command_word_limits(command, &least, &most);
    if (arguments->word_count > most) {
        return error_set(error, QS_ERROR_INPUT, "unexpected argument %s; see queen-s3 help %s", arguments->words[most],
                         command->name);
    }
    if (arguments->word_count < least) {
        return error_set(error, QS_ERROR_INPUT, "an argument is missing: expected %s %s; see queen-s3 help %s",
                         command->name, command->words, command->name);
    }
    return 0;
}

int arguments_parse(const struct command *command, int argc, char **argv, struct arguments *arguments,
                    struct error *error)
{
    bool options = true;
    int code = 0;

    *arguments = (struct arguments){.words = memory_new((size_t)argc, sizeof *arguments->words)};
    for (int i = 2; i < argc && code == 0; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            code = take_option(command, arguments, argc, argv, &i, error);
        } else {
            arguments->words[arguments->word_count++] = argv[i];
        }
    }
    if (code == 0) {
        code = check_count(command, arguments, error);
    }
    if (code != 0) {
        free(arguments->words);
        arguments->words = NULL;
    }
    return code;
}

int arguments_queue(const char *text, struct error *error)
{
    bool good = *text != '\0';

    for (const char *at = text; *at != '\0'; at++) {
        good = good && (unsigned char)*at >= ' ';
    }
    return good ? 0 : error_set(error, QS_ERROR_INPUT, "\"%s\": expected the name of a queue", text);
}

static bool parse_integer(const char *text, int64_t *out)
{
    char *end = NULL;
    const char *digits = text + (*text == '-' ? 1 : 0);

    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 18) {
        return false;
    }
    *out = strtoll(text, &end, 10);
    return true;
}

static bool two_digits(const char *text, int most, int *out)
{
    if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1])) {
        return false;
    }
    *out = (text[0] - '0') * 10 + text[1] - '0';
    return *out <= most;
}

/* "Z", "z" or "+02:00" to its end; minutes east of Greenwich. */
static bool parse_offset(const char *text, int *minutes)
{
    int hour = 0;
    int minute = 0;

    *minutes = 0;
    if ((*text == 'Z' || *text == 'z') && text[1] == '\0') {
        return true;
    }
    if ((*text != '+' && *text != '-') || strlen(text) != 6 || text[3] != ':' || !two_digits(text + 1, 23, &hour) ||
        !two_digits(text + 4, 59, &minute)) {
        return false;
    }
    *minutes = (hour * 60 + minute) * (*text == '-' ? -1 : 1);
    return true;
}

/* RFC 3339 has more spellings than the broker: lower-case letters, a blank for the T, any fraction, any offset. */
static bool parse_rfc3339(const char *text, struct broker_us *out)
{
    char plain[32];
    size_t fraction = 0;
    int minutes = 0;

    if (strlen(text) < 20 || strchr("Tt ", text[10]) == NULL) {
        return false;
    }
    if (text[19] == '.') {
        fraction = 1 + strspn(text + 20, "0123456789");
        if (fraction == 1) {
            return false;
        }
    }
    size_t kept = 19 + (fraction > FRACTION + 1 ? FRACTION + 1 : fraction);
    memcpy(plain, text, kept);
    plain[10] = 'T';
    plain[kept] = 'Z';
    if (!parse_offset(text + 19 + fraction, &minutes) || !clock_parse_broker(plain, kept + 1, out)) {
        return false;
    }
    out->v -= minutes * MINUTE_US;
    return true;
}

int arguments_time(const char *option, const char *text, struct broker_us *out, struct error *error)
{
    if (text == NULL || parse_integer(text, &out->v) || parse_rfc3339(text, out)) {
        return 0;
    }
    return error_set(error, QS_ERROR_INPUT,
                     "%s %s: expected a time as 2026-09-04T10:05:00Z, or microseconds since 1970-01-01", option, text);
}

int arguments_stretch(const char *since, const char *until, struct window_query *query, struct error *error)
{
    query->has_since = since != NULL;
    query->has_until = until != NULL;
    int code = arguments_time("--since", since, &query->since, error);

    code = code != 0 ? code : arguments_time("--until", until, &query->until, error);
    if (code == 0 && query->has_since && query->has_until && query->since.v >= query->until.v) {
        code = error_set(error, QS_ERROR_INPUT, "--until %s: expected a time after --since %s", until, since);
    }
    return code;
}

int arguments_window(const char *window, struct window_query *query, struct error *error)
{
    int64_t k = 0;

    if (window == NULL) {
        return 0;
    }
    if (!parse_integer(window, &k) || k < 1) {
        return error_set(error, QS_ERROR_INPUT, "--window %s: expected the number of a window, from 1 on", window);
    }
    query->first_k = k;
    query->last_k = k;
    return 0;
}
