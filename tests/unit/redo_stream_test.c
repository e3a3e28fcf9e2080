/*
 * A redo read again while it is written: order, how far ahead, faults, and waking an encoder that waits.
 */
#include "worker/redo_stream.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "scripted_world.h"

static struct scripted_world w;
static struct redo_stream *stream;
static int failures;
static struct error last;

static void failed(void *argument, const struct error *error)
{
    ck_assert_ptr_eq(argument, &w);
    failures++;
    last = *error;
}

/* Two partitions with five records each; of the first, offsets 1 to 3 were measured, of the second all. */
static const struct surveyed_run surveyed[2] = {{{"p1", 2}, 1, 4, 3, 300}, {{"p2", 2}, 0, 5, 5, 500}};

static void begin(int64_t records_an_answer)
{
    scripted_world_begin(&w);
    failures = 0;
    w.records_ceiling = records_an_answer;
    for (int i = 0; i < 5; i++) {
        world_push(&w, "p1", 100 + i, 10);
        world_push(&w, "p2", 100 + i, 10);
    }
    stream = redo_stream_create(&w.world, (struct name){"orders", 6}, surveyed, 2, failed, &w);
}

static void end(void)
{
    redo_stream_destroy(stream);
    scripted_world_end(&w);
}

/* As the encoder does; there must be something to take, or an end. */
static int next(struct run *run)
{
    struct run_source *source = redo_stream_source(stream);
    redo_stream_asked(stream);
    world_settle(&w, NOTHING);
    return source->next(source, run);
}

static void check_run(const struct run *run, const char *partition, int64_t first, size_t count)
{
    ck_assert_uint_eq(run->partition.size, strlen(partition));
    ck_assert_mem_eq(run->partition.bytes, partition, run->partition.size);
    ck_assert_uint_eq(run->extent_count, 1);
    ck_assert_uint_eq(run->extents[0].count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(run->extents[0].block->records[run->extents[0].first + i].offset, first + (int64_t)i);
}

START_TEST(gives_what_was_measured_partition_by_partition)
{
    struct run run;
    begin(0);
    ck_assert_uint_eq(redo_stream_source(stream)->text_size, 800);
    ck_assert_int_eq(next(&run), 1);
    check_run(&run, "p1", 1, 3); /* offset 4 came along and isn't the window's */
    ck_assert_int_eq(next(&run), 1);
    check_run(&run, "p2", 0, 5);
    ck_assert_int_eq(next(&run), 0);
    ck_assert_int_eq(failures, 0);
    end();
}
END_TEST

START_TEST(a_partition_may_take_several_answers)
{
    struct run run;
    begin(2);
    ck_assert_int_eq(next(&run), 1);
    check_run(&run, "p1", 1, 2);
    ck_assert_int_eq(next(&run), 1);
    check_run(&run, "p1", 3, 1);
    for (int64_t first = 0; first < 4; first += 2) {
        ck_assert_int_eq(next(&run), 1);
        check_run(&run, "p2", first, 2);
    }
    ck_assert_int_eq(next(&run), 1);
    check_run(&run, "p2", 4, 1);
    ck_assert_int_eq(next(&run), 0);
    end();
}
END_TEST

START_TEST(reads_at_most_two_answers_ahead)
{
    struct run run;
    begin(1);
    redo_stream_asked(stream);
    world_settle(&w, NOTHING);
    ck_assert_uint_eq(world_count(&w, "fetch*"), 2);
    redo_stream_asked(stream);
    ck_assert_uint_eq(world_open_calls(&w), 0);
    struct run_source *source = redo_stream_source(stream);
    ck_assert_int_eq(source->next(source, &run), 1);
    redo_stream_asked(stream);
    ck_assert_uint_eq(world_count(&w, "fetch*"), 3);
    end();
}
END_TEST

START_TEST(lets_go_of_what_the_encoder_is_done_with)
{
    struct run run;
    begin(1);
    size_t most = 0;
    while (next(&run) == 1)
        most = w.budget.used > most ? w.budget.used : most;
    ck_assert_uint_lt(most, 4096); /* a few answers, not eight */
    end();
}
END_TEST

START_TEST(what_passes_is_asked_again)
{
    struct run run;
    begin(0);
    redo_stream_asked(stream);
    call_fail(world_call(&w, "fetch p1@1"), QS_ERROR_TRANSPORT, 0);
    redo_stream_asked(stream); /* doesn't shorten the pause */
    ck_assert_uint_eq(world_open_calls(&w), 0);
    world_run(&w, 750, EVERYTHING);
    call_answer_status(world_call(&w, "fetch p1@1"), FETCH_PASSING);
    world_run(&w, 1500, EVERYTHING);
    call_answer_status(world_call(&w, "fetch p1@1"), FETCH_OK); /* empty */
    world_run(&w, 3000, NOTHING);
    ck_assert_int_eq(next(&run), 1);
    check_run(&run, "p1", 1, 3);
    ck_assert_int_eq(failures, 0);
    end();
}
END_TEST

static void check_gone(void)
{
    struct run run;
    redo_stream_asked(stream);
    world_settle(&w, NOTHING);
    ck_assert_int_eq(failures, 1);
    ck_assert_int_eq(last.code, QS_ERROR_BODY);
    struct run_source *source = redo_stream_source(stream);
    ck_assert_int_lt(source->next(source, &run), 0);
    redo_stream_asked(stream);
    ck_assert_uint_eq(world_open_calls(&w), 0);
}

START_TEST(records_gone_since_they_were_measured_fail_it)
{
    begin(0);
    world_partition(&w, "p1")->records[2].gone = true;
    check_gone();
    end();
    begin(0);
    world_partition(&w, "p1")->log_start = 3;
    check_gone();
    end();
    begin(0); /* the tail of the range: what comes lies behind it, and asking again would bring the same */
    for (int i = 1; i <= 3; i++)
        world_partition(&w, "p1")->records[i].gone = true;
    check_gone();
    end();
}
END_TEST

START_TEST(a_refusal_fails_it)
{
    begin(0);
    redo_stream_asked(stream);
    call_fail(world_call(&w, "fetch*"), QS_ERROR_REFUSED, 401);
    ck_assert_int_eq(failures, 1);
    ck_assert_int_eq(last.status, 401);
    end();
}
END_TEST

START_TEST(rewound_it_gives_the_same_again)
{
    struct run run;
    begin(2);
    ck_assert_int_eq(next(&run), 1);
    ck_assert_int_eq(next(&run), 1);
    redo_stream_asked(stream); /* one under way */
    redo_stream_rewind(stream);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(next(&run), 1);
    check_run(&run, "p2", 4, 1);
    ck_assert_int_eq(next(&run), 0);
    redo_stream_stop(stream);
    redo_stream_rewind(stream);
    ck_assert_int_eq(next(&run), 1);
    check_run(&run, "p1", 1, 2);
    end();
}
END_TEST

static void *wait_in_next(void *argument)
{
    struct run run;
    struct run_source *source = redo_stream_source(stream);
    *(int *)argument = source->next(source, &run);
    return NULL;
}

START_TEST(an_encoder_that_waits_is_woken_by_an_answer_an_end_or_a_stop)
{
    pthread_t thread;
    int status = -1;
    begin(0);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_in_next, &status), 0);
    redo_stream_asked(stream);
    world_settle(&w, NOTHING);
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, 1);
    redo_stream_rewind(stream);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_in_next, &status), 0);
    redo_stream_stop(stream);
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, QS_ERROR_SYSTEM);
    end();
}
END_TEST

START_TEST(of_nothing_there_is_an_end_at_once)
{
    struct run run;
    scripted_world_begin(&w);
    stream = redo_stream_create(&w.world, (struct name){"orders", 6}, surveyed, 0, failed, &w);
    ck_assert_int_eq(next(&run), 0);
    end();
    redo_stream_destroy(NULL);
    redo_stream_stop(NULL);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("redo_stream");
    TCase *cases = tcase_create("redo_stream");
    tcase_add_test(cases, gives_what_was_measured_partition_by_partition);
    tcase_add_test(cases, a_partition_may_take_several_answers);
    tcase_add_test(cases, reads_at_most_two_answers_ahead);
    tcase_add_test(cases, lets_go_of_what_the_encoder_is_done_with);
    tcase_add_test(cases, what_passes_is_asked_again);
    tcase_add_test(cases, records_gone_since_they_were_measured_fail_it);
    tcase_add_test(cases, a_refusal_fails_it);
    tcase_add_test(cases, rewound_it_gives_the_same_again);
    tcase_add_test(cases, an_encoder_that_waits_is_woken_by_an_answer_an_end_or_a_stop);
    tcase_add_test(cases, of_nothing_there_is_an_end_at_once);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed_tests = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_tests == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
