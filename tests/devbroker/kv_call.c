/*
 * POST /api/v1/kv (spec 01, 1.4): one batch, one transaction.
 *
 * Writes run by (namespace, key) and not in request order, reads after them; the first required write that loses in
 * that order undoes all of it and is the answer.
 */
#include "broker.h"
#include "clock.h"
#include "kv_parse.h"

#include <stdlib.h>
#include <string.h>

/* Above this a lost precondition is answered bare; the real bound is the size of a database error's detail. */
#define WINNER_LIMIT 4096

struct undo {
    const struct kv_operation *operation;
    struct kv_row *before;
};

struct batch {
    struct kv *kv;
    int64_t now_us;
    struct undo *undos;
    size_t undo_count;
    const struct kv_operation *failed; /* the required one that lost first */
    const char *failed_reason;
    const struct kv_row *winner;
};

static int operation_compare(const void *left_operation, const void *right_operation)
{
    const struct kv_operation *left = *(struct kv_operation *const *)left_operation;
    const struct kv_operation *right = *(struct kv_operation *const *)right_operation;
    int order;

    if (kv_verb_writes(left->verb) != kv_verb_writes(right->verb)) {
        return kv_verb_writes(left->verb) ? -1 : 1;
    }
    order = slice_compare(text_slice(&left->namespace), text_slice(&right->namespace));
    if (order == 0) {
        order = slice_compare(text_slice(&left->key), text_slice(&right->key));
    }
    return order != 0 ? order : (left->index < right->index ? -1 : 1);
}

static void add_time(struct text *text, int64_t at_us)
{
    char spelled[CLOCK_TEXT_SIZE];

    clock_write(spelled, at_us);
    text_add_string(text, "\"");
    text_add(text, spelled, sizeof spelled - 1);
    text_add_string(text, "+00:00\"");
}

static void add_version_and_value(struct text *text, const struct kv_row *row)
{
    text_add_string(text, "\"version\":");
    if (row == NULL) {
        text_add_string(text, "null,\"value\":null");
        return;
    }
    text_add_number(text, row->version);
    text_add_string(text, ",\"value\":");
    text_add_slice(text, row->value);
}

static void add_times(struct text *text, const struct kv_row *row)
{
    text_add_string(text, ",\"updatedAt\":");
    add_time(text, row->updated_at_us);
    text_add_string(text, ",\"expiresAt\":");
    if (row->expires_at_us == KV_FOREVER) {
        text_add_string(text, "null");
    } else {
        add_time(text, row->expires_at_us);
    }
}

static void add_row(struct text *text, const struct kv_row *row, bool first)
{
    text_add_string(text, first ? "{\"key\":" : ",{\"key\":");
    text_add_quoted(text, row->key);
    text_add_string(text, ",");
    add_version_and_value(text, row);
    add_times(text, row);
    text_add_string(text, "}");
}

/* Why the write loses against the live row (or none), NULL when it doesn't. */
static const char *lost_reason(const struct kv_operation *operation, const struct kv_row *row)
{
    if (operation->verb == KV_PUT_IF_ABSENT || (operation->has_expect && operation->expect == 0)) {
        return row == NULL ? NULL : "exists";
    }
    if (operation->verb == KV_DELETE && row == NULL) {
        return "absent";
    }
    if (!operation->has_expect) {
        return NULL;
    }
    if (row == NULL) {
        return "absent";
    }
    return row->version == operation->expect ? NULL : "version";
}

static void apply_write(struct batch *batch, struct kv_operation *operation)
{
    struct slice namespace = text_slice(&operation->namespace);
    struct slice key = text_slice(&operation->key);
    struct kv_row *live = kv_find_live(batch->kv, namespace, key, batch->now_us);
    const char *reason = lost_reason(operation, live);
    struct kv_row *made = NULL;
    struct text *text = &operation->result;

    if (reason != NULL) {
        if (operation->required) {
            batch->failed = operation;
            batch->failed_reason = reason;
            batch->winner = live;
        }
        text_add_string(text, "\"applied\":false,");
        add_version_and_value(text, live);
        text_add_format(text, ",\"reason\":\"%s\"", reason);
        return;
    }
    text_add_string(text, "\"applied\":true,");
    if (operation->verb == KV_DELETE) {
        text_add_string(text, "\"version\":");
        text_add_number(text, live == NULL ? 0 : live->version);
    } else {
        made = kv_row_make(batch->kv, namespace, key, text_slice(&operation->value), batch->now_us,
                           operation->ttl_seconds == 0 ? KV_FOREVER
                                                       : batch->now_us + operation->ttl_seconds * INT64_C(1000000));
        add_version_and_value(text, made);
        add_times(text, made);
    }
    batch->undos[batch->undo_count++] = (struct undo){operation, kv_replace(batch->kv, namespace, key, made)};
}

static void read_one(struct batch *batch, struct kv_operation *operation)
{
    struct text *text = &operation->result;
    struct kv_row *row =
        kv_find_live(batch->kv, text_slice(&operation->namespace), text_slice(&operation->key), batch->now_us);

    text_add_format(text, "\"found\":%s,", row == NULL ? "false" : "true");
    add_version_and_value(text, row);
    if (row != NULL) {
        add_times(text, row);
    }
}

static void read_many(struct batch *batch, struct kv_operation *operation)
{
    struct text *text = &operation->result;
    struct text missing = {0};
    bool first = true;

    text_add_string(text, "\"rows\":[");
    for (size_t i = 0; i < operation->key_count; i++) {
        struct slice key = text_slice(&operation->keys[i]);
        struct kv_row *row = kv_find_live(batch->kv, text_slice(&operation->namespace), key, batch->now_us);

        if (row != NULL) {
            add_row(text, row, first);
            first = false;
        } else {
            text_add_string(&missing, missing.size == 0 ? "" : ",");
            text_add_quoted(&missing, key);
        }
    }
    text_add_string(text, "],\"missing\":[");
    text_add_slice(text, text_slice(&missing));
    text_add_string(text, "],\"truncated\":false");
    text_free(&missing);
}

static bool has_prefix(struct slice key, struct slice prefix)
{
    return key.size >= prefix.size && slice_equal((struct slice){key.at, prefix.size}, prefix);
}

static void read_prefix(struct batch *batch, struct kv_operation *operation)
{
    struct text *text = &operation->result;
    struct slice namespace = text_slice(&operation->namespace);
    struct slice prefix = text_slice(&operation->key);
    struct slice after = operation->has_after ? text_slice(&operation->after) : prefix;
    const struct kv_row *last = NULL;
    int64_t count = 0;
    bool truncated = false;
    bool found;
    size_t at = kv_position(batch->kv, namespace, slice_compare(after, prefix) < 0 ? prefix : after, &found);

    at += found && operation->has_after && slice_equal(batch->kv->rows[at]->key, after);
    text_add_string(text, "\"rows\":[");
    for (; at < batch->kv->count && !truncated; at++) {
        const struct kv_row *row = batch->kv->rows[at];

        if (!slice_equal(row->namespace, namespace) || !has_prefix(row->key, prefix)) {
            break;
        }
        if (row->expires_at_us <= batch->now_us) {
            continue;
        }
        truncated = count == operation->limit;
        if (!truncated) {
            add_row(text, row, count == 0);
            last = row;
            count++;
        }
    }
    text_add_format(text, "],\"truncated\":%s,\"nextAfter\":", truncated ? "true" : "false");
    if (truncated && last != NULL) {
        text_add_quoted(text, last->key);
    } else {
        text_add_string(text, "null");
    }
}

static void run_operation(struct batch *batch, struct kv_operation *operation)
{
    switch (operation->verb) {
    case KV_GET: read_one(batch, operation); break;
    case KV_GET_MANY: read_many(batch, operation); break;
    case KV_GET_PREFIX: read_prefix(batch, operation); break;
    default: apply_write(batch, operation); break;
    }
}

static void undo_all(struct batch *batch)
{
    while (batch->undo_count > 0) {
        const struct undo *undo = &batch->undos[--batch->undo_count];

        kv_row_free(kv_replace(batch->kv, text_slice(&undo->operation->namespace), text_slice(&undo->operation->key),
                               undo->before));
    }
}

static void keep_all(struct batch *batch)
{
    while (batch->undo_count > 0) {
        kv_row_free(batch->undos[--batch->undo_count].before);
    }
}

static void add_lost(const struct batch *batch, struct text *text)
{
    text_add_string(text, "{\"ok\":false,\"reason\":\"kv_precondition\"");
    if (batch->winner == NULL || batch->winner->value.size <= WINNER_LIMIT) {
        text_add_format(text, ",\"failedIndex\":%zu,\"kvReason\":\"%s\",", batch->failed->index, batch->failed_reason);
        add_version_and_value(text, batch->winner);
    }
    text_add_string(text, "}");
}

static void add_results(const struct kv_request *request, size_t index_shift, struct text *text)
{
    text_add_string(text, "{\"results\":[");
    for (size_t i = 0; i < request->count; i++) {
        const struct kv_operation *operation = &request->operations[i];

        text_add_format(text, "%s{\"index\":%zu,\"op\":\"%s\",", i == 0 ? "" : ",", i + index_shift,
                        kv_verb_name(operation->verb));
        if (!kv_verb_writes(operation->verb) && operation->verb != KV_GET) {
            text_add_slice(text, text_slice(&operation->result));
        } else {
            text_add_string(text, "\"key\":");
            text_add_quoted(text, text_slice(&operation->key));
            text_add_string(text, ",");
            text_add_slice(text, text_slice(&operation->result));
        }
        text_add_string(text, "}");
    }
    text_add_string(text, "]}");
}

/* The kv lock is held. */
static bool run_batch(struct kv *kv, struct kv_request *request, size_t index_shift, struct text *text)
{
    struct batch batch = {.kv = kv, .now_us = clock_now_us()};
    struct kv_operation **sorted = memory_take(request->count, sizeof(struct kv_operation *));
    bool changed;

    batch.undos = memory_take(request->count, sizeof *batch.undos);
    for (size_t i = 0; i < request->count; i++) {
        sorted[i] = &request->operations[i];
    }
    qsort(sorted, request->count, sizeof *sorted, operation_compare);
    for (size_t i = 0; i < request->count && batch.failed == NULL; i++) {
        run_operation(&batch, sorted[i]);
    }
    changed = batch.failed == NULL && batch.undo_count > 0;
    if (batch.failed != NULL) {
        add_lost(&batch, text);
        undo_all(&batch);
    } else {
        add_results(request, index_shift, text);
        keep_all(&batch);
    }
    free(sorted);
    free(batch.undos);
    return changed;
}

static bool is_limited(struct broker *broker, bool writes)
{
    double rate = (double)broker->options.kv_writes_per_second;

    if (rate == 0) {
        return false;
    }
    /* In the proportions of the broker's own: 100 and 200 calls a second, bursts of 200 and 400 (spec 1.6). */
    return writes ? !kv_take_token(&broker->kv.writes, rate, 2 * rate)
                  : !kv_take_token(&broker->kv.reads, 2 * rate, 4 * rate);
}

static void answer_request(const struct call *call, struct kv_request *request, struct answer *answer)
{
    struct broker *broker = call->broker;
    bool wrong = call->fault != NULL && call->fault->kind == FAULT_WRONG_ENTRY;
    bool limited;
    bool changed = false;

    pthread_mutex_lock(&broker->kv.lock);
    limited = is_limited(broker, request->writes);
    if (!limited) {
        changed = run_batch(&broker->kv, request, wrong, &answer->text);
    }
    pthread_mutex_unlock(&broker->kv.lock);
    if (limited) {
        answer->retry_after = 1;
        answer_error(answer, 429, "rate limited");
    }
    if (changed && broker->store.version_2) {
        /* A write is what moves safeTime of 2.x. */
        clock_stamp();
    }
}

void kv_answer(const struct call *call, struct answer *answer)
{
    struct kv_request request;

    kv_parse(call->body, &request);
    if (request.problem != NULL) {
        answer_error(answer, request.status, request.problem);
    } else if (broker_database_is_down(call->broker)) {
        answer->retry_after = 1;
        answer_error(answer, 503, "pool");
    } else {
        answer_request(call, &request, answer);
    }
    answer->entries = (int64_t)request.count;
    kv_request_free(&request);
}
