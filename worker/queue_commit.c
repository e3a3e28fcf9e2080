/*
 * The queue driver: the commit sequence (spec 3.5).
 *
 * intent (the bounds are fixed) → objects → manifest → pointer. Until the pointer moves the window can be redone to the
 * same keys and bytes; once it has moved, it is real. Exactly one window is in the sequence at a time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/manifest.h"
#include "common/memory.h"
#include "common/name.h"
#include "worker/queue_internal.h"

static void upload_objects(struct queue *queue);

static void note_failure(void *argument, const struct error *error)
{
    struct queue *queue = argument;
    queue_fault(queue, "%s", error->message);
}

/* ---- the pointer ---- */

static void commit_free(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    redo_look_drop(queue);
    window_objects_destroy(commit->objects);
    for (size_t i = 0; i < commit->kept_count; i++) {
        free(commit->kept[i].object.key);
        free(commit->kept[i].object.partition);
    }
    free(commit->kept);
    window_plan_free(&commit->plan);
    free(commit->prefix);
    memset(commit, 0, sizeof *commit);
}

static void pointer_written(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    char end[CLOCK_TEXT_SIZE];
    bool from_manifest = commit->manifest_found;
    queue->world->crash(queue->world, CRASH_AFTER_COMMIT);
    clock_format_broker(commit->bounds.end, end);
    log_line(LOG_INFO, queue->name, "window %" PRId64 " to %s: %" PRIu64 " records, %" PRIu64 " bytes",
             commit->bounds.k, end, commit->records, commit->bytes);
    queue->committed_k = commit->bounds.k;
    queue->committed_end = commit->bounds.end.v;
    queue->committed_document.exists = true;
    queue->windows_committed++;
    queue->records_written += commit->records;
    queue->bytes_written[commit->shape.format] += commit->bytes;
    queue->records_lost += commit->lost;
    queue->through = commit->bounds.end.v > queue->through ? commit->bounds.end.v : queue->through;
    queue->fresh = queue->world->now(queue->world);
    queue->committed_since_checkpoint = true;
    queue_fault_over(queue);
    if (queue->host->committed != NULL)
        queue->host->committed(queue->host, commit->records, commit->bytes);
    commit_free(queue);
    if (from_manifest && !queue->draining) {
        origin_begin(queue);
        return;
    }
    queue->state = QUEUE_RUNNING;
    if (!from_manifest && queue->committed_k % queue->host->settings->checkpoint_every == 0)
        checkpoint_write(queue);
    queue->host->changed(queue->host, queue);
    queue_step(queue);
}

static void pointer_write(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    commit->step = COMMIT_POINTER;
    queue->world->crash(queue->world, CRASH_BEFORE_COMMIT);
    const struct lake_pointer pointer = {.k = commit->bounds.k,
                                         .end = commit->bounds.end,
                                         .manifest = commit->manifest_key,
                                         .records = commit->records,
                                         .bytes = commit->bytes,
                                         .at = queue->world->wall(queue->world)};
    guarded_start(queue, queue->committed_key, pointer_format(&pointer), &queue->committed_document.version,
                  pointer_written);
}

void commit_from_manifest(struct queue *queue, uint64_t records, uint64_t bytes, uint64_t lost)
{
    struct commit *commit = &queue->commit;
    struct error error;
    commit->bounds = queue->intent.bounds;
    commit->manifest_found = true;
    commit->records = records;
    commit->bytes = bytes;
    commit->lost = lost;
    if (lake_manifest_key(queue->intent.prefix, queue->escaped, commit->bounds.k, commit->manifest_key, &error) != 0) {
        queue_stop(queue, "%s", error.message);
        return;
    }
    pointer_write(queue);
}

/* ---- the manifest ---- */

static void manifest_done(void *argument, const struct error *error)
{
    struct queue *queue = argument;
    queue->commit.put = NULL;
    if (error->code != QS_OK) {
        struct error plain = *error;
        store_error_drop_key(&plain, queue->commit.manifest_key);
        queue_stop(queue, "upload of %s: %s", queue->commit.manifest_key, plain.message);
        return;
    }
    pointer_write(queue);
}

static void manifest_fill_lost(struct manifest *manifest, const struct window_plan *plan)
{
    manifest->lost = memory_new(plan->lost_count, sizeof *manifest->lost);
    manifest->lost_count = plan->lost_count;
    for (size_t i = 0; i < plan->lost_count; i++)
        manifest->lost[i] = (struct manifest_lost){plan->lost[i].partition, plan->lost[i].partition_size,
                                                   plan->lost[i].from, plan->lost[i].to, plan->lost[i].previous_life};
}

static void add_kept(struct window_totals *totals, const struct kept_object *kept)
{
    if (totals->records == 0 || kept->min_ts.v < totals->min_ts.v)
        totals->min_ts = kept->min_ts;
    if (totals->records == 0 || kept->max_ts.v > totals->max_ts.v)
        totals->max_ts = kept->max_ts;
    totals->records += kept->object.records;
    totals->bytes += kept->object.bytes;
    totals->partitions += kept->partitions;
}

static int compare_objects(const void *a, const void *b)
{
    const struct manifest_object *left = a;
    const struct manifest_object *right = b;
    return name_compare((struct name){left->partition, left->partition_size},
                        (struct name){right->partition, right->partition_size});
}

/* What went up and what was kept, in the order of names. Malloc; the strings stay where they are. */
static struct manifest_object *all_objects(const struct commit *commit, size_t *count, struct window_totals *totals)
{
    size_t uploaded = 0;
    const struct manifest_object *list =
        commit->objects != NULL ? window_objects_list(commit->objects, &uploaded, totals) : NULL;
    struct manifest_object *all = memory_new(uploaded + commit->kept_count, sizeof *all);
    if (uploaded > 0)
        memcpy(all, list, uploaded * sizeof *all);
    for (size_t i = 0; i < commit->kept_count; i++) {
        all[uploaded + i] = commit->kept[i].object;
        add_kept(totals, &commit->kept[i]);
    }
    *count = uploaded + commit->kept_count;
    if (commit->kept_count > 0)
        qsort(all, *count, sizeof *all, compare_objects);
    return all;
}

static char *manifest_text(struct queue *queue, size_t *size)
{
    struct commit *commit = &queue->commit;
    struct window_totals totals = {0};
    struct manifest manifest = {.sink = queue->host->settings->sink,
                                .queue = queue->name,
                                .bounds = commit->bounds,
                                .shape = commit->shape,
                                .writer = (char *)(uintptr_t)manifest_writer(&commit->shape),
                                .committed_at = queue->world->wall(queue->world)};
    struct manifest_object *objects = all_objects(commit, &manifest.object_count, &totals);
    manifest.objects = objects;
    manifest.records = totals.records;
    manifest.bytes = totals.bytes;
    manifest.partitions = totals.partitions;
    manifest.min_ts = totals.min_ts;
    manifest.max_ts = totals.max_ts;
    commit->records = totals.records;
    commit->bytes = totals.bytes;
    manifest_fill_lost(&manifest, &commit->plan);
    char *text = manifest_format(&manifest, size);
    free(manifest.lost);
    free(objects);
    return text;
}

static void manifest_upload(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    size_t size = 0;
    commit->step = COMMIT_MANIFEST;
    char *text = manifest_text(queue, &size);
    if (text == NULL) {
        queue_stop(queue, "no memory for the manifest of window %" PRId64, commit->bounds.k);
        return;
    }
    commit->put = small_put_start(queue->world, queue->name, commit->manifest_key, "application/json", text, size,
                                  note_failure, manifest_done, queue);
}

/* ---- the objects ---- */

static void objects_done(void *argument, const struct error *error)
{
    struct queue *queue = argument;
    if (error->code != QS_OK) {
        queue_stop(queue, "%s", error->message);
        return;
    }
    queue->world->crash(queue->world, CRASH_AFTER_UPLOAD);
    manifest_upload(queue);
}

static void upload_objects(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    struct error error;
    struct window_objects_request request = {.subject = queue->name,
                                             .escaped_queue = queue->escaped,
                                             .prefix = commit->prefix,
                                             .shape = commit->shape,
                                             .bounds = commit->bounds,
                                             .plan = &commit->plan,
                                             .threshold = queue->host->multipart_threshold,
                                             .failed = note_failure,
                                             .done = objects_done,
                                             .argument = queue};
    commit->step = COMMIT_UPLOAD;
    commit->objects = window_objects_start(queue->world, &request, &error);
    if (commit->objects == NULL)
        queue_stop(queue, "%s", error.message);
}

/* ---- the intent ---- */

static void intent_written(struct queue *queue)
{
    queue->intent_document.exists = true;
    queue->world->crash(queue->world, CRASH_AFTER_INTENT);
    upload_objects(queue);
}

static void commit_shape(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    const struct settings *settings = queue->host->settings;
    if (commit->redo) {
        commit->shape = queue->intent.shape;
        commit->prefix = memory_copy_text(queue->intent.prefix);
        return;
    }
    commit->shape = (struct window_shape){settings->format, settings->compression, settings->layout, settings->align};
    commit->prefix = memory_copy_text(settings->prefix);
}

static uint64_t plan_lost(const struct window_plan *plan)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < plan->lost_count; i++)
        lost += (uint64_t)(plan->lost[i].to - plan->lost[i].from) + 1;
    return lost;
}

/* commit.plan holds the window. */
void commit_begin(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    struct error error;
    commit->bounds = (struct window_bounds){queue->committed_k + 1, commit->plan.start, commit->plan.end};
    commit->lost = plan_lost(&commit->plan);
    commit_shape(queue);
    char key[LAKE_KEY_SIZE];
    if (lake_object_key(commit->prefix, queue->escaped, &commit->shape, &commit->bounds, key, &error) != 0 ||
        lake_manifest_key(commit->prefix, queue->escaped, commit->bounds.k, commit->manifest_key, &error) != 0) {
        queue_stop(queue, "%s", error.message);
        return;
    }
    if (commit->redo) {
        redo_look(queue);
        return;
    }
    commit->step = COMMIT_INTENT;
    guarded_start(queue, queue->intent_key, intent_format(&commit->bounds, &commit->shape, commit->prefix),
                  &queue->intent_document.version, intent_written);
}

/* Nothing of the intent's window is there any more: it is given up, what was lost of it goes into the next window, which
 * takes its k (spec 3.5). */
static void redo_give_up(struct queue *queue)
{
    log_line(LOG_ERROR, queue->name, "window %" PRId64 " can't be redone: nothing of it is left in the log",
             queue->intent.bounds.k);
    window_plan_return_lost(queue->engine, &queue->commit.plan);
    commit_free(queue);
    queue->state = QUEUE_RUNNING;
    queue_step(queue);
}

void commit_looked(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    if (commit->plan.run_count + commit->plan.surveyed_count > 0)
        upload_objects(queue);
    else if (commit->kept_count > 0)
        manifest_upload(queue);
    else
        redo_give_up(queue);
}

void commit_drop(struct queue *queue)
{
    small_put_cancel(queue->commit.put);
    commit_free(queue);
}
