/*
 * Faults on order; see faults.h for the contract.
 */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

static const char *const kind_names[] = {"status",      "delay", "reset-before", "reset-after", "cut", "garbled",
                                         "wrong-entry", "empty", "entry-error",  "lag",         "hang"};
#define KIND_COUNT (sizeof kind_names / sizeof kind_names[0])

void faults_start(struct faults *faults)
{
    *faults = (struct faults){.next_id = 1};
    pthread_mutex_init(&faults->lock, NULL);
}

void faults_end(struct faults *faults)
{
    faults_clear(faults);
    pthread_mutex_destroy(&faults->lock);
}

static void slice_free(struct slice slice)
{
    free((void *)(uintptr_t)slice.at);
}

void fault_free(struct fault *fault)
{
    if (fault == NULL) {
        return;
    }
    slice_free(fault->queue);
    slice_free(fault->partition);
    slice_free(fault->key_contains);
    slice_free(fault->every_key_contains);
    slice_free(fault->op);
    free(fault);
}

void faults_clear(struct faults *faults)
{
    pthread_mutex_lock(&faults->lock);
    for (size_t i = 0; i < faults->count; i++) {
        fault_free(faults->rules[i]);
    }
    free(faults->rules);
    faults->rules = NULL;
    faults->count = 0;
    pthread_mutex_unlock(&faults->lock);
}

static bool take_string(struct slice value, struct slice *to)
{
    struct text decoded = {0};
    bool fine = value.at == NULL || (json_is_string(value) && json_string(value, &decoded));

    if (fine && value.at != NULL) {
        *to = slice_copy(text_slice(&decoded));
    }
    text_free(&decoded);
    return fine;
}

static bool take_characters(struct slice value, char *to, size_t capacity)
{
    struct slice taken = {0};
    bool fine = take_string(value, &taken) && taken.size < capacity;

    if (fine && taken.at != NULL) {
        memcpy(to, taken.at, taken.size + 1);
    }
    slice_free(taken);
    return fine;
}

static bool take_integer(struct slice value, int64_t low, int64_t high, int64_t *to)
{
    return value.at == NULL || (json_integer(value, to) && *to >= low && *to <= high);
}

static bool take_kind(struct slice value, enum fault_kind *kind)
{
    char name[16] = "status";

    if (!take_characters(value, name, sizeof name)) {
        return false;
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(name, kind_names[i]) == 0) {
            *kind = (enum fault_kind)i;
            return true;
        }
    }
    return false;
}

static const char *read_rule(struct slice object, struct fault *fault)
{
    static const char *const names[] = {
        "route", "kind",  "count", "skip",      "status",      "retryAfter",       "delayMs",
        "lagUs", "error", "queue", "partition", "keyContains", "everyKeyContains", "op"};
    struct slice values[14];
    int64_t status = 503;
    int64_t retry_after = -1;

    fault->count = 1;
    strcpy(fault->route, "any");
    strcpy(fault->error, "TEMPORARILY_UNAVAILABLE");
    if (!json_members(object, names, values, 14)) {
        return "a fault has to be an object";
    }
    if (!take_kind(values[1], &fault->kind)) {
        return "kind has to be one of status, delay, reset-before, reset-after, cut, garbled, wrong-entry, empty, "
               "entry-error, lag, hang";
    }
    if (!take_integer(values[2], -1, INT64_MAX, &fault->count) ||
        !take_integer(values[3], 0, INT64_MAX, &fault->skip) || !take_integer(values[4], 200, 599, &status) ||
        !take_integer(values[5], -1, 86400, &retry_after) || !take_integer(values[6], 0, 86400000, &fault->delay_ms) ||
        !take_integer(values[7], 0, INT64_MAX / 2, &fault->lag_us)) {
        return "count, skip, status, retryAfter, delayMs and lagUs have to be integers";
    }
    fault->status = (unsigned)status;
    fault->retry_after = (int)retry_after;
    if (!take_characters(values[0], fault->route, sizeof fault->route) ||
        !take_characters(values[8], fault->error, sizeof fault->error) || !take_string(values[9], &fault->queue) ||
        !take_string(values[10], &fault->partition) || !take_string(values[11], &fault->key_contains) ||
        !take_string(values[12], &fault->every_key_contains) || !take_string(values[13], &fault->op)) {
        return "route, error, queue, partition, keyContains, everyKeyContains and op have to be strings";
    }
    return NULL;
}

static const char *add_rule(struct faults *faults, struct slice object)
{
    struct fault *fault = memory_take(1, sizeof *fault);
    const char *problem = read_rule(object, fault);

    if (problem != NULL) {
        fault_free(fault);
        return problem;
    }
    pthread_mutex_lock(&faults->lock);
    fault->id = faults->next_id++;
    faults->rules = memory_resize(faults->rules, faults->count + 1, sizeof(struct fault *));
    faults->rules[faults->count++] = fault;
    pthread_mutex_unlock(&faults->lock);
    return NULL;
}

const char *faults_add(struct faults *faults, struct slice body)
{
    struct slice element;
    const char *problem = NULL;

    if (!json_is_valid(body)) {
        return "the body is no JSON";
    }
    if (!json_take(&body, &element)) {
        return "the body is no JSON";
    }
    if (!json_is_array(element)) {
        return add_rule(faults, element);
    }
    body = element;
    while (problem == NULL && json_next_element(&body, &element)) {
        problem = add_rule(faults, element);
    }
    return problem;
}

static void add_filter(struct text *text, const char *name, struct slice value)
{
    if (value.at != NULL) {
        text_add_format(text, ",\"%s\":", name);
        text_add_quoted(text, value);
    }
}

void faults_list(struct faults *faults, struct text *text)
{
    text_add_string(text, "{\"faults\":[");
    pthread_mutex_lock(&faults->lock);
    for (size_t i = 0; i < faults->count; i++) {
        const struct fault *fault = faults->rules[i];

        text_add_format(text,
                        "%s{\"id\":%lld,\"route\":\"%s\",\"kind\":\"%s\",\"count\":%lld,\"skip\":%lld,\"hits\":%lld,"
                        "\"status\":%u,\"retryAfter\":%d,\"delayMs\":%lld,\"lagUs\":%lld",
                        i == 0 ? "" : ",", (long long)fault->id, fault->route, kind_names[fault->kind],
                        (long long)fault->count, (long long)fault->skip, (long long)fault->hits, fault->status,
                        fault->retry_after, (long long)fault->delay_ms, (long long)fault->lag_us);
        add_filter(text, "error", slice_of(fault->error));
        add_filter(text, "queue", fault->queue);
        add_filter(text, "partition", fault->partition);
        add_filter(text, "keyContains", fault->key_contains);
        add_filter(text, "everyKeyContains", fault->every_key_contains);
        add_filter(text, "op", fault->op);
        text_add_string(text, "}");
    }
    pthread_mutex_unlock(&faults->lock);
    text_add_string(text, "]}");
}

static bool value_is(struct slice value, struct slice wanted)
{
    struct text decoded = {0};
    bool same = json_is_string(value) && json_string(value, &decoded) && slice_equal(text_slice(&decoded), wanted);

    text_free(&decoded);
    return same;
}

static bool value_contains(struct slice value, struct slice wanted)
{
    struct text decoded = {0};
    bool found = json_is_string(value) && json_string(value, &decoded) && slice_contains(text_slice(&decoded), wanted);

    text_free(&decoded);
    return found;
}

static bool matches_entries(const struct fault *fault, struct slice body)
{
    static const char *const lists[] = {"entries", "items"};
    static const char *const names[] = {"queue", "partition"};
    struct slice found[2];
    struct slice element;

    if (!json_members(body, lists, found, 2)) {
        return false;
    }
    if (found[0].at == NULL) {
        found[0] = found[1];
    }
    while (json_next_element(&found[0], &element)) {
        struct slice values[2];

        if (json_members(element, names, values, 2) && (fault->queue.at == NULL || value_is(values[0], fault->queue)) &&
            (fault->partition.at == NULL || values[1].at == NULL || value_is(values[1], fault->partition))) {
            return true;
        }
    }
    return false;
}

static bool matches_operations(const struct fault *fault, struct slice body)
{
    static const char *const list[] = {"operations"};
    static const char *const names[] = {"op", "key"};
    struct slice operations;
    struct slice element;
    bool found = false;
    bool every = true;
    bool any_write = false;

    if (!json_members(body, list, &operations, 1)) {
        return false;
    }
    while (json_next_element(&operations, &element)) {
        struct slice values[2];
        bool write;

        if (!json_members(element, names, values, 2)) {
            continue;
        }
        write = slice_contains(values[0], slice_of("put")) || slice_contains(values[0], slice_of("delete"));
        any_write = any_write || write;
        every = every && (!write || fault->every_key_contains.at == NULL ||
                          value_contains(values[1], fault->every_key_contains));
        if (fault->op.at == NULL ? write || fault->key_contains.at == NULL : value_is(values[0], fault->op)) {
            found = found || fault->key_contains.at == NULL || value_contains(values[1], fault->key_contains);
        }
    }
    return found && every && (fault->every_key_contains.at == NULL || any_write);
}

static bool matches(const struct fault *fault, const char *route, struct slice body)
{
    if (strcmp(fault->route, "any") != 0 && strcmp(fault->route, route) != 0) {
        return false;
    }
    if ((fault->queue.at != NULL || fault->partition.at != NULL) && !matches_entries(fault, body)) {
        return false;
    }
    if (fault->key_contains.at != NULL || fault->every_key_contains.at != NULL || fault->op.at != NULL) {
        return matches_operations(fault, body);
    }
    return true;
}

static struct fault *copy_rule(const struct fault *fault)
{
    struct fault *copy = memory_take(1, sizeof *copy);

    *copy = *fault;
    copy->queue = fault->queue.at == NULL ? fault->queue : slice_copy(fault->queue);
    copy->partition = fault->partition.at == NULL ? fault->partition : slice_copy(fault->partition);
    copy->key_contains = (struct slice){0};
    copy->every_key_contains = (struct slice){0};
    copy->op = (struct slice){0};
    return copy;
}

struct fault *faults_take(struct faults *faults, const char *route, struct slice body)
{
    struct fault *taken = NULL;
    bool valid = false;

    pthread_mutex_lock(&faults->lock);
    for (size_t i = 0; i < faults->count && taken == NULL; i++) {
        struct fault *fault = faults->rules[i];

        if (fault->count == 0) {
            continue;
        }
        if (!valid && (body.size == 0 || !json_is_valid(body))) {
            body = slice_of("{}");
        }
        valid = true;
        if (!matches(fault, route, body)) {
            continue;
        }
        if (fault->skip > 0) {
            fault->skip--;
            continue;
        }
        fault->count -= fault->count > 0;
        fault->hits++;
        taken = copy_rule(fault);
    }
    pthread_mutex_unlock(&faults->lock);
    return taken;
}

bool fault_hits(const struct fault *fault, struct slice queue, struct slice partition)
{
    return fault != NULL && (fault->queue.at == NULL || slice_equal(fault->queue, queue)) &&
           (fault->partition.at == NULL || slice_equal(fault->partition, partition));
}
