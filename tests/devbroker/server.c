/*
 * The HTTP side; see server.h for the contract.
 *
 * A thread a connection: a call may hang, be delayed or park, and must hold up no other. Bodies go out as slices of
 * segments, gathered by the kernel, always under a Content-Length (only the export is chunked).
 */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "controls.h"
#include "export.h"

#define BODY_LIMIT        (64U * 1024 * 1024)
#define CONNECTION_LIMIT  4000
#define CONNECTION_MEMORY 131072
#define THREAD_STACK      (512U * 1024)
#define QUEUES_PATH       "/api/v1/resources/queues"
#define CONTROL_PATH      "/_dev/"

struct server {
    struct broker *broker;
    struct MHD_Daemon *daemon;
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } bound;
};

struct exchange { /* one request and its answer */
    struct text body;
    bool too_large;
    bool counted;
    enum route route;
    bool error;
    int64_t entries;
    int64_t bytes;
};

struct sending { /* an answer that MHD is still sending */
    struct answer answer;
    size_t cut_at; /* for the cut fault */
};

static const struct api_route {
    const char *method;
    const char *path;
    enum route route;
    void (*answer)(const struct call *call, struct answer *answer);
} api_routes[] = {
    {"POST", "/api/v1/fetch", ROUTE_FETCH, fetch_answer},
    {"POST", "/api/v1/partitions/changed", ROUTE_CHANGED, changed_answer},
    {"POST", "/api/v1/kv", ROUTE_KV, kv_answer},
    {"GET", QUEUES_PATH, ROUTE_QUEUES, queues_answer},
    {"POST", "/api/v1/push", ROUTE_PUSH, push_answer},
    {"POST", "/api/v1/configure", ROUTE_CONFIGURE, configure_answer},
};
#define API_ROUTE_COUNT (sizeof api_routes / sizeof api_routes[0])

static void sending_free(void *context)
{
    struct sending *sending = context;

    answer_free(&sending->answer);
    free(sending);
}

static ssize_t cut_read(void *context, uint64_t position, char *to, size_t size)
{
    const struct sending *sending = context;
    size_t left = position < sending->cut_at ? sending->cut_at - (size_t)position : 0;

    if (left == 0) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    size = size < left ? size : left;
    memcpy(to, sending->answer.text.at + position, size);
    return (ssize_t)size;
}

static struct MHD_Response *gathered_response(struct sending *sending)
{
    struct answer *answer = &sending->answer;
    struct MHD_IoVec *vector = memory_take(answer->piece_count, sizeof *vector);
    struct MHD_Response *response;

    for (size_t i = 0; i < answer->piece_count; i++) {
        const struct answer_piece *piece = &answer->pieces[i];
        const char *base = piece->segment == NULL ? answer->text.at : piece->segment->text;

        vector[i] = (struct MHD_IoVec){base + piece->start, piece->size};
    }
    response = MHD_create_response_from_iovec(vector, (unsigned)answer->piece_count, sending_free, sending);
    free(vector);
    return response;
}

static struct MHD_Response *whole_response(struct answer *answer, bool cut)
{
    struct sending *sending = memory_take(1, sizeof *sending);
    struct MHD_Response *response;

    if (cut) {
        answer_flatten(answer);
    }
    sending->answer = *answer;
    sending->cut_at = answer->text.size / 2;
    answer_start(answer);
    if (cut) {
        response = MHD_create_response_from_callback(sending->answer.text.size, 65536, cut_read, sending, sending_free);
    } else if (sending->answer.piece_count > 0) {
        response = gathered_response(sending);
    } else {
        response = MHD_create_response_from_buffer_with_free_callback_cls(
            sending->answer.text.size, sending->answer.text.at, sending_free, sending);
    }
    if (response == NULL) {
        sending_free(sending);
    }
    return response;
}

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status, int retry_after,
                                     const char *type, struct MHD_Response *response)
{
    enum MHD_Result result;
    char seconds[16];

    if (response == NULL) {
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (retry_after >= 0) {
        snprintf(seconds, sizeof seconds, "%d", retry_after);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct exchange *exchange, struct answer *answer,
                                   enum fault_kind kind)
{
    unsigned status = answer->status;
    int retry_after = answer->retry_after;

    if (kind == FAULT_GARBLED) {
        answer_flatten(answer);
        if (answer->text.size > 0) {
            answer->text.at[answer->text.size / 2] = '\1';
        }
    }
    answer_finish(answer);
    exchange->error = status >= 400;
    exchange->entries = answer->entries;
    exchange->bytes = (int64_t)answer_size(answer);
    return send_response(connection, status, retry_after, "application/json",
                         whole_response(answer, kind == FAULT_CUT));
}

static int connection_socket(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info == NULL ? -1 : info->connect_fd;
}

/* The client sees a reset, or at least an end without an answer. */
static enum MHD_Result reset_connection(struct MHD_Connection *connection, struct exchange *exchange)
{
    struct linger at_once = {1, 0};

    setsockopt(connection_socket(connection), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    exchange->error = true;
    return MHD_NO;
}

/* Until the time is up (negative: for ever), the client has gone or the broker stops. */
static void wait_for(struct broker *broker, struct MHD_Connection *connection, int64_t wait_ms)
{
    int64_t until_ms = clock_mono_ms() + wait_ms;
    struct pollfd gone = {connection_socket(connection), POLLRDHUP, 0};

    while (!atomic_load(&broker->stopping)) {
        int64_t left_ms = wait_ms < 0 ? 50 : until_ms - clock_mono_ms();

        if (left_ms <= 0 || poll(&gone, 1, left_ms < 50 ? (int)left_ms : 50) > 0) {
            return;
        }
    }
}

static bool has_token(const struct broker *broker, struct MHD_Connection *connection)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);

    if (broker->options.token == NULL) {
        return true;
    }
    return given != NULL && strncmp(given, "Bearer ", 7) == 0 && strcmp(given + 7, broker->options.token) == 0;
}

static void run_route(struct broker *broker, const struct api_route *route, const char *path, struct slice body,
                      struct fault *fault, struct answer *answer)
{
    struct call call = {.broker = broker, .body = body, .fault = fault};

    if (route == NULL) {
        delete_queue_answer(&call, slice_of(path + sizeof QUEUES_PATH), answer);
    } else {
        route->answer(&call, answer);
    }
}

static enum MHD_Result answer_route(struct broker *broker, struct MHD_Connection *connection, struct exchange *exchange,
                                    const struct api_route *route, const char *path)
{
    struct slice body = text_slice(&exchange->body);
    struct fault *fault = faults_take(&broker->faults, stats_route_name(exchange->route), body);
    enum fault_kind kind = fault == NULL ? FAULT_DELAY : fault->kind; /* a delay of nothing is no fault */
    struct answer answer;
    enum MHD_Result result;

    answer_start(&answer);
    if (kind == FAULT_HANG || (fault != NULL && kind == FAULT_DELAY)) {
        wait_for(broker, connection, kind == FAULT_HANG ? -1 : fault->delay_ms);
    }
    if (kind == FAULT_STATUS) {
        answer.retry_after = fault->retry_after;
        answer_error(&answer, fault->status, "injected");
    } else if (kind != FAULT_RESET_BEFORE && kind != FAULT_HANG) {
        run_route(broker, route, path, body, fault, &answer);
    }
    if (kind == FAULT_RESET_BEFORE || kind == FAULT_RESET_AFTER || kind == FAULT_HANG) {
        result = reset_connection(connection, exchange);
    } else {
        result = send_answer(connection, exchange, &answer, kind);
    }
    fault_free(fault);
    answer_free(&answer);
    return result;
}

static const struct api_route *find_route(const char *method, const char *path)
{
    for (size_t i = 0; i < API_ROUTE_COUNT; i++) {
        if (strcmp(api_routes[i].method, method) == 0 && strcmp(api_routes[i].path, path) == 0) {
            return &api_routes[i];
        }
    }
    return NULL;
}

static bool is_queue_deletion(const char *method, const char *path)
{
    return strcmp(method, "DELETE") == 0 && strncmp(path, QUEUES_PATH "/", sizeof QUEUES_PATH) == 0 &&
           path[sizeof QUEUES_PATH] != '\0';
}

static enum MHD_Result answer_error_now(struct MHD_Connection *connection, struct exchange *exchange, unsigned status,
                                        const char *message)
{
    struct answer answer;

    answer_start(&answer);
    answer_error(&answer, status, message);
    return send_answer(connection, exchange, &answer, FAULT_DELAY);
}

static enum MHD_Result answer_api(struct broker *broker, struct MHD_Connection *connection, struct exchange *exchange,
                                  const char *method, const char *path)
{
    const struct api_route *route = find_route(method, path);

    exchange->route = route != NULL ? route->route : ROUTE_OTHER;
    if (route == NULL && is_queue_deletion(method, path)) {
        exchange->route = ROUTE_DELETE;
    }
    stats_open(&broker->stats, exchange->route);
    exchange->counted = true;
    if (!has_token(broker, connection)) {
        return answer_error_now(connection, exchange, 401, "unauthorized");
    }
    if (exchange->route == ROUTE_OTHER) {
        return answer_error_now(connection, exchange, 404, "not found");
    }
    if (exchange->too_large) {
        return answer_error_now(connection, exchange, 413, "the body is larger than 64 MiB");
    }
    return answer_route(broker, connection, exchange, route, path);
}

static bool query_time(struct MHD_Connection *connection, const char *name, int64_t *at_us)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);

    return given == NULL || clock_parse(slice_of(given), at_us);
}

static enum MHD_Result answer_export(struct broker *broker, struct MHD_Connection *connection,
                                     struct exchange *exchange)
{
    const char *queue = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "queue");
    const char *deleted = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "deleted");
    struct export_wish wish = {.since_us = INT64_MIN, .until_us = INT64_MAX};
    struct MHD_Response *response;

    if (queue == NULL || !query_time(connection, "since", &wish.since_us) ||
        !query_time(connection, "until", &wish.until_us)) {
        return answer_error_now(connection, exchange, 400, "queue is needed; since and until have to be timestamps");
    }
    wish.queue = slice_of(queue);
    wish.deleted = deleted != NULL && (strcmp(deleted, "true") == 0 || strcmp(deleted, "1") == 0);
    response = export_response(broker, &wish);
    if (response == NULL) {
        return answer_error_now(connection, exchange, 404, "no such queue");
    }
    return send_response(connection, 200, -1, "application/x-ndjson", response);
}

static enum MHD_Result answer_control(struct broker *broker, struct MHD_Connection *connection,
                                      struct exchange *exchange, const char *method, const char *path)
{
    const char *namespace = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "ns");
    struct answer answer;

    if (strcmp(path, "log") == 0) {
        return answer_export(broker, connection, exchange);
    }
    answer_start(&answer);
    controls_answer(broker, method, path, namespace, text_slice(&exchange->body), &answer);
    return send_answer(connection, exchange, &answer, FAULT_DELAY);
}

static enum MHD_Result answer_health(struct broker *broker, struct MHD_Connection *connection,
                                     struct exchange *exchange, const char *path)
{
    struct answer answer;

    answer_start(&answer);
    text_add_string(&answer.text, "{\"status\":\"healthy\"");
    if (strcmp(path, "/status") == 0) {
        embed_status(broker->embed, &answer.text);
    }
    text_add_string(&answer.text, "}");
    return send_answer(connection, exchange, &answer, FAULT_DELAY);
}

static void take_body(struct exchange *exchange, struct MHD_Connection *connection, const char *bytes, size_t size)
{
    if (exchange->body.capacity == 0) {
        const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
        unsigned long long length = given == NULL ? 0 : strtoull(given, NULL, 10);

        text_reserve(&exchange->body, length > BODY_LIMIT ? BODY_LIMIT + 1 : (size_t)length);
    }
    if (exchange->too_large || size > BODY_LIMIT - exchange->body.size) {
        /* The rest is read and dropped: a client that is still sending would see a reset and no 413. */
        exchange->too_large = true;
        return;
    }
    text_add(&exchange->body, bytes, size);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **state)
{
    struct broker *broker = context;
    struct exchange *exchange = *state;

    (void)version;
    if (exchange == NULL) {
        *state = memory_take(1, sizeof *exchange);
        return MHD_YES;
    }
    if (*upload_size > 0) {
        take_body(exchange, connection, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (strncmp(path, CONTROL_PATH, sizeof CONTROL_PATH - 1) == 0) {
        return answer_control(broker, connection, exchange, method, path + sizeof CONTROL_PATH - 1);
    }
    if (strcmp(path, "/health") == 0 || strcmp(path, "/status") == 0) {
        return answer_health(broker, connection, exchange, path);
    }
    return answer_api(broker, connection, exchange, method, path);
}

static void completed(void *context, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
    struct broker *broker = context;
    struct exchange *exchange = *state;

    (void)connection;
    if (exchange == NULL) {
        return;
    }
    if (exchange->counted) {
        stats_close(&broker->stats, exchange->route, exchange->error || code != MHD_REQUEST_TERMINATED_COMPLETED_OK,
                    exchange->entries, exchange->bytes);
    }
    text_free(&exchange->body);
    free(exchange);
    *state = NULL;
}

static int listen_at(const struct addrinfo *address)
{
    int on = 1;
    int listener = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);

    if (listener < 0) {
        return -1;
    }
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, address->ai_addr, address->ai_addrlen) != 0 || listen(listener, 1024) != 0) {
        int problem = errno;

        close(listener);
        errno = problem;
        return -1;
    }
    return listener;
}

static int open_listener(const struct options *options, struct server *server)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    socklen_t size = sizeof server->bound;
    char service[16];
    int listener = -1;

    snprintf(service, sizeof service, "%u", options->port);
    if (getaddrinfo(options->host, service, &hints, &found) == 0) {
        listener = listen_at(found);
        freeaddrinfo(found);
    }
    if (listener < 0 || getsockname(listener, &server->bound.any, &size) != 0) {
        fprintf(stderr, "devbroker: can't listen on %s:%u: %s\n", options->host, options->port, strerror(errno));
        return -1;
    }
    return listener;
}

static unsigned bound_port(const struct server *server)
{
    return ntohs(server->bound.any.sa_family == AF_INET6 ? server->bound.six.sin6_port : server->bound.four.sin_port);
}

void server_add_url(const struct server *server, struct text *url)
{
    char host[INET6_ADDRSTRLEN] = "";

    if (server->bound.any.sa_family == AF_INET6) {
        bool all = IN6_IS_ADDR_UNSPECIFIED(&server->bound.six.sin6_addr);

        inet_ntop(AF_INET6, all ? &in6addr_loopback : &server->bound.six.sin6_addr, host, sizeof host);
        text_add_format(url, "http://[%s]:%u", host, bound_port(server));
    } else {
        struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
        bool all = server->bound.four.sin_addr.s_addr == htonl(INADDR_ANY);

        inet_ntop(AF_INET, all ? &loopback : &server->bound.four.sin_addr, host, sizeof host);
        text_add_format(url, "http://%s:%u", host, bound_port(server));
    }
}

struct server *server_start(struct broker *broker, unsigned *port)
{
    struct server *server = memory_take(1, sizeof *server);
    int listener = open_listener(&broker->options, server);

    server->broker = broker;
    if (listener < 0) {
        free(server);
        return NULL;
    }
    *port = bound_port(server);
    server->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL,
        handle, broker, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_NOTIFY_COMPLETED, completed, broker,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTION_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK, MHD_OPTION_END);
    if (server->daemon == NULL) {
        fputs("devbroker: can't start the HTTP server\n", stderr);
        close(listener);
        free(server);
        return NULL;
    }
    return server;
}

void server_end(struct server *server)
{
    MHD_stop_daemon(server->daemon);
    free(server);
}
