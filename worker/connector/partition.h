/*
 * A partition that this worker reads: its records become files as cut.h says, and files go up. While one is on its way
 * the next one fills; the partition pauses when that is full too.
 */
#ifndef WORKER_CONNECTOR_PARTITION_H
#define WORKER_CONNECTOR_PARTITION_H

#include "common/timers.h"
#include "worker/connector/consumer.h"
#include "worker/connector/cut.h"
#include "worker/connector/cut_note.h"
#include "worker/connector/open_file.h"
#include "worker/connector/upload.h"

struct partition {
    struct consumer *consumer;
    char *topic;
    int32_t number;
    char *left_out; /* why none of its records can have a key; NULL: they can */
    struct cut cut;
    struct cut_note rebuilt; /* of the file being rebuilt */
    struct open_file filling;
    bool full; /* the file being filled is complete */
    struct open_file flying;
    struct cut_note flight; /* of the file in flight */
    uint64_t flight_bytes;
    struct object_body flight_body;
    struct sink_upload *upload;
    struct bucket_call *asked;
    rd_kafka_message_t **held; /* records that came while the file was full, in order */
    size_t held_count;
    size_t held_capacity;
    bool paused;
    bool given_up;         /* while stopping: the upload failed, and the next start does it again */
    struct mono_ms since;  /* that something waits to go up; 0: nothing does */
    struct mono_ms landed; /* its last file; 0: none did yet */
    int64_t end;           /* of the log, as last seen; CUT_NO_OFFSET: not yet */
    struct timer retry;
    struct timer age;
    struct log_limit trouble;
    struct log_limit odd;
};

struct partition *partition_create(struct consumer *consumer, const char *topic, int32_t number);
/* One that is left out has a position, and owes a file from its first record on. */
bool partition_is_left_out(const struct partition *partition);
/* What is not durable is dropped. */
void partition_destroy(struct partition *partition);

/* Its place in the log and in the group is known. */
void partition_resolve(struct partition *partition, const struct resolved_partition *found);
/* Takes the record, and its memory. */
void partition_take(struct partition *partition, rd_kafka_message_t *message);
/* There is nothing in the log from `offset` on. */
void partition_reached(struct partition *partition, int64_t offset);
void partition_committed(struct partition *partition, bool good, const char *why);
void partition_stop(struct partition *partition);
bool partition_is_idle(const struct partition *partition);
/* How long it has owed a file, spec 5.4; 0: it owes none. */
int64_t partition_late_ms(const struct partition *partition, struct mono_ms now);
/* Its last file; or now, where it is through its log and owes none. 0: neither. */
struct mono_ms partition_fresh(const struct partition *partition, struct mono_ms now);

#endif
