/*
 * Reading clocks, and the two spellings of time that the sink reads and writes: see clock.h.
 *
 * Days are counted in the proleptic Gregorian calendar with years that begin in March, so that the leap day is the last
 * of its year: no table of months, no loop, and exact over the four-digit years that the spellings can hold.
 */
#include "common/clock.h"

#include <time.h>

#define MICROSECONDS 1000000
#define DAY_SECONDS  86400
/* 0000-01-01T00:00:00.000000Z and 9999-12-31T23:59:59.999999Z */
#define EARLIEST_US (-62167219200 * (int64_t)MICROSECONDS)
#define LATEST_US   (253402300800 * (int64_t)MICROSECONDS - 1)

static int64_t clock_read(clockid_t which)
{
    struct timespec now;
    if (clock_gettime(which, &now) != 0) {
        return 0; /* both clocks exist on every Linux */
    }
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct wall_ms clock_wall(void)
{
    return (struct wall_ms){clock_read(CLOCK_REALTIME)};
}

struct mono_ms clock_mono(void)
{
    return (struct mono_ms){clock_read(CLOCK_MONOTONIC)};
}

void clock_sooner(struct mono_ms *deadline, bool *any, struct mono_ms other)
{
    if (!*any || other.v < deadline->v) {
        *deadline = other;
        *any = true;
    }
}

/* Days from 1970-01-01, year 0 … 9999. */
static int64_t days_from_date(int year, int month, int day)
{
    int from_march = month > 2 ? month - 3 : month + 9;
    int64_t y = year + 400 - (month <= 2); /* one era more, so that January of year 0 isn't below zero */
    int64_t day_of_year = (153 * from_march + 2) / 5 + day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719468 - 146097;
}

static void date_from_days(int64_t days, int *year, int *month, int *day)
{
    int64_t shifted = days + 719468 + 146097;
    int64_t era = shifted / 146097;
    int64_t in_era = shifted % 146097;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t day_of_year = in_era - (365 * y + y / 4 - y / 100);
    int64_t from_march = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * from_march + 2) / 5 + 1);
    *month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    *year = (int)(y + (era - 1) * 400 + (*month <= 2));
}

static int days_of_month(int year, int month)
{
    if (month == 2) {
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    }
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* -1 where one of the `count` bytes is no digit. */
static int read_digits(const char *text, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9) {
            return -1;
        }
        value = value * 10 + (int)digit;
    }
    return value;
}

/* What follows the seconds: `.f{1,6}` or nothing, then the zone. -1 where it is anything else. */
static int read_fraction_and_zone(const char *text, size_t size)
{
    size_t at = 0;
    int fraction = 0;
    if (size > 0 && text[0] == '.') {
        int digits = 0;
        for (at = 1; at < size && digits < 6 && text[at] >= '0' && text[at] <= '9'; at++, digits++) {
            fraction = fraction * 10 + (text[at] - '0');
        }
        if (digits == 0) {
            return -1;
        }
        for (; digits < 6; digits++) {
            fraction *= 10;
        }
    }
    if (size - at == 1 && text[at] == 'Z') {
        return fraction;
    }
    static const char utc[] = "+00:00";
    if (size - at != sizeof utc - 1) {
        return -1;
    }
    for (size_t i = 0; i < sizeof utc - 1; i++) {
        if (text[at + i] != utc[i]) {
            return -1;
        }
    }
    return fraction;
}

bool clock_parse_broker(const char *text, size_t size, struct broker_us *out)
{
    if (size < sizeof "2026-09-04T10:03:41Z" - 1 || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':' || text[16] != ':') {
        return false;
    }
    int year = read_digits(text, 4);
    int month = read_digits(text + 5, 2);
    int day = read_digits(text + 8, 2);
    int hour = read_digits(text + 11, 2);
    int minute = read_digits(text + 14, 2);
    int second = read_digits(text + 17, 2);
    int fraction = read_fraction_and_zone(text + 19, size - 19);
    if (year < 0 || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month)) {
        return false;
    }
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 || fraction < 0) {
        return false;
    }
    int64_t seconds = days_from_date(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    out->v = seconds * MICROSECONDS + fraction;
    return true;
}

bool clock_parse_wall(const char *text, size_t size, struct wall_ms *out)
{
    struct broker_us time;
    if (!clock_parse_broker(text, size, &time)) {
        return false;
    }
    out->v = time.v / 1000;
    return true;
}

static char *write_digits(char *out, int value, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + count;
}

static void format_microseconds(int64_t time, char out[CLOCK_TEXT_SIZE])
{
    if (time < EARLIEST_US) {
        time = EARLIEST_US;
    }
    if (time > LATEST_US) {
        time = LATEST_US;
    }
    int64_t since_earliest = time - EARLIEST_US;
    int64_t seconds = since_earliest / MICROSECONDS;
    int in_day = (int)(seconds % DAY_SECONDS);
    int year;
    int month;
    int day;
    date_from_days(seconds / DAY_SECONDS + EARLIEST_US / MICROSECONDS / DAY_SECONDS, &year, &month, &day);
    char *at = write_digits(out, year, 4);
    *at++ = '-';
    at = write_digits(at, month, 2);
    *at++ = '-';
    at = write_digits(at, day, 2);
    *at++ = 'T';
    at = write_digits(at, in_day / 3600, 2);
    *at++ = ':';
    at = write_digits(at, in_day / 60 % 60, 2);
    *at++ = ':';
    at = write_digits(at, in_day % 60, 2);
    *at++ = '.';
    at = write_digits(at, (int)(since_earliest % MICROSECONDS), 6);
    *at++ = 'Z';
    *at = '\0';
}

void clock_format_broker(struct broker_us time, char out[CLOCK_TEXT_SIZE])
{
    format_microseconds(time.v, out);
}

void clock_format_wall(struct wall_ms time, char out[CLOCK_TEXT_SIZE])
{
    int64_t limit = LATEST_US / 1000;
    int64_t ms = time.v > limit ? limit : time.v < -limit ? -limit : time.v;
    format_microseconds(ms * 1000, out);
}
