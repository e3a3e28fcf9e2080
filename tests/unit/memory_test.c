/*
 * Allocation that can't fail: what it gives, and that it ends the process where it can't.
 */
#include "common/memory.h"

#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

START_TEST(new_memory_is_zeroed_and_never_null)
{
    char *some = memory_new(100, 3);
    char *none = memory_new(0, 8);
    char *nothing = memory_new(8, 0);
    for (size_t i = 0; i < 300; i++)
        ck_assert_int_eq(some[i], 0);
    ck_assert_ptr_nonnull(none);
    ck_assert_ptr_nonnull(nothing);
    free(some);
    free(none);
    free(nothing);
}
END_TEST

START_TEST(growing_at_least_doubles_and_keeps_what_is_there)
{
    size_t capacity = 0;
    int *numbers = memory_grow(NULL, &capacity, 1, sizeof *numbers);
    ck_assert_uint_eq(capacity, 8);
    for (int i = 0; i < 8; i++)
        numbers[i] = i;
    ck_assert_ptr_eq(memory_grow(numbers, &capacity, 8, sizeof *numbers), numbers);
    ck_assert_uint_eq(capacity, 8);
    numbers = memory_grow(numbers, &capacity, 9, sizeof *numbers);
    ck_assert_uint_eq(capacity, 16);
    numbers = memory_grow(numbers, &capacity, 1000, sizeof *numbers);
    ck_assert_uint_eq(capacity, 1000);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(numbers[i], i);
    free(numbers);
}
END_TEST

START_TEST(copies_end_in_a_nul)
{
    char *copy = memory_copy("a\0bc", 3);
    char *empty = memory_copy(NULL, 0);
    char *text = memory_copy_text("abc");
    ck_assert_mem_eq(copy, "a\0b", 4);
    ck_assert_str_eq(empty, "");
    ck_assert_str_eq(text, "abc");
    ck_assert_ptr_null(memory_copy_text(NULL));
    free(copy);
    free(empty);
    free(text);
}
END_TEST

START_TEST(formats_any_length)
{
    char *text = memory_format("%s:%04d", "k", 7);
    char *long_text = memory_format("%5000s", "end");
    ck_assert_str_eq(text, "k:0007");
    ck_assert_uint_eq(strlen(long_text), 5000);
    ck_assert_str_eq(long_text + 4997, "end");
    free(text);
    free(long_text);
}
END_TEST

START_TEST(more_elements_than_memory_has_ends_the_process)
{
    size_t capacity = 0;
    free(memory_grow(NULL, &capacity, SIZE_MAX / 4, 8));
}
END_TEST

START_TEST(a_capacity_that_can_not_double_grows_to_what_is_needed)
{
    size_t capacity = SIZE_MAX / 2 + 1;
    free(memory_grow(NULL, &capacity, SIZE_MAX / 2 + 2, 8));
}
END_TEST

static rlim_t address_space;

static bool make_room(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    address_space = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    return true;
}

START_TEST(a_handler_can_have_it_tried_again)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    /* A sanitizer's own memory has no place below a limit: there the handler alone is looked at. */
    ck_assert(make_room());
#else
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = 1u << 28;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    memory_set_exhausted(make_room);
    char *much = memory_new(1u << 29, 1);
    ck_assert_ptr_nonnull(much);
    ck_assert_uint_eq(address_space, 1u << 28);
    free(much);
#endif
}
END_TEST

static bool no_way(void)
{
    return false;
}

START_TEST(a_handler_without_a_way_out_ends_the_process)
{
    size_t capacity = 0;
    memory_set_exhausted(no_way);
    free(memory_grow(NULL, &capacity, SIZE_MAX / 4, 8));
}
END_TEST

int main(void)
{
    Suite *all = suite_create("memory");
    TCase *cases = tcase_create("memory");
    tcase_add_test(cases, new_memory_is_zeroed_and_never_null);
    tcase_add_test(cases, growing_at_least_doubles_and_keeps_what_is_there);
    tcase_add_test(cases, copies_end_in_a_nul);
    tcase_add_test(cases, formats_any_length);
    tcase_add_test_raise_signal(cases, more_elements_than_memory_has_ends_the_process, SIGABRT);
    tcase_add_test_raise_signal(cases, a_capacity_that_can_not_double_grows_to_what_is_needed, SIGABRT);
    tcase_add_test(cases, a_handler_can_have_it_tried_again);
    tcase_add_test_raise_signal(cases, a_handler_without_a_way_out_ends_the_process, SIGABRT);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
