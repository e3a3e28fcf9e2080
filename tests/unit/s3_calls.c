/* See s3_calls.h. */
#include "tests/unit/s3_calls.h"

#include <check.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/s3_store.h"

struct call_outcome outcome;
struct reactor *call_reactor;
struct object_store *call_store;

void calls_clear(void)
{
    for (size_t i = 0; i < outcome.key_count; i++) {
        free(outcome.keys[i]);
    }
    free(outcome.bytes);
    memset(&outcome, 0, sizeof outcome);
}

static void on_done(void *argument, const struct error *error)
{
    ck_assert_ptr_eq(argument, &outcome);
    outcome.calls++;
    outcome.error = *error;
}

static void on_head(void *argument, const struct error *error, const struct head_answer *answer)
{
    on_done(argument, error);
    ck_assert_int_eq(answer != NULL, error->code == QS_OK);
    if (answer != NULL) {
        outcome.size = answer->size;
        snprintf(outcome.etag, sizeof outcome.etag, "%s", answer->etag);
    }
}

static void on_get(void *argument, const struct error *error, char *bytes, size_t size)
{
    on_done(argument, error);
    outcome.bytes = bytes;
    outcome.size = size;
}

static void on_text(void *argument, const struct error *error, const char *text)
{
    on_done(argument, error);
    snprintf(outcome.text, sizeof outcome.text, "%s", text != NULL ? text : "");
}

static void on_list(void *argument, const struct error *error, const struct listed_object *objects, size_t count,
                    const char *next)
{
    on_text(argument, error, next);
    ck_assert_uint_le(count, CALL_KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        outcome.keys[i] = strdup(objects[i].key);
        outcome.sizes[i] = objects[i].size;
    }
    outcome.key_count = count;
}

const struct error *call_wait(const struct store_call *call)
{
    ck_assert_ptr_nonnull(call);
    ck_assert_int_eq(outcome.calls, 0);
    for (int i = 0; i < 3000 && outcome.calls == 0; i++) {
        reactor_run_once(call_reactor, 100);
    }
    ck_assert_int_eq(outcome.calls, 1);
    return &outcome.error;
}

const struct object_body *call_body(const void *bytes, size_t size)
{
    static struct iovec pieces[2];
    static struct object_body body;
    char *at = (char *)(uintptr_t)bytes;

    pieces[0] = (struct iovec){at, size / 2};
    pieces[1] = (struct iovec){at + size / 2, size - size / 2};
    body = (struct object_body){.pieces = pieces, .piece_count = 2, .size = size};
    ck_assert_int_eq(EVP_Digest(bytes, size, body.md5, NULL, EVP_md5(), NULL), 1);
    return &body;
}

const struct error *call_put(const char *key, const void *bytes, size_t size)
{
    calls_clear();
    return call_wait(call_store->operations->put(call_store, key, "application/x-ndjson", call_body(bytes, size),
                                                 on_done, &outcome));
}

const struct error *call_head(const char *key)
{
    calls_clear();
    return call_wait(call_store->operations->head(call_store, key, on_head, &outcome));
}

const struct error *call_get(const char *key, size_t limit)
{
    calls_clear();
    return call_wait(call_store->operations->get(call_store, key, limit, on_get, &outcome));
}

const struct error *call_get_range(const char *key, uint64_t position, size_t size)
{
    calls_clear();
    return call_wait(s3_store_get_range(call_store, key, position, size, on_get, &outcome));
}

const struct error *call_list(const char *prefix, const char *after)
{
    calls_clear();
    return call_wait(call_store->operations->list(call_store, prefix, after, on_list, &outcome));
}

const struct error *call_remove(const char *key)
{
    calls_clear();
    return call_wait(call_store->operations->remove(call_store, key, on_done, &outcome));
}

const struct error *call_create(const char *key)
{
    calls_clear();
    return call_wait(
        call_store->operations->multipart_create(call_store, key, "application/x-ndjson", on_text, &outcome));
}

const struct error *call_part(const char *key, const char *upload, uint32_t number, const void *bytes, size_t size)
{
    calls_clear();
    return call_wait(call_store->operations->multipart_part(call_store, key, upload, number, 0, call_body(bytes, size),
                                                            on_text, &outcome));
}

const struct error *call_complete(const char *key, const char *upload, const struct object_part *parts, size_t count)
{
    calls_clear();
    return call_wait(
        call_store->operations->multipart_complete(call_store, key, upload, parts, count, on_done, &outcome));
}

const struct error *call_abort(const char *key, const char *upload)
{
    calls_clear();
    return call_wait(call_store->operations->multipart_abort(call_store, key, upload, on_done, &outcome));
}
