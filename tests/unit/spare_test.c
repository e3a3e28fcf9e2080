/*
 * Large mappings that are used again: which one is taken, what stays inside the budget, and when it goes back.
 */
#include "common/spare.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MB ((size_t)SPARE_MIN)

static struct budget budget;

static void begin(size_t limit)
{
    budget = (struct budget){.limit = limit};
}

static char *take(size_t capacity, size_t *mapped)
{
    char *mapping = spare_take(&budget, capacity, mapped);
    ck_assert_ptr_nonnull(mapping);
    ck_assert_uint_ge(*mapped, capacity);
    memset(mapping, 1, *mapped); /* all of it is there */
    return mapping;
}

START_TEST(rounds_large_sizes_to_whole_megabytes)
{
    ck_assert_uint_eq(spare_round(0), 0);
    ck_assert_uint_eq(spare_round(MB - 1), MB - 1);
    ck_assert_uint_eq(spare_round(MB), MB);
    ck_assert_uint_eq(spare_round(MB + 1), 2 * MB);
    ck_assert_uint_eq(spare_round(SIZE_MAX), SIZE_MAX);
}
END_TEST

START_TEST(what_was_given_is_taken_again)
{
    size_t mapped;
    begin(100 * MB);
    char *first = take(10 * MB, &mapped);
    spare_give(&budget, first, mapped);
    ck_assert_uint_eq(budget.spare, 10 * MB);
    ck_assert_ptr_eq(take(10 * MB - 5, &mapped), first);
    ck_assert_uint_eq(budget.spare, 0);
    spare_give(&budget, first, mapped);
    budget_close(&budget);
    ck_assert_uint_eq(budget.spare, 0);
}
END_TEST

START_TEST(the_smallest_that_fits_is_taken_and_cut)
{
    size_t sizes[3];
    size_t mapped;
    begin(100 * MB);
    char *large = take(12 * MB, &sizes[0]);
    char *fitting = take(11 * MB, &sizes[1]);
    char *small = take(9 * MB, &sizes[2]);
    spare_give(&budget, large, sizes[0]);
    spare_give(&budget, fitting, sizes[1]);
    spare_give(&budget, small, sizes[2]);
    ck_assert_ptr_eq(take(10 * MB, &mapped), fitting);
    ck_assert_uint_eq(mapped, 10 * MB);
    ck_assert_uint_eq(budget.spare, 21 * MB);
    spare_give(&budget, fitting, mapped);
    budget_close(&budget);
}
END_TEST

START_TEST(one_that_would_waste_more_than_a_quarter_is_left)
{
    size_t mapped;
    size_t other;
    begin(100 * MB);
    char *large = take(13 * MB, &mapped);
    spare_give(&budget, large, mapped);
    char *fresh = take(10 * MB, &other);
    ck_assert_ptr_ne(fresh, large);
    ck_assert_uint_eq(budget.spare, 13 * MB);
    spare_give(&budget, fresh, other);
    budget_close(&budget);
}
END_TEST

START_TEST(spares_never_stand_in_the_way_of_the_budget)
{
    size_t sizes[3];
    char *mappings[3];
    begin(30 * MB);
    for (int i = 0; i < 3; i++)
        mappings[i] = take(10 * MB, &sizes[i]);
    for (int i = 0; i < 3; i++)
        spare_give(&budget, mappings[i], sizes[i]);
    ck_assert_uint_eq(budget.spare, 30 * MB);
    ck_assert(budget_take(&budget, 5 * MB));
    ck_assert_uint_eq(budget.spare, 20 * MB);
    /* The oldest went: the other two are still there. */
    ck_assert_ptr_eq(take(10 * MB, &sizes[2]), mappings[2]);
    ck_assert_ptr_eq(take(10 * MB, &sizes[1]), mappings[1]);
    budget_force(&budget, 20 * MB);
    spare_give(&budget, mappings[1], sizes[1]); /* no room: unmapped at once */
    ck_assert_uint_eq(budget.spare, 0);
    spare_give(&budget, mappings[2], sizes[2]);
    ck_assert_uint_eq(budget.spare, 0);
}
END_TEST

START_TEST(what_finds_no_use_goes_back_after_some_seconds)
{
    size_t old_size;
    size_t new_size;
    begin(100 * MB);
    char *old = take(10 * MB, &old_size);
    char *new = take(20 * MB, &new_size);
    spare_give(&budget, old, old_size);
    for (int i = 0; i < 3; i++)
        budget_age(&budget);
    spare_give(&budget, new, new_size);
    for (int i = 0; i < 2; i++)
        budget_age(&budget);
    ck_assert_uint_eq(budget.spare, 30 * MB);
    budget_age(&budget);
    ck_assert_uint_eq(budget.spare, 20 * MB);
    for (int i = 0; i < 3; i++)
        budget_age(&budget);
    ck_assert_uint_eq(budget.spare, 0);
    ck_assert_ptr_null(budget.spares);
}
END_TEST

START_TEST(cutting_keeps_at_least_a_megabyte)
{
    size_t mapped;
    begin(100 * MB);
    char *mapping = take(4 * MB, &mapped);
    ck_assert_uint_eq(spare_cut(mapping, mapped, 4 * MB), 4 * MB);
    ck_assert_uint_eq(spare_cut(mapping, mapped, 2 * MB + 1), 3 * MB);
    ck_assert_uint_eq(spare_cut(mapping, 3 * MB, 0), MB);
    memset(mapping, 2, MB);
    spare_give(&budget, mapping, MB);
    ck_assert_uint_eq(budget.spare, MB);
    budget_close(&budget);
}
END_TEST

START_TEST(more_than_there_is_gives_nothing)
{
    size_t mapped;
    begin(SIZE_MAX);
    ck_assert_ptr_null(spare_take(&budget, SIZE_MAX / 2, &mapped));
    ck_assert_ptr_null(spare_take(&budget, SIZE_MAX, &mapped));
}
END_TEST

int main(void)
{
    Suite *all = suite_create("spare");
    TCase *cases = tcase_create("spare");
    tcase_add_test(cases, rounds_large_sizes_to_whole_megabytes);
    tcase_add_test(cases, what_was_given_is_taken_again);
    tcase_add_test(cases, the_smallest_that_fits_is_taken_and_cut);
    tcase_add_test(cases, one_that_would_waste_more_than_a_quarter_is_left);
    tcase_add_test(cases, spares_never_stand_in_the_way_of_the_budget);
    tcase_add_test(cases, what_finds_no_use_goes_back_after_some_seconds);
    tcase_add_test(cases, cutting_keeps_at_least_a_megabyte);
    tcase_add_test(cases, more_than_there_is_gives_nothing);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
