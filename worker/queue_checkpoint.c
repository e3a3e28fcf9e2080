/*
 * The queue driver: writing checkpoints, and deleting those older than the last two (spec 2.4), the only objects that the
 * sink ever deletes. Best effort: what fails here costs re-reads.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/lake/checkpoint.h"
#include "common/memory.h"
#include "worker/queue_internal.h"

#define CHECKPOINTS_KEPT 2

static void cleanup_list(struct queue *queue);

static void removed(void *argument, const struct error *error)
{
    (void)argument;
    if (error->code != QS_OK)
        log_line(LOG_DEBUG, NULL, "deleting an old checkpoint: %s", error->message);
}

/* Pages come in key order, which is k order: each that is followed by two newer ones goes. */
static void cleanup_listed(void *argument, const struct error *error, const struct listed_object *objects, size_t count,
                           const char *next)
{
    struct queue *queue = argument;
    queue->cleanup_call = NULL;
    for (size_t i = 0; error->code == QS_OK && i < count; i++) {
        int64_t k = checkpoint_key_k(objects[i].key);
        if (k < 0 || k > queue->checkpoint_k)
            continue;
        if (queue->cleanup_keys[0] != NULL)
            queue->world->store->operations->remove(queue->world->store, queue->cleanup_keys[0], removed, NULL);
        free(queue->cleanup_keys[0]);
        queue->cleanup_keys[0] = queue->cleanup_keys[1];
        queue->cleanup_keys[1] = memory_copy_text(objects[i].key);
    }
    free(queue->cleanup_token);
    queue->cleanup_token = error->code == QS_OK ? memory_copy_text(next) : NULL;
    if (queue->cleanup_token != NULL)
        cleanup_list(queue);
}

static void cleanup_list(struct queue *queue)
{
    char prefix[LAKE_KEY_SIZE];
    struct error error;
    if (queue->cleanup_token == NULL)
        for (int i = 0; i < CHECKPOINTS_KEPT; i++) {
            free(queue->cleanup_keys[i]);
            queue->cleanup_keys[i] = NULL;
        }
    if (lake_checkpoint_prefix(queue->host->settings->prefix, queue->escaped, prefix, &error) != 0)
        return;
    queue->cleanup_call =
        queue->world->store->operations->list(queue->world->store, prefix, queue->cleanup_token, cleanup_listed, queue);
}

void checkpoint_drop(struct queue *queue)
{
    small_put_cancel(queue->checkpoint_put);
    queue->checkpoint_put = NULL;
    if (queue->cleanup_call != NULL)
        queue->world->store->operations->cancel(queue->world->store, queue->cleanup_call);
    queue->cleanup_call = NULL;
    for (int i = 0; i < CHECKPOINTS_KEPT; i++) {
        free(queue->cleanup_keys[i]);
        queue->cleanup_keys[i] = NULL;
    }
    free(queue->cleanup_token);
    queue->cleanup_token = NULL;
}

static void written(void *argument, const struct error *error)
{
    struct queue *queue = argument;
    queue->checkpoint_put = NULL;
    if (error->code != QS_OK) {
        log_line(LOG_WARN, queue->name, "writing a checkpoint: %s", error->message);
    } else {
        queue->checkpoint_k = queue->checkpoint_pending_k;
        if (queue->cleanup_call == NULL && !queue->draining)
            cleanup_list(queue);
    }
    queue->host->changed(queue->host, queue);
    queue_step(queue);
}

/* Best effort: a stop doesn't wait for another attempt. */
static void write_failed(void *argument, const struct error *error)
{
    struct queue *queue = argument;
    (void)error;
    queue->checkpoint_failing = true;
    if (queue->draining)
        queue_step(queue);
}

static int add_position(void *argument, struct name partition, int64_t position, const struct partition_id *id)
{
    return checkpoint_add(argument, partition, position, id);
}

void checkpoint_write(struct queue *queue)
{
    char key[LAKE_KEY_SIZE];
    struct error error;
    char *bytes = NULL;
    size_t size = 0;
    queue->committed_since_checkpoint = false;
    if (queue->checkpoint_put != NULL || queue->engine == NULL ||
        lake_checkpoint_key(queue->host->settings->prefix, queue->escaped, queue->committed_k, key, &error) != 0)
        return;
    struct checkpoint_writer *writer = checkpoint_begin(queue->committed_k, (struct broker_us){queue->committed_end});
    if (writer == NULL)
        return;
    if (window_positions(queue->engine, add_position, writer) != 0) {
        checkpoint_discard(writer);
        return;
    }
    if (checkpoint_finish(writer, &bytes, &size) != 0)
        return;
    queue->checkpoint_pending_k = queue->committed_k;
    queue->checkpoint_failing = false;
    queue->checkpoint_put =
        small_put_start(queue->world, queue->name, key, "application/zstd", bytes, size, write_failed, written, queue);
}
