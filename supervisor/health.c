/*
 * See health.h. A queue is late by its age alone, whatever the reason and whoever is at fault: its worker down, a bucket
 * that refuses, a lease lost. Only one that another instance has had all along is that instance's to answer for.
 */
#include "supervisor/health.h"

#include <cjson/cJSON.h>
#include <string.h>

#define LEAST_LIMIT_MS 30000

int64_t health_limit_ms(int64_t max_window_ms, int64_t lease_ttl_ms)
{
    int64_t limit = 3 * max_window_ms;

    limit = limit < LEAST_LIMIT_MS ? LEAST_LIMIT_MS : limit;
    return limit < lease_ttl_ms ? lease_ttl_ms : limit;
}

int64_t health_age_ms(const struct collected_queue *queue, struct mono_ms now)
{
    return now.v - (queue->fresh.v > queue->assigned.v ? queue->fresh.v : queue->assigned.v);
}

bool health_is_late(const struct collected_queue *queue, int64_t limit_ms, struct mono_ms now)
{
    return !queue->standby && health_age_ms(queue, now) > limit_ms;
}

static const struct collected_queue *first_late(const struct collect *collect, int64_t limit_ms, struct mono_ms now)
{
    const struct collected_queue *first = NULL;

    for (size_t i = 0; i < collect->queue_count; i++) {
        const struct collected_queue *queue = &collect->queues[i];

        if (health_is_late(queue, limit_ms, now) && (first == NULL || strcmp(queue->name, first->name) < 0)) {
            first = queue;
        }
    }
    return first;
}

static void say_connector(cJSON *answer, const struct collected_connector *late, int64_t late_ms)
{
    if (late->key == NULL) {
        (void)cJSON_AddNullToObject(answer, "connector");
    } else {
        (void)cJSON_AddStringToObject(answer, "connector", late->key);
    }
    if (late->last.owed_mono_ms > 0) {
        (void)cJSON_AddStringToObject(answer, "partition", late->last.owed);
    }
    (void)cJSON_AddNumberToObject(answer, "staleMs", (double)late_ms);
    (void)cJSON_AddNumberToObject(answer, "limitMs", (double)late->limit_ms);
}

int health_answer(const struct collect *collect, const struct connectors *connectors, int64_t limit_ms,
                  struct mono_ms now, char **body)
{
    const struct collected_queue *late = first_late(collect, limit_ms, now);
    int64_t owed_ms = 0;
    const struct collected_connector *owing = connectors == NULL ? NULL : connectors_late(connectors, now, &owed_ms);
    bool good = late == NULL && owing == NULL;
    cJSON *answer = cJSON_CreateObject();

    (void)cJSON_AddBoolToObject(answer, "ok", good);
    if (good) {
        (void)cJSON_AddNumberToObject(answer, "queues", (double)collect->queue_count);
        if (connectors != NULL && connectors->count > 0) {
            (void)cJSON_AddNumberToObject(answer, "connectors", (double)connectors->count);
        }
    } else if (late == NULL) {
        say_connector(answer, owing, owed_ms);
    } else {
        (void)cJSON_AddStringToObject(answer, "queue", late->name);
        (void)cJSON_AddNumberToObject(answer, "staleMs", (double)health_age_ms(late, now));
        (void)cJSON_AddNumberToObject(answer, "limitMs", (double)limit_ms);
    }
    *body = cJSON_PrintUnformatted(answer);
    cJSON_Delete(answer);
    return good ? 200 : 503;
}
