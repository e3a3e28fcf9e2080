/*
 * The encoder (encode.h) on threads, every signal blocked there; finished pieces reach the loop through an eventfd that
 * the reactor watches. `compression_threads`: libzstd's own workers for one job, at least 1 (DESIGN: always nbWorkers >= 1,
 * so the bytes never depend on it). Up to `jobs` jobs run at a time, further ones wait in order.
 */
#ifndef WORKER_ENCODE_THREAD_H
#define WORKER_ENCODE_THREAD_H

#include "common/reactor.h"
#include "worker/encode.h"

struct encoder *encode_thread_create(struct reactor *reactor, int jobs, int compression_threads, struct error *error);
/* Every job must have been ended. */
void encode_thread_destroy(struct encoder *encoder);

#endif
