/*
 * The pool's one HTTP endpoint (spec 3.11), in the caller's own loop: no thread, ever (spec 4.1). A small door: GET and
 * HEAD, few connections, none of them for long.
 *
 * A request is answered at once whatever others hold: where all places are taken, who comes gets the place of the
 * connection that has gone without a whole request, or without taking its answer, for longest. Bytes that finish nothing
 * don't count.
 */
#ifndef SUPERVISOR_LISTENER_H
#define SUPERVISOR_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define LISTENER_CONNECTIONS_MAX 64u

struct listener;

struct listener_answer {
    int status;
    const char *content_type;
    const char *security_policy; /* for a browser: its Content-Security-Policy; NULL: none */
    char *body;                  /* malloc, the listener's; NULL: 500 */
};

/* Fills the answer; false: no such path, 404. */
typedef bool listener_route(void *argument, const char *path, struct listener_answer *answer);

/* host "" means every address. NULL and *error, which names QUEEN_S3_LISTEN, where no address of it can be bound. */
struct listener *listener_create(const char *host, const char *port, listener_route *route, void *argument,
                                 struct error *error);
void listener_destroy(struct listener *listener);

/* Readable: call listener_run(). */
int listener_descriptor(const struct listener *listener);
/* After so long it is to be called in any case; -1: no need. */
int64_t listener_timeout_ms(const struct listener *listener);
void listener_run(struct listener *listener);
/* The port that was bound: QUEEN_S3_LISTEN may say 0. */
uint16_t listener_port(const struct listener *listener);

#endif
