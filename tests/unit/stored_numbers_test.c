/*
 * Parquet's packed numbers: the examples of the format's Encodings.md, every width, what other writers leave out, and
 * counts and sizes that can't be.
 */
#include "common/lake/stored_numbers.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "guarded.h"

struct packed {
    uint8_t bytes[65536];
    size_t size;
};

static void put_varint(struct packed *out, uint64_t value)
{
    while (value >= 0x80) {
        out->bytes[out->size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out->bytes[out->size++] = (uint8_t)value;
}

static void put_signed(struct packed *out, int64_t value)
{
    put_varint(out, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

/* Bit by bit, slow and plain. */
static void put_bits(struct packed *out, const uint64_t *values, size_t count, unsigned width)
{
    size_t bits = count * width;

    memset(out->bytes + out->size, 0, (bits + 7) / 8);
    for (size_t i = 0; i < bits; i++) {
        if ((values[i / width] >> (i % width) & 1) != 0) {
            out->bytes[out->size + i / 8] |= (uint8_t)(1u << i % 8);
        }
    }
    out->size += (bits + 7) / 8;
}

static const uint8_t *guarded(const struct packed *packed)
{
    return (const uint8_t *)guarded_copy((const char *)packed->bytes, packed->size);
}

static uint64_t noise(uint64_t i)
{
    uint64_t value = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);

    return value ^ value >> 29;
}

/* ---- runs ---- */

START_TEST(bits_are_packed_as_the_format_shows)
{
    static const uint8_t bytes[] = {0x03, 0x88, 0xC6, 0xFA, 0x08, 0x05};
    struct bit_runs runs;
    uint32_t value;

    ck_assert(bit_runs_begin(&runs, bytes, sizeof bytes, 3));
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert(bit_runs_next(&runs, &value));
        ck_assert_uint_eq(value, i);
    }
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert(bit_runs_next(&runs, &value));
        ck_assert_uint_eq(value, 5);
    }
    ck_assert(!bit_runs_next(&runs, &value));
}
END_TEST

START_TEST(runs_of_every_width)
{
    for (unsigned width = 0; width <= 32; width++) {
        struct packed packed = {.size = 0};
        uint64_t values[24] = {0};
        struct bit_runs runs;
        uint32_t value = 0;
        uint64_t mask = (UINT64_C(1) << width) - 1;
        for (size_t i = 0; i < 24; i++) {
            values[i] = noise(i) & mask;
        }
        put_varint(&packed, 3 << 1 | 1);
        put_bits(&packed, values, 24, width);
        put_varint(&packed, 0 << 1);
        put_bits(&packed, &mask, 1, (width + 7) / 8 * 8);
        put_varint(&packed, 1000 << 1);
        put_bits(&packed, &mask, 1, (width + 7) / 8 * 8);
        ck_assert(bit_runs_begin(&runs, guarded(&packed), packed.size, width));
        for (size_t i = 0; i < 1024; i++) {
            ck_assert(bit_runs_next(&runs, &value));
            ck_assert_uint_eq(value, i < 24 ? values[i] : mask);
        }
        ck_assert(!bit_runs_next(&runs, &value));
    }
}
END_TEST

START_TEST(a_last_run_may_stop_where_its_values_do)
{
    struct packed packed = {.size = 0};
    const uint64_t values[5] = {1, 2, 3, 4, 5};
    struct bit_runs runs;
    uint32_t value = 0;

    put_varint(&packed, 1 << 1 | 1);
    put_bits(&packed, values, 5, 8);
    ck_assert(bit_runs_begin(&runs, guarded(&packed), packed.size, 8));
    for (uint32_t i = 1; i <= 5; i++) {
        ck_assert(bit_runs_next(&runs, &value));
        ck_assert_uint_eq(value, i);
    }
    ck_assert(!bit_runs_next(&runs, &value));
}
END_TEST

START_TEST(runs_that_are_none)
{
    static const struct {
        uint8_t bytes[8];
        size_t size;
        unsigned width;
    } cases[] = {
        {{0}, 0, 1},
        {{0x80}, 1, 1},
        {{0x02}, 1, 1},                                     /* a repeated value that isn't there */
        {{0x02, 0x02}, 2, 1},                               /* one wider than its width */
        {{0x03}, 1, 1},                                     /* bits that aren't there */
        {{0x00, 0x01}, 2, 1},                               /* an empty run and nothing more */
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0, 0}, 8, 1}, /* a head beyond 32 bits */
    };
    struct bit_runs runs;
    uint64_t ones;
    uint32_t value;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert(bit_runs_begin(&runs, cases[i].bytes, cases[i].size, cases[i].width));
        ck_assert(!bit_runs_next(&runs, &value));
        ck_assert(!bit_runs_count(runs, 1, &ones));
    }
    ck_assert(!bit_runs_begin(&runs, cases[0].bytes, 0, 33));
}
END_TEST

START_TEST(counting_takes_no_time_for_what_is_only_said)
{
    static const uint8_t many[] = {0xfe, 0xff, 0xff, 0xff, 0x0f, 0x01, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x03, 0x05};
    struct bit_runs runs;
    uint64_t ones = 0;

    ck_assert(bit_runs_begin(&runs, many, sizeof many, 1));
    ck_assert(bit_runs_count(runs, UINT64_C(0xfffffffe) + 4, &ones));
    ck_assert_uint_eq(ones, UINT64_C(0x7fffffff) + 2);
    ck_assert(!bit_runs_count(runs, UINT64_C(0xfffffffe) + 9, &ones));
}
END_TEST

/* ---- deltas ---- */

static void expect_deltas(const struct packed *packed, const int64_t *values, size_t count, size_t end)
{
    const uint8_t *bytes = guarded(packed);
    struct deltas deltas;
    int64_t value = 0;

    ck_assert(deltas_begin(&deltas, bytes, packed->size));
    ck_assert_uint_eq(deltas.total, count);
    ck_assert_ptr_eq(deltas_end(deltas), bytes + end);
    for (size_t i = 0; i < count; i++) {
        ck_assert(deltas_next(&deltas, &value));
        ck_assert_int_eq(value, values[i]);
    }
    ck_assert(!deltas_next(&deltas, &value));
}

static void put_head(struct packed *out, uint64_t block, uint64_t miniblocks, uint64_t count, int64_t first)
{
    put_varint(out, block);
    put_varint(out, miniblocks);
    put_varint(out, count);
    put_signed(out, first);
}

START_TEST(deltas_as_the_format_shows)
{
    static const int64_t rising[] = {1, 2, 3, 4, 5};
    static const int64_t turning[] = {7, 5, 3, 1, 2, 3, 4, 5};
    static const uint8_t rest[] = {0xC0, 0x3F, 0, 0, 0, 0, 0, 0};
    struct packed packed = {.size = 0};

    put_head(&packed, 128, 4, 5, 1);
    put_signed(&packed, 1);
    put_varint(&packed, 0);
    put_varint(&packed, 0);
    put_varint(&packed, 0);
    put_varint(&packed, 0);
    expect_deltas(&packed, rising, 5, packed.size);

    packed.size = 0;
    put_head(&packed, 128, 4, 8, 7);
    put_signed(&packed, -2);
    put_varint(&packed, 2);
    /* Widths of miniblocks that no value needs may be anything. */
    put_varint(&packed, 99);
    put_varint(&packed, 0);
    put_varint(&packed, 0);
    memcpy(packed.bytes + packed.size, rest, 8);
    packed.size += 8;
    expect_deltas(&packed, turning, 8, packed.size);
}
END_TEST

START_TEST(deltas_of_every_width)
{
    for (unsigned width = 0; width <= 64; width++) {
        struct packed packed = {.size = 0};
        uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
        int64_t values[300];
        uint64_t deltas[320] = {0};
        values[0] = INT64_MAX - 5;
        put_head(&packed, 128, 2, 300, values[0]);
        for (size_t i = 0; i < 299; i++) {
            deltas[i] = noise(i) & mask;
            values[i + 1] = (int64_t)((uint64_t)values[i] + deltas[i] + (uint64_t)INT64_MIN);
        }
        for (size_t block = 0; block < 3; block++) {
            put_signed(&packed, INT64_MIN);
            packed.bytes[packed.size++] = (uint8_t)width;
            packed.bytes[packed.size++] = (uint8_t)width;
            put_bits(&packed, deltas + 128 * block, block < 2 ? 128 : 64, width);
        }
        size_t end = packed.size;
        packed.bytes[packed.size++] = 0x55;
        expect_deltas(&packed, values, 300, end);
        packed.size = end;
        expect_deltas(&packed, values, 300, end);
    }
}
END_TEST

START_TEST(deltas_that_are_none)
{
    static const uint64_t heads[][2] = {{0, 1}, {128, 0}, {64, 1}, {128, 3}, {128, 8}, {UINT64_C(1) << 32, 1}};
    struct deltas deltas;
    int64_t value;

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct packed packed = {.size = 0};
        put_head(&packed, heads[i][0], heads[i][1], 2, 0);
        ck_assert(!deltas_begin(&deltas, guarded(&packed), packed.size));
    }
    /* A width beyond 64 bits, bits that aren't there, widths that aren't there. */
    for (size_t cut = 0; cut < 3; cut++) {
        struct packed packed = {.size = 0};
        put_head(&packed, 128, 1, UINT64_MAX, 0);
        put_signed(&packed, 0);
        if (cut < 2) {
            packed.bytes[packed.size++] = cut == 0 ? 65 : 64;
        }
        ck_assert(deltas_begin(&deltas, guarded(&packed), packed.size));
        ck_assert_ptr_null(deltas_end(deltas));
        ck_assert(deltas_next(&deltas, &value));
        ck_assert(!deltas_next(&deltas, &value));
    }
    for (size_t size = 0; size < 4; size++) {
        struct packed packed = {.size = 0};
        put_head(&packed, 128, 4, 5, 1);
        packed.size = size;
        ck_assert(!deltas_begin(&deltas, guarded(&packed), packed.size));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stored_numbers");
    TCase *tests = tcase_create("numbers");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, bits_are_packed_as_the_format_shows);
    tcase_add_test(tests, runs_of_every_width);
    tcase_add_test(tests, a_last_run_may_stop_where_its_values_do);
    tcase_add_test(tests, runs_that_are_none);
    tcase_add_test(tests, counting_takes_no_time_for_what_is_only_said);
    tcase_add_test(tests, deltas_as_the_format_shows);
    tcase_add_test(tests, deltas_of_every_width);
    tcase_add_test(tests, deltas_that_are_none);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
