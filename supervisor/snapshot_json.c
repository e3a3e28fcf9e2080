/* A snapshot as the document that snapshot.h describes, and back. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/visible.h"
#include "supervisor/snapshot.h"

#define NUMBER_MOST 9007199254740992.0 /* 2^53: a JSON number is exact up to here */

/* ---- writing ---- */

/* A name or message of a stranger may be no UTF-8, which no reader of JSON would take. */
static void add_text(cJSON *object, const char *name, const char *text)
{
    char *shown;

    if (text == NULL) {
        (void)cJSON_AddNullToObject(object, name);
        return;
    }
    shown = visible_in_data(text);
    (void)cJSON_AddStringToObject(object, name, shown);
    free(shown);
}

/* Its own digits: cJSON would spell 2^53 with an exponent. */
static void add_number(cJSON *object, const char *name, int64_t number)
{
    char *digits = memory_format("%lld", (long long)number);

    (void)cJSON_AddRawToObject(object, name, digits);
    free(digits);
}

static void add_number_or_null(cJSON *object, const char *name, bool known, int64_t number)
{
    if (known) {
        add_number(object, name, number);
    } else {
        (void)cJSON_AddNullToObject(object, name);
    }
}

/* {"reason": …, "at": …}, or null. */
static void add_event(cJSON *object, const char *name, const char *key, const char *text, const char *at)
{
    cJSON *event;

    if (text == NULL) {
        (void)cJSON_AddNullToObject(object, name);
        return;
    }
    event = cJSON_AddObjectToObject(object, name);
    add_text(event, key, text);
    add_text(event, "at", at);
}

static cJSON *worker_json(const struct snapshot_worker *worker)
{
    cJSON *object = cJSON_CreateObject();

    add_number(object, "worker", (int64_t)worker->number);
    add_text(object, "phase", worker->phase);
    add_number_or_null(object, "pid", worker->pid > 0, worker->pid);
    add_number_or_null(object, "uptimeMs", worker->pid > 0, worker->uptime_ms);
    add_number(object, "restarts", (int64_t)worker->restarts);
    add_event(object, "lastExit", "reason", worker->last_exit, worker->last_exit_at);
    add_number(object, "backoffMs", worker->backoff_ms);
    add_number(object, "residentBytes", (int64_t)worker->resident_bytes);
    add_number(object, "queues", (int64_t)worker->queue_count);
    return object;
}

static cJSON *queue_json(const struct snapshot_queue *queue)
{
    cJSON *object = cJSON_CreateObject();

    add_text(object, "queue", queue->name);
    add_number(object, "worker", (int64_t)queue->worker);
    add_text(object, "owner", queue->owner);
    add_text(object, "state", queue->state);
    add_number_or_null(object, "k", queue->k >= 0, queue->k);
    add_text(object, "tEnd", queue->end);
    if (queue->has_lag) {
        (void)cJSON_AddNumberToObject(object, "lagSeconds", queue->lag_seconds);
    } else {
        (void)cJSON_AddNullToObject(object, "lagSeconds");
    }
    add_number(object, "bufferedBytes", (int64_t)queue->buffered_bytes);
    (void)cJSON_AddBoolToObject(object, "late", queue->late);
    add_number(object, "staleMs", queue->stale_ms);
    add_event(object, "lastError", "message", queue->error, queue->error_at);
    return object;
}

static cJSON *connector_json(const struct snapshot_connector *connector)
{
    cJSON *object = cJSON_CreateObject();

    add_text(object, "connector", connector->key);
    add_number_or_null(object, "worker", connector->worker >= 0, connector->worker);
    add_text(object, "state", connector->running ? "running" : "down");
    add_number(object, "partitions", (int64_t)connector->partitions);
    add_number(object, "bufferedBytes", (int64_t)connector->buffered_bytes);
    add_number(object, "consumed", (int64_t)connector->consumed);
    add_number(object, "processed", (int64_t)connector->processed);
    add_text(object, "reason", connector->reason);
    return object;
}

static void add_connectors(cJSON *document, const struct snapshot *snapshot)
{
    cJSON *list = snapshot->connector_count > 0 ? cJSON_AddArrayToObject(document, "connectors") : NULL;

    for (size_t i = 0; i < snapshot->connector_count; i++) {
        (void)cJSON_AddItemToArray(list, connector_json(&snapshot->connectors[i]));
    }
}

char *snapshot_write(const struct snapshot *snapshot)
{
    cJSON *document = cJSON_CreateObject();
    cJSON *workers;
    cJSON *queues;
    char *printed;
    char *text;

    add_text(document, "sink", snapshot->sink);
    add_text(document, "instance", snapshot->instance);
    add_text(document, "version", snapshot->version);
    add_text(document, "phase", snapshot->phase);
    add_number(document, "pid", snapshot->pid);
    add_number(document, "uptimeMs", snapshot->uptime_ms);
    add_text(document, "at", snapshot->at);
    add_number(document, "limitMs", snapshot->limit_ms);
    add_number(document, "late", (int64_t)snapshot->late_count);
    workers = cJSON_AddArrayToObject(document, "workers");
    for (size_t i = 0; i < snapshot->worker_count; i++) {
        (void)cJSON_AddItemToArray(workers, worker_json(&snapshot->workers[i]));
    }
    queues = cJSON_AddArrayToObject(document, "queues");
    for (size_t i = 0; i < snapshot->queue_count; i++) {
        (void)cJSON_AddItemToArray(queues, queue_json(&snapshot->queues[i]));
    }
    add_connectors(document, snapshot);
    printed = cJSON_PrintUnformatted(document);
    cJSON_Delete(document);
    text = memory_format("%s", printed != NULL ? printed : "{\"error\":\"out of memory\"}");
    cJSON_free(printed);
    return text;
}

/* ---- reading ---- */

static char *get_text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsString(item) ? memory_copy_text(item->valuestring) : NULL;
}

/* As above where it has to be there. */
static char *need_text(const cJSON *object, const char *name, bool *whole)
{
    char *text = get_text(object, name);

    if (text == NULL) {
        *whole = false;
        text = memory_copy("", 0);
    }
    return text;
}

/* A whole number from 0 on; `absent` where there is none. */
static int64_t get_number(const cJSON *object, const char *name, int64_t absent)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > NUMBER_MOST) {
        return absent;
    }
    return (int64_t)item->valuedouble;
}

static uint64_t get_count(const cJSON *object, const char *name)
{
    return (uint64_t)get_number(object, name, 0);
}

static void read_event(const cJSON *object, const char *name, const char *key, char **text, char **at)
{
    const cJSON *event = cJSON_GetObjectItemCaseSensitive(object, name);

    *text = get_text(event, key);
    *at = get_text(event, "at");
}

static void read_worker(const cJSON *object, struct snapshot_worker *worker, bool *whole)
{
    worker->number = get_count(object, "worker");
    worker->phase = need_text(object, "phase", whole);
    worker->pid = get_number(object, "pid", 0);
    worker->uptime_ms = get_number(object, "uptimeMs", 0);
    worker->restarts = get_count(object, "restarts");
    worker->backoff_ms = get_number(object, "backoffMs", 0);
    worker->resident_bytes = get_count(object, "residentBytes");
    worker->queue_count = get_count(object, "queues");
    read_event(object, "lastExit", "reason", &worker->last_exit, &worker->last_exit_at);
}

static void read_queue(const cJSON *object, struct snapshot_queue *queue, bool *whole)
{
    const cJSON *lag = cJSON_GetObjectItemCaseSensitive(object, "lagSeconds");

    queue->name = need_text(object, "queue", whole);
    queue->worker = get_count(object, "worker");
    queue->owner = get_text(object, "owner");
    queue->state = need_text(object, "state", whole);
    queue->k = get_number(object, "k", -1);
    queue->end = get_text(object, "tEnd");
    queue->has_lag = cJSON_IsNumber(lag);
    queue->lag_seconds = queue->has_lag ? lag->valuedouble : 0;
    queue->buffered_bytes = get_count(object, "bufferedBytes");
    queue->late = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "late"));
    queue->stale_ms = get_number(object, "staleMs", 0);
    read_event(object, "lastError", "message", &queue->error, &queue->error_at);
}

static void read_connectors(const cJSON *list, struct snapshot *snapshot)
{
    const cJSON *item;

    snapshot->connectors = memory_new((size_t)cJSON_GetArraySize(list) + 1, sizeof *snapshot->connectors);
    cJSON_ArrayForEach (item, list) {
        char *state = get_text(item, "state");

        snapshot->connectors[snapshot->connector_count++] = (struct snapshot_connector){
            .key = get_text(item, "connector"),
            .worker = get_number(item, "worker", -1),
            .running = state != NULL && strcmp(state, "running") == 0,
            .partitions = get_count(item, "partitions"),
            .buffered_bytes = get_count(item, "bufferedBytes"),
            .consumed = get_count(item, "consumed"),
            .processed = get_count(item, "processed"),
            .reason = get_text(item, "reason"),
        };
        free(state);
    }
}

static void read_lists(const cJSON *document, struct snapshot *snapshot, bool *whole)
{
    const cJSON *workers = cJSON_GetObjectItemCaseSensitive(document, "workers");
    const cJSON *queues = cJSON_GetObjectItemCaseSensitive(document, "queues");
    const cJSON *item;

    *whole = *whole && cJSON_IsArray(workers) && cJSON_IsArray(queues);
    snapshot->workers = memory_new((size_t)cJSON_GetArraySize(workers) + 1, sizeof *snapshot->workers);
    snapshot->queues = memory_new((size_t)cJSON_GetArraySize(queues) + 1, sizeof *snapshot->queues);
    cJSON_ArrayForEach (item, workers) {
        read_worker(item, &snapshot->workers[snapshot->worker_count++], whole);
    }
    cJSON_ArrayForEach (item, queues) {
        read_queue(item, &snapshot->queues[snapshot->queue_count++], whole);
    }
    read_connectors(cJSON_GetObjectItemCaseSensitive(document, "connectors"), snapshot);
}

int snapshot_read(const char *text, size_t size, struct snapshot *snapshot, struct error *error)
{
    cJSON *document = cJSON_ParseWithLength(text, size);
    bool whole = cJSON_IsObject(document);

    *snapshot = (struct snapshot){
        .sink = need_text(document, "sink", &whole),
        .instance = need_text(document, "instance", &whole),
        .version = need_text(document, "version", &whole),
        .phase = need_text(document, "phase", &whole),
        .at = need_text(document, "at", &whole),
        .pid = get_number(document, "pid", 0),
        .uptime_ms = get_number(document, "uptimeMs", 0),
        .limit_ms = get_number(document, "limitMs", 0),
        .late_count = get_count(document, "late"),
    };
    read_lists(document, snapshot, &whole);
    cJSON_Delete(document);
    if (!whole) {
        snapshot_free(snapshot);
        return error_set(error, QS_ERROR_BODY, "the answer isn't the state of a pool");
    }
    return 0;
}
