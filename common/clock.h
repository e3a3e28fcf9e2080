/*
 * Three kinds of time that never mix, so they are three types.
 */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Time on the log's clock, microseconds since 1970-01-01T00:00:00Z. It comes from the broker and from nowhere else
 * (spec 2.5, 3.3): nothing converts one of the other two clocks into it. */
struct broker_us {
    int64_t v;
};

/* This machine's calendar: logs, committedAt, health. May jump. */
struct wall_ms {
    int64_t v;
};

/* CLOCK_MONOTONIC: timers and backoff. Means nothing outside this machine's uptime. */
struct mono_ms {
    int64_t v;
};

/* The earlier of two deadlines into *deadline; *any says whether it holds one yet. */
void clock_sooner(struct mono_ms *deadline, bool *any, struct mono_ms other);

struct wall_ms clock_wall(void);
struct mono_ms clock_mono(void);

#define CLOCK_TEXT_SIZE 28 /* "2026-09-04T10:03:41.918204Z" and its NUL */

/* Reads `YYYY-MM-DDTHH:MM:SS[.f{1,6}](Z|+00:00)` (spec 1.2, 1.4), size bytes, nothing before or after. False where it
 * is anything else: a day that the month doesn't have, second 60, another offset. Never reads past size. */
bool clock_parse_broker(const char *text, size_t size, struct broker_us *out);

/* The same text as this machine's calendar has it, without what is below a millisecond. */
bool clock_parse_wall(const char *text, size_t size, struct wall_ms *out);

/* Writes the 27 characters of the lake's spelling (six fractional digits and Z, spec 2.2) and a NUL. Years 0000-9999;
 * anything outside is clamped to the nearer end. */
void clock_format_broker(struct broker_us time, char out[CLOCK_TEXT_SIZE]);

/* As above with three digits of milliseconds followed by three zeros: `2026-09-04T10:05:07.412000Z` (committedAt). */
void clock_format_wall(struct wall_ms time, char out[CLOCK_TEXT_SIZE]);

#endif
