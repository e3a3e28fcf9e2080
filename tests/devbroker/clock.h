/*
 * The broker's own clock: microseconds since 1970, started from the calendar and carried on by the monotonic clock, so
 * that a step of this machine's calendar never breaks the promise of safeTime. Only clock_shift() moves it, on purpose.
 *
 * Stamps are the ts of segments: each is later than every stamp before it (1.x: unless the clock was shifted back),
 * which makes them unique, and makes "the greatest stamp applied" a sound safeTime for 2.x.
 */
#ifndef DEVBROKER_CLOCK_H
#define DEVBROKER_CLOCK_H

#include "text.h"

#define CLOCK_TEXT_SIZE 27 /* YYYY-MM-DDTHH:MM:SS.ffffffZ */

void clock_start(int64_t offset_us, bool always_forward);
int64_t clock_now_us(void);
int64_t clock_offset_us(void);
void clock_set_offset_us(int64_t offset_us);
int64_t clock_stamp(void);            /* a new stamp, at or after now */
void clock_note_stamp(int64_t ts_us); /* a loaded segment's stamp: safeTime of 2.x knows of it */
int64_t clock_last_stamp(void);
int64_t clock_mono_ms(void);

void clock_write(char to[CLOCK_TEXT_SIZE], int64_t at_us); /* not terminated */
void clock_add(struct text *text, int64_t at_us);          /* without quotes */
bool clock_parse(struct slice from, int64_t *at_us);       /* 0 to 6 fractional digits; Z or +00:00 */

#endif
