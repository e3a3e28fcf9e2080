/*
 * Records as bytes: each schema in each format, keys and headers, what is odd, and what must be refused.
 */
#include "worker/connector/format.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MOMENT       UINT64_C(1788470104118) /* 2026-09-03T21:15:04.118Z */
#define BYTES(text)            \
    {                          \
        text, sizeof(text) - 1 \
    }
#define SLICE(text) ((struct sink_slice)BYTES(text))

static struct sink_formatter formatter;
static struct sink_body body;
static struct error error;
static unsigned oddities;

static void tear_down(void)
{
    sink_formatter_free(&formatter);
    sink_body_clear(&body);
}

/* The record's bytes as text, valid until the next call. */
static const char *format(struct sink_shape shape, enum sink_schema schema, struct sink_record record)
{
    static char text[65536];
    char *bytes;
    size_t size;
    ck_assert_int_eq(sink_formatter_begin(&formatter, &shape, SLICE("t\"1"), 0, schema, &error), 0);
    ck_assert_int_eq(sink_format_record(&formatter, &record, &body, 1, &bytes, &size, &oddities, &error), 0);
    ck_assert_uint_lt(size, sizeof text);
    memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

static const struct sink_shape bare = {.format = SINK_JSON_LINES, .compression = COMPRESSION_NONE};
static const struct sink_shape full = {
    .format = SINK_JSON_LINES, .compression = COMPRESSION_NONE, .include_metadata = true, .include_headers = true};

static const struct {
    enum sink_schema schema;
    struct sink_slice payload;
    const char *expected;
    unsigned odd;
} payloads[] = {
    {SINK_SCHEMA_JSON, BYTES("{\"a\": 1.50e0}"), "{\"a\": 1.50e0}", 0},
    {SINK_SCHEMA_JSON, BYTES(" \n[1,\r\n2]\n"), "[1,  2]", 0},
    {SINK_SCHEMA_JSON, BYTES("18446744073709551616"), "18446744073709551616", 0},
    {SINK_SCHEMA_JSON, BYTES("{\"a\":"), "\"eyJhIjo=\"", SINK_ODD_PAYLOAD},
    {SINK_SCHEMA_JSON, BYTES("1 2"), "\"MSAy\"", SINK_ODD_PAYLOAD},
    {SINK_SCHEMA_JSON, BYTES(""), "\"\"", SINK_ODD_PAYLOAD},
    {SINK_SCHEMA_JSON, BYTES("\"\\ud800\""), "\"\\ud800\"", 0},
    {SINK_SCHEMA_RAW, BYTES("{\"id\":7, \"total\":42.50}"), "{\"id\":7, \"total\":42.50}", 0},
    {SINK_SCHEMA_RAW, BYTES("\x00\x01\xff"), "\"AAH/\"", 0},
    {SINK_SCHEMA_RAW, BYTES("plain"), "\"cGxhaW4=\"", 0},
    {SINK_SCHEMA_RAW, BYTES("123"), "123", 0},
    {SINK_SCHEMA_RAW, BYTES("1e400"), "1e400", 0},
    {SINK_SCHEMA_RAW, BYTES(""), "\"\"", 0},
    {SINK_SCHEMA_TEXT, BYTES("h\xc3\xa9llo \"q\"\n\t</x>\x01\x7f\\"),
     "\"h\xc3\xa9llo \\\"q\\\"\\n\\t</x>\\u0001\x7f\\\\\"", 0},
    {SINK_SCHEMA_TEXT, BYTES("{\"a\":1}"), "\"{\\\"a\\\":1}\"", 0},
    {SINK_SCHEMA_TEXT, BYTES(""), "\"\"", 0},
    {SINK_SCHEMA_TEXT, BYTES("\xff"), "\"/w==\"", SINK_ODD_PAYLOAD},
    {SINK_SCHEMA_PROTO, BYTES("{\"type_url\":\"u\",\"value\":\"AQID\"}"), "{\"type_url\":\"u\",\"value\":\"AQID\"}", 0},
    {SINK_SCHEMA_PROTO, BYTES("\x0a\x03u/X\x12\x03\x01\x02\x03"), "{\"type_url\":\"u/X\",\"value\":\"AQID\"}", 0},
    {SINK_SCHEMA_PROTO, BYTES("\x0a\x03u/X"), "{\"type_url\":\"u/X\",\"value\":\"\"}", 0},
    {SINK_SCHEMA_PROTO, BYTES("\x0a\x03u/X\x18\x01"), "\"CgN1L1gYAQ==\"", 0}, /* a third field would be lost */
    {SINK_SCHEMA_PROTO, BYTES("\x0a\x05u/X"), "\"CgV1L1g=\"", 0},
    {SINK_SCHEMA_PROTO, BYTES("\x0a\x01\xff"), "\"CgH/\"", 0},
    {SINK_SCHEMA_FLATBUFFER, BYTES("{\"a\":1}"), "\"eyJhIjoxfQ==\"", 0},
    {SINK_SCHEMA_AVRO, BYTES("{\"a\":1}"), "\"eyJhIjoxfQ==\"", 0},
};

START_TEST(a_payload_is_converted_by_its_schema)
{
    char expected[512];
    snprintf(expected, sizeof expected, "{\"payload\":%s}", payloads[_i].expected);
    struct sink_record record = {.offset = 1, .payload = payloads[_i].payload};
    ck_assert_str_eq(format(bare, payloads[_i].schema, record), expected);
    ck_assert_uint_eq(oddities, payloads[_i].odd);
}
END_TEST

START_TEST(fields_come_in_their_order)
{
    struct sink_record record = {.offset = UINT64_MAX,
                                 .timestamp_ms = MOMENT,
                                 .has_key = true,
                                 .key = SLICE("user-1"),
                                 .headers = SLICE("\x04\x01z\x00\x03"
                                                  "bin\x02\xff\xfe\x01"
                                                  "a\x01"
                                                  "1\x01"
                                                  "a\x02"
                                                  "2\""),
                                 .payload = SLICE("{}")};
    ck_assert_str_eq(format(full, SINK_SCHEMA_JSON, record),
                     "{\"offset\":18446744073709551615,\"timestamp\":\"2026-09-03T21:15:04.118Z\",\"topic\":\"t\\\"1\","
                     "\"partition\":0,\"key\":\"dXNlci0x\",\"headers\":{\"a\":\"2\\\"\",\"bin\":\"//4=\",\"z\":\"\"},"
                     "\"payload\":{}}");
    ck_assert_uint_eq(oddities, 0);
}
END_TEST

START_TEST(an_empty_key_is_a_key_and_no_headers_are_none)
{
    struct sink_record record = {.has_key = true, .payload = SLICE("1")};
    ck_assert_str_eq(format(full, SINK_SCHEMA_JSON, record),
                     "{\"offset\":0,\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"topic\":\"t\\\"1\",\"partition\":0,"
                     "\"key\":\"\",\"payload\":1}");
    record.has_key = false;
    record.headers = SLICE("\x00");
    ck_assert_str_eq(format(full, SINK_SCHEMA_JSON, record),
                     "{\"offset\":0,\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"topic\":\"t\\\"1\",\"partition\":0,"
                     "\"headers\":{},\"payload\":1}");
    struct sink_shape no_metadata = full;
    no_metadata.include_metadata = false;
    record.has_key = true;
    ck_assert_str_eq(format(no_metadata, SINK_SCHEMA_JSON, record), "{\"headers\":{},\"payload\":1}");
}
END_TEST

static const struct sink_slice broken_headers[] = {
    BYTES("\x01"),
    BYTES("\x02\x01"
          "a\x01"
          "b"),
    BYTES("\x01\x05"
          "a"),
    BYTES("\x01\x01\xff\x01"
          "b"),
    BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    BYTES("\x80"),
};

START_TEST(headers_that_do_not_decode_are_left_out_and_told)
{
    struct sink_record record = {.headers = broken_headers[_i], .payload = SLICE("1")};
    struct sink_shape shape = full;
    shape.include_metadata = false;
    ck_assert_str_eq(format(shape, SINK_SCHEMA_JSON, record), "{\"payload\":1}");
    ck_assert_uint_eq(oddities, SINK_ODD_HEADERS);
    shape.include_headers = false;
    ck_assert_str_eq(format(shape, SINK_SCHEMA_JSON, record), "{\"payload\":1}");
    ck_assert_uint_eq(oddities, 0);
}
END_TEST

START_TEST(bytes_behind_the_headers_are_ignored)
{
    struct sink_record record = {.headers = SLICE("\x01\x01"
                                                  "a\x01"
                                                  "b???"),
                                 .payload = SLICE("1")};
    struct sink_shape shape = full;
    shape.include_metadata = false;
    ck_assert_str_eq(format(shape, SINK_SCHEMA_JSON, record), "{\"headers\":{\"a\":\"b\"},\"payload\":1}");
    ck_assert_uint_eq(oddities, 0);
}
END_TEST

START_TEST(raw_takes_the_bytes_as_they_are)
{
    struct sink_shape raw = {.format = SINK_RAW, .compression = COMPRESSION_NONE, .include_metadata = true};
    struct sink_record record = {.timestamp_ms = UINT64_MAX, .payload = SLICE(" {\"a\":\n1} x")};
    ck_assert_str_eq(format(raw, SINK_SCHEMA_JSON, record), " {\"a\":\n1} x");
    ck_assert_uint_eq(oddities, 0);
    record.payload = SLICE("");
    ck_assert_str_eq(format(raw, SINK_SCHEMA_JSON, record), "");
}
END_TEST

START_TEST(a_null_where_nothing_was_decoded)
{
    struct sink_record record = {.payload_null = true};
    ck_assert_str_eq(format(bare, SINK_SCHEMA_TEXT, record), "{\"payload\":null}");
    ck_assert_str_eq(format(bare, SINK_SCHEMA_AVRO, record), "{\"payload\":null}");
}
END_TEST

START_TEST(times_change_within_a_second_and_over_it)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } times[] = {{999, "1970-01-01T00:00:00.999Z"},  {1000, "1970-01-01T00:00:01.000Z"},
                 {1001, "1970-01-01T00:00:01.001Z"}, {1999, "1970-01-01T00:00:01.999Z"},
                 {0, "1970-01-01T00:00:00.000Z"},    {SINK_TIMESTAMP_MAX, "9999-12-31T23:59:59.999Z"}};
    for (size_t i = 0; i < COUNT(times); i++) {
        struct sink_record record = {.timestamp_ms = times[i].ms, .payload = SLICE("1")};
        ck_assert_ptr_nonnull(strstr(format(full, SINK_SCHEMA_JSON, record), times[i].text));
    }
}
END_TEST

START_TEST(a_time_after_year_9999_is_refused_where_it_is_written)
{
    struct sink_record record = {.offset = 5, .timestamp_ms = SINK_TIMESTAMP_MAX + 1, .payload = SLICE("1")};
    char *bytes;
    size_t size;
    ck_assert_int_eq(sink_formatter_begin(&formatter, &full, SLICE("t"), 0, SINK_SCHEMA_JSON, &error), 0);
    ck_assert_int_eq(sink_format_record(&formatter, &record, &body, 0, &bytes, &size, &oddities, &error),
                     QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "offset 5"));
    ck_assert_str_eq(format(bare, SINK_SCHEMA_JSON, record), "{\"payload\":1}");
}
END_TEST

START_TEST(a_negative_partition_and_a_large_payload)
{
    char *bytes;
    size_t size;
    size_t large = 3000001;
    char *payload = malloc(large);
    memset(payload, 'x', large);
    struct sink_record record = {.payload = {payload, large}};
    ck_assert_int_eq(sink_formatter_begin(&formatter, &full, SLICE("t"), -7, SINK_SCHEMA_RAW, &error), 0);
    ck_assert_int_eq(sink_format_record(&formatter, &record, &body, 0, &bytes, &size, &oddities, &error), 0);
    ck_assert_ptr_nonnull(memmem(bytes, size, "\"partition\":-7,", 15));
    ck_assert_uint_gt(size, large / 3 * 4);
    ck_assert_int_eq(memcmp(bytes + size - 6, "eA==\"}", 6), 0);
    free(payload);
}
END_TEST

START_TEST(validity_is_asked_of_json_and_text_alone)
{
    ck_assert(sink_payload_is_valid(&formatter, SINK_SCHEMA_JSON, SLICE("[1]")));
    ck_assert(!sink_payload_is_valid(&formatter, SINK_SCHEMA_JSON, SLICE("[1")));
    ck_assert(!sink_payload_is_valid(&formatter, SINK_SCHEMA_TEXT, SLICE("\x80")));
    ck_assert(sink_payload_is_valid(&formatter, SINK_SCHEMA_RAW, SLICE("\x80")));
}
END_TEST

START_TEST(extensions_tell_format_and_compression)
{
    struct sink_shape shape = {.format = SINK_JSON_LINES, .compression = COMPRESSION_NONE};
    ck_assert_str_eq(sink_shape_extension(&shape), "jsonl");
    shape.compression = COMPRESSION_ZSTD;
    ck_assert_str_eq(sink_shape_extension(&shape), "jsonl.zst");
    shape.format = SINK_JSON_ARRAY;
    shape.compression = COMPRESSION_GZIP;
    ck_assert_str_eq(sink_shape_extension(&shape), "json.gz");
    shape.format = SINK_RAW;
    shape.compression = COMPRESSION_NONE;
    ck_assert_str_eq(sink_shape_extension(&shape), "bin");
}
END_TEST

START_TEST(a_hash_tells_every_field_apart)
{
    struct sink_record record = {.timestamp_ms = 1, .payload = SLICE("12345678901")};
    uint64_t hash = sink_record_hash(&record);
    struct sink_record other = record;
    ck_assert_uint_eq(sink_record_hash(&other), hash);
    other.offset = 9;
    ck_assert_uint_eq(sink_record_hash(&other), hash);
    other.timestamp_ms = 2;
    ck_assert_uint_ne(sink_record_hash(&other), hash);
    other = record;
    other.has_key = true;
    ck_assert_uint_ne(sink_record_hash(&other), hash);
    other = record;
    other.headers = SLICE("\x00");
    ck_assert_uint_ne(sink_record_hash(&other), hash);
    other = record;
    other.payload = SLICE("12345678902");
    ck_assert_uint_ne(sink_record_hash(&other), hash);
    other.payload = SLICE("1234567890");
    ck_assert_uint_ne(sink_record_hash(&other), hash);
    other.payload = SLICE("02345678901");
    ck_assert_uint_ne(sink_record_hash(&other), hash);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sink_format");
    TCase *test = tcase_create("format");
    tcase_add_checked_fixture(test, NULL, tear_down);
    tcase_add_loop_test(test, a_payload_is_converted_by_its_schema, 0, (int)COUNT(payloads));
    tcase_add_test(test, fields_come_in_their_order);
    tcase_add_test(test, an_empty_key_is_a_key_and_no_headers_are_none);
    tcase_add_loop_test(test, headers_that_do_not_decode_are_left_out_and_told, 0, (int)COUNT(broken_headers));
    tcase_add_test(test, bytes_behind_the_headers_are_ignored);
    tcase_add_test(test, raw_takes_the_bytes_as_they_are);
    tcase_add_test(test, a_null_where_nothing_was_decoded);
    tcase_add_test(test, times_change_within_a_second_and_over_it);
    tcase_add_test(test, a_time_after_year_9999_is_refused_where_it_is_written);
    tcase_add_test(test, a_negative_partition_and_a_large_payload);
    tcase_add_test(test, validity_is_asked_of_json_and_text_alone);
    tcase_add_test(test, extensions_tell_format_and_compression);
    tcase_add_test(test, a_hash_tells_every_field_apart);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
