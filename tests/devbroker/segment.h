/*
 * A segment's text: rendered once, when it is written, and taken apart again for the export.
 */
#ifndef DEVBROKER_SEGMENT_H
#define DEVBROKER_SEGMENT_H

#include "store.h"

#define SEGMENT_TEXT_LIMIT UINT32_MAX

/* One reference, the caller's. A segment whose text would pass SEGMENT_TEXT_LIMIT ends the process with one line. */
struct segment *segment_render(int64_t offset, int64_t ts_us, const struct record *records, size_t count);
/* The record's text, without the comma before it. */
struct slice segment_record(const struct segment *segment, uint32_t index);
/* Its pieces: the transaction id with its quotes, and the payload. */
void segment_pieces(const struct segment *segment, uint32_t index, struct slice *transaction_id, struct slice *payload);

#endif
