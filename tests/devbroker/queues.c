/*
 * The queue list, configure, deletion, and retention (spec 01, 1.5); see queues.h.
 */
#include "queues.h"

#include <stdlib.h>

#include "clock.h"
#include "json.h"

#define RETENTION_SECONDS_DEFAULT INT64_C(86400)
#define HOLD_SECONDS_DEFAULT      INT64_C(604800)
#define SECONDS_LIMIT             INT64_C(3155760000)

void queues_answer(const struct call *call, struct answer *answer)
{
    struct store *store = &call->broker->store;
    struct text *text = &answer->text;

    if (broker_database_is_down(call->broker)) {
        answer_error(answer, 500, "pool");
        return;
    }
    text_add_string(text, "{\"queues\":[");
    store_read_lock(store);
    for (const struct queue *queue = store->queues; queue != NULL; queue = queue->next) {
        text_add_string(text, queue == store->queues ? "{\"name\":" : ",{\"name\":");
        text_add_quoted(text, queue->name);
        text_add_format(text, ",\"namespace\":\"\",\"task\":\"\",\"partitions\":%zu,\"messages\":{\"total\":%lld}}",
                        queue->partition_count, (long long)queue->record_count);
    }
    store_unlock(store);
    text_add_string(text, "]}");
}

struct settings {
    struct text queue;
    bool retention_enabled;
    int64_t retention_seconds;
    struct text hold;
    bool has_hold;
    int64_t hold_seconds;
};

static bool read_seconds(struct slice value, int64_t *seconds)
{
    return value.at == NULL || (json_integer(value, seconds) && *seconds >= 0 && *seconds <= SECONDS_LIMIT);
}

static bool read_settings(struct slice body, struct settings *settings)
{
    static const char *const names[] = {"queue", "options"};
    static const char *const options[] = {"retentionSeconds", "retentionEnabled", "retentionSinkHold",
                                          "retentionSinkHoldMaxSeconds"};
    struct slice values[2];
    struct slice given[4];

    settings->retention_seconds = RETENTION_SECONDS_DEFAULT;
    settings->hold_seconds = HOLD_SECONDS_DEFAULT;
    if (!json_is_valid(body) || !json_members(body, names, values, 2) || !json_is_string(values[0]) ||
        !json_string(values[0], &settings->queue) || settings->queue.size == 0) {
        return false;
    }
    if (values[1].at == NULL) {
        return true;
    }
    if (!json_members(values[1], options, given, 4) || !read_seconds(given[0], &settings->retention_seconds) ||
        !read_seconds(given[3], &settings->hold_seconds)) {
        return false;
    }
    settings->retention_enabled = json_is_true(given[1]);
    settings->has_hold = given[2].at != NULL && !json_is_null(given[2]);
    return !settings->has_hold || (json_is_string(given[2]) && json_string(given[2], &settings->hold));
}

void configure_answer(const struct call *call, struct answer *answer)
{
    struct store *store = &call->broker->store;
    struct settings settings = {0};
    bool fine = read_settings(call->body, &settings);

    if (!fine) {
        answer_error(answer, 400, "the body has to be an object with a queue and options");
    } else if (broker_database_is_down(call->broker)) {
        answer_error(answer, 500, "pool");
    } else {
        struct queue *queue;

        store_write_lock(store);
        queue = store_take_queue(store, text_slice(&settings.queue));
        queue->retention_enabled = settings.retention_enabled;
        queue->retention_seconds = settings.retention_seconds;
        queue->retention_sink_hold_max_seconds = settings.hold_seconds;
        free((void *)(uintptr_t)queue->retention_sink_hold.at);
        queue->retention_sink_hold = settings.has_hold ? slice_copy(text_slice(&settings.hold)) : (struct slice){0};
        store_unlock(store);
        answer->status = 201;
        text_add_string(&answer->text, "{\"configured\":true,\"queue\":");
        text_add_quoted(&answer->text, text_slice(&settings.queue));
        text_add_format(&answer->text, ",\"options\":{\"retentionSeconds\":%lld,\"retentionEnabled\":%s}}",
                        (long long)settings.retention_seconds, settings.retention_enabled ? "true" : "false");
    }
    text_free(&settings.queue);
    text_free(&settings.hold);
}

void delete_queue_answer(const struct call *call, struct slice name, struct answer *answer)
{
    struct store *store = &call->broker->store;
    struct queue *queue;

    store_write_lock(store);
    queue = store_find_queue(store, name);
    if (queue != NULL) {
        store_delete_queue(store, queue);
    }
    store_unlock(store);
    if (queue == NULL) {
        answer_error(answer, 404, "no such queue");
    } else {
        text_add_string(&answer->text, "{\"deleted\":true}");
    }
}

/* A name as the sink writes it into a kv key. Names that the sink would cut (160 bytes) are never held. */
static void add_escaped(struct text *text, struct slice name)
{
    for (size_t i = 0; i < name.size; i++) {
        unsigned char byte = (unsigned char)name.at[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
                     byte == '_' || byte == '-' || byte == '.';

        if (plain && !slice_is(name, ".") && !slice_is(name, "..")) {
            text_add(text, &byte, 1);
        } else {
            text_add_format(text, "%%%02X", byte);
        }
    }
}

/* tEnd of the sink's pointer. Anything but a string counts as never committed: INT64_MIN. */
static int64_t committed_until(struct kv *kv, const struct queue *queue)
{
    static const char *const names[] = {"tEnd"};
    struct text key = {0};
    struct text decoded = {0};
    struct slice end;
    const struct kv_row *row;
    int64_t until_us = INT64_MIN;

    text_add_string(&key, "s3:");
    text_add_slice(&key, queue->retention_sink_hold);
    text_add_string(&key, ":");
    add_escaped(&key, queue->name);
    text_add_string(&key, ":committed");
    pthread_mutex_lock(&kv->lock);
    row = kv_find_live(kv, slice_of("queen-s3"), text_slice(&key), clock_now_us());
    if (row != NULL && json_members(row->value, names, &end, 1) && json_is_string(end) && json_string(end, &decoded) &&
        !clock_parse(text_slice(&decoded), &until_us)) {
        until_us = INT64_MIN;
    }
    pthread_mutex_unlock(&kv->lock);
    text_free(&key);
    text_free(&decoded);
    return until_us;
}

int64_t queues_retain(struct broker *broker)
{
    int64_t now_us = clock_now_us();
    int64_t deleted = 0;

    store_write_lock(&broker->store);
    for (struct queue *queue = broker->store.queues; queue != NULL; queue = queue->next) {
        int64_t before_us = now_us - queue->retention_seconds * INT64_C(1000000);

        if (!queue->retention_enabled) {
            continue;
        }
        if (queue->retention_sink_hold.at != NULL) {
            int64_t held_us = committed_until(&broker->kv, queue);
            int64_t cap_us = now_us - queue->retention_sink_hold_max_seconds * INT64_C(1000000);

            held_us = held_us > cap_us ? held_us : cap_us;
            before_us = before_us < held_us ? before_us : held_us;
        }
        deleted += store_expire(queue, before_us);
    }
    store_unlock(&broker->store);
    return deleted;
}
