/*
 * Listing windows over a store that answers late, in any order, in small pages, and sometimes not at all: each window
 * once and in order, a few manifests ahead and no more; ranges found without reading what lies before them; manifests
 * that aren't there or are another's.
 */
#include "common/lake/window_list.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define WINDOWS_MAX 64
#define MINUTE      INT64_C(60000000)

struct window_store;

struct store_call {
    struct window_store *store;
    struct timer timer;
    char key[LAKE_KEY_SIZE];
    size_t from;
    store_get_done *get;
    store_list_done *list;
    void *argument;
};

/* Windows 1 … count, a minute each with an idle minute between them. */
struct window_store {
    struct object_store table;
    struct reactor *reactor;
    int64_t count;
    size_t page;
    int64_t missing;   /* this manifest isn't there */
    int64_t broken;    /* this one is no manifest */
    int64_t strange;   /* this one is another queue's */
    unsigned failures; /* passing failures still to come */
    bool forbidden;    /* listing is */
    unsigned noise;
    unsigned pending;
    unsigned pending_most;
    unsigned gets;
    unsigned lists;
};

static struct reactor *reactor;
static struct window_store store;

static struct store_call *start(const char *key, void *argument, void (*fire)(void *))
{
    struct store_call *call = memory_new(1, sizeof *call);

    call->store = &store;
    call->argument = argument;
    snprintf(call->key, sizeof call->key, "%s", key);
    store.noise = store.noise * 1103515245u + 12345u;
    timer_set(reactor_timers(reactor), &call->timer, (struct mono_ms){clock_mono().v + (store.noise >> 16) % 2}, fire,
              call);
    store.pending++;
    store.pending_most = store.pending > store.pending_most ? store.pending : store.pending_most;
    return call;
}

static struct error outcome(void)
{
    struct error error = {.retry_after_ms = -1};

    if (store.failures > 0) {
        store.failures--;
        error_set(&error, QS_ERROR_STATUS, "503");
        error.retry_after_ms = 1;
    }
    return error;
}

static char *manifest_text(int64_t k, size_t *size)
{
    struct manifest manifest = {.sink = "default",
                                .queue = k == store.strange ? "others" : "a/b",
                                .bounds = {k, {2 * k * MINUTE}, {(2 * k + 1) * MINUTE}},
                                .writer = "w"};
    return manifest_format(&manifest, size);
}

static void answer_get(void *argument)
{
    struct store_call *call = argument;
    struct error error = outcome();
    int64_t k = strtoll(strrchr(call->key, '/') + 1, NULL, 10);
    char *bytes = NULL;
    size_t size = 0;

    if (error.code == QS_OK && k == store.missing) {
        error_set(&error, QS_ERROR_NOT_FOUND, "no such key");
    } else if (error.code == QS_OK && k == store.broken) {
        bytes = memory_copy("{}", size = 2);
    } else if (error.code == QS_OK) {
        bytes = manifest_text(k, &size);
    }
    store.pending--;
    call->get(call->argument, &error, bytes, size);
    free(call);
}

static void answer_list(void *argument)
{
    static const char *const others[] = {"0000000000.json", "01.json", "x.json", "0000000001.json.bak"};
    struct store_call *call = argument;
    struct error error = outcome();
    struct listed_object objects[WINDOWS_MAX + 4];
    char keys[WINDOWS_MAX + 4][LAKE_KEY_SIZE];
    char token[32];
    size_t count = 0;

    if (store.forbidden) {
        error_set(&error, QS_ERROR_FORBIDDEN, "403");
    }
    for (size_t i = 0; i < 4 && call->from == 0; i++) {
        snprintf(keys[count], sizeof keys[count], "%.500s%s", call->key, others[i]);
        objects[count] = (struct listed_object){keys[count], 2};
        count++;
    }
    size_t at = call->from;
    for (; at < (size_t)store.count && at < call->from + store.page; at++) {
        snprintf(keys[count], sizeof keys[count], "%.500s%010zu.json", call->key, at + 1);
        objects[count] = (struct listed_object){keys[count], 300};
        count++;
    }
    snprintf(token, sizeof token, "%zu", at);
    store.pending--;
    call->list(call->argument, &error, error.code == QS_OK ? objects : NULL, error.code == QS_OK ? count : 0,
               at < (size_t)store.count ? token : NULL);
    free(call);
}

static struct store_call *fake_get(struct object_store *table, const char *key, size_t size_limit, store_get_done *done,
                                   void *argument)
{
    struct store_call *call = start(key, argument, answer_get);

    (void)table;
    ck_assert_uint_gt(size_limit, 300);
    ck_assert_msg(strncmp(key, "queen/_queen/a%2Fb/windows/00", 29) == 0, "%s", key);
    call->get = done;
    store.gets++;
    return call;
}

static struct store_call *fake_list(struct object_store *table, const char *prefix, const char *after_token,
                                    store_list_done *done, void *argument)
{
    struct store_call *call = start(prefix, argument, answer_list);

    (void)table;
    ck_assert_str_eq(prefix, "queen/_queen/a%2Fb/windows/");
    call->list = done;
    call->from = after_token != NULL ? strtoul(after_token, NULL, 10) : 0;
    store.lists++;
    return call;
}

static void fake_cancel(struct object_store *table, struct store_call *call)
{
    (void)table;
    timer_cancel(reactor_timers(reactor), &call->timer);
    store.pending--;
    free(call);
}

static void setup(void)
{
    static const struct object_store_operations operations = {
        .get = fake_get, .list = fake_list, .cancel = fake_cancel};
    struct error error;

    reactor = reactor_create(&error);
    ck_assert_msg(reactor != NULL, "%s", error.message);
    store = (struct window_store){.table = {&operations}, .reactor = reactor, .count = 40, .page = 7, .noise = 1};
}

static void teardown(void)
{
    ck_assert_uint_eq(store.pending, 0);
    reactor_destroy(reactor);
}

static void wake(void *argument)
{
    *(bool *)argument = true;
}

static bool awake;

static struct window_list *open_list(struct window_query query)
{
    struct error error;

    query.prefix = "queen";
    query.queue = (struct name){"a/b", 3};
    awake = false;
    struct window_list *list = window_list_open(reactor, &store.table, &query, wake, &awake, &error);
    ck_assert_msg(list != NULL, "%s", error.message);
    return list;
}

/* The next state but WAIT, through the loop; nothing is told before there is something. */
static enum window_list_state next(struct window_list *list, struct window_entry *entry, struct error *error)
{
    enum window_list_state state;

    while ((state = window_list_take(list, entry, error)) == WINDOW_LIST_WAIT) {
        ck_assert(!awake);
        while (!awake) {
            reactor_run_once(reactor, 1000);
        }
        awake = false;
    }
    ck_assert(!awake);
    return state;
}

static void expect_windows(struct window_query query, int64_t first, int64_t last)
{
    struct window_list *list = open_list(query);
    struct window_entry entry;
    struct error error;

    for (int64_t k = first; k <= last; k++) {
        ck_assert_int_eq(next(list, &entry, &error), WINDOW_LIST_WINDOW);
        ck_assert_int_eq(entry.k, k);
        ck_assert_msg(entry.manifest != NULL, "%s", entry.error.message);
        ck_assert_int_eq(entry.manifest->bounds.k, k);
        ck_assert_str_eq(entry.manifest->queue, "a/b");
    }
    ck_assert_int_eq(next(list, &entry, &error), WINDOW_LIST_END);
    ck_assert_int_eq(window_list_take(list, &entry, &error), WINDOW_LIST_END);
    window_list_close(list);
    ck_assert_uint_le(store.pending_most, 9);
}

START_TEST(every_window_once_and_in_order)
{
    expect_windows((struct window_query){0}, 1, 40);
    ck_assert_uint_eq(store.gets, 40);
    ck_assert_uint_eq(store.lists, 6);
    ck_assert_uint_gt(store.pending_most, 3);
}
END_TEST

START_TEST(no_window_at_all)
{
    store.count = 0;
    expect_windows((struct window_query){0}, 1, 0);
    expect_windows((struct window_query){.has_since = true}, 1, 0);
}
END_TEST

START_TEST(numbers_bound_what_is_read)
{
    expect_windows((struct window_query){.first_k = 9, .last_k = 16}, 9, 16);
    ck_assert_uint_eq(store.gets, 8);
    ck_assert_uint_eq(store.lists, 3);
    expect_windows((struct window_query){.first_k = 41}, 1, 0);
    expect_windows((struct window_query){.last_k = 1}, 1, 1);
}
END_TEST

/* Window k is [2k, 2k + 1) minutes. */
START_TEST(times_choose_the_windows_that_they_meet)
{
    for (int64_t minute = 0; minute <= 84; minute += minute < 6 || minute > 76 ? 1 : 5) {
        struct broker_us time = {minute * MINUTE};
        int64_t first = minute / 2 < 1 ? 1 : minute % 2 == 0 ? minute / 2 : minute / 2 + 1;
        int64_t last = (minute - 1) / 2 > 40 ? 40 : (minute - 1) / 2;
        store.gets = 0;
        expect_windows((struct window_query){.has_since = true, .since = time}, first, 40);
        /* A page's last each, then bisection in one page. */
        ck_assert_uint_le(store.gets, (unsigned)(40 - first + 1) + 6 + 3);
        expect_windows((struct window_query){.has_until = true, .until = time}, 1, minute < 1 ? 0 : last);
        expect_windows(
            (struct window_query){.has_since = true, .has_until = true, .since = time, .until = {time.v + 5 * MINUTE}},
            first, (minute + 4) / 2 > 40 ? 40 : (minute + 4) / 2);
    }
}
END_TEST

START_TEST(a_manifest_that_cannot_be_had_does_not_end_the_list)
{
    struct window_entry entry;
    struct error error;

    store.missing = 3;
    store.broken = 5;
    store.strange = 14;
    struct window_list *list = open_list((struct window_query){0});
    for (int64_t k = 1; k <= 40; k++) {
        ck_assert_int_eq(next(list, &entry, &error), WINDOW_LIST_WINDOW);
        ck_assert_int_eq(entry.k, k);
        bool is_bad = k == 3 || k == 5 || k == 14;
        ck_assert_int_eq(entry.manifest == NULL, is_bad);
        if (is_bad) {
            ck_assert_msg(strstr(entry.error.message, entry.key) == NULL, "the key twice: %s", entry.error.message);
            ck_assert_int_eq(entry.error.code, k == 3 ? QS_ERROR_NOT_FOUND : QS_ERROR_BODY);
        }
    }
    ck_assert_int_eq(next(list, &entry, &error), WINDOW_LIST_END);
    window_list_close(list);
}
END_TEST

START_TEST(the_search_passes_what_it_cannot_read)
{
    for (int64_t bad = 1; bad < 40; bad++) {
        for (int64_t k = bad > 1 ? bad - 1 : bad; k <= bad + 1; k++) {
            struct window_entry entry = {0};
            struct error error;
            store.missing = bad;
            struct window_list *list = open_list((struct window_query){.has_since = true, .since = {2 * k * MINUTE}});
            do {
                ck_assert_int_eq(next(list, &entry, &error), WINDOW_LIST_WINDOW);
            } while (entry.manifest == NULL);
            ck_assert_int_eq(entry.k, k == bad ? k + 1 : k);
            window_list_close(list);
        }
    }
}
END_TEST

START_TEST(passing_failures_are_tried_again)
{
    store.failures = 4;
    expect_windows((struct window_query){0}, 1, 40);
    ck_assert_uint_eq(store.lists, 10);
    store.failures = 0;
    struct window_list *list = open_list((struct window_query){0});
    struct window_entry entry;
    struct error error;
    ck_assert_int_eq(next(list, &entry, &error), WINDOW_LIST_WINDOW);
    /* More of them than tries: manifests are then told of, and a page that can't be had ends it. */
    store.failures = 1000;
    enum window_list_state state;
    while ((state = next(list, &entry, &error)) == WINDOW_LIST_WINDOW) {
        ck_assert(entry.manifest != NULL || entry.error.code == QS_ERROR_STATUS);
    }
    ck_assert_int_eq(state, WINDOW_LIST_FAILED);
    ck_assert_int_eq(error.code, QS_ERROR_STATUS);
    window_list_close(list);
}
END_TEST

START_TEST(a_list_that_fails_says_so)
{
    struct window_entry entry;
    struct error error = {0};

    store.forbidden = true;
    struct window_list *list = open_list((struct window_query){0});
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(next(list, &entry, &error), WINDOW_LIST_FAILED);
        ck_assert_int_eq(error.code, QS_ERROR_FORBIDDEN);
        ck_assert_msg(strstr(error.message, "queen/_queen/a%2Fb/windows/") != NULL, "%s", error.message);
    }
    ck_assert_uint_eq(store.lists, 1);
    window_list_close(list);
    char prefix[1100];
    memset(prefix, 'p', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    const struct window_query query = {.prefix = prefix, .queue = {"q", 1}};
    ck_assert_ptr_null(window_list_open(reactor, &store.table, &query, wake, &awake, &error));
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
}
END_TEST

/* Closed at every point: no call is left behind, and none answers. */
START_TEST(closing_cancels_what_is_under_way)
{
    for (unsigned turns = 0; turns < 60; turns++) {
        struct window_entry entry;
        struct window_list *list =
            open_list((struct window_query){.has_since = turns % 2 == 0, .since = {31 * MINUTE}});
        store.failures = turns % 5;
        for (unsigned i = 0; i < turns; i++) {
            reactor_run_once(reactor, 1);
            (void)window_list_take(list, &entry, NULL);
        }
        window_list_close(list);
        ck_assert_uint_eq(store.pending, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window_list");
    TCase *tests = tcase_create("windows");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 20);
    tcase_add_test(tests, every_window_once_and_in_order);
    tcase_add_test(tests, no_window_at_all);
    tcase_add_test(tests, numbers_bound_what_is_read);
    tcase_add_test(tests, times_choose_the_windows_that_they_meet);
    tcase_add_test(tests, a_manifest_that_cannot_be_had_does_not_end_the_list);
    tcase_add_test(tests, the_search_passes_what_it_cannot_read);
    tcase_add_test(tests, passing_failures_are_tried_again);
    tcase_add_test(tests, a_list_that_fails_says_so);
    tcase_add_test(tests, closing_cancels_what_is_under_way);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
