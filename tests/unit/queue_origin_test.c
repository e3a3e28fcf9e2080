/*
 * Where a queue starts (spec 3.4, 3.5): every combination of what can lie there in documents, manifests and checkpoints.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lake/key.h"
#include "queue_rig.h"
#include "worker/describe.h"

#define WRITER        "queen-s3/1.5.0 jsonl"
#define GET_1         "get " MANIFEST_1
#define MANIFEST(k)   "queen/_queen/orders/windows/000000000" #k ".json"
#define CHECKPOINT(k) CHECKPOINTS "000000000" #k ".json.zst"

static void check_stopped(const char *says)
{
    struct report_queue report = rig_report();
    ck_assert_int_eq(report.state, QUEUE_STOPPED);
    ck_assert_msg(strstr(report.error, says) != NULL, "\"%s\" doesn't say \"%s\"", report.error, says);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_FETCH) | KIND(CALL_PUT)), "");
    ck_assert_int_eq(world_version(&rig.w, LEASE), 0); /* given back */
    rig_end();
}

/* Ten records, a second apart, from five seconds before T0 on. */
static void push_around_t0(void)
{
    for (int i = 0; i < 10; i++)
        world_push(&rig.w, "p1", T0 + (i - 5) * SECOND, 10);
    rig.w.safe_time = T0 + 5 * SECOND;
}

static void check_first_fetch(const char *text)
{
    const char *trace = world_trace(&rig.w, KIND(CALL_FETCH));
    ck_assert_msg(strncmp(trace, text, strlen(text)) == 0, "the first of\n%sis not %s", trace, text);
}

/* ---- nothing committed ---- */

START_TEST(earliest_over_nothing_starts_at_the_log_start)
{
    rig_begin();
    push_around_t0();
    rig_run();
    ck_assert_str_eq(world_trace(&rig.w, COMMIT_ALL),
                     "kv putIfAbsent lease ttl 30\nkv get intent committed\n" GET_1 "\n");
    check_first_fetch("fetch p1@0");
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(latest_over_nothing_writes_t0_down_before_the_first_record_is_read)
{
    rig_begin();
    rig.settings.start = START_LATEST;
    push_around_t0();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_FETCH));
    ck_assert_str_eq(world_trace(&rig.w, BROKER_ALL | STORE_ALL),
                     "kv putIfAbsent lease ttl 30\nkv get intent committed\n" GET_1 "\nclock\n"
                     "kv put lease@7 ttl 30 required, put committed@0 required\nchanged orders\nfetch p1@9\n");
    ck_assert_int_eq(rig_pointer_k(), 0);
    ck_assert_int_eq(rig_pointer_end(), T0 + 5 * SECOND);
    ck_assert_ptr_nonnull(strstr(world_document_text(&rig.w, COMMITTED), "\"manifest\":\"\""));
    rig_end();
}
END_TEST

START_TEST(t0_is_kept_over_a_restart)
{
    rig_begin();
    rig.settings.start = START_LATEST;
    rig_run();
    rig.w.safe_time = T0 + 500 * SECOND;
    rig_restart();
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_uint_eq(world_count(&rig.w, "clock"), 1);
    ck_assert_int_eq(rig_pointer_end(), T0 + SECOND);
    rig_end();
}
END_TEST

START_TEST(t0_that_landed_without_an_answer_counts)
{
    rig_begin();
    rig.settings.start = START_LATEST;
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_KV));
    call_answer(world_call(&rig.w, "kv putIfAbsent*"));
    call_answer(world_call(&rig.w, "kv get intent committed"));
    world_settle(&rig.w, KIND(CALL_KV));
    call_lose(world_call(&rig.w, "kv put lease*"));
    world_run(&rig.w, 50, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_int_eq(rig_pointer_end(), T0 + SECOND);
    rig_end();
}
END_TEST

START_TEST(a_queue_created_while_the_pool_ran_starts_at_its_log_start)
{
    rig_begin();
    rig.settings.start = START_LATEST;
    push_around_t0();
    rig.queue = queue_create(&rig.host, "orders", 7, true);
    queue_start(rig.queue);
    world_run(&rig.w, 250, NOTHING);
    check_first_fetch("fetch p1@0");
    ck_assert_int_eq(rig_pointer_k(), -1);
    rig_end();
}
END_TEST

START_TEST(the_clock_is_asked_until_it_answers)
{
    rig_begin();
    rig.settings.start = START_LATEST;
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_CHANGED));
    call_fail(world_call(&rig.w, "clock"), QS_ERROR_STATUS, 500);
    world_run(&rig.w, 750, KIND(CALL_CHANGED));
    call_fail(world_call(&rig.w, "clock"), QS_ERROR_TRANSPORT, 0);
    world_run(&rig.w, 1500, NOTHING);
    ck_assert_int_eq(rig_pointer_end(), T0 + SECOND);
    rig_end();
    rig_begin();
    rig.settings.start = START_LATEST;
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_CHANGED));
    call_fail(world_call(&rig.w, "clock"), QS_ERROR_REFUSED, 401);
    world_settle(&rig.w, NOTHING);
    check_stopped("clock");
}
END_TEST

START_TEST(without_a_pointer_a_lake_that_is_there_stops_the_queue)
{
    rig_begin();
    rig_manifest("default", 1, T0, T0 + SECOND, WRITER);
    rig_run();
    check_stopped("recover");
    rig_begin();
    rig.settings.start = START_LATEST;
    rig_manifest("default", 1, T0, T0 + SECOND, WRITER);
    rig_run();
    check_stopped("recover");
    rig_begin();
    world_object(&rig.w, MANIFEST_1, "damaged", 7);
    rig_run();
    check_stopped("recover");
}
END_TEST

START_TEST(the_lake_of_another_sink_stops_the_queue_and_names_it)
{
    rig_begin();
    rig_manifest("theirs", 1, T0, T0 + SECOND, WRITER);
    rig_run();
    check_stopped("sink theirs");
}
END_TEST

START_TEST(a_missing_manifest_1_may_answer_403)
{
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_GET));
    call_fail(world_call(&rig.w, GET_1), QS_ERROR_FORBIDDEN, 403);
    world_settle(&rig.w, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(looking_for_a_lake_goes_on_until_the_store_answers)
{
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_GET));
    call_fail(world_call(&rig.w, GET_1), QS_ERROR_STATUS, 503);
    ck_assert_int_eq(rig_state(), QUEUE_RECOVERING);
    world_run(&rig.w, 750, KIND(CALL_GET));
    call_fail(world_call(&rig.w, GET_1), QS_ERROR_REFUSED, 301);
    world_settle(&rig.w, NOTHING);
    check_stopped("looking for a lake");
}
END_TEST

/* ---- the pointer ---- */

START_TEST(after_t0_the_store_is_asked_for_a_lake_and_nothing_else)
{
    rig_begin();
    rig_committed(0, T0);
    rig_run();
    ck_assert_str_eq(world_trace(&rig.w, STORE_ALL), GET_1 "\n");
    ck_assert_int_eq(rig_report().k, 0);
    ck_assert_int_eq(rig_report().end_us, T0);
    rig_end();
}
END_TEST

/* A backup of the broker that was restored has both documents of an earlier time: only the lake tells. */
START_TEST(a_pointer_that_was_set_back_stops_the_queue)
{
    for (int k = 0; k <= 5; k += 5)
        for (int with_intent = 0; with_intent <= 1; with_intent++) {
            rig_begin();
            rig_committed(k, T0);
            if (with_intent && k > 0)
                rig_intent(k, T0 - SECOND, T0);
            rig_manifest("default", k + 1, T0, T0 + SECOND, WRITER);
            push_around_t0();
            rig_run();
            check_stopped("was set back; `queen-s3 recover`");
        }
    rig_begin();
    rig_committed(5, T0);
    world_object(&rig.w, MANIFEST(6), "damaged", 7);
    rig_run();
    check_stopped("was set back");
}
END_TEST

START_TEST(the_lake_of_another_sink_behind_the_pointer_stops_the_queue)
{
    rig_begin();
    rig_committed(0, T0);
    rig_manifest("theirs", 1, T0, T0 + SECOND, WRITER);
    rig_run();
    check_stopped("sink theirs");
}
END_TEST

START_TEST(looking_behind_the_pointer_goes_on_until_the_store_answers)
{
    rig_begin();
    rig_committed(5, T0);
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_GET));
    call_fail(world_call(&rig.w, "get " MANIFEST(6)), QS_ERROR_STATUS, 503);
    ck_assert_int_eq(rig_state(), QUEUE_RECOVERING);
    world_run(&rig.w, 750, KIND(CALL_GET));
    call_fail(world_call(&rig.w, "get " MANIFEST(6)), QS_ERROR_REFUSED, 301);
    world_settle(&rig.w, NOTHING);
    check_stopped("looking behind the pointer");
}
END_TEST

START_TEST(the_originals_number_for_t_end_is_read_too)
{
    rig_begin();
    world_document(&rig.w, COMMITTED, "{\"k\":5,\"tEnd\":1788516000000000}", 0);
    rig_run();
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_int_eq(rig_report().k, 5);
    ck_assert_int_eq(rig_report().end_us, T0);
    rig_end();
}
END_TEST

START_TEST(a_pointer_that_can_not_be_read_stops_the_queue)
{
    static const char *const broken[] = {"{}",
                                         "{\"k\":1}",
                                         "{\"k\":-1,\"tEnd\":1788516000000000}",
                                         "{\"k\":1.5,\"tEnd\":1788516000000000}",
                                         "{\"k\":1e300,\"tEnd\":1788516000000000}",
                                         "{\"k\":\"1\",\"tEnd\":1788516000000000}",
                                         "{\"k\":1,\"tEnd\":\"yesterday\"}",
                                         "{\"k\":1,\"tEnd\":null}",
                                         "{\"k\":1,\"tEnd\":1.5}",
                                         "\"text\""};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        rig_begin();
        world_document(&rig.w, COMMITTED, broken[i], 0);
        rig_run();
        check_stopped("recover");
    }
}
END_TEST

START_TEST(a_stopped_queue_looks_again_after_a_minute)
{
    rig_begin();
    world_document(&rig.w, COMMITTED, "{}", 0);
    rig_run();
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    rig_committed(0, T0); /* mended meanwhile */
    world_run(&rig.w, 59000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_STOPPED);
    world_run(&rig.w, 2000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    ck_assert_str_eq(rig_report().error, "");
    rig_end();
}
END_TEST

START_TEST(pointers_are_read_until_they_are_there)
{
    rig_begin();
    rig_committed(3, T0);
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_KV));
    call_answer(world_call(&rig.w, "kv putIfAbsent*"));
    call_fail(world_call(&rig.w, "kv get intent committed"), QS_ERROR_STATUS, 503);
    world_run(&rig.w, 750, NOTHING);
    ck_assert_int_eq(rig_report().k, 3);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
    rig_begin();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_KV));
    call_answer(world_call(&rig.w, "kv putIfAbsent*"));
    call_fail(world_call(&rig.w, "kv get intent committed"), QS_ERROR_FORBIDDEN, 403);
    world_settle(&rig.w, NOTHING);
    check_stopped("pointers");
}
END_TEST

/* A lease is held meanwhile: what is only slow must not use it up (spec 3.6). */
START_TEST(the_pointers_are_asked_for_as_often_as_any_document)
{
    rig_begin();
    rig_committed(3, T0);
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_KV));
    call_answer(world_call(&rig.w, "kv putIfAbsent*"));
    for (int i = 0; i < 6; i++) {
        struct scripted_call *get = world_call(&rig.w, "kv get intent committed");
        ck_assert_int_eq(get->timeout_ms, 3000);
        call_fail(get, QS_ERROR_TRANSPORT, 0);
        world_run(&rig.w, 3750, KIND(CALL_KV));
    }
    world_run(&rig.w, 250, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(what_is_committed_says_how_far_it_is_through)
{
    rig_begin();
    rig_committed(3, T0);
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_CHANGED));
    ck_assert_int_eq(rig_report().through_us, T0);
    rig_end();
}
END_TEST

/* ---- the intent ---- */

#define SHAPE_OF(format) "\"format\":\"" format "\",\"compression\":\"none\",\"layout\":\"merged\""
#define SHAPE            SHAPE_OF("jsonl")

START_TEST(an_intent_that_can_not_be_read_stops_the_queue)
{
    static const char *const broken[] = {"{\"k\":1,\"tStart\":2,\"tEnd\":1," SHAPE "}",
                                         "{\"k\":1,\"tStart\":1,\"tEnd\":1," SHAPE "}",
                                         "{\"tStart\":1,\"tEnd\":2," SHAPE "}",
                                         "{\"k\":1,\"tStart\":\"1\",\"tEnd\":2," SHAPE "}",
                                         "{\"k\":1,\"tStart\":1,\"tEnd\":2," SHAPE ",\"align\":\"week\"}",
                                         "{\"k\":1,\"tStart\":1,\"tEnd\":2," SHAPE_OF("csv") "}",
                                         "{\"k\":1,\"tStart\":1,\"tEnd\":2}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        rig_begin();
        rig_committed(0, T0);
        world_document(&rig.w, INTENT, broken[i], 0);
        rig_run();
        check_stopped("intent can't be read");
    }
}
END_TEST

START_TEST(an_intent_above_the_next_window_stops_the_queue)
{
    rig_begin();
    rig_committed(3, T0);
    rig_intent(5, T0, T0 + SECOND);
    rig_run();
    check_stopped("recover");
    rig_begin();
    rig_intent(2, T0, T0 + SECOND); /* and no pointer at all */
    rig_run();
    check_stopped("recover");
}
END_TEST

START_TEST(a_stale_intent_is_left_aside_and_overwritten)
{
    rig_begin();
    int64_t version = rig_intent(3, T0 - SECOND, T0);
    rig_committed(3, T0);
    push_around_t0();
    rig.w.safe_time = T0 + 15 * SECOND;
    rig_start();
    world_run(&rig.w, 5000, KIND(CALL_PUT));
    char batch[80];
    snprintf(batch, sizeof batch, "kv put lease@21 ttl 30 required, put intent@%d required", (int)version);
    ck_assert_uint_eq(world_count(&rig.w, batch), 1);
    ck_assert_ptr_nonnull(strstr(world_document_text(&rig.w, INTENT), "\"k\":4"));
    rig_end();
}
END_TEST

/* The pointer is at T0, and an intent for the ten seconds after it lies there. */
static void begin_redo(void)
{
    rig_begin();
    rig_committed(3, T0);
    rig_intent(4, T0, T0 + 10 * SECOND);
    push_around_t0();
    rig.w.safe_time = T0 + 20 * SECOND;
}

START_TEST(the_next_windows_intent_is_redone)
{
    begin_redo();
    rig_run();
    ck_assert_int_eq(rig_pointer_k(), 4);
    ck_assert_int_eq(rig_pointer_end(), T0 + 10 * SECOND);
    ck_assert_uint_eq(rig_report().records_written, 5);
    ck_assert_uint_eq(world_count(&rig.w, "kv*intent*required"), 0);
    ck_assert_ptr_nonnull(bucket_find(&rig.w.bucket, MANIFEST(4)));
    rig_end();
}
END_TEST

START_TEST(a_redo_waits_for_all_of_its_window_and_needs_no_guard)
{
    begin_redo();
    rig.w.safe_time = T0 + 9 * SECOND;
    rig_run();
    world_run(&rig.w, 10000, NOTHING);
    ck_assert_int_eq(rig_state(), QUEUE_RECOVERING);
    ck_assert_int_eq(rig_pointer_k(), 3);
    rig.w.safe_time = T0 + 10 * SECOND;
    world_run(&rig.w, 2500, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 4);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(a_redo_keeps_the_intents_shape_and_prefix)
{
    rig_begin();
    rig_committed(3, T0);
    world_document(
        &rig.w, INTENT,
        "{\"k\":4,\"tStart\":1788516000000000,\"tEnd\":1788516010000000,\"format\":\"jsonl\","
        "\"compression\":\"gzip\",\"layout\":\"merged\",\"align\":\"day\",\"prefix\":\"old\",\"writer\":\"x\"}",
        0);
    push_around_t0();
    rig.w.safe_time = T0 + 20 * SECOND;
    rig_run();
    ck_assert_uint_eq(world_count(&rig.w, "get old/_queen/orders/windows/0000000004.json"), 1);
    ck_assert_uint_eq(world_count(&rig.w, "put old/queue=orders/dt=2026-09-04/"
                                          "w-0000000004-1788516000000000-1788516010000000.jsonl.gz"),
                      1);
    ck_assert_ptr_nonnull(bucket_find(&rig.w.bucket, "old/_queen/orders/windows/0000000004.json"));
    ck_assert_int_eq(rig_pointer_k(), 4);
    rig_end();
}
END_TEST

static char looked_at[1024]; /* a line a key */
static describe_done *described;
static void *described_argument;

static struct describe_call *look_start(struct describer *describer, const char *key, const struct window_shape *shape,
                                        const struct window_bounds *bounds, describe_done *done, void *argument)
{
    size_t size = strlen(looked_at);
    (void)shape;
    (void)bounds;
    snprintf(looked_at + size, sizeof looked_at - size, "%s\n", key);
    described = done;
    described_argument = argument;
    return (struct describe_call *)(void *)describer;
}

static void look_cancel(struct describer *describer, struct describe_call *call)
{
    (void)describer;
    (void)call;
}

#define PARTITION_OBJECT "queen/queue=orders/dt=2026-09-04/hour=10/w-0000000004-1788516000000000-1788516010000000-p-"

/* Those that would be written again are the same to the byte, and of a window there can be very many. */
START_TEST(a_redo_looks_only_at_what_it_would_not_write_again)
{
    static const struct describer_operations operations = {look_start, look_cancel};
    static const char *const partitions[] = {"a", "b/b", "c", "d", "e"};
    struct describer describer = {&operations};
    struct error error;
    char key[LAKE_KEY_SIZE];
    looked_at[0] = '\0';
    rig_begin();
    rig.w.world.describer = &describer;
    rig_committed(3, T0);
    world_document(&rig.w, INTENT,
                   "{\"k\":4,\"tStart\":1788516000000000,\"tEnd\":1788516010000000,\"format\":\"jsonl\","
                   "\"compression\":\"none\",\"layout\":\"per-partition\",\"align\":\"hour\",\"prefix\":\"queen\"}",
                   0);
    for (size_t i = 0; i < sizeof partitions / sizeof *partitions; i++) {
        world_push(&rig.w, partitions[i], T0 + SECOND, 10);
        snprintf(key, sizeof key, PARTITION_OBJECT "%s-000000000000-000000000000.jsonl",
                 i == 1 ? "b%2Fb" : partitions[i]);
        world_object(&rig.w, key, "{}", 2);
    }
    world_object(&rig.w, PARTITION_OBJECT "b%2Fb-000000000000-000000000007.jsonl", "{}", 2);
    rig.w.safe_time = T0 + 20 * SECOND;
    rig_start();
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_str_eq(looked_at, PARTITION_OBJECT "b%2Fb-000000000000-000000000007.jsonl\n");
    error_set(&error, QS_ERROR_NOT_FOUND, "gone");
    described(described_argument, &error, NULL);
    world_run(&rig.w, 1000, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 4);
    ck_assert_uint_eq(world_count(&rig.w, "put queen/queue=orders/*"), 5);
    rig_end();
}
END_TEST

START_TEST(an_intent_of_the_original_means_the_configured_prefix_and_align)
{
    rig_begin();
    rig.settings.align = ALIGN_HOUR;
    rig_committed(3, T0);
    world_document(&rig.w, INTENT,
                   "{\"k\":4,\"tStart\":1788516000000000,\"tEnd\":1788516010000000,\"format\":\"jsonl\","
                   "\"compression\":\"none\",\"layout\":\"merged\"}",
                   0);
    push_around_t0();
    rig.w.safe_time = T0 + 20 * SECOND;
    rig_run();
    ck_assert_uint_eq(world_count(&rig.w, "put queen/queue=orders/dt=2026-09-04/hour=10/"
                                          "w-0000000004-1788516000000000-1788516010000000.jsonl"),
                      1);
    ck_assert_int_eq(rig_pointer_k(), 4);
    rig_end();
}
END_TEST

START_TEST(a_window_whose_manifest_is_up_lacks_only_its_pointer)
{
    begin_redo();
    rig_manifest("default", 4, T0, T0 + 10 * SECOND, WRITER);
    rig_run();
    ck_assert_int_eq(rig_pointer_k(), 4);
    ck_assert_int_eq(rig_pointer_end(), T0 + 10 * SECOND);
    ck_assert_ptr_nonnull(strstr(world_document_text(&rig.w, COMMITTED), "\"manifest\":\"" MANIFEST(4) "\""));
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_PUT)), "");
    ck_assert_uint_eq(rig_report().records_written, 3);
    ck_assert_uint_eq(rig_report().windows_committed, 1);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(a_manifest_of_something_else_does_not_stand_for_the_intent)
{
    for (int i = 0; i < 4; i++) {
        begin_redo();
        if (i == 0)
            rig_manifest("default", 4, T0, T0 + 9 * SECOND, WRITER);
        else if (i == 1)
            rig_manifest("default", 4, T0 - SECOND, T0 + 10 * SECOND, WRITER);
        else if (i == 2)
            rig_manifest("default", 4, T0, T0 + 10 * SECOND, "queen-s3/1.4.0 jsonl");
        else
            world_object(&rig.w, MANIFEST(4), "{", 1);
        rig_run();
        ck_assert_uint_eq(world_count(&rig.w, "put queen/queue=orders/*"), 1);
        ck_assert_int_eq(rig_pointer_k(), 4);
        rig_end();
    }
}
END_TEST

START_TEST(a_redo_leaves_the_lake_of_another_sink_alone)
{
    begin_redo();
    rig_manifest("theirs", 4, T0, T0 + 10 * SECOND, WRITER);
    rig_run();
    check_stopped("sink theirs");
}
END_TEST

START_TEST(the_manifest_of_a_redo_is_read_until_the_store_answers)
{
    begin_redo();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_GET));
    call_fail(world_call(&rig.w, "get " MANIFEST(4)), QS_ERROR_STATUS, 500);
    world_run(&rig.w, 750, NOTHING);
    ck_assert_int_eq(rig_pointer_k(), 4);
    rig_end();
    begin_redo();
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_GET));
    call_fail(world_call(&rig.w, "get " MANIFEST(4)), QS_ERROR_REFUSED, 400);
    world_settle(&rig.w, NOTHING);
    check_stopped("manifest");
}
END_TEST

/* The first window of START=earliest: there is no pointer yet. */
static void begin_first_redo(void)
{
    rig_begin();
    rig_intent(1, T0, T0 + 10 * SECOND);
    push_around_t0();
    rig.w.safe_time = T0 + 20 * SECOND;
}

START_TEST(the_first_windows_intent_is_redone_too)
{
    begin_first_redo();
    rig_run();
    ck_assert_uint_eq(world_count(&rig.w, GET_1), 1);
    ck_assert_uint_eq(world_count(&rig.w, "put " OBJECT_1), 1);
    ck_assert_int_eq(rig_pointer_k(), 1);
    rig_end();
}
END_TEST

START_TEST(the_first_window_may_lack_only_its_pointer)
{
    begin_first_redo();
    rig_manifest("default", 1, T0, T0 + 10 * SECOND, WRITER);
    rig_run();
    ck_assert_int_eq(rig_pointer_k(), 1);
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_PUT)), "");
    rig_end();
}
END_TEST

START_TEST(a_first_manifest_of_another_version_or_of_other_bounds)
{
    begin_first_redo();
    rig_manifest("default", 1, T0, T0 + 10 * SECOND, "queen-s3/1.4.0 jsonl"); /* ours: its redo is redone */
    rig_run();
    ck_assert_uint_eq(world_count(&rig.w, "put " OBJECT_1), 1);
    ck_assert_int_eq(rig_pointer_k(), 1);
    rig_end();
    begin_first_redo();
    rig_manifest("default", 1, T0, T0 + 5 * SECOND, WRITER);
    rig_run();
    check_stopped("recover");
    begin_first_redo();
    rig_manifest("theirs", 1, T0, T0 + 10 * SECOND, WRITER);
    rig_run();
    check_stopped("sink theirs");
}
END_TEST

/* ---- the checkpoint ---- */

/* Windows up to k 5 are committed, the last ends at T0. */
static void begin_committed(void)
{
    rig_begin();
    rig_committed(5, T0);
    push_around_t0();
}

START_TEST(without_a_checkpoint_partitions_are_sought)
{
    begin_committed();
    rig_run();
    ck_assert_str_eq(world_trace(&rig.w, STORE_ALL), "get " MANIFEST(6) "\nlist " CHECKPOINTS "\n");
    check_first_fetch("fetch p1@9\n");
    ck_assert_int_eq(rig_report().checkpoint_k, -1);
    rig_end();
}
END_TEST

START_TEST(the_checkpoint_of_the_last_window_gives_the_positions)
{
    begin_committed();
    rig_checkpoint(5, T0, "p1", 5);
    rig_run();
    ck_assert_str_eq(world_trace(&rig.w, STORE_ALL),
                     "get " MANIFEST(6) "\nlist " CHECKPOINTS "\nget " CHECKPOINT(5) "\n");
    check_first_fetch("fetch p1@5\n");
    ck_assert_int_eq(rig_report().checkpoint_k, 5);
    rig_end();
}
END_TEST

START_TEST(an_older_one_counts_if_its_manifest_ends_where_it_does)
{
    begin_committed();
    rig_checkpoint(3, T0 - 2 * SECOND, "p1", 3);
    rig_manifest("default", 3, T0 - 3 * SECOND, T0 - 2 * SECOND, WRITER);
    rig_run();
    ck_assert_uint_eq(world_count(&rig.w, "get " MANIFEST(3)), 1);
    check_first_fetch("fetch p1@3\n");
    ck_assert_int_eq(rig_report().checkpoint_k, 3);
    rig_end();
}
END_TEST

START_TEST(one_that_its_manifest_does_not_bear_out_is_left_for_the_one_before)
{
    for (int i = 0; i < 4; i++) {
        begin_committed();
        rig_checkpoint(4, T0 - SECOND, "p1", 7); /* wrong: records would be skipped */
        rig_checkpoint(3, T0 - 2 * SECOND, "p1", 3);
        rig_manifest("default", 3, T0 - 3 * SECOND, T0 - 2 * SECOND, WRITER);
        if (i == 0)
            rig_manifest("default", 4, T0 - 2 * SECOND, T0 - SECOND / 2, WRITER);
        else if (i == 1)
            rig_manifest("theirs", 4, T0 - 2 * SECOND, T0 - SECOND, WRITER);
        else if (i == 2)
            world_object(&rig.w, MANIFEST(4), "{}", 2);
        rig_run(); /* or no manifest at all */
        check_first_fetch("fetch p1@3\n");
        ck_assert_int_eq(rig_report().checkpoint_k, 3);
        rig_end();
    }
}
END_TEST

START_TEST(one_at_the_last_window_with_another_end_is_held_against_the_manifest)
{
    begin_committed();
    rig_checkpoint(5, T0 - SECOND, "p1", 9);
    rig_manifest("default", 5, T0 - 2 * SECOND, T0, WRITER);
    rig_run();
    ck_assert_int_eq(rig_report().checkpoint_k, -1);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(broken_ones_are_left_aside_and_their_positions_forgotten)
{
    begin_committed();
    world_object(&rig.w, CHECKPOINT(5), "not zstd", 8);
    rig_checkpoint(4, T0 - SECOND, "p1", 4);
    struct bucket_object *object = bucket_find(&rig.w.bucket, CHECKPOINT(4));
    world_object(&rig.w, CHECKPOINT(5), object->bytes, object->size); /* names another window */
    object = bucket_find(&rig.w.bucket, CHECKPOINT(4));
    object->size -= 5; /* cut */
    rig_run();
    check_first_fetch("fetch p1@9\n");
    ck_assert_int_eq(rig_report().checkpoint_k, -1);
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(only_the_newest_two_at_or_below_the_pointer_are_looked_at)
{
    begin_committed();
    rig.w.page = 1;
    for (int k = 2; k <= 7; k++)
        rig_checkpoint(k, T0 + (k - 5) * SECOND, "p1", k);
    world_object(&rig.w, CHECKPOINTS "notes.txt", "x", 1);
    world_object(&rig.w, CHECKPOINT(5), "damaged", 7);
    world_object(&rig.w, CHECKPOINT(4), "damaged", 7);
    rig_run();
    ck_assert_str_eq(world_trace(&rig.w, KIND(CALL_GET)),
                     "get " MANIFEST(6) "\nget " CHECKPOINT(5) "\nget " CHECKPOINT(4) "\n");
    ck_assert_int_eq(rig_state(), QUEUE_RUNNING);
    rig_end();
}
END_TEST

START_TEST(a_store_that_is_away_is_waited_for)
{
    begin_committed();
    rig_checkpoint(4, T0 - SECOND, "p1", 4);
    rig_manifest("default", 4, T0 - 2 * SECOND, T0 - SECOND, WRITER);
    rig_start();
    world_run(&rig.w, 250, STORE_ALL);
    call_fail(world_call(&rig.w, "get " MANIFEST(6)), QS_ERROR_STATUS, 503);
    world_run(&rig.w, 750, STORE_ALL);
    call_answer(world_call(&rig.w, "get " MANIFEST(6)));
    call_fail(world_call(&rig.w, "list*"), QS_ERROR_TRANSPORT, 0);
    world_run(&rig.w, 1500, STORE_ALL);
    call_answer(world_call(&rig.w, "list*"));
    call_fail(world_call(&rig.w, "get " CHECKPOINT(4)), QS_ERROR_STATUS, 503);
    world_run(&rig.w, 3000, STORE_ALL);
    call_answer(world_call(&rig.w, "get " CHECKPOINT(4)));
    call_fail(world_call(&rig.w, "get " MANIFEST(4)), QS_ERROR_STATUS, 503);
    world_run(&rig.w, 6000, NOTHING);
    check_first_fetch("fetch p1@4\n");
    rig_end();
}
END_TEST

START_TEST(what_is_refused_of_a_checkpoint_costs_re_reads_and_no_more)
{
    begin_committed();
    rig_checkpoint(5, T0, "p1", 5);
    rig_start();
    world_run(&rig.w, 250, STORE_ALL);
    call_fail(world_call(&rig.w, "get " MANIFEST(6)), QS_ERROR_FORBIDDEN, 403);
    call_fail(world_call(&rig.w, "list*"), QS_ERROR_FORBIDDEN, 403);
    world_settle(&rig.w, NOTHING);
    check_first_fetch("fetch p1@9\n");
    rig_end();
    begin_committed();
    rig_checkpoint(5, T0, "p1", 5);
    rig_start();
    world_run(&rig.w, 250, KIND(CALL_GET));
    call_answer(world_call(&rig.w, "get " MANIFEST(6)));
    world_settle(&rig.w, KIND(CALL_GET));
    call_fail(world_call(&rig.w, "get " CHECKPOINT(5)), QS_ERROR_FORBIDDEN, 403);
    world_settle(&rig.w, NOTHING);
    check_first_fetch("fetch p1@9\n");
    rig_end();
}
END_TEST

START_TEST(it_can_be_stopped_at_any_step)
{
    for (int steps = 0; steps < 6; steps++) {
        begin_redo();
        rig_checkpoint(3, T0, "p1", 5);
        rig_start();
        world_run(&rig.w, 250, EVERYTHING);
        for (int i = 0; i < steps; i++)
            call_answer(world_call(&rig.w, "*"));
        queue_drain(rig.queue);
        world_settle(&rig.w, NOTHING);
        ck_assert_int_eq(rig.drained, 1);
        ck_assert_int_eq(world_version(&rig.w, LEASE), 0);
        ck_assert_int_eq(rig_pointer_k(), 3);
        rig_end();
    }
}
END_TEST

static void add_nothing(Suite *all)
{
    TCase *cases = tcase_create("nothing committed");
    tcase_add_test(cases, earliest_over_nothing_starts_at_the_log_start);
    tcase_add_test(cases, latest_over_nothing_writes_t0_down_before_the_first_record_is_read);
    tcase_add_test(cases, t0_is_kept_over_a_restart);
    tcase_add_test(cases, t0_that_landed_without_an_answer_counts);
    tcase_add_test(cases, a_queue_created_while_the_pool_ran_starts_at_its_log_start);
    tcase_add_test(cases, the_clock_is_asked_until_it_answers);
    tcase_add_test(cases, without_a_pointer_a_lake_that_is_there_stops_the_queue);
    tcase_add_test(cases, the_lake_of_another_sink_stops_the_queue_and_names_it);
    tcase_add_test(cases, a_missing_manifest_1_may_answer_403);
    tcase_add_test(cases, looking_for_a_lake_goes_on_until_the_store_answers);
    suite_add_tcase(all, cases);
}

static void add_pointers(Suite *all)
{
    TCase *cases = tcase_create("pointers");
    tcase_add_test(cases, after_t0_the_store_is_asked_for_a_lake_and_nothing_else);
    tcase_add_test(cases, a_pointer_that_was_set_back_stops_the_queue);
    tcase_add_test(cases, the_lake_of_another_sink_behind_the_pointer_stops_the_queue);
    tcase_add_test(cases, looking_behind_the_pointer_goes_on_until_the_store_answers);
    tcase_add_test(cases, the_originals_number_for_t_end_is_read_too);
    tcase_add_test(cases, a_pointer_that_can_not_be_read_stops_the_queue);
    tcase_add_test(cases, a_stopped_queue_looks_again_after_a_minute);
    tcase_add_test(cases, pointers_are_read_until_they_are_there);
    tcase_add_test(cases, the_pointers_are_asked_for_as_often_as_any_document);
    tcase_add_test(cases, what_is_committed_says_how_far_it_is_through);
    tcase_add_test(cases, an_intent_that_can_not_be_read_stops_the_queue);
    tcase_add_test(cases, an_intent_above_the_next_window_stops_the_queue);
    tcase_add_test(cases, a_stale_intent_is_left_aside_and_overwritten);
    suite_add_tcase(all, cases);
}

static void add_redos(Suite *all)
{
    TCase *cases = tcase_create("redo");
    tcase_add_test(cases, the_next_windows_intent_is_redone);
    tcase_add_test(cases, a_redo_waits_for_all_of_its_window_and_needs_no_guard);
    tcase_add_test(cases, a_redo_keeps_the_intents_shape_and_prefix);
    tcase_add_test(cases, a_redo_looks_only_at_what_it_would_not_write_again);
    tcase_add_test(cases, an_intent_of_the_original_means_the_configured_prefix_and_align);
    tcase_add_test(cases, a_window_whose_manifest_is_up_lacks_only_its_pointer);
    tcase_add_test(cases, a_manifest_of_something_else_does_not_stand_for_the_intent);
    tcase_add_test(cases, a_redo_leaves_the_lake_of_another_sink_alone);
    tcase_add_test(cases, the_manifest_of_a_redo_is_read_until_the_store_answers);
    tcase_add_test(cases, the_first_windows_intent_is_redone_too);
    tcase_add_test(cases, the_first_window_may_lack_only_its_pointer);
    tcase_add_test(cases, a_first_manifest_of_another_version_or_of_other_bounds);
    suite_add_tcase(all, cases);
}

static void add_checkpoints(Suite *all)
{
    TCase *cases = tcase_create("checkpoints");
    tcase_add_test(cases, without_a_checkpoint_partitions_are_sought);
    tcase_add_test(cases, the_checkpoint_of_the_last_window_gives_the_positions);
    tcase_add_test(cases, an_older_one_counts_if_its_manifest_ends_where_it_does);
    tcase_add_test(cases, one_that_its_manifest_does_not_bear_out_is_left_for_the_one_before);
    tcase_add_test(cases, one_at_the_last_window_with_another_end_is_held_against_the_manifest);
    tcase_add_test(cases, broken_ones_are_left_aside_and_their_positions_forgotten);
    tcase_add_test(cases, only_the_newest_two_at_or_below_the_pointer_are_looked_at);
    tcase_add_test(cases, a_store_that_is_away_is_waited_for);
    tcase_add_test(cases, what_is_refused_of_a_checkpoint_costs_re_reads_and_no_more);
    tcase_add_test(cases, it_can_be_stopped_at_any_step);
    suite_add_tcase(all, cases);
}

int main(void)
{
    Suite *all = suite_create("queue_origin");
    add_nothing(all);
    add_pointers(all);
    add_redos(all);
    add_checkpoints(all);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
