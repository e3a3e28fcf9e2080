/*
 * `/healthz` by the letter of spec 3.11.
 */
#include "supervisor/health.h"

#include <check.h>
#include <stdlib.h>

#define LIMIT 900000

static struct collect collect;
static struct connectors connectors;

static void begin(void)
{
    collect_init(&collect, 2);
}

static void end(void)
{
    collect_free(&collect);
}

static void expect(int64_t now, int status, const char *body)
{
    char *got = NULL;

    ck_assert_int_eq(health_answer(&collect, &connectors, LIMIT, (struct mono_ms){now}, &got), status);
    ck_assert_str_eq(got, body);
    free(got);
}

static void report(uint32_t queue, int64_t fresh, bool held, bool standby, int64_t now)
{
    struct report_queue message = {
        .queue = queue, .fresh_mono_ms = fresh, .held_before = held, .standby = standby, .k = -1};

    collect_queue(&collect, 0, &message, (struct mono_ms){now});
}

START_TEST(limits)
{
    ck_assert_int_eq(health_limit_ms(300000, 30000), 900000);
    ck_assert_int_eq(health_limit_ms(100, 1000), 30000);
    ck_assert_int_eq(health_limit_ms(100, 3600000), 3600000);
}
END_TEST

START_TEST(a_pool_without_queues_is_healthy)
{
    expect(1000000000, 200, "{\"ok\":true,\"queues\":0}");
}
END_TEST

START_TEST(a_queue_that_never_reported_counts_from_its_assignment)
{
    (void)collect_add_queue(&collect, "orders", 0, false, (struct mono_ms){5000});
    expect(5000 + LIMIT, 200, "{\"ok\":true,\"queues\":1}");
    expect(5001 + LIMIT, 503, "{\"ok\":false,\"queue\":\"orders\",\"staleMs\":900001,\"limitMs\":900000}");
}
END_TEST

START_TEST(the_first_late_one_by_name_is_told)
{
    (void)collect_add_queue(&collect, "c", 0, false, (struct mono_ms){0});
    (void)collect_add_queue(&collect, "b", 0, false, (struct mono_ms){0});
    (void)collect_add_queue(&collect, "a", 0, false, (struct mono_ms){LIMIT});
    expect(LIMIT + 1, 503, "{\"ok\":false,\"queue\":\"b\",\"staleMs\":900001,\"limitMs\":900000}");
    report(1, LIMIT, true, false, LIMIT);
    expect(LIMIT + 1, 503, "{\"ok\":false,\"queue\":\"c\",\"staleMs\":900001,\"limitMs\":900000}");
    report(0, LIMIT, true, false, LIMIT);
    expect(LIMIT + 1, 200, "{\"ok\":true,\"queues\":3}");
}
END_TEST

START_TEST(a_commit_or_an_idle_pass_makes_it_young_again_and_a_restart_makes_it_no_older)
{
    (void)collect_add_queue(&collect, "orders", 0, false, (struct mono_ms){0});
    report(0, 2 * LIMIT, true, false, 2 * LIMIT);
    report(0, 0, false, false, 2 * LIMIT + 1);
    expect(3 * LIMIT, 200, "{\"ok\":true,\"queues\":1}");
    expect(3 * LIMIT + 7, 503, "{\"ok\":false,\"queue\":\"orders\",\"staleMs\":900007,\"limitMs\":900000}");
}
END_TEST

START_TEST(a_standby_is_healthy_until_it_takes_over_and_then_has_its_time)
{
    (void)collect_add_queue(&collect, "orders", 0, false, (struct mono_ms){0});
    report(0, 0, false, true, 10 * LIMIT);
    expect(20 * LIMIT, 200, "{\"ok\":true,\"queues\":1}");
    report(0, 0, true, false, 10 * LIMIT + 5);
    expect(11 * LIMIT, 200, "{\"ok\":true,\"queues\":1}");
    expect(11 * LIMIT + 1, 503, "{\"ok\":false,\"queue\":\"orders\",\"staleMs\":900001,\"limitMs\":900000}");
}
END_TEST

START_TEST(a_queue_lost_to_another_goes_red_even_after_a_restart)
{
    (void)collect_add_queue(&collect, "orders", 0, false, (struct mono_ms){0});
    report(0, 10, true, false, 10);
    report(0, 0, false, true, 20); /* the restarted worker only knows that another has it */
    expect(LIMIT + 11, 503, "{\"ok\":false,\"queue\":\"orders\",\"staleMs\":900001,\"limitMs\":900000}");
}
END_TEST

START_TEST(a_connector_is_late_by_the_file_that_a_partition_owes)
{
    struct collected_connector list[] = {{.key = "orders", .limit_ms = 30000}, {.key = "clicks", .limit_ms = 60000}};
    struct report_connector owing = {.owed_mono_ms = 1000, .owed = "orders.eu/3"};
    struct report_connector none = {.partitions = 4, .fresh_mono_ms = 31002};

    connectors = (struct connectors){.list = list, .count = 2, .worker_count = 2};
    connectors_take(&connectors, 0, &owing);
    connectors_take(&connectors, 1, &owing);
    connectors_take(&connectors, 2, &owing); /* there is none */
    expect(31000, 200, "{\"ok\":true,\"queues\":0,\"connectors\":2}");
    expect(31001, 503,
           "{\"ok\":false,\"connector\":\"orders\",\"partition\":\"orders.eu/3\",\"staleMs\":30001,\"limitMs\":30000}");
    connectors_ended(&connectors, 0, CONNECTOR_FAILED, 0, (struct mono_ms){31001}); /* who owes still does */
    expect(31001, 503,
           "{\"ok\":false,\"connector\":\"orders\",\"partition\":\"orders.eu/3\",\"staleMs\":30001,\"limitMs\":30000}");
    connectors_take(&connectors, 0, &none);
    expect(61000, 200, "{\"ok\":true,\"queues\":0,\"connectors\":2}");
    expect(61001, 503,
           "{\"ok\":false,\"connector\":\"clicks\",\"partition\":\"orders.eu/3\",\"staleMs\":60001,\"limitMs\":60000}");
    connectors = (struct connectors){0};
}
END_TEST

START_TEST(a_name_is_escaped)
{
    (void)collect_add_queue(&collect, "say \"hi\"\\", 0, false, (struct mono_ms){0});
    expect(LIMIT + 1, 503, "{\"ok\":false,\"queue\":\"say \\\"hi\\\"\\\\\",\"staleMs\":900001,\"limitMs\":900000}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("health");
    TCase *tests = tcase_create("answers");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, limits);
    tcase_add_test(tests, a_pool_without_queues_is_healthy);
    tcase_add_test(tests, a_queue_that_never_reported_counts_from_its_assignment);
    tcase_add_test(tests, the_first_late_one_by_name_is_told);
    tcase_add_test(tests, a_commit_or_an_idle_pass_makes_it_young_again_and_a_restart_makes_it_no_older);
    tcase_add_test(tests, a_standby_is_healthy_until_it_takes_over_and_then_has_its_time);
    tcase_add_test(tests, a_queue_lost_to_another_goes_red_even_after_a_restart);
    tcase_add_test(tests, a_connector_is_late_by_the_file_that_a_partition_owes);
    tcase_add_test(tests, a_name_is_escaped);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
