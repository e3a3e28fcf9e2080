/*
 * The HTTP side: routes, tokens, faults on the wire.
 */
#ifndef DEVBROKER_SERVER_H
#define DEVBROKER_SERVER_H

#include "broker.h"

struct server;

/* Listens and answers; the port that it got goes to *port. NULL, with a line, when it can't. */
struct server *server_start(struct broker *broker, unsigned *port);
/* broker.stopping is set already: calls that wait end at once. */
void server_end(struct server *server);

#endif
