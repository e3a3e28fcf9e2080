/*
 * The object store over the model of the bucket (spec 3.9).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "tests/sim/check.h"
#include "tests/sim/instance.h"

#define LIST_PAGE 3

struct store_call {
    struct sim_call call;
    enum store_operation operation;
    char *key;
    char *token;
    void *argument;
    store_done *done;
    store_head_done *head_done;
    store_get_done *get_done;
    store_list_done *list_done;
    store_created_done *created_done;
    store_part_done *part_done;

    uint8_t *bytes; /* of a put or a part: what the pieces held when it was sent */
    size_t size;
    uint64_t upload;
    uint32_t number;
    size_t part_count;

    bool found;
    uint64_t found_size;
    char *got;
    struct listed_object *listed;
    size_t listed_count;
    char *next;
    uint64_t created;
};

static void store_release(struct sim_call *base)
{
    struct store_call *call = (struct store_call *)base;
    for (size_t i = 0; i < call->listed_count; i++)
        free((void *)(uintptr_t)call->listed[i].key);
    free(call->listed);
    free(call->next);
    free(call->got);
    free(call->bytes);
    free(call->token);
    free(call->key);
    free(call);
}

static void put_whole(struct simulation *simulation, const char *key, uint8_t *bytes, size_t size)
{
    bool is_lake_object = strstr(key, "/queue=") != NULL;
    const struct bucket_object *before = bucket_find(&simulation->bucket, key);
    const struct bucket_object after = {.key = (char *)(uintptr_t)key, .bytes = bytes, .size = size};
    /* What can't be read for long is lost; where it can be read again by the time of a redo, that has it after all. */
    bool may_grow = before != NULL && simulation->scenario.holes && check_has_grown(before, &after);
    SIM_TRACE(simulation, "  object %s: %zu bytes", key, size);
    if (!bucket_put(&simulation->bucket, key, bytes, size) && is_lake_object && !may_grow)
        sim_fail(simulation, "object %s was overwritten with other bytes", key);
}

static void head_arrive(struct store_call *call, struct bucket *bucket)
{
    const struct bucket_object *object = bucket_find(bucket, call->key);
    call->found = object != NULL;
    call->found_size = object != NULL ? object->size : 0;
}

static void get_arrive(struct store_call *call, struct bucket *bucket)
{
    const struct bucket_object *object = bucket_find(bucket, call->key);
    call->found = object != NULL;
    free(call->got);
    call->got = NULL;
    if (object == NULL)
        return;
    call->got = memory_copy((const char *)object->bytes, object->size);
    call->found_size = object->size;
}

static void list_arrive(struct store_call *call, struct bucket *bucket)
{
    if (call->listed != NULL)
        return;
    call->listed = memory_new(LIST_PAGE, sizeof *call->listed);
    for (size_t i = 0; i < bucket->object_count; i++) {
        const struct bucket_object *object = &bucket->objects[i];
        if (strncmp(object->key, call->key, strlen(call->key)) != 0 ||
            (call->token != NULL && strcmp(object->key, call->token) <= 0))
            continue;
        if (call->listed_count == LIST_PAGE) {
            const char *last = call->listed[LIST_PAGE - 1].key;
            call->next = memory_copy_text(last);
            return;
        }
        call->listed[call->listed_count++] = (struct listed_object){memory_copy_text(object->key), object->size};
    }
}

static void part_arrive(struct store_call *call, struct bucket *bucket)
{
    struct bucket_upload *upload = bucket_upload(bucket, call->upload);
    call->found = upload != NULL;
    if (upload != NULL)
        bucket_put_part(upload, call->number, call->bytes, call->size);
}

static void complete_arrive(struct store_call *call, struct simulation *simulation)
{
    struct bucket_upload *upload = bucket_upload(&simulation->bucket, call->upload);
    size_t size;
    call->found = upload != NULL;
    if (upload == NULL)
        return;
    if (upload->part_count != call->part_count)
        sim_fail(simulation, "a multipart upload of %s was completed with %zu parts, but it has %zu", call->key,
                 call->part_count, upload->part_count);
    uint8_t *bytes = bucket_join(upload, &size);
    bucket_close_upload(upload);
    simulation->bucket.multipart_completed++;
    put_whole(simulation, call->key, bytes, size);
}

static void store_arrive(struct sim_call *base)
{
    struct store_call *call = (struct store_call *)base;
    struct simulation *simulation = base->simulation;
    struct bucket *bucket = &simulation->bucket;
    struct bucket_upload *upload;
    switch (call->operation) {
    case STORE_PUT:
        put_whole(simulation, call->key, (uint8_t *)memory_copy((const char *)call->bytes, call->size), call->size);
        break;
    case STORE_HEAD: head_arrive(call, bucket); break;
    case STORE_GET: get_arrive(call, bucket); break;
    case STORE_LIST: list_arrive(call, bucket); break;
    case STORE_DELETE:
        if (strstr(call->key, "/checkpoint/") == NULL)
            sim_fail(simulation, "something that is no checkpoint was deleted: %s", call->key);
        bucket_remove(bucket, call->key);
        break;
    case STORE_MULTIPART_CREATE: call->created = bucket_create_upload(bucket, call->key); break;
    case STORE_MULTIPART_PART: part_arrive(call, bucket); break;
    case STORE_MULTIPART_COMPLETE: complete_arrive(call, simulation); break;
    case STORE_MULTIPART_ABORT:
        upload = bucket_upload(bucket, call->upload);
        if (upload != NULL)
            bucket_close_upload(upload);
        break;
    case STORE_OPERATION_COUNT: break;
    }
}

static const struct error *not_found_unless(const struct store_call *call, const struct error *error,
                                            struct error *not_found)
{
    if (error->code != QS_OK || call->found)
        return error;
    error_set(not_found, QS_ERROR_NOT_FOUND, "%s isn't there", call->key);
    not_found->status = 404;
    return not_found;
}

static void store_deliver(struct sim_call *base, const struct error *error)
{
    struct store_call *call = (struct store_call *)base;
    struct error not_found;
    struct head_answer head = {call->found_size, ""};
    char text[40];
    char *got = call->got;
    switch (call->operation) {
    case STORE_PUT:
    case STORE_DELETE:
    case STORE_MULTIPART_ABORT: call->done(call->argument, error); break;
    case STORE_HEAD:
        error = not_found_unless(call, error, &not_found);
        call->head_done(call->argument, error, error->code == QS_OK ? &head : NULL);
        break;
    case STORE_GET:
        error = not_found_unless(call, error, &not_found);
        if (error->code == QS_OK)
            call->got = NULL; /* the callee's */
        call->get_done(call->argument, error, error->code == QS_OK ? got : NULL,
                       error->code == QS_OK ? (size_t)call->found_size : 0);
        break;
    case STORE_LIST:
        call->list_done(call->argument, error, error->code == QS_OK ? call->listed : NULL,
                        error->code == QS_OK ? call->listed_count : 0, error->code == QS_OK ? call->next : NULL);
        break;
    case STORE_MULTIPART_CREATE:
        snprintf(text, sizeof text, "%" PRIu64, call->created);
        call->created_done(call->argument, error, error->code == QS_OK ? text : NULL);
        break;
    case STORE_MULTIPART_PART:
        error = not_found_unless(call, error, &not_found);
        call->part_done(call->argument, error, error->code == QS_OK ? "etag" : NULL);
        break;
    case STORE_MULTIPART_COMPLETE: call->done(call->argument, not_found_unless(call, error, &not_found)); break;
    case STORE_OPERATION_COUNT: break;
    }
}

static struct store_call *store_call_make(enum store_operation operation, const char *key, void *argument)
{
    struct store_call *call = memory_new(1, sizeof *call);
    call->operation = operation;
    call->key = memory_copy_text(key);
    call->argument = argument;
    call->call.what = store_operation_name(operation);
    call->call.arrive = store_arrive;
    call->call.deliver = store_deliver;
    call->call.release = store_release;
    return call;
}

static struct store_call *send_off(struct object_store *store, struct store_call *call)
{
    call_begin(instance_of_store(store), &call->call, 0);
    return call;
}

static void take_body(struct store_call *call, const struct object_body *body)
{
    call->bytes = memory_new((size_t)body->size + 1, 1);
    for (size_t i = 0; i < body->piece_count; i++) {
        memcpy(call->bytes + call->size, body->pieces[i].iov_base, body->pieces[i].iov_len);
        call->size += body->pieces[i].iov_len;
    }
}

static struct store_call *store_put(struct object_store *store, const char *key, const char *content_type,
                                    const struct object_body *body, store_done *done, void *argument)
{
    struct store_call *call = store_call_make(STORE_PUT, key, argument);
    (void)content_type;
    take_body(call, body);
    call->done = done;
    return send_off(store, call);
}

static struct store_call *store_head(struct object_store *store, const char *key, store_head_done *done, void *argument)
{
    struct store_call *call = store_call_make(STORE_HEAD, key, argument);
    call->head_done = done;
    return send_off(store, call);
}

static struct store_call *store_get(struct object_store *store, const char *key, size_t size_limit,
                                    store_get_done *done, void *argument)
{
    struct store_call *call = store_call_make(STORE_GET, key, argument);
    (void)size_limit;
    call->get_done = done;
    return send_off(store, call);
}

static struct store_call *store_list(struct object_store *store, const char *prefix, const char *after_token,
                                     store_list_done *done, void *argument)
{
    struct store_call *call = store_call_make(STORE_LIST, prefix, argument);
    call->token = memory_copy_text(after_token);
    call->list_done = done;
    return send_off(store, call);
}

static struct store_call *store_remove(struct object_store *store, const char *key, store_done *done, void *argument)
{
    struct store_call *call = store_call_make(STORE_DELETE, key, argument);
    call->done = done;
    return send_off(store, call);
}

static struct store_call *store_create(struct object_store *store, const char *key, const char *content_type,
                                       store_created_done *done, void *argument)
{
    struct store_call *call = store_call_make(STORE_MULTIPART_CREATE, key, argument);
    (void)content_type;
    call->created_done = done;
    return send_off(store, call);
}

static struct store_call *store_part(struct object_store *store, const char *key, const char *upload_id,
                                     uint32_t number, uint64_t position, const struct object_body *body,
                                     store_part_done *done, void *argument)
{
    struct store_call *call = store_call_make(STORE_MULTIPART_PART, key, argument);
    (void)position;
    take_body(call, body);
    call->upload = strtoull(upload_id, NULL, 10);
    call->number = number;
    call->part_done = done;
    return send_off(store, call);
}

static struct store_call *store_complete(struct object_store *store, const char *key, const char *upload_id,
                                         const struct object_part *parts, size_t count, store_done *done,
                                         void *argument)
{
    struct store_call *call = store_call_make(STORE_MULTIPART_COMPLETE, key, argument);
    call->upload = strtoull(upload_id, NULL, 10);
    call->part_count = count;
    call->done = done;
    for (size_t i = 0; i < count; i++)
        if (parts[i].number != i + 1 || parts[i].etag == NULL)
            sim_fail(instance_of_store(store)->simulation, "part %zu of %s is completed without an ETag", i + 1, key);
    return send_off(store, call);
}

static struct store_call *store_abort(struct object_store *store, const char *key, const char *upload_id,
                                      store_done *done, void *argument)
{
    struct store_call *call = store_call_make(STORE_MULTIPART_ABORT, key, argument);
    call->upload = strtoull(upload_id, NULL, 10);
    call->done = done;
    return send_off(store, call);
}

static void store_cancel(struct object_store *store, struct store_call *call)
{
    (void)store;
    call_cancel(&call->call);
}

static void store_destroy(struct object_store *store)
{
    (void)store;
}

/* Nothing that the sink does asks for a part of an object: get_range is the reading commands'. */
const struct object_store_operations sim_store_operations = {.put = store_put,
                                                             .head = store_head,
                                                             .get = store_get,
                                                             .list = store_list,
                                                             .remove = store_remove,
                                                             .multipart_create = store_create,
                                                             .multipart_part = store_part,
                                                             .multipart_complete = store_complete,
                                                             .multipart_abort = store_abort,
                                                             .cancel = store_cancel,
                                                             .destroy = store_destroy};
