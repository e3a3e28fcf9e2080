/*
 * The lake is the log (spec 2.3, 2.5): manifests 1 … n, windows that tile, each record of the log from the start on in
 * exactly one of them, what is told as lost really lost, and nothing else in the bucket.
 */
#include "tests/sim/check.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/memory.h"

#define HOUR_US  INT64_C(3600000000)
#define KEY_SIZE 512

static const char *escaped_queue(const struct simulation *simulation, size_t queue)
{
    return strcmp(simulation->queues[queue], "a/b") == 0 ? "a%2Fb" : simulation->queues[queue];
}

static int64_t number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? (int64_t)item->valuedouble : -1;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void pointer_key(const struct simulation *simulation, size_t queue, const char *which, char out[KEY_SIZE])
{
    snprintf(out, KEY_SIZE, "s3:default:%s:%s", escaped_queue(simulation, queue), which);
}

/* The last intent that was written for window k. */
static const cJSON *intent_of(const struct simulation *simulation, size_t queue, int64_t k)
{
    char key[KEY_SIZE];
    pointer_key(simulation, queue, "intent", key);
    for (size_t i = simulation->documents.write_count; i-- > 0;) {
        const struct document_write *write = &simulation->documents.writes[i];
        if (strcmp(write->key, key) == 0 && number_of(write->value, "k") == k)
            return write->value;
    }
    return NULL;
}

/* An intent of which nothing was left is given up, and its number taken by a later window. */
static bool was_given_up(const struct simulation *simulation, size_t queue, int64_t k)
{
    const cJSON *last = intent_of(simulation, queue, k);
    char key[KEY_SIZE];
    pointer_key(simulation, queue, "intent", key);
    for (size_t i = 0; i < simulation->documents.write_count; i++) {
        const struct document_write *write = &simulation->documents.writes[i];
        if (strcmp(write->key, key) == 0 && number_of(write->value, "k") == k &&
            number_of(write->value, "tStart") != number_of(last, "tStart"))
            return true;
    }
    return false;
}

/* Goes through the pointer's writes: k rises by one, tEnd is a string. Returns the last k, -1 for none. */
static int64_t check_pointer(struct simulation *simulation, size_t queue, int64_t *origin)
{
    char key[KEY_SIZE];
    int64_t last = -1;
    *origin = INT64_MIN;
    pointer_key(simulation, queue, "committed", key);
    for (size_t i = 0; i < simulation->documents.write_count; i++) {
        const struct document_write *write = &simulation->documents.writes[i];
        if (strcmp(write->key, key) != 0)
            continue;
        int64_t k = number_of(write->value, "k");
        if (last >= 0 ? k != last + 1 : k != 0 && k != 1)
            sim_fail(simulation, "the pointer of %s went from %lld to %lld", simulation->queues[queue], (long long)last,
                     (long long)k);
        if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(write->value, "tEnd")))
            sim_fail(simulation, "tEnd of the pointer isn't a string");
        if (k == 0) {
            struct broker_us end;
            const char *text = text_of(write->value, "tEnd");
            if (clock_parse_broker(text, strlen(text), &end))
                *origin = end.v;
            if (*origin > simulation->scenario.base_us + write->at * 1000)
                sim_fail(simulation, "T_0 of %s lies in the future", simulation->queues[queue]);
        }
        last = k;
    }
    return last;
}

/* ---- one window ---- */

static const char *extension_of(const char *compression)
{
    if (strcmp(compression, "zstd") == 0)
        return "jsonl.zst";
    return strcmp(compression, "gzip") == 0 ? "jsonl.gz" : "jsonl";
}

static void expected_key(const struct simulation *simulation, const struct checked_window *window, const char *prefix,
                         const char *align, char out[KEY_SIZE])
{
    time_t seconds = (time_t)(window->start / 1000000);
    struct tm civil;
    char hour[16] = "";
    gmtime_r(&seconds, &civil);
    if (strcmp(align, "day") != 0)
        snprintf(hour, sizeof hour, "hour=%02u/", (unsigned)civil.tm_hour % 24u);
    snprintf(out, KEY_SIZE, "%s/queue=%s/dt=%04d-%02d-%02d/%sw-%010" PRId64 "-%016" PRId64 "-%016" PRId64 ".%s", prefix,
             escaped_queue(simulation, window->queue), civil.tm_year + 1900, civil.tm_mon + 1, civil.tm_mday, hour,
             window->k, window->start, window->end, extension_of(window->compression));
}

static int64_t align_unit(const char *align)
{
    if (strcmp(align, "hour") == 0)
        return HOUR_US;
    return strcmp(align, "day") == 0 ? 24 * HOUR_US : 0;
}

static void check_object(struct simulation *simulation, struct checked_window *window, const cJSON *described)
{
    uint8_t digest[32];
    char hex[65];
    size_t size = 0;
    struct bucket_object *object = bucket_find(&simulation->bucket, text_of(described, "key"));
    if (object == NULL) {
        sim_fail(simulation, "window %lld: its object isn't there", (long long)window->k);
        return;
    }
    if (object->named)
        sim_fail(simulation, "object %s is named twice", object->key);
    object->named = true;
    EVP_Digest(object->bytes, object->size, digest, NULL, EVP_sha256(), NULL);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    if (number_of(described, "bytes") != (int64_t)object->size || strcmp(text_of(described, "sha256"), hex) != 0)
        sim_fail(simulation, "object %s isn't what its manifest says", object->key);
    char *text = check_decompress(object, window->compression, &size);
    if (text == NULL) {
        sim_fail(simulation, "object %s can't be decompressed", object->key);
        return;
    }
    check_lines(simulation, window, text, size);
    free(text);
    if (number_of(described, "records") != (int64_t)window->records)
        sim_fail(simulation, "object %s has another number of records than its manifest says", object->key);
}

static bool was_taken(const struct log_segment *segment)
{
    return segment->deleted != NEVER || segment->unreadable_from != NEVER;
}

/* Whether all of a range was taken away in one life of its partition. */
static bool range_was_taken(struct simulation *simulation, struct log_partition *partition, size_t life, int64_t from,
                            int64_t to)
{
    for (int64_t offset = from; offset <= to; offset++) {
        const struct log_record *record = check_record(partition, life, offset);
        if (record == NULL || !was_taken(record->segment))
            return false;
        if (record->segment->deleted != NEVER && record->segment->deleted > simulation->scheduler.now)
            return false;
    }
    return true;
}

static void check_lost(struct simulation *simulation, const struct checked_window *window, const cJSON *lost)
{
    const cJSON *range;
    cJSON_ArrayForEach (range, lost) {
        const char *name = text_of(range, "partition");
        int64_t from = number_of(range, "from");
        int64_t to = number_of(range, "to");
        bool previous = strcmp(text_of(range, "life"), "previous") == 0;
        bool taken = false;
        struct log_partition *partition = check_partition(simulation, window->queue, name, strlen(name));
        for (size_t life = 0; partition != NULL && from <= to && life < partition->life_count; life++) {
            if (previous && life + 1 == partition->life_count)
                break;
            if (!range_was_taken(simulation, partition, life, from, to))
                continue;
            taken = true;
            for (int64_t offset = from; offset <= to; offset++)
                check_record(partition, life, offset)->told_lost = true;
        }
        simulation->lost += (uint64_t)(to - from + 1);
        if (!taken)
            sim_fail(simulation, "window %lld of %s: %s %lld to %lld%s are told as lost but aren't",
                     (long long)window->k, simulation->queues[window->queue], name, (long long)from, (long long)to,
                     previous ? " of a previous life" : "");
    }
}

static void check_bounds(struct simulation *simulation, const struct checked_window *window, const char *align,
                         int64_t previous_end)
{
    int64_t unit = align_unit(align);
    if (window->start >= window->end || window->start < previous_end)
        sim_fail(simulation, "window %lld of %s [%lld, %lld) overlaps the one before, which ends at %lld",
                 (long long)window->k, simulation->queues[window->queue], (long long)window->start,
                 (long long)window->end, (long long)previous_end);
    if (unit > 0 && window->start / unit != (window->end - 1) / unit)
        sim_fail(simulation, "window %lld of %s [%lld, %lld) straddles a boundary", (long long)window->k,
                 simulation->queues[window->queue], (long long)window->start, (long long)window->end);
}

/* Reads a manifest and everything that it names. Returns its end. */
static int64_t check_window(struct simulation *simulation, size_t queue, int64_t k, int64_t previous_end)
{
    char key[KEY_SIZE];
    const cJSON *intent = intent_of(simulation, queue, k);
    if (intent == NULL) {
        sim_fail(simulation, "window %lld of %s was committed without an intent", (long long)k,
                 simulation->queues[queue]);
        return previous_end;
    }
    snprintf(key, sizeof key, "%s/_queen/%s/windows/%010" PRId64 ".json", text_of(intent, "prefix"),
             escaped_queue(simulation, queue), k);
    struct bucket_object *object = bucket_find(&simulation->bucket, key);
    if (object == NULL) {
        sim_fail(simulation, "manifest %s isn't there", key);
        return previous_end;
    }
    object->named = true;
    cJSON *manifest = cJSON_ParseWithLength((const char *)object->bytes, object->size);
    struct checked_window window = {.queue = queue,
                                    .k = k,
                                    .start = number_of(manifest, "tStart"),
                                    .end = number_of(manifest, "tEnd"),
                                    .compression = text_of(manifest, "compression")};
    const cJSON *objects = cJSON_GetObjectItemCaseSensitive(manifest, "objects");
    if (number_of(manifest, "k") != k || strcmp(text_of(manifest, "queue"), simulation->queues[queue]) != 0 ||
        strcmp(text_of(manifest, "sink"), "default") != 0 || strcmp(text_of(manifest, "layout"), "merged") != 0 ||
        cJSON_GetArraySize(objects) != 1)
        sim_fail(simulation, "manifest %s isn't that of its window", key);
    if (window.start != number_of(intent, "tStart") || window.end != number_of(intent, "tEnd") ||
        strcmp(window.compression, text_of(intent, "compression")) != 0)
        sim_fail(simulation, "manifest %s isn't what the intent fixed", key);
    check_bounds(simulation, &window, text_of(intent, "align"), previous_end);
    expected_key(simulation, &window, text_of(intent, "prefix"), text_of(intent, "align"), key);
    if (strcmp(text_of(cJSON_GetArrayItem(objects, 0), "key"), key) != 0)
        sim_fail(simulation, "window %lld names %s, not %s", (long long)k,
                 text_of(cJSON_GetArrayItem(objects, 0), "key"), key);
    check_object(simulation, &window, cJSON_GetArrayItem(objects, 0));
    if (number_of(manifest, "records") != (int64_t)window.records || window.records == 0 ||
        number_of(manifest, "partitions") != (int64_t)window.partitions ||
        number_of(manifest, "minTs") != window.min_ts || number_of(manifest, "maxTs") != window.max_ts)
        sim_fail(simulation, "window %lld: the manifest's counts aren't those of its records", (long long)k);
    int64_t unit = align_unit(text_of(intent, "align"));
    if (k == 1 && previous_end == INT64_MIN && !was_given_up(simulation, queue, 1) &&
        window.start != (unit > 0 ? window.min_ts / unit * unit : window.min_ts))
        sim_fail(simulation, "the first window doesn't start at its first record, floored");
    check_lost(simulation, &window, cJSON_GetObjectItemCaseSensitive(manifest, "lost"));
    simulation->windows++;
    simulation->records += window.records;
    cJSON_Delete(manifest);
    return window.end;
}

/* ---- the log against the lake ---- */

static void check_missing(struct simulation *simulation, size_t queue, int64_t origin)
{
    for (size_t i = 0; i < simulation->log.record_count; i++) {
        const struct log_record *record = simulation->log.records[i];
        const struct log_segment *segment = record->segment;
        if (record->queue != queue || record->windows > 0 || segment->ts < origin || record->told_lost ||
            segment->deleted != NEVER)
            continue;
        if (record->life > 0 && !simulation->log.second) {
            simulation->missing_in_new_lives++;
            continue;
        }
        sim_fail(simulation, "%s %s offset %lld (ts %lld, life %u) is missing", simulation->queues[queue],
                 simulation->log.queues[queue].partitions[record->partition].name, (long long)record->offset,
                 (long long)segment->ts, record->life);
        return;
    }
}

static void check_early(struct simulation *simulation, size_t queue, int64_t origin)
{
    for (size_t i = 0; i < simulation->log.record_count; i++) {
        const struct log_record *record = simulation->log.records[i];
        if (record->queue == queue && record->windows > 0 && record->segment->ts < origin)
            sim_fail(simulation, "%s: a record below T_0 is in the lake", simulation->queues[queue]);
    }
}

static void check_rest(struct simulation *simulation)
{
    for (size_t i = 0; i < simulation->bucket.object_count; i++) {
        const struct bucket_object *object = &simulation->bucket.objects[i];
        bool lake = strstr(object->key, "/queue=") != NULL || strstr(object->key, "/windows/") != NULL;
        if (lake && !object->named && !simulation->pointer_lost)
            sim_fail(simulation, "%s is in the bucket and no committed window has it", object->key);
        if (!lake && strstr(object->key, "/checkpoint/") == NULL)
            sim_fail(simulation, "%s has no place in a lake", object->key);
    }
}

void check_lake(struct simulation *simulation, bool whole)
{
    for (size_t queue = 0; queue < simulation->scenario.queue_count && !simulation->failed; queue++) {
        int64_t origin;
        int64_t last = check_pointer(simulation, queue, &origin);
        int64_t end = origin;
        for (int64_t k = 1; k <= last && !simulation->failed; k++)
            end = check_window(simulation, queue, k, end);
        check_early(simulation, queue, origin);
        if (whole && !(simulation->pointer_lost && queue == 0))
            check_missing(simulation, queue, origin);
    }
    check_rest(simulation);
}
