/* See queue_rig.h. */
#include "queue_rig.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/checkpoint.h"
#include "common/lake/manifest.h"

struct queue_rig rig;

static void changed(struct queue_host *host, struct queue *queue)
{
    (void)host;
    (void)queue;
}

static void committed(struct queue_host *host, uint64_t records, uint64_t bytes)
{
    (void)host;
    (void)bytes;
    rig.histogram += records;
}

static void drained(struct queue_host *host, struct queue *queue)
{
    (void)host;
    ck_assert_ptr_eq(queue, rig.queue);
    rig.drained++;
}

static bool relieve(struct queue_host *host, struct queue *queue)
{
    (void)host;
    rig.relieved++;
    return rig.says_yes || (rig.gives_memory && queue_give_memory(queue));
}

void rig_begin(void)
{
    memset(&rig, 0, sizeof rig);
    scripted_world_begin(&rig.w);
    rig.settings = (struct settings){.sink = (char[]){"default"},
                                     .instance = (char[]){"me"},
                                     .prefix = (char[]){"queen"},
                                     .compression = COMPRESSION_NONE,
                                     .align = ALIGN_NONE,
                                     .start = START_EARLIEST,
                                     .target_bytes = 1 << 20,
                                     .max_window_ms = 10000,
                                     .checkpoint_every = 20,
                                     .fetch_concurrency = 4,
                                     .discovery_interval_ms = 2000,
                                     .safe_guard_ms = 5000,
                                     .lease_ttl_ms = 30000};
    /* What these point to has to stay. */
    static char sink[] = "default";
    static char instance[] = "me";
    static char prefix[] = "queen";
    rig.settings.sink = sink;
    rig.settings.instance = instance;
    rig.settings.prefix = prefix;
    rig.host = (struct queue_host){.world = &rig.w.world,
                                   .settings = &rig.settings,
                                   .discovery = discovery_create(&rig.w.world),
                                   .leases = lease_calls_create(&rig.w.world, 3000, 250),
                                   .incarnation = "mine",
                                   .previous_incarnation = "",
                                   .multipart_threshold = 1 << 20,
                                   .changed = changed,
                                   .committed = committed,
                                   .drained = drained,
                                   .relieve = relieve};
    rig.w.safe_time = T0 + SECOND;
}

void rig_start(void)
{
    rig.queue = queue_create(&rig.host, "orders", 7, false);
    queue_start(rig.queue);
}

void rig_run(void)
{
    rig_start();
    world_run(&rig.w, 250, NOTHING);
}

void rig_restart(void)
{
    queue_destroy(rig.queue);
    rig_start();
}

void rig_end(void)
{
    queue_destroy(rig.queue);
    discovery_destroy(rig.host.discovery);
    lease_calls_destroy(rig.host.leases);
    scripted_world_end(&rig.w);
}

struct report_queue rig_report(void)
{
    struct report_queue report;
    queue_report(rig.queue, &report);
    return report;
}

enum report_queue_state rig_state(void)
{
    return (enum report_queue_state)rig_report().state;
}

/* ---- what lies there ---- */

int64_t rig_lease_row(const char *instance, const char *incarnation)
{
    char text[256];
    snprintf(text, sizeof text, "{\"instance\":\"%s\",\"incarnation\":\"%s\",\"sinceMs\":1}", instance, incarnation);
    return world_document(&rig.w, LEASE, text, 30);
}

int64_t rig_committed(int64_t k, int64_t end)
{
    char time[CLOCK_TEXT_SIZE];
    char text[256];
    clock_format_broker((struct broker_us){end}, time);
    snprintf(text, sizeof text, "{\"k\":%" PRId64 ",\"tEnd\":\"%s\",\"manifest\":\"\",\"records\":0,\"bytes\":0}", k,
             time);
    return world_document(&rig.w, COMMITTED, text, 0);
}

int64_t rig_intent(int64_t k, int64_t start, int64_t end)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"k\":%" PRId64 ",\"tStart\":%" PRId64 ",\"tEnd\":%" PRId64
             ",\"format\":\"jsonl\",\"compression\":\"none\",\"layout\":\"merged\",\"align\":\"none\","
             "\"prefix\":\"queen\",\"writer\":\"queen-s3/1.5.0 jsonl\"}",
             k, start, end);
    return world_document(&rig.w, INTENT, text, 0);
}

void rig_manifest(const char *sink, int64_t k, int64_t start, int64_t end, const char *writer)
{
    char key[LAKE_KEY_SIZE];
    char object_key[] = "queen/object";
    struct manifest_object object = {.key = object_key, .bytes = 10, .records = 3};
    struct manifest manifest = {.sink = (char *)(uintptr_t)sink,
                                .queue = (char[]){"orders"},
                                .bounds = {k, {start}, {end}},
                                .shape = {FORMAT_JSONL, COMPRESSION_NONE, LAYOUT_MERGED, ALIGN_NONE},
                                .objects = &object,
                                .object_count = 1,
                                .records = 3,
                                .bytes = 10,
                                .partitions = 1,
                                .min_ts = {start},
                                .max_ts = {start},
                                .writer = (char *)(uintptr_t)writer};
    size_t size;
    char *text = manifest_format(&manifest, &size);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(lake_manifest_key("queen", "orders", k, key, NULL), 0);
    world_object(&rig.w, key, text, size);
    free(text);
}

void rig_checkpoint(int64_t k, int64_t end, const char *partition, int64_t position)
{
    char key[LAKE_KEY_SIZE];
    char *bytes;
    size_t size;
    struct checkpoint_writer *writer = checkpoint_begin(k, (struct broker_us){end});
    ck_assert_ptr_nonnull(writer);
    ck_assert_int_eq(checkpoint_add(writer, (struct name){partition, strlen(partition)}, position, NULL), 0);
    ck_assert_int_eq(checkpoint_finish(writer, &bytes, &size), 0);
    ck_assert_int_eq(lake_checkpoint_key("queen", "orders", k, key, NULL), 0);
    world_object(&rig.w, key, bytes, size);
    free(bytes);
}

int64_t rig_pointer_k(void)
{
    const struct document_row *row = documents_find(&rig.w.documents, COMMITTED);
    return row != NULL ? (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(row->value, "k")) : -1;
}

int64_t rig_pointer_end(void)
{
    const struct document_row *row = documents_find(&rig.w.documents, COMMITTED);
    struct broker_us end = {-1};
    const char *text = row != NULL ? cJSON_GetStringValue(cJSON_GetObjectItem(row->value, "tEnd")) : NULL;
    return text != NULL && clock_parse_broker(text, strlen(text), &end) ? end.v : -1;
}
