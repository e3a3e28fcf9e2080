/*
 * How a consumer stands with its group, from the statistics that librdkafka gives. It is the only way to be told so: the
 * client joins, and joins again, on its own, and says what has failed but never that all is well.
 */
#ifndef WORKER_CONNECTOR_GROUP_H
#define WORKER_CONNECTOR_GROUP_H

#include <stddef.h>

enum group_standing {
    GROUP_UNTOLD,  /* the statistics don't say */
    GROUP_AWAY,    /* its coordinator isn't reached */
    GROUP_OUTSIDE, /* it is, and there is no topic to join for, or joining was refused */
    GROUP_JOINING,
    GROUP_MEMBER /* with partitions or without */
};

/* Statistics are one JSON document, which is changed. */
enum group_standing group_read(char *statistics, size_t size);

#endif
