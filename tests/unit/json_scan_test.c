/*
 * The scanner against a reader of its own kind: a reference that goes byte by byte with a stack, written to be read
 * rather than to be fast. All three forms of the scanner must say what it says, about the published parsing suite
 * ($QUEEN_S3_SHARED/data/json-test-suite.tar.zst, ../shared where the variable isn't set), every short sequence of
 * tokens, generated texts, and those texts damaged. Every text ends where its page ends, before one that can't be read.
 */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan_inner.h"
#include "tests/unit/guarded.h"
#include "tests/unit/json_cases.h"
#include "tests/unit/lakes.h"

struct form {
    const char *name;
    json_scan_container *container;
    json_scan_rest *rest;
};

static struct form forms[3] = {{"plain", json_scan_container_plain, json_scan_rest_plain}};
static size_t form_count = 1;
static struct json_scan scan;

static void find_forms(void)
{
#ifdef __x86_64__
    forms[form_count++] = (struct form){"sse2", json_scan_container_sse2, json_scan_rest_sse2};
    if (json_scan_has_avx2()) {
        forms[form_count++] = (struct form){"avx2", json_scan_container_avx2, json_scan_rest_avx2};
    } else {
        puts("this processor has no AVX2: that form is not tested here");
    }
#endif
}

/* Check's own assertions write to a file each time that they are met: too much for what is asked a million times. */
static void expect(bool right, const char *form, const char *text, size_t size, const char *got, const char *expected)
{
    if (!right) {
        ck_abort_msg("%s: %td instead of %td of %zu bytes: %.*s", form, got == NULL ? -1 : got - text,
                     expected == NULL ? -1 : expected - text, size, (int)(size < 300 ? size : 300), text);
    }
}

/* All forms agree with the reference about the value that the text begins with. True where it is one. */
static bool agree(const char *bytes, size_t size)
{
    const char *text = guarded_copy(bytes, size);
    const char *end = text + size;
    bool breaks = false;
    const char *expected = reference_value(text, end, &breaks);
    struct json_value value;

    const char *got = json_scan_value(&scan, text, end, &value);
    bool right = got == expected && (got == NULL || (value.start == text && value.line_breaks == breaks &&
                                                     value.size == (size_t)(expected - text)));
    expect(right, "json_scan_value", text, size, got, expected);
    for (size_t i = 0; size > 0 && i < form_count; i++) {
        bool flag = false;
        bool flag_expected = breaks;
        if (text[0] == '{' || text[0] == '[') {
            got = forms[i].container(&scan, text, end, &flag);
        } else if (text[0] == '"') {
            got = forms[i].rest(text + 1, end, &flag);
            flag_expected = expected != NULL && memchr(text, '\\', (size_t)(expected - text)) != NULL;
        } else {
            break;
        }
        expect(got == expected && (got == NULL || flag == flag_expected), forms[i].name, text, size, got, expected);
    }
    return expected != NULL;
}

/* The whole text is one value with blanks around it, as the suite means it. */
static bool accepts(const char *bytes, size_t size)
{
    const char *end = bytes + size;
    const char *start = json_skip_blank(bytes, end);
    struct json_value value;

    agree(start, (size_t)(end - start));
    const char *text = guarded_copy(start, (size_t)(end - start));
    const char *text_end = text + (end - start);
    const char *after = json_scan_value(&scan, text, text_end, &value);
    return after != NULL && json_skip_blank(after, text_end) == text_end;
}

START_TEST(agrees_with_the_published_suite)
{
    size_t size;
    char *archive = shared_data("json-test-suite.tar.zst", &size);
    size_t counts[3] = {0};

    if (archive == NULL) {
        return;
    }
    struct tar_file file = {0};
    while (next_tar_file(archive, size, &file)) {
        const char *name = strrchr(file.name, '/');
        name = name == NULL ? file.name : name + 1;
        bool accepted = accepts(file.bytes, file.size);
        if (strncmp(name, "y_", 2) == 0) {
            ck_assert_msg(accepted, "%s is refused", name);
            counts[0]++;
        } else if (strncmp(name, "n_", 2) == 0) {
            ck_assert_msg(!accepted, "%s is accepted", name);
            counts[1]++;
        } else if (strncmp(name, "i_", 2) == 0) {
            counts[2]++;
        }
    }
    ck_assert_uint_gt(counts[0], 50);
    ck_assert_uint_gt(counts[1], 100);
    ck_assert_uint_gt(counts[2], 20);
    free(archive);
}
END_TEST

START_TEST(accepts_and_refuses_what_is_built_in)
{
    for (size_t i = 0; json_accepted[i] != NULL; i++) {
        ck_assert_msg(accepts(json_accepted[i], strlen(json_accepted[i])), "refused: %s", json_accepted[i]);
    }
    for (size_t i = 0; json_refused[i] != NULL; i++) {
        ck_assert_msg(!accepts(json_refused[i], strlen(json_refused[i])), "accepted: %s", json_refused[i]);
    }
}
END_TEST

/* Every sequence of so many tokens, alone and as what begins just before the end of a block. */
START_TEST(agrees_on_every_short_sequence_of_tokens)
{
    static const char *const tokens[] = {"{", "}", "[", "]", ",", ":", "\"a\"", "12", "null", " ", "\n"};
    enum { TOKENS = sizeof tokens / sizeof *tokens, LONGEST = 5 };

    for (unsigned long number = 0, all = TOKENS * TOKENS * TOKENS * TOKENS * TOKENS; number < all; number++) {
        char text[128] = "[";
        size_t size = 1;
        unsigned long rest = number;
        for (int i = 0; i < LONGEST; i++) {
            const char *token = tokens[rest % TOKENS];
            size = (size_t)(stpcpy(text + size, token) - text);
            rest /= TOKENS;
        }
        agree(text + 1, size - 1);
        text[size++] = ']';
        agree(text, size);
        if (number % 16 == 0) {
            size_t pad = 52 + number / 16 % 13;
            memmove(text + 1 + pad, text + 1, size - 1);
            memset(text + 1, ' ', pad);
            agree(text, size + pad);
        }
    }
}
END_TEST

START_TEST(agrees_on_generated_texts_whole_cut_and_damaged)
{
    static char text[1 << 16];
    struct random random = {UINT64_C(0x9E3779B97F4A7C15)};
    size_t accepted = 0;

    for (int round = 0; round < 3000; round++) {
        size_t size = generate_json(&random, text, 600 + random_below(&random, 8000));
        expect(agree(text, size), "generated", text, size, NULL, text + size);
        agree(text, random_below(&random, size + 1));
        for (int i = 0; i < 12; i++) {
            size_t damaged = damage(&random, text, size);
            accepted += agree(text, damaged);
            size = damaged;
        }
    }
    ck_assert_uint_gt(accepted, 1000);
}
END_TEST

/* Each two bytes, and each two around a third and a fourth that could go on with a character. */
START_TEST(agrees_on_utf8)
{
    static const unsigned char ends[] = {0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0};
    char text[160] = "[\"";

    for (unsigned pair = 0; pair < 0x10000; pair++) {
        size_t at = 2 + pair % 67;
        memset(text + 2, 'x', sizeof text - 2);
        text[at] = (char)(pair >> 8);
        text[at + 1] = (char)(pair & 0xFF);
        for (unsigned more = 0; more < 64; more += pair < 0xE000 || pair >= 0xF600 ? 64 : 1) {
            text[at + 2] = (char)ends[more / 8];
            text[at + 3] = (char)ends[more % 8];
            text[at + 5] = '"';
            text[at + 6] = ']';
            agree(text, at + 7);
            if (more == 9) {
                agree(text + 1, at + 6);
            }
        }
    }
}
END_TEST

START_TEST(agrees_on_escapes_at_every_place)
{
    static const char *const escapes[] = {"\\\\", "\\\"",   "\\u12aF", "\\u12g4",     "\\u123",
                                          "\\x",  "\\\\\\", "\\",      "\\/\\\\\\\\", "\\u"};
    char text[256];

    for (size_t pad = 0; pad < 140; pad++) {
        for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
            int size = snprintf(text, sizeof text, "[\"%*s%s\",1]", (int)pad, "", escapes[i]);
            agree(text, (size_t)size);
            agree(text + 1, (size_t)size - 1);
            agree(text, strlen(text) - 4);
        }
    }
}
END_TEST

START_TEST(nests_as_deep_as_memory_goes)
{
    enum { DEPTH = 1000000 };
    char *text = malloc(DEPTH * 10);
    struct random random = {7};

    ck_assert_ptr_nonnull(text);
    for (int round = 0; round < 4; round++) {
        size_t size = 0;
        size_t depth = round == 0 ? 100000 : DEPTH;
        unsigned char *stack = malloc(depth);
        ck_assert_ptr_nonnull(stack);
        for (size_t i = 0; i < depth; i++) {
            stack[i] = (unsigned char)(round < 2 ? 0 : random_below(&random, 2));
            const char *opening = stack[i] != 0 ? "{\"k\":" : "[";
            size = (size_t)(stpcpy(text + size, opening) - text);
        }
        text[size++] = '7';
        for (size_t i = depth; i > 0; i--) {
            text[size++] = stack[i - 1] != 0 ? '}' : ']';
        }
        ck_assert(agree(text, size));
        ck_assert(!agree(text, size - 1));
        char *closing = &text[size - 1 - random_below(&random, depth)];
        *closing = *closing == '}' ? ']' : '}';
        ck_assert(!agree(text, size));
        free(stack);
    }
    free(text);
}
END_TEST

START_TEST(reads_strings)
{
    const char *text = NULL;
    size_t size = 0;
    bool escaped = false;
    const char plain[] = "\"cust-0420\":1";
    const char with_escape[] = "\"a long enough text, and then \\\" and \\\\\" ";

    ck_assert_ptr_eq(json_scan_string(plain, plain + sizeof plain - 1, &text, &size, &escaped), plain + 11);
    ck_assert_ptr_eq(text, plain + 1);
    ck_assert_uint_eq(size, 9);
    ck_assert(!escaped);
    ck_assert_ptr_eq(json_scan_string(with_escape, with_escape + sizeof with_escape - 1, &text, &size, &escaped),
                     with_escape + sizeof with_escape - 2);
    ck_assert_uint_eq(size, sizeof with_escape - 4);
    ck_assert(escaped);
    ck_assert_ptr_null(json_scan_string(plain, plain, &text, &size, &escaped));
    ck_assert_ptr_null(json_scan_string(plain, plain + 10, &text, &size, &escaped));
    ck_assert_ptr_null(json_scan_string(plain + 1, plain + 11, &text, &size, &escaped));
}
END_TEST

static void expect_spelling(const char *wire, const char *meant, size_t meant_size, const char *spelled)
{
    char unescaped[256];
    char again[256];
    char in_place[256];
    size_t raw;
    size_t size = json_unescape(wire, strlen(wire), unescaped);

    ck_assert_uint_eq(size, meant_size);
    ck_assert_mem_eq(unescaped, meant, size);
    ck_assert_uint_eq(json_spelled_size(unescaped, size), strlen(spelled));
    ck_assert_ptr_eq(json_spell_string(unescaped, size, again), again + strlen(spelled));
    ck_assert_mem_eq(again, spelled, strlen(spelled));
    stpcpy(in_place, wire);
    ck_assert_uint_eq(json_respell(in_place, strlen(wire), &raw), strlen(spelled));
    ck_assert_mem_eq(in_place, spelled, strlen(spelled));
    ck_assert_uint_eq(raw, meant_size);
}

#define SPELLING(wire, meant, spelled) expect_spelling(wire, meant, sizeof(meant) - 1, spelled)

START_TEST(spells_the_lakes_way)
{
    SPELLING("", "", "");
    SPELLING("ord-9f21", "ord-9f21", "ord-9f21");
    SPELLING("a\\/b \\u0041\\u00e9\\u3042", "a/b A\xC3\xA9\xE3\x81\x82", "a/b A\xC3\xA9\xE3\x81\x82");
    SPELLING("\\\"\\\\\\b\\f\\n\\r\\t", "\"\\\b\f\n\r\t", "\\\"\\\\\\b\\f\\n\\r\\t");
    SPELLING("\\u0022\\u005C\\u0008\\u000c\\u000A\\u000d\\u0009", "\"\\\b\f\n\r\t", "\\\"\\\\\\b\\f\\n\\r\\t");
    SPELLING("\\u0000\\u001F\\u0020\\u007f\x7F", "\0\x1F \x7F\x7F", "\\u0000\\u001f \x7F\x7F");
    SPELLING("\\ud83d\\ude00", "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80");
    SPELLING("\\uDBFF\\uDFFF\\uffff", "\xF4\x8F\xBF\xBF\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF\xEF\xBF\xBF");
    SPELLING("\\uD800", "\xED\xA0\x80", "\\ud800");
    SPELLING("\\uDE00\\uD83D", "\xED\xB8\x80\xED\xA0\xBD", "\\ude00\\ud83d");
    SPELLING("\\uD83D\\uD83D\\uDE00x", "\xED\xA0\xBD\xF0\x9F\x98\x80x", "\\ud83d\xF0\x9F\x98\x80x");
    SPELLING("\\uD83D\\n\\uDfff\xED\x9F\xBF", "\xED\xA0\xBD\n\xED\xBF\xBF\xED\x9F\xBF",
             "\\ud83d\\n\\udfff\xED\x9F\xBF");
    SPELLING("\\ud800u\\udc00", "\xED\xA0\x80u\xED\xB0\x80", "\\ud800u\\udc00");
}
END_TEST

/* Whatever a text is made of, its spelling is a string again, means the same, and is no longer than any other. */
START_TEST(spells_generated_strings)
{
    static char text[1 << 12];
    static char meant[1 << 12];
    static char spelled[1 << 12];
    static char again[1 << 12];
    struct random random = {11};

    for (int round = 0; round < 20000; round++) {
        size_t size = generate_string(&random, text, 300) - 2;
        size_t meant_size = json_unescape(text + 1, size, meant);
        size_t spelled_size = json_spelled_size(meant, meant_size);
        ck_assert_uint_le(meant_size, spelled_size);
        ck_assert_uint_le(spelled_size, size);
        spelled[0] = '"';
        ck_assert_ptr_eq(json_spell_string(meant, meant_size, spelled + 1), spelled + 1 + spelled_size);
        spelled[spelled_size + 1] = '"';
        ck_assert(agree(spelled, spelled_size + 2));
        ck_assert_uint_eq(json_unescape(spelled + 1, spelled_size, again), meant_size);
        ck_assert_mem_eq(again, meant, meant_size);
        size_t raw;
        ck_assert_uint_eq(json_respell(text + 1, size, &raw), spelled_size);
        ck_assert_uint_eq(raw, meant_size);
        ck_assert_mem_eq(text + 1, spelled + 1, spelled_size);
    }
}
END_TEST

int main(void)
{
    find_forms();
    Suite *all = suite_create("json_scan");
    TCase *cases = tcase_create("json_scan");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, agrees_with_the_published_suite);
    tcase_add_test(cases, accepts_and_refuses_what_is_built_in);
    tcase_add_test(cases, agrees_on_every_short_sequence_of_tokens);
    tcase_add_test(cases, agrees_on_generated_texts_whole_cut_and_damaged);
    tcase_add_test(cases, agrees_on_utf8);
    tcase_add_test(cases, agrees_on_escapes_at_every_place);
    tcase_add_test(cases, nests_as_deep_as_memory_goes);
    tcase_add_test(cases, reads_strings);
    tcase_add_test(cases, spells_the_lakes_way);
    tcase_add_test(cases, spells_generated_strings);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
