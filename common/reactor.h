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

/* Watches a descriptor (level-triggered); events 0 stops watching. One watch a descriptor. */
int reactor_watch(struct reactor *reactor, int descriptor, short events, reactor_ready *ready, void *argument);

/* One turn: waits for the next deadline, a descriptor or a transfer, at most limit_ms (-1: no limit), then runs every
 * callback that is due. */
void reactor_run_once(struct reactor *reactor, int64_t limit_ms);

/* The curl multi handle, for http.c alone (CURLM *). */
void *reactor_curl(struct reactor *reactor);

#endif
