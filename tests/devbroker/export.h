/*
 * GET /_dev/log: a queue's log as envelope lines, the oracle of tests.
 */
#ifndef DEVBROKER_EXPORT_H
#define DEVBROKER_EXPORT_H

#include <microhttpd.h>

#include "broker.h"

struct export_wish {
    struct slice queue;
    bool deleted;     /* also what retention, holes, deletions and re-creations took away */
    int64_t since_us; /* ts at or after */
    int64_t until_us; /* ts before */
};

/* Streams lines by partition (as bytes), life, offset. NULL when there is no such queue, dead ones counted if deleted.
 * The response belongs to the caller. */
struct MHD_Response *export_response(struct broker *broker, const struct export_wish *wish);

#endif
