/* What the supervisor keeps of connectors: totals that never fall, who is down and why, and who owes a file. */
#include "supervisor/connectors.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/health.h"
#include "tests/unit/folders.h"

#define LEASE_TTL_MS 60000

static char folder[64];
static struct worker_connectors *loaded;
static struct connectors connectors;
static char *environment[] = {NULL};

static void write_definition(const char *key, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s.toml", folder, key);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "key = '%s'\n%s", key, text);
    ck_assert_int_eq(fclose(file), 0);
}

#define GOOD                                                                                           \
    "type = 'sink'\nenabled = true\nversion = 0\nname = 'n'\npath = 'p'\n[[topics]]\ntopics = ['t']\n" \
    "schema = 'json'\n[plugin_config]\nbucket = 'b'\nregion = 'r'\nendpoint = 'file:///lakes'\n"

static void begin(void)
{
    struct error error;
    static const char *path = folder;

    (void)snprintf(folder, sizeof folder, "/tmp/connectors-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_definition("aged", GOOD "max_file_age = '1m'\n");
    write_definition("broken", "type = 'sink'\n");
    write_definition("plain", GOOD);
    loaded = worker_connectors_load(&path, 1, environment, &error);
    ck_assert_ptr_nonnull(loaded);
    connectors_init(&connectors, loaded, LEASE_TTL_MS, (struct mono_ms){1000});
}

static void end(void)
{
    connectors_free(&connectors);
    worker_connectors_free(loaded);
    folder_remove(folder);
}

/* As wait() has them. */
#define EXITED(code)    ((code) << 8)
#define SIGNALLED(name) (name)

static void fail_at(size_t worker, int wait_status, int64_t now)
{
    connectors_ended(&connectors, worker, CONNECTOR_FAILED, wait_status, (struct mono_ms){now});
}

static void refuse_at(size_t worker, int64_t now)
{
    connectors_ended(&connectors, worker, CONNECTOR_REFUSED, EXITED(2), (struct mono_ms){now});
}

static void report(size_t worker, uint64_t consumed, int64_t owed, const char *why)
{
    struct report_connector message = {
        .consumed = consumed, .processed = consumed / 2, .filtered = 1, .errors = 2, .owed_mono_ms = owed};
    (void)snprintf(message.error, sizeof message.error, "%s", why);
    (void)snprintf(message.owed, sizeof message.owed, "t/%zu", worker);
    connectors_take(&connectors, worker, &message);
}

START_TEST(broken_definitions_are_counted_and_have_no_worker)
{
    ck_assert_uint_eq(connectors.count, 3);
    ck_assert_uint_eq(connectors.worker_count, 2);
    ck_assert_str_eq(connectors.list[0].key, "aged");
    ck_assert_str_eq(connectors.list[1].key, "plain");
    ck_assert_str_eq(connectors.list[2].key, "broken");
    ck_assert_ptr_nonnull(strstr(connector_reason(&connectors.list[2]), "broken.toml: "));
    ck_assert_uint_eq(connectors_running(&connectors), 0);
    report(2, 5, 0, "");
    ck_assert_uint_eq(connectors_totals(&connectors.list[2]).consumed, 0);
}
END_TEST

START_TEST(totals_go_on_over_lives)
{
    connectors_began(&connectors, 1);
    report(1, 10, 0, "");
    fail_at(1, SIGNALLED(SIGKILL), 1000);
    ck_assert_uint_eq(connectors_totals(&connectors.list[1]).consumed, 10);
    connectors_began(&connectors, 1);
    ck_assert_uint_eq(connectors_running(&connectors), 1);
    report(1, 4, 0, "kafka: no broker answers");
    report(1, 6, 0, "");
    struct connector_counts totals = connectors_totals(&connectors.list[1]);
    ck_assert_uint_eq(totals.consumed, 16);
    ck_assert_uint_eq(totals.processed, 8);
    ck_assert_uint_eq(totals.filtered, 2);
    ck_assert_uint_eq(totals.errors, 4);
    ck_assert_uint_eq(connectors_totals(&connectors.list[0]).consumed, 0);
}
END_TEST

START_TEST(the_pool_is_over_when_all_have_refused)
{
    ck_assert(!connectors_all_refused(&connectors));
    report(0, 0, 0, "property x: no");
    refuse_at(0, 1000);
    ck_assert_str_eq(connector_reason(&connectors.list[0]), "property x: no");
    ck_assert(!connectors_all_refused(&connectors));
    fail_at(1, EXITED(1), 1000);
    ck_assert(!connectors_all_refused(&connectors));
    refuse_at(1, 1000);
    ck_assert(connectors_all_refused(&connectors));
    connectors_began(&connectors, 0); /* in a rolling restart */
    ck_assert(!connectors_all_refused(&connectors));
}
END_TEST

static void expect_health(int64_t now, int status, const char *body)
{
    struct collect collect;
    char *got = NULL;

    collect_init(&collect, 2);
    ck_assert_int_eq(health_answer(&collect, &connectors, 900000, (struct mono_ms){now}, &got), status);
    ck_assert_str_eq(got, body);
    free(got);
    collect_free(&collect);
}

/* Three times max_file_age, or 5 minutes where there is none. */
START_TEST(who_owes_a_file_for_too_long_is_late)
{
    report(0, 1, 1000, "");
    report(1, 1, 1000, "");
    expect_health(1000 + 180000, 200, "{\"ok\":true,\"queues\":0,\"connectors\":3}");
    expect_health(1000 + 180001, 503,
                  "{\"ok\":false,\"connector\":\"aged\",\"partition\":\"t/0\",\"staleMs\":180001,\"limitMs\":180000}");
    report(0, 1, 0, "");
    expect_health(1000 + 900000, 200, "{\"ok\":true,\"queues\":0,\"connectors\":3}");
    expect_health(1000 + 900001, 503,
                  "{\"ok\":false,\"connector\":\"plain\",\"partition\":\"t/1\",\"staleMs\":900001,\"limitMs\":900000}");
}
END_TEST

static void fresh(size_t worker, int64_t fresh, int64_t owed)
{
    struct report_connector message = {.fresh_mono_ms = fresh, .owed_mono_ms = owed, .owed = "t/0"};
    connectors_take(&connectors, worker, &message);
}

#define GREEN     "{\"ok\":true,\"queues\":0,\"connectors\":3}"
#define RED(late) "{\"ok\":false,\"connector\":\"aged\",\"staleMs\":" late ",\"limitMs\":180000}"
#define RED_OWING(late) \
    "{\"ok\":false,\"connector\":\"aged\",\"partition\":\"t/0\",\"staleMs\":" late ",\"limitMs\":180000}"

START_TEST(a_definition_that_is_read_again_brings_its_limit)
{
    write_definition("aged", GOOD "max_file_age = '2m'\n");
    worker_connectors_renew(loaded, environment);
    connectors_resettle(&connectors, loaded, LEASE_TTL_MS);
    report(0, 1, 1000, "");
    expect_health(1000 + 360000, 200, GREEN);
    ck_assert_str_eq(connectors.list[0].key, "aged");
}
END_TEST

START_TEST(a_folder_that_is_gone_changes_nothing)
{
    char elsewhere[80];

    (void)snprintf(elsewhere, sizeof elsewhere, "%s-moved", folder);
    ck_assert_int_eq(rename(folder, elsewhere), 0);
    worker_connectors_renew(loaded, environment);
    ck_assert_int_eq(rename(elsewhere, folder), 0);
    ck_assert_uint_eq(worker_connectors_count(loaded), 2);
    ck_assert_int_eq(worker_connector_age_ms(loaded, 0), 60000);
}
END_TEST

/* No life of it lasts long enough to owe anything. */
START_TEST(one_whose_workers_end_again_and_again_goes_red)
{
    int64_t now = 1000;

    for (int life = 0; life < 10; life++, now += 10000) {
        connectors_began(&connectors, 0);
        fresh(0, 0, 0);
        fail_at(0, SIGNALLED(SIGSEGV), now);
    }
    connectors_began(&connectors, 0);
    fresh(0, 0, 0);
    expect_health(1000 + 180000, 200, GREEN);
    expect_health(1000 + 180001, 503, RED("180001"));
    ck_assert_str_eq(connector_reason(&connectors.list[0]), "its worker was ended by signal 11");
    fresh(0, 1000, 0); /* as well as it did before the first of them ended */
    expect_health(1000 + 180001, 503, RED("180001"));
    fresh(0, 1001, 0);
    expect_health(1000 + 180001, 200, GREEN);
    ck_assert_str_eq(connector_reason(&connectors.list[0]), "");
}
END_TEST

START_TEST(what_a_life_owed_is_not_forgotten_with_it)
{
    connectors_began(&connectors, 0);
    fresh(0, 0, 1000);
    connectors_ended(&connectors, 0, CONNECTOR_TOLD, EXITED(0), (struct mono_ms){150000});
    connectors_began(&connectors, 0);
    fresh(0, 0, 0);
    expect_health(1000 + 180001, 503, RED("180001"));
    fresh(0, 0, 160000);
    expect_health(1000 + 180001, 503, RED_OWING("180001"));
    fresh(0, 170000, 0);
    expect_health(1000 + 180001, 200, GREEN);
}
END_TEST

START_TEST(one_that_was_told_to_end_does_not_fail_by_that)
{
    connectors_began(&connectors, 0);
    fresh(0, 0, 0);
    connectors_ended(&connectors, 0, CONNECTOR_TOLD, EXITED(0), (struct mono_ms){1000});
    connectors_began(&connectors, 0);
    fresh(0, 0, 0);
    expect_health(1000 + 900000, 200, GREEN);
    ck_assert_str_eq(connector_reason(&connectors.list[0]), "");
}
END_TEST

START_TEST(one_that_stays_down_goes_red)
{
    connectors_began(&connectors, 0);
    report(0, 1, 0, "offset 7 is no json");
    refuse_at(0, 1000);
    expect_health(1000 + 180000, 200, GREEN);
    expect_health(1000 + 180001, 503, RED("180001"));
    ck_assert_str_eq(connector_reason(&connectors.list[0]), "offset 7 is no json");
}
END_TEST

/* As one that refuses: nobody runs it, and its topics lag. */
START_TEST(one_that_was_broken_at_the_start_goes_red)
{
    expect_health(1000 + 900000, 200, GREEN);
    expect_health(1000 + 900001, 503, "{\"ok\":false,\"connector\":\"broken\",\"staleMs\":900001,\"limitMs\":900000}");
    connectors.list[2].key = NULL;
    expect_health(1000 + 900001, 503, "{\"ok\":false,\"connector\":null,\"staleMs\":900001,\"limitMs\":900000}");
}
END_TEST

START_TEST(one_that_can_not_be_started_goes_red)
{
    connectors_not_begun(&connectors, 0, "fork: no", (struct mono_ms){1000});
    connectors_not_begun(&connectors, 0, "fork: no", (struct mono_ms){90000});
    ck_assert_uint_eq(connectors_running(&connectors), 0);
    expect_health(1000 + 180001, 503, RED("180001"));
    ck_assert_str_eq(connector_reason(&connectors.list[0]), "its worker could not be started: fork: no");
}
END_TEST

static void block(size_t worker, int64_t since, int64_t fresh)
{
    struct report_connector message = {.blocked_mono_ms = since, .fresh_mono_ms = fresh, .error = "kafka: away"};
    message.error[since > 0 ? strlen(message.error) : 0] = '\0';
    connectors_take(&connectors, worker, &message);
}

/* Nor does its age begin anew with its worker. */
START_TEST(one_that_can_not_talk_to_kafka_goes_red)
{
    connectors_began(&connectors, 0);
    block(0, 1000, 0);
    expect_health(1000 + 180000, 200, GREEN);
    connectors_ended(&connectors, 0, CONNECTOR_TOLD, EXITED(0), (struct mono_ms){90000});
    connectors_began(&connectors, 0);
    block(0, 91000, 0);
    expect_health(1000 + 180001, 503, RED("180001"));
    ck_assert_str_eq(connector_reason(&connectors.list[0]), "kafka: away");
    block(0, 0, 0);
    expect_health(1000 + 180001, 200, GREEN);
    ck_assert_str_eq(connector_reason(&connectors.list[0]), "");
    block(0, 200000, 0);
    expect_health(200000 + 180000, 200, GREEN);
    expect_health(200000 + 180001, 503, RED("180001"));
}
END_TEST

/* The worker's own words, as long as they are of the life that is told of. */
START_TEST(reasons)
{
    const struct collected_connector *connector = &connectors.list[1];

    connectors_began(&connectors, 1);
    report(1, 0, 0, "kafka: no broker answers");
    ck_assert_str_eq(connector_reason(connector), "kafka: no broker answers");
    fail_at(1, SIGNALLED(SIGKILL), 1000);
    ck_assert_str_eq(connector_reason(connector), "its worker was ended by signal 9");
    connectors_began(&connectors, 1);
    report(1, 0, 0, "kafka: no broker answers");
    ck_assert_str_eq(connector_reason(connector), "kafka: no broker answers");
    report(1, 0, 0, "");
    ck_assert_str_eq(connector_reason(connector), "its worker was ended by signal 9");
    report(1, 0, 0, "a commit could not be sent");
    fail_at(1, EXITED(1), 2000);
    ck_assert_str_eq(connector_reason(connector), "a commit could not be sent");
    connectors_began(&connectors, 1);
    fail_at(1, EXITED(0), 3000);
    ck_assert_str_eq(connector_reason(connector), "its worker ended with exit code 0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("connectors");
    TCase *cases = tcase_create("connectors");

    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, broken_definitions_are_counted_and_have_no_worker);
    tcase_add_test(cases, totals_go_on_over_lives);
    tcase_add_test(cases, the_pool_is_over_when_all_have_refused);
    tcase_add_test(cases, who_owes_a_file_for_too_long_is_late);
    tcase_add_test(cases, a_definition_that_is_read_again_brings_its_limit);
    tcase_add_test(cases, a_folder_that_is_gone_changes_nothing);
    tcase_add_test(cases, one_whose_workers_end_again_and_again_goes_red);
    tcase_add_test(cases, what_a_life_owed_is_not_forgotten_with_it);
    tcase_add_test(cases, one_that_was_told_to_end_does_not_fail_by_that);
    tcase_add_test(cases, one_that_stays_down_goes_red);
    tcase_add_test(cases, one_that_was_broken_at_the_start_goes_red);
    tcase_add_test(cases, one_that_can_not_be_started_goes_red);
    tcase_add_test(cases, one_that_can_not_talk_to_kafka_goes_red);
    tcase_add_test(cases, reasons);
    suite_add_tcase(suite, cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
