/*
 * Queues themselves: list, configure, delete, and what retention takes from them.
 */
#ifndef DEVBROKER_QUEUES_H
#define DEVBROKER_QUEUES_H

#include "broker.h"

/* Deletes the segments that every queue's retention lets go of now; returns how many records went. */
int64_t queues_retain(struct broker *broker);

#endif
