/*
 * JSON for tests: see json_cases.h. The reference reads as RFC 8259 is written, one byte and one rule at a time.
 */
#include "json_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- the reference ---- */

struct reader {
    const char *at;
    const char *end;
    bool breaks;
};

static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool accept(struct reader *r, int c)
{
    if (peek(r) != c) {
        return false;
    }
    r->at++;
    return true;
}

static void blanks(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' || peek(r) == '\r') {
        r->breaks |= peek(r) == '\n' || peek(r) == '\r';
        r->at++;
    }
}

static bool digits(struct reader *r)
{
    const char *start = r->at;
    while (peek(r) >= '0' && peek(r) <= '9') {
        r->at++;
    }
    return r->at > start;
}

static bool number(struct reader *r)
{
    accept(r, '-');
    if (!accept(r, '0') && !digits(r)) {
        return false;
    }
    if (accept(r, '.') && !digits(r)) {
        return false;
    }
    if (accept(r, 'e') || accept(r, 'E')) {
        if (!accept(r, '+')) {
            accept(r, '-');
        }
        return digits(r);
    }
    return true;
}

static bool literal(struct reader *r, const char *word)
{
    for (; *word != '\0'; word++) {
        if (!accept(r, *word)) {
            return false;
        }
    }
    return true;
}

static bool continuation(struct reader *r, int low, int high)
{
    int c = peek(r);
    r->at++;
    return c >= low && c <= high;
}

/* The table of RFC 3629, section 4. */
static bool character(struct reader *r)
{
    int c = peek(r);
    if (c < 0x20) {
        return false;
    }
    r->at++;
    if (c < 0x80) {
        return true;
    }
    if (c >= 0xC2 && c <= 0xDF) {
        return continuation(r, 0x80, 0xBF);
    }
    if (c >= 0xE0 && c <= 0xEF) {
        return continuation(r, c == 0xE0 ? 0xA0 : 0x80, c == 0xED ? 0x9F : 0xBF) && continuation(r, 0x80, 0xBF);
    }
    if (c >= 0xF0 && c <= 0xF4) {
        return continuation(r, c == 0xF0 ? 0x90 : 0x80, c == 0xF4 ? 0x8F : 0xBF) && continuation(r, 0x80, 0xBF) &&
               continuation(r, 0x80, 0xBF);
    }
    return false;
}

static bool escape(struct reader *r)
{
    int c = peek(r);
    if (c <= 0 || c > 0x7F || strchr("\"\\/bfnrtu", c) == NULL) {
        return false;
    }
    r->at++;
    for (int i = 0; c == 'u' && i < 4; i++) {
        int hex = peek(r);
        if (hex <= 0 || hex > 0x7F || strchr("0123456789abcdefABCDEF", hex) == NULL) {
            return false;
        }
        r->at++;
    }
    return true;
}

static bool string(struct reader *r)
{
    if (!accept(r, '"')) {
        return false;
    }
    while (!accept(r, '"')) {
        if (peek(r) < 0 || (accept(r, '\\') ? !escape(r) : !character(r))) {
            return false;
        }
    }
    return true;
}

static bool scalar(struct reader *r)
{
    switch (peek(r)) {
    case '"': return string(r);
    case 'n': return literal(r, "null");
    case 't': return literal(r, "true");
    case 'f': return literal(r, "false");
    default: return number(r);
    }
}

static bool key(struct reader *r)
{
    blanks(r);
    bool found = string(r);
    blanks(r);
    found = found && accept(r, ':');
    blanks(r);
    return found;
}

/* Behind a value: closes what ends there, and goes on to where the next value begins. False where neither is. */
static bool after_value(struct reader *r, const char *stack, size_t *depth)
{
    while (*depth > 0) {
        blanks(r);
        if (accept(r, ',')) {
            if (stack[*depth - 1] == '{') {
                return key(r);
            }
            blanks(r);
            return true;
        }
        if (!accept(r, stack[*depth - 1] == '{' ? '}' : ']')) {
            return false;
        }
        --*depth;
    }
    return true;
}

static bool value(struct reader *r, char *stack)
{
    size_t depth = 0;
    do {
        int c = peek(r);
        if (c == '{' || c == '[') {
            r->at++;
            stack[depth++] = (char)c;
            blanks(r);
            if (peek(r) != (c == '{' ? '}' : ']')) {
                if (c == '{' && !key(r)) {
                    return false;
                }
                continue;
            }
        } else if (!scalar(r)) {
            return false;
        }
        if (!after_value(r, stack, &depth)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

const char *reference_value(const char *at, const char *end, bool *breaks)
{
    struct reader reader = {at, end, false};
    static char *stack;
    static size_t room;
    if ((size_t)(end - at) >= room) {
        room = (size_t)(end - at) + 4096;
        free(stack);
        stack = malloc(room);
        ck_assert_ptr_nonnull(stack);
    }
    bool found = value(&reader, stack);
    *breaks = reader.breaks;
    return found && reader.at <= end ? reader.at : NULL;
}

/* ---- cases ---- */

const char *const json_accepted[] = {
    "{}",
    "[]",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "12345678901234567890",
    "1e400",
    "1E+2",
    "1.5e-7",
    "0.0",
    "\"\"",
    "\"a\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\\/\\u0041\"",
    "\"\x7F\"",
    "\"\xE2\x80\xA8\"",
    "{\"a\":1,\"a\":2}",
    "{\"\":\"\"}",
    " [ ] ",
    "{ }",
    "[1,2]",
    "[[],{}]",
    "{\"a\":{\"b\":[{}]}}",
    "{\r\n\t\"a\" : 1 ,\n\"b\":[\n1\n,\r2]\n}\n",
    "[\"]\",\"}\",\"[\\\"\"]",
    "[\"\\\\\",\"\\\\\\\\\"]",
    "[-0,0e0,10]",
    "[\"0123456789012345678901234567890123456789012345678901234567890123456789\",null]",
    "{\"k\":\"\xE3\x81\x82\xE3\x82\x8A\xE3\x81\x8C\xE3\x81\xA8\xE3\x81\x86 \xD0\xBF\xD1\x80\xD0\xB8\xF0\x9F\x98\x80\"}",
    NULL,
};

const char *const json_refused[] = {
    "",
    " ",
    "{",
    "[",
    "\"",
    "}",
    "]",
    ",",
    ":",
    "nul",
    "nulll",
    "tru",
    "True",
    "falsey",
    "-",
    "+1",
    "01",
    "-01",
    ".5",
    "1.",
    "1.e1",
    "1e",
    "1e+",
    "0x1",
    "NaN",
    "Infinity",
    "1 2",
    "[1 2]",
    "[1,]",
    "[,1]",
    "[,]",
    "{,}",
    "{\"a\":1,}",
    "{\"a\"}",
    "{\"a\":}",
    "{:1}",
    "{1:1}",
    "{a:1}",
    "{\"a\" 1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\",\"b\"}",
    "[\"a\":1]",
    "{\"a\":1]",
    "[1}",
    "[}",
    "{]",
    "[[]",
    "[]]",
    "{}{}",
    "['a']",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\\"",
    "\"a\nb\"",
    "\"\t\"",
    "[\"a\nb\"]",
    "[\"\x1F\"]",
    "[\"\xFF\"]",
    "[\"\xC0\xAF\"]",
    "[\"\xED\xA0\x80\"]",
    "[\"\xE0\x80\x80\"]",
    "[\"\xF4\x90\x80\x80\"]",
    "[\"\xE3\x81\"]",
    "[\xE3\x81\x82]",
    "[\x0B]",
    "[\x0C 1]",
    "[1\x01]",
    "[\"a\"\"b\"]",
    "[null\"a\"]",
    "[\"a\"null]",
    "[1\"a\"]",
    "[1[]]",
    "[[]1]",
    "[{}[]]",
    "[nulltrue]",
    "[\\n]",
    "[\\\"a\"]",
    "{\"a\":1:2}",
    "{\"a\"::1}",
    "[1,,2]",
    "[truefalse]",
    "[1e5e5]",
    "[1.5.5]",
    "[--1]",
    "[1-]",
    "[#]",
    "/**/[]",
    "[1]/",
    NULL,
};

/* ---- random ---- */

uint64_t random_next(struct random *random)
{
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

size_t random_below(struct random *random, size_t limit)
{
    return (size_t)(random_next(random) % limit);
}

struct writer {
    struct random *random;
    char *at;
    char *end;
};

static size_t left(const struct writer *w)
{
    return (size_t)(w->end - w->at);
}

static void put(struct writer *w, const char *text)
{
    size_t size = strlen(text);
    memcpy(w->at, text, size);
    w->at += size;
}

#define PICK(w, list) (list)[random_below((w)->random, sizeof(list) / sizeof *(list))]

static void put_blanks(struct writer *w)
{
    static const char *const some[] = {"", "", "", "", "", "", " ", "\n", "\r\n", "\t", "  ", "\n        "};
    put(w, PICK(w, some));
}

static void put_string(struct writer *w)
{
    static const char *const pieces[] = {"a",
                                         "bc",
                                         "plain text ",
                                         "0123456789abcdef",
                                         "a longer piece of text, to get over the end of a block",
                                         "}",
                                         "]{",
                                         ",",
                                         ":",
                                         "\\\"",
                                         "\\\\",
                                         "\\n",
                                         "\\/",
                                         "\\b",
                                         "\\u00e9",
                                         "\\u0041",
                                         "\\ud83d\\ude00",
                                         "\\uD800",
                                         "\\udfff",
                                         "\\u001F",
                                         "\\t",
                                         "\\u0022",
                                         "\x7F",
                                         "\xC3\xA9",
                                         "\xE0\xA0\x80",
                                         "\xED\x9F\xBF",
                                         "\xEF\xBF\xBF",
                                         "\xF0\x90\x80\x80",
                                         "\xF4\x8F\xBF\xBF",
                                         "\xE3\x81\x82\xE3\x82\x8A\xE3\x81\x8C",
                                         "\xD0\xBF\xD1\x80\xD0\xB8"};
    size_t count = random_below(w->random, 12);
    put(w, "\"");
    for (size_t i = 0; i < count && left(w) > 64; i++) {
        put(w, PICK(w, pieces));
    }
    put(w, "\"");
}

static void put_scalar(struct writer *w)
{
    static const char *const scalars[] = {"null",
                                          "true",
                                          "false",
                                          "0",
                                          "-0",
                                          "1",
                                          "-12",
                                          "3.25",
                                          "1e400",
                                          "1E-7",
                                          "2.5e+3",
                                          "12345678901234567890",
                                          "1000000000000000000000000000000000000000000001"};
    if (random_below(w->random, 2) == 0) {
        put_string(w);
    } else {
        put(w, PICK(w, scalars));
    }
}

static void put_value(struct writer *w, unsigned depth)
{
    if (depth == 0 || left(w) < 512 || random_below(w->random, 3) == 0) {
        put_scalar(w);
        return;
    }
    bool object = random_below(w->random, 2) == 0;
    size_t count = random_below(w->random, 8);
    put(w, object ? "{" : "[");
    put_blanks(w);
    for (size_t i = 0; i < count && left(w) > 512; i++) {
        put(w, i > 0 ? "," : "");
        put_blanks(w);
        if (object) {
            put_string(w);
            put_blanks(w);
            put(w, ":");
            put_blanks(w);
        }
        put_value(w, depth - 1);
        put_blanks(w);
    }
    put(w, object ? "}" : "]");
}

size_t generate_json(struct random *random, char *out, size_t room)
{
    struct writer writer = {random, out, out + room};
    put_value(&writer, 1 + (unsigned)random_below(random, 5));
    return (size_t)(writer.at - out);
}

size_t generate_string(struct random *random, char *out, size_t room)
{
    struct writer writer = {random, out, out + room};
    put_string(&writer);
    return (size_t)(writer.at - out);
}

size_t damage(struct random *random, char *text, size_t size)
{
    static const char bytes[] = "{}[],:\"\\ \n\t01-.eEnulltruefs/\x1F\x80\xBF\xC3\xE3\xED\xF0\xF5";
    char c = bytes[random_below(random, sizeof bytes)]; /* the NUL with them */
    size_t at = random_below(random, size + 1);
    switch (random_below(random, 3)) {
    case 0:
        memmove(text + at + 1, text + at, size - at);
        text[at] = c;
        return size + 1;
    case 1:
        if (at < size) {
            memmove(text + at, text + at + 1, size - at - 1);
            return size - 1;
        }
        return size;
    default:
        if (at < size) {
            text[at] = c;
        }
        return size;
    }
}

/* ---- tar ---- */

bool next_tar_file(const char *archive, size_t size, struct tar_file *file)
{
    enum { TAR_BLOCK = 512, TAR_SIZE = 124, TAR_TYPE = 156 };
    while (file->next + TAR_BLOCK <= size && archive[file->next] != '\0') {
        const char *header = archive + file->next;
        file->name = header;
        file->bytes = header + TAR_BLOCK;
        file->size = strtoul(header + TAR_SIZE, NULL, 8);
        ck_assert_uint_le(file->size, size - file->next - TAR_BLOCK);
        file->next += TAR_BLOCK + (file->size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        if (header[TAR_TYPE] == '0' || header[TAR_TYPE] == '\0') {
            return true;
        }
    }
    return false;
}
