/* Sizes and stretches of time as a person reads them: show.h. */
#include "supervisor/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

void show_bytes(uint64_t bytes, char out[SHOW_SIZE])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        (void)snprintf(out, SHOW_SIZE, bytes == 0 ? "0" : "%d B", (int)bytes);
        return;
    }
    /* 1023.95 and more would be printed as 1024. */
    while (value >= 1023.95) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, SHOW_SIZE, value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* The larger unit, and the smaller one where it isn't zero. */
static void show_pair(int64_t large, char large_unit, int64_t small, char small_unit, char out[SHOW_SIZE])
{
    if (small == 0) {
        (void)snprintf(out, SHOW_SIZE, "%" PRId64 "%c", large, large_unit);
    } else {
        (void)snprintf(out, SHOW_SIZE, "%" PRId64 "%c %" PRId64 "%c", large, large_unit, small, small_unit);
    }
}

void show_stretch(int64_t milliseconds, char out[SHOW_SIZE])
{
    int64_t ms = milliseconds < 0 ? 0 : milliseconds;

    if (ms < 10 * SECOND_MS) {
        (void)snprintf(out, SHOW_SIZE, "%" PRId64 ".%" PRId64 "s", ms / SECOND_MS, ms % SECOND_MS / 100);
    } else if (ms < 2 * MINUTE_MS) {
        (void)snprintf(out, SHOW_SIZE, "%" PRId64 "s", ms / SECOND_MS);
    } else if (ms < HOUR_MS) {
        (void)snprintf(out, SHOW_SIZE, "%" PRId64 "m", ms / MINUTE_MS);
    } else if (ms < DAY_MS) {
        show_pair(ms / HOUR_MS, 'h', ms % HOUR_MS / MINUTE_MS, 'm', out);
    } else {
        show_pair(ms / DAY_MS, 'd', ms % DAY_MS / HOUR_MS, 'h', out);
    }
}

void show_time(const char *time, char out[SHOW_SIZE])
{
    struct broker_us parsed;

    if (clock_parse_broker(time, strlen(time), &parsed)) {
        (void)snprintf(out, SHOW_SIZE, "%.10s %.8s", time, time + 11);
    } else {
        (void)snprintf(out, SHOW_SIZE, "?");
    }
}

size_t show_width(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0u) != 0x80u;
    }
    return width;
}
