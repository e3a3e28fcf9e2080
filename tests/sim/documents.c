#include "tests/sim/documents.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/text.h"

void documents_free(struct documents *documents)
{
    for (size_t i = 0; i < documents->row_count; i++) {
        free(documents->rows[i].key);
        cJSON_Delete(documents->rows[i].value);
    }
    for (size_t i = 0; i < documents->write_count; i++) {
        free(documents->writes[i].key);
        cJSON_Delete(documents->writes[i].value);
    }
    free(documents->rows);
    free(documents->writes);
    *documents = (struct documents){0};
}

/* ---- a request and its answer ---- */

void document_batch_copy(struct document_batch *batch, const struct kv_operation *operations, size_t count)
{
    *batch = (struct document_batch){.operations = memory_new(count, sizeof *operations), .count = count};
    for (size_t i = 0; i < count; i++) {
        struct kv_operation *copy = &batch->operations[i];
        *copy = operations[i];
        copy->key = memory_copy_text(operations[i].key);
        copy->value = memory_copy_text(operations[i].value);
        char **keys = memory_new(copy->key_count + 1, sizeof *keys);
        for (size_t k = 0; k < copy->key_count; k++)
            keys[k] = memory_copy_text(operations[i].keys[k]);
        copy->keys = (const char *const *)keys;
    }
}

static void batch_free_answer(struct document_batch *batch)
{
    for (size_t i = 0; i < batch->value_count; i++)
        cJSON_Delete(batch->values[i]);
    for (size_t i = 0; batch->results != NULL && i < batch->count; i++)
        free((void *)(uintptr_t)batch->results[i].rows);
    free(batch->values);
    free(batch->results);
    batch->values = NULL;
    batch->value_count = batch->value_capacity = 0;
    batch->results = NULL;
}

void document_batch_free(struct document_batch *batch)
{
    batch_free_answer(batch);
    for (size_t i = 0; i < batch->count; i++) {
        struct kv_operation *operation = &batch->operations[i];
        for (size_t k = 0; k < operation->key_count; k++)
            free((void *)(uintptr_t)operation->keys[k]);
        free((void *)(uintptr_t)operation->keys);
        free((void *)(uintptr_t)operation->key);
        free((void *)(uintptr_t)operation->value);
    }
    free(batch->operations);
    *batch = (struct document_batch){0};
}

/* A value as it comes back: the same in meaning, its keys in another order (the store keeps jsonb). */
static const cJSON *hand_out(struct document_batch *batch, const cJSON *value)
{
    if (value == NULL)
        return NULL;
    cJSON *copy = cJSON_CreateObject();
    const cJSON *item;
    cJSON_ArrayForEach (item, value) {
        cJSON *last = cJSON_Duplicate(item, true);
        cJSON_InsertItemInArray(copy, 0, last);
    }
    batch->values = memory_grow(batch->values, &batch->value_capacity, batch->value_count + 1, sizeof *batch->values);
    batch->values[batch->value_count++] = copy;
    return copy;
}

/* ---- rows ---- */

struct document_row *documents_find(struct documents *documents, const char *key)
{
    for (size_t i = 0; i < documents->row_count; i++)
        if (strcmp(documents->rows[i].key, key) == 0)
            return documents->rows[i].present ? &documents->rows[i] : NULL;
    return NULL;
}

static struct document_row *row_make(struct documents *documents, const char *key)
{
    for (size_t i = 0; i < documents->row_count; i++)
        if (strcmp(documents->rows[i].key, key) == 0)
            return &documents->rows[i];
    documents->rows =
        memory_grow(documents->rows, &documents->row_capacity, documents->row_count + 1, sizeof *documents->rows);
    struct document_row *row = &documents->rows[documents->row_count++];
    *row = (struct document_row){.key = memory_copy_text(key)};
    return row;
}

static void expire(struct documents *documents, int64_t now)
{
    for (size_t i = 0; i < documents->row_count; i++)
        if (documents->rows[i].present && documents->rows[i].expires <= now)
            documents->rows[i].present = false;
}

void documents_remove(struct documents *documents, const char *key)
{
    struct document_row *row = documents_find(documents, key);
    if (row != NULL)
        row->present = false;
}

static void remember(struct documents *documents, const char *key, const cJSON *value, int64_t now)
{
    if (text_ends_with(key, ":lease"))
        return;
    documents->writes = memory_grow(documents->writes, &documents->write_capacity, documents->write_count + 1,
                                    sizeof *documents->writes);
    documents->writes[documents->write_count++] =
        (struct document_write){memory_copy_text(key), cJSON_Duplicate(value, true), now};
}

const cJSON *documents_last(const struct documents *documents, const char *key)
{
    for (size_t i = documents->write_count; i-- > 0;)
        if (strcmp(documents->writes[i].key, key) == 0)
            return documents->writes[i].value;
    return NULL;
}

/* ---- a batch ---- */

static enum kv_reason verdict(const struct document_row *row, const struct kv_operation *operation)
{
    if (operation->kind == KV_PUT_IF_ABSENT)
        return row != NULL ? KV_REASON_EXISTS : KV_REASON_NONE;
    if (!operation->has_expect)
        return operation->kind == KV_DELETE && row == NULL ? KV_REASON_ABSENT : KV_REASON_NONE;
    if (operation->expect == 0)
        return row != NULL ? KV_REASON_EXISTS : KV_REASON_NONE;
    if (row == NULL)
        return KV_REASON_ABSENT;
    return row->version == operation->expect ? KV_REASON_NONE : KV_REASON_VERSION;
}

static int compare_operations(const void *a, const void *b)
{
    return strcmp((*(const struct kv_operation *const *)a)->key, (*(const struct kv_operation *const *)b)->key);
}

static void read_many(struct documents *documents, struct document_batch *batch, size_t index)
{
    const struct kv_operation *operation = &batch->operations[index];
    struct kv_row *rows = memory_new(operation->key_count + 1, sizeof *rows);
    size_t count = 0;
    for (size_t k = operation->key_count; k-- > 0;) {
        struct document_row *row = documents_find(documents, operation->keys[k]);
        if (row != NULL)
            rows[count++] = (struct kv_row){operation->keys[k], row->version, hand_out(batch, row->value)};
    }
    batch->results[index].rows = rows;
    batch->results[index].row_count = count;
}

static void apply_one(struct documents *documents, struct document_batch *batch, const struct kv_operation *operation,
                      int64_t now)
{
    struct kv_result *result = &batch->results[operation - batch->operations];
    struct document_row *row = documents_find(documents, operation->key);
    result->reason = verdict(row, operation);
    result->applied = result->reason == KV_REASON_NONE;
    if (!result->applied) {
        result->version = row != NULL ? row->version : 0;
        result->value = row != NULL ? hand_out(batch, row->value) : NULL;
        return;
    }
    batch->wrote = true;
    if (operation->kind == KV_DELETE) {
        documents_remove(documents, operation->key);
        return;
    }
    row = row_make(documents, operation->key);
    cJSON_Delete(row->value);
    row->value = cJSON_Parse(operation->value);
    row->version = ++documents->version * 7;
    row->expires = operation->ttl_seconds > 0 ? now + operation->ttl_seconds * 1000 : INT64_MAX;
    row->present = true;
    result->version = row->version;
    result->value = hand_out(batch, row->value);
    remember(documents, operation->key, row->value, now);
}

static void roll_back(struct documents *documents, struct document_batch *batch, const struct kv_operation *loser,
                      bool bare)
{
    struct document_row *row = documents_find(documents, loser->key);
    batch->answer = (struct kv_answer){.precondition_failed = true, .failed_index = SIZE_MAX};
    if (bare)
        return;
    batch->answer.failed_index = (size_t)(loser - batch->operations);
    batch->answer.reason = verdict(row, loser);
    batch->answer.version = row != NULL ? row->version : 0;
    batch->answer.value = row != NULL ? hand_out(batch, row->value) : NULL;
}

void documents_apply(struct documents *documents, struct document_batch *batch, int64_t now, bool bare)
{
    const struct kv_operation **sorted = memory_new(batch->count + 1, sizeof *sorted);
    size_t writes = 0;
    batch_free_answer(batch);
    batch->results = memory_new(batch->count + 1, sizeof *batch->results);
    batch->wrote = false;
    expire(documents, now);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->operations[i].kind != KV_GET_MANY)
            sorted[writes++] = &batch->operations[i];
    qsort(sorted, writes, sizeof *sorted, compare_operations);
    for (size_t i = 0; i < writes; i++)
        if (sorted[i]->required && verdict(documents_find(documents, sorted[i]->key), sorted[i]) != KV_REASON_NONE) {
            roll_back(documents, batch, sorted[i], bare);
            free(sorted);
            return;
        }
    for (size_t i = 0; i < writes; i++)
        apply_one(documents, batch, sorted[i], now);
    free(sorted);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->operations[i].kind == KV_GET_MANY)
            read_many(documents, batch, i);
    batch->answer = (struct kv_answer){.failed_index = SIZE_MAX, .results = batch->results, .count = batch->count};
}
