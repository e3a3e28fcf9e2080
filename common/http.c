/*
 * HTTP requests over the reactor's curl handle.
 *
 * A request owns one easy handle, taken from the client's pool and given back when it ends; connections belong to the
 * multi handle and outlive both. Where connections_max requests are under way the others wait in the client, not in
 * curl: their timeouts then don't run, and the order is the order of starting.
 *
 * A kept connection can be closed by the other side at the very moment a request goes out on it. Curl then sends the
 * request again on another connection (no byte of an answer had come), and asks for the body from its start. That is
 * wanted: nearly always the first copy was never read. But it may have been, and carried out, so an answer says
 * `repeated`, and who sends what isn't idempotent looks at it. A PUT of an object doesn't care.
 */
#include "common/http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "common/http_answer.h"

#define BODY_LIMIT      (64u * 1024 * 1024)
#define BODY_LIMIT_MOST (SIZE_MAX / 4)
#define IDLE_HANDLES    64u

/* What curl reads from a socket at once. The large one costs a quarter of a megabyte a transfer and is worth
 * it for bodies of many megabytes; small answers touch a page or two of theirs. */
#define READ_SIZE_BLOCK   (256L * 1024)
#define READ_SIZE         (32L * 1024)
#define UPLOAD_SIZE_LARGE (512L * 1024)
#define UPLOAD_LARGE      (1024u * 1024)

TAILQ_HEAD(http_requests, http_request);

struct http_client {
    struct reactor *reactor;
    char *ca_file;
    long connect_timeout_ms;
    size_t under_way_max; /* 0: no limit */
    size_t under_way;
    struct http_requests running;
    struct http_requests waiting;
    bool closing;
    bool direct;
    CURL *idle[IDLE_HANDLES];
    size_t idle_count;
};

enum request_state { REQUEST_WAITING, REQUEST_RUNNING, REQUEST_ENDED };

struct http_request {
    struct reactor_transfer transfer; /* first: what CURLOPT_PRIVATE points to */
    TAILQ_ENTRY(http_request) link;
    struct http_client *client;
    enum request_state state;
    CURL *easy;
    struct curl_slist *headers;
    http_done *done;
    void *argument;
    const struct iovec *pieces;
    size_t piece_count;
    size_t piece;    /* the next byte to send is in this one, */
    size_t position; /* at this place */
    bool body_begun;
    struct timer timer; /* the stall timeout; or, at once, the failure of a start that came too late to be told */
    int64_t stall_timeout_ms;
    struct mono_ms last_byte;
    struct http_answer answer;
    char reason[CURL_ERROR_SIZE];
};

/* ---- what curl calls ---- */

static void note_byte(struct http_request *request)
{
    if (request->stall_timeout_ms > 0) {
        request->last_byte = clock_mono();
    }
}

static size_t take_header(char *bytes, size_t size, size_t count, void *argument)
{
    struct http_request *request = argument;
    note_byte(request);
    http_answer_header(&request->answer, bytes, size * count);
    return size * count;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *argument)
{
    struct http_request *request = argument;
    note_byte(request);
    /* Anything but the size given ends the transfer; an empty piece can't fail. */
    return http_answer_body(&request->answer, bytes, size * count) ? size * count : 0;
}

static size_t give_body(char *out, size_t size, size_t count, void *argument)
{
    struct http_request *request = argument;
    size_t room = size * count;
    size_t given = 0;
    note_byte(request);
    request->body_begun = true;
    while (given < room && request->piece < request->piece_count) {
        const struct iovec *piece = &request->pieces[request->piece];
        size_t part = piece->iov_len - request->position;
        part = part < room - given ? part : room - given;
        if (part > 0) {
            memcpy(out + given, (const char *)piece->iov_base + request->position, part);
        }
        given += part;
        request->position += part;
        if (request->position == piece->iov_len) {
            request->piece++;
            request->position = 0;
        }
    }
    return given;
}

static int seek_body(void *argument, curl_off_t offset, int origin)
{
    struct http_request *request = argument;
    if (origin != SEEK_SET || offset < 0) {
        return CURL_SEEKFUNC_FAIL;
    }
    request->answer.response.repeated = request->answer.response.repeated || request->body_begun;
    uint64_t left = (uint64_t)offset;
    request->piece = 0;
    while (request->piece < request->piece_count && left >= request->pieces[request->piece].iov_len) {
        left -= request->pieces[request->piece++].iov_len;
    }
    request->position = (size_t)left;
    return request->piece < request->piece_count || left == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

/* ---- the client ---- */

struct http_client *http_client_create(struct reactor *reactor, const struct http_client_options *options,
                                       struct error *error)
{
    struct http_client *client = calloc(1, sizeof *client);
    if (client != NULL) {
        client->reactor = reactor;
        client->connect_timeout_ms = (long)options->connect_timeout_ms;
        client->under_way_max = options->connections_max > 0 ? (size_t)options->connections_max : 0;
        client->direct = options->direct;
        TAILQ_INIT(&client->running);
        TAILQ_INIT(&client->waiting);
        client->ca_file = options->ca_file != NULL ? strdup(options->ca_file) : NULL;
    }
    if (client == NULL || (options->ca_file != NULL && client->ca_file == NULL)) {
        free(client);
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for an HTTP client");
        return NULL;
    }
    error_clear(error);
    return client;
}

static void cancel_all(struct http_requests *requests)
{
    struct http_request *next;
    for (struct http_request *request = TAILQ_FIRST(requests); request != NULL; request = next) {
        next = TAILQ_NEXT(request, link);
        http_cancel(request);
    }
}

void http_client_destroy(struct http_client *client)
{
    if (client == NULL) {
        return;
    }
    client->closing = true;
    cancel_all(&client->running);
    cancel_all(&client->waiting);
    for (size_t i = 0; i < client->idle_count; i++) {
        curl_easy_cleanup(client->idle[i]);
    }
    free(client->ca_file);
    free(client);
}

static CURL *handle_take(struct http_client *client)
{
    return client->idle_count > 0 ? client->idle[--client->idle_count] : curl_easy_init();
}

static void handle_give(struct http_client *client, CURL *easy)
{
    if (easy == NULL) {
        return;
    }
    if (client->idle_count == IDLE_HANDLES) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    client->idle[client->idle_count++] = easy;
}

/* ---- a request's life ---- */

static void request_free(struct http_request *request)
{
    curl_slist_free_all(request->headers);
    http_answer_free(&request->answer);
    free(request);
}

/* Leaves the lists, curl and the timers; the handle goes back to the pool. */
static void request_detach(struct http_request *request)
{
    struct http_client *client = request->client;
    timer_cancel(reactor_timers(client->reactor), &request->timer);
    if (request->state == REQUEST_RUNNING) {
        curl_multi_remove_handle(reactor_curl(client->reactor), request->easy);
        TAILQ_REMOVE(&client->running, request, link);
        client->under_way--;
    } else {
        TAILQ_REMOVE(&client->waiting, request, link);
    }
    handle_give(client, request->easy);
    request->easy = NULL;
    request->state = REQUEST_ENDED;
}

/* host:port of a request for a person: userinfo, path and query can hold what isn't theirs to read. */
static void name_peer(CURL *easy, char *out, size_t size)
{
    char *url = NULL;
    char *host = NULL;
    char *port = NULL;
    CURLU *parts = curl_url();
    bool named = parts != NULL && curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url != NULL &&
                 curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
                 curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                 curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK;
    if (named) {
        snprintf(out, size, "%.255s:%s", host, port);
    } else {
        snprintf(out, size, "no request made");
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
}

static void set_failure(struct http_request *request, CURLcode code, struct error *error)
{
    const struct http_answer *answer = &request->answer;
    char peer[272];
    name_peer(request->easy, peer, sizeof peer);
    if (code == CURLE_WRITE_ERROR && answer->stopped == QS_ERROR_BODY) {
        error_set(error, QS_ERROR_BODY, "%s: the answer is longer than %zu bytes", peer, answer->body_limit);
    } else if (code == CURLE_WRITE_ERROR && answer->stopped == QS_ERROR_NO_ROOM) {
        error_set(error, QS_ERROR_NO_ROOM, "%s: the answer doesn't fit into the memory budget now", peer);
    } else if (code == CURLE_OUT_OF_MEMORY || answer->stopped == QS_ERROR_NO_MEMORY) {
        error_set(error, QS_ERROR_NO_MEMORY, "%s: out of memory", peer);
    } else {
        const char *reason = request->reason[0] != '\0' ? request->reason : curl_easy_strerror(code);
        error_set(error, QS_ERROR_TRANSPORT, "%s: %s", peer, reason);
    }
}

static void drop_partial_answer(struct http_response *response)
{
    free(response->body);
    block_release(response->block);
    bool sent = response->sent;
    bool repeated = response->repeated;
    *response = (struct http_response){.retry_after_ms = -1, .sent = sent, .repeated = repeated};
}

static void start_waiting(struct http_client *client);

/* Everything that needs the client comes before done(), which may destroy it. */
static void request_end(struct http_request *request, struct error *error)
{
    struct http_client *client = request->client;
    struct http_response *response = &request->answer.response;
    long size = 0;
    curl_easy_getinfo(request->easy, CURLINFO_REQUEST_SIZE, &size);
    response->sent = size > 0 || response->repeated;
    if (error->code == QS_OK) {
        long status = 0;
        curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
        response->status = (int)status;
        if (!http_answer_finish(&request->answer)) {
            error_set(error, QS_ERROR_NO_MEMORY, "out of memory for an answer");
        }
    }
    if (error->code != QS_OK) {
        drop_partial_answer(response);
    }
    request_detach(request);
    start_waiting(client);
    request->done(request->argument, error, response);
    request_free(request);
}

static void transfer_ended(struct reactor_transfer *transfer, int code)
{
    struct http_request *request = (struct http_request *)(void *)transfer;
    struct error error;
    error_clear(&error);
    if (code != CURLE_OK) {
        set_failure(request, (CURLcode)code, &error);
    } else if (!request->answer.head_ended) {
        set_failure(request, CURLE_GOT_NOTHING, &error);
    }
    request_end(request, &error);
}

static void request_stalled(void *argument)
{
    struct http_request *request = argument;
    struct mono_ms deadline = {request->last_byte.v + request->stall_timeout_ms};
    if (deadline.v > reactor_now(request->client->reactor).v) {
        timer_set(reactor_timers(request->client->reactor), &request->timer, deadline, request_stalled, request);
        return;
    }
    struct error error;
    char peer[272];
    name_peer(request->easy, peer, sizeof peer);
    error_set(&error, QS_ERROR_TRANSPORT, "%s: no byte either way for %lld ms", peer,
              (long long)request->stall_timeout_ms);
    request_end(request, &error);
}

static void request_not_started(void *argument)
{
    struct http_request *request = argument;
    struct error error;
    error_set(&error, QS_ERROR_NO_MEMORY, "out of memory for an HTTP request");
    request_end(request, &error);
}

static bool request_run(struct http_request *request)
{
    struct http_client *client = request->client;
    if (curl_multi_add_handle(reactor_curl(client->reactor), request->easy) != CURLM_OK) {
        return false;
    }
    request->state = REQUEST_RUNNING;
    TAILQ_INSERT_TAIL(&client->running, request, link);
    client->under_way++;
    if (request->stall_timeout_ms > 0) {
        request->last_byte = clock_mono();
        struct mono_ms deadline = {request->last_byte.v + request->stall_timeout_ms};
        timer_set(reactor_timers(client->reactor), &request->timer, deadline, request_stalled, request);
    }
    return true;
}

static bool may_run(const struct http_client *client)
{
    return client->under_way_max == 0 || client->under_way < client->under_way_max;
}

static void start_waiting(struct http_client *client)
{
    struct http_request *request = TAILQ_FIRST(&client->waiting);
    while (request != NULL && !client->closing && may_run(client)) {
        struct http_request *next = TAILQ_NEXT(request, link);
        if (!timer_is_set(&request->timer)) {
            TAILQ_REMOVE(&client->waiting, request, link);
            if (!request_run(request)) {
                TAILQ_INSERT_HEAD(&client->waiting, request, link);
                timer_set(reactor_timers(client->reactor), &request->timer, clock_mono(), request_not_started, request);
            }
        }
        request = next;
    }
}

void http_cancel(struct http_request *request)
{
    if (request->state == REQUEST_ENDED) {
        return;
    }
    struct http_client *client = request->client;
    request_detach(request);
    request_free(request);
    start_waiting(client);
}

/* ---- setting one up ---- */

static bool add_header(struct http_request *request, const char *line)
{
    struct curl_slist *headers = curl_slist_append(request->headers, line);
    if (headers == NULL) {
        return false;
    }
    request->headers = headers;
    return true;
}

static bool set_headers(struct http_request *request, const struct http_request_options *options)
{
    bool typed = false;
    bool good = add_header(request, "Expect:"); /* curl's own would wait a second where it isn't understood */
    for (size_t i = 0; i < options->header_count && good; i++) {
        typed = typed || strncasecmp(options->headers[i], "Content-Type:", 13) == 0;
        good = add_header(request, options->headers[i]);
    }
    good = good && (typed || add_header(request, "Content-Type:"));
    return good && curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, request->headers) == CURLE_OK;
}

static bool set_body(struct http_request *request, const struct http_request_options *options)
{
    CURL *easy = request->easy;
    int bad = 0;
    bad |= (int)curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_READDATA, request);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_body);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_SEEKDATA, request);
    if (options->body_size >= UPLOAD_LARGE) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_SIZE_LARGE);
    }
    return bad == 0;
}

static bool set_method(struct http_request *request, const struct http_request_options *options)
{
    CURL *easy = request->easy;
    int bad = 0;
    if (strcmp(options->method, "POST") == 0) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_POST, 1L);
        bad |= (int)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)options->body_size);
    } else if (strcmp(options->method, "HEAD") == 0) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (strcmp(options->method, "PUT") == 0 || options->body_size > 0) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        bad |= (int)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)options->body_size);
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, options->method);
    } else {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, options->method);
    }
    return bad == 0 && set_body(request, options);
}

static bool set_answer(struct http_request *request, const struct http_request_options *options)
{
    CURL *easy = request->easy;
    int bad = 0;
    bad |= (int)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, options->into_block ? READ_SIZE_BLOCK : READ_SIZE);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->reason);
    return bad == 0;
}

static bool set_transport(struct http_request *request, const struct http_request_options *options)
{
    const struct http_client *client = request->client;
    CURL *easy = request->easy;
    int bad = 0;
    bad |= (int)curl_easy_setopt(easy, CURLOPT_PRIVATE, &request->transfer);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_URL, options->url);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
    bad |= (int)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    bad |= (int)curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    bad |= (int)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, client->connect_timeout_ms);
    bad |= (int)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    if (client->direct) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    }
    if (client->ca_file != NULL) {
        bad |= (int)curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
    }
    if (bad != 0) {
        return false;
    }
    /* A curl built without HTTP/2 says no here, and does without. */
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    return true;
}

static struct http_request *request_create(struct http_client *client, const struct http_request_options *options)
{
    struct http_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        return NULL;
    }
    request->transfer.done = transfer_ended;
    request->client = client;
    request->pieces = options->pieces;
    request->piece_count = options->piece_count;
    request->stall_timeout_ms = options->stall_timeout_ms;
    request->answer.response.retry_after_ms = -1;
    request->answer.may_exceed = options->may_exceed;
    request->answer.body_limit = options->body_limit != 0 ? options->body_limit : BODY_LIMIT;
    if (request->answer.body_limit > BODY_LIMIT_MOST) {
        request->answer.body_limit = BODY_LIMIT_MOST;
    }
    request->easy = handle_take(client);
    if (request->easy == NULL || !set_transport(request, options) || !set_answer(request, options) ||
        !set_method(request, options) || !set_headers(request, options)) {
        handle_give(client, request->easy);
        request_free(request);
        return NULL;
    }
    return request;
}

/* Runs at once or waits. False: neither, out of memory. */
static bool request_queue(struct http_request *request)
{
    struct http_client *client = request->client;
    if (TAILQ_EMPTY(&client->waiting) && may_run(client)) {
        return request_run(request);
    }
    request->state = REQUEST_WAITING;
    TAILQ_INSERT_TAIL(&client->waiting, request, link);
    return true;
}

struct http_request *http_start(struct http_client *client, const struct http_request_options *options, http_done *done,
                                void *argument)
{
    struct http_request *request = request_create(client, options);
    if (request != NULL) {
        request->done = done;
        request->argument = argument;
        if (options->into_block) {
            request->answer.response.block = block_create(options->budget, options->reserved);
        }
        if ((!options->into_block || request->answer.response.block != NULL) && request_queue(request)) {
            return request;
        }
    }
    if (options->into_block && options->budget != NULL && (request == NULL || request->answer.response.block == NULL)) {
        budget_give(options->budget, options->reserved); /* no block has taken it over */
    }
    if (request != NULL) {
        handle_give(client, request->easy);
        request_free(request);
    }
    return NULL;
}
