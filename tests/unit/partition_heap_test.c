/*
 * The engine's containers of partitions, against plain arrays.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_cases.h"
#include "worker/window_internal.h"

enum { PARTITIONS = 300 };

static struct partition_table table;
static struct partition *all[PARTITIONS];
static struct random random_source;

static struct name name_of(size_t i)
{
    static char text[32];
    int size = snprintf(text, sizeof text, "cust-%04zu", i);
    return (struct name){text, (size_t)size};
}

static void fill_table(void)
{
    table = (struct partition_table){0};
    random_source = (struct random){11};
    for (size_t i = 0; i < PARTITIONS; i++)
        all[i] = table_add(&table, name_of(i));
}

static void partition_free(struct partition *partition)
{
    free(partition->name);
    free(partition);
}

static void free_table(void)
{
    for (size_t i = 0; i < PARTITIONS; i++)
        if (all[i] != NULL)
            partition_free(all[i]);
    free(table.slots);
}

/* ---- the table ---- */

START_TEST(finds_by_name_what_was_added)
{
    fill_table();
    ck_assert_uint_eq(table.count, PARTITIONS);
    for (size_t i = 0; i < PARTITIONS; i++)
        ck_assert_ptr_eq(table_find(&table, name_of(i)), all[i]);
    ck_assert_ptr_null(table_find(&table, name_of(PARTITIONS)));
    ck_assert_int_eq(all[0]->frontier, TIME_UNKNOWN);
    free_table();
}
END_TEST

START_TEST(an_empty_table_holds_nothing)
{
    struct partition_table empty = {0};
    ck_assert_ptr_null(table_find(&empty, name_of(1)));
}
END_TEST

START_TEST(names_are_bytes_of_any_kind)
{
    static const struct name names[] = {{"", 0}, {"a", 1}, {"a\0b", 3}, {"a\0c", 3}, {"a\0", 2}, {"\xff\xfe", 2}};
    struct partition *added[6];
    table = (struct partition_table){0};
    for (size_t i = 0; i < 6; i++)
        added[i] = table_add(&table, names[i]);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_ptr_eq(table_find(&table, names[i]), added[i]);
        ck_assert_uint_eq(added[i]->name_size, names[i].size);
    }
    for (size_t i = 0; i < 6; i++)
        partition_free(added[i]);
    free(table.slots);
}
END_TEST

/* Removing closes the gap: those behind it in a row of collisions are still found. */
START_TEST(removing_loses_nothing_else)
{
    fill_table();
    for (size_t left = PARTITIONS; left > 0; left--) {
        size_t i;
        do {
            i = random_below(&random_source, PARTITIONS);
        } while (all[i] == NULL);
        table_remove(&table, all[i]);
        partition_free(all[i]);
        all[i] = NULL;
        for (size_t j = 0; j < PARTITIONS; j++)
            ck_assert_ptr_eq(table_find(&table, name_of(j)), all[j]);
        ck_assert_uint_eq(table.count, left - 1);
    }
    free_table();
}
END_TEST

/* ---- the heap ---- */

static int64_t smallest(const bool *inside)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < PARTITIONS; i++)
        if (inside[i] && all[i]->frontier < least)
            least = all[i]->frontier;
    return least;
}

START_TEST(the_top_is_the_lowest_frontier_whatever_moves)
{
    struct partition_heap heap = {.kind = HEAP_BLOCKING};
    bool inside[PARTITIONS] = {false};
    size_t count = 0;
    fill_table();
    ck_assert_ptr_null(heap_top(&heap));
    for (int step = 0; step < 20000; step++) {
        size_t i = random_below(&random_source, PARTITIONS);
        if (random_below(&random_source, 3) == 0) {
            heap_take(&heap, all[i]); /* in it or not */
            count -= inside[i];
            inside[i] = false;
        } else {
            all[i]->frontier = (int64_t)random_below(&random_source, 1000);
            heap_put(&heap, all[i]);
            count += !inside[i];
            inside[i] = true;
        }
        ck_assert_uint_eq(heap.count, count);
        ck_assert_int_eq(all[i]->heap_index[HEAP_BLOCKING] != 0, inside[i]);
        if (count > 0)
            ck_assert_int_eq(heap_top(&heap)->frontier, smallest(inside));
    }
    heap_free(&heap);
    free_table();
}
END_TEST

START_TEST(taken_from_the_top_they_come_in_order)
{
    struct partition_heap heap = {.kind = HEAP_READY};
    int64_t last = INT64_MIN;
    fill_table();
    for (size_t i = 0; i < PARTITIONS; i++) {
        all[i]->frontier = i % 10 == 0 ? TIME_UNKNOWN : (int64_t)random_below(&random_source, 50);
        heap_put(&heap, all[i]);
    }
    for (struct partition *top = heap_top(&heap); top != NULL; top = heap_top(&heap)) {
        ck_assert_int_ge(top->frontier, last);
        last = top->frontier;
        heap_take(&heap, top);
        ck_assert_uint_eq(top->heap_index[HEAP_READY], 0);
    }
    heap_free(&heap);
    free_table();
}
END_TEST

START_TEST(a_partition_is_in_several_heaps_at_a_time)
{
    struct partition_heap blocking = {.kind = HEAP_BLOCKING};
    struct partition_heap ready = {.kind = HEAP_READY};
    fill_table();
    for (size_t i = 0; i < PARTITIONS; i++) {
        all[i]->frontier = (int64_t)(PARTITIONS - i);
        heap_put(&blocking, all[i]);
        heap_put(&ready, all[i]);
    }
    heap_take(&ready, all[PARTITIONS - 1]);
    ck_assert_ptr_eq(heap_top(&blocking), all[PARTITIONS - 1]);
    ck_assert_ptr_eq(heap_top(&ready), all[PARTITIONS - 2]);
    heap_free(&blocking);
    heap_free(&ready);
    free_table();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("partition_heap");
    TCase *cases = tcase_create("partition_heap");
    tcase_add_test(cases, finds_by_name_what_was_added);
    tcase_add_test(cases, an_empty_table_holds_nothing);
    tcase_add_test(cases, names_are_bytes_of_any_kind);
    tcase_add_test(cases, removing_loses_nothing_else);
    tcase_add_test(cases, the_top_is_the_lowest_frontier_whatever_moves);
    tcase_add_test(cases, taken_from_the_top_they_come_in_order);
    tcase_add_test(cases, a_partition_is_in_several_heaps_at_a_time);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
