/*
 * Inside of the scanner: the same two functions three times, for json_scan.c to choose from and for tests to compare,
 * and what all three share.
 */
#ifndef COMMON_JSON_SCAN_INNER_H
#define COMMON_JSON_SCAN_INNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json_scan.h"

/* An array or object that begins at *start: the byte after its last, or NULL as json_scan_value(). */
typedef const char *json_scan_container(struct json_scan *scan, const char *start, const char *end, bool *line_breaks);
/* What stands behind a string's opening quote: the byte after its closing one, or NULL. *escaped: it has a backslash. */
typedef const char *json_scan_rest(const char *start, const char *end, bool *escaped);

json_scan_container json_scan_container_plain;
json_scan_rest json_scan_rest_plain;
#ifdef __x86_64__
json_scan_container json_scan_container_sse2;
json_scan_rest json_scan_rest_sse2;
json_scan_container json_scan_container_avx2; /* these two where json_scan_has_avx2() */
json_scan_rest json_scan_rest_avx2;
bool json_scan_has_avx2(void);
#endif

/* A block of 64 bytes as masks: bit i is byte i. */
struct json_classes {
    uint64_t quote;
    uint64_t backslash;
    uint64_t blank;   /* 0x20 alone */
    uint64_t control; /* below 0x20 */
    uint64_t comma;
    uint64_t colon;
    uint64_t open;  /* { [ */
    uint64_t close; /* } ] */
    uint64_t high;  /* 0x80 and above */
};

/* Whether a number, true, false or null begins at *start, as a member of a container, with what may stand behind it: false
 * too where the text ends first. */
bool json_scan_member(const char *start, const char *end);
/* Not 0 for those bytes. */
extern const unsigned char json_scan_may_follow[256];

/* The escape whose backslash is at *start is well-formed and ends before `end`. */
bool json_scan_escape(const char *start, const char *end);

/* Nesting is kept 64 levels at a time: writes down the levels up to `depth`, a multiple of 64 (false if out of memory),
 * and gives them back. */
bool json_scan_spill(struct json_scan *scan, size_t depth, uint64_t levels);
uint64_t json_scan_reload(const struct json_scan *scan, size_t depth);

#endif
