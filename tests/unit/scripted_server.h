/*
 * An HTTP server that plays a script: for tests of what speaks HTTP. It listens on 127.0.0.1, each connection has a
 * thread of its own, and each request that arrives, on whichever connection, takes the next step of the script.
 * Everything that was received is kept to be looked at. A broken set-up ends the test process.
 */
#ifndef TESTS_UNIT_SCRIPTED_SERVER_H
#define TESTS_UNIT_SCRIPTED_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum scripted_end {
    SCRIPTED_KEEP,  /* the connection stays for further requests */
    SCRIPTED_CLOSE, /* FIN */
    SCRIPTED_RESET  /* RST */
};

struct scripted_step {
    int status;          /* 0: nothing is answered, but for `raw` */
    const char *headers; /* further ones, each with its CRLF; Content-Length is added where neither it nor
                            Transfer-Encoding is here */
    const char *body;
    size_t body_size; /* 0: strlen(body) */
    size_t cut;       /* so many bytes of the body at its end are never sent */
    const char *raw;  /* sent as it is, instead of all of the above */
    bool hold;        /* between head and body waits for scripted_server_release() */
    bool unread;      /* the request isn't read, only awaited: it takes this step only as the first of a connection */
    enum scripted_end end;
};

struct scripted_request {
    const char *head; /* request line and headers, NUL-terminated */
    const char *body;
    size_t body_size;
    size_t connection; /* 0-based, in order of arrival */
};

struct scripted_server;

/* The steps are copied, what they point to must outlive the server. After the last one it answers 500 "the script is over". */
struct scripted_server *scripted_server_start(const struct scripted_step *steps, size_t count);
/* Over TLS with a certificate for 127.0.0.1 of its own making, which scripted_server_ca_file() names. */
struct scripted_server *scripted_server_start_tls(const struct scripted_step *steps, size_t count);
const char *scripted_server_ca_file(const struct scripted_server *server);
/* http://127.0.0.1:port */
const char *scripted_server_url(const struct scripted_server *server);
void scripted_server_release(struct scripted_server *server);
/* Requests read whole (or awaited, where `unread`), and connections accepted so far. */
size_t scripted_server_requests(struct scripted_server *server);
size_t scripted_server_connections(struct scripted_server *server);
/* Valid until the server stops. */
struct scripted_request scripted_server_request(struct scripted_server *server, size_t index);
/* Whether a request holds this header line, without its CRLF. */
bool scripted_request_has(const struct scripted_request *request, const char *line);
void scripted_server_stop(struct scripted_server *server);

#endif
