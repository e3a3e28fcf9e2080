/*
 * A small object on its way up: put until it is there.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "scripted_world.h"
#include "worker/upload.h"

static struct scripted_world w;
static struct small_put *put;
static int failures;
static int ends;
static struct error last;

static void failed(void *argument, const struct error *error)
{
    ck_assert_ptr_eq(argument, &w);
    failures++;
    last = *error;
}

static void done(void *argument, const struct error *error)
{
    ck_assert_ptr_eq(argument, &w);
    ends++;
    last = *error;
    put = NULL;
}

static void begin(void)
{
    failures = ends = 0;
    scripted_world_begin(&w);
    put = small_put_start(&w.world, "orders", "lake/m.json", "application/json", memory_copy("{}", 2), 2, failed, done,
                          &w);
}

START_TEST(goes_up_with_its_type_and_md5)
{
    begin();
    struct scripted_call *call = world_call(&w, "put lake/m.json");
    ck_assert_str_eq(call->content_type, "application/json");
    call_answer(call);
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(last.code, QS_OK);
    ck_assert_str_eq(world_object_text(&w, "lake/m.json"), "{}");
    scripted_world_end(&w);
}
END_TEST

START_TEST(what_passes_is_tried_again_and_told)
{
    begin();
    call_fail(world_call(&w, "put*"), QS_ERROR_TRANSPORT, 0);
    ck_assert_int_eq(world_next_timer(&w), 750);
    world_run(&w, 750, EVERYTHING);
    call_fail(world_call(&w, "put*"), QS_ERROR_INTEGRITY, 200);
    ck_assert_int_eq(world_next_timer(&w), 1500);
    world_run(&w, 1500, EVERYTHING);
    call_fail_after(world_call(&w, "put*"), QS_ERROR_STATUS, 503, 7000);
    ck_assert_int_eq(world_next_timer(&w), 7000);
    ck_assert_int_eq(failures, 3);
    ck_assert_int_eq(ends, 0);
    world_run(&w, 7000, NOTHING);
    ck_assert_int_eq(ends, 1);
    ck_assert_str_eq(world_object_text(&w, "lake/m.json"), "{}");
    scripted_world_end(&w);
}
END_TEST

START_TEST(a_line_names_the_key_once)
{
    char line[WORLD_LINE_SIZE] = "";

    log_capture(world_take_line, line);
    begin();
    call_fail(world_call(&w, "put*"), QS_ERROR_STATUS, 503);
    log_capture(NULL, NULL);
    ck_assert_ptr_nonnull(strstr(line, "orders: upload of lake/m.json: put: scripted failure 503"));
    small_put_cancel(put);
    scripted_world_end(&w);
}
END_TEST

START_TEST(a_refusal_ends_it)
{
    begin();
    call_fail(world_call(&w, "put*"), QS_ERROR_FORBIDDEN, 403);
    ck_assert_int_eq(ends, 1);
    ck_assert_int_eq(failures, 0);
    ck_assert_int_eq(last.code, QS_ERROR_FORBIDDEN);
    scripted_world_end(&w);
}
END_TEST

START_TEST(cancelled_it_says_nothing_more)
{
    begin();
    small_put_cancel(put);
    scripted_world_end(&w);
    begin();
    call_fail(world_call(&w, "put*"), QS_ERROR_STATUS, 500);
    small_put_cancel(put);
    small_put_cancel(NULL);
    ck_assert_int_eq(ends, 0);
    scripted_world_end(&w);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("small_put");
    TCase *cases = tcase_create("small_put");
    tcase_add_test(cases, goes_up_with_its_type_and_md5);
    tcase_add_test(cases, what_passes_is_tried_again_and_told);
    tcase_add_test(cases, a_line_names_the_key_once);
    tcase_add_test(cases, a_refusal_ends_it);
    tcase_add_test(cases, cancelled_it_says_nothing_more);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed_tests = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_tests == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
