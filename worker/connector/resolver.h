/*
 * What the group has committed of partitions, and what their logs hold: librdkafka answers this only to a caller that
 * waits, so a thread of its own does.
 */
#ifndef WORKER_CONNECTOR_RESOLVER_H
#define WORKER_CONNECTOR_RESOLVER_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct resolver;

struct resolved_partition {
    const char *topic; /* of the list that was asked about */
    int32_t partition;
    int64_t committed; /* CUT_NO_OFFSET: none */
    const char *note;  /* the commit's metadata, not ended by a NUL */
    size_t note_size;
    int64_t low; /* the log's first offset, and one past its last that may be read */
    int64_t high;
};

struct resolution {
    struct error error; /* clear, or why there is no answer */
    rd_kafka_topic_partition_list_t *list;
    struct resolved_partition *partitions; /* in the list's order */
    size_t count;
};

/* Writes to `event`, an eventfd, when there is an answer. NULL: *error. */
struct resolver *resolver_create(rd_kafka_t *consumer, int event, struct error *error);
/* One question at a time: a further one replaces what is under way, whose answer is dropped. */
void resolver_ask(struct resolver *resolver, const rd_kafka_topic_partition_list_t *partitions);
/* The answer to the last question, resolution_free(); false while there is none. */
bool resolver_take(struct resolver *resolver, struct resolution *resolution);
void resolution_free(struct resolution *resolution);
/* Ends the thread, which takes as long as the call that it is in: seconds at the most. */
void resolver_destroy(struct resolver *resolver);

#endif
