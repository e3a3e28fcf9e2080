/*
 * Thrift's compact protocol: fields, every type passed over, and what is no Thrift: cut, nested too deeply, of another
 * type, counts beyond the bytes.
 */
#include "common/lake/compact_read.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "guarded.h"

static struct compact begin(const void *bytes, size_t size)
{
    return compact_begin(guarded_copy(bytes, size), size);
}

/* true (1), false (2), i32 -5 (3), i64 2^40 (20, its id spelled out), "ab" (21), [1 i32] (22), a struct (23). */
static const uint8_t all[] = {0x11, 0x12, 0x15, 0x09, 0x06, 0x28, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40,
                              0x18, 0x02, 'a',  'b',  0x19, 0x15, 0x02, 0x1C, 0x15, 0x02, 0x00, 0x00};

START_TEST(fields_are_read)
{
    struct compact compact = begin(all, sizeof all);
    struct compact_field field = {0};

    ck_assert(compact_next_field(&compact, &field) && field.id == 1 && compact_bool(&compact, &field));
    ck_assert(compact_next_field(&compact, &field) && field.id == 2 && !compact_bool(&compact, &field));
    ck_assert(compact_next_field(&compact, &field) && compact_i32(&compact, &field) == -5);
    ck_assert(compact_next_field(&compact, &field) && field.id == 20);
    ck_assert_int_eq(compact_i64(&compact, &field), INT64_C(1) << 40);
    ck_assert(compact_next_field(&compact, &field));
    struct compact_binary binary = compact_binary(&compact, &field);
    ck_assert(binary.size == 2 && memcmp(binary.bytes, "ab", 2) == 0);
    ck_assert(compact_next_field(&compact, &field) && compact_list(&compact, &field, COMPACT_I32) == 1);
    compact.at++;
    ck_assert(compact_next_field(&compact, &field) && field.id == 23 && compact_struct(&compact, &field));
    compact_skip_struct(&compact);
    ck_assert(!compact_next_field(&compact, &field));
    ck_assert_ptr_null(compact.why);
    ck_assert_ptr_eq(compact.at, compact.end);
}
END_TEST

START_TEST(what_ends_early_is_cut)
{
    for (size_t size = 0; size < sizeof all; size++) {
        struct compact compact = begin(all, size);
        compact_skip_struct(&compact);
        ck_assert_ptr_nonnull(compact.why);
        ck_assert(compact.cut);
        ck_assert_ptr_eq(compact.at, compact.end);
    }
    struct compact compact = begin(all, sizeof all);
    compact_skip_struct(&compact);
    ck_assert_ptr_null(compact.why);
}
END_TEST

START_TEST(every_type_is_passed_over)
{
    static const uint8_t bytes[] = {0x13, 0x7f,                                        /* byte */
                                    0x14, 0x01,                                        /* i16 */
                                    0x17, 1,    2,    3,    4,    5,    6,    7,    8, /* double */
                                    0x1A, 0x21, 0x01, 0x02,                            /* set of two booleans */
                                    0x1B, 0x00,                                        /* an empty map */
                                    0x1B, 0x02, 0x58, 0x02, 0x01, 'a',  0x04, 0x00,    /* i32 to text */
                                    0x1D, 1,    2,    3,    4,    5,    6,    7,    8, 1, 2, 3,
                                    4,    5,    6,    7,    8,    0x19, 0xFC, 0x10, 0, 0, 0, 0,
                                    0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0, 0, /* 16 structs */
                                    0x00};
    struct compact compact = begin(bytes, sizeof bytes);
    struct compact_field field = {0};

    while (compact_next_field(&compact, &field)) {
        compact_skip(&compact, &field);
    }
    ck_assert_ptr_null(compact.why);
    ck_assert_ptr_eq(compact.at, compact.end);
    ck_assert_int_eq(field.id, 8);
}
END_TEST

START_TEST(another_type_than_asked_for)
{
    struct compact_field text = {1, COMPACT_BINARY};
    struct compact_field number = {1, COMPACT_I32};
    struct compact compact;

    compact = begin("\x01z", 2);
    ck_assert(compact_i32(&compact, &text) == 0 && compact.why != NULL);
    compact = begin("\x01z", 2);
    ck_assert(compact_i64(&compact, &number) == 0 && compact.why != NULL);
    compact = begin("\x01z", 2);
    ck_assert(compact_binary(&compact, &number).size == 0 && compact.why != NULL);
    compact = begin("\x01z", 2);
    ck_assert(!compact_struct(&compact, &number) && compact.why != NULL);
    compact = begin("\x01z", 2);
    ck_assert(compact_list(&compact, &number, COMPACT_I32) == 0 && compact.why != NULL);
    compact = begin("\x01z", 2);
    ck_assert(!compact_bool(&compact, &number) && compact.why != NULL);
    struct compact_field list = {1, COMPACT_LIST};
    compact = begin("\x18\x01z", 3);
    ck_assert(compact_list(&compact, &list, COMPACT_I32) == 0 && compact.why != NULL && !compact.cut);
}
END_TEST

START_TEST(numbers_and_counts_are_bounded)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool cut;
    } cases[] = {
        {"\x15\xff\xff\xff\xff\xff\x01\x00", 8, false},                  /* beyond 32 bits */
        {"\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00", 12, false}, /* beyond 64 bits */
        {"\x18\xff\xff\xff\xff\x07z\x00", 8, true},                      /* two gigabytes of text */
        {"\x18\xff\xff\xff\xff\x0fz\x00", 8, false},                     /* four */
        {"\x19\xf5\xff\xff\xff\xff\x07\x00", 8, true},                   /* two billion numbers */
        {"\x19\xf5\xff\xff\xff\xff\x0f\x00", 8, false},                  /* four */
        {"\x1e\x00", 2, false},                                          /* type 14 */
        {"\x19\x1f\x00\x00", 4, false},                                  /* a list of type 15 */
        {"\x05\xfe\xff\x07\x00", 5, false},                              /* field 65535 */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct compact compact = begin(cases[i].bytes, cases[i].size);
        struct compact_field field = {0};
        while (compact_next_field(&compact, &field)) {
            if (field.type == COMPACT_I32) {
                (void)compact_i32(&compact, &field);
            } else {
                compact_skip(&compact, &field);
            }
        }
        ck_assert_msg(compact.why != NULL, "case %zu", i);
        ck_assert_msg(compact.cut == cases[i].cut, "case %zu: %s", i, compact.why);
    }
}
END_TEST

START_TEST(nesting_is_bounded)
{
    static const uint8_t openers[] = {0x1C, 0x19};

    for (size_t i = 0; i < 2; i++) {
        uint8_t deep[4096];
        memset(deep, i == 0 ? 0x1C : 0x19, sizeof deep);
        deep[0] = openers[i];
        struct compact compact = begin(deep, sizeof deep);
        compact_skip_struct(&compact);
        ck_assert_str_eq(compact.why, "nested too deeply");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compact_read");
    TCase *tests = tcase_create("protocol");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, fields_are_read);
    tcase_add_test(tests, what_ends_early_is_cut);
    tcase_add_test(tests, every_type_is_passed_over);
    tcase_add_test(tests, another_type_than_asked_for);
    tcase_add_test(tests, numbers_and_counts_are_bounded);
    tcase_add_test(tests, nesting_is_bounded);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
