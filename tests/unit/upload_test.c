/*
 * One object on its way up: one PUT or parts, and every way in which they can fail.
 */
#include "worker/upload.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "runs.h"
#include "scripted_world.h"

#define KEY "lake/w.jsonl"

static struct scripted_world w;
static struct upload *upload;
static struct run_set set;
static char *lines;
static size_t lines_size;
static int failures;
static int rewinds;
static int ends;
static struct error last;
static uint64_t uploaded;

static void rewind_source(void *argument)
{
    ck_assert_ptr_eq(argument, &w);
    rewinds++;
    run_set_rewind(&set);
}

static void failed(void *argument, const struct error *error)
{
    ck_assert_ptr_eq(argument, &w);
    failures++;
    last = *error;
}

static void done(void *argument, const struct error *error, const struct encode_result *result)
{
    ck_assert_ptr_eq(argument, &w);
    ends++;
    last = *error;
    uploaded = error->code == QS_OK ? result->bytes : 0;
    ck_assert_uint_eq(result->piece_count, 0);
    upload = NULL;
}

/* Ten lines, some 1700 bytes: whole where the threshold is above that, else in four parts. */
static void begin(uint64_t threshold)
{
    struct upload_request request = {.subject = "orders",
                                     .key = KEY,
                                     .shape = {FORMAT_JSONL, COMPRESSION_NONE, LAYOUT_MERGED, ALIGN_HOUR},
                                     .source = &set.source,
                                     .rewind = rewind_source,
                                     .threshold = threshold,
                                     .failed = failed,
                                     .done = done,
                                     .argument = &w};
    failures = rewinds = ends = 0;
    scripted_world_begin(&w);
    w.part_size = 500;
    lines = made_up_lines(10, 32, 5, &lines_size);
    run_set_read(&set, lines, lines_size, INT64_MIN, INT64_MAX);
    upload = upload_start(&w.world, &request);
}

static void begin_whole(void)
{
    begin(1 << 20);
}

static void begin_parts(void)
{
    begin(600);
}

static void end(void)
{
    upload_cancel(upload);
    upload = NULL;
    scripted_world_end(&w);
    run_set_free(&set);
    free(lines);
}

static void check_is_up(void)
{
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(last.code, QS_OK);
    ck_assert_uint_eq(uploaded, lines_size);
    const struct bucket_object *object = bucket_find(&w.bucket, KEY);
    ck_assert_ptr_nonnull(object);
    ck_assert_uint_eq(object->size, lines_size);
    ck_assert_mem_eq(object->bytes, lines, lines_size);
}

static void answer(const char *text)
{
    call_answer(world_call(&w, text));
}

static void encode(int words)
{
    while (words-- > 0)
        answer("encode");
}

static size_t open_uploads(void)
{
    size_t open = 0;
    for (size_t i = 0; i < w.bucket.upload_count; i++)
        open += w.bucket.uploads[i].open;
    return open;
}

/* ---- one PUT ---- */

START_TEST(a_small_object_goes_up_whole)
{
    begin_whole();
    ck_assert_uint_gt(w.budget.used, 0); /* what the encoder holds */
    encode(1);
    struct scripted_call *put = world_call(&w, "put " KEY);
    ck_assert_str_eq(put->content_type, "application/x-ndjson");
    call_answer(put);
    check_is_up();
    ck_assert_str_eq(world_trace(&w, KIND(CALL_CRASH)), "crash mid_upload\n");
    end();
}
END_TEST

START_TEST(a_line_names_the_key_once)
{
    char line[WORLD_LINE_SIZE] = "";

    log_capture(world_take_line, line);
    begin_whole();
    encode(1);
    call_fail(world_call(&w, "put*"), QS_ERROR_STATUS, 503);
    log_capture(NULL, NULL);
    ck_assert_ptr_nonnull(strstr(line, "orders: upload of " KEY ": put: scripted failure 503"));
    ck_assert_str_eq(last.message, "put " KEY ": scripted failure 503"); /* status names it too */
    world_run(&w, 750, NOTHING);
    check_is_up();
    end();
}
END_TEST

START_TEST(a_put_that_fails_is_sent_again_without_encoding)
{
    begin_whole();
    encode(1);
    call_fail(world_call(&w, "put*"), QS_ERROR_STATUS, 503);
    world_run(&w, 750, EVERYTHING);
    call_fail(world_call(&w, "put*"), QS_ERROR_INTEGRITY, 200);
    world_run(&w, 1500, EVERYTHING);
    call_lose(world_call(&w, "put*"));
    world_run(&w, 3000, NOTHING);
    check_is_up();
    ck_assert_int_eq(failures, 3);
    ck_assert_int_eq(rewinds, 0);
    ck_assert_uint_eq(world_count(&w, "crash*"), 1);
    end();
}
END_TEST

START_TEST(a_refused_put_ends_it)
{
    begin_whole();
    encode(1);
    call_fail(world_call(&w, "put*"), QS_ERROR_FORBIDDEN, 403);
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(last.code, QS_ERROR_FORBIDDEN);
    end();
}
END_TEST

START_TEST(encoding_that_fails_begins_again_from_the_source)
{
    begin_whole();
    call_fail(world_call(&w, "encode"), QS_ERROR_NO_MEMORY, 0);
    ck_assert_uint_eq(w.jobs, 0);
    ck_assert_uint_gt(w.budget.used, 0); /* nobody else fills the room that the next attempt needs */
    world_run(&w, 750, NOTHING);
    ck_assert_int_eq(rewinds, 1);
    check_is_up();
    ck_assert_uint_eq(w.budget.used, 0);
    end();
}
END_TEST

START_TEST(an_encoder_that_can_not_start_is_tried_again)
{
    begin_whole();
    upload_cancel(upload);
    w.encoder_fails_to_start = true;
    struct upload_request request = {.subject = "orders",
                                     .key = KEY,
                                     .shape = {FORMAT_JSONL, COMPRESSION_NONE, LAYOUT_MERGED, ALIGN_HOUR},
                                     .source = &set.source,
                                     .rewind = rewind_source,
                                     .threshold = 1 << 20,
                                     .failed = failed,
                                     .done = done,
                                     .argument = &w};
    upload = upload_start(&w.world, &request);
    ck_assert_int_eq(failures, 1);
    w.encoder_fails_to_start = false;
    world_run(&w, 750, NOTHING);
    check_is_up();
    end();
}
END_TEST

/* ---- parts ---- */

START_TEST(a_larger_object_goes_up_in_parts_while_it_is_encoded)
{
    begin_parts();
    encode(1);
    answer("create " KEY);
    struct scripted_call *first = world_call(&w, "part " KEY " 1");
    ck_assert_uint_eq(first->position, 0);
    ck_assert_uint_eq(first->size, 500);
    encode(1);
    ck_assert_uint_eq(world_call(&w, "part " KEY " 2")->position, 500);
    answer("part " KEY " 2");
    ck_assert_uint_eq(w.released, 1);
    ck_assert_str_eq(world_trace(&w, KIND(CALL_CRASH)), "crash mid_upload\n");
    answer("part " KEY " 1");
    world_settle(&w, NOTHING);
    check_is_up();
    ck_assert_uint_eq(world_count(&w, "crash*"), 1);
    ck_assert_uint_eq(world_count(&w, "abort*"), 0);
    ck_assert_uint_eq(open_uploads(), 0);
    end();
}
END_TEST

START_TEST(parts_wait_for_the_upload_to_be_created)
{
    begin_parts();
    encode(3);
    ck_assert(!world_has_call(&w, "encode")); /* three parts out: the encoder waits */
    ck_assert_uint_eq(world_open_calls(&w), 1);
    call_fail(world_call(&w, "create*"), QS_ERROR_STATUS, 500);
    world_run(&w, 750, EVERYTHING);
    answer("create " KEY);
    ck_assert(world_has_call(&w, "part " KEY " 1"));
    ck_assert(world_has_call(&w, "part " KEY " 3"));
    world_settle(&w, NOTHING);
    check_is_up();
    ck_assert_uint_eq(world_count(&w, "create*"), 2);
    end();
}
END_TEST

START_TEST(a_part_whose_answer_was_lost_is_sent_again_under_its_number)
{
    begin_parts();
    encode(2);
    answer("create*");
    call_lose(world_call(&w, "part " KEY " 1"));
    world_settle(&w, NOTHING); /* the others go on */
    ck_assert_int_eq(ends, 0);
    world_run(&w, 750, NOTHING);
    check_is_up();
    ck_assert_uint_eq(world_count(&w, "part " KEY " 1"), 2);
    ck_assert_uint_eq(world_count(&w, "part " KEY " 2"), 1);
    end();
}
END_TEST

START_TEST(each_part_has_a_backoff_of_its_own)
{
    begin_parts();
    encode(2);
    answer("create*");
    call_fail(world_call(&w, "part " KEY " 1"), QS_ERROR_STATUS, 503);
    w.now += 750;
    world_settle(&w, EVERYTHING);
    call_fail(world_call(&w, "part " KEY " 1"), QS_ERROR_STATUS, 503);
    call_fail(world_call(&w, "part " KEY " 2"), QS_ERROR_STATUS, 503);
    ck_assert_int_eq(world_next_timer(&w), 750); /* of the second's first failure */
    world_run(&w, 1500, NOTHING);
    check_is_up();
    end();
}
END_TEST

START_TEST(a_refused_part_ends_it_and_aborts_the_upload)
{
    begin_parts();
    encode(2);
    answer("create*");
    call_fail(world_call(&w, "part " KEY " 2"), QS_ERROR_REFUSED, 400);
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(last.code, QS_ERROR_REFUSED);
    answer("abort " KEY);
    ck_assert_uint_eq(open_uploads(), 0);
    end();
}
END_TEST

START_TEST(an_upload_that_the_store_forgot_begins_again)
{
    begin_parts();
    encode(1);
    answer("create*");
    w.bucket.uploads[0].open = false;
    answer("part " KEY " 1");
    ck_assert_int_eq(failures, 1);
    ck_assert_uint_eq(w.jobs, 0);
    world_run(&w, 750, NOTHING);
    ck_assert_int_eq(rewinds, 1);
    check_is_up();
    end();
}
END_TEST

/* Answers until nothing is left but a completion, one kind before the other. */
static void answer_up_to_completion(const char *first, const char *second)
{
    while (!world_has_call(&w, "complete*"))
        answer(world_has_call(&w, "create*") ? "create*" : world_has_call(&w, first) ? first : second);
}

START_TEST(the_end_of_encoding_may_come_before_or_after_the_last_part)
{
    begin_parts();
    answer_up_to_completion("encode", "part*");
    answer("complete*");
    check_is_up();
    end();
    begin_parts();
    answer_up_to_completion("part*", "encode");
    answer("complete*");
    check_is_up();
    end();
}
END_TEST

/* ---- completing ---- */

static void begin_completing(void)
{
    begin_parts();
    world_settle(&w, KIND(CALL_COMPLETE));
    world_mark(&w);
}

START_TEST(a_complete_whose_answer_was_lost_is_looked_up)
{
    begin_completing();
    call_lose(world_call(&w, "complete*"));
    world_run(&w, 750, EVERYTHING);
    answer("head " KEY);
    check_is_up();
    ck_assert_uint_eq(world_count(&w, "complete*"), 1);
    ck_assert_uint_eq(world_count(&w, "abort*"), 0);
    end();
}
END_TEST

START_TEST(a_complete_that_did_not_happen_is_sent_again)
{
    begin_completing();
    call_fail(world_call(&w, "complete*"), QS_ERROR_STATUS, 200); /* a 200 with an error in its body */
    world_run(&w, 750, EVERYTHING);
    answer("head " KEY); /* not there */
    answer("complete*");
    check_is_up();
    end();
}
END_TEST

START_TEST(what_else_lies_under_the_key_is_not_taken_for_it)
{
    begin_completing();
    world_object(&w, KEY, "older", 5);
    call_fail(world_call(&w, "complete*"), QS_ERROR_TRANSPORT, 0);
    world_run(&w, 750, EVERYTHING);
    answer("head " KEY);
    answer("complete*");
    check_is_up();
    end();
}
END_TEST

START_TEST(a_head_that_fails_is_no_answer_either)
{
    begin_completing();
    call_lose(world_call(&w, "complete*"));
    world_run(&w, 750, EVERYTHING);
    call_fail(world_call(&w, "head*"), QS_ERROR_STATUS, 503);
    world_run(&w, 1500, NOTHING); /* complete: no such upload; head: there */
    check_is_up();
    ck_assert_str_eq(world_trace(&w, STORE_ALL), "head " KEY "\ncomplete " KEY " 4\nhead " KEY "\n");
    end();
}
END_TEST

START_TEST(an_unknown_upload_with_nothing_there_begins_again)
{
    begin_completing();
    w.bucket.uploads[0].open = false;
    answer("complete*");
    answer("head " KEY);
    ck_assert_int_eq(ends, 0);
    world_run(&w, 750, NOTHING);
    check_is_up();
    ck_assert_int_eq(rewinds, 1);
    end();
}
END_TEST

START_TEST(a_refused_complete_ends_it_and_aborts)
{
    begin_completing();
    call_fail(world_call(&w, "complete*"), QS_ERROR_REFUSED, 400);
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(last.code, QS_ERROR_REFUSED);
    answer("abort " KEY);
    ck_assert_uint_eq(open_uploads(), 0);
    end();
}
END_TEST

/* ---- cancelling ---- */

START_TEST(cancelled_at_any_moment_it_leaves_nothing)
{
    for (int moment = 0; moment < 14; moment++) {
        begin_parts();
        for (int step = 0; step < moment; step++) {
            if (step == 3 && world_has_call(&w, "part*"))
                call_fail(world_call(&w, "part*"), QS_ERROR_STATUS, 500);
            else if (world_open_calls(&w) > 0)
                answer("*");
        }
        upload_cancel(upload);
        upload = NULL;
        if (world_has_call(&w, "abort*"))
            answer("abort*");
        ck_assert_uint_eq(open_uploads(), 0);
        end();
    }
    upload_cancel(NULL);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("upload");
    TCase *whole = tcase_create("one PUT");
    tcase_add_test(whole, a_small_object_goes_up_whole);
    tcase_add_test(whole, a_line_names_the_key_once);
    tcase_add_test(whole, a_put_that_fails_is_sent_again_without_encoding);
    tcase_add_test(whole, a_refused_put_ends_it);
    tcase_add_test(whole, encoding_that_fails_begins_again_from_the_source);
    tcase_add_test(whole, an_encoder_that_can_not_start_is_tried_again);
    suite_add_tcase(all, whole);
    TCase *parts = tcase_create("parts");
    tcase_add_test(parts, a_larger_object_goes_up_in_parts_while_it_is_encoded);
    tcase_add_test(parts, parts_wait_for_the_upload_to_be_created);
    tcase_add_test(parts, a_part_whose_answer_was_lost_is_sent_again_under_its_number);
    tcase_add_test(parts, each_part_has_a_backoff_of_its_own);
    tcase_add_test(parts, a_refused_part_ends_it_and_aborts_the_upload);
    tcase_add_test(parts, an_upload_that_the_store_forgot_begins_again);
    tcase_add_test(parts, the_end_of_encoding_may_come_before_or_after_the_last_part);
    suite_add_tcase(all, parts);
    TCase *completing = tcase_create("completing");
    tcase_add_test(completing, a_complete_whose_answer_was_lost_is_looked_up);
    tcase_add_test(completing, a_complete_that_did_not_happen_is_sent_again);
    tcase_add_test(completing, what_else_lies_under_the_key_is_not_taken_for_it);
    tcase_add_test(completing, a_head_that_fails_is_no_answer_either);
    tcase_add_test(completing, an_unknown_upload_with_nothing_there_begins_again);
    tcase_add_test(completing, a_refused_complete_ends_it_and_aborts);
    tcase_add_test(completing, cancelled_at_any_moment_it_leaves_nothing);
    suite_add_tcase(all, completing);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed_tests = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_tests == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
