/*
 * The real Queen client: see queen_client.h. A call is one POST (or GET) that remembers what it asked for, since every
 * answer is checked against it. Fetch answers stay in the block they were received in; all others are small and are
 * read in queen_changed.c and queen_kv.c.
 */
#include "common/queen_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/fetch_decode.h"
#include "common/http.h"
#include "common/memory.h"
#include "common/queen_answer.h"
#include "common/queen_request.h"

#define CONNECT_TIMEOUT_MS 5000  /* spec 1.6 */
#define CALL_TIMEOUT_MS    30000 /* spec 1.6; a fetch never parks, so it has the same */
#define SMALL_CALLS_MAX    32    /* small calls under way at a time; they are short, and the others wait */
/* The broker renders about 64 MiB, and one record may be larger (spec 1.2); the budget is the real limit. This is only
 * where an answer that doesn't end is given up. */
#define FETCH_BODY_LIMIT ((size_t)1024 * 1024 * 1024)
#define SMALL_BODY_LIMIT ((size_t)256 * 1024 * 1024)
#define QUOTED_MOST      120

enum call_kind { CALL_FETCH, CALL_CHANGED, CALL_KV, CALL_QUEUES };

TAILQ_HEAD(queen_calls, queen_call);

struct queen_client {
    struct queen_api api; /* first */
    struct http_client *fetches;
    struct http_client *calls;
    char *url;
    char *token;         /* NULL: none */
    char *authorization; /* the whole header line */
    struct json_scan scan;
    struct queen_calls under_way;
};

struct queen_call {
    TAILQ_ENTRY(queen_call) link;
    struct queen_client *client;
    struct http_request *request;
    enum call_kind kind;
    union {
        queen_fetch_done *fetch;
        queen_changed_done *changed;
        queen_kv_done *kv;
        queen_queues_done *queues;
    } done;
    void *argument;
    char *body;
    struct iovec piece;
    size_t count; /* of what was asked for, */
    union {
        struct fetch_request_entry *fetch;
        struct name *queues;
        struct kv_operation *kv;
    } asked; /* one allocation, names and keys behind the array */
    bool may_exceed;
};

static const struct {
    const char *method;
    const char *path;
} routes[] = {[CALL_FETCH] = {"POST", "/api/v1/fetch"},
              [CALL_CHANGED] = {"POST", "/api/v1/partitions/changed"},
              [CALL_KV] = {"POST", "/api/v1/kv"},
              [CALL_QUEUES] = {"GET", "/api/v1/resources/queues?stats=cached"}};

/* ---- what was asked for ---- */

static char *put_bytes(char *out, const char *bytes, size_t size)
{
    if (size > 0) {
        memcpy(out, bytes, size);
    }
    return out + size;
}

static struct name put_name(char **out, struct name name)
{
    struct name copy = {*out, name.size};
    *out = put_bytes(*out, name.bytes, name.size);
    return copy;
}

static struct fetch_request_entry *copy_fetch(const struct fetch_request_entry *entries, size_t count)
{
    size_t size = count * sizeof *entries;
    for (size_t i = 0; i < count; i++) {
        size += entries[i].queue.size + entries[i].partition.size;
    }
    struct fetch_request_entry *copy = memory_new(1, size);
    char *names = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = entries[i];
        /* Neighbours are mostly of one queue. */
        bool same = i > 0 && entries[i].queue.bytes == entries[i - 1].queue.bytes &&
                    entries[i].queue.size == entries[i - 1].queue.size;
        copy[i].queue = same ? copy[i - 1].queue : put_name(&names, entries[i].queue);
        copy[i].partition = put_name(&names, entries[i].partition);
    }
    return copy;
}

static struct name *copy_queues(const struct changed_request_entry *entries, size_t count)
{
    size_t size = count * sizeof(struct name);
    for (size_t i = 0; i < count; i++) {
        size += entries[i].queue.size;
    }
    struct name *copy = memory_new(1, size);
    char *names = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = put_name(&names, entries[i].queue);
    }
    return copy;
}

/* Kinds, whether required, and the keys that are read: what an answer is checked against. */
static struct kv_operation *copy_kv(const struct kv_operation *operations, size_t count)
{
    size_t size = count * sizeof *operations;
    size_t key_count = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; operations[i].kind == KV_GET_MANY && k < operations[i].key_count; k++) {
            size += sizeof(char *) + strlen(operations[i].keys[k]) + 1;
            key_count++;
        }
    }
    struct kv_operation *copy = memory_new(1, size);
    const char **keys = (const char **)(void *)(copy + count);
    char *bytes = (char *)(keys + key_count);
    for (size_t i = 0; i < count; i++) {
        copy[i].kind = operations[i].kind;
        copy[i].required = operations[i].required;
        if (operations[i].kind == KV_GET_MANY) {
            copy[i].keys = keys;
            copy[i].key_count = operations[i].key_count;
            for (size_t k = 0; k < operations[i].key_count; k++) {
                *keys++ = bytes;
                bytes = put_bytes(bytes, operations[i].keys[k], strlen(operations[i].keys[k]) + 1);
            }
        }
    }
    return copy;
}

/* ---- answers ---- */

/* A few bytes of a body for a person: control bytes would play with a terminal, and a body that echoes the token isn't
 * quoted at all. */
static void quote_body(const struct queen_client *client, const char *body, size_t size, char out[QUOTED_MOST + 1])
{
    bool echoes = client->token != NULL && memmem(body, size, client->token, strlen(client->token)) != NULL;
    size_t quoted = echoes ? 0 : size < QUOTED_MOST ? size : QUOTED_MOST;
    if (quoted < size) { /* cut between characters */
        while (quoted > 0 && ((unsigned char)body[quoted] & 0xC0u) == 0x80u) {
            quoted--;
        }
    }
    for (size_t i = 0; i < quoted; i++) {
        unsigned char byte = (unsigned char)body[i];
        out[i] = byte < 0x20 || byte == 0x7F ? ' ' : body[i];
    }
    out[quoted] = '\0';
}

static const char *status_hint(int status)
{
    switch (status) {
    case 401:
    case 403:
        return "; check QUEEN_TOKEN and its scope (fetch, partitions/changed and kv need consume, the queue list read; "
               "on a broker with JWT kv needs read-write)";
    case 404:
    case 405: return "; check QUEEN_URL: there is no such route";
    default: return status < 400 ? "; check QUEEN_URL: a redirect is not followed" : "";
    }
}

static void set_status_error(const struct queen_client *client, const struct http_response *response, const char *body,
                             struct error *error)
{
    int status = response->status;
    bool passing = status == 408 || status == 429 || status >= 500;
    enum qs_error code = passing                          ? QS_ERROR_STATUS
                         : status == 401 || status == 403 ? QS_ERROR_FORBIDDEN
                                                          : QS_ERROR_REFUSED;
    char quoted[QUOTED_MOST + 1];
    quote_body(client, body != NULL ? body : "", body != NULL ? response->body_size : 0, quoted);
    error_set(error, code, "%d%s%s%s", status, quoted[0] != '\0' ? ": " : "", quoted, status_hint(status));
    error->retry_after_ms = response->retry_after_ms;
}

static void finish_fetch(struct queen_call *call, struct error *error, struct http_response *response)
{
    struct fetch_entry *entries = NULL;
    struct fetch_answer answer = {.block = response->block, .count = call->count};
    if (error->code == QS_OK) {
        entries = memory_new(call->count, sizeof *entries);
        fetch_decode(&call->client->scan, response->block, call->asked.fetch, call->count, call->may_exceed, entries,
                     error);
        error->status = response->status;
    }
    if (error->code != QS_OK) {
        /* Its room is given back before the callback, which may want it. */
        block_release(response->block);
        response->block = NULL;
        error_prefix(error, "POST %s", routes[CALL_FETCH].path);
        call->done.fetch(call->argument, error, NULL);
    } else {
        block_trim(response->block);
        answer.entries = entries;
        response->block = NULL; /* the callee's */
        call->done.fetch(call->argument, error, &answer);
    }
    free(entries);
}

static void finish_changed(struct queen_call *call, struct error *error, struct http_response *response)
{
    struct changed_reading reading = {0};
    if (error->code == QS_OK) {
        queen_read_changed(&call->client->scan, response->body, response->body_size, call->asked.queues, call->count,
                           &reading, error);
        error->status = response->status;
    }
    if (error->code != QS_OK) {
        error_prefix(error, "POST %s", routes[CALL_CHANGED].path);
    }
    call->done.changed(call->argument, error, error->code == QS_OK ? &reading.answer : NULL);
    changed_reading_free(&reading);
}

static void finish_kv(struct queen_call *call, struct error *error, struct http_response *response)
{
    struct kv_reading reading = {0};
    if (error->code == QS_OK) {
        queen_read_kv(&call->client->scan, response->body, response->body_size, call->asked.kv, call->count, &reading,
                      error);
        if (error->code == QS_OK && response->repeated && kv_reading_lost(&reading, call->asked.kv)) {
            error_set(error, QS_ERROR_TRANSPORT,
                      "the connection died after the request was sent, and its repetition lost: perhaps to itself");
        }
        error->status = response->status;
    }
    if (error->code != QS_OK) {
        error_prefix(error, "POST %s", routes[CALL_KV].path);
    }
    call->done.kv(call->argument, error, error->code == QS_OK ? &reading.answer : NULL);
    kv_reading_free(&reading);
}

static void finish_queues(struct queen_call *call, struct error *error, struct http_response *response)
{
    struct queues_reading reading = {0};
    if (error->code == QS_OK) {
        queen_read_queues(&call->client->scan, response->body, response->body_size, &reading, error);
        error->status = response->status;
    }
    if (error->code != QS_OK) {
        error_prefix(error, "GET %s", routes[CALL_QUEUES].path);
    }
    call->done.queues(call->argument, error, error->code == QS_OK ? &reading.answer : NULL);
    queues_reading_free(&reading);
}

static void call_free(struct queen_call *call)
{
    free(call->body);
    free(call->asked.kv); /* whichever it is */
    free(call);
}

/* The callback may cancel any other call and destroy the client: this call has left it by then. */
static void call_done(void *argument, const struct error *failure, struct http_response *response)
{
    struct queen_call *call = argument;
    struct error error = *failure;
    TAILQ_REMOVE(&call->client->under_way, call, link);
    call->request = NULL;
    if (error.code == QS_OK && (response->status < 200 || response->status > 299)) {
        const char *body = response->block != NULL ? response->block->body : response->body;
        set_status_error(call->client, response, body, &error);
        error.status = response->status;
    }
    switch (call->kind) {
    case CALL_FETCH: finish_fetch(call, &error, response); break;
    case CALL_CHANGED: finish_changed(call, &error, response); break;
    case CALL_KV: finish_kv(call, &error, response); break;
    case CALL_QUEUES: finish_queues(call, &error, response); break;
    }
    call_free(call);
}

/* ---- calls ---- */

static struct queen_client *client_of(struct queen_api *api)
{
    return (struct queen_client *)(void *)api;
}

static struct queen_call *call_create(struct queen_api *api, enum call_kind kind, size_t count, void *argument)
{
    struct queen_call *call = memory_new(1, sizeof *call);
    call->client = client_of(api);
    call->kind = kind;
    call->count = count;
    call->argument = argument;
    TAILQ_INSERT_TAIL(&call->client->under_way, call, link);
    return call;
}

/* Takes the rendered body over. `options` brings what isn't the same for every call. */
static struct queen_call *call_send(struct queen_call *call, struct byte_buffer *body,
                                    struct http_request_options *options)
{
    struct queen_client *client = call->client;
    const char *headers[] = {"Content-Type: application/json", client->authorization};
    size_t size = body->size;
    call->body = byte_buffer_take(body);
    call->piece = (struct iovec){call->body, size};
    char *url = memory_format("%s%s", client->url, routes[call->kind].path);
    options->method = routes[call->kind].method;
    options->url = url;
    options->headers = headers;
    options->header_count = client->authorization != NULL ? 2 : 1;
    options->pieces = &call->piece;
    options->piece_count = 1;
    options->body_size = size;
    options->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : CALL_TIMEOUT_MS;
    options->body_limit = options->into_block ? FETCH_BODY_LIMIT : SMALL_BODY_LIMIT;
    call->request = http_start(options->into_block ? client->fetches : client->calls, options, call_done, call);
    free(url);
    if (call->request == NULL) { /* curl's memory, and the same rule as memory.h */
        fputs("queen-s3: out of memory for a request\n", stderr);
        abort();
    }
    return call;
}

static struct queen_call *client_fetch(struct queen_api *api, const struct fetch_request *request,
                                       queen_fetch_done *done, void *argument)
{
    struct queen_call *call = call_create(api, CALL_FETCH, request->count, argument);
    struct byte_buffer body = {0};
    call->done.fetch = done;
    call->may_exceed = request->may_exceed;
    call->asked.fetch = copy_fetch(request->entries, request->count);
    queen_request_fetch(&body, request->entries, request->count);
    struct http_request_options options = {.into_block = true,
                                           .budget = request->budget,
                                           .reserved = request->reserved,
                                           .may_exceed = request->may_exceed};
    return call_send(call, &body, &options);
}

static struct queen_call *client_changed(struct queen_api *api, const struct changed_request_entry *entries,
                                         size_t count, queen_changed_done *done, void *argument)
{
    struct queen_call *call = call_create(api, CALL_CHANGED, count, argument);
    struct byte_buffer body = {0};
    struct http_request_options options = {0};
    call->done.changed = done;
    call->asked.queues = copy_queues(entries, count);
    queen_request_changed(&body, entries, count);
    return call_send(call, &body, &options);
}

static struct queen_call *client_kv(struct queen_api *api, const struct kv_operation *operations, size_t count,
                                    int64_t timeout_ms, queen_kv_done *done, void *argument)
{
    struct queen_call *call = call_create(api, CALL_KV, count, argument);
    struct byte_buffer body = {0};
    struct http_request_options options = {.timeout_ms = timeout_ms};
    call->done.kv = done;
    call->asked.kv = copy_kv(operations, count);
    queen_request_kv(&body, operations, count);
    return call_send(call, &body, &options);
}

static struct queen_call *client_queues(struct queen_api *api, queen_queues_done *done, void *argument)
{
    struct queen_call *call = call_create(api, CALL_QUEUES, 0, argument);
    struct byte_buffer body = {0};
    struct http_request_options options = {0};
    call->done.queues = done;
    return call_send(call, &body, &options);
}

static void client_cancel(struct queen_api *api, struct queen_call *call)
{
    if (call->request == NULL) {
        return; /* its own callback is running */
    }
    http_cancel(call->request);
    TAILQ_REMOVE(&client_of(api)->under_way, call, link);
    call_free(call);
}

static const struct queen_api_operations client_operations = {.fetch = client_fetch,
                                                              .changed = client_changed,
                                                              .kv = client_kv,
                                                              .queues = client_queues,
                                                              .cancel = client_cancel};

/* ---- the client ---- */

static bool token_fits_header(const char *token)
{
    for (; *token != '\0'; token++) {
        if ((unsigned char)*token <= 0x20 || *token == 0x7F) {
            return false;
        }
    }
    return true;
}

struct queen_api *queen_client_create(struct reactor *reactor, const struct queen_client_options *options,
                                      struct error *error)
{
    if (options->token != NULL && !token_fits_header(options->token)) {
        error_set(error, QS_ERROR_INPUT, "QUEEN_TOKEN holds a blank or a control byte: a bearer token has none");
        return NULL;
    }
    struct http_client_options fetches = {.ca_file = options->ca_file,
                                          .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                          .connections_max = options->connections_max};
    struct http_client_options calls = fetches;
    calls.connections_max = SMALL_CALLS_MAX;
    struct queen_client *client = memory_new(1, sizeof *client);
    client->api.operations = &client_operations;
    TAILQ_INIT(&client->under_way);
    size_t url_size = strlen(options->url);
    while (url_size > 0 && options->url[url_size - 1] == '/') {
        url_size--;
    }
    client->url = memory_copy(options->url, url_size);
    if (options->token != NULL) {
        client->token = memory_copy_text(options->token);
        client->authorization = memory_format("Authorization: Bearer %s", options->token);
    }
    client->fetches = http_client_create(reactor, &fetches, error);
    client->calls = client->fetches != NULL ? http_client_create(reactor, &calls, error) : NULL;
    if (client->calls == NULL) {
        queen_client_destroy(&client->api);
        return NULL;
    }
    return &client->api;
}

void queen_client_destroy(struct queen_api *api)
{
    if (api == NULL) {
        return;
    }
    struct queen_client *client = client_of(api);
    while (!TAILQ_EMPTY(&client->under_way)) {
        client_cancel(api, TAILQ_FIRST(&client->under_way));
    }
    http_client_destroy(client->fetches);
    http_client_destroy(client->calls);
    free(client->scan.bits);
    free(client->url);
    free(client->token);
    free(client->authorization);
    free(client);
}
