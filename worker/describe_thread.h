/*
 * The describer (describe.h) on a thread of its own, with clients of its own: reading an object back is decompression and
 * scanning of all its bytes, which the loop has no time for. One object at a time; its bytes pass through an unnamed
 * temporary file, since Parquet is read from its end.
 */
#ifndef WORKER_DESCRIBE_THREAD_H
#define WORKER_DESCRIBE_THREAD_H

#include "common/reactor.h"
#include "common/settings.h"
#include "worker/describe.h"

/* The thread is started with the first call. settings must outlive it. */
struct describer *describe_thread_create(struct reactor *reactor, const struct settings *settings, struct error *error);
/* Waits for what is being read. */
void describe_thread_destroy(struct describer *base);

#endif
