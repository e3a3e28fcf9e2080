/*
 * The records of a redo that doesn't fit into memory, as a source for the encoder (spec 3.3): each partition is read, in
 * name order, just before it is written. A few answers are held at a time, whatever the window weighs.
 *
 * The encoder's thread waits in next() for what the loop fetches; so this needs an encoder that is threaded.
 */
#ifndef WORKER_REDO_STREAM_H
#define WORKER_REDO_STREAM_H

#include "worker/window.h"
#include "worker/world.h"

struct redo_stream;

/* surveyed stays. failed: an answer that can't be what was measured (deleted since), or a refusal: the encoder is told
 * to give up as well. */
struct redo_stream *redo_stream_create(struct world *world, struct name queue, const struct surveyed_run *surveyed,
                                       size_t count, void (*failed)(void *argument, const struct error *error),
                                       void *argument);
struct run_source *redo_stream_source(struct redo_stream *stream);
/* From the first partition again. The encoder must not be in next(). */
void redo_stream_rewind(struct redo_stream *stream);
/* The encoder is done with what it had: fetches on. */
void redo_stream_asked(struct redo_stream *stream);
/* Wakes an encoder that waits; it gives up. Before the encode job is ended. */
void redo_stream_stop(struct redo_stream *stream);
/* After the encode job was ended. NULL is nothing. */
void redo_stream_destroy(struct redo_stream *stream);

#endif
