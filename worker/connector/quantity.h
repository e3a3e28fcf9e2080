/*
 * Sizes and durations as people write them (spec 5.2).
 *
 *     size       a number, with or without a decimal fraction and a unit: `8MiB`, `10 MB`, `1.5MiB`, `8M`, `8Mi`, `512`.
 *                B; K KB, M MB, G GB, T TB, P PB, E EB are powers of 1000; with an i behind the letter, of 1024. Any case,
 *                always bytes; what isn't a whole number of them is rounded up.
 *     duration   one or more numbers with a unit: `1s`, `500ms`, `1m 30s`, `1.5s`; or 0. ns us ms s m h d w M y and their
 *                longer names; a month is 30.44 days, a year 365.25. Rounded up to milliseconds.
 *
 * Blanks may stand before, between and behind.
 */
#ifndef WORKER_CONNECTOR_QUANTITY_H
#define WORKER_CONNECTOR_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* False where it isn't one, or more than 64 bits hold; *out is then untouched. */
bool quantity_parse_size(const char *text, uint64_t *bytes);
bool quantity_parse_duration(const char *text, int64_t *milliseconds);

#endif
