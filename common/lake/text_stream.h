/*
 * The uncompressed text of a JSON Lines object as a stream (spec 2.2): zstd, gzip, or as it is. Several zstd frames or
 * gzip members one after the other are one text (RFC 8878, 3; RFC 1952, 2.2), frames without a declared size too.
 */
#ifndef COMMON_LAKE_TEXT_STREAM_H
#define COMMON_LAKE_TEXT_STREAM_H

#include "common/lake/object_source.h"
#include "common/settings.h"

struct text_stream;

/* NULL and *error: a source that can't be read forward, a compression that JSON Lines don't have, out of memory. */
struct text_stream *text_stream_open(enum setting_compression compression, const struct object_source *source,
                                     struct error *error);

/* The next bytes, 1 … size of them; *got 0: the text ended, and its last frame was whole. An error says at which byte
 * of the object. */
int text_stream_read(struct text_stream *stream, char *buffer, size_t size, size_t *got, struct error *error);

void text_stream_close(struct text_stream *stream);

#endif
