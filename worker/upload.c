/*
 * One object on its way up: upload.h.
 *
 * What can be lost or doubled here: nothing, as long as the key's final bytes are those of the runs. A part whose answer
 * was lost is sent again under its number; a complete whose answer was lost is looked up with a HEAD; an upload that the
 * store no longer knows begins again from the source. Every way ends in the same bytes under the same key.
 */
#include "worker/upload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/retry.h"

struct sending_part {
    struct upload *upload;
    struct encode_part *part;
    uint32_t number;
    uint64_t position;
    struct iovec piece;
    struct store_call *call;
    struct timer retry_timer;
    struct retry retry;
    struct sending_part *next;
};

struct upload {
    struct world *world;
    struct upload_request request;
    char *key;
    struct encode_job *job;
    uint64_t memory; /* taken from the budget for the encoder's own */
    char *upload_id;
    bool creating;
    struct store_call *call; /* create, put, complete or head */
    struct timer timer;
    struct retry retry;
    struct sending_part *parts; /* under way */
    uint32_t part_count;
    uint64_t part_bytes;
    char **etags;
    size_t etag_capacity;
    bool encoded;
    struct encode_result result;
    struct log_limit limit;
    bool part_told;
};

static void upload_begin(struct upload *upload);
static void send_parts(struct upload *upload);
static void complete_if_whole(struct upload *upload);

/* ---- ends ---- */

static void ignore_done(void *argument, const struct error *error)
{
    (void)argument;
    (void)error;
}

/* Lets go of everything that this attempt holds; the multipart upload is aborted best effort. What the encoder needs
 * stays taken from the budget: others would fill that room while the next attempt waits for its turn. */
static void attempt_drop(struct upload *upload)
{
    struct object_store *store = upload->world->store;
    struct sending_part *next;
    for (struct sending_part *part = upload->parts; part != NULL; part = next) {
        next = part->next;
        if (part->call != NULL)
            store->operations->cancel(store, part->call);
        timer_cancel(upload->world->timers, &part->retry_timer);
        free(part);
    }
    upload->parts = NULL;
    if (upload->call != NULL)
        store->operations->cancel(store, upload->call);
    upload->call = NULL;
    timer_cancel(upload->world->timers, &upload->timer);
    if (upload->job != NULL && upload->request.stop != NULL)
        upload->request.stop(upload->request.argument);
    if (upload->job != NULL)
        upload->world->encoder->operations->end(upload->world->encoder, upload->job);
    upload->job = NULL;
    if (upload->upload_id != NULL)
        store->operations->multipart_abort(store, upload->key, upload->upload_id, ignore_done, NULL);
    free(upload->upload_id);
    upload->upload_id = NULL;
    for (uint32_t i = 0; i < upload->part_count; i++)
        free(upload->etags[i]);
    upload->part_count = 0;
    upload->part_bytes = 0;
    upload->creating = false;
    upload->encoded = false;
}

static void upload_free(struct upload *upload)
{
    attempt_drop(upload);
    budget_give(upload->world->budget, upload->memory);
    free(upload->etags);
    free(upload->key);
    free(upload);
}

void upload_cancel(struct upload *upload)
{
    if (upload != NULL)
        upload_free(upload);
}

static void upload_end(struct upload *upload, const struct error *error)
{
    struct upload_request request = upload->request;
    struct encode_result result = upload->result;
    result.pieces = NULL;
    result.piece_count = 0;
    if (error->code == QS_OK) {
        free(upload->upload_id);
        upload->upload_id = NULL;
    }
    upload_free(upload);
    request.done(request.argument, error, &result);
}

static void tell_failure(struct upload *upload, const struct error *error)
{
    struct error plain = *error;
    store_error_drop_key(&plain, upload->key);
    log_limited(&upload->limit, upload->world->now(upload->world), LOG_WARN, upload->request.subject,
                "upload of %s: %s", upload->key, plain.message);
    if (upload->request.failed != NULL)
        upload->request.failed(upload->request.argument, error);
}

static void restart_now(void *argument)
{
    struct upload *upload = argument;
    upload->request.rewind(upload->request.argument);
    upload_begin(upload);
}

/* From the source once more, after a pause. */
static void upload_restart(struct upload *upload, const struct error *error)
{
    tell_failure(upload, error);
    int64_t delay = retry_delay(&upload->retry, upload->world, error, RETRY_CAP_MS);
    attempt_drop(upload); /* the error may be the encoder's, gone with its job */
    timer_set(upload->world->timers, &upload->timer, world_after(upload->world, delay), restart_now, upload);
}

/* True where the step is to be tried again after a pause; else the upload is over. */
static bool step_failed(struct upload *upload, const struct error *error, void (*again)(void *))
{
    if (!error->retriable) {
        upload_end(upload, error);
        return false;
    }
    tell_failure(upload, error);
    timer_set(upload->world->timers, &upload->timer,
              world_after(upload->world, retry_delay(&upload->retry, upload->world, error, RETRY_CAP_MS)), again,
              upload);
    return true;
}

/* ---- one PUT ---- */

static void put_done(void *argument, const struct error *error);

static void put_again(void *argument)
{
    struct upload *upload = argument;
    struct object_body body = {upload->result.pieces, upload->result.piece_count, upload->result.bytes, {0}};
    memcpy(body.md5, upload->result.md5, sizeof body.md5);
    upload->call = upload->world->store->operations->put(
        upload->world->store, upload->key, lake_content_type(&upload->request.shape), &body, put_done, upload);
}

static void put_done(void *argument, const struct error *error)
{
    struct upload *upload = argument;
    upload->call = NULL;
    if (error->code != QS_OK) {
        step_failed(upload, error, put_again);
        return;
    }
    upload->world->crash(upload->world, CRASH_MID_UPLOAD);
    upload_end(upload, error);
}

/* ---- multipart ---- */

static void part_done(void *argument, const struct error *error, const char *etag);

static void part_send(void *argument)
{
    struct sending_part *part = argument;
    struct upload *upload = part->upload;
    struct object_body body = {&part->piece, 1, part->part->size, {0}};
    memcpy(body.md5, part->part->md5, sizeof body.md5);
    part->call = upload->world->store->operations->multipart_part(upload->world->store, upload->key, upload->upload_id,
                                                                  part->number, part->position, &body, part_done, part);
}

static void part_forget(struct upload *upload, struct sending_part *part)
{
    struct sending_part **link = &upload->parts;
    while (*link != part)
        link = &(*link)->next;
    *link = part->next;
    free(part);
}

static void part_done(void *argument, const struct error *error, const char *etag)
{
    struct sending_part *part = argument;
    struct upload *upload = part->upload;
    part->call = NULL;
    if (error->code == QS_ERROR_NOT_FOUND) {
        upload_restart(upload, error);
        return;
    }
    if (error->code != QS_OK && !error->retriable) {
        upload_end(upload, error);
        return;
    }
    if (error->code != QS_OK) {
        tell_failure(upload, error);
        int64_t delay = retry_delay(&part->retry, upload->world, error, RETRY_CAP_MS);
        timer_set(upload->world->timers, &part->retry_timer, world_after(upload->world, delay), part_send, part);
        return;
    }
    upload->etags[part->number - 1] = memory_copy_text(etag);
    upload->world->encoder->operations->release(upload->world->encoder, upload->job, part->part);
    part_forget(upload, part);
    if (!upload->part_told) {
        upload->part_told = true;
        upload->world->crash(upload->world, CRASH_MID_UPLOAD);
    }
    complete_if_whole(upload);
}

static void created(void *argument, const struct error *error, const char *upload_id);

static void create_again(void *argument)
{
    struct upload *upload = argument;
    upload->call = upload->world->store->operations->multipart_create(
        upload->world->store, upload->key, lake_content_type(&upload->request.shape), created, upload);
}

static void created(void *argument, const struct error *error, const char *upload_id)
{
    struct upload *upload = argument;
    upload->call = NULL;
    if (error->code != QS_OK) {
        step_failed(upload, error, create_again);
        return;
    }
    upload->upload_id = memory_copy_text(upload_id);
    upload->retry.failures = 0;
    send_parts(upload);
}

static void send_parts(struct upload *upload)
{
    for (struct sending_part *part = upload->parts; part != NULL; part = part->next)
        if (part->call == NULL && !timer_is_set(&part->retry_timer))
            part_send(part);
}

static void part_ready(void *argument, struct encode_part *encoded)
{
    struct upload *upload = argument;
    struct sending_part *part = memory_new(1, sizeof *part);
    part->upload = upload;
    part->part = encoded;
    part->piece = (struct iovec){encoded->bytes, encoded->size};
    part->position = upload->part_bytes;
    part->number = ++upload->part_count;
    upload->part_bytes += encoded->size;
    upload->etags = memory_grow(upload->etags, &upload->etag_capacity, upload->part_count, sizeof *upload->etags);
    upload->etags[part->number - 1] = NULL;
    part->next = upload->parts;
    upload->parts = part;
    if (upload->upload_id != NULL) {
        part_send(part);
    } else if (!upload->creating) {
        upload->creating = true;
        create_again(upload);
    }
}

/* ---- completing ---- */

static void complete_send(void *argument);

static void head_done(void *argument, const struct error *error, const struct head_answer *answer)
{
    struct upload *upload = argument;
    struct error good = {.retry_after_ms = -1};
    upload->call = NULL;
    if (error->code == QS_OK && answer->size == upload->result.bytes)
        upload_end(upload, &good);
    else if (error->code == QS_OK || error->code == QS_ERROR_NOT_FOUND || error->code == QS_ERROR_FORBIDDEN)
        complete_send(upload);
    else
        step_failed(upload, error, complete_send);
}

static void head_send(void *argument)
{
    struct upload *upload = argument;
    upload->call = upload->world->store->operations->head(upload->world->store, upload->key, head_done, upload);
}

/* The store doesn't know the upload: it completed and the answer was lost, or somebody aborted it. */
static void unknown_head_done(void *argument, const struct error *error, const struct head_answer *answer)
{
    struct upload *upload = argument;
    struct error good = {.retry_after_ms = -1};
    struct error gone;
    upload->call = NULL;
    if (error->code == QS_OK && answer->size == upload->result.bytes) {
        upload_end(upload, &good);
        return;
    }
    error_set(&gone, QS_ERROR_STATUS, "the store no longer knows the multipart upload: it begins again");
    free(upload->upload_id);
    upload->upload_id = NULL;
    upload_restart(upload, error->code == QS_OK || error->code == QS_ERROR_NOT_FOUND ? &gone : error);
}

static void complete_done(void *argument, const struct error *error)
{
    struct upload *upload = argument;
    upload->call = NULL;
    if (error->code == QS_OK)
        upload_end(upload, error);
    else if (error->code == QS_ERROR_NOT_FOUND)
        upload->call =
            upload->world->store->operations->head(upload->world->store, upload->key, unknown_head_done, upload);
    else
        step_failed(upload, error, head_send); /* it may have succeeded: look before it is sent again */
}

static void complete_send(void *argument)
{
    struct upload *upload = argument;
    struct object_part *parts = memory_new(upload->part_count, sizeof *parts);
    for (uint32_t i = 0; i < upload->part_count; i++)
        parts[i] = (struct object_part){i + 1, upload->etags[i]};
    upload->call = upload->world->store->operations->multipart_complete(
        upload->world->store, upload->key, upload->upload_id, parts, upload->part_count, complete_done, upload);
    free(parts);
}

static void complete_if_whole(struct upload *upload)
{
    if (upload->encoded && upload->parts == NULL && upload->call == NULL && !timer_is_set(&upload->timer))
        complete_send(upload);
}

/* ---- encoding ---- */

static void encode_done(void *argument, const struct error *error, const struct encode_result *result)
{
    struct upload *upload = argument;
    if (error->code != QS_OK) {
        upload_restart(upload, error);
        return;
    }
    upload->encoded = true;
    upload->result = *result;
    if (result->piece_count > 0)
        put_again(upload);
    else
        complete_if_whole(upload);
}

static void source_asked(void *argument)
{
    struct upload *upload = argument;
    upload->request.asked(upload->request.argument);
}

static void upload_begin(struct upload *upload)
{
    struct encode_handlers handlers = {part_ready, encode_done, upload->request.asked != NULL ? source_asked : NULL};
    struct error error;
    upload->job =
        upload->world->encoder->operations->start(upload->world->encoder, &upload->request.shape,
                                                  upload->request.source, upload->request.threshold, &handlers, upload);
    if (upload->job == NULL) {
        error_set(&error, QS_ERROR_NO_MEMORY, "no memory for encoding");
        upload_restart(upload, &error);
    }
}

struct upload *upload_start(struct world *world, const struct upload_request *request)
{
    struct upload *upload = memory_new(1, sizeof *upload);
    upload->world = world;
    upload->request = *request;
    upload->key = memory_copy_text(request->key);
    upload->memory = encode_memory(&request->shape, request->source->text_size, request->threshold);
    budget_force(world->budget, (size_t)upload->memory);
    upload_begin(upload);
    return upload;
}
