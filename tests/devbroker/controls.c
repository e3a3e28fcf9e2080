/*
 * Control routes; see controls.h.
 */
#include "controls.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "json.h"
#include "queues.h"

static const char list[] =
    "Control routes of the development broker. No real broker has them.\n"
    "GET    /_dev/log?queue=Q[&deleted=true][&since=TS][&until=TS]  the log as envelope lines\n"
    "GET    /_dev/stats             calls by route;  DELETE starts over\n"
    "GET    /_dev/faults            DELETE takes all away;  POST a rule or an array of them:\n"
    "       {\"route\":\"fetch|changed|kv|queues|push|configure|any\",\"kind\":\"status|delay|reset-before|reset-after|\n"
    "        cut|garbled|wrong-entry|empty|entry-error|lag|hang\",\"count\":1,\"skip\":0,\"status\":503,\"retryAfter\":2,\n"
    "        \"delayMs\":0,\"lagUs\":0,\"error\":\"…\",\"queue\":\"…\",\"partition\":\"…\",\"keyContains\":\"…\",\n"
    "        \"everyKeyContains\":\"…\",\"op\":\"put\"}\n"
    "GET    /_dev/kv[?ns=N]         all rows; with ns an object of keys and values;  DELETE takes all away\n"
    "PUT    /_dev/kv[?ns=N]         {\"key\":value,…} (queen-s3), for ever\n"
    "POST   /_dev/hole              {\"queue\",\"partition\",\"from\",\"to\"}: can't be read\n"
    "POST   /_dev/unhole            {\"queue\",\"partition\"}: can be read again\n"
    "POST   /_dev/trim              {\"queue\",\"partition\",\"logStart\"} or {\"queue\",\"before\":TS}\n"
    "POST   /_dev/retain            {}: retention now\n"
    "POST   /_dev/recreate          {\"queue\",\"partition\"}: deleted and created again, empty, another id\n"
    "POST   /_dev/delete-partition  {\"queue\",\"partition\"}\n"
    "POST   /_dev/delete-queue      {\"queue\"}\n"
    "POST   /_dev/set-id            {\"queue\",\"partition\",\"id\":N}: another UUID (2.x)\n"
    "POST   /_dev/safe-time         {\"mode\":\"normal|pinned|degraded\",\"at\":TS}\n"
    "POST   /_dev/clock             {\"offsetUs\":N} or {\"addUs\":N};  GET reads it\n"
    "POST   /_dev/database          {\"down\":true}\n";

enum {
    FIELD_QUEUE,
    FIELD_PARTITION,
    FIELD_FROM,
    FIELD_TO,
    FIELD_LOG_START,
    FIELD_BEFORE,
    FIELD_ID,
    FIELD_MODE,
    FIELD_AT,
    FIELD_OFFSET,
    FIELD_ADD,
    FIELD_DOWN,
    FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {"queue", "partition", "from", "to",       "logStart", "before",
                                                     "id",    "mode",      "at",   "offsetUs", "addUs",    "down"};

struct control {
    struct broker *broker;
    struct slice fields[FIELD_COUNT];
    struct queue *queue;
    struct partition *partition;
    struct answer *answer;
};

static bool read_string(struct slice value, struct text *decoded)
{
    return json_is_string(value) && json_string(value, decoded);
}

static bool read_time(struct slice value, int64_t *at_us)
{
    struct text decoded = {0};
    bool fine = read_string(value, &decoded) && clock_parse(text_slice(&decoded), at_us);

    text_free(&decoded);
    return fine;
}

static const char *control_hole(struct control *control)
{
    int64_t from, to;

    if (!json_integer(control->fields[FIELD_FROM], &from) || !json_integer(control->fields[FIELD_TO], &to) ||
        from < 0 || to < from || to == INT64_MAX) {
        return "from and to have to be offsets";
    }
    store_add_hole(control->partition, from, to);
    return NULL;
}

static const char *control_unhole(struct control *control)
{
    control->partition->hole_count = 0;
    return NULL;
}

static const char *control_trim(struct control *control)
{
    int64_t log_start, before_us;

    if (read_time(control->fields[FIELD_BEFORE], &before_us)) {
        store_expire(control->queue, before_us);
        return NULL;
    }
    if (control->partition == NULL || !json_integer(control->fields[FIELD_LOG_START], &log_start)) {
        return "partition and logStart are needed, or before";
    }
    store_set_log_start(control->partition, log_start);
    return NULL;
}

static const char *control_recreate(struct control *control)
{
    struct slice name = control->partition->name; /* the dead keep their names */

    store_delete_partition(control->queue, control->partition);
    store_take_partition(&control->broker->store, control->queue, name);
    return NULL;
}

static const char *control_delete_partition(struct control *control)
{
    store_delete_partition(control->queue, control->partition);
    return NULL;
}

static const char *control_delete_queue(struct control *control)
{
    store_delete_queue(&control->broker->store, control->queue);
    return NULL;
}

static const char *control_set_id(struct control *control)
{
    return json_integer(control->fields[FIELD_ID], &control->partition->chosen_id) ? NULL : "id has to be an integer";
}

static const char *control_safe_time(struct control *control)
{
    struct broker *broker = control->broker;
    struct text mode = {0};
    const char *problem = NULL;
    bool degraded;
    int64_t pin_us = broker_safe_time(broker, &degraded);

    if (!read_string(control->fields[FIELD_MODE], &mode)) {
        problem = "mode has to be normal, pinned or degraded";
    } else if (control->fields[FIELD_AT].at != NULL && !read_time(control->fields[FIELD_AT], &pin_us)) {
        problem = "at has to be a timestamp";
    }
    pthread_mutex_lock(&broker->control_lock);
    if (problem == NULL && slice_is(text_slice(&mode), "normal")) {
        broker->safe_mode = SAFE_NORMAL;
    } else if (problem == NULL && slice_is(text_slice(&mode), "pinned")) {
        broker->safe_mode = SAFE_PINNED;
        broker->safe_pin_us = pin_us;
    } else if (problem == NULL && slice_is(text_slice(&mode), "degraded")) {
        broker->safe_mode = SAFE_DEGRADED;
    } else if (problem == NULL) {
        problem = "mode has to be normal, pinned or degraded";
    }
    pthread_mutex_unlock(&broker->control_lock);
    text_free(&mode);
    return problem;
}

static const char *control_clock(struct control *control)
{
    int64_t offset_us;

    if (json_integer(control->fields[FIELD_OFFSET], &offset_us)) {
        clock_set_offset_us(offset_us);
    } else if (json_integer(control->fields[FIELD_ADD], &offset_us)) {
        clock_set_offset_us(clock_offset_us() + offset_us);
    } else {
        return "offsetUs or addUs has to be an integer";
    }
    return NULL;
}

static const char *control_nothing(struct control *control)
{
    (void)control;
    return NULL;
}

static const struct control_route {
    const char *path;
    bool needs_queue;
    bool needs_partition;
    const char *(*run)(struct control *control); /* the store is locked for writing */
} routes[] = {
    {"hole", true, true, control_hole},
    {"unhole", true, true, control_unhole},
    {"trim", true, false, control_trim},
    {"recreate", true, true, control_recreate},
    {"delete-partition", true, true, control_delete_partition},
    {"delete-queue", true, false, control_delete_queue},
    {"set-id", true, true, control_set_id},
    {"safe-time", false, false, control_safe_time},
    {"clock", false, false, control_clock},
    {"retain", false, false, control_nothing},
    {"database", false, false, control_nothing},
};
#define CONTROL_COUNT (sizeof routes / sizeof routes[0])

static void find_names(struct control *control)
{
    struct text queue = {0};
    struct text partition = {0};

    if (read_string(control->fields[FIELD_QUEUE], &queue)) {
        control->queue = store_find_queue(&control->broker->store, text_slice(&queue));
    }
    if (control->queue != NULL && read_string(control->fields[FIELD_PARTITION], &partition)) {
        control->partition = store_find_partition(control->queue, text_slice(&partition));
    }
    text_free(&queue);
    text_free(&partition);
}

/* What was pushed while the database was down goes into the log once it is up. */
static void set_database(struct broker *broker, bool down)
{
    struct slice *buffered;
    size_t count;

    pthread_mutex_lock(&broker->control_lock);
    broker->database_down = down;
    buffered = down ? NULL : broker->buffered;
    count = down ? 0 : broker->buffered_count;
    if (!down) {
        broker->buffered = NULL;
        broker->buffered_count = 0;
    }
    pthread_mutex_unlock(&broker->control_lock);
    for (size_t i = 0; i < count; i++) {
        struct answer ignored;

        answer_start(&ignored);
        push_apply(broker, buffered[i], &ignored);
        answer_free(&ignored);
        free((void *)(uintptr_t)buffered[i].at);
    }
    free(buffered);
}

static void add_state(struct broker *broker, struct text *text)
{
    bool degraded;
    int64_t safe_us;

    store_read_lock(&broker->store);
    safe_us = broker_safe_time(broker, &degraded);
    store_unlock(&broker->store);
    text_add_string(text, "{\"ok\":true,\"now\":\"");
    clock_add(text, clock_now_us());
    text_add_string(text, "\",\"safeTime\":\"");
    clock_add(text, safe_us);
    text_add_format(text, "\",\"offsetUs\":%lld}", (long long)clock_offset_us());
}

static void run_route(struct control *control, const struct control_route *route)
{
    const char *problem;

    store_write_lock(&control->broker->store);
    find_names(control);
    if (route->needs_queue && control->queue == NULL) {
        problem = "no such queue";
    } else if (route->needs_partition && control->partition == NULL) {
        problem = "no such partition";
    } else {
        problem = route->run(control);
    }
    store_unlock(&control->broker->store);
    if (problem != NULL) {
        answer_error(control->answer, 400, problem);
        return;
    }
    if (strcmp(route->path, "retain") == 0) {
        queues_retain(control->broker);
    } else if (strcmp(route->path, "database") == 0) {
        set_database(control->broker, json_is_true(control->fields[FIELD_DOWN]));
    }
    add_state(control->broker, &control->answer->text);
}

static void post_answer(struct broker *broker, const char *path, struct slice body, struct answer *answer)
{
    struct control control = {.broker = broker, .answer = answer};

    for (size_t i = 0; i < CONTROL_COUNT; i++) {
        if (strcmp(routes[i].path, path) == 0) {
            if (!json_is_valid(body) || !json_members(body, field_names, control.fields, FIELD_COUNT)) {
                answer_error(answer, 400, "the body has to be an object");
            } else {
                run_route(&control, &routes[i]);
            }
            return;
        }
    }
    answer_error(answer, 404, "no such control route");
}

static void add_kv_rows(struct kv *kv, struct text *text)
{
    text_add_string(text, "{\"rows\":[");
    for (size_t i = 0; i < kv->count; i++) {
        const struct kv_row *row = kv->rows[i];

        text_add_string(text, i == 0 ? "{\"ns\":" : ",{\"ns\":");
        text_add_quoted(text, row->namespace);
        text_add_string(text, ",\"key\":");
        text_add_quoted(text, row->key);
        text_add_format(text, ",\"version\":%lld,\"expired\":%s,\"forever\":%s,\"value\":", (long long)row->version,
                        row->expires_at_us <= clock_now_us() ? "true" : "false",
                        row->expires_at_us == KV_FOREVER ? "true" : "false");
        text_add_slice(text, row->value);
        text_add_string(text, "}");
    }
    text_add_string(text, "]}");
}

static void add_kv_values(struct kv *kv, const char *namespace, struct text *text)
{
    bool first = true;

    text_add_string(text, "{");
    for (size_t i = 0; i < kv->count; i++) {
        const struct kv_row *row = kv->rows[i];

        if (slice_is(row->namespace, namespace) && row->expires_at_us > clock_now_us()) {
            text_add_string(text, first ? "" : ",");
            text_add_quoted(text, row->key);
            text_add_string(text, ":");
            text_add_slice(text, row->value);
            first = false;
        }
    }
    text_add_string(text, "}");
}

static const char *seed_kv(struct kv *kv, struct slice namespace, struct slice body)
{
    struct slice rest = body;
    struct slice key, value;
    const char *problem = NULL;

    if (!json_is_valid(body) || !json_take(&body, &rest) || !json_is_object(rest)) {
        return "the body has to be an object of keys and values";
    }
    while (problem == NULL && json_next_member(&rest, &key, &value)) {
        struct text decoded = {0};
        struct text stored = {0};

        if (!json_string(key, &decoded) || !jsonb_add(value, &stored)) {
            problem = "a value can't be stored as jsonb";
        } else {
            struct kv_row *row =
                kv_row_make(kv, namespace, text_slice(&decoded), text_slice(&stored), clock_now_us(), KV_FOREVER);

            kv_row_free(kv_replace(kv, namespace, text_slice(&decoded), row));
        }
        text_free(&decoded);
        text_free(&stored);
    }
    return problem;
}

static void kv_control(struct broker *broker, const char *method, const char *namespace, struct slice body,
                       struct answer *answer)
{
    struct kv *kv = &broker->kv;
    const char *problem = NULL;

    pthread_mutex_lock(&kv->lock);
    if (strcmp(method, "PUT") == 0) {
        problem = seed_kv(kv, slice_of(namespace == NULL ? "queen-s3" : namespace), body);
    } else if (strcmp(method, "DELETE") == 0) {
        while (kv->count > 0) {
            kv_row_free(kv->rows[--kv->count]);
        }
    }
    if (strcmp(method, "GET") == 0 && namespace != NULL) {
        add_kv_values(kv, namespace, &answer->text);
    } else {
        add_kv_rows(kv, &answer->text);
    }
    pthread_mutex_unlock(&kv->lock);
    if (problem != NULL) {
        answer_error(answer, 400, problem);
    }
}

static void faults_control(struct broker *broker, const char *method, struct slice body, struct answer *answer)
{
    const char *problem = NULL;

    if (strcmp(method, "POST") == 0) {
        problem = faults_add(&broker->faults, body);
    } else if (strcmp(method, "DELETE") == 0) {
        faults_clear(&broker->faults);
    }
    if (problem != NULL) {
        answer_error(answer, 400, problem);
    } else {
        faults_list(&broker->faults, &answer->text);
    }
}

void controls_answer(struct broker *broker, const char *method, const char *path, const char *namespace,
                     struct slice body, struct answer *answer)
{
    bool get = strcmp(method, "GET") == 0;

    if (strcmp(path, "faults") == 0) {
        faults_control(broker, method, body, answer);
    } else if (strcmp(path, "kv") == 0) {
        kv_control(broker, method, namespace, body, answer);
    } else if (strcmp(path, "stats") == 0) {
        stats_list(&broker->stats, &answer->text);
        if (strcmp(method, "DELETE") == 0) {
            stats_reset(&broker->stats);
        }
    } else if (get && strcmp(path, "clock") == 0) {
        add_state(broker, &answer->text);
    } else if (get && *path == '\0') {
        text_add_string(&answer->text, list);
    } else if (strcmp(method, "POST") == 0) {
        post_answer(broker, path, body, answer);
    } else {
        answer_error(answer, 404, "no such control route");
    }
}
