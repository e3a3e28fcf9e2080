/*
 * The queue driver: where it starts (spec 3.4, 3.5).
 *
 * Both pointers are read; they say whether a window has to be redone, whether one only lacks its pointer, or where the
 * next begins. Numbering never restarts over an existing lake: the bucket is asked for the manifest of the window that
 * would come next, the first one without a pointer. One that is there although nothing says that it was begun was
 * committed once, and the pointer has been set back since, as a backup does that is restored.
 * Then the newest checkpoint that fits gives the positions; without one, partitions are sought.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/checkpoint.h"
#include "common/lake/manifest.h"
#include "common/memory.h"
#include "worker/queue_internal.h"

#define MANIFEST_SIZE_MAX   67108864u
#define CHECKPOINT_SIZE_MAX 268435456u

static void pointers_read(void *argument);
static void first_manifest_get(void *argument);
static void next_manifest_get(void *argument);
static void redo_manifest_get(void *argument);
static void checkpoints_list(void *argument);
static void checkpoint_get(void *argument);
static void checkpoint_manifest_get(void *argument);
static void clock_read(void *argument);
static void engine_start(struct queue *queue);

static void step_again_within(struct queue *queue, const char *what, const struct error *error, void (*step)(void *),
                              int64_t cap_ms)
{
    queue_note(queue, &queue->other_limit, what, error);
    timer_set(queue->world->timers, &queue->origin_timer,
              world_after(queue->world, retry_delay(&queue->origin_retry, queue->world, error, cap_ms)), step, queue);
}

static void step_again(struct queue *queue, const char *what, const struct error *error, void (*step)(void *))
{
    step_again_within(queue, what, error, step, RETRY_CAP_MS);
}

/* Whether it did: then it is tried again, or the queue stops. */
static bool step_failed(struct queue *queue, const char *what, const struct error *error, void (*step)(void *))
{
    if (error->code == QS_OK)
        return false;
    if (error->retriable)
        step_again(queue, what, error, step);
    else
        queue_stop(queue, "%s: %s", what, error->message);
    return true;
}

/* ---- the pointers ---- */

static bool read_committed(struct queue *queue, const cJSON *value)
{
    struct broker_us end;
    if (!pointer_read(value, &queue->committed_k, &end))
        return false;
    queue->committed_end = end.v;
    if (end.v > queue->through)
        queue->through = end.v;
    return true;
}

static bool has_redo(const struct queue *queue)
{
    return queue->intent_document.exists && queue->intent.bounds.k == queue->committed_k + 1;
}

/* What the pointers say comes next. */
static void pointers_follow(struct queue *queue)
{
    if (queue->intent_document.exists && queue->intent.bounds.k > queue->committed_k + 1) {
        queue_stop(queue,
                   "the intent is for window %" PRId64 " but the pointer says %" PRId64
                   ": the pointer is gone or was set back; `queen-s3 recover` can rebuild it from the manifests",
                   queue->intent.bounds.k, queue->committed_k);
        return;
    }
    if (!queue->committed_document.exists)
        first_manifest_get(queue);
    else if (has_redo(queue))
        redo_manifest_get(queue);
    else
        next_manifest_get(queue);
}

static void pointers_take(struct queue *queue, const struct kv_result *result)
{
    queue->intent_document = (struct document){0, false};
    queue->committed_document = (struct document){0, false};
    queue->committed_k = 0;
    queue->committed_end = INT64_MIN;
    for (size_t i = 0; i < result->row_count; i++) {
        const struct kv_row *row = &result->rows[i];
        bool is_intent = strcmp(row->key, queue->intent_key) == 0;
        struct document *document = is_intent ? &queue->intent_document : &queue->committed_document;
        *document = (struct document){row->version, true};
        if (is_intent ? !intent_read(row->value, queue->host->settings, &queue->intent)
                      : !read_committed(queue, row->value)) {
            queue_stop(queue,
                       "the document %s can't be read: mend it, or let `queen-s3 recover` rebuild the pointer from the "
                       "manifests",
                       row->key);
            return;
        }
    }
    pointers_follow(queue);
}

static void pointers_done(void *argument, const struct error *error, const struct kv_answer *answer)
{
    struct queue *queue = argument;
    queue->origin_call = NULL;
    if (error->code != QS_OK && !error->retriable)
        queue_stop(queue, "reading the pointers: %s", error->message);
    else if (error->code != QS_OK || answer->precondition_failed || answer->count != 1)
        step_again_within(queue, "reading the pointers", error, pointers_read, lease_kv_timeout_ms(queue));
    else
        pointers_take(queue, &answer->results[0]);
}

static void pointers_read(void *argument)
{
    struct queue *queue = argument;
    const char *keys[2] = {queue->intent_key, queue->committed_key};
    struct kv_operation get = {.kind = KV_GET_MANY, .keys = keys, .key_count = 2};
    queue->origin_call = queue->world->queen->operations->kv(queue->world->queen, &get, 1, lease_kv_timeout_ms(queue),
                                                             pointers_done, queue);
}

void origin_begin(struct queue *queue)
{
    queue->state = QUEUE_RECOVERING;
    queue->origin_retry.failures = 0;
    queue->host->changed(queue->host, queue);
    pointers_read(queue);
}

void origin_drop(struct queue *queue)
{
    if (queue->origin_call != NULL)
        queue->world->queen->operations->cancel(queue->world->queen, queue->origin_call);
    if (queue->store_call != NULL)
        queue->world->store->operations->cancel(queue->world->store, queue->store_call);
    queue->origin_call = NULL;
    queue->store_call = NULL;
    timer_cancel(queue->world->timers, &queue->origin_timer);
    free(queue->list_token);
    queue->list_token = NULL;
}

/* ---- manifests ---- */

static void manifest_get(struct queue *queue, const char *prefix, int64_t k, store_get_done *done)
{
    char key[LAKE_KEY_SIZE];
    struct error error;
    if (lake_manifest_key(prefix, queue->escaped, k, key, &error) != 0) {
        queue_stop(queue, "%s", error.message);
        return;
    }
    queue->store_call = queue->world->store->operations->get(queue->world->store, key, MANIFEST_SIZE_MAX, done, queue);
}

/* A missing key can answer 403 under a narrow policy: it counts as absent (spec 4.4). */
static bool is_absent(const struct error *error)
{
    return error->code == QS_ERROR_NOT_FOUND || error->code == QS_ERROR_FORBIDDEN;
}

static bool manifest_is_of(const struct queue *queue, const struct manifest *manifest)
{
    return strcmp(manifest->sink, queue->host->settings->sink) == 0 && strcmp(manifest->queue, queue->name) == 0;
}

static bool manifest_is_of_intent(const struct queue *queue, const struct manifest *manifest)
{
    const struct lake_intent *intent = &queue->intent;
    return manifest_is_of(queue, manifest) && manifest->bounds.k == intent->bounds.k &&
           manifest->bounds.start.v == intent->bounds.start.v && manifest->bounds.end.v == intent->bounds.end.v;
}

/* Not so where another version has redone the intent: its objects may be spelled otherwise. */
static bool manifest_is_intents(const struct queue *queue, const struct manifest *manifest)
{
    return manifest_is_of_intent(queue, manifest) && strcmp(manifest->writer, queue->intent.writer) == 0;
}

static uint64_t manifest_lost(const struct manifest *manifest)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < manifest->lost_count; i++)
        lost += (uint64_t)(manifest->lost[i].to - manifest->lost[i].from) + 1;
    return lost;
}

/* What is committed holds; where to read on comes next. */
static void pointer_holds(struct queue *queue)
{
    if (queue->committed_k > 0)
        checkpoints_list(queue);
    else
        engine_start(queue);
}

/* Whether it is another sink's: then the queue stops. */
static bool stopped_for_lake_of(struct queue *queue, const struct manifest *manifest)
{
    if (strcmp(manifest->sink, queue->host->settings->sink) == 0)
        return false;
    queue_stop(queue,
               "this prefix holds the lake of sink %s: two sinks never share bucket and prefix; set QUEEN_S3_PREFIX",
               manifest->sink);
    return true;
}

static void manifest_of_redo(struct queue *queue, const struct manifest *manifest)
{
    if (manifest_is_intents(queue, manifest)) {
        log_line(LOG_INFO, queue->name, "window %" PRId64 " is up already: only its pointer is written",
                 manifest->bounds.k);
        commit_from_manifest(queue, manifest->records, manifest->bytes, manifest_lost(manifest));
    } else if (!stopped_for_lake_of(queue, manifest)) {
        pointer_holds(queue);
    }
}

static void first_manifest_done(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct queue *queue = argument;
    struct manifest manifest;
    struct error parse;
    queue->store_call = NULL;
    if (is_absent(error)) {
        engine_start(queue);
        return;
    }
    if (step_failed(queue, "looking for a lake", error, first_manifest_get))
        return;
    bool read = manifest_parse(bytes, size, &manifest, &parse) == 0;
    if (read && has_redo(queue) && manifest_is_of_intent(queue, &manifest))
        manifest_of_redo(queue, &manifest);
    else if (!read || !stopped_for_lake_of(queue, &manifest))
        queue_stop(queue,
                   "a lake is there but its pointer is gone: `queen-s3 recover` can rebuild it from the manifests");
    if (read)
        manifest_free(&manifest);
    free(bytes);
}

static void first_manifest_get(void *argument)
{
    struct queue *queue = argument;
    const char *prefix = has_redo(queue) ? queue->intent.prefix : queue->host->settings->prefix;
    manifest_get(queue, prefix, 1, first_manifest_done);
}

static void redo_manifest_done(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct queue *queue = argument;
    struct manifest manifest = {0};
    struct error parse;
    queue->store_call = NULL;
    if (!is_absent(error) && step_failed(queue, "reading a manifest", error, redo_manifest_get))
        return;
    bool read = error->code == QS_OK && manifest_parse(bytes, size, &manifest, &parse) == 0;
    if (read)
        manifest_of_redo(queue, &manifest);
    else
        pointer_holds(queue);
    if (read)
        manifest_free(&manifest);
    free(bytes);
}

static void redo_manifest_get(void *argument)
{
    struct queue *queue = argument;
    manifest_get(queue, queue->intent.prefix, queue->intent.bounds.k, redo_manifest_done);
}

static void next_manifest_done(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct queue *queue = argument;
    struct manifest manifest;
    struct error parse;
    queue->store_call = NULL;
    if (is_absent(error)) {
        pointer_holds(queue);
        return;
    }
    if (step_failed(queue, "looking behind the pointer", error, next_manifest_get))
        return;
    bool read = manifest_parse(bytes, size, &manifest, &parse) == 0;
    if (!read || !stopped_for_lake_of(queue, &manifest))
        queue_stop(queue,
                   "there is a manifest of window %" PRId64 " but the pointer says %" PRId64
                   ": the pointer was set back; `queen-s3 recover` can rebuild it from the manifests",
                   queue->committed_k + 1, queue->committed_k);
    if (read)
        manifest_free(&manifest);
    free(bytes);
}

static void next_manifest_get(void *argument)
{
    struct queue *queue = argument;
    manifest_get(queue, queue->host->settings->prefix, queue->committed_k + 1, next_manifest_done);
}

/* ---- the checkpoint ---- */

int64_t checkpoint_key_k(const char *key)
{
    const char *slash = strrchr(key, '/');
    const char *name = slash != NULL ? slash + 1 : key;
    int64_t k = 0;
    for (int i = 0; i < 10; i++) {
        if (name[i] < '0' || name[i] > '9')
            return -1;
        k = k * 10 + (name[i] - '0');
    }
    return strcmp(name + 10, ".json.zst") == 0 ? k : -1;
}

static void checkpoints_listed(void *argument, const struct error *error, const struct listed_object *objects,
                               size_t count, const char *next)
{
    struct queue *queue = argument;
    queue->store_call = NULL;
    if (error->code != QS_OK) {
        if (error->retriable) {
            step_again(queue, "listing checkpoints", error, checkpoints_list);
        } else {
            log_line(LOG_WARN, queue->name, "listing checkpoints: %s; partitions are sought instead", error->message);
            engine_start(queue);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t k = checkpoint_key_k(objects[i].key);
        if (k > queue->committed_k || k <= queue->checkpoint_ks[0])
            continue;
        queue->checkpoint_ks[1] = queue->checkpoint_ks[0];
        queue->checkpoint_ks[0] = k;
    }
    free(queue->list_token);
    queue->list_token = memory_copy_text(next);
    if (queue->list_token != NULL) {
        checkpoints_list(queue);
        return;
    }
    queue->checkpoint_at = 0;
    engine_start(queue);
}

static void checkpoints_list(void *argument)
{
    struct queue *queue = argument;
    char prefix[LAKE_KEY_SIZE];
    struct error error;
    if (queue->list_token == NULL)
        queue->checkpoint_ks[0] = queue->checkpoint_ks[1] = -1;
    if (lake_checkpoint_prefix(queue->host->settings->prefix, queue->escaped, prefix, &error) != 0) {
        queue_stop(queue, "%s", error.message);
        return;
    }
    queue->store_call = queue->world->store->operations->list(queue->world->store, prefix, queue->list_token,
                                                              checkpoints_listed, queue);
}

static void checkpoint_unusable(struct queue *queue, const char *why)
{
    log_line(LOG_INFO, queue->name, "checkpoint %" PRId64 " is left aside: %s",
             queue->checkpoint_ks[queue->checkpoint_at], why);
    window_clear_positions(queue->engine);
    queue->checkpoint_at++;
    checkpoint_get(queue);
}

static void checkpoint_use(struct queue *queue)
{
    queue->checkpoint_k = queue->checkpoint_ks[queue->checkpoint_at];
    passes_begin(queue);
}

static int checkpoint_take(void *argument, struct name partition, int64_t position, const struct partition_id *id)
{
    struct queue *queue = argument;
    window_add_position(queue->engine, partition, position, id);
    return 0;
}

static void checkpoint_got(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct queue *queue = argument;
    struct error parse;
    int64_t k = -1;
    queue->store_call = NULL;
    if (error->code != QS_OK) {
        if (error->retriable)
            step_again(queue, "reading a checkpoint", error, checkpoint_get);
        else
            checkpoint_unusable(queue, error->message);
        return;
    }
    int status = checkpoint_read(bytes, size, &k, &queue->checkpoint_end, checkpoint_take, queue, &parse);
    free(bytes);
    if (status != 0)
        checkpoint_unusable(queue, parse.message);
    else if (k != queue->checkpoint_ks[queue->checkpoint_at])
        checkpoint_unusable(queue, "it names another window");
    else if (k == queue->committed_k && queue->checkpoint_end.v == queue->committed_end)
        checkpoint_use(queue);
    else
        checkpoint_manifest_get(queue);
}

static void checkpoint_get(void *argument)
{
    struct queue *queue = argument;
    char key[LAKE_KEY_SIZE];
    struct error error;
    while (queue->checkpoint_at < 2 && queue->checkpoint_ks[queue->checkpoint_at] < 0)
        queue->checkpoint_at++;
    if (queue->checkpoint_at >= 2) {
        passes_begin(queue);
        return;
    }
    if (lake_checkpoint_key(queue->host->settings->prefix, queue->escaped, queue->checkpoint_ks[queue->checkpoint_at],
                            key, &error) != 0) {
        queue_stop(queue, "%s", error.message);
        return;
    }
    queue->store_call =
        queue->world->store->operations->get(queue->world->store, key, CHECKPOINT_SIZE_MAX, checkpoint_got, queue);
}

/* A checkpoint counts only if its tEnd is that of the manifest of its k (spec 3.4, 1). */
static void checkpoint_manifest_done(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct queue *queue = argument;
    struct manifest manifest;
    struct error parse;
    queue->store_call = NULL;
    if (error->code != QS_OK) {
        if (error->retriable)
            step_again(queue, "reading a manifest", error, checkpoint_manifest_get);
        else
            checkpoint_unusable(queue, error->message);
        return;
    }
    bool fits = false;
    if (manifest_parse(bytes, size, &manifest, &parse) == 0) {
        fits = manifest_is_of(queue, &manifest) && manifest.bounds.end.v == queue->checkpoint_end.v;
        manifest_free(&manifest);
    }
    free(bytes);
    if (fits)
        checkpoint_use(queue);
    else
        checkpoint_unusable(queue, "its end isn't that of the manifest of its window");
}

static void checkpoint_manifest_get(void *argument)
{
    struct queue *queue = argument;
    manifest_get(queue, queue->host->settings->prefix, queue->checkpoint_ks[queue->checkpoint_at],
                 checkpoint_manifest_done);
}

/* ---- T_0 of START=latest ---- */

static void clock_done(void *argument, const struct error *error, const struct changed_answer *answer);

static void origin_written(struct queue *queue)
{
    queue->committed_document.exists = true;
    queue->host->changed(queue->host, queue);
    engine_start(queue);
}

/* Written down before the first record is read: a restart would otherwise skip what came in between (spec 3.4, 3). */
static void clock_done(void *argument, const struct error *error, const struct changed_answer *answer)
{
    struct queue *queue = argument;
    queue->origin_call = NULL;
    if (step_failed(queue, "reading the broker's clock", error, clock_read))
        return;
    char text[CLOCK_TEXT_SIZE];
    clock_format_broker(answer->safe_time, text);
    queue->committed_k = 0;
    queue->committed_end = answer->safe_time.v;
    log_line(LOG_INFO, queue->name, "starts at %s (QUEEN_S3_START=latest)", text);
    const struct lake_pointer pointer = {
        .k = 0, .end = answer->safe_time, .manifest = "", .at = queue->world->wall(queue->world)};
    char *value = pointer_format(&pointer);
    guarded_start(queue, queue->committed_key, value, &queue->committed_document.version, origin_written);
}

static void clock_read(void *argument)
{
    struct queue *queue = argument;
    queue->origin_call = queue->world->queen->operations->changed(queue->world->queen, NULL, 0, clock_done, queue);
}

/* ---- the engine ---- */

static struct window_engine *engine_new(const struct queue *queue)
{
    const struct settings *settings = queue->host->settings;
    struct window_settings window = {.target_weight = settings->target_bytes,
                                     .max_window_us = settings->max_window_ms * 1000,
                                     .guard_us = settings->safe_guard_ms * 1000,
                                     .align = settings->align};
    return window_create(&window);
}

static void engine_start(struct queue *queue)
{
    bool from_start = queue->from_log_start || queue->host->settings->start == START_EARLIEST;
    if (!has_redo(queue) && !queue->committed_document.exists && !from_start) {
        clock_read(queue);
        return;
    }
    window_destroy(queue->engine);
    queue->engine = engine_new(queue);
    queue->checkpoint_k = -1;
    if (has_redo(queue)) {
        window_start_redo(queue->engine, queue->intent.bounds.start, queue->intent.bounds.end);
        queue->commit.redo = true;
        log_line(LOG_INFO, queue->name, "redoes window %" PRId64, queue->intent.bounds.k);
    } else if (queue->committed_document.exists) {
        window_start_after(queue->engine, (struct broker_us){queue->committed_end});
    } else {
        window_start_earliest(queue->engine);
    }
    if (queue->committed_k > 0)
        checkpoint_get(queue);
    else
        passes_begin(queue);
}
