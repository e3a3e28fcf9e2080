/*
 * One HTTP request over libcurl's multi interface: what the Queen client and the S3 store share. One attempt, no
 * redirect followed, no cookie, connections reused. Callbacks run from the reactor.
 */
#ifndef COMMON_HTTP_H
#define COMMON_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/block.h"
#include "common/error.h"
#include "common/reactor.h"

struct http_client; /* settings shared by requests to one service: CA file, timeouts, connection limit */
struct http_request;

struct http_client_options {
    const char *ca_file; /* PEM; NULL: the system's store */
    int64_t connect_timeout_ms;
    long connections_max; /* requests under way at a time, which over HTTP/1.1 are connections; the others wait in
                                    order, and their timeouts with them. 0: no limit */
    bool direct;          /* through no proxy, whatever the environment says: for addresses of this host */
};

struct http_client *http_client_create(struct reactor *reactor, const struct http_client_options *options,
                                       struct error *error);
/* Cancels what is under way. From within a callback too. */
void http_client_destroy(struct http_client *client);

struct http_response {
    int status;              /* 0: no whole answer, and error says why */
    char *body;              /* NUL-terminated for convenience; free() is the callee's if taken: set to NULL to keep */
    size_t body_size;        /* of the body, wherever it is */
    struct block *block;     /* where the request asked for one: the body is there instead (and not NUL-terminated),
                                  whatever the status; the callee's to release if taken: set to NULL to keep */
    char etag[256];          /* as sent, without surrounding quotes; "" where absent or longer */
    char region[64];         /* x-amz-bucket-region */
    char date[64];           /* Date, as sent */
    uint64_t content_length; /* as declared, for HEAD; 0 where absent */
    int64_t retry_after_ms;  /* whole seconds only (spec 1.6), -1 where absent or anything else; more than a day is a
                                  day */
    bool sent;               /* some of the request may have reached the other side */
    bool repeated;           /* a kept connection died before it answered and curl has sent the request again on
                                  another: the other side may have carried it out twice. Only told of requests with a
                                  body of which some had gone out */
};

/* error->code is 0 for any whole answer whatever its status, QS_ERROR_TRANSPORT otherwise, QS_ERROR_NO_ROOM where the
 * budget stopped a body, QS_ERROR_BODY where body_limit did, QS_ERROR_NO_MEMORY. The message begins with host:port. */
typedef void http_done(void *argument, const struct error *error, struct http_response *response);

struct http_request_options {
    const char *method;         /* GET HEAD PUT POST DELETE */
    const char *url;            /* already encoded; sent byte for byte (CURLOPT_PATH_AS_IS) */
    const char *const *headers; /* "Name: value"; no Content-Type is sent but what is given here */
    size_t header_count;
    const struct iovec *pieces; /* the body, borrowed until done or cancelled; Content-Length is always sent */
    size_t piece_count;
    uint64_t body_size;
    int64_t timeout_ms;       /* the whole call; 0: none */
    int64_t stall_timeout_ms; /* no byte either way for so long ends it; 0: none */
    size_t body_limit;        /* of the answer, 0: 64 MiB */
    bool into_block;          /* the answer's body goes into a block counted in budget */
    struct budget *budget;
    size_t reserved; /* taken already, becomes the block's (given back on failure) */
    bool may_exceed;
};

/* NULL only if out of memory; `reserved` is given back then too. */
struct http_request *http_start(struct http_client *client, const struct http_request_options *options, http_done *done,
                                void *argument);
/* done() will not run. Nothing where it is running right now. */
void http_cancel(struct http_request *request);

#endif
