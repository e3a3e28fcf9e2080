/* Sizes and durations: quantity.h. */
#include "worker/connector/quantity.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define NS_A_MS UINT64_C(1000000)
#define NS_A_S  UINT64_C(1000000000)

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t') {
        text++;
    }
    return text;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A number that has not met its unit yet. */
struct decimal {
    uint64_t whole;
    const char *fraction; /* its digits, after the point */
    size_t fraction_size;
};

/* Behind the number; NULL where there is none. */
static const char *read_decimal(const char *text, struct decimal *out)
{
    *out = (struct decimal){0};
    if (!is_digit(*text)) {
        return NULL;
    }
    for (; is_digit(*text); text++) {
        if (__builtin_mul_overflow(out->whole, 10, &out->whole) ||
            __builtin_add_overflow(out->whole, (uint64_t)(*text - '0'), &out->whole)) {
            return NULL;
        }
    }
    if (*text == '.') {
        out->fraction = ++text;
        while (is_digit(*text)) {
            text++;
        }
        out->fraction_size = (size_t)(text - out->fraction);
        if (out->fraction_size == 0) {
            return NULL;
        }
    }
    return text;
}

/* number * unit, rounded up. The fraction is taken from its last digit on, so that no step needs more than 64 bits:
 * nine times the largest unit fits. */
static bool scale(const struct decimal *number, uint64_t unit, uint64_t *out)
{
    uint64_t part = 0;
    bool rest = false;
    uint64_t product;

    for (size_t i = number->fraction_size; i > 0; i--) {
        uint64_t sum = (uint64_t)(number->fraction[i - 1] - '0') * unit + part;
        rest = rest || sum % 10 != 0;
        part = sum / 10;
    }
    return !__builtin_mul_overflow(number->whole, unit, &product) &&
           !__builtin_add_overflow(product, part + (rest ? 1 : 0), out);
}

/* The unit at *text, which ends behind it; 0 where it is none. */
static uint64_t size_unit(const char **text)
{
    static const char letters[] = "kmgtpe";
    const char *at = *text;
    uint64_t unit = 1;
    char lower = (char)(*at | 0x20);
    const char *letter = is_letter(*at) ? strchr(letters, lower) : NULL;

    if (letter != NULL) {
        at++;
        bool binary = *at == 'i' || *at == 'I';
        at += binary ? 1 : 0;
        for (const char *power = letters; power <= letter; power++) {
            unit *= binary ? 1024 : 1000;
        }
    }
    if (*at == 'b' || *at == 'B') {
        at++;
    }
    *text = at;
    return is_letter(*at) ? 0 : unit;
}

bool quantity_parse_size(const char *text, uint64_t *bytes)
{
    struct decimal number;
    const char *at = read_decimal(skip_blanks(text), &number);

    if (at == NULL) {
        return false;
    }
    at = skip_blanks(at);
    uint64_t unit = size_unit(&at);
    uint64_t size;
    if (unit == 0 || *skip_blanks(at) != '\0' || !scale(&number, unit, &size)) {
        return false;
    }
    *bytes = size;
    return true;
}

struct duration_unit {
    const char *names; /* with a blank before and behind each */
    uint64_t nanoseconds;
};

static const struct duration_unit duration_units[] = {
    {" ns nsec nanos ", 1},
    {" us usec micros \xc2\xb5s \xce\xbcs ", 1000},
    {" ms msec millis ", NS_A_MS},
    {" s sec secs second seconds ", NS_A_S},
    {" m min mins minute minutes ", 60 * NS_A_S},
    {" h hr hrs hour hours ", 3600 * NS_A_S},
    {" d day days ", 86400 * NS_A_S},
    {" w wk wks week weeks ", 604800 * NS_A_S},
    {" M month months ", 2630016 * NS_A_S},
    {" y yr yrs year years ", 31557600 * NS_A_S},
};

#define UNIT_NAME_MAX 8

/* The unit at *text, which ends behind it; 0 where it is none. */
static uint64_t duration_unit(const char **text)
{
    char wanted[UNIT_NAME_MAX + 3] = " ";
    size_t size = 0;

    while (is_letter((*text)[size]) || ((*text)[size] & 0x80) != 0) {
        if (size == UNIT_NAME_MAX) {
            return 0;
        }
        wanted[1 + size] = (*text)[size];
        size++;
    }
    if (size == 0) {
        return 0;
    }
    wanted[1 + size] = ' ';
    *text += size;
    for (size_t i = 0; i < sizeof duration_units / sizeof *duration_units; i++) {
        if (strstr(duration_units[i].names, wanted) != NULL) {
            return duration_units[i].nanoseconds;
        }
    }
    return 0;
}

bool quantity_parse_duration(const char *text, int64_t *milliseconds)
{
    const char *at = skip_blanks(text);
    uint64_t total = 0;

    if (*at == '0' && *skip_blanks(at + 1) == '\0') {
        *milliseconds = 0;
        return true;
    }
    do {
        struct decimal number;
        uint64_t part;
        at = read_decimal(at, &number);
        if (at == NULL) {
            return false;
        }
        at = skip_blanks(at);
        uint64_t unit = duration_unit(&at);
        if (unit == 0 || !scale(&number, unit, &part) || __builtin_add_overflow(total, part, &total)) {
            return false;
        }
        at = skip_blanks(at);
    } while (*at != '\0');
    *milliseconds = (int64_t)(total / NS_A_MS + (total % NS_A_MS != 0));
    return true;
}
