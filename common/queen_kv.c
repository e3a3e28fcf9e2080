/*
 * Reading kv answers (spec 1.4): see queen_answer.h.
 *
 * What decides who owns a queue is checked until nothing is left to guess: every operation has exactly one result of its
 * own kind, every key that was asked for is either found or said to be missing (an absent pointer would start a lake
 * anew), and a write that was `required` can't have lost in a batch that stands. Versions keep all their digits; values
 * become cJSON trees, since what is compared is their meaning.
 */
#include <stdlib.h>
#include <string.h>

#include "common/queen_answer.h"
#include "common/queen_request.h"

/* The members of a result, a row or a refusal; bytes NULL where absent or null, except for a row's value. */
struct members {
    struct json_text index;
    struct json_text op;
    struct json_text applied;
    struct json_text reason;
    struct json_text version;
    struct json_text value;
    struct json_text key;
    struct json_text rows;
    struct json_text missing;
    struct json_text truncated;
    struct json_text ok;
    struct json_text failed_index;
    struct json_text kv_reason;
    struct json_text results;
};

static struct json_text *member_place(struct members *members, struct json_text key)
{
    const struct {
        const char *name;
        struct json_text *place;
    } places[] = {{"index", &members->index},
                  {"op", &members->op},
                  {"applied", &members->applied},
                  {"reason", &members->reason},
                  {"version", &members->version},
                  {"value", &members->value},
                  {"key", &members->key},
                  {"rows", &members->rows},
                  {"missing", &members->missing},
                  {"truncated", &members->truncated},
                  {"ok", &members->ok},
                  {"failedIndex", &members->failed_index},
                  {"kvReason", &members->kv_reason},
                  {"results", &members->results}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (json_text_is(key, places[i].name)) {
            return places[i].place;
        }
    }
    return NULL;
}

static bool find_members(struct json_scan *scan, struct json_text value, struct members *members)
{
    struct json_walk walk;
    struct json_text key;
    *members = (struct members){0};
    if (!json_walk_object(&walk, scan, value)) {
        return false;
    }
    while (json_walk_member(&walk, &key, &value)) {
        struct json_text *place = member_place(members, key);
        if (place != NULL && (place == &members->value || !json_text_is(value, "null"))) {
            *place = value;
        }
    }
    return true;
}

static enum kv_reason read_reason(struct json_text value)
{
    return json_text_is(value, "\"exists\"")    ? KV_REASON_EXISTS
           : json_text_is(value, "\"absent\"")  ? KV_REASON_ABSENT
           : json_text_is(value, "\"version\"") ? KV_REASON_VERSION
                                                : KV_REASON_NONE;
}

/* Absent is 0; false where it is there and no integer. */
static bool read_version(struct json_text value, int64_t *version)
{
    *version = 0;
    return value.bytes == NULL || json_text_integer(value, version);
}

/* The reading keeps the tree. NULL: out of memory, or nested deeper than cJSON likes. */
static const cJSON *keep_document(struct kv_reading *reading, struct json_text value)
{
    if (reading->documents == NULL) {
        reading->documents = cJSON_CreateArray();
    }
    cJSON *document = cJSON_ParseWithLength(value.bytes, value.size);
    if (document == NULL || !cJSON_AddItemToArray(reading->documents, document)) {
        cJSON_Delete(document);
        return NULL;
    }
    return document;
}

static bool read_winner(struct kv_reading *reading, struct json_text value, const cJSON **out)
{
    if (value.bytes == NULL || json_text_is(value, "null")) {
        *out = NULL;
        return true;
    }
    *out = keep_document(reading, value);
    return *out != NULL;
}

static int read_rows(struct json_scan *scan, struct json_text value, size_t index, struct kv_reading *reading,
                     struct error *error)
{
    struct json_walk walk;
    struct members members;
    if (!json_walk_array(&walk, scan, value)) {
        return error_set(error, QS_ERROR_BODY, "result %zu: rows isn't an array", index);
    }
    while (json_walk_element(&walk, &value)) {
        void *array = reading->rows;
        if (!queen_answer_grow(&array, &reading->row_capacity, reading->row_count, sizeof *reading->rows)) {
            return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for rows");
        }
        reading->rows = array;
        struct kv_row *row = &reading->rows[reading->row_count];
        if (!find_members(scan, value, &members) || !json_text_c_string(members.key, &row->key) ||
            !json_text_integer(members.version, &row->version) || members.value.bytes == NULL) {
            return error_set(error, QS_ERROR_BODY, "result %zu: a row lacks key, version or value", index);
        }
        row->value = keep_document(reading, members.value);
        if (row->value == NULL) {
            return error_set(error, QS_ERROR_BODY, "result %zu: the value of key %.200s can't be read", index,
                             row->key);
        }
        reading->row_count++;
    }
    return QS_OK;
}

static int read_missing(struct json_scan *scan, struct json_text value, size_t index, struct kv_reading *reading,
                        struct error *error)
{
    struct json_walk walk;
    reading->missing_count = 0;
    if (value.bytes == NULL) {
        return QS_OK;
    }
    if (!json_walk_array(&walk, scan, value)) {
        return error_set(error, QS_ERROR_BODY, "result %zu: missing isn't an array", index);
    }
    while (json_walk_element(&walk, &value)) {
        void *array = reading->missing;
        if (!queen_answer_grow(&array, &reading->missing_capacity, reading->missing_count, sizeof *reading->missing)) {
            return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for keys");
        }
        reading->missing = array;
        if (!json_text_c_string(value, &reading->missing[reading->missing_count++])) {
            return error_set(error, QS_ERROR_BODY, "result %zu: a missing key isn't a key", index);
        }
    }
    return QS_OK;
}

/* How often a key is found or said to be missing. */
static size_t key_mentions(const struct kv_reading *reading, size_t first_row, const char *key)
{
    size_t mentions = 0;
    for (size_t i = first_row; i < reading->row_count; i++) {
        mentions += strcmp(reading->rows[i].key, key) == 0;
    }
    for (size_t i = 0; i < reading->missing_count; i++) {
        mentions += strcmp(reading->missing[i], key) == 0;
    }
    return mentions;
}

static int read_many(struct json_scan *scan, const struct members *members, const struct kv_operation *asked,
                     size_t index, struct kv_reading *reading, struct error *error)
{
    size_t first = reading->row_count;
    int status = read_rows(scan, members->rows, index, reading, error);
    if (status == QS_OK) {
        status = read_missing(scan, members->missing, index, reading, error);
    }
    if (status != QS_OK) {
        return status;
    }
    reading->results[index].row_count = reading->row_count - first;
    if (json_text_is(members->truncated, "true")) {
        return error_set(error, QS_ERROR_BODY, "result %zu is cut short: too many keys for one call", index);
    }
    for (size_t i = 0; i < asked->key_count; i++) {
        if (key_mentions(reading, first, asked->keys[i]) != 1) {
            return error_set(error, QS_ERROR_BODY, "result %zu: key %.200s is neither found nor missing, or both",
                             index, asked->keys[i]);
        }
    }
    if (reading->row_count - first + reading->missing_count != asked->key_count) {
        return error_set(error, QS_ERROR_BODY, "result %zu has keys that weren't asked for", index);
    }
    return QS_OK;
}

static int read_write(const struct members *members, const struct kv_operation *asked, size_t index,
                      struct kv_reading *reading, struct error *error)
{
    struct kv_result *result = &reading->results[index];
    if (!json_text_boolean(members->applied, &result->applied)) {
        return error_set(error, QS_ERROR_BODY, "result %zu doesn't say whether it was applied", index);
    }
    if (!read_version(members->version, &result->version) ||
        (result->applied && asked->kind != KV_DELETE && members->version.bytes == NULL)) {
        return error_set(error, QS_ERROR_BODY, "result %zu: version is missing or not an integer", index);
    }
    if (result->applied) {
        return QS_OK; /* its value is the one that was sent */
    }
    if (asked->required) {
        return error_set(error, QS_ERROR_BODY, "result %zu: a required write was lost, and the batch stands", index);
    }
    result->reason = read_reason(members->reason);
    if (!read_winner(reading, members->value, &result->value)) {
        return error_set(error, QS_ERROR_BODY, "result %zu: the winner's value can't be read", index);
    }
    return QS_OK;
}

static int read_result(struct json_scan *scan, struct json_text value, const struct kv_operation *asked, size_t count,
                       bool *seen, struct kv_reading *reading, size_t *rows_of, struct error *error)
{
    struct members members;
    struct name op;
    int64_t index;
    if (!find_members(scan, value, &members) || !json_text_integer(members.index, &index) || index < 0 ||
        (uint64_t)index >= count || seen[index]) {
        return error_set(error, QS_ERROR_BODY, "the results aren't one an operation");
    }
    size_t at = (size_t)index;
    const char *expected = kv_kind_name(asked[at].kind);
    if (!json_text_string(members.op, &op) || op.size != strlen(expected) || memcmp(op.bytes, expected, op.size) != 0) {
        return error_set(error, QS_ERROR_BODY, "result %zu isn't of a %s", at, expected);
    }
    seen[at] = true;
    rows_of[at] = reading->row_count;
    if (asked[at].kind == KV_GET_MANY) {
        return read_many(scan, &members, &asked[at], at, reading, error);
    }
    return read_write(&members, &asked[at], at, reading, error);
}

static int read_results(struct json_scan *scan, struct json_text value, const struct kv_operation *asked, size_t count,
                        struct kv_reading *reading, struct error *error)
{
    bool seen[QUEEN_KV_OPERATIONS_MAX] = {0};
    size_t rows_of[QUEEN_KV_OPERATIONS_MAX];
    struct json_walk walk;
    size_t done = 0;
    if (!json_walk_array(&walk, scan, value)) {
        return error_set(error, QS_ERROR_BODY, "the answer has no array of results");
    }
    while (json_walk_element(&walk, &value)) {
        int status = read_result(scan, value, asked, count, seen, reading, rows_of, error);
        if (status != QS_OK) {
            return status;
        }
        done++;
    }
    if (done != count) {
        return error_set(error, QS_ERROR_BODY, "the answer has %zu results of %zu", done, count);
    }
    /* Only now do the rows stay where they are. */
    for (size_t i = 0; i < count; i++) {
        if (reading->results[i].row_count > 0) {
            reading->results[i].rows = &reading->rows[rows_of[i]];
        }
    }
    reading->answer.results = reading->results;
    return QS_OK;
}

/* {"ok":false,…}: a verdict on the whole batch. Without more where the winner is large. */
static int read_refusal(const struct members *members, size_t count, struct kv_reading *reading, struct error *error)
{
    struct kv_answer *answer = &reading->answer;
    int64_t failed;
    if (!json_text_is(members->reason, "\"kv_precondition\"")) {
        return error_set(error, QS_ERROR_BODY, "the answer refuses the batch for an unknown reason");
    }
    answer->precondition_failed = true;
    answer->failed_index = SIZE_MAX;
    answer->reason = read_reason(members->kv_reason);
    if (members->failed_index.bytes != NULL) {
        if (!json_text_integer(members->failed_index, &failed) || failed < 0 || (uint64_t)failed >= count) {
            return error_set(error, QS_ERROR_BODY, "failedIndex isn't one of the %zu operations", count);
        }
        answer->failed_index = (size_t)failed;
    }
    if (!read_version(members->version, &answer->version)) {
        return error_set(error, QS_ERROR_BODY, "the winner's version isn't an integer");
    }
    if (!read_winner(reading, members->value, &answer->value)) {
        return error_set(error, QS_ERROR_BODY, "the winner's value can't be read");
    }
    return QS_OK;
}

int queen_read_kv(struct json_scan *scan, char *body, size_t size, const struct kv_operation *asked, size_t count,
                  struct kv_reading *reading, struct error *error)
{
    struct json_text whole;
    struct members members;
    int status = queen_answer_scan(scan, body, size, &whole, error);
    if (status != QS_OK) {
        return status;
    }
    if (!find_members(scan, whole, &members)) {
        return error_set(error, QS_ERROR_BODY, "the answer isn't an object");
    }
    reading->answer.count = count;
    if (json_text_is(members.ok, "false")) {
        return read_refusal(&members, count, reading, error);
    }
    if (count > QUEEN_KV_OPERATIONS_MAX) {
        return error_set(error, QS_ERROR_INPUT, "more than %d operations in a call", QUEEN_KV_OPERATIONS_MAX);
    }
    reading->results = calloc(count > 0 ? count : 1, sizeof *reading->results);
    if (reading->results == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for results");
    }
    return read_results(scan, members.results, asked, count, reading, error);
}

bool kv_reading_lost(const struct kv_reading *reading, const struct kv_operation *asked)
{
    if (reading->answer.precondition_failed) {
        return true;
    }
    for (size_t i = 0; i < reading->answer.count; i++) {
        if (asked[i].kind != KV_GET_MANY && !reading->results[i].applied) {
            return true;
        }
    }
    return false;
}

void kv_reading_free(struct kv_reading *reading)
{
    free(reading->results);
    free(reading->rows);
    free((void *)reading->missing);
    cJSON_Delete(reading->documents);
    *reading = (struct kv_reading){0};
}
