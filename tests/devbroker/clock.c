/*
 * The broker's clock and the spelling of its times; see clock.h for the contract.
 */
#include "clock.h"

#include <pthread.h>
#include <time.h>

#define US_PER_SECOND INT64_C(1000000)
#define US_PER_DAY    (INT64_C(86400) * US_PER_SECOND)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t calendar_at_start_us;
static int64_t mono_at_start_us;
static int64_t offset_us;
static int64_t last_stamp_us;
static bool never_back;

static int64_t read_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * US_PER_SECOND + now.tv_nsec / 1000;
}

void clock_start(int64_t start_offset_us, bool always_forward)
{
    calendar_at_start_us = read_us(CLOCK_REALTIME);
    mono_at_start_us = read_us(CLOCK_MONOTONIC);
    offset_us = start_offset_us;
    never_back = always_forward;
}

static int64_t now_us(void)
{
    return calendar_at_start_us + (read_us(CLOCK_MONOTONIC) - mono_at_start_us) + offset_us;
}

int64_t clock_now_us(void)
{
    int64_t now;

    pthread_mutex_lock(&lock);
    now = now_us();
    pthread_mutex_unlock(&lock);
    return now;
}

int64_t clock_offset_us(void)
{
    int64_t offset;

    pthread_mutex_lock(&lock);
    offset = offset_us;
    pthread_mutex_unlock(&lock);
    return offset;
}

void clock_set_offset_us(int64_t new_offset_us)
{
    pthread_mutex_lock(&lock);
    /* On 1.x a clock that steps back takes the stamps back with it: tests need a broker that breaks its promise. */
    if (new_offset_us < offset_us && !never_back) {
        last_stamp_us = 0;
    }
    offset_us = new_offset_us;
    pthread_mutex_unlock(&lock);
}

int64_t clock_stamp(void)
{
    int64_t stamp;

    pthread_mutex_lock(&lock);
    stamp = now_us();
    if (stamp <= last_stamp_us) {
        stamp = last_stamp_us + 1;
    }
    last_stamp_us = stamp;
    pthread_mutex_unlock(&lock);
    return stamp;
}

void clock_note_stamp(int64_t ts_us)
{
    pthread_mutex_lock(&lock);
    /* 1.x has no use for stamps of the future: new segments would all be pushed behind them. */
    if (ts_us > last_stamp_us && (never_back || ts_us <= now_us())) {
        last_stamp_us = ts_us;
    }
    pthread_mutex_unlock(&lock);
}

int64_t clock_last_stamp(void)
{
    int64_t stamp;

    pthread_mutex_lock(&lock);
    stamp = last_stamp_us;
    pthread_mutex_unlock(&lock);
    return stamp;
}

int64_t clock_mono_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar; years begin in March so that leap days come last. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
    int64_t era;
    int64_t year_of_era;
    int64_t day_of_year;

    year -= month <= 2;
    era = (year >= 0 ? year : year - 399) / 400;
    year_of_era = year - era * 400;
    day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void date_from_days(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted_month = (5 * day_of_year + 2) / 153;

    *day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    *month = shifted_month + (shifted_month < 10 ? 3 : -9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

static char *digits_write(char *to, int64_t value, size_t width)
{
    for (size_t i = width; i > 0; i--) {
        to[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return to + width;
}

void clock_write(char to[CLOCK_TEXT_SIZE], int64_t at_us)
{
    int64_t days = at_us / US_PER_DAY - (at_us % US_PER_DAY < 0);
    int64_t rest = at_us - days * US_PER_DAY;
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;

    date_from_days(days, &year, &month, &day);
    to = digits_write(to, year, 4);
    *to++ = '-';
    to = digits_write(to, month, 2);
    *to++ = '-';
    to = digits_write(to, day, 2);
    *to++ = 'T';
    to = digits_write(to, rest / US_PER_SECOND / 3600, 2);
    *to++ = ':';
    to = digits_write(to, rest / US_PER_SECOND / 60 % 60, 2);
    *to++ = ':';
    to = digits_write(to, rest / US_PER_SECOND % 60, 2);
    *to++ = '.';
    to = digits_write(to, rest % US_PER_SECOND, 6);
    *to = 'Z';
}

void clock_add(struct text *text, int64_t at_us)
{
    char spelled[CLOCK_TEXT_SIZE];

    clock_write(spelled, at_us);
    text_add(text, spelled, sizeof spelled);
}

static bool digits_read(struct slice *from, size_t width, char after, int64_t *value)
{
    *value = 0;
    if (from->size < width + (after != '\0')) {
        return false;
    }
    for (size_t i = 0; i < width; i++) {
        if (from->at[i] < '0' || from->at[i] > '9') {
            return false;
        }
        *value = *value * 10 + (from->at[i] - '0');
    }
    if (after != '\0' && from->at[width] != after) {
        return false;
    }
    width += after != '\0';
    from->at += width;
    from->size -= width;
    return true;
}

static bool fraction_read(struct slice *from, int64_t *us)
{
    int64_t unit = 100000;

    *us = 0;
    if (from->size == 0 || from->at[0] != '.') {
        return true;
    }
    from->at++;
    from->size--;
    while (from->size > 0 && from->at[0] >= '0' && from->at[0] <= '9') {
        if (unit == 0) {
            return false;
        }
        *us += (from->at[0] - '0') * unit;
        unit /= 10;
        from->at++;
        from->size--;
    }
    return unit < 100000;
}

bool clock_parse(struct slice from, int64_t *at_us)
{
    int64_t year, month, day, hour, minute, second, us;

    if (!digits_read(&from, 4, '-', &year) || !digits_read(&from, 2, '-', &month) ||
        !digits_read(&from, 2, 'T', &day) || !digits_read(&from, 2, ':', &hour) ||
        !digits_read(&from, 2, ':', &minute) || !digits_read(&from, 2, '\0', &second) || !fraction_read(&from, &us)) {
        return false;
    }
    if (!slice_is(from, "Z") && !slice_is(from, "+00:00")) {
        return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 59) {
        return false;
    }
    *at_us = days_from_date(year, month, day) * US_PER_DAY + ((hour * 60 + minute) * 60 + second) * US_PER_SECOND + us;
    return true;
}
