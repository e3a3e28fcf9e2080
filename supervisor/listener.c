/*
 * See listener.h. libmicrohttpd parses; its epoll descriptor is what the caller's loop watches. The socket is made here
 * and handed over, so that a failure says which address and why.
 *
 * The library would leave newcomers waiting once its limit is met, until some connection ends. So its limit is never
 * met: who is one too many is let in, and in the same turn somebody else's socket is shut down, which the library sees
 * in its next one. Its turn takes in eleven at the most, so that LIBRARY_MAX is out of reach.
 */
#include "supervisor/listener.h"

#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIBRARY_MAX             (LISTENER_CONNECTIONS_MAX + 32u)
#define CONNECTION_TIMEOUT_S    10u
#define CONNECTION_MEMORY_BYTES ((size_t)16384)
#define BACKLOG                 64

struct caller {
    bool here;
    bool leaves; /* its socket is shut down */
    int descriptor;
    uint64_t since; /* by listener.turns: when it came, or had its last answer */
};

struct listener {
    struct MHD_Daemon *daemon;
    listener_route *route;
    void *argument;
    int descriptor;
    uint16_t port;
    struct caller callers[LIBRARY_MAX];
    size_t staying; /* of them, here and not leaving */
    uint64_t turns;
};

/* ---- who is let in ---- */

static void show_longest_out(struct listener *listener)
{
    struct caller *longest = NULL;

    for (size_t i = 0; i < LIBRARY_MAX; i++) {
        struct caller *caller = &listener->callers[i];

        if (caller->here && !caller->leaves && (longest == NULL || caller->since < longest->since)) {
            longest = caller;
        }
    }
    if (longest != NULL) {
        longest->leaves = true;
        listener->staying--;
        (void)shutdown(longest->descriptor, SHUT_RDWR);
    }
}

/* The library has fewer connections than there are places, this one not counted. */
static struct caller *let_in(struct listener *listener, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *information =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct caller *caller = listener->callers;

    while (caller->here) {
        caller++;
    }
    *caller = (struct caller){.here = true, .descriptor = information->connect_fd, .since = listener->turns++};
    listener->staying++;
    if (listener->staying > LISTENER_CONNECTIONS_MAX) {
        show_longest_out(listener);
    }
    return caller;
}

static void notice(void *argument, struct MHD_Connection *connection, void **context,
                   enum MHD_ConnectionNotificationCode what)
{
    struct listener *listener = argument;
    struct caller *caller = *context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = let_in(listener, connection);
    } else {
        listener->staying -= caller->leaves ? 0 : 1;
        caller->here = false;
    }
}

/* The whole answer has been taken. */
static void notice_answered(void *argument, struct MHD_Connection *connection, void **seen,
                            enum MHD_RequestTerminationCode how)
{
    struct listener *listener = argument;
    const union MHD_ConnectionInfo *information =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct caller *caller = information->socket_context;

    (void)seen;
    (void)how;
    caller->since = listener->turns++;
}

/* ---- answers ---- */

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
    /* Must-copy mode promises not to write, though its type doesn't say so. */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_NO;

    if (response != NULL) {
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
            (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        }
        result = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
    }
    return result;
}

/* Each answer is of its moment, and what it says it is. */
static void add_headers(struct MHD_Response *response, const struct listener_answer *answer)
{
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->content_type);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (answer->security_policy != NULL) {
        (void)MHD_add_response_header(response, "Content-Security-Policy", answer->security_policy);
        (void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    }
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, const struct listener_answer *answer)
{
    struct MHD_Response *response;
    enum MHD_Result result;

    if (answer->body == NULL) {
        return send_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    }
    response = MHD_create_response_from_buffer(strlen(answer->body), answer->body, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(answer->body);
        return MHD_NO;
    }
    add_headers(response, answer);
    result = MHD_queue_response(connection, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* Called at least twice a request: with its head, and when its body has been read. */
static enum MHD_Result handle(void *argument, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **seen)
{
    const struct listener *listener = argument;
    struct listener_answer answer = {0};

    (void)version;
    (void)upload;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
    }
    if (*seen == NULL) {
        *seen = argument;
        return MHD_YES;
    }
    *upload_size = 0;
    if (!listener->route(listener->argument, url, &answer)) {
        return send_text(connection, MHD_HTTP_NOT_FOUND, "/, /healthz and /metrics\n");
    }
    return send_answer(connection, &answer);
}

/* ---- begin and end ---- */

static int bind_address(const struct addrinfo *address)
{
    int yes = 1;
    int made = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (made < 0) {
        return -1;
    }
    (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(made, address->ai_addr, address->ai_addrlen) != 0 || listen(made, BACKLOG) != 0) {
        (void)close(made);
        return -1;
    }
    return made;
}

static int bind_name(const char *host, const char *port, struct error *error)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int bound = -1;
    int failure = getaddrinfo(host[0] == '\0' ? NULL : host, port, &wanted, &found);

    if (failure != 0) {
        return error_set(error, QS_ERROR_SYSTEM, "QUEEN_S3_LISTEN=%s:%s: %s", host, port, gai_strerror(failure));
    }
    for (const struct addrinfo *address = found; address != NULL && bound < 0; address = address->ai_next) {
        bound = bind_address(address);
    }
    if (bound < 0) {
        bound = error_set_errno(error, "QUEEN_S3_LISTEN=%s:%s: can't be bound", host, port);
    }
    freeaddrinfo(found);
    return bound;
}

static uint16_t port_of(int bound)
{
    union {
        struct sockaddr_in6 six;
        struct sockaddr_in four;
        struct sockaddr any;
    } address = {0};
    socklen_t size = sizeof address;

    (void)getsockname(bound, &address.any, &size);
    return ntohs(address.any.sa_family == AF_INET6 ? address.six.sin6_port : address.four.sin_port);
}

static struct MHD_Daemon *start_library(struct listener *listener, int bound)
{
    return MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, handle, listener, MHD_OPTION_LISTEN_SOCKET, bound,
                            MHD_OPTION_CONNECTION_LIMIT, LIBRARY_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                            CONNECTION_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES,
                            MHD_OPTION_NOTIFY_CONNECTION, notice, listener, MHD_OPTION_NOTIFY_COMPLETED,
                            notice_answered, listener, MHD_OPTION_END);
}

struct listener *listener_create(const char *host, const char *port, listener_route *route, void *argument,
                                 struct error *error)
{
    struct listener *listener = calloc(1, sizeof *listener);
    const union MHD_DaemonInfo *information;
    int bound;

    if (listener == NULL) {
        (void)error_set(error, QS_ERROR_NO_MEMORY, "out of memory");
        return NULL;
    }
    listener->route = route;
    listener->argument = argument;
    bound = bind_name(host, port, error);
    if (bound < 0) {
        free(listener);
        return NULL;
    }
    listener->port = port_of(bound);
    listener->daemon = start_library(listener, bound);
    information = listener->daemon == NULL ? NULL : MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (information == NULL) {
        (void)error_set(error, QS_ERROR_SYSTEM, "QUEEN_S3_LISTEN=%s:%s: the HTTP library would not start", host, port);
        if (listener->daemon == NULL) {
            (void)close(bound);
        }
        listener_destroy(listener);
        return NULL;
    }
    listener->descriptor = information->epoll_fd;
    return listener;
}

void listener_destroy(struct listener *listener)
{
    if (listener == NULL) {
        return;
    }
    if (listener->daemon != NULL) {
        MHD_stop_daemon(listener->daemon);
    }
    free(listener);
}

int listener_descriptor(const struct listener *listener)
{
    return listener->descriptor;
}

int64_t listener_timeout_ms(const struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG timeout = 0;

    if (MHD_get_timeout(listener->daemon, &timeout) != MHD_YES) {
        return -1;
    }
    return timeout > INT32_MAX ? INT32_MAX : (int64_t)timeout;
}

void listener_run(struct listener *listener)
{
    (void)MHD_run(listener->daemon);
}

uint16_t listener_port(const struct listener *listener)
{
    return listener->port;
}
