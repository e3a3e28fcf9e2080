/*
 * See queen_request.h. Fields that don't apply are left out: the broker answers an explicit null in `ttlSeconds`,
 * `expect` or `required` with a 400 (spec 1.4).
 */
#include "common/queen_request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/memory.h"

static void add_string(struct byte_buffer *out, const char *bytes, size_t size)
{
    size_t spelled = json_spelled_size(bytes, size);
    byte_buffer_add(out, "\"", 1);
    if (spelled == size) { /* no spelling is shorter than the text, and an equal one is the text */
        byte_buffer_add(out, bytes, size);
    } else {
        char *text = memory_new(1, spelled);
        json_spell_string(bytes, size, text);
        byte_buffer_add(out, text, spelled);
        free(text);
    }
    byte_buffer_add(out, "\"", 1);
}

static void add_name(struct byte_buffer *out, struct name name)
{
    add_string(out, name.bytes, name.size);
}

void queen_request_fetch(struct byte_buffer *out, const struct fetch_request_entry *entries, size_t count)
{
    byte_buffer_add_text(out, "{\"entries\":[");
    for (size_t i = 0; i < count; i++) {
        byte_buffer_add_text(out, i > 0 ? ",{\"queue\":" : "{\"queue\":");
        add_name(out, entries[i].queue);
        byte_buffer_add_text(out, ",\"partition\":");
        add_name(out, entries[i].partition);
        byte_buffer_add_format(out, ",\"offset\":%" PRId64 ",\"maxBytes\":%" PRIu32 "}", entries[i].offset,
                               entries[i].max_bytes);
    }
    byte_buffer_add_text(out, "],\"maxWaitMs\":0,\"minBytes\":1}");
}

void queen_request_changed(struct byte_buffer *out, const struct changed_request_entry *entries, size_t count)
{
    byte_buffer_add_text(out, "{\"entries\":[");
    for (size_t i = 0; i < count; i++) {
        const struct changed_request_entry *entry = &entries[i];
        byte_buffer_add_text(out, i > 0 ? ",{\"queue\":" : "{\"queue\":");
        add_name(out, entry->queue);
        if (entry->has_since) {
            char since[CLOCK_TEXT_SIZE];
            clock_format_broker(entry->since, since);
            byte_buffer_add_format(out, ",\"since\":\"%s\",\"after\":", since);
        } else {
            byte_buffer_add_text(out, ",\"since\":null,\"after\":");
        }
        if (entry->after != NULL) {
            add_string(out, entry->after, strlen(entry->after));
        } else {
            byte_buffer_add_text(out, "null");
        }
        byte_buffer_add_format(out, ",\"limit\":%" PRIu32 "}", entry->limit);
    }
    byte_buffer_add_text(out, "]}");
}

const char *kv_kind_name(enum kv_kind kind)
{
    switch (kind) {
    case KV_GET_MANY: return "getMany";
    case KV_PUT: return "put";
    case KV_PUT_IF_ABSENT: return "putIfAbsent";
    case KV_DELETE: return "delete";
    }
    return "";
}

static void add_keys(struct byte_buffer *out, const struct kv_operation *operation)
{
    byte_buffer_add_text(out, ",\"keys\":[");
    for (size_t i = 0; i < operation->key_count; i++) {
        byte_buffer_add_text(out, i > 0 ? "," : "");
        add_string(out, operation->keys[i], strlen(operation->keys[i]));
    }
    byte_buffer_add_text(out, "]");
}

static void add_write(struct byte_buffer *out, const struct kv_operation *operation)
{
    byte_buffer_add_text(out, ",\"key\":");
    add_string(out, operation->key, strlen(operation->key));
    if (operation->kind != KV_DELETE) {
        byte_buffer_add_text(out, ",\"value\":");
        byte_buffer_add_text(out, operation->value);
        if (operation->ttl_seconds > 0) {
            byte_buffer_add_format(out, ",\"ttlSeconds\":%" PRId64, operation->ttl_seconds);
        } else {
            byte_buffer_add_text(out, ",\"forever\":true");
        }
    }
    if (operation->has_expect && operation->kind != KV_PUT_IF_ABSENT) {
        byte_buffer_add_format(out, ",\"expect\":%" PRId64, operation->expect);
    }
    if (operation->required) {
        byte_buffer_add_text(out, ",\"required\":true");
    }
}

void queen_request_kv(struct byte_buffer *out, const struct kv_operation *operations, size_t count)
{
    byte_buffer_add_text(out, "{\"operations\":[");
    for (size_t i = 0; i < count; i++) {
        byte_buffer_add_format(out, "%s{\"op\":\"%s\",\"ns\":\"queen-s3\"", i > 0 ? "," : "",
                               kv_kind_name(operations[i].kind));
        if (operations[i].kind == KV_GET_MANY) {
            add_keys(out, &operations[i]);
        } else {
            add_write(out, &operations[i]);
        }
        byte_buffer_add_text(out, "}");
    }
    byte_buffer_add_text(out, "]}");
}
