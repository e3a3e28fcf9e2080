/*
 * One [[topics]] of a definition: a member of its consumer group, and the partitions that the group gives it (spec 5.4).
 * Everything here runs on the worker's loop; librdkafka's threads are behind its queues.
 *
 * A partition is read only when its position is resolved and committed, so an assignment is answered to librdkafka when
 * that is done for all of its partitions; and a revocation only when every commit under way has been answered: one that
 * was sent later, as a member of the next generation, would be believed.
 */
#ifndef WORKER_CONNECTOR_CONSUMER_H
#define WORKER_CONNECTOR_CONSUMER_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/byte_buffer.h"
#include "common/reactor.h"
#include "worker/connector/bucket.h"
#include "worker/connector/definition.h"
#include "worker/connector/kafka_settings.h"
#include "worker/connector/resolver.h"

struct partition;
struct consumer;

/* From the worker's start. */
struct connector_totals {
    uint64_t consumed;  /* records that came */
    uint64_t processed; /* and are up */
    uint64_t filtered;  /* passed over, by on_undecodable */
    uint64_t errors;    /* uploads, commits and connections that failed, and were done again */
    uint64_t files;
    uint64_t bytes;
    uint64_t lost; /* offsets that retention took before they were read */
};

/* What all consumers of a worker share. */
struct connector {
    struct reactor *reactor;
    struct sink_bucket *bucket;
    const struct definition *definition;
    struct consumer **consumers;
    size_t consumer_count;
    struct sink_formatter formatter;
    const struct partition *formatter_for; /* what it is prepared for; NULL: nothing */
    struct byte_buffer headers;            /* scratch */
    struct connector_totals totals;
    struct mono_ms committed; /* the last file that went up; 0: none */
    bool stopping;
    bool failed; /* the worker ends with exit_code, and failure says why */
    int exit_code;
    char failure[512];
};

/* Ends the worker: 2 for what no restart can mend, 1 for what a fresh start resolves. The first counts. */
void connector_fail(struct connector *connector, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum consumer_noted { NOTED_UNKNOWN, NOTED, NOT_NOTED };

struct consumer {
    struct connector *connector;
    const struct definition_topics *topics;
    rd_kafka_t *kafka;
    rd_kafka_queue_t *queue;   /* records and rebalances */
    rd_kafka_queue_t *replies; /* to commits */
    int event;                 /* readable: something is in one of them, or the resolver has answered */
    struct resolver *resolver;
    struct partition **partitions; /* by topic and number */
    size_t partition_count;
    size_t partition_capacity;
    struct partition *last;                     /* that a record came of */
    rd_kafka_topic_partition_list_t *assigning; /* to be answered when all of it may be read; NULL: none */
    rd_kafka_topic_partition_list_t *revoking;  /* to be answered when no commit is under way; NULL: none */
    enum consumer_noted noted;
    unsigned doubts;        /* how often the assignment's logs were looked at that end before what is committed */
    bool probing;           /* a blank note was committed, to be read back */
    size_t commits;         /* under way */
    bool more;              /* the queue may hold more than was taken */
    struct mono_ms blocked; /* since when it can't read: no broker, no place in the group, no positions; 0: it can */
    char why[256];          /* what the client said last, since it last could */
    bool refused;           /* what it said is that the group, or a topic, is closed to it */
    bool closing;
    struct timer retry;
    struct timer tick;
    struct log_limit trouble;
};

/* NULL and *error: a property that librdkafka does not take. */
struct consumer *consumer_create(struct connector *connector, const struct definition_topics *topics,
                                 const struct kafka_settings *settings, uint64_t budget_bytes, struct error *error);
/* Takes up to a batch of what has come. */
void consumer_run(struct consumer *consumer);
/* Nothing more is read; files whose cut is durable go on. */
void consumer_stop(struct consumer *consumer);
/* Nothing is on its way out any more. */
bool consumer_is_idle(const struct consumer *consumer);
/* Leaves the group. */
void consumer_destroy(struct consumer *consumer);

/* ---- for partition.c and assignment.c ---- */

/* Commits; note is NULL for none. partition_committed() is told. */
void consumer_commit(struct consumer *consumer, struct partition *partition, int64_t offset, const char *note);
/* An assignment, of none too, is answered: it can read. */
void consumer_can_read(struct consumer *consumer);
/* Why it may be that it can't. */
void consumer_note(struct consumer *consumer, const char *what, const char *why);
/* The partition is gone: its commits under way tell nobody. */
void consumer_forget(const struct consumer *consumer, const struct partition *partition);
void consumer_pause(const struct consumer *consumer, const struct partition *partition, bool pause);
struct partition *consumer_find(const struct consumer *consumer, const char *topic, int32_t number);

/* assignment.c: librdkafka's callback, and what goes on from it. */
void assignment_rebalance(rd_kafka_t *kafka, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list,
                          void *argument);
/* The resolver has answered. */
void assignment_resolved(struct consumer *consumer, struct resolution *resolution);
/* The probe's commit was answered. */
void assignment_probed(struct consumer *consumer, rd_kafka_resp_err_t code);
/* Answers what can be answered now. */
void assignment_advance(struct consumer *consumer);
/* Drops every partition. */
void assignment_drop_all(struct consumer *consumer);

#endif
