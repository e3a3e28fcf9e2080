/*
 * Scanning JSON without parsing it: finds where a value ends and proves that it is one (RFC 8259), without a tree, a
 * copy or recursion. Vector instructions are chosen at run time (AVX2, SSE2), plain C elsewhere; all three agree.
 */
#ifndef COMMON_JSON_SCAN_H
#define COMMON_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* Scratch memory for nesting (one bit a level); zero it before first use, free() bits at the end. */
struct json_scan {
    unsigned char *bits;
    size_t capacity; /* levels */
};

struct json_value {
    const char *start;
    size_t size;      /* from its first byte to its last */
    bool line_breaks; /* a raw LF or CR stands between its tokens */
};

/* Scans the value whose first byte is *cursor (blanks before it are the caller's). On success returns the byte after
 * the value's last; NULL where what is there is no JSON value, where `end` comes first, or out of memory for nesting.
 * Strings must be valid UTF-8 without raw bytes below 0x20; escapes must be well-formed (lone surrogates are accepted:
 * "\ud800"); numbers of any length. Never reads at or past `end`. */
const char *json_scan_value(struct json_scan *scan, const char *cursor, const char *end, struct json_value *value);

/* Scans the string whose opening quote is *cursor; *text, *size get what stands between the quotes, *escaped whether
 * there is a backslash in it. Returns the byte after the closing quote or NULL. */
const char *json_scan_string(const char *cursor, const char *end, const char **text, size_t *size, bool *escaped);

/* Skips blank, tab, LF, CR. */
const char *json_skip_blank(const char *cursor, const char *end);

/* Unescapes string contents (well-formed as json_scan_string proved). Writes at most `size` bytes to out, returns how
 * many; out may be text itself. A lone surrogate becomes its three-byte form (WTF-8) so that json_spell_string can give
 * it back. */
size_t json_unescape(const char *text, size_t size, char *out);

/* Size of, and the lake's spelling of a string's contents (spec 2.2): `"`, `\`, \b \f \n \r \t, other bytes below 0x20
 * as \u00xx lower-case, all else as it is (a WTF-8 lone surrogate as \udxxx lower-case). Quotes not included.
 * json_spell_string writes json_spelled_size bytes and returns the end. */
size_t json_spelled_size(const char *text, size_t size);
char *json_spell_string(const char *text, size_t size, char *out);

/* What json_unescape and json_spell_string together make of string contents, in place: the lake's spelling is the
 * shortest there is, so it is never longer than what it replaces. Returns its size; *unescaped_size: what json_unescape
 * would have written. */
size_t json_respell(char *text, size_t size, size_t *unescaped_size);

/* Makes a blank of each line break in JSON, in place, so that it fits on a line: inside of a string neither CR nor LF can
 * stand raw, so those that are there lie between tokens, where a blank means as little (RFC 8259, sections 2 and 7). */
void json_blank_line_breaks(char *json, size_t size);

#endif
