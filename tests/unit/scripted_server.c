/*
 * See scripted_server.h. One lock guards all that threads share; a thread holds it only to look or to note, never
 * while it reads or writes a socket.
 */
#include "tests/unit/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define REQUESTS_MAX    1024
#define HEAD_MAX        65536

struct connection {
    struct scripted_server *server;
    pthread_t thread;
    size_t number;
    int socket; /* -1: closed */
    SSL *tls;
};

struct received {
    char *head;
    char *body;
    size_t body_size;
    size_t connection;
};

struct scripted_server {
    struct scripted_step *steps;
    size_t step_count;
    char url[64];
    int listener;
    pthread_t acceptor;
    pthread_mutex_t lock;
    pthread_cond_t released;
    bool release;
    bool stopping;
    size_t next_step;
    struct connection connections[CONNECTIONS_MAX];
    size_t connection_count;
    struct received requests[REQUESTS_MAX];
    size_t request_count;
    SSL_CTX *tls;
    char ca_file[64];
};

static void insist(bool good, const char *what)
{
    if (!good) {
        perror(what);
        abort();
    }
}

/* ---- bytes ---- */

static ssize_t receive(struct connection *connection, char *out, size_t size)
{
    if (connection->tls != NULL) {
        return SSL_read(connection->tls, out, (int)size);
    }
    return recv(connection->socket, out, size, 0);
}

static bool send_all(struct connection *connection, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t part = size < 1048576 ? size : 1048576;
        ssize_t sent = connection->tls != NULL ? SSL_write(connection->tls, bytes, (int)part)
                                               : send(connection->socket, bytes, part, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* The head byte by byte (so that nothing of the body is taken with it), then as much body as it declares. */
static bool read_request(struct connection *connection, struct received *request)
{
    char *head = malloc(HEAD_MAX);
    size_t size = 0;
    insist(head != NULL, "malloc");
    while (size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4) != 0) {
        if (size == HEAD_MAX - 1 || receive(connection, head + size, 1) <= 0) {
            free(head);
            return false;
        }
        size++;
    }
    head[size] = '\0';
    const char *length = strcasestr(head, "\r\nContent-Length:");
    size_t body_size = length != NULL ? strtoul(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
    char *body = malloc(body_size + 1);
    insist(body != NULL, "malloc");
    for (size_t got = 0; got < body_size;) {
        ssize_t part = receive(connection, body + got, body_size - got);
        if (part <= 0) {
            free(head);
            free(body);
            return false;
        }
        got += (size_t)part;
    }
    body[body_size] = '\0';
    *request = (struct received){.head = head, .body = body, .body_size = body_size};
    return true;
}

/* ---- the script ---- */

static void note_request(struct connection *connection, struct received *request)
{
    struct scripted_server *server = connection->server;
    request->connection = connection->number;
    pthread_mutex_lock(&server->lock);
    insist(server->request_count < REQUESTS_MAX, "too many requests for a script");
    server->requests[server->request_count++] = *request;
    pthread_mutex_unlock(&server->lock);
}

static struct scripted_step take_step(struct scripted_server *server)
{
    static const struct scripted_step over = {.status = 500, .body = "the script is over"};
    pthread_mutex_lock(&server->lock);
    struct scripted_step step = server->next_step < server->step_count ? server->steps[server->next_step++] : over;
    pthread_mutex_unlock(&server->lock);
    return step;
}

/* Takes the next step only if that is one that leaves its request unread. */
static bool take_unread_step(struct scripted_server *server, struct scripted_step *step)
{
    pthread_mutex_lock(&server->lock);
    bool unread = server->next_step < server->step_count && server->steps[server->next_step].unread;
    if (unread) {
        *step = server->steps[server->next_step++];
    }
    pthread_mutex_unlock(&server->lock);
    return unread;
}

static void wait_for_release(struct scripted_server *server)
{
    pthread_mutex_lock(&server->lock);
    while (!server->release && !server->stopping) {
        pthread_cond_wait(&server->released, &server->lock);
    }
    pthread_mutex_unlock(&server->lock);
}

static bool play_step(struct connection *connection, const struct scripted_step *step)
{
    if (step->raw != NULL) {
        return send_all(connection, step->raw, strlen(step->raw));
    }
    const char *headers = step->headers != NULL ? step->headers : "";
    size_t body_size = step->body_size != 0 || step->body == NULL ? step->body_size : strlen(step->body);
    char head[4096];
    int size = snprintf(head, sizeof head, "HTTP/1.1 %d Scripted\r\n%s", step->status, headers);
    if (strcasestr(headers, "Content-Length:") == NULL && strcasestr(headers, "Transfer-Encoding:") == NULL) {
        size += snprintf(head + size, sizeof head - (size_t)size, "Content-Length: %zu\r\n", body_size);
    }
    size += snprintf(head + size, sizeof head - (size_t)size, "\r\n");
    insist((size_t)size < sizeof head, "a scripted head is too long");
    if (step->status != 0 && !send_all(connection, head, (size_t)size)) {
        return false;
    }
    if (step->hold) {
        wait_for_release(connection->server);
    }
    return step->body == NULL || send_all(connection, step->body, body_size - step->cut);
}

static void end_connection(struct connection *connection, enum scripted_end end)
{
    struct linger abrupt = {.l_onoff = 1, .l_linger = 0};
    if (end == SCRIPTED_RESET) {
        insist(setsockopt(connection->socket, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0, "SO_LINGER");
    }
    SSL_free(connection->tls);
    pthread_mutex_lock(&connection->server->lock);
    close(connection->socket);
    connection->socket = -1;
    pthread_mutex_unlock(&connection->server->lock);
}

static bool start_tls(struct connection *connection)
{
    if (connection->server->tls == NULL) {
        return true;
    }
    connection->tls = SSL_new(connection->server->tls);
    insist(connection->tls != NULL && SSL_set_fd(connection->tls, connection->socket) == 1, "SSL_new");
    return SSL_accept(connection->tls) == 1;
}

static enum scripted_end serve_requests(struct connection *connection)
{
    struct scripted_step step;
    struct received request = {0};
    if (!start_tls(connection)) {
        return SCRIPTED_CLOSE;
    }
    char byte;
    if (recv(connection->socket, &byte, 1, MSG_PEEK) == 1 && take_unread_step(connection->server, &step)) {
        note_request(connection, &request);
        return step.end;
    }
    while (read_request(connection, &request)) {
        note_request(connection, &request);
        step = take_step(connection->server);
        if (!play_step(connection, &step)) {
            return SCRIPTED_CLOSE;
        }
        if (step.end != SCRIPTED_KEEP) {
            return step.end;
        }
    }
    return SCRIPTED_CLOSE;
}

static void *connection_main(void *argument)
{
    struct connection *connection = argument;
    end_connection(connection, serve_requests(connection));
    return NULL;
}

static void *acceptor_main(void *argument)
{
    struct scripted_server *server = argument;
    int accepted;
    while ((accepted = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        pthread_mutex_lock(&server->lock);
        insist(server->connection_count < CONNECTIONS_MAX, "too many connections for a script");
        struct connection *connection = &server->connections[server->connection_count];
        *connection = (struct connection){.server = server, .socket = accepted, .number = server->connection_count++};
        insist(pthread_create(&connection->thread, NULL, connection_main, connection) == 0, "pthread_create");
        pthread_mutex_unlock(&server->lock);
    }
    return NULL;
}

/* ---- from the test's side ---- */

static struct scripted_server *server_start(const struct scripted_step *steps, size_t count, SSL_CTX *tls)
{
    struct scripted_server *server = calloc(1, sizeof *server);
    insist(server != NULL, "calloc");
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    server->steps = calloc(count > 0 ? count : 1, sizeof *steps);
    insist(server->steps != NULL, "calloc");
    memcpy(server->steps, steps, count * sizeof *steps);
    server->step_count = count;
    server->tls = tls;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->released, NULL);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    insist(server->listener >= 0, "socket");
    insist(bind(server->listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    insist(listen(server->listener, 128) == 0, "listen");
    insist(getsockname(server->listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
    snprintf(server->url, sizeof server->url, "%s://127.0.0.1:%u", tls != NULL ? "https" : "http",
             (unsigned)ntohs(address.sin_port));
    insist(pthread_create(&server->acceptor, NULL, acceptor_main, server) == 0, "pthread_create");
    return server;
}

struct scripted_server *scripted_server_start(const struct scripted_step *steps, size_t count)
{
    return server_start(steps, count, NULL);
}

static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    insist(certificate != NULL, "X509_new");
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"127.0.0.1", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_EXTENSION *address = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");
    insist(address != NULL && X509_add_ext(certificate, address, -1) == 1, "X509_add_ext");
    X509_EXTENSION_free(address);
    insist(X509_sign(certificate, key, EVP_sha256()) > 0, "X509_sign");
    return certificate;
}

struct scripted_server *scripted_server_start_tls(const struct scripted_step *steps, size_t count)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    insist(key != NULL, "EVP_EC_gen");
    X509 *certificate = make_certificate(key);
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    insist(tls != NULL && SSL_CTX_use_certificate(tls, certificate) == 1 && SSL_CTX_use_PrivateKey(tls, key) == 1,
           "SSL_CTX_new");
    struct scripted_server *server = server_start(steps, count, tls);
    snprintf(server->ca_file, sizeof server->ca_file, "/tmp/scripted-ca-XXXXXX");
    int descriptor = mkstemp(server->ca_file);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    insist(file != NULL && PEM_write_X509(file, certificate) == 1 && fclose(file) == 0, "writing a certificate");
    X509_free(certificate);
    EVP_PKEY_free(key);
    return server;
}

const char *scripted_server_ca_file(const struct scripted_server *server)
{
    return server->ca_file;
}

const char *scripted_server_url(const struct scripted_server *server)
{
    return server->url;
}

void scripted_server_release(struct scripted_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->release = true;
    pthread_cond_broadcast(&server->released);
    pthread_mutex_unlock(&server->lock);
}

size_t scripted_server_requests(struct scripted_server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t count = server->request_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

size_t scripted_server_connections(struct scripted_server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t count = server->connection_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

struct scripted_request scripted_server_request(struct scripted_server *server, size_t index)
{
    pthread_mutex_lock(&server->lock);
    insist(index < server->request_count, "no such request was received");
    const struct received *received = &server->requests[index];
    struct scripted_request request = {.head = received->head != NULL ? received->head : "",
                                       .body = received->body != NULL ? received->body : "",
                                       .body_size = received->body_size,
                                       .connection = received->connection};
    pthread_mutex_unlock(&server->lock);
    return request;
}

bool scripted_request_has(const struct scripted_request *request, const char *line)
{
    size_t size = strlen(line);
    for (const char *at = request->head; (at = strstr(at, line)) != NULL; at += size) {
        bool starts = at == request->head || at[-1] == '\n';
        if (starts && at[size] == '\r') {
            return true;
        }
    }
    return false;
}

void scripted_server_stop(struct scripted_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_cond_broadcast(&server->released);
    pthread_mutex_unlock(&server->lock);
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->acceptor, NULL);
    close(server->listener);
    for (size_t i = 0; i < server->connection_count; i++) {
        pthread_mutex_lock(&server->lock);
        if (server->connections[i].socket >= 0) {
            shutdown(server->connections[i].socket, SHUT_RDWR);
        }
        pthread_mutex_unlock(&server->lock);
        pthread_join(server->connections[i].thread, NULL);
    }
    for (size_t i = 0; i < server->request_count; i++) {
        free(server->requests[i].head);
        free(server->requests[i].body);
    }
    SSL_CTX_free(server->tls);
    if (server->ca_file[0] != '\0') {
        unlink(server->ca_file);
    }
    free(server->steps);
    pthread_cond_destroy(&server->released);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
