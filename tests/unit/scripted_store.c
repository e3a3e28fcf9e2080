/* The object store of a scripted world: see scripted_world.h. */
#include <check.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "scripted_world.h"

static struct scripted_call *store_call_new(struct object_store *store, enum scripted_kind kind, const char *key,
                                            void *argument)
{
    static const char *const names[] = {[CALL_PUT] = "put",   [CALL_HEAD] = "head",         [CALL_GET] = "get",
                                        [CALL_LIST] = "list", [CALL_REMOVE] = "remove",     [CALL_CREATE] = "create",
                                        [CALL_PART] = "part", [CALL_COMPLETE] = "complete", [CALL_ABORT] = "abort"};
    struct scripted_world *w =
        (struct scripted_world *)(void *)((char *)store - offsetof(struct scripted_world, store));
    struct scripted_call *call = call_new(w, kind, argument);
    call->key = memory_copy(key, strlen(key));
    call_spell(call, "%s %s", names[kind], key);
    return call;
}

static struct store_call *as_store_call(struct scripted_call *call)
{
    return (struct store_call *)(void *)call;
}

/* What is sent is read when the call is made: the borrowed bytes must be right then, and their MD5 too. */
static void keep_body(struct scripted_call *call, const struct object_body *body)
{
    uint8_t md5[16];
    call->bytes = memory_new(body->size + 1, 1);
    for (size_t i = 0; i < body->piece_count; i++) {
        memcpy(call->bytes + call->size, body->pieces[i].iov_base, body->pieces[i].iov_len);
        call->size += body->pieces[i].iov_len;
    }
    ck_assert_uint_eq(call->size, body->size);
    EVP_Digest(call->bytes, call->size, md5, NULL, EVP_md5(), NULL);
    ck_assert_mem_eq(md5, body->md5, sizeof md5);
}

/* ---- the table ---- */

static struct store_call *put(struct object_store *store, const char *key, const char *content_type,
                              const struct object_body *body, store_done *done, void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_PUT, key, argument);
    call->done.plain = done;
    snprintf(call->content_type, sizeof call->content_type, "%s", content_type);
    keep_body(call, body);
    return as_store_call(call);
}

static struct store_call *head(struct object_store *store, const char *key, store_head_done *done, void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_HEAD, key, argument);
    call->done.head = done;
    return as_store_call(call);
}

static struct store_call *get(struct object_store *store, const char *key, size_t size_limit, store_get_done *done,
                              void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_GET, key, argument);
    call->done.get = done;
    call->size = size_limit;
    return as_store_call(call);
}

static struct store_call *list(struct object_store *store, const char *prefix, const char *after_token,
                               store_list_done *done, void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_LIST, prefix, argument);
    call->done.list = done;
    if (after_token != NULL) {
        snprintf(call->after, sizeof call->after, "%s", after_token);
        call_spell(call, " after %s", after_token);
    }
    return as_store_call(call);
}

static struct store_call *remove_object(struct object_store *store, const char *key, store_done *done, void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_REMOVE, key, argument);
    call->done.plain = done;
    return as_store_call(call);
}

static struct store_call *create(struct object_store *store, const char *key, const char *content_type,
                                 store_created_done *done, void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_CREATE, key, argument);
    call->done.created = done;
    snprintf(call->content_type, sizeof call->content_type, "%s", content_type);
    return as_store_call(call);
}

static struct store_call *part(struct object_store *store, const char *key, const char *upload_id, uint32_t number,
                               uint64_t position, const struct object_body *body, store_part_done *done, void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_PART, key, argument);
    call->done.part = done;
    call->upload = strtoull(upload_id, NULL, 10);
    call->number = number;
    call->position = position;
    keep_body(call, body);
    call_spell(call, " %" PRIu32, number);
    return as_store_call(call);
}

static struct store_call *complete(struct object_store *store, const char *key, const char *upload_id,
                                   const struct object_part *parts, size_t count, store_done *done, void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_COMPLETE, key, argument);
    call->done.plain = done;
    call->upload = strtoull(upload_id, NULL, 10);
    call->count = count;
    call_spell(call, " %zu", count);
    for (size_t i = 0; i < count; i++) {
        char etag[32];
        snprintf(etag, sizeof etag, "etag-%zu", i + 1);
        ck_assert_uint_eq(parts[i].number, i + 1);
        ck_assert_str_eq(parts[i].etag, etag);
    }
    return as_store_call(call);
}

static struct store_call *abort_upload(struct object_store *store, const char *key, const char *upload_id,
                                       store_done *done, void *argument)
{
    struct scripted_call *call = store_call_new(store, CALL_ABORT, key, argument);
    call->done.plain = done;
    call->upload = strtoull(upload_id, NULL, 10);
    return as_store_call(call);
}

static void cancel(struct object_store *store, struct store_call *call)
{
    (void)store;
    call_cancel((struct scripted_call *)(void *)call);
}

/* What the driver has no use for is left out. */
const struct object_store_operations scripted_store_operations = {.put = put,
                                                                  .head = head,
                                                                  .get = get,
                                                                  .list = list,
                                                                  .remove = remove_object,
                                                                  .multipart_create = create,
                                                                  .multipart_part = part,
                                                                  .multipart_complete = complete,
                                                                  .multipart_abort = abort_upload,
                                                                  .cancel = cancel};

/* ---- what calls do ---- */

static uint8_t *copy_bytes(const uint8_t *bytes, size_t size)
{
    return (uint8_t *)memory_copy((const char *)bytes, size);
}

static void say(struct error *error, enum qs_error code)
{
    error_set(error, code, "scripted store: %d", (int)code);
}

static void complete_apply(struct scripted_call *call, struct error *error)
{
    struct bucket *bucket = &call->world->bucket;
    struct bucket_upload *upload = bucket_upload(bucket, call->upload);
    size_t size;
    if (upload == NULL) {
        say(error, QS_ERROR_NOT_FOUND);
        return;
    }
    ck_assert_uint_eq(upload->part_count, call->count);
    uint8_t *bytes = bucket_join(upload, &size);
    bucket_put(bucket, call->key, bytes, size);
    bucket_close_upload(upload);
}

static void part_apply(struct scripted_call *call, struct error *error)
{
    struct bucket_upload *upload = bucket_upload(&call->world->bucket, call->upload);
    if (upload != NULL)
        bucket_put_part(upload, call->number, call->bytes, call->size);
    else
        say(error, QS_ERROR_NOT_FOUND);
}

/* What the other side would say: *error, where it isn't set already. */
static void apply_call(struct scripted_call *call, struct error *error)
{
    struct bucket *bucket = &call->world->bucket;
    struct bucket_upload *upload;
    switch (call->kind) {
    case CALL_PUT: bucket_put(bucket, call->key, copy_bytes(call->bytes, call->size), call->size); break;
    case CALL_REMOVE: bucket_remove(bucket, call->key); break;
    case CALL_CREATE: call->upload = bucket_create_upload(bucket, call->key); break;
    case CALL_PART: part_apply(call, error); break;
    case CALL_COMPLETE: complete_apply(call, error); break;
    case CALL_ABORT:
        upload = bucket_upload(bucket, call->upload);
        if (upload != NULL)
            bucket_close_upload(upload);
        break;
    case CALL_HEAD:
    case CALL_GET:
        if (bucket_find(bucket, call->key) == NULL)
            say(error, QS_ERROR_NOT_FOUND);
        break;
    default: break;
    }
}

/* ---- answers ---- */

void call_answer_head(struct scripted_call *call, uint64_t size)
{
    struct error error = {.retry_after_ms = -1};
    struct head_answer answer = {size, ""};
    call_close(call);
    call->done.head(call->argument, &error, &answer);
}

static void deliver_list(struct scripted_call *call, const struct error *error)
{
    const struct bucket *bucket = &call->world->bucket;
    struct listed_object *objects = memory_new(bucket->object_count, sizeof *objects);
    size_t count = 0;
    size_t limit = call->world->page > 0 ? call->world->page : SIZE_MAX;
    const char *next = NULL;
    for (size_t i = 0; error->code == QS_OK && i < bucket->object_count && next == NULL; i++) {
        const struct bucket_object *object = &bucket->objects[i];
        if (strncmp(object->key, call->key, strlen(call->key)) != 0 || strcmp(object->key, call->after) <= 0)
            continue;
        if (count == limit)
            next = objects[count - 1].key;
        else
            objects[count++] = (struct listed_object){object->key, object->size};
    }
    call->done.list(call->argument, error, objects, count, next);
    free(objects);
}

static void deliver_get(struct scripted_call *call, const struct error *error)
{
    const struct bucket_object *object = bucket_find(&call->world->bucket, call->key);
    if (error->code != QS_OK || object == NULL)
        call->done.get(call->argument, error, NULL, 0);
    else
        call->done.get(call->argument, error, memory_copy((const char *)object->bytes, object->size), object->size);
}

static void deliver_head(struct scripted_call *call, const struct error *error)
{
    const struct bucket_object *object = bucket_find(&call->world->bucket, call->key);
    struct head_answer answer = {object != NULL ? object->size : 0, ""};
    call->done.head(call->argument, error, error->code == QS_OK ? &answer : NULL);
}

static void deliver_text(struct scripted_call *call, const struct error *error)
{
    char text[32];
    if (call->kind == CALL_CREATE)
        snprintf(text, sizeof text, "%" PRIu64, call->upload);
    else
        snprintf(text, sizeof text, "etag-%" PRIu32, call->number);
    if (call->kind == CALL_CREATE)
        call->done.created(call->argument, error, error->code == QS_OK ? text : NULL);
    else
        call->done.part(call->argument, error, error->code == QS_OK ? text : NULL);
}

void store_deliver(struct scripted_call *call, bool apply, const struct error *error)
{
    struct error told = *error;
    struct error of_the_model = {.retry_after_ms = -1};
    call_close(call);
    if (apply)
        apply_call(call, &of_the_model);
    if (told.code == QS_OK)
        told = of_the_model;
    switch (call->kind) {
    case CALL_HEAD: deliver_head(call, &told); break;
    case CALL_GET: deliver_get(call, &told); break;
    case CALL_LIST: deliver_list(call, &told); break;
    case CALL_CREATE:
    case CALL_PART: deliver_text(call, &told); break;
    default: call->done.plain(call->argument, &told); break;
    }
}

/* ---- the model ---- */

void world_object(struct scripted_world *w, const char *key, const void *bytes, size_t size)
{
    bucket_put(&w->bucket, key, copy_bytes(bytes, size), size);
}

const char *world_object_text(struct scripted_world *w, const char *key)
{
    static char *text;
    const struct bucket_object *object = bucket_find(&w->bucket, key);
    free(text);
    text = object != NULL ? memory_copy((const char *)object->bytes, object->size) : NULL;
    return text != NULL ? text : "";
}
