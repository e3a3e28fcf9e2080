/*
 * How long to wait before another attempt (spec 3.7).
 */
#include "worker/retry.h"

#include <check.h>
#include <stdlib.h>

#include "scripted_world.h"

static struct scripted_world w;

static int64_t delay_after(uint32_t failures, uint64_t draw, int64_t cap)
{
    struct retry retry = {failures};
    w.random = draw;
    int64_t delay = retry_delay(&retry, &w.world, NULL, cap);
    ck_assert_uint_eq(retry.failures, failures + 1);
    return delay;
}

START_TEST(doubles_from_a_second_to_a_minute)
{
    /* The draw that lies in the middle of a delay's quarter on either side takes the jitter away. */
    static const int64_t expected[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    scripted_world_begin(&w);
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(delay_after(i, (uint64_t)expected[i] / 4, RETRY_CAP_MS), expected[i]);
    scripted_world_end(&w);
}
END_TEST

START_TEST(spreads_by_a_quarter_either_way)
{
    scripted_world_begin(&w);
    ck_assert_int_eq(delay_after(0, 0, RETRY_CAP_MS), 750);
    ck_assert_int_eq(delay_after(0, 500, RETRY_CAP_MS), 1250);
    ck_assert_int_eq(delay_after(0, 501, RETRY_CAP_MS), 750);
    for (uint64_t draw = 0; draw < 100000; draw += 7) {
        int64_t delay = delay_after(9, draw, RETRY_CAP_MS);
        ck_assert(delay >= 45000 && delay <= 75000);
    }
    scripted_world_end(&w);
}
END_TEST

START_TEST(keeps_a_lower_cap)
{
    scripted_world_begin(&w);
    ck_assert_int_eq(delay_after(5, 750, 3000), 3000);
    ck_assert_int_eq(delay_after(0, 83, 333), 333);
    ck_assert_int_eq(delay_after(0, 12345, 3), 3);
    ck_assert_int_eq(delay_after(0, 12345, 0), 0);
    scripted_world_end(&w);
}
END_TEST

START_TEST(keeps_retry_after_exactly_whatever_the_cap)
{
    struct error error;
    struct retry retry = {3};
    scripted_world_begin(&w);
    error_set(&error, QS_ERROR_STATUS, "slow down");
    error.retry_after_ms = 120000;
    ck_assert_int_eq(retry_delay(&retry, &w.world, &error, 3000), 120000);
    error.retry_after_ms = 0;
    ck_assert_int_eq(retry_delay(&retry, &w.world, &error, 3000), 0);
    ck_assert_uint_eq(retry.failures, 5);
    scripted_world_end(&w);
}
END_TEST

START_TEST(never_overflows)
{
    struct retry retry = {UINT32_MAX};
    scripted_world_begin(&w);
    w.random = RETRY_CAP_MS / 4;
    ck_assert_int_eq(retry_delay(&retry, &w.world, NULL, RETRY_CAP_MS), RETRY_CAP_MS);
    ck_assert_uint_eq(retry.failures, UINT32_MAX);
    ck_assert_int_eq(world_after(&w.world, 5).v, w.now + 5);
    ck_assert_int_eq(world_after(&w.world, INT64_MAX).v, INT64_MAX);
    scripted_world_end(&w);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("retry");
    TCase *cases = tcase_create("retry");
    tcase_add_test(cases, doubles_from_a_second_to_a_minute);
    tcase_add_test(cases, spreads_by_a_quarter_either_way);
    tcase_add_test(cases, keeps_a_lower_cap);
    tcase_add_test(cases, keeps_retry_after_exactly_whatever_the_cap);
    tcase_add_test(cases, never_overflows);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
