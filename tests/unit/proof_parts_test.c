/*
 * What a proof remembers: the set of keys that manifests name, and where partitions stand.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/commands/key_set.h"
#include "supervisor/commands/partition_table.h"

#define MANY 20000

START_TEST(keeps_keys_apart)
{
    struct key_set *set = key_set_new();
    char key[64];

    ck_assert(!key_set_has(set, ""));
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "queen/queue=q/w-%010d", i);
        ck_assert(!key_set_has(set, key));
        ck_assert(key_set_add(set, key));
    }
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "queen/queue=q/w-%010d", i);
        ck_assert(key_set_has(set, key));
        ck_assert(!key_set_add(set, key));
    }
    ck_assert(!key_set_has(set, "queen/queue=q/w-"));
    key_set_free(set);
    key_set_free(NULL);
}
END_TEST

static struct name name_of(char *text, int i)
{
    (void)snprintf(text, 32, "p-%d", i);
    return (struct name){text, strlen(text)};
}

START_TEST(keeps_where_partitions_stand)
{
    struct partition_table table = {0};
    char text[32];

    for (int i = 0; i < MANY; i++) {
        struct partition_place *place = partition_table_get(&table, name_of(text, i));
        ck_assert_int_eq(place->k, 0);
        place->k = i + 1;
        place->last = 2 * i;
    }
    for (int i = 0; i < MANY; i++) {
        const struct partition_place *place = partition_table_get(&table, name_of(text, i));
        ck_assert_int_eq(place->k, i + 1);
        ck_assert_int_eq(place->last, 2 * i);
    }
    ck_assert_uint_eq(table.count, MANY);
    /* Names are bytes: one may have a NUL, or none at all. */
    partition_table_get(&table, (struct name){"a\0b", 3})->k = 7;
    ck_assert_int_eq(partition_table_get(&table, (struct name){"a", 1})->k, 0);
    ck_assert_int_eq(partition_table_get(&table, (struct name){"", 0})->k, 0);
    ck_assert_int_eq(partition_table_get(&table, (struct name){"a\0b", 3})->k, 7);
    ck_assert_uint_eq(table.count, MANY + 3);
    partition_table_free(&table);
    ck_assert_uint_eq(table.count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proof parts");
    TCase *tests = tcase_create("proof parts");
    SRunner *runner = srunner_create(suite);

    tcase_add_test(tests, keeps_keys_apart);
    tcase_add_test(tests, keeps_where_partitions_stand);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
