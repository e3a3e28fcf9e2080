/*
 * The split of queues, and of memory.
 */
#include "supervisor/shard.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/settings.h"

#define WORKERS_MAX 16

/* Places `queues` one by one; counts and the number of workers come back. */
static size_t split(size_t queues, size_t limit, size_t counts[WORKERS_MAX])
{
    size_t workers = 0;

    memset(counts, 0, WORKERS_MAX * sizeof counts[0]);
    for (size_t i = 0; i < queues; i++) {
        size_t place = shard_place(counts, workers, limit);

        ck_assert_uint_le(place, workers);
        workers += place == workers;
        ck_assert_uint_le(workers, limit);
        counts[place]++;
    }
    return workers;
}

START_TEST(a_list_is_split_evenly_over_no_more_workers_than_queues)
{
    size_t counts[WORKERS_MAX];

    for (size_t limit = 1; limit <= WORKERS_MAX; limit++) {
        for (size_t queues = 1; queues <= 40; queues++) {
            size_t workers = split(queues, limit, counts);

            ck_assert_uint_eq(workers, queues < limit ? queues : limit);
            for (size_t i = 0; i < workers; i++) {
                ck_assert_uint_ge(counts[i], queues / workers);
                ck_assert_uint_le(counts[i], (queues + workers - 1) / workers);
            }
        }
    }
}
END_TEST

START_TEST(a_queue_goes_to_the_fewest_the_lowest_number_first)
{
    ck_assert_uint_eq(shard_place((size_t[]){2, 1, 1}, 3, 3), 1);
    ck_assert_uint_eq(shard_place((size_t[]){1, 1, 1}, 3, 3), 0);
    ck_assert_uint_eq(shard_place((size_t[]){2, 2, 1}, 3, 3), 2);
    ck_assert_uint_eq(shard_place((size_t[]){2, 2, 1}, 3, 4), 3);
    ck_assert_uint_eq(shard_place(NULL, 0, 4), 0);
}
END_TEST

START_TEST(shares_follow_queues_and_never_exceed_the_whole)
{
    uint64_t memory = (uint64_t)1024 << 20;
    uint64_t processes = SHARD_SUPERVISOR_BYTES + 3 * (uint64_t)SETTINGS_WORKER_BYTES;

    ck_assert_uint_eq(shard_budget(memory, 1, 5, 5), memory - SHARD_SUPERVISOR_BYTES - (uint64_t)SETTINGS_WORKER_BYTES);
    ck_assert_uint_eq(shard_budget(memory, 3, 2, 4), (memory - processes) / 2);
    ck_assert_uint_le(shard_budget(memory, 3, 3, 7) + 2 * shard_budget(memory, 3, 2, 7), memory - processes);
    ck_assert_uint_eq(shard_budget(1, 3, 3, 7), 0);
    ck_assert_uint_eq(shard_budget(memory, 0, 0, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shard");
    TCase *tests = tcase_create("splits");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_list_is_split_evenly_over_no_more_workers_than_queues);
    tcase_add_test(tests, a_queue_goes_to_the_fewest_the_lowest_number_first);
    tcase_add_test(tests, shares_follow_queues_and_never_exceed_the_whole);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
