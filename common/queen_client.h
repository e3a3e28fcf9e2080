/*
 * The Queen API (queen_api.h) over HTTP: spec 01.
 *
 * Errors: QS_ERROR_TRANSPORT; QS_ERROR_STATUS for 408, 429 and 5xx, with Retry-After; QS_ERROR_FORBIDDEN for 401 and 403;
 * QS_ERROR_REFUSED for any other status that isn't 2xx; QS_ERROR_BODY for a 2xx that can't be what was asked for;
 * QS_ERROR_NO_ROOM (fetch); QS_ERROR_NO_MEMORY. error->status is the answer's.
 *
 * A kv batch that went out twice, because a kept connection died before it answered (http.h), and of which a write then
 * lost, is QS_ERROR_TRANSPORT too: the loss may be to its own first copy, whose answer was lost, and the caller reads
 * the rows back as after any other lost answer (spec 3.6). One that was applied is an answer like any other.
 */
#ifndef COMMON_QUEEN_CLIENT_H
#define COMMON_QUEEN_CLIENT_H

#include "common/queen_api.h"
#include "common/reactor.h"

struct queen_client_options {
    const char *url;      /* http(s)://host[:port][/path], no trailing slash */
    const char *token;    /* NULL: none. Never logged, never part of a message. */
    const char *ca_file;  /* NULL: the system's store */
    long connections_max; /* fetch calls under way at a time, the others wait; 0: no limit. The small calls have
                             connections of their own, so that a lease never waits for a fetch. */
};

/* NULL and QS_ERROR_INPUT where the token holds what a header can't. */
struct queen_api *queen_client_create(struct reactor *reactor, const struct queen_client_options *options,
                                      struct error *error);
/* Cancels every call under way. From within a callback too. */
void queen_client_destroy(struct queen_api *api);

#endif
