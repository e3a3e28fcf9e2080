/*
 * The state of a pool: taken from what the supervisor knows, written as the document that snapshot.h describes, read
 * back, and shown as the page and the tables.
 */
#include "supervisor/snapshot.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/page.h"

#define LIMIT 900000
#define NOW   INT64_C(5000000)
#define WALL  INT64_C(1788516307412) /* 2026-09-04T10:05:07.412Z */

static struct settings settings;
static struct collect collect;
static struct log_forward forward;
static struct workers workers;
static struct snapshot snapshot;

static int never(const struct worker_start *start)
{
    (void)start;
    return 0;
}

static void begin(void)
{
    settings = (struct settings){
        .sink = "default", .instance = "sink-0", .max_window_ms = LIMIT / 3, .lease_ttl_ms = 30000, .workers = 2};
    collect_init(&collect, 2);
    workers_init(&workers, &settings, 2, never, &collect, &forward);
    snapshot = (struct snapshot){.pid = 0};
}

static void end(void)
{
    snapshot_free(&snapshot);
    workers_free(&workers);
    collect_free(&collect);
}

static void add_worker(enum pool_state state, pid_t pid)
{
    struct worker *worker = &workers.list[workers.count++];

    pool_worker_init(&worker->life);
    log_source_init(&worker->log, &forward, "worker");
    worker->life.state = state;
    worker->pid = pid;
    worker->descriptor = -1;
    worker->started.v = NOW - 60000;
}

static void take(void)
{
    struct snapshot_source source = {.settings = &settings,
                                     .collect = &collect,
                                     .workers = &workers,
                                     .phase = "running",
                                     .started = {NOW - 3600000},
                                     .now = {NOW},
                                     .wall = {WALL}};

    snapshot_free(&snapshot);
    snapshot_take(&snapshot, &source);
}

static void report(size_t worker, struct report_queue message)
{
    collect_queue(&collect, worker, &message, (struct mono_ms){NOW});
}

static void expect_document(const char *wanted)
{
    char *document = snapshot_write(&snapshot);

    ck_assert_str_eq(document, wanted);
    free(document);
}

START_TEST(a_pool_that_has_just_begun)
{
    char *wanted = NULL;

    take();
    ck_assert_int_ge(asprintf(&wanted,
                              "{\"sink\":\"default\",\"instance\":\"sink-0\",\"version\":\"" QUEEN_S3_VERSION
                              "\",\"phase\":\"running\",\"pid\":%d,\"uptimeMs\":3600000,"
                              "\"at\":\"2026-09-04T10:05:07.412000Z\",\"limitMs\":900000,\"late\":0,\"workers\":[],"
                              "\"queues\":[]}",
                              (int)getpid()),
                     0);
    expect_document(wanted);
    free(wanted);
}
END_TEST

/* Everything in it that can be known. */
static void fill(void)
{
    struct report_worker clock = {
        .has_safe_time = true, .safe_time_us = INT64_C(1788516300000000), .safe_time_mono_ms = NOW - 2000};

    add_worker(POOL_RUNNING, getpid());
    add_worker(POOL_BACKOFF, 0);
    workers.list[1].life.restarts = 3;
    workers.list[1].life.retry_deadline.v = NOW + 4000;
    workers.list[1].ended = true;
    workers.list[1].end_status = SIGKILL;
    workers.list[1].end_wall.v = WALL - 1000;
    (void)collect_add_queue(&collect, "orders", 0, false, (struct mono_ms){NOW - LIMIT - 7});
    (void)collect_add_queue(&collect, "say \"<hi>\"\n", 1, false, (struct mono_ms){NOW - 5});
    collect_worker(&collect, 0, &clock);
    report(0, (struct report_queue){.queue = 0,
                                    .state = QUEUE_RUNNING,
                                    .k = INT64_C(9007199254740991),
                                    .end_us = INT64_C(1788516299250000),
                                    .through_us = INT64_C(1788516299250000),
                                    .checkpoint_k = -1,
                                    .buffer_bytes = 12345,
                                    .error_wall_ms = WALL - 12000,
                                    .error = "upload: <no & room>"});
    take();
}

START_TEST(all_that_there_is)
{
    char *document;

    fill();
    document = snapshot_write(&snapshot);
    ck_assert_ptr_nonnull(strstr(document, "\"limitMs\":900000,\"late\":1,\"workers\":["));
    ck_assert_ptr_nonnull(strstr(document, "\"phase\":\"running\",\"pid\":"));
    ck_assert_ptr_nonnull(strstr(document, "\"uptimeMs\":60000,\"restarts\":0,\"lastExit\":null,\"backoffMs\":0,"));
    ck_assert_ptr_nonnull(strstr(document,
                                 "{\"worker\":1,\"phase\":\"backoff\",\"pid\":null,\"uptimeMs\":null,\"restarts\":3,"
                                 "\"lastExit\":{\"reason\":\"signal 9\",\"at\":\"2026-09-04T10:05:06.412000Z\"},"
                                 "\"backoffMs\":4000,\"residentBytes\":0,\"queues\":0}"));
    ck_assert_ptr_nonnull(strstr(document,
                                 "{\"queue\":\"orders\",\"worker\":0,\"owner\":\"sink-0\",\"state\":\"running\","
                                 "\"k\":9007199254740991,\"tEnd\":\"2026-09-04T10:04:59.250000Z\",\"lagSeconds\":2.75,"
                                 "\"bufferedBytes\":12345,\"late\":true,\"staleMs\":900007,\"lastError\":{\"message\":"
                                 "\"upload: <no & room>\",\"at\":\"2026-09-04T10:04:55.412000Z\"}}"));
    ck_assert_ptr_nonnull(
        strstr(document, "{\"queue\":\"say \\\"<hi>\\\"\\\\x0a\",\"worker\":1,\"owner\":null,\"state\":\"claiming\","
                         "\"k\":null,\"tEnd\":null,\"lagSeconds\":null,\"bufferedBytes\":0,\"late\":false,"
                         "\"staleMs\":5,\"lastError\":null}"));
    free(document);
}
END_TEST

START_TEST(a_worker_that_ended_by_itself_says_its_code)
{
    add_worker(POOL_DOWN, 0);
    workers.list[0].ended = true;
    workers.list[0].end_status = 2 << 8;
    take();
    ck_assert_str_eq(snapshot.workers[0].last_exit, "exit 2");
}
END_TEST

START_TEST(a_queue_of_another_instance_names_it)
{
    add_worker(POOL_RUNNING, getpid());
    (void)collect_add_queue(&collect, "orders", 0, false, (struct mono_ms){NOW});
    report(0, (struct report_queue){.queue = 0, .state = QUEUE_CLAIMING, .standby = true, .k = -1, .holder = "sink-1"});
    take();
    ck_assert_str_eq(snapshot.queues[0].state, "standby");
    ck_assert_str_eq(snapshot.queues[0].owner, "sink-1");
    char *reason = snapshot_reason(&snapshot, &snapshot.queues[0]);
    ck_assert_str_eq(reason, "instance sink-1 has it");
    free(reason);
}
END_TEST

/* ---- reading ---- */

START_TEST(what_is_read_back_is_written_alike)
{
    struct snapshot back;
    struct error error;
    char *document;
    char *again;

    fill();
    document = snapshot_write(&snapshot);
    ck_assert_int_eq(snapshot_read(document, strlen(document), &back, &error), 0);
    again = snapshot_write(&back);
    ck_assert_str_eq(again, document);
    snapshot_free(&back);
    free(again);
    free(document);
}
END_TEST

START_TEST(a_newer_pool_may_say_more)
{
    static const char text[] = "{\"more\":[],\"sink\":\"s\",\"instance\":\"i\",\"version\":\"9\",\"phase\":\"new\","
                               "\"at\":\"\",\"pid\":1e99,\"late\":-1,\"workers\":[{\"phase\":\"p\",\"x\":1}],"
                               "\"queues\":[{\"queue\":\"q\",\"state\":\"odd\",\"lagSeconds\":1e300,\"k\":\"1\"}]}";
    struct snapshot back;
    struct error error;

    ck_assert_int_eq(snapshot_read(text, strlen(text), &back, &error), 0);
    ck_assert_str_eq(back.phase, "new");
    ck_assert_int_eq(back.pid, 0);
    ck_assert_uint_eq(back.late_count, 0);
    ck_assert_int_eq(back.queues[0].k, -1);
    ck_assert_int_gt(snapshot_lag_ms(&back.queues[0]), INT64_C(1000000000000));
    ck_assert_int_eq(snapshot_age_ms(&back, "2026-09-04T10:05:06.412000Z"), -1);
    snapshot_free(&back);
}
END_TEST

static void check_no_state(const char *text)
{
    struct snapshot back;
    struct error error;

    ck_assert_int_eq(snapshot_read(text, strlen(text), &back, &error), QS_ERROR_BODY);
}

#define HEAD "{\"instance\":\"i\",\"version\":\"1\",\"phase\":\"p\",\"at\":\"\","

START_TEST(what_is_no_state_is_refused)
{
    check_no_state("");
    check_no_state("{");
    check_no_state("[]");
    check_no_state("null");
    check_no_state("{\"error\":\"no such request\"}");
    check_no_state(HEAD "\"sink\":\"s\",\"workers\":[]}");
    check_no_state(HEAD "\"sink\":1,\"workers\":[],\"queues\":[]}");
    check_no_state(HEAD "\"sink\":\"s\",\"workers\":[],\"queues\":[1]}");
}
END_TEST

/* ---- for a person ---- */

START_TEST(late_ones_come_first_then_those_with_an_error)
{
    struct snapshot_queue queues[] = {
        {.name = "e"},
        {.name = "a"},
        {.name = "d", .error = "x"},
        {.name = "c", .late = true, .stale_ms = 5},
        {.name = "b", .late = true, .stale_ms = 9},
        {.name = "aa", .late = true, .stale_ms = 5},
    };
    struct snapshot unsorted = {.queues = queues, .queue_count = sizeof queues / sizeof *queues};
    char order[16] = "";

    snapshot_sort(&unsorted);
    for (size_t i = 0; i < unsorted.queue_count; i++) {
        strcat(order, unsorted.queues[i].name);
    }
    ck_assert_str_eq(order, "baacdae");
}
END_TEST

static void expect_reason(const char *wanted, struct snapshot_queue queue, const char *phase)
{
    char *copy = strdup(phase);
    struct snapshot_worker worker = {.number = 4, .phase = copy, .last_exit = "exit 1"};
    struct snapshot whole = {
        .workers = &worker, .worker_count = 1, .limit_ms = LIMIT, .at = "2026-09-04T10:05:07.412000Z"};
    char *reason;

    queue.worker = 4;
    queue.state = "running";
    reason = snapshot_reason(&whole, &queue);
    if (wanted == NULL) {
        ck_assert_ptr_null(reason);
    } else {
        ck_assert_str_eq(reason, wanted);
    }
    free(reason);
    free(copy);
}

START_TEST(why_a_queue_is_as_it_is)
{
    expect_reason(NULL, (struct snapshot_queue){.stale_ms = LIMIT}, "running");
    expect_reason("nothing committed for 16m, the limit is 15m",
                  (struct snapshot_queue){.late = true, .stale_ms = 960000}, "running");
    expect_reason("worker 4: backoff, last exit exit 1", (struct snapshot_queue){.late = true}, "backoff");
    expect_reason("7.4s ago: fetch: no",
                  (struct snapshot_queue){.error = "fetch: no", .error_at = "2026-09-04T10:05:00.000000Z"}, "running");
}
END_TEST

/* A program has the name itself; a person sees what is in it. */
START_TEST(an_invisible_character_stays_in_the_document_alone)
{
    add_worker(POOL_RUNNING, getpid());
    (void)collect_add_queue(&collect, "\u202esredro\u202c", 0, false, (struct mono_ms){NOW});
    take();
    char *document = snapshot_write(&snapshot);
    char *page = page_write(&snapshot);
    ck_assert_ptr_nonnull(strstr(document, "\"queue\":\"\u202esredro\u202c\""));
    ck_assert_ptr_nonnull(strstr(page, "\\xe2\\x80\\xaesredro"));
    ck_assert_ptr_null(strstr(page, "\u202c"));
    free(document);
    free(page);
}
END_TEST

/* ---- the page ---- */

START_TEST(a_page_escapes_what_strangers_wrote)
{
    char *page;

    fill();
    snapshot_sort(&snapshot);
    page = page_write(&snapshot);
    ck_assert_ptr_nonnull(strstr(page, "say &quot;&lt;hi&gt;&quot;\\x0a"));
    ck_assert_ptr_nonnull(strstr(page, "12s ago: upload: &lt;no &amp; room&gt;"));
    ck_assert_ptr_null(strstr(page, "<hi>"));
    ck_assert_ptr_null(strstr(page, "<script"));
    ck_assert_ptr_nonnull(strstr(page, "1 of 2 queues late"));
    ck_assert_ptr_nonnull(strstr(page, "signal 9, 1.0s ago; again in 4.0s"));
    ck_assert_ptr_nonnull(strstr(page, "http-equiv=\"refresh\" content=\"5\""));
    free(page);
}
END_TEST

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

START_TEST(a_page_of_a_large_pool_has_an_end_and_shows_what_is_late)
{
    char name[32];
    char *page;

    add_worker(POOL_RUNNING, getpid());
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "queue-%04d", i);
        (void)collect_add_queue(&collect, name, 0, false, (struct mono_ms){i == 4999 ? 0 : NOW});
    }
    take();
    snapshot_sort(&snapshot);
    page = page_write(&snapshot);
    ck_assert_uint_eq(count_of(page, "<tbody"), PAGE_QUEUES_MAX + 1);
    ck_assert_ptr_nonnull(strstr(page, "<tbody class=\"late\"><tr><td class=\"name\">queue-4999"));
    ck_assert_ptr_nonnull(strstr(page, "queue-0198"));
    ck_assert_ptr_null(strstr(page, "queue-0199"));
    ck_assert_ptr_nonnull(strstr(page, "and 4800 more"));
    ck_assert_uint_lt(strlen(page), 200000);
    free(page);
}
END_TEST

static char *page_of_connectors(struct snapshot_connector *connectors, size_t count)
{
    take();
    struct snapshot shown = snapshot;
    shown.connectors = connectors;
    shown.connector_count = count;
    return page_write(&shown);
}

START_TEST(a_page_shows_connectors_and_why_they_are_down)
{
    char key[] = "a<b>";
    char reason[] = "topic \"x\": <no> & never\n";
    struct snapshot_connector connectors[] = {
        {.key = key, .worker = 3, .running = true, .partitions = 8, .consumed = UINT64_MAX, .buffered_bytes = 2048},
        {.worker = -1, .reason = reason}};
    char *page = page_of_connectors(connectors, 2);

    ck_assert_ptr_nonnull(strstr(page, "<p class=\"verdict bad\">1 of 2 connectors down</p>"));
    ck_assert_ptr_nonnull(strstr(page, "<h2>Connectors <span>2</span></h2>"));
    ck_assert_ptr_nonnull(strstr(page, "topic &quot;x&quot;: &lt;no&gt; &amp; never\\x0a"));
    ck_assert_ptr_nonnull(strstr(page, "data-l=\"Owner\">worker 3</td><td class=\"n\" data-l=\"Partitions\">8</td>"));
    ck_assert_ptr_nonnull(strstr(page, "data-l=\"Consumed\">9223372036854775807</td>"));
    ck_assert(strstr(page, ">down</span>") < strstr(page, "a&lt;b&gt;"));
    free(page);
    page = page_of_connectors(connectors, 1);
    ck_assert_ptr_nonnull(strstr(page, "<p class=\"verdict good\">connectors alone</p>"));
    free(page);
    page = page_of_connectors(NULL, 0);
    ck_assert_ptr_null(strstr(page, "Connectors"));
    free(page);
}
END_TEST

START_TEST(a_page_of_many_connectors_has_an_end)
{
    static struct snapshot_connector connectors[1000];
    char key[] = "key";
    char broken[] = "broken";
    char *page;

    for (size_t i = 0; i < 1000; i++) {
        connectors[i] = (struct snapshot_connector){.key = i == 999 ? broken : key, .running = i != 999};
    }
    page = page_of_connectors(connectors, 1000);
    ck_assert_uint_eq(count_of(page, "<tbody"), PAGE_CONNECTORS_MAX);
    ck_assert_ptr_nonnull(strstr(page, "<tbody class=\"late\"><tr><td class=\"name\">broken"));
    ck_assert_ptr_nonnull(strstr(page, "and 936 more"));
    free(page);
}
END_TEST

START_TEST(a_browser_may_only_use_the_pages_own_style)
{
    const char *policy = page_security_policy();

    ck_assert_int_eq(strncmp(policy, "default-src 'none'; style-src 'sha256-", 38), 0);
    ck_assert_ptr_null(strstr(policy, "unsafe"));
    ck_assert_ptr_eq(page_security_policy(), policy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot");
    TCase *tests = tcase_create("snapshot");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_pool_that_has_just_begun);
    tcase_add_test(tests, all_that_there_is);
    tcase_add_test(tests, a_worker_that_ended_by_itself_says_its_code);
    tcase_add_test(tests, a_queue_of_another_instance_names_it);
    tcase_add_test(tests, what_is_read_back_is_written_alike);
    tcase_add_test(tests, a_newer_pool_may_say_more);
    tcase_add_test(tests, what_is_no_state_is_refused);
    tcase_add_test(tests, late_ones_come_first_then_those_with_an_error);
    tcase_add_test(tests, why_a_queue_is_as_it_is);
    tcase_add_test(tests, an_invisible_character_stays_in_the_document_alone);
    tcase_add_test(tests, a_page_escapes_what_strangers_wrote);
    tcase_add_test(tests, a_page_of_a_large_pool_has_an_end_and_shows_what_is_late);
    tcase_add_test(tests, a_page_shows_connectors_and_why_they_are_down);
    tcase_add_test(tests, a_page_of_many_connectors_has_an_end);
    tcase_add_test(tests, a_browser_may_only_use_the_pages_own_style);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
