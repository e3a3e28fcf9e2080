/*
 * How http.c takes an answer in while it arrives: the few headers that are kept, and the body into its own memory or a
 * block.
 */
#ifndef COMMON_HTTP_ANSWER_H
#define COMMON_HTTP_ANSWER_H

#include "common/http.h"

struct http_answer {
    struct http_response response;
    size_t body_capacity; /* of response.body, its NUL counted */
    size_t body_limit;
    bool may_exceed;
    bool length_declared;
    bool head_ended; /* the empty line has come; curl takes a connection that closes before it for a whole answer */
    enum qs_error stopped; /* why http_answer_body() refused to go on */
};

/* One header line as it came, its end of line included. A status line starts all over: interim answers come first. */
void http_answer_header(struct http_answer *answer, const char *line, size_t size);
/* False, and `stopped` says why, where the transfer must end. */
bool http_answer_body(struct http_answer *answer, const char *bytes, size_t size);
/* Makes an absent body an empty one; false if out of memory. */
bool http_answer_finish(struct http_answer *answer);
void http_answer_free(struct http_answer *answer);

#endif
