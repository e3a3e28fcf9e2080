/*
 * Blocks, and that every byte which they take from a budget comes back.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/block.h"
#include "common/error.h"

START_TEST(budgets_count)
{
    struct budget budget = {.limit = 100};
    ck_assert_uint_eq(budget_room(&budget), 100);
    ck_assert(budget_take(&budget, 60));
    ck_assert(!budget_take(&budget, 41));
    ck_assert(budget_take(&budget, 40));
    ck_assert(budget_take(&budget, 0));
    budget_force(&budget, 50);
    ck_assert_uint_eq(budget.used, 150);
    ck_assert_uint_eq(budget_room(&budget), 0);
    ck_assert(!budget_take(&budget, 1));
    ck_assert(!budget_take(&budget, SIZE_MAX));
    budget_give(&budget, 150);
    ck_assert_uint_eq(budget.used, 0);
    budget.limit = 0; /* a share can shrink */
    ck_assert(!budget_take(&budget, 1));
}
END_TEST

START_TEST(lives_until_the_last_reference)
{
    struct budget budget = {.limit = 1000000};
    ck_assert(budget_take(&budget, 5000));
    struct block *block = block_create(&budget, 5000);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq(budget.used, 5000);
    block_retain(block);
    block_release(block);
    ck_assert_uint_eq(budget.used, 5000);
    block_release(block);
    ck_assert_uint_eq(budget.used, 0);
    block_release(NULL);
}
END_TEST

START_TEST(charges_what_it_grows_beyond_the_reservation)
{
    struct budget budget = {.limit = 20000};
    ck_assert(budget_take(&budget, 5000));
    struct block *block = block_create(&budget, 5000);
    ck_assert_int_eq(block_reserve_body(block, 4000, false), QS_OK);
    ck_assert_uint_eq(budget.used, 5000);
    ck_assert_int_eq(block_reserve_body(block, 3000, false), QS_OK);
    ck_assert_uint_eq(block->body_capacity, 4000);
    ck_assert_int_eq(block_reserve_body(block, 10000, false), QS_OK);
    ck_assert_uint_eq(budget.used, sizeof(struct block) + 10000);
    ck_assert_int_eq(block_reserve_body(block, 20000, false), QS_ERROR_NO_ROOM);
    ck_assert_uint_eq(block->body_capacity, 10000);
    ck_assert_uint_eq(budget.used, sizeof(struct block) + 10000);
    ck_assert_int_eq(block_reserve_body(block, 20000, true), QS_OK);
    ck_assert_uint_eq(budget.used, sizeof(struct block) + 20000);
    ck_assert_int_eq(block_reserve_records(block, 100, false), QS_ERROR_NO_ROOM);
    ck_assert_int_eq(block_reserve_records(block, 100, true), QS_OK);
    ck_assert_uint_eq(budget.used, sizeof(struct block) + 20000 + 100 * sizeof(struct record));
    ck_assert_int_eq(block_reserve_body(block, SIZE_MAX, true), QS_ERROR_NO_MEMORY);
    ck_assert_int_eq(block_reserve_records(block, SIZE_MAX / 8, true), QS_ERROR_NO_MEMORY);
    ck_assert_uint_eq(budget.used, sizeof(struct block) + 20000 + 100 * sizeof(struct record));
    block_release(block);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

START_TEST(adds_records_and_trims)
{
    struct budget budget = {.limit = 1};
    struct block *block = block_create(&budget, 0);
    ck_assert_int_eq(block_reserve_body(block, 1 << 20, true), QS_OK);
    block->body_size = 300000;
    memset(block->body, 'x', block->body_size);
    for (size_t i = 0; i < 1000; i++) {
        struct record *record = block_add_record(block);
        ck_assert_ptr_nonnull(record);
        ck_assert_int_eq(record->offset, 0);
        record->offset = (int64_t)i;
        record->payload = block->body + i * 300;
        block->body[i * 300] = (char)('a' + i % 26);
        record->payload_size = 1;
        record->transaction_id = i == 0 ? "elsewhere" : block->body + block->body_size;
    }
    ck_assert_uint_ge(block->record_capacity, 1000);
    block_trim(block);
    ck_assert_uint_eq(block->body_capacity, 300000);
    ck_assert_uint_eq(block->record_capacity, 1000);
    ck_assert_uint_eq(budget.used, sizeof(struct block) + 300000 + 1000 * sizeof(struct record));
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_ptr_eq(block->records[i].payload, block->body + i * 300);
        ck_assert_int_eq(block->records[i].payload[0], 'a' + (int)(i % 26));
    }
    ck_assert_str_eq(block->records[0].transaction_id, "elsewhere");
    ck_assert_ptr_eq(block->records[999].transaction_id, block->body + block->body_size);
    block_release(block);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

START_TEST(trims_to_nothing)
{
    struct budget budget = {.limit = 1000000};
    ck_assert(budget_take(&budget, 100000));
    struct block *block = block_create(&budget, 100000);
    ck_assert_int_eq(block_reserve_body(block, 50000, false), QS_OK);
    ck_assert_int_eq(block_reserve_records(block, 10, false), QS_OK);
    block_trim(block);
    ck_assert_ptr_null(block->body);
    ck_assert_ptr_null(block->records);
    ck_assert_uint_eq(budget.used, sizeof(struct block));
    ck_assert_ptr_nonnull(block_add_record(block));
    block_release(block);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

START_TEST(needs_no_budget)
{
    struct block *block = block_create(NULL, 77);
    ck_assert_int_eq(block_reserve_body(block, 50000, false), QS_OK);
    block_trim(block);
    block_release(block);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("block");
    TCase *cases = tcase_create("block");
    tcase_add_test(cases, budgets_count);
    tcase_add_test(cases, lives_until_the_last_reference);
    tcase_add_test(cases, charges_what_it_grows_beyond_the_reservation);
    tcase_add_test(cases, adds_records_and_trims);
    tcase_add_test(cases, trims_to_nothing);
    tcase_add_test(cases, needs_no_budget);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
