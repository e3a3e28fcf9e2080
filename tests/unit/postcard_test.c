/*
 * The three buffers of a consume: what is read, and that every cut and every wrong byte is noticed.
 */
#include "worker/connector/postcard.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A cursor over exactly these bytes, so that a sanitizer sees what is read past them. */
static uint8_t *heap;

static void tear_down(void)
{
    free(heap);
    heap = NULL;
}

static struct postcard over(const char *bytes, size_t size)
{
    free(heap);
    heap = malloc(size > 0 ? size : 1);
    memcpy(heap, bytes, size);
    return (struct postcard){heap, heap + size};
}

#define OVER(text) over(text, sizeof(text) - 1)

START_TEST(integers)
{
    uint64_t wide;
    uint32_t narrow;
    int32_t sign;
    struct postcard in = OVER("\x00\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    ck_assert(postcard_u64(&in, &wide) && wide == 0);
    ck_assert(postcard_u64(&in, &wide) && wide == 127);
    ck_assert(postcard_u64(&in, &wide) && wide == 128);
    ck_assert(postcard_u64(&in, &wide) && wide == UINT64_MAX);
    ck_assert(!postcard_u64(&in, &wide)); /* nothing is left */
    in = OVER("\xff\xff\xff\xff\x0f\xff\xff\xff\xff\x0f\xfe\xff\xff\xff\x0f\x01\x02");
    ck_assert(postcard_u32(&in, &narrow) && narrow == UINT32_MAX);
    ck_assert(postcard_i32(&in, &sign) && sign == INT32_MIN);
    ck_assert(postcard_i32(&in, &sign) && sign == INT32_MAX);
    ck_assert(postcard_i32(&in, &sign) && sign == -1);
    ck_assert(postcard_i32(&in, &sign) && sign == 1);
}
END_TEST

START_TEST(integers_that_do_not_fit)
{
    uint64_t wide;
    uint32_t narrow;
    struct postcard in = OVER("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
    ck_assert(!postcard_u64(&in, &wide));
    in = OVER("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00");
    ck_assert(!postcard_u64(&in, &wide));
    in = OVER("\xff\xff\xff\xff\x1f");
    ck_assert(!postcard_u32(&in, &narrow));
    in = OVER("\x80");
    ck_assert(!postcard_u32(&in, &narrow));
}
END_TEST

START_TEST(strings_bytes_and_options)
{
    struct sink_slice slice;
    bool has;
    struct postcard in = OVER("\x02\xc3\xa9\x01\xff\x00\x01\x02");
    ck_assert(postcard_string(&in, &slice) && slice.size == 2);
    ck_assert(postcard_bytes(&in, &slice) && slice.size == 1);
    ck_assert(postcard_option(&in, &has) && !has);
    ck_assert(postcard_option(&in, &has) && has);
    ck_assert(!postcard_option(&in, &has)); /* 2 */
    in = OVER("\x01\xff");
    ck_assert(!postcard_string(&in, &slice));
    in = OVER("\x03"
              "ab");
    ck_assert(!postcard_bytes(&in, &slice));
    in = OVER("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
              "ab");
    ck_assert(!postcard_bytes(&in, &slice));
}
END_TEST

START_TEST(a_batch)
{
    struct postcard_batch batch;
    struct postcard in = OVER("\x01\xac\x02\x05trailing");
    ck_assert(postcard_batch(in.at, (size_t)(in.end - in.at), &batch));
    ck_assert_int_eq(batch.partition, -1);
    ck_assert_uint_eq(batch.current_offset, 300);
    ck_assert_int_eq(batch.schema, SINK_SCHEMA_AVRO);
    in = OVER("\x00\x00\x06");
    ck_assert(!postcard_batch(in.at, 3, &batch)); /* no such schema */
    ck_assert(!postcard_batch(in.at, 2, &batch));
    ck_assert(!postcard_batch(NULL, 0, &batch));
}
END_TEST

/* As the runtime hands them over: a key, headers, a gap, an empty payload. */
static const char captured[] =
    "\x01\x04\x00\xb6\xa0\x80\xc9\x86\x34\x01\x06user-1\x0c\x02\x01"
    "a\x01"
    "1\x03"
    "bin\x02v2\x17{\"id\":7, \"total\":42.50}"
    "\x01\xb7\xa0\x80\xc9\x86\x34\x00\x00\x03\x00\x01\xff\x02\xb8\xa0\x80\xc9\x86\x34\x00\x00\x00"
    "\x03\xb9\xa0\x80\xc9\x86\x34\x00\x00\x00";

START_TEST(messages)
{
    struct postcard in = OVER(captured);
    struct postcard cursor;
    uint64_t count;
    struct sink_record record;
    ck_assert(postcard_messages(in.at, (size_t)(in.end - in.at), &cursor, &count));
    ck_assert_uint_eq(count, 4);
    ck_assert(postcard_message(&cursor, &record));
    ck_assert_uint_eq(record.offset, 0);
    ck_assert_uint_eq(record.timestamp_ms, UINT64_C(1788470104118));
    ck_assert(record.has_key && record.key.size == 6 && memcmp(record.key.bytes, "user-1", 6) == 0);
    ck_assert_uint_eq(record.headers.size, 12);
    ck_assert_uint_eq(record.payload.size, 23);
    ck_assert(postcard_message(&cursor, &record));
    ck_assert(!record.has_key);
    ck_assert_uint_eq(record.headers.size, 0);
    ck_assert_uint_eq(record.payload.size, 3);
    ck_assert(postcard_message(&cursor, &record));
    ck_assert(postcard_message(&cursor, &record));
    ck_assert_uint_eq(record.offset, 3);
    ck_assert_ptr_eq(cursor.at, in.end);
}
END_TEST

START_TEST(every_cut_is_noticed)
{
    struct postcard cursor;
    uint64_t count;
    for (size_t size = 0; size < sizeof captured - 1; size++) {
        struct postcard in = over(captured, size);
        ck_assert_msg(!postcard_messages(in.at, size, &cursor, &count), "cut at %zu", size);
    }
}
END_TEST

START_TEST(a_count_without_messages_ends_at_once)
{
    struct postcard in = OVER("\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    struct postcard cursor;
    uint64_t count;
    ck_assert(!postcard_messages(in.at, (size_t)(in.end - in.at), &cursor, &count));
    in = OVER("\x63\x00");
    ck_assert(postcard_messages(in.at, 2, &cursor, &count)); /* the schema in messages is ignored */
    ck_assert_uint_eq(count, 0);
}
END_TEST

START_TEST(a_topic_is_utf8)
{
    struct sink_slice topic;
    struct postcard in = OVER("\x02"
                              "ab???");
    ck_assert(postcard_topic(in.at, (size_t)(in.end - in.at), &topic));
    ck_assert_uint_eq(topic.size, 2);
    in = OVER("\x02\xc3(");
    ck_assert(!postcard_topic(in.at, 3, &topic));
    ck_assert(!postcard_topic(NULL, 0, &topic));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("postcard");
    TCase *test = tcase_create("postcard");
    tcase_add_checked_fixture(test, NULL, tear_down);
    tcase_add_test(test, integers);
    tcase_add_test(test, integers_that_do_not_fit);
    tcase_add_test(test, strings_bytes_and_options);
    tcase_add_test(test, a_batch);
    tcase_add_test(test, messages);
    tcase_add_test(test, every_cut_is_noticed);
    tcase_add_test(test, a_count_without_messages_ends_at_once);
    tcase_add_test(test, a_topic_is_utf8);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
