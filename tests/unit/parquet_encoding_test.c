/*
 * The two encodings, decoded by readers written from Encodings.md, and bounds of texts held to what a bound is for:
 * nothing may lie outside them.
 */
#include "worker/parquet_encoding.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "worker/parquet_bound.h"
#include "worker/parquet_thrift.h"

static uint32_t seed = 1;

static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 1) * below >> 31);
}

static uint64_t read_varint(const uint8_t **cursor)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*cursor)++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
}

static int64_t read_zigzag(const uint8_t **cursor)
{
    uint64_t value = read_varint(cursor);

    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static uint64_t bits_at(const uint8_t *bytes, size_t at, unsigned width)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < width; i++) {
        value |= (uint64_t)(bytes[(at + i) / 8] >> (at + i) % 8 & 1) << i;
    }
    return value;
}

/* ---- the hybrid ---- */

static void expect_hybrid(const uint32_t *values, size_t count, unsigned width)
{
    size_t bound = HYBRID_BOUND(count, width);
    uint8_t *out = malloc(bound);
    struct hybrid hybrid;
    size_t seen = 0;

    ck_assert_ptr_nonnull(out);
    hybrid_begin(&hybrid, out, width);
    for (size_t i = 0; i < count;) {
        size_t run = 1 + chance(3);
        while (run > 1 && (i + run > count || values[i + run - 1] != values[i])) {
            run--;
        }
        for (size_t j = 1; j < run; j++) {
            run = values[i + j] == values[i] ? run : j;
        }
        hybrid_add(&hybrid, values[i], run);
        i += run;
    }
    size_t size = hybrid_finish(&hybrid);
    ck_assert_uint_le(size, bound);
    const uint8_t *cursor = out;
    while (seen < count) {
        ck_assert(cursor < out + size);
        uint64_t head = read_varint(&cursor);
        if ((head & 1) == 0) {
            uint32_t value = (uint32_t)bits_at(cursor, 0, (width + 7) / 8 * 8);
            cursor += (width + 7) / 8;
            ck_assert_uint_gt(head >> 1, 0);
            for (uint64_t i = 0; i < head >> 1; i++) {
                if (value != values[seen++]) {
                    ck_abort_msg("value %zu of %zu, width %u", seen - 1, count, width);
                }
            }
            continue;
        }
        for (uint64_t i = 0; i < (head >> 1) * 8 && seen < count; i++) {
            if (bits_at(cursor, (size_t)i * width, width) != values[seen++]) {
                ck_abort_msg("packed value %zu of %zu, width %u", seen - 1, count, width);
            }
        }
        cursor += (head >> 1) * width;
    }
    ck_assert_uint_eq(seen, count);
    ck_assert_ptr_eq(cursor, out + size);
    free(out);
}

START_TEST(the_hybrid_gives_back_what_went_in)
{
    static uint32_t values[20000];

    for (unsigned width = 1; width <= HYBRID_WIDTH_MAX; width++) {
        for (size_t count = 1; count < 20000; count = count * 3 / 2 + 1) {
            uint32_t longest = 1 + chance(40);
            uint32_t value = 0;
            for (size_t i = 0, left = 0; i < count; i++, left--) {
                if (left == 0) {
                    value = chance(1u << width);
                    left = 1 + chance(longest);
                }
                values[i] = value;
            }
            expect_hybrid(values, count, width);
        }
    }
}
END_TEST

START_TEST(the_hybrid_at_its_edges)
{
    static uint32_t values[2000];

    /* A packed run of 63 groups is the longest; a repeat that begins within a group fills it up first. */
    for (size_t count = 500; count < 530; count++) {
        for (size_t i = 0; i < count; i++) {
            values[i] = (uint32_t)i & 1;
        }
        expect_hybrid(values, count, 1);
    }
    for (size_t before = 0; before < 9; before++) {
        for (size_t repeat = 1; repeat < 20; repeat++) {
            for (size_t i = 0; i < 40; i++) {
                values[i] = i >= before && i < before + repeat ? 1 : (uint32_t)i % 2 * 2;
            }
            expect_hybrid(values, before + repeat, 2);
            expect_hybrid(values, 40, 2);
        }
    }
}
END_TEST

/* The example of Encodings.md: 1000 copies of 4 in 3 bits, and 0 to 7 in 3 bits. */
START_TEST(the_hybrids_bytes)
{
    static const uint8_t repeated[] = {0xD0, 0x0F, 0x04};
    static const uint8_t packed[] = {0x03, 0x88, 0xC6, 0xFA};
    uint8_t out[64];
    struct hybrid hybrid;

    hybrid_begin(&hybrid, out, 3);
    hybrid_add(&hybrid, 4, 400);
    hybrid_add(&hybrid, 4, 600);
    ck_assert_uint_eq(hybrid_finish(&hybrid), sizeof repeated);
    ck_assert_mem_eq(out, repeated, sizeof repeated);
    hybrid_begin(&hybrid, out, 3);
    for (uint32_t i = 0; i < 8; i++) {
        hybrid_add(&hybrid, i, 1);
    }
    ck_assert_uint_eq(hybrid_finish(&hybrid), sizeof packed);
    ck_assert_mem_eq(out, packed, sizeof packed);
}
END_TEST

/* ---- deltas ---- */

static void expect_delta(const int64_t *values, size_t count)
{
    size_t bound = DELTA_BOUND(count);
    uint8_t *out = malloc(bound);

    ck_assert_ptr_nonnull(out);
    size_t size = delta_encode(values, count, out);
    const uint8_t *cursor = out;
    ck_assert_uint_le(size, bound);
    ck_assert_uint_eq(read_varint(&cursor), 128);
    ck_assert_uint_eq(read_varint(&cursor), 4);
    ck_assert_uint_eq(read_varint(&cursor), count);
    uint64_t value = (uint64_t)read_zigzag(&cursor);
    ck_assert_int_eq((int64_t)value, values[0]);
    for (size_t seen = 1; seen < count;) {
        uint64_t least = (uint64_t)read_zigzag(&cursor);
        const uint8_t *widths = cursor;
        cursor += 4;
        for (size_t i = 0; i < 4; i++) {
            if (seen == count) {
                ck_assert_uint_eq(widths[i], 0);
            }
            for (size_t j = 0; j < 32 && seen < count; j++) {
                value += least + bits_at(cursor, j * widths[i], widths[i]);
                if ((int64_t)value != values[seen++]) {
                    ck_abort_msg("value %zu of %zu", seen - 1, count);
                }
            }
            cursor += 4 * (size_t)widths[i];
        }
    }
    ck_assert_ptr_eq(cursor, out + size);
    free(out);
}

START_TEST(deltas_give_back_what_went_in)
{
    static int64_t values[20000];

    for (unsigned width = 0; width <= 64; width++) {
        for (size_t count = 1; count < 20000; count = count * 2 + chance(40)) {
            for (size_t i = 0; i < count; i++) {
                uint64_t bits = (uint64_t)chance(1u << 31) << 62 ^ (uint64_t)chance(1u << 31) << 31 ^ chance(1u << 31);
                values[i] = (int64_t)(width == 0 ? 7 : bits >> (64 - width));
            }
            expect_delta(values, count);
        }
    }
}
END_TEST

START_TEST(deltas_wrap_around)
{
    static const int64_t edges[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    int64_t values[300];

    for (size_t count = 1; count < 300; count++) {
        for (size_t i = 0; i < count; i++) {
            values[i] = edges[chance(8)];
        }
        expect_delta(values, count);
    }
}
END_TEST

START_TEST(one_value_is_a_header_alone)
{
    static const int64_t value = -2;
    static const uint8_t expected[] = {0x80, 0x01, 4, 1, 3};
    uint8_t out[DELTA_BOUND(1)];

    ck_assert_uint_eq(delta_encode(&value, 1, out), sizeof expected);
    ck_assert_mem_eq(out, expected, sizeof expected);
}
END_TEST

/* ---- bounds ---- */

static int compare(const void *left, size_t left_size, const void *right, size_t right_size)
{
    int order = memcmp(left, right, left_size < right_size ? left_size : right_size);

    return order != 0 ? order : left_size < right_size ? -1 : left_size > right_size;
}

static void expect_bounds(const char *text, size_t size, const char *least, const char *greatest)
{
    struct bounds bounds = {0};
    struct bound cut;
    bool exact = false;

    bounds_add(&bounds, text, size);
    ck_assert_int_eq(bound_cut_least(&bounds.least, &cut), size <= BOUND_SIZE);
    ck_assert_uint_eq(cut.size, strlen(least));
    ck_assert_mem_eq(cut.bytes, least, cut.size);
    ck_assert_int_eq(bound_cut_greatest(&bounds.greatest, &cut, &exact), greatest != NULL);
    ck_assert_int_eq(exact, size <= BOUND_SIZE);
    if (greatest != NULL) {
        ck_assert_uint_eq(cut.size, strlen(greatest));
        ck_assert_mem_eq(cut.bytes, greatest, cut.size);
    }
}

#define TEN   "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN

START_TEST(bounds_are_cut_between_characters)
{
    static const struct {
        const char *text;
        const char *least;
        const char *greatest;
    } cases[] = {
        {"", "", ""},
        {SIXTY "abcd", SIXTY "abcd", SIXTY "abcd"},
        {SIXTY "abcde", SIXTY "abcd", SIXTY "abce"},
        {SIXTY "abc\x7f!", SIXTY "abc\x7f", SIXTY "abd"}, /* the next one would have two bytes: one too many */
        {SIXTY "ab\x7f\xc3\xa8", SIXTY "ab\x7f", SIXTY "ab\xc2\x80"},                    /* and here it fits */
        {SIXTY "abc\xc3\xa8", SIXTY "abc", SIXTY "abd"},                                 /* è would reach to 65 */
        {SIXTY "ab\xc3\xa8?", SIXTY "ab\xc3\xa8", SIXTY "ab\xc3\xa9"},                   /* è and é */
        {SIXTY "ab\xdf\xbf?", SIXTY "ab\xdf\xbf", SIXTY "ac"},                           /* U+07FF, U+0800 has three */
        {SIXTY "a\xed\x9f\xbf?", SIXTY "a\xed\x9f\xbf", SIXTY "a\xee\x80\x80"},          /* no surrogate follows */
        {SIXTY "\xf0\x9f\x98\x80?", SIXTY "\xf0\x9f\x98\x80", SIXTY "\xf0\x9f\x98\x81"}, /* an emoji */
        {SIXTY "a\xf0\x9f\x98\x80", SIXTY "a", SIXTY "b"},
        {SIXTY "ab\xf0\x9f\x98\x80", SIXTY "ab", SIXTY "ac"},
        {SIXTY "\xf4\x8f\xbf\xbf?", SIXTY "\xf4\x8f\xbf\xbf", TEN TEN TEN TEN TEN "012345678:"}, /* the last there is */
        {SIXTY "abc\xffz", SIXTY "abc\xff", SIXTY "abd"},                                        /* no UTF-8: bytes */
        {SIXTY "a\xff\xff\xff\xff", SIXTY "a\xff\xff\xff", SIXTY "b"},
        {SIXTY "ab\xc3z?", SIXTY "ab\xc3z", SIXTY "ab\xc3{"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_bounds(cases[i].text, strlen(cases[i].text), cases[i].least, cases[i].greatest);
    }
}
END_TEST

START_TEST(a_greatest_that_nothing_exceeds_is_left_out)
{
    static const char last[] = {'\xf4', '\x8f', '\xbf', '\xbf'}; /* U+10FFFF */
    char text[80];

    memset(text, 0xFF, sizeof text);
    struct bounds bounds = {0};
    struct bound cut;
    bool exact = true;
    bounds_add(&bounds, text, sizeof text);
    ck_assert(!bound_cut_greatest(&bounds.greatest, &cut, &exact));
    ck_assert(!exact);
    for (size_t i = 0; i < sizeof text; i += 4) {
        memcpy(text + i, last, sizeof last);
    }
    bounds = (struct bounds){0};
    bounds_add(&bounds, text, sizeof text);
    ck_assert(!bound_cut_greatest(&bounds.greatest, &cut, &exact));
    ck_assert(!bound_cut_least(&bounds.least, &cut));
    ck_assert_uint_eq(cut.size, 64);
}
END_TEST

/* Random bytes, of few kinds so that values share beginnings: all values lie between the bounds. */
START_TEST(nothing_lies_outside)
{
    static const uint8_t kinds[] = {0, 'a', 0x7f, 0x80, 0xbf, 0xc2, 0xc3, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xff};
    uint8_t values[20][80];
    size_t sizes[20];

    for (int round = 0; round < 20000; round++) {
        struct bounds bounds = {0};
        struct bound least;
        struct bound greatest;
        bool exact;
        size_t count = 1 + chance(20);
        size_t shared = chance(80);
        for (size_t i = 0; i < count; i++) {
            sizes[i] = chance(81);
            for (size_t j = 0; j < sizeof values[i]; j++) {
                values[i][j] = i > 0 && j < shared ? values[0][j] : kinds[chance(sizeof kinds)];
            }
            bounds_add(&bounds, values[i], sizes[i]);
        }
        bool least_exact = bound_cut_least(&bounds.least, &least);
        bool there = bound_cut_greatest(&bounds.greatest, &greatest, &exact);
        bool least_met = false;
        bool greatest_met = false;
        for (size_t i = 0; i < count; i++) {
            int above = compare(values[i], sizes[i], least.bytes, least.size);
            int below = there ? compare(values[i], sizes[i], greatest.bytes, greatest.size) : -1;
            if (above < 0 || below > 0) {
                ck_abort_msg("round %d, value %zu", round, i);
            }
            least_met = least_met || above == 0;
            greatest_met = greatest_met || below == 0;
        }
        if ((least_exact && !least_met) || (there && exact && !greatest_met) || least.size > 64 ||
            (there && greatest.size > 64)) {
            ck_abort_msg("round %d", round);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parquet encodings");
    TCase *tests = tcase_create("encodings and bounds");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_hybrid_gives_back_what_went_in);
    tcase_add_test(tests, the_hybrid_at_its_edges);
    tcase_add_test(tests, the_hybrids_bytes);
    tcase_add_test(tests, deltas_give_back_what_went_in);
    tcase_add_test(tests, deltas_wrap_around);
    tcase_add_test(tests, one_value_is_a_header_alone);
    tcase_add_test(tests, bounds_are_cut_between_characters);
    tcase_add_test(tests, a_greatest_that_nothing_exceeds_is_left_out);
    tcase_add_test(tests, nothing_lies_outside);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
