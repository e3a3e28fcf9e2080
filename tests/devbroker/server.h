/*
 * The HTTP side: routes, tokens, faults on the wire.
 */
#ifndef DEVBROKER_SERVER_H
#define DEVBROKER_SERVER_H

#include "broker.h"

struct server;

/* Listens and answers; the port that it got goes to *port. NULL, with a line, when it can't. */
struct server *server_start(struct broker *broker, unsigned *port);
/* Adds where a process of this machine reaches it: the address as it is bound, loopback where that is any address. */
void server_add_url(const struct server *server, struct text *url);
/* broker.stopping is set already: calls that wait end at once. */
void server_end(struct server *server);

#endif
