/*
 * The pool's control socket (spec 4.3): whoever may open it asks with one line and gets one JSON document. It lives in
 * the caller's own loop, as the listener does: no thread, and nothing that a client does or leaves undone holds the loop
 * up. Only the pool's own user (and root) gets in.
 *
 * The conversation: the client sends a word and a line feed, "status\n"; the pool sends the document and a line feed, and
 * hangs up. To a word that it doesn't know it says {"error": …}. Both together have CONTROL_CLIENT_MS.
 *
 * The socket is made under a lock on `<path>.lock`, under a temporary name, and renamed: what a killed pool left behind is
 * replaced, what a living one has is left alone, and nobody sees a socket that doesn't answer yet.
 */
#ifndef SUPERVISOR_CONTROL_H
#define SUPERVISOR_CONTROL_H

#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "supervisor/control_place.h"

#define CONTROL_NEW_SUFFIX  ".new"
#define CONTROL_LOCK_SUFFIX ".lock"
#define CONTROL_CLIENT_MS   5000
#define CONTROL_CLIENTS_MAX 16 /* at a time; more of them wait until one has gone */
#define CONTROL_REQUEST_MAX 64 /* bytes, with the line feed */

struct control;

/* The document for a request (malloc), without a line feed; NULL: no such request. */
typedef char *control_answer(void *argument, const char *request);

/* 0: *out is there, or NULL where the pool is to go without one, which has been logged. QS_ERROR_INPUT: a place that was
 * chosen can't be had. */
int control_open(const struct control_places *places, control_answer *answer, void *argument, struct control **out,
                 struct error *error);
/* Hangs up, and removes the socket and its lock. NULL is taken. */
void control_close(struct control *control);

const char *control_path(const struct control *control);

/* All of these take NULL for "none". Readable: call control_run(); -1: nothing to watch. */
int control_descriptor(const struct control *control);
/* After so long it is to be called in any case; -1: no need. */
int64_t control_timeout_ms(const struct control *control, struct mono_ms now);
void control_run(struct control *control, struct mono_ms now);

#endif
