/*
 * A worker's event loop: timers on CLOCK_MONOTONIC, descriptors, and HTTP transfers (libcurl's multi interface), one
 * thread. Nothing here blocks but reactor_run_once(), in poll.
 */
#ifndef COMMON_REACTOR_H
#define COMMON_REACTOR_H

#include "common/clock.h"
#include "common/error.h"
#include "common/timers.h"

struct reactor;

/* NULL and *error where curl or the kernel refuse. */
struct reactor *reactor_create(struct error *error);
void reactor_destroy(struct reactor *reactor);

/* The reactor's timers, for timer_set(). */
struct timers *reactor_timers(struct reactor *reactor);
/* The time at which this turn of the loop began; moves only between callbacks' turns. */
struct mono_ms reactor_now(const struct reactor *reactor);

typedef void reactor_ready(void *argument, short events); /* POLLIN | POLLOUT | POLLERR | POLLHUP */

/* Watches a descriptor (level-triggered); events 0 stops watching, and nothing is reported of it from then on, not even
 * what this turn has already seen. One watch a descriptor; a further call replaces it. Stop watching before close().
 * 0, or QS_ERROR_SYSTEM (errno says why), QS_ERROR_NO_MEMORY. */
int reactor_watch(struct reactor *reactor, int descriptor, short events, reactor_ready *ready, void *argument);

/* One turn: waits for the next deadline, a descriptor or a transfer, at most limit_ms (-1: no limit), then runs every
 * callback that is due. */
void reactor_run_once(struct reactor *reactor, int64_t limit_ms);

/* The curl multi handle, for http.c alone (CURLM *). The CURLOPT_PRIVATE of every easy handle added to it must point to
 * a struct reactor_transfer: done() is called from the loop, outside of curl, with the CURLcode of a transfer that has
 * ended, and may add and remove any handle. */
void *reactor_curl(struct reactor *reactor);

struct reactor_transfer {
    void (*done)(struct reactor_transfer *transfer, int code);
};

#endif
