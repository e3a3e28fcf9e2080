/*
 * Batches and the spool: what a call writes there, what close leaves there, what open finds there.
 */
#ifndef WORKER_CONNECTOR_PLUGIN_SPOOL_TAKE_H
#define WORKER_CONNECTOR_PLUGIN_SPOOL_TAKE_H

#include "worker/connector/plugin/sink_internal.h"
#include "worker/connector/plugin/spool.h"

/* Hands what a crash left behind to the keeper, and remembers who its records were. */
int sink_recover(struct sink *sink, struct error *error);
/* A partition's file is complete: the keeper's from now on. The lock is held, or nobody else has the partition. */
void sink_spool_rotate(struct sink *sink, struct sink_partition *partition);
/* All of them are. */
void sink_spool_rest(struct sink *sink);

#endif
