/*
 * What ties a worker of either kind to the supervisor: the socket pair, over which reports go out and frames come in
 * (common/report.h), and SIGTERM, which tells it to stop (spec 4.2). On the worker's loop.
 */
#ifndef WORKER_REPORT_LINK_H
#define WORKER_REPORT_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/reactor.h"
#include "common/report.h"

/* How often a worker tells all that it has to tell, beside what it tells at once. */
#define REPORT_EVERY_MS 1000

struct report_link_events {
    /* A frame of the supervisor's; the body as report_next() gives it. NULL: whatever comes is passed over. */
    void (*take)(void *argument, const struct report_header *header, const void *body);
    /* SIGTERM came; once for each. */
    void (*stop)(void *argument);
};

struct report_link {
    struct reactor *reactor;
    const struct report_link_events *events;
    void *argument;
    int descriptor; /* of the socket pair; the caller's */
    int signals;
    struct report_buffer outgoing;
    struct report_buffer incoming;
    bool gone; /* the supervisor is: there is nobody to work for */
};

/* Begins to listen to both. SIGTERM is blocked from here on, so that no thread made later takes it. Where that fails the
 * link can still be added to and closed. 0, or QS_ERROR_SYSTEM. */
int report_link_open(struct report_link *link, struct reactor *reactor, int descriptor,
                     const struct report_link_events *events, void *argument, struct error *error);
void report_link_close(struct report_link *link);

/* Whether the supervisor has read all: more of the same would only grow what lies there. */
bool report_link_is_read(const struct report_link *link);

/* Appends a frame without a tail, as report_append(). report_link_flush() sends what has been added, in the background
 * where the socket is full. */
int report_link_add(struct report_link *link, enum report_kind kind, const void *body, size_t size);
void report_link_flush(struct report_link *link);

/* Lets the loop run until the supervisor has read all, for a second at the most: the last words before the end. */
void report_link_finish(struct report_link *link);

#endif
