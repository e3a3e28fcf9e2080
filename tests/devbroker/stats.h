/*
 * What was asked of the broker, by route: tests hold the sink's call rates against it.
 */
#ifndef DEVBROKER_STATS_H
#define DEVBROKER_STATS_H

#include "system.h"

#include <pthread.h>

#include "text.h"

enum route {
    ROUTE_FETCH,
    ROUTE_CHANGED,
    ROUTE_KV,
    ROUTE_QUEUES,
    ROUTE_PUSH,
    ROUTE_CONFIGURE,
    ROUTE_DELETE,
    ROUTE_OTHER,
    ROUTE_COUNT
};

struct route_stats {
    int64_t calls;
    int64_t errors; /* answers of 400 and above, and closed connections */
    int64_t open;   /* calls being answered */
    int64_t open_maximum;
    int64_t entries; /* fetch, changed: entries; kv: operations; push: items */
    int64_t bytes;   /* of answers' bodies */
};

struct stats {
    pthread_mutex_t lock;
    int64_t since_mono_ms;
    struct route_stats routes[ROUTE_COUNT];
    int64_t open;
    int64_t open_maximum;
};

void stats_start(struct stats *stats);
void stats_end(struct stats *stats);
void stats_reset(struct stats *stats); /* calls that are open stay open */
void stats_open(struct stats *stats, enum route route);
void stats_close(struct stats *stats, enum route route, bool error, int64_t entries, int64_t bytes);
void stats_list(struct stats *stats, struct text *text);
const char *stats_route_name(enum route route);

#endif
