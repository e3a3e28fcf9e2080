/*
 * The encoder on its threads: what is told, in what order, what it may hold, and that ending a job ends it at any time.
 */
#include "worker/encode_thread.h"

#include <check.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "runs.h"
#include "worker/encode_stream.h"

#define PART OBJECT_PART_SIZE

static struct reactor *reactor;
static struct encoder *encoder;

/* What a job told, and what the loop does about it. */
struct listener {
    struct encode_job *job;
    struct byte_buffer object;
    size_t parts;
    size_t unreleased;
    size_t most_unreleased;
    struct encode_part *kept[ENCODE_PARTS_AHEAD];
    bool keep; /* release only when three are out */
    bool hold; /* release none */
    bool end_at_first_part;
    bool end_at_done;
    bool small_part; /* one below the part size was told: must be the last */
    int done;
    struct error error;
    struct encode_result result;
};

static void set_up(void)
{
    reactor = reactor_create(NULL);
    ck_assert_ptr_nonnull(reactor);
    encoder = encode_thread_create(reactor, 2, 2, NULL);
    ck_assert_ptr_nonnull(encoder);
}

static void tear_down(void)
{
    encode_thread_destroy(encoder);
    reactor_destroy(reactor);
}

static void release_all(struct listener *listener)
{
    while (listener->unreleased > 0) {
        encoder->operations->release(encoder, listener->job, listener->kept[--listener->unreleased]);
    }
}

static void on_part(void *argument, struct encode_part *part)
{
    struct listener *listener = argument;
    uint8_t md5[16];

    ck_assert_int_eq(listener->done, 0);
    ck_assert(!listener->small_part);
    ck_assert(part->size > 0 && part->size <= PART);
    listener->small_part = part->size < PART;
    ck_assert_int_eq(EVP_Digest(part->bytes, part->size, md5, NULL, EVP_md5(), NULL), 1);
    ck_assert_mem_eq(md5, part->md5, 16);
    byte_buffer_add(&listener->object, part->bytes, part->size);
    listener->parts++;
    ck_assert_uint_lt(listener->unreleased, ENCODE_PARTS_AHEAD);
    listener->kept[listener->unreleased++] = part;
    if (listener->end_at_first_part) {
        encoder->operations->end(encoder, listener->job);
        listener->job = NULL;
        return;
    }
    if (!listener->hold && (!listener->keep || listener->unreleased == ENCODE_PARTS_AHEAD)) {
        release_all(listener);
    }
}

static void on_done(void *argument, const struct error *error, const struct encode_result *result)
{
    struct listener *listener = argument;

    ck_assert_int_eq(listener->done, 0);
    listener->done++;
    listener->error = *error;
    if (error->code == QS_OK) {
        listener->result = *result;
        for (size_t i = 0; i < result->piece_count; i++) {
            byte_buffer_add(&listener->object, result->pieces[i].iov_base, result->pieces[i].iov_len);
        }
    } else {
        ck_assert_ptr_null(result);
    }
    if (listener->end_at_done) {
        encoder->operations->end(encoder, listener->job);
        listener->job = NULL;
    }
}

static const struct encode_handlers handlers = {on_part, on_done, NULL};

static void start(struct listener *listener, enum setting_compression compression, struct run_set *set,
                  uint64_t threshold)
{
    struct window_shape shape = {FORMAT_JSONL, compression, LAYOUT_MERGED, ALIGN_HOUR};

    listener->job = encoder->operations->start(encoder, &shape, &set->source, threshold, &handlers, listener);
    ck_assert_ptr_nonnull(listener->job);
}

static void end(struct listener *listener)
{
    if (listener->job != NULL) {
        encoder->operations->end(encoder, listener->job);
    }
    byte_buffer_free(&listener->object);
    memset(listener, 0, sizeof *listener);
}

static void run_until_done(struct listener *listener)
{
    while (listener->done == 0) {
        reactor_run_once(reactor, 1000);
    }
}

static int collect(void *argument, const uint8_t *bytes, size_t size)
{
    byte_buffer_add(argument, bytes, size);
    return 0;
}

static void expect_object(const struct listener *listener, enum setting_compression compression, struct run_set *set)
{
    struct window_shape shape = {FORMAT_JSONL, compression, LAYOUT_MERGED, ALIGN_HOUR};
    struct byte_buffer expected = {0};
    struct encode_result result;

    run_set_rewind(set);
    ck_assert_int_eq(encode_stream(&shape, &set->source, 1, collect, &expected, &result, NULL), 0);
    ck_assert_int_eq(listener->error.code, QS_OK);
    ck_assert_uint_eq(listener->object.size, expected.size);
    ck_assert(expected.size == 0 || memcmp(listener->object.bytes, expected.bytes, expected.size) == 0);
    ck_assert_uint_eq(listener->result.bytes, expected.size);
    ck_assert_mem_eq(listener->result.sha256, result.sha256, 32);
    ck_assert_uint_eq(listener->result.records, result.records);
    ck_assert_uint_eq(listener->result.partitions, result.partitions);
    ck_assert_int_eq(listener->result.min_ts.v, result.min_ts.v);
    ck_assert_int_eq(listener->result.max_ts.v, result.max_ts.v);
    if (listener->result.piece_count > 0) {
        uint8_t md5[16];
        ck_assert_uint_eq(listener->parts, 0);
        ck_assert_int_eq(EVP_Digest(expected.bytes, expected.size, md5, NULL, EVP_md5(), NULL), 1);
        ck_assert_mem_eq(md5, listener->result.md5, 16);
    } else {
        ck_assert_uint_eq(listener->parts, (expected.size + PART - 1) / PART);
    }
    byte_buffer_free(&expected);
}

/* The threshold decides how it goes up, never what. */
static void check_thresholds(enum setting_compression compression, size_t count, bool keep)
{
    size_t size = 0;
    char *text = made_up_lines(count, 1000, 5, &size);
    struct run_set set;
    struct listener listener = {0};

    run_set_read(&set, text, size, INT64_MIN, INT64_MAX);
    start(&listener, compression, &set, UINT64_MAX);
    run_until_done(&listener);
    expect_object(&listener, compression, &set);
    ck_assert_uint_gt(listener.result.piece_count, 0);
    uint64_t bytes = listener.result.bytes;
    end(&listener);
    const uint64_t thresholds[] = {bytes, bytes - 1, 5 << 20, 1, 40 << 20};
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
        run_set_rewind(&set);
        listener.keep = keep;
        start(&listener, compression, &set, thresholds[i]);
        run_until_done(&listener);
        expect_object(&listener, compression, &set);
        ck_assert_int_eq(listener.result.piece_count > 0, bytes <= thresholds[i]);
        release_all(&listener);
        end(&listener);
    }
    run_set_free(&set);
    free(text);
}

START_TEST(the_threshold_decides_how_it_goes_up)
{
    check_thresholds(COMPRESSION_ZSTD, 3000, false);
    check_thresholds(COMPRESSION_GZIP, 2000, false);
    check_thresholds(COMPRESSION_NONE, 1000, false);
}
END_TEST

START_TEST(parts_come_in_order_and_wait_to_be_released)
{
    check_thresholds(COMPRESSION_NONE, 55000, true);
    check_thresholds(COMPRESSION_ZSTD, 75000, true);
}
END_TEST

START_TEST(a_part_that_nobody_releases_holds_the_encoder)
{
    size_t size = 0;
    char *text = made_up_lines(90000, 1000, 6, &size);
    struct run_set set;
    struct listener listener = {.hold = true};

    run_set_read(&set, text, size, INT64_MIN, INT64_MAX);
    ck_assert_uint_gt(size, 5 * (size_t)PART);
    start(&listener, COMPRESSION_NONE, &set, 1);
    while (listener.unreleased < ENCODE_PARTS_AHEAD) {
        reactor_run_once(reactor, 1000);
    }
    for (int i = 0; i < 20; i++) {
        reactor_run_once(reactor, 10);
    }
    ck_assert_uint_eq(listener.parts, ENCODE_PARTS_AHEAD);
    ck_assert_int_eq(listener.done, 0);
    end(&listener); /* while the thread waits for a release */
    run_set_free(&set);
    free(text);
}
END_TEST

START_TEST(no_record_at_all_is_an_object_too)
{
    static const enum setting_compression kinds[] = {COMPRESSION_ZSTD, COMPRESSION_GZIP, COMPRESSION_NONE};
    struct run_set set;

    run_set_read(&set, "", 0, INT64_MIN, INT64_MAX);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct listener listener = {0};
        run_set_rewind(&set);
        start(&listener, kinds[i], &set, 1000);
        run_until_done(&listener);
        ck_assert_uint_eq(listener.result.piece_count, 1);
        expect_object(&listener, kinds[i], &set);
        end(&listener);
    }
    run_set_free(&set);
}
END_TEST

START_TEST(a_source_that_gives_up_is_told_once)
{
    size_t size = 0;
    char *text = made_up_lines(40000, 1000, 7, &size);
    struct run_set set;

    run_set_read(&set, text, size, INT64_MIN, INT64_MAX);
    ck_assert_uint_eq(set.run_count, 20);
    for (size_t fail_at = 0; fail_at <= 20; fail_at += 10) {
        struct listener listener = {0};
        run_set_rewind(&set);
        set.fail_at = fail_at;
        start(&listener, COMPRESSION_NONE, &set, 1);
        run_until_done(&listener);
        ck_assert_int_eq(listener.error.code, QS_ERROR_NO_ROOM);
        ck_assert_str_ne(listener.error.message, "");
        reactor_run_once(reactor, 10);
        ck_assert_int_eq(listener.done, 1);
        end(&listener);
    }
    set.fail_at = SIZE_MAX;
    set.source.text_size++;
    struct listener listener = {0};
    run_set_rewind(&set);
    start(&listener, COMPRESSION_ZSTD, &set, 1 << 30);
    run_until_done(&listener);
    ck_assert_int_eq(listener.error.code, QS_ERROR_INPUT);
    end(&listener);
    run_set_free(&set);
    free(text);
}
END_TEST

START_TEST(more_jobs_than_threads_wait_in_order)
{
    enum { JOBS = 7 };
    size_t size = 0;
    char *text = made_up_lines(5000, 1000, 8, &size);
    struct run_set sets[JOBS];
    struct listener listeners[JOBS] = {0};

    for (size_t i = 0; i < JOBS; i++) {
        run_set_read(&sets[i], text, size, INT64_MIN, INT64_MAX);
        start(&listeners[i], COMPRESSION_ZSTD, &sets[i], 1 << 30);
    }
    end(&listeners[3]); /* most likely still waiting */
    listeners[3].done = 1;
    for (size_t i = 0; i < JOBS; i++) {
        run_until_done(&listeners[i]);
        if (i != 3) {
            expect_object(&listeners[i], COMPRESSION_ZSTD, &sets[i]);
            ck_assert_uint_eq(listeners[i].result.bytes, listeners[0].result.bytes);
        }
    }
    for (size_t i = 0; i < JOBS; i++) {
        end(&listeners[i]);
        run_set_free(&sets[i]);
    }
    free(text);
}
END_TEST

START_TEST(a_job_can_be_ended_from_what_it_tells)
{
    size_t size = 0;
    char *text = made_up_lines(60000, 1000, 9, &size);
    struct run_set set;
    struct listener listener = {.end_at_first_part = true};

    run_set_read(&set, text, size, INT64_MIN, INT64_MAX);
    start(&listener, COMPRESSION_NONE, &set, 1);
    while (listener.job != NULL) {
        reactor_run_once(reactor, 1000);
    }
    for (int i = 0; i < 5; i++) {
        reactor_run_once(reactor, 2);
    }
    ck_assert_uint_eq(listener.parts, 1);
    ck_assert_int_eq(listener.done, 0);
    end(&listener);
    run_set_rewind(&set);
    listener.end_at_done = true;
    start(&listener, COMPRESSION_ZSTD, &set, 1);
    run_until_done(&listener);
    ck_assert_ptr_null(listener.job);
    end(&listener);
    run_set_free(&set);
    free(text);
}
END_TEST

START_TEST(a_job_can_be_ended_at_any_time)
{
    size_t size = 0;
    char *text = made_up_lines(30000, 1000, 10, &size);
    struct run_set set;

    run_set_read(&set, text, size, INT64_MIN, INT64_MAX);
    for (int i = 0; i < 60; i++) {
        struct listener listener = {.keep = i % 4 == 0};
        struct timespec pause = {0, i * 700000L};
        run_set_rewind(&set);
        start(&listener, i % 2 == 0 ? COMPRESSION_NONE : COMPRESSION_ZSTD, &set, i % 3 == 0 ? 1 : UINT64_MAX);
        if (i % 5 == 0) {
            reactor_run_once(reactor, i);
        } else {
            (void)nanosleep(&pause, NULL);
        }
        struct mono_ms before = clock_mono();
        end(&listener);
        ck_assert(clock_mono().v - before.v < 3000);
    }
    run_set_free(&set);
    free(text);
}
END_TEST

START_TEST(what_a_job_may_hold_is_said_beforehand)
{
    struct window_shape zstd = {FORMAT_JSONL, COMPRESSION_ZSTD, LAYOUT_MERGED, ALIGN_HOUR};
    struct window_shape none = {FORMAT_JSONL, COMPRESSION_NONE, LAYOUT_MERGED, ALIGN_HOUR};

    ck_assert_uint_lt(encode_memory(&zstd, 1000, 64 << 20), 6 << 20);
    ck_assert_uint_lt(encode_memory(&none, 1000, 64 << 20), 1 << 20);
    ck_assert_uint_ge(encode_memory(&none, UINT64_C(1) << 40, 64 << 20), 64 << 20);
    ck_assert_uint_lt(encode_memory(&zstd, UINT64_C(1) << 40, 5 << 20), 110 << 20);
    ck_assert_uint_ge(encode_memory(&none, UINT64_C(1) << 40, UINT64_MAX), UINT64_C(1) << 40);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("encode thread");
    TCase *tests = tcase_create("jobs");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 600);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_threshold_decides_how_it_goes_up);
    tcase_add_test(tests, parts_come_in_order_and_wait_to_be_released);
    tcase_add_test(tests, a_part_that_nobody_releases_holds_the_encoder);
    tcase_add_test(tests, no_record_at_all_is_an_object_too);
    tcase_add_test(tests, a_source_that_gives_up_is_told_once);
    tcase_add_test(tests, more_jobs_than_threads_wait_in_order);
    tcase_add_test(tests, a_job_can_be_ended_from_what_it_tells);
    tcase_add_test(tests, a_job_can_be_ended_at_any_time);
    tcase_add_test(tests, what_a_job_may_hold_is_said_beforehand);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
