/*
 * One answer: a status and a body, which is text with slices of segments between.
 *
 * Small slices are copied, large ones are sent from the segment itself, which the answer holds a reference to.
 */
#ifndef DEVBROKER_ANSWER_H
#define DEVBROKER_ANSWER_H

#include "store.h"
#include "text.h"

struct answer_piece {
    struct segment *segment; /* NULL: of the answer's own text */
    size_t start;
    size_t size;
};

struct answer {
    unsigned status;
    int retry_after; /* seconds; negative is none */
    int64_t entries; /* how many the call asked for: entries, operations or items */
    struct text text;
    struct answer_piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
    size_t text_covered;  /* how much of text is in pieces already */
    size_t segment_bytes; /* in pieces of segments */
};

void answer_start(struct answer *answer);
void answer_free(struct answer *answer);
/* Replaces whatever there is by {"error":"…"}. */
void answer_error(struct answer *answer, unsigned status, const char *message);
/* The records [first, last) of a segment, commas between, and before the first one when comma is true. */
void answer_add_records(struct answer *answer, struct segment *segment, uint32_t first, uint32_t last, bool comma);
size_t answer_size(const struct answer *answer);
/* The body in one piece: after this, all of it is text. For faults that need to spoil it. */
void answer_flatten(struct answer *answer);
/* Ends the last piece of text; the pieces then are the body in order. With no piece the text is all of it. */
void answer_finish(struct answer *answer);

#endif
