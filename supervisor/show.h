/*
 * Sizes and stretches of time as a person reads them: in `status` and on the status page. Each number stands in
 * at most SHOW_SIZE - 1 characters.
 */
#ifndef SUPERVISOR_SHOW_H
#define SUPERVISOR_SHOW_H

#include <stddef.h>
#include <stdint.h>

#define SHOW_SIZE 24

/* `0`, `812 B`, `1.2 KiB`, `120 MiB`. */
void show_bytes(uint64_t bytes, char out[SHOW_SIZE]);

/* `0.4s`, `12s`, `16m`, `3h 12m`, `4d 2h`. Below zero is zero. */
void show_stretch(int64_t milliseconds, char out[SHOW_SIZE]);

/* A time as clock.h spells it, to the second: `2026-09-04 10:05:00`; `?` for a text that is no time. */
void show_time(const char *time, char out[SHOW_SIZE]);

/* The columns that a text of visible_text() takes, a character one. */
size_t show_width(const char *text);

#endif
