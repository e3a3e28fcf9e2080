/*
 * A question to a running pool over its control socket (supervisor/control.h).
 */
#ifndef SUPERVISOR_COMMANDS_CONTROL_ASK_H
#define SUPERVISOR_COMMANDS_CONTROL_ASK_H

#include "common/byte_buffer.h"
#include "common/error.h"
#include "supervisor/control_place.h"

/* Sends the word and adds the whole answer to `answer`, which the caller frees whatever comes of it. QS_ERROR_NOT_FOUND:
 * no socket is there, or nobody listens to it; QS_ERROR_FORBIDDEN: this user may not ask; QS_ERROR_TRANSPORT: no whole
 * answer within timeout_ms; QS_ERROR_INPUT: a path that no socket can have. Messages begin with the path. */
int control_ask(const char *path, const char *request, int timeout_ms, struct byte_buffer *answer, struct error *error);

/* Likewise of the first of the places at which a pool is that this user may ask. QS_ERROR_FORBIDDEN where there is none
 * but one that isn't this user's; QS_ERROR_NOT_FOUND where there is none at all. */
int control_ask_places(const struct control_places *places, const char *request, int timeout_ms,
                       struct byte_buffer *answer, struct error *error);

#endif
