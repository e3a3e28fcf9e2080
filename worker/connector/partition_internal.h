/*
 * What partition.c (its place in the log, and the file in flight) and partition_fill.c (records, and the file that they
 * fill) share. Nobody else includes this.
 */
#ifndef WORKER_CONNECTOR_PARTITION_INTERNAL_H
#define WORKER_CONNECTOR_PARTITION_INTERNAL_H

#include "worker/connector/partition.h"

static inline struct connector *partition_connector(const struct partition *partition)
{
    return partition->consumer->connector;
}

static inline const struct sink_options *partition_options(const struct partition *partition)
{
    return &partition_connector(partition)->definition->options;
}

static inline struct mono_ms partition_now(const struct partition *partition)
{
    return reactor_now(partition_connector(partition)->reactor);
}

static inline void partition_set_timer(struct partition *partition, struct timer *timer, int64_t delay_ms,
                                       void (*fire)(void *))
{
    timer_set(reactor_timers(partition_connector(partition)->reactor), timer,
              (struct mono_ms){partition_now(partition).v + delay_ms}, fire, partition);
}

/* How the file being filled is made: as it is configured, or as it was noted. */

static inline const struct sink_shape *partition_shape(const struct partition *partition)
{
    return partition->cut.rebuilding ? &partition->rebuilt.shape : &partition_options(partition)->shape;
}

static inline enum sink_schema partition_schema(const struct partition *partition)
{
    return partition->cut.rebuilding ? partition->rebuilt.schema : partition->consumer->topics->schema;
}

static inline enum on_undecodable partition_undecodable(const struct partition *partition)
{
    return partition->cut.rebuilding ? partition->rebuilt.on_undecodable
                                     : partition_connector(partition)->definition->on_undecodable;
}

/* partition.c */

/* The file being filled is complete, and cut_can_close(): it goes on its way. */
void partition_take_off(struct partition *partition);

/* partition_fill.c */

/* What the file being filled is made by may be another from here on. */
void partition_shape_changes(const struct partition *partition);
/* There may be room: closes the file where it is full and can go, then takes in what was held. */
void partition_go_on(struct partition *partition);
/* Forgets the records that were held. */
void partition_drop_held(struct partition *partition);
/* The same for good: reads on, and frees what they were held in. */
void partition_release(struct partition *partition);

#endif
