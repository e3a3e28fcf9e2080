/*
 * `/metrics`: the text against the grammar of the format, and counters over the deaths of workers.
 */
#include "supervisor/exposition.h"

#include <check.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/metric_table.h"

#define WORKERS 3
#define QUEUES  5

static struct collect collect;
static struct connectors connectors;
static struct exposition_worker described[WORKERS];

static void begin(void)
{
    collect_init(&collect, WORKERS);
    memset(described, 0, sizeof described);
}

static void end(void)
{
    collect_free(&collect);
}

static char *write_text(void)
{
    struct exposition exposition = {
        .collect = &collect,
        .connectors = &connectors,
        .workers = described,
        .worker_count = WORKERS,
        .version = "1.5.0",
        .formats = 1U << FORMAT_JSONL,
        .now = {60000},
        .wall = {1000000},
    };
    char *text = exposition_write(&exposition);

    ck_assert_ptr_nonnull(text);
    return text;
}

/* ---- a reader of the format ---- */

struct sample {
    char series[160]; /* name and labels as written */
    char name[64];    /* the family's, without _bucket, _sum, _count of a histogram */
    double value;
    bool counts; /* must never fall */
};

struct samples {
    struct sample list[256];
    size_t count;
};

struct family {
    char name[64];
    char type[16];
};

static size_t name_size(const char *text)
{
    size_t size = 0;

    while (isalnum((unsigned char)text[size]) || text[size] == '_') {
        size++;
    }
    ck_assert_uint_gt(size, 0);
    ck_assert(!isdigit((unsigned char)text[0]));
    return size;
}

/* Returns the character after `}`. */
static const char *check_labels(const char *at)
{
    ck_assert_int_eq(*at, '{');
    do {
        at++;
        at += name_size(at);
        ck_assert_int_eq(at[0], '=');
        ck_assert_int_eq(at[1], '"');
        for (at += 2; *at != '"'; at++) {
            ck_assert_int_ne(*at, '\n');
            ck_assert_int_ne(*at, '\0');
            if (*at == '\\') {
                at++;
                ck_assert(*at == '\\' || *at == '"' || *at == 'n');
            }
        }
        at++;
    } while (*at == ',');
    ck_assert_int_eq(*at, '}');
    return at + 1;
}

static void check_sample(const char *line, const struct family *family, struct sample *sample)
{
    size_t size = name_size(line);
    const char *after = line + size;
    const char *suffix = line + strlen(family->name);
    char *end_of_number = NULL;

    ck_assert_uint_ge(size, strlen(family->name));
    ck_assert_mem_eq(line, family->name, strlen(family->name));
    if (strcmp(family->type, "histogram") == 0) {
        ck_assert(strncmp(suffix, "_bucket{", 8) == 0 || strncmp(suffix, "_sum ", 5) == 0 ||
                  strncmp(suffix, "_count ", 7) == 0);
    } else {
        ck_assert_uint_eq(size, strlen(family->name));
    }
    if (*after == '{') {
        after = check_labels(after);
    }
    ck_assert_int_eq(*after, ' ');
    (void)snprintf(sample->series, sizeof sample->series, "%.*s", (int)(after - line), line);
    (void)snprintf(sample->name, sizeof sample->name, "%s", family->name);
    sample->value = strtod(after + 1, &end_of_number);
    ck_assert_ptr_ne(end_of_number, after + 1);
    ck_assert_int_eq(*end_of_number, '\0');
    sample->counts = strcmp(family->type, "gauge") != 0;
}

static void open_family(const char *line, const char *type_line, struct family *families, size_t *count)
{
    struct family *family = &families[*count];

    ck_assert_int_eq(strncmp(line, "# HELP ", 7), 0);
    (void)snprintf(family->name, sizeof family->name, "%.*s", (int)name_size(line + 7), line + 7);
    ck_assert_int_eq(line[7 + strlen(family->name)], ' ');
    ck_assert_ptr_nonnull(type_line);
    ck_assert_int_eq(strncmp(type_line, "# TYPE ", 7), 0);
    ck_assert_int_eq(sscanf(type_line + 7 + strlen(family->name), " %15s", family->type), 1);
    ck_assert_mem_eq(type_line + 7, family->name, strlen(family->name));
    ck_assert(strcmp(family->type, "counter") == 0 || strcmp(family->type, "gauge") == 0 ||
              strcmp(family->type, "histogram") == 0);
    for (size_t i = 0; i < *count; i++) {
        ck_assert_str_ne(families[i].name, family->name);
    }
    (*count)++;
}

/* Each family once, HELP and TYPE first, then its samples, no series twice. */
static void parse(char *text, struct samples *samples)
{
    struct family families[64];
    size_t family_count = 0;
    char *state = NULL;

    samples->count = 0;
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
    for (char *line = strtok_r(text, "\n", &state); line != NULL; line = strtok_r(NULL, "\n", &state)) {
        if (line[0] == '#') {
            open_family(line, strtok_r(NULL, "\n", &state), families, &family_count);
            continue;
        }
        ck_assert_uint_gt(family_count, 0);
        check_sample(line, &families[family_count - 1], &samples->list[samples->count]);
        for (size_t i = samples->count;
             i > 0 && strcmp(samples->list[i - 1].name, families[family_count - 1].name) == 0; i--) {
            ck_assert_str_ne(samples->list[i - 1].series, samples->list[samples->count].series);
        }
        samples->count++;
    }
}

/* hint: where it may stand; a series only ever moves down. */
static const struct sample *find_from(const struct samples *samples, const char *series, size_t hint)
{
    for (size_t i = hint; i < samples->count; i++) {
        if (strcmp(samples->list[i].series, series) == 0) {
            return &samples->list[i];
        }
    }
    return NULL;
}

static const struct sample *find(const struct samples *samples, const char *series)
{
    return find_from(samples, series, 0);
}

static void scrape(struct samples *samples)
{
    char *text = write_text();

    parse(text, samples);
    free(text);
}

static double value_of(const struct samples *samples, const char *series)
{
    const struct sample *sample = find(samples, series);

    ck_assert_msg(sample != NULL, "no %s", series);
    return sample->value;
}

/* ---- tests ---- */

START_TEST(every_family_of_the_specification_is_there)
{
    static const char *const names[] = {
        "lag_seconds gauge",
        "safe_lag_seconds gauge",
        "windows_committed_total counter",
        "records_written_total counter",
        "bytes_written_total counter",
        "records_lost_total counter",
        "window_records histogram",
        "window_bytes histogram",
        "buffer_bytes gauge",
        "fetch_calls_total counter",
        "discovery_partitions gauge",
        "s3_requests_total counter",
        "commit_precondition_lost_total counter",
        "checkpoint_age_windows gauge",
        "workers gauge",
        "worker_up gauge",
        "worker_restarts_total counter",
        "worker_backoff_seconds gauge",
        "worker_resident_bytes gauge",
        "worker_cpu_seconds_total counter",
        "build_info gauge",
    };
    char *text = write_text();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[128];

        (void)snprintf(line, sizeof line, "\n# TYPE queen_s3_%s\n", names[i]);
        ck_assert_msg(strstr(text, line) != NULL, "no %s", names[i]);
    }
    free(text);
}
END_TEST

START_TEST(names_of_any_kind_keep_the_grammar)
{
    static struct samples samples;

    (void)collect_add_queue(&collect, "a\\b\"c\nd", 0, false, (struct mono_ms){0});
    (void)collect_add_queue(&collect, "", 0, false, (struct mono_ms){0});
    (void)collect_add_queue(&collect, "{x=\"1\"} 7", 0, false, (struct mono_ms){0});
    scrape(&samples);
    ck_assert_ptr_nonnull(find(&samples, "queen_s3_windows_committed_total{queue=\"a\\\\b\\\"c\\nd\"}"));
    ck_assert_ptr_nonnull(find(&samples, "queen_s3_windows_committed_total{queue=\"\"}"));
}
END_TEST

START_TEST(bytes_stay_those_of_the_format_that_they_were_written_in)
{
    static struct samples samples;
    struct report_queue report = {.bytes_written = {[FORMAT_PARQUET] = 7}};

    report.queue = (uint32_t)collect_add_queue(&collect, "q1", 1, false, (struct mono_ms){0});
    collect_queue(&collect, 1, &report, (struct mono_ms){0});
    scrape(&samples);
    const char *const series[] = {"queen_s3_bytes_written_total{queue=\"q1\",format=\"jsonl\"}",
                                  "queen_s3_bytes_written_total{queue=\"q1\",format=\"parquet\"}"};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_ptr_nonnull(find(&samples, series[i]));
        ck_assert(find(&samples, series[i])->value == (i == 0 ? 0.0 : 7.0));
    }
}
END_TEST

START_TEST(gauges_by_hand)
{
    static struct samples samples;
    struct report_queue queue = {.queue = 0, .k = 45, .checkpoint_k = 40, .through_us = 7500000, .partitions = 51};
    struct report_worker worker = {
        .buffer_bytes = 100, .has_safe_time = true, .safe_time_us = 10000000, .safe_time_mono_ms = 58000};

    (void)collect_add_queue(&collect, "q", 1, false, (struct mono_ms){0});
    scrape(&samples);
    ck_assert_ptr_null(find(&samples, "queen_s3_lag_seconds{queue=\"q\"}"));
    ck_assert_ptr_null(find(&samples, "queen_s3_safe_lag_seconds"));
    ck_assert_ptr_null(find(&samples, "queen_s3_checkpoint_age_windows{queue=\"q\"}"));
    collect_queue(&collect, 1, &queue, (struct mono_ms){0});
    collect_worker(&collect, 1, &worker);
    worker.safe_time_us = 20000000;
    collect_worker(&collect, 2, &worker);
    described[1] = (struct exposition_worker){true, 3, 0, 4096, 1.25};
    scrape(&samples);
    /* the broker's now is 10 s and the 2 s since; the queue is through to 7.5 s */
    ck_assert_double_eq_tol(value_of(&samples, "queen_s3_lag_seconds{queue=\"q\"}"), 4.5, 1e-9);
    ck_assert_double_eq_tol(value_of(&samples, "queen_s3_safe_lag_seconds"), 990, 1e-9);
    ck_assert_double_eq(value_of(&samples, "queen_s3_checkpoint_age_windows{queue=\"q\"}"), 5);
    ck_assert_double_eq(value_of(&samples, "queen_s3_discovery_partitions{queue=\"q\"}"), 51);
    ck_assert_double_eq(value_of(&samples, "queen_s3_buffer_bytes"), 200);
    ck_assert_double_eq(value_of(&samples, "queen_s3_workers"), 3);
    ck_assert_double_eq(value_of(&samples, "queen_s3_worker_up{worker=\"0\"}"), 0);
    ck_assert_double_eq(value_of(&samples, "queen_s3_worker_up{worker=\"1\"}"), 1);
    ck_assert_double_eq(value_of(&samples, "queen_s3_worker_restarts_total{worker=\"1\"}"), 3);
    ck_assert_double_eq(value_of(&samples, "queen_s3_worker_resident_bytes{worker=\"1\"}"), 4096);
    ck_assert_double_eq(value_of(&samples, "queen_s3_worker_cpu_seconds_total{worker=\"1\"}"), 1.25);
    ck_assert_double_eq(value_of(&samples, "queen_s3_build_info{version=\"1.5.0\"}"), 1);
}
END_TEST

START_TEST(a_restarted_worker_does_not_forget_what_its_queue_was_through_to)
{
    static struct samples samples;
    struct report_queue known = {.queue = 0, .k = 45, .checkpoint_k = 40, .through_us = 7500000};
    struct report_queue fresh = {.queue = 0, .k = -1, .checkpoint_k = -1, .through_us = INT64_MIN};
    struct report_worker worker = {.has_safe_time = true, .safe_time_us = 10000000, .safe_time_mono_ms = 58000};

    (void)collect_add_queue(&collect, "q", 1, false, (struct mono_ms){0});
    collect_queue(&collect, 1, &known, (struct mono_ms){0});
    collect_worker(&collect, 1, &worker);
    collect_fold(&collect, 1);
    worker.has_safe_time = false;
    collect_queue(&collect, 1, &fresh, (struct mono_ms){0});
    collect_worker(&collect, 1, &worker);
    scrape(&samples);
    ck_assert_double_eq_tol(value_of(&samples, "queen_s3_lag_seconds{queue=\"q\"}"), 4.5, 1e-9);
    ck_assert_double_eq(value_of(&samples, "queen_s3_checkpoint_age_windows{queue=\"q\"}"), 5);
}
END_TEST

START_TEST(histograms_are_cumulative)
{
    static struct samples samples;
    struct report_worker worker = {
        .window_records = {1, 0, 2, 0, 0, 0, 0, 3, 4}, .window_records_sum = 1e17, .window_bytes = {[8] = 1}};

    collect_worker(&collect, 0, &worker);
    collect_worker(&collect, 1, &worker);
    scrape(&samples);
    ck_assert_double_eq(value_of(&samples, "queen_s3_window_records_bucket{le=\"1\"}"), 2);
    ck_assert_double_eq(value_of(&samples, "queen_s3_window_records_bucket{le=\"100\"}"), 6);
    ck_assert_double_eq(value_of(&samples, "queen_s3_window_records_bucket{le=\"10000000\"}"), 12);
    ck_assert_double_eq(value_of(&samples, "queen_s3_window_records_bucket{le=\"+Inf\"}"), 20);
    ck_assert_double_eq(value_of(&samples, "queen_s3_window_records_count"), 20);
    ck_assert_double_eq(value_of(&samples, "queen_s3_window_records_sum"), 2e17);
    ck_assert_double_eq(value_of(&samples, "queen_s3_window_bytes_bucket{le=\"1073741824\"}"), 0);
    ck_assert_double_eq(value_of(&samples, "queen_s3_window_bytes_count"), 2);
}
END_TEST

START_TEST(what_makes_no_sense_is_ignored)
{
    static struct samples samples;
    struct report_queue queue = {.queue = 0, .windows_committed = 7};
    struct report_worker worker = {.request_count_used = UINT32_MAX,
                                   .request_counts = {{-1, 200, 1}, {STORE_OPERATION_COUNT, 200, 1}}};

    (void)collect_add_queue(&collect, "q", 1, false, (struct mono_ms){0});
    collect_queue(&collect, 0, &queue, (struct mono_ms){0}); /* not its own */
    queue.queue = 1;
    collect_queue(&collect, 1, &queue, (struct mono_ms){0}); /* no such queue */
    collect_worker(&collect, 1, &worker);
    scrape(&samples);
    ck_assert_double_eq(value_of(&samples, "queen_s3_windows_committed_total{queue=\"q\"}"), 0);
    ck_assert_ptr_null(find(&samples, "queen_s3_s3_requests_total{op=\"unknown\",code=\"200\"}"));
}
END_TEST

/* ---- workers that live and die at random ---- */

struct life {
    struct report_queue queues[QUEUES];
    struct report_worker worker;
};

static struct life lives[WORKERS];
static double committed_of_all; /* reported before each death, so all of it has to be there at the end */

static void begin_life(size_t number)
{
    memset(&lives[number], 0, sizeof lives[number]);
    for (uint32_t i = 0; i < QUEUES; i++) {
        lives[number].queues[i].queue = i;
        lives[number].queues[i].k = -1;
        lives[number].queues[i].checkpoint_k = -1;
        lives[number].queues[i].through_us = INT64_MIN;
    }
}

static void count_request(struct report_worker *worker)
{
    int32_t operation = rand() % STORE_OPERATION_COUNT;
    int32_t code = rand() % 3 == 0 ? 500 : 200;

    for (uint32_t i = 0; i < worker->request_count_used; i++) {
        if (worker->request_counts[i].operation == operation && worker->request_counts[i].code == code) {
            worker->request_counts[i].count++;
            return;
        }
    }
    worker->request_counts[worker->request_count_used++] = (struct report_request_count){operation, code, 1};
}

static void work(size_t number)
{
    struct life *life = &lives[number];
    uint32_t queue = (uint32_t)rand() % QUEUES;
    struct report_queue *report = &life->queues[queue];

    if (queue % WORKERS != number) {
        return;
    }
    report->windows_committed++;
    report->records_written += (uint64_t)rand() % 1000;
    report->bytes_written[FORMAT_JSONL] += (uint64_t)rand();
    report->records_lost += (uint64_t)rand() % 2;
    report->fetch_ok += 3;
    report->fetch_error += (uint64_t)rand() % 2;
    committed_of_all++;
    life->worker.window_records[rand() % 9]++;
    life->worker.window_bytes[rand() % 9]++;
    life->worker.window_records_sum += 10;
    life->worker.window_bytes_sum += 1e6;
    life->worker.precondition_lost += (uint64_t)rand() % 2;
    count_request(&life->worker);
    collect_queue(&collect, number, report, (struct mono_ms){1});
    collect_worker(&collect, number, &life->worker);
}

static void compare(const struct samples *before, const struct samples *after)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct sample *old = &before->list[i];
        const struct sample *new = find_from(after, old->series, i);

        ck_assert_msg(new != NULL, "%s vanished", old->series);
        ck_assert_msg(!old->counts || new->value >= old->value, "%s fell from %g to %g", old->series, old->value,
                      new->value);
    }
}

START_TEST(no_counter_falls_and_no_series_vanishes_whenever_workers_die)
{
    static struct samples before;
    static struct samples after;
    double sum = 0;

    srand((unsigned)_i);
    committed_of_all = 0;
    for (size_t i = 0; i < QUEUES; i++) {
        char name[] = {'q', (char)('0' + i), '\0'};

        (void)collect_add_queue(&collect, name, i % WORKERS, false, (struct mono_ms){0});
    }
    for (size_t i = 0; i < WORKERS; i++) {
        begin_life(i);
    }
    scrape(&before);
    for (int step = 0; step < 40; step++) {
        size_t number = (size_t)rand() % WORKERS;

        for (int i = 0; i < 10; i++) {
            work(number);
        }
        if (rand() % 3 == 0) {
            collect_fold(&collect, number);
            begin_life(number);
            collect_queue(&collect, number, &lives[number].queues[number], (struct mono_ms){1});
            collect_worker(&collect, number, &lives[number].worker);
        }
        scrape(&after);
        compare(&before, &after);
        memcpy(before.list, after.list, after.count * sizeof after.list[0]);
        before.count = after.count;
    }
    for (size_t i = 0; i < after.count; i++) {
        sum += strcmp(after.list[i].name, "queen_s3_windows_committed_total") == 0 ? after.list[i].value : 0;
    }
    ck_assert_double_eq(sum, committed_of_all);
    ck_assert_double_eq(value_of(&after, "queen_s3_window_bytes_count"), committed_of_all);
}
END_TEST

START_TEST(has_the_families_of_the_table_in_its_order)
{
    struct collected_connector one = {.key = "orders"};

    connectors = (struct connectors){.list = &one, .count = 1, .worker_count = 1};
    char *text = write_text();
    const char *at = text;

    for (size_t i = 0; i < METRIC_COUNT; i++) {
        char head[512];
        const struct metric_row *row = &metric_table[i];

        (void)snprintf(head, sizeof head, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, row->type);
        at = strstr(at, "# HELP ");
        ck_assert_msg(at != NULL && strncmp(at, head, strlen(head)) == 0, "expected %s at %.200s", head, at);
        at += strlen(head);
    }
    ck_assert_ptr_null(strstr(at, "# HELP "));
    free(text);
    connectors = (struct connectors){0};
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exposition");
    TCase *tests = tcase_create("text");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, every_family_of_the_specification_is_there);
    tcase_add_test(tests, names_of_any_kind_keep_the_grammar);
    tcase_add_test(tests, bytes_stay_those_of_the_format_that_they_were_written_in);
    tcase_add_test(tests, gauges_by_hand);
    tcase_add_test(tests, a_restarted_worker_does_not_forget_what_its_queue_was_through_to);
    tcase_add_test(tests, histograms_are_cumulative);
    tcase_add_test(tests, what_makes_no_sense_is_ignored);
    tcase_add_loop_test(tests, no_counter_falls_and_no_series_vanishes_whenever_workers_die, 0, 20);
    tcase_add_test(tests, has_the_families_of_the_table_in_its_order);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
