/*
 * The commit sequence (spec 3.5): its order, what lies there afterwards, and that a crash at any point of it leads to the
 * same window.
 */
#include <check.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/manifest.h"
#include "queue_rig.h"

#define MANIFEST_4    "queen/_queen/orders/windows/0000000004.json"
#define CHECKPOINT(k) CHECKPOINTS "000000000" #k ".json.zst"

/* Two records that a window of ten seconds after T0 takes. */
static void begin(void)
{
    rig_begin();
    rig_committed(0, T0);
    world_push(&rig.w, "p1", T0 + SECOND, 10);
    world_push(&rig.w, "p2", T0 + 2 * SECOND, 10);
    rig.w.safe_time = T0 + 15 * SECOND;
}

static struct scripted_call *call(const char *text)
{
    return world_call(&rig.w, text);
}

static struct manifest read_manifest(const char *key)
{
    struct manifest manifest;
    struct error error;
    const struct bucket_object *object = bucket_find(&rig.w.bucket, key);
    ck_assert_ptr_nonnull(object);
    ck_assert_int_eq(manifest_parse((const char *)object->bytes, object->size, &manifest, &error), 0);
    return manifest;
}

/* ---- the order ---- */

START_TEST(intent_object_manifest_pointer)
{
    begin();
    rig_run();
    ck_assert_str_eq(world_trace(&rig.w, COMMIT_ALL | KIND(CALL_ENCODE)), "kv putIfAbsent lease ttl 30\n"
                                                                          "kv get intent committed\n"
                                                                          "get " MANIFEST_1 "\n"
                                                                          "kv put lease@14 ttl 30 required, "
                                                                          "put intent@0 required\n"
                                                                          "crash after_intent\n"
                                                                          "encode\n"
                                                                          "put " OBJECT_1 "\n"
                                                                          "crash mid_upload\n"
                                                                          "crash after_upload\n"
                                                                          "put " MANIFEST_1 "\n"
                                                                          "crash before_commit\n"
                                                                          "kv put lease@28 ttl 30 required, "
                                                                          "put committed@7 required\n"
                                                                          "crash after_commit\n");
    rig_end();
}
END_TEST

START_TEST(each_step_waits_for_the_one_before)
{
    static const char *const steps[] = {"kv put lease@14*", "encode", "put " OBJECT_1, "put " MANIFEST_1,
                                        "kv put lease@28*"};
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_KV));
    call_answer(call("kv*"));
    call_answer(call("kv*"));
    world_settle(&rig.w, KIND(CALL_KV));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        ck_assert_uint_eq(world_open_calls(&rig.w), 1);
        call_answer(call(steps[i]));
    }
    ck_assert_int_eq(rig_pointer_k(), 1);
    rig_end();
}
END_TEST

START_TEST(the_documents_say_what_is_committed_in_integers)
{
    begin();
    rig_run();
    ck_assert_str_eq(world_document_text(&rig.w, INTENT),
                     "{\"k\":1,\"tStart\":1.788516e+15,\"tEnd\":1.78851601e+15,\"format\":\"jsonl\","
                     "\"compression\":\"none\",\"layout\":\"merged\",\"align\":\"none\",\"prefix\":\"queen\","
                     "\"writer\":\"queen-s3/1.5.0 jsonl\"}"); /* numbers as cJSON, which keeps them here, spells them */
    for (size_t i = 0; i < rig.w.call_count; i++)
        if (rig.w.calls[i]->kind == CALL_KV && rig.w.calls[i]->count == 2) {
            const char *sent = rig.w.calls[i]->batch.operations[1].value;
            ck_assert_ptr_null(strstr(sent, "e+"));
            ck_assert(strstr(sent, "\"tStart\":1788516000000000,\"tEnd\":1788516010000000,") != NULL ||
                      strstr(sent, "\"tEnd\":\"2026-09-04T10:00:10.000000Z\",\"manifest\":\"" MANIFEST_1
                                   "\",\"records\":2,") != NULL);
        }
    rig_end();
}
END_TEST

START_TEST(the_manifest_describes_the_object)
{
    uint8_t sha256[32];
    begin();
    rig_run();
    struct manifest manifest = read_manifest(MANIFEST_1);
    const struct bucket_object *object = bucket_find(&rig.w.bucket, OBJECT_1);
    ck_assert_ptr_nonnull(object);
    ck_assert_uint_eq(manifest.object_count, 1);
    ck_assert_str_eq(manifest.objects[0].key, OBJECT_1);
    ck_assert_uint_eq(manifest.objects[0].bytes, object->size);
    EVP_Digest(object->bytes, object->size, sha256, NULL, EVP_sha256(), NULL);
    ck_assert_mem_eq(manifest.objects[0].sha256, sha256, 32);
    ck_assert_uint_eq(manifest.records, 2);
    ck_assert_uint_eq(manifest.partitions, 2);
    ck_assert_int_eq(manifest.bounds.start.v, T0);
    ck_assert_int_eq(manifest.bounds.end.v, T0 + 10 * SECOND);
    ck_assert_int_eq(manifest.min_ts.v, T0 + SECOND);
    ck_assert_int_eq(manifest.max_ts.v, T0 + 2 * SECOND);
    ck_assert_uint_eq(manifest.lost_count, 0);
    manifest_free(&manifest);
    rig_end();
}
END_TEST

START_TEST(a_commit_is_told)
{
    begin();
    rig_run();
    struct report_queue report = rig_report();
    ck_assert_uint_eq(report.windows_committed, 1);
    ck_assert_uint_eq(report.records_written, 2);
    ck_assert_uint_eq(report.bytes_written[FORMAT_JSONL], bucket_find(&rig.w.bucket, OBJECT_1)->size);
    ck_assert_uint_eq(report.buffer_bytes, 0);
    ck_assert_int_eq(report.k, 1);
    ck_assert_int_eq(report.end_us, T0 + 10 * SECOND);
    ck_assert_int_eq(report.fresh_mono_ms, rig.w.now);
    ck_assert_uint_eq(rig.histogram, 2);
    ck_assert_uint_eq(report.partitions, 2);
    rig_end();
}
END_TEST

START_TEST(reading_goes_on_while_a_window_is_on_its_way)
{
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_PUT));
    world_push(&rig.w, "p1", T0 + 12 * SECOND, 10);
    world_push(&rig.w, "p1", T0 + 18 * SECOND, 10);
    rig.w.safe_time = T0 + 40 * SECOND;
    world_mark(&rig.w);
    world_run(&rig.w, 5000, KIND(CALL_PUT));
    ck_assert_str_ne(world_trace(&rig.w, KIND(CALL_FETCH)), "");
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_KV)), ""); /* one window at a time */
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 2);
    ck_assert_uint_eq(rig_report().records_written, 4);
    rig_end();
}
END_TEST

START_TEST(an_idle_interval_writes_nothing)
{
    rig_begin();
    rig_committed(0, T0);
    rig.w.safe_time = T0 + 100 * SECOND;
    rig_run();
    world_run(&rig.w, 20000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 0);
    ck_assert_str_eq(world_trace(&rig.w, STORE_ALL & ~KIND(CALL_GET)), "");
    ck_assert_int_ge(rig_report().through_us, T0 + 100 * SECOND);
    ck_assert_int_gt(rig_report().fresh_mono_ms, 0);
    rig_end();
}
END_TEST

/* ---- failures ---- */

START_TEST(what_passes_is_shown_and_goes_on)
{
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_PUT));
    call_fail(call("put " OBJECT_1), QS_ERROR_STATUS, 503);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_str_ne(rig_report().error, "");
    ck_assert_int_eq(rig_report().error_wall_ms, rig.w.wall + rig.w.now);
    world_run(&rig.w, 750, KIND(CALL_PUT));
    call_answer(call("put " OBJECT_1));
    call_fail(call("put " MANIFEST_1), QS_ERROR_TRANSPORT, 0);
    world_run(&rig.w, 750, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_str_eq(rig_report().error, "");
    rig_end();
}
END_TEST

/* text: "put KEY". What status says names it, once. */
static void check_told(const char *text)
{
    struct report_queue report = rig_report();
    const char *key = text + strlen("put ");
    const char *named = strstr(report.error, key);
    ck_assert_ptr_nonnull(named);
    ck_assert_ptr_null(strstr(named + 1, key));
    ck_assert_ptr_nonnull(strstr(report.error, ": put: scripted failure 403"));
}

static void check_refused(const char *text)
{
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_PUT));
    if (!world_has_call(&rig.w, text))
        call_answer(call("put*"));
    call_fail(call(text), QS_ERROR_FORBIDDEN, 403);
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    check_told(text);
    ck_assert_uint_eq(rig_report().buffer_bytes, 0);
    call_answer(call("kv delete lease*"));
    ck_assert_int_eq(rig_pointer_k(), 0);
    world_run(&rig.w, 59999, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    world_run(&rig.w, 300, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_uint_eq(world_count(&rig.w, "put " OBJECT_1), 2);
    rig_end();
}

START_TEST(a_refused_object_or_manifest_stops_the_queue_and_the_window_is_redone)
{
    check_refused("put " OBJECT_1);
    check_refused("put " MANIFEST_1);
}
END_TEST

START_TEST(a_lost_pointer_write_is_found_and_counted_once)
{
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_KV));
    for (int i = 0; i < 3; i++) {
        call_answer(call("kv*"));
        world_settle(&rig.w, KIND(CALL_KV));
    }
    call_lose(call("kv put lease@28 ttl 30 required, put committed@7 required"));
    world_run(&rig.w, 50, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_uint_eq(rig_report().windows_committed, 1);
    ck_assert_uint_eq(world_count(&rig.w, "kv put lease*"), world_count(&rig.w, "kv put lease@14*") + 1);
    rig_end();
}
END_TEST

/* ---- crashes ---- */

/* Ends the driver after so many answers from its first window on, starts another, and looks at what comes of it. */
static bool crash_after(int answers)
{
    begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_KV));
    call_answer(call("kv*"));
    call_answer(call("kv*"));
    world_settle(&rig.w, KIND(CALL_KV));
    bool more = true;
    for (int i = 0; i < answers && more; i++) {
        more = world_open_calls(&rig.w) > 0;
        if (more)
            call_answer(call("*"));
    }
    rig_restart();
    world_run(&rig.w, 5000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_int_eq(rig_pointer_end(), T0 + 10 * SECOND);
    ck_assert_uint_eq(rig.w.bucket.object_count, 2);
    struct manifest manifest = read_manifest(MANIFEST_1);
    ck_assert_uint_eq(manifest.objects[0].bytes, bucket_find(&rig.w.bucket, OBJECT_1)->size);
    ck_assert_uint_eq(manifest.records, 2);
    manifest_free(&manifest);
    rig_end();
    return more;
}

START_TEST(a_crash_anywhere_leads_to_the_same_window)
{
    int answers = 0;
    while (crash_after(answers))
        answers++;
    ck_assert_int_eq(answers, 6); /* intent, encoding, object, manifest, pointer */
}
END_TEST

/* ---- lost ---- */

/* Window 3 ended at T0 and left a checkpoint; five records of p1 come after it. */
static void begin_after_checkpoint(void)
{
    rig_begin();
    rig_committed(3, T0);
    rig_checkpoint(3, T0, "p1", 0);
    for (int i = 1; i <= 5; i++)
        world_push(&rig.w, "p1", T0 + i * SECOND, 10);
    rig.w.safe_time = T0 + 20 * SECOND;
}

START_TEST(what_was_lost_goes_into_the_next_windows_manifest)
{
    begin_after_checkpoint();
    world_partition(&rig.w, "p1")->log_start = 3;
    rig_run();
    ck_assert_int_eq(rig_pointer_k(), 4);
    struct manifest manifest = read_manifest(MANIFEST_4);
    ck_assert_uint_eq(manifest.lost_count, 1);
    ck_assert_int_eq(manifest.lost[0].from, 0);
    ck_assert_int_eq(manifest.lost[0].to, 2);
    ck_assert_uint_eq(manifest.records, 2);
    ck_assert_uint_eq(rig_report().records_lost, 3);
    manifest_free(&manifest);
    rig_end();
}
END_TEST

START_TEST(a_redo_of_which_nothing_is_left_is_given_up_and_told_as_lost)
{
    begin_after_checkpoint();
    rig_intent(4, T0, T0 + 10 * SECOND);
    world_partition(&rig.w, "p1")->log_start = 5;
    rig_run();
    world_run(&rig.w, 15000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_int_eq(rig_pointer_k(), 3);
    world_push(&rig.w, "p1", T0 + 21 * SECOND, 10);
    rig.w.safe_time = T0 + 40 * SECOND;
    world_run(&rig.w, 5000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 4);
    struct manifest manifest = read_manifest(MANIFEST_4);
    ck_assert_uint_eq(manifest.lost_count, 1);
    ck_assert_int_eq(manifest.lost[0].from, 0);
    ck_assert_int_eq(manifest.lost[0].to, 4);
    ck_assert_uint_eq(manifest.records, 1);
    ck_assert_uint_eq(rig_report().records_lost, 5);
    manifest_free(&manifest);
    rig_end();
}
END_TEST

/* ---- checkpoints ---- */

/* A window every ten seconds, each with one record. */
static void commit_windows(int count, uint32_t held)
{
    for (int i = 0; i < count; i++) {
        world_push(&rig.w, "p1", rig.w.safe_time + SECOND, 10);
        rig.w.safe_time += 20 * SECOND;
        world_run(&rig.w, 4000, held);
    }
}

START_TEST(every_so_many_windows_a_checkpoint_is_written)
{
    begin();
    rig.settings.checkpoint_every = 2;
    rig_run();
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_uint_eq(world_count(&rig.w, "put " CHECKPOINTS "*"), 0);
    commit_windows(1, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 2);
    ck_assert_ptr_nonnull(bucket_find(&rig.w.bucket, CHECKPOINT(2)));
    ck_assert_int_eq(rig_report().checkpoint_k, 2);
    /* Who starts from it reads nothing twice. */
    world_mark(&rig.w);
    rig_restart();
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH)), "");
    ck_assert_int_eq(rig_report().checkpoint_k, 2);
    rig_end();
}
END_TEST

START_TEST(those_older_than_the_last_two_are_deleted)
{
    begin();
    rig.settings.checkpoint_every = 1;
    rig.w.page = 1;
    rig_run();
    commit_windows(4, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 5);
    ck_assert_ptr_null(bucket_find(&rig.w.bucket, CHECKPOINT(3)));
    ck_assert_ptr_nonnull(bucket_find(&rig.w.bucket, CHECKPOINT(4)));
    ck_assert_ptr_nonnull(bucket_find(&rig.w.bucket, CHECKPOINT(5)));
    ck_assert_uint_eq(world_count(&rig.w, "remove*"), 3);
    rig_end();
}
END_TEST

START_TEST(a_checkpoint_that_can_not_be_written_is_never_in_the_way)
{
    begin();
    rig.settings.checkpoint_every = 1;
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_PUT));
    call_answer(call("put " OBJECT_1));
    call_answer(call("put " MANIFEST_1));
    world_settle(&rig.w, KIND(CALL_PUT));
    call_fail(call("put " CHECKPOINT(1)), QS_ERROR_FORBIDDEN, 403);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_int_eq(rig_report().checkpoint_k, -1);
    commit_windows(1, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 2);
    ck_assert_int_eq(rig_report().checkpoint_k, 2);
    rig_end();
}
END_TEST

static void add_order(Suite *all)
{
    TCase *cases = tcase_create("order");
    tcase_add_test(cases, intent_object_manifest_pointer);
    tcase_add_test(cases, each_step_waits_for_the_one_before);
    tcase_add_test(cases, the_documents_say_what_is_committed_in_integers);
    tcase_add_test(cases, the_manifest_describes_the_object);
    tcase_add_test(cases, a_commit_is_told);
    tcase_add_test(cases, reading_goes_on_while_a_window_is_on_its_way);
    tcase_add_test(cases, an_idle_interval_writes_nothing);
    suite_add_tcase(all, cases);
}

static void add_failures(Suite *all)
{
    TCase *cases = tcase_create("failures");
    tcase_add_test(cases, what_passes_is_shown_and_goes_on);
    tcase_add_test(cases, a_refused_object_or_manifest_stops_the_queue_and_the_window_is_redone);
    tcase_add_test(cases, a_lost_pointer_write_is_found_and_counted_once);
    tcase_add_test(cases, a_crash_anywhere_leads_to_the_same_window);
    tcase_add_test(cases, what_was_lost_goes_into_the_next_windows_manifest);
    tcase_add_test(cases, a_redo_of_which_nothing_is_left_is_given_up_and_told_as_lost);
    suite_add_tcase(all, cases);
}

int main(void)
{
    Suite *all = suite_create("queue_commit");
    add_order(all);
    add_failures(all);
    TCase *cases = tcase_create("checkpoints");
    tcase_add_test(cases, every_so_many_windows_a_checkpoint_is_written);
    tcase_add_test(cases, those_older_than_the_last_two_are_deleted);
    tcase_add_test(cases, a_checkpoint_that_can_not_be_written_is_never_in_the_way);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
