/*
 * The Queen API (queen_api.h) over HTTP: spec 01.
 */
#ifndef COMMON_QUEEN_CLIENT_H
#define COMMON_QUEEN_CLIENT_H

#include "common/queen_api.h"
#include "common/reactor.h"

struct queen_client_options {
    const char *url;     /* http(s)://host[:port][/path], no trailing slash */
    const char *token;   /* NULL: none. Never logged, never part of a message. */
    const char *ca_file; /* NULL: the system's store */
    long connections_max;
};

struct queen_api *queen_client_create(struct reactor *reactor, const struct queen_client_options *options,
                                      struct error *error);
void queen_client_destroy(struct queen_api *api);

#endif
