/*
 * The thread that does what no call waits for: it closes files that got old (max_file_age), and takes the spool's files
 * to the bucket, for ever if need be (spec 5.3).
 *
 * It may block on a disk, and holds the sink's lock over nothing that does.
 */
#ifndef WORKER_CONNECTOR_PLUGIN_KEEPER_H
#define WORKER_CONNECTOR_PLUGIN_KEEPER_H

#include "worker/connector/plugin/sink_internal.h"

/* A file that the keeper has in flight, and what close has. */
struct keeper_flight {
    struct flight flight; /* first: a flight * is a keeper_flight * */
    TAILQ_ENTRY(keeper_flight) link;
    struct sink *sink;
    struct spool_file *spooled;       /* NULL: of memory alone */
    struct sink_partition *partition; /* whose file of age it is, else NULL */
    bool last_round;                  /* of the spool's: what fails is left for the next open */
    bool ended;                       /* under the sink's lock */
};

/* A flight's done(): marks it as ended and wakes who waits for sink->changed. */
void keeper_flight_ended(struct flight *flight);
TAILQ_HEAD(keeper_flights, keeper_flight);

/* NULL: *error says why. */
struct keeper *keeper_start(struct sink *sink, struct error *error);
/* A file of the spool is complete and durable, and belongs to the keeper from now on. The sink's lock is held. */
void keeper_queue(struct keeper *keeper, struct spool_file *spooled);
/* The sink is being closed and no call is left. With a spool everything that is open or waits is tried once more, until
 * the deadline; what isn't up then stays in the spool. Without, *left gets the files that are in flight, and those that
 * were cut short. The thread is gone afterwards. */
void keeper_stop(struct keeper *keeper, struct mono_ms deadline, struct keeper_flights *left);

#endif
