/*
 * Settings that are names and lists of names (spec 3.1): the sink, the queues, the bucket, the prefix; and RUST_LOG.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"
#include "common/settings_parse.h"

#define SINK_BYTES 64

int take_sink(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t size = strlen(text);

    if (size == 0 || size > SINK_BYTES || strspn(text, letters) != size) {
        return setting_refuse(row, text, error);
    }
    settings->sink = memory_copy(text, size);
    return 0;
}

static int refuse_queues(const struct setting_row *row, const char *text, const char *expected, struct error *error)
{
    struct setting_row told = *row;

    told.expected = expected;
    return setting_refuse(&told, text, error);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* A name that is there twice, NULL where all differ. Sorted aside: a list can have tens of thousands. */
static const char *find_twice(char *const *names, size_t count)
{
    const char *twice = NULL;
    char **sorted = memory_new(count, sizeof *sorted);

    memcpy(sorted, names, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 1; i < count && twice == NULL; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            twice = sorted[i];
        }
    }
    free(sorted);
    return twice;
}

/* Up to the next comma, without the blanks around it. */
static char *next_name(const char **at)
{
    const char *end = strchr(*at, ',');
    const char *start = *at;

    if (end == NULL) {
        end = start + strlen(start);
    }
    *at = *end == ',' ? end + 1 : NULL;
    while (start < end && isspace((unsigned char)*start)) {
        start++;
    }
    while (end > start && isspace((unsigned char)end[-1])) {
        end--;
    }
    return memory_copy(start, (size_t)(end - start));
}

int take_queues(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    const char *at = text;
    size_t capacity = 0;

    if (strcmp(text, "*") == 0) {
        settings->all_queues = true;
        return 0;
    }
    while (at != NULL) {
        settings->queues =
            memory_grow(settings->queues, &capacity, settings->queue_count + 1, sizeof *settings->queues);
        char *name = next_name(&at);
        settings->queues[settings->queue_count++] = name;
        if (*name == '\0') {
            return refuse_queues(row, text, "a name between the commas", error);
        }
        if (strcmp(name, "*") == 0) {
            return refuse_queues(row, text, "* alone, or a comma list without it", error);
        }
    }
    const char *twice = find_twice(settings->queues, settings->queue_count);
    if (twice != NULL) {
        char *expected = memory_format("each queue once (%.100s is there twice)", twice);
        refuse_queues(row, text, expected, error);
        free(expected);
        return QS_ERROR_INPUT;
    }
    return 0;
}

int take_bucket(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    /* With file: the bucket is a folder's name, and these two would be another folder. */
    bool dots = strcmp(text, ".") == 0 || strcmp(text, "..") == 0;

    if (dots || strpbrk(text, "/ ") != NULL) {
        return setting_refuse(row, text, error);
    }
    settings->bucket = memory_copy_text(text);
    return 0;
}

int take_prefix(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    const char *start = text + strspn(text, "/");
    size_t size = strlen(start);

    while (size > 0 && start[size - 1] == '/') {
        size--;
    }
    for (size_t at = 0; at <= size;) {
        size_t segment = 0;
        while (at + segment < size && start[at + segment] != '/') {
            segment++;
        }
        if (segment == 0 || (segment <= 2 && strspn(start + at, ".") >= segment)) {
            return setting_refuse(row, text, error);
        }
        at += segment + 1;
    }
    settings->prefix = memory_copy(start, size);
    return 0;
}

/* One directive of RUST_LOG, `level` or `target=level`: the level, or -1 where it isn't about this program. */
static int rust_level(const char *directive, bool *own)
{
    static const struct setting_choice levels[] = {{"off", LOG_ERROR}, {"error", LOG_ERROR}, {"warn", LOG_WARN},
                                                   {"info", LOG_INFO}, {"debug", LOG_DEBUG}, {"trace", LOG_DEBUG},
                                                   {NULL, 0}};
    static const char target[] = "queen_s3=";

    *own = strncmp(directive, target, sizeof target - 1) == 0;
    if (*own) {
        directive += sizeof target - 1;
    }
    for (const struct setting_choice *level = levels; level->name != NULL; level++) {
        if (strcasecmp(level->name, directive) == 0) {
            return level->value;
        }
    }
    return -1;
}

/* The variable belongs to a whole family of programs, the broker that starts this one among them: what in it is about
 * others, or not understood, is no error here. A directive of our own wins over a plain level wherever it stands. */
int take_rust_log(const struct setting_row *row, const char *text, struct settings *settings, struct error *error)
{
    int level = LOG_INFO;
    bool decided = false;

    (void)row;
    (void)error;
    for (const char *at = text; at != NULL;) {
        bool own = false;
        char *directive = next_name(&at);
        int found = rust_level(directive, &own);
        free(directive);
        if (found >= 0 && (own || !decided)) {
            level = found;
            decided = decided || own;
        }
    }
    settings->log_level = (enum log_level)level;
    return 0;
}
