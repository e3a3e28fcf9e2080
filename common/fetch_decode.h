/*
 * Decodes a fetch answer (spec 1.2) in place: the hot path of the whole program.
 */
#ifndef COMMON_FETCH_DECODE_H
#define COMMON_FETCH_DECODE_H

#include "common/json_scan.h"
#include "common/queen_api.h"

/* Reads block->body and fills block->records and entries[0..count) in the order of the request, whose entries are
 * `asked` (every entry is matched by position and checked by queue and partition name; unescaped where the answer
 * spells them with escapes). Keys in any order, unknown keys ignored, at every level.
 *
 * QS_ERROR_BODY, with the byte position and what was expected, where the body isn't that JSON, an entry doesn't match,
 * offsets don't rise or lie below the one asked for, a ts falls, or a record lacks offset, payload or ts. The block is
 * then of no use but to be released. QS_ERROR_NO_MEMORY, QS_ERROR_NO_ROOM (the array of records against the budget,
 * unless may_exceed).
 *
 * The body may be written to while decoding (a spelling that shrinks), never a payload. transactionId missing or null
 * reads as "". */
int fetch_decode(struct json_scan *scan, struct block *block, const struct fetch_request_entry *asked, size_t count,
                 bool may_exceed, struct fetch_entry *entries, struct error *error);

#endif
