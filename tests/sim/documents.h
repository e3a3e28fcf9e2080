/*
 * A model of the broker's kv store (spec 1.4): versions that are never used again, expiry on the model's clock, batches
 * that run in the order of their keys, and a required operation that loses rolling all of it back.
 */
#ifndef TESTS_SIM_DOCUMENTS_H
#define TESTS_SIM_DOCUMENTS_H

#include "common/queen_api.h"

struct document_row {
    char *key;
    cJSON *value;
    int64_t version;
    int64_t expires; /* milliseconds; INT64_MAX: never */
    bool present;
};

/* Every write of a pointer that was applied, for the check. */
struct document_write {
    char *key;
    cJSON *value;
    int64_t at;
};

struct documents {
    struct document_row *rows;
    size_t row_count;
    size_t row_capacity;
    int64_t version;
    struct document_write *writes;
    size_t write_count;
    size_t write_capacity;
};

/* A request, copied; and its answer, owned. */
struct document_batch {
    struct kv_operation *operations;
    size_t count;
    struct kv_result *results;
    struct kv_answer answer;
    cJSON **values; /* that the results point to */
    size_t value_count;
    size_t value_capacity;
    bool wrote; /* something was applied */
};

void documents_free(struct documents *documents);
void document_batch_copy(struct document_batch *batch, const struct kv_operation *operations, size_t count);
void document_batch_free(struct document_batch *batch);
/* Applies a batch at millisecond `now`; `bare`: a precondition that failed is told without its winner. */
void documents_apply(struct documents *documents, struct document_batch *batch, int64_t now, bool bare);
struct document_row *documents_find(struct documents *documents, const char *key);
/* The last value of a pointer that was written; NULL for none. */
const cJSON *documents_last(const struct documents *documents, const char *key);
void documents_remove(struct documents *documents, const char *key);

#endif
