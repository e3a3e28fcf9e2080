/* The broker of a scripted world: see scripted_world.h. */
#include <check.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "scripted_world.h"

#define KEY_START "s3:default:orders:"

static struct scripted_world *world_of(struct queen_api *api)
{
    return (struct scripted_world *)(void *)((char *)api - offsetof(struct scripted_world, queen));
}

static struct queen_call *as_queen_call(struct scripted_call *call)
{
    return (struct queen_call *)(void *)call;
}

static void copy_name(char *out, size_t room, struct name name)
{
    snprintf(out, room, "%.*s", (int)name.size, name.bytes);
}

/* ---- fetch ---- */

static struct queen_call *fetch(struct queen_api *api, const struct fetch_request *request, queen_fetch_done *done,
                                void *argument)
{
    struct scripted_call *call = call_new(world_of(api), CALL_FETCH, argument);
    call->done.fetch = done;
    call->entries = memory_new(request->count, sizeof *call->entries);
    call->count = request->count;
    call->reserved = request->reserved;
    call->may_exceed = request->may_exceed;
    call_spell(call, "fetch");
    for (size_t i = 0; i < request->count; i++) {
        struct scripted_entry *entry = &call->entries[i];
        copy_name(entry->name, sizeof entry->name, request->entries[i].partition);
        entry->offset = request->entries[i].offset;
        entry->max_bytes = request->entries[i].max_bytes;
        call_spell(call, " %s@%" PRId64, entry->name, entry->offset);
    }
    return as_queen_call(call);
}

static void add_record(struct block *block, const struct scripted_record *from, int64_t offset)
{
    struct record *record = block_add_record(block);
    char *at = block->body + block->body_size;
    ck_assert_ptr_nonnull(record);
    *record = (struct record){.offset = offset,
                              .ts = {from->ts},
                              .transaction_id = at,
                              .transaction_id_size = 1,
                              .transaction_id_raw = 1,
                              .payload = at + 1,
                              .payload_size = (uint32_t)from->payload + 2};
    memset(at, 't', 1);
    memset(at + 1, 'x', from->payload + 2);
    at[1] = at[from->payload + 2] = '"';
    block->body_size += from->payload + 3;
}

static bool fill_entry(const struct scripted_world *w, const struct scripted_partition *partition, int64_t offset,
                       struct block *block, struct fetch_entry *entry)
{
    size_t size = 0;
    entry->first_record = block->record_count;
    entry->log_start = partition->log_start;
    entry->high_watermark = (int64_t)partition->count;
    if (offset < partition->log_start || offset > entry->high_watermark) {
        entry->status = FETCH_OUT_OF_RANGE;
        return true;
    }
    for (int64_t at = offset; at < entry->high_watermark; at++) {
        const struct scripted_record *record = &partition->records[at];
        if (record->gone || (w->records_ceiling > 0 && (int64_t)entry->record_count == w->records_ceiling))
            continue;
        size += record->payload + 3;
        if (block->body_size + size > block->body_capacity)
            return false;
        entry->record_count++;
    }
    for (int64_t at = offset; block->record_count < entry->first_record + entry->record_count; at++)
        if (!partition->records[at].gone)
            add_record(block, &partition->records[at], at);
    return true;
}

static size_t bytes_of_log(const struct scripted_world *w)
{
    size_t size = 0;
    for (size_t i = 0; i < w->partition_count; i++)
        for (size_t at = 0; at < w->log[i].count; at++)
            size += w->log[i].records[at].payload + 3;
    return size;
}

static void answer_fetch(struct scripted_call *call)
{
    struct scripted_world *w = call->world;
    struct fetch_entry *entries = memory_new(call->count, sizeof *entries);
    struct block *block = block_create(&w->budget, call->reserved);
    struct error error = {.retry_after_ms = -1};
    struct fetch_answer answer = {block, entries, call->count};
    struct scripted_partition none = {.count = 0};
    ck_assert_ptr_nonnull(block);
    ck_assert_int_eq(block_reserve_body(block, bytes_of_log(w) + 1, true), 0);
    for (size_t i = 0; i < call->count; i++) {
        const struct scripted_partition *partition = world_partition(w, call->entries[i].name);
        ck_assert(fill_entry(w, partition != NULL ? partition : &none, call->entries[i].offset, block, &entries[i]));
    }
    block_trim(block);
    call->done.fetch(call->argument, &error, &answer);
    free(entries);
}

void call_answer_status(struct scripted_call *call, enum fetch_entry_status status)
{
    struct fetch_entry *entries = memory_new(call->count, sizeof *entries);
    struct block *block = block_create(&call->world->budget, call->reserved);
    struct error error = {.retry_after_ms = -1};
    struct fetch_answer answer = {block, entries, call->count};
    ck_assert_ptr_nonnull(block);
    call_close(call);
    for (size_t i = 0; i < call->count; i++) {
        const struct scripted_partition *partition = world_partition(call->world, call->entries[i].name);
        entries[i].status = status;
        entries[i].high_watermark = partition != NULL ? (int64_t)partition->count : 0;
    }
    block_trim(block);
    call->done.fetch(call->argument, &error, &answer);
    free(entries);
}

/* ---- partitions/changed ---- */

static struct queen_call *changed(struct queen_api *api, const struct changed_request_entry *entries, size_t count,
                                  queen_changed_done *done, void *argument)
{
    struct scripted_call *call = call_new(world_of(api), CALL_CHANGED, argument);
    call->done.changed = done;
    call->entries = memory_new(count, sizeof *call->entries);
    call->count = count;
    call_spell(call, count > 0 ? "changed " : "clock");
    for (size_t i = 0; i < count; i++) {
        struct scripted_entry *entry = &call->entries[i];
        copy_name(entry->name, sizeof entry->name, entries[i].queue);
        entry->has_since = entries[i].has_since;
        entry->since = entries[i].since.v;
        call_spell(call, "%s%s", i > 0 ? ", " : "", entry->name);
        if (entry->has_since)
            call_spell(call, " since %" PRId64, entry->since);
        if (entries[i].after != NULL) {
            snprintf(entry->after, sizeof entry->after, "%s", entries[i].after);
            call_spell(call, " after %s", entry->after);
        }
    }
    return as_queen_call(call);
}

static struct changed_partition describe(const struct scripted_partition *partition)
{
    int64_t newest = partition->count > 0 ? partition->records[partition->count - 1].ts : 0;
    return (struct changed_partition){.name = {partition->name, strlen(partition->name)},
                                      .last_offset = (int64_t)partition->count - 1,
                                      .log_start = partition->log_start,
                                      .last_write_at = {newest}};
}

/* Cursors count partitions. */
static void fill_page(const struct scripted_world *w, const struct scripted_entry *asked, struct changed_entry *entry,
                      struct changed_partition *out, char next[16])
{
    size_t at = asked->after[0] != '\0' ? (size_t)strtoul(asked->after, NULL, 10) : 0;
    entry->partitions = out;
    for (; at < w->partition_count && (w->page == 0 || entry->count < w->page); at++) {
        out[entry->count] = describe(&w->log[at]);
        entry->count += !asked->has_since || out[entry->count].last_write_at.v >= asked->since;
    }
    snprintf(next, 16, "%zu", at);
    entry->next = at < w->partition_count ? next : NULL;
}

void call_answer_changed(struct scripted_call *call, const struct changed_answer *answer)
{
    struct error error = {.retry_after_ms = -1};
    call_close(call);
    call->done.changed(call->argument, &error, answer);
}

static void answer_changed(struct scripted_call *call)
{
    struct scripted_world *w = call->world;
    struct changed_entry *entries = memory_new(call->count, sizeof *entries);
    struct changed_partition *partitions = memory_new(call->count * LOG_PARTITIONS_MAX, sizeof *partitions);
    char(*next)[16] = memory_new(call->count, sizeof *next);
    struct changed_answer answer = {{w->safe_time}, w->degraded, entries, call->count};
    struct error error = {.retry_after_ms = -1};
    for (size_t i = 0; i < call->count; i++)
        fill_page(w, &call->entries[i], &entries[i], partitions + i * LOG_PARTITIONS_MAX, next[i]);
    call->done.changed(call->argument, &error, &answer);
    free(next);
    free(partitions);
    free(entries);
}

void call_answer_page_status(struct scripted_call *call, enum changed_entry_status status)
{
    struct changed_entry *entries = memory_new(call->count, sizeof *entries);
    struct changed_answer answer = {{call->world->safe_time}, false, entries, call->count};
    for (size_t i = 0; i < call->count; i++)
        entries[i].status = status;
    call_answer_changed(call, &answer);
    free(entries);
}

/* ---- kv ---- */

static const char *short_key(const char *key)
{
    size_t size = strlen(KEY_START);
    return strncmp(key, KEY_START, size) == 0 ? key + size : key;
}

static void spell_operation(struct scripted_call *call, const struct kv_operation *operation)
{
    static const char *const names[] = {"get", "put", "putIfAbsent", "delete"};
    call_spell(call, "%s", names[operation->kind]);
    if (operation->kind == KV_GET_MANY) {
        for (size_t i = 0; i < operation->key_count; i++)
            call_spell(call, " %s", short_key(operation->keys[i]));
        return;
    }
    call_spell(call, " %s", short_key(operation->key));
    if (operation->has_expect)
        call_spell(call, "@%" PRId64, operation->expect);
    if (operation->ttl_seconds > 0)
        call_spell(call, " ttl %" PRId64, operation->ttl_seconds);
    if (operation->required)
        call_spell(call, " required");
}

static struct queen_call *kv(struct queen_api *api, const struct kv_operation *operations, size_t count,
                             int64_t timeout_ms, queen_kv_done *done, void *argument)
{
    struct scripted_call *call = call_new(world_of(api), CALL_KV, argument);
    call->done.kv = done;
    call->timeout_ms = timeout_ms;
    call->count = count;
    document_batch_copy(&call->batch, operations, count);
    call_spell(call, "kv ");
    for (size_t i = 0; i < count; i++) {
        call_spell(call, "%s", i > 0 ? ", " : "");
        spell_operation(call, &operations[i]);
    }
    return as_queen_call(call);
}

void call_answer_kv(struct scripted_call *call, const struct kv_answer *answer)
{
    struct error error = {.retry_after_ms = -1};
    call_close(call);
    call->done.kv(call->argument, &error, answer);
}

/* ---- the table ---- */

static void cancel(struct queen_api *api, struct queen_call *call)
{
    (void)api;
    call_cancel((struct scripted_call *)(void *)call);
}

void queen_deliver(struct scripted_call *call, bool apply, const struct error *error)
{
    call_close(call);
    if (call->kind == CALL_KV && apply)
        documents_apply(&call->world->documents, &call->batch, call->world->now, false);
    if (call->kind == CALL_KV) {
        call->done.kv(call->argument, error, error->code == QS_OK ? &call->batch.answer : NULL);
    } else if (error->code == QS_OK) {
        call->kind == CALL_FETCH ? answer_fetch(call) : answer_changed(call);
    } else if (call->kind == CALL_FETCH) {
        budget_give(&call->world->budget, call->reserved);
        call->done.fetch(call->argument, error, NULL);
    } else {
        call->done.changed(call->argument, error, NULL);
    }
}

const struct queen_api_operations scripted_queen_operations = {
    .fetch = fetch, .changed = changed, .kv = kv, .cancel = cancel};

/* ---- the models ---- */

int64_t world_document(struct scripted_world *w, const char *key, const char *value, int64_t ttl_seconds)
{
    struct kv_operation put = {.kind = KV_PUT, .key = key, .value = value, .ttl_seconds = ttl_seconds};
    struct document_batch batch;
    document_batch_copy(&batch, &put, 1);
    documents_apply(&w->documents, &batch, w->now, false);
    int64_t version = batch.results[0].version;
    document_batch_free(&batch);
    return version;
}

const char *world_document_text(struct scripted_world *w, const char *key)
{
    static char *text;
    const struct document_row *row = documents_find(&w->documents, key);
    cJSON_free(text);
    text = row != NULL ? cJSON_PrintUnformatted(row->value) : NULL;
    return text != NULL ? text : "";
}

int64_t world_version(struct scripted_world *w, const char *key)
{
    const struct document_row *row = documents_find(&w->documents, key);
    return row != NULL ? row->version : 0;
}

struct scripted_partition *world_partition(struct scripted_world *w, const char *name)
{
    for (size_t i = 0; i < w->partition_count; i++)
        if (strcmp(w->log[i].name, name) == 0)
            return &w->log[i];
    return NULL;
}

void world_push(struct scripted_world *w, const char *partition, int64_t ts, size_t payload)
{
    struct scripted_partition *to = world_partition(w, partition);
    if (to == NULL) {
        ck_assert_uint_lt(w->partition_count, LOG_PARTITIONS_MAX);
        to = &w->log[w->partition_count++];
        snprintf(to->name, sizeof to->name, "%s", partition);
    }
    ck_assert_uint_lt(to->count, LOG_RECORDS_MAX);
    to->records[to->count++] = (struct scripted_record){.ts = ts, .payload = payload};
}
