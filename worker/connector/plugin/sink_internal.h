/* What the files of the plugin's sink share. Nobody else includes this. */
#ifndef WORKER_CONNECTOR_PLUGIN_SINK_INTERNAL_H
#define WORKER_CONNECTOR_PLUGIN_SINK_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "worker/connector/plugin/flight.h"
#include "worker/connector/plugin/sink.h"
#include "worker/connector/postcard.h"

struct spool;
struct spool_file;
struct keeper;

struct sink_partition {
    LIST_ENTRY(sink_partition) link; /* in its bucket of the table */
    uint64_t hash;
    char *topic; /* UTF-8, not NUL-terminated */
    size_t topic_size;
    int32_t number;
    const struct sink_partition *rival; /* of another topic, whose files get the same keys; NULL: there is none */
    bool rival_told;
    bool busy;                  /* under the sink's lock: who has it alone touches what follows */
    struct open_file file;      /* the file being filled; with a spool, of its body only what is not on disk yet */
    struct spool_file *spooled; /* where that file is on disk; NULL: nowhere yet */
    struct seen last;           /* the records of the batch before */
    struct seen current;        /* of the one under way */
    struct seen recovered;      /* of what a crash left behind */
    struct sink_formatter formatter;
    uint64_t recovered_batch;
    bool torn;          /* bytes behind the end of the spooled file could not be cut */
    uint32_t note;      /* the number of its note file in the spool, 0: none */
    bool note_is_stale; /* last or recovered has changed since that was written */
};

LIST_HEAD(partition_list, sink_partition);

#define SINK_PROBE_KEY ".picomq-sink-probe"

struct sink_probe {
    struct network_job job;
    struct object_body body;
    bool ended; /* under the sink's lock */
    bool failed;
};

struct sink {
    struct sink_options options;
    pico_log_fn log;
    struct network *network;
    struct lost_keys lost;
    struct sink_probe probe;
    struct keeper *keeper; /* NULL: nothing happens by itself */
    struct spool *spool;   /* NULL: nothing is spooled */
    bool needs_date;       /* a record's time must have one */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* on CLOCK_MONOTONIC: closing, busy, a flight that has ended */
    bool closing;
    struct partition_list *table;
    size_t table_size; /* a power of two */
    size_t partition_count;
};

/* partitions.c. NULL: out of memory. The lock is held. */
struct sink_partition *partition_find(struct sink *sink, struct sink_slice topic, int32_t number);
/* Waits until nobody has it; NULL: the sink is closing, or out of memory (*error says which). */
struct sink_partition *partition_take(struct sink *sink, struct sink_slice topic, int32_t number, struct error *error);
void partition_give(struct sink *sink, struct sink_partition *partition);
/* As partition_take(), whether the sink is closing or not. */
void partition_hold(struct sink *sink, struct sink_partition *partition);
void partitions_free(struct sink *sink);
struct sink_slice partition_topic(const struct sink_partition *partition);

/* A batch being taken in, by the one call that has its partition. */
struct taking {
    struct sink *sink;
    struct sink_partition *partition;
    struct sink_place place;
    struct postcard cursor;
    uint64_t count;
    uint64_t odd_headers; /* records */
    uint64_t odd_payloads;
    uint64_t first_odd;
};

/* consume.c. What is common to all durabilities; 0 or the answer. */
bool taking_is_repeat(const struct sink_partition *partition, uint64_t offset, uint64_t hash);
void taking_note_oddities(struct taking *taking, const struct sink_record *record, unsigned oddities);
/* The records of this call are the batch before from now on. */
void taking_succeeded(struct sink_partition *partition);
/* spool_take.c. Takes it into the spool. */
int32_t take_spooled(struct taking *taking, struct error *error);

/* Makes a flight of a partition's finished file, which is empty afterwards. QS_ERROR_INPUT where it has no key. */
int sink_prepare_flight(struct sink *sink, struct sink_partition *partition, struct flight *flight,
                        struct error *error);

/* For pthread_cond_timedwait() on sink->changed. */
struct timespec sink_timespec(struct mono_ms at);

#endif
