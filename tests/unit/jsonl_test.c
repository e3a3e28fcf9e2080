/*
 * Lines byte for byte: the example of spec 2.2, every awkward place of a line, and the three JSON Lines lakes that the
 * original wrote.
 */
#include "worker/jsonl.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "lakes.h"
#include "runs.h"

static const struct window_shape plain = {FORMAT_JSONL, COMPRESSION_NONE, LAYOUT_MERGED, ALIGN_HOUR};

static int collect(void *argument, const uint8_t *bytes, size_t size)
{
    byte_buffer_add(argument, bytes, size);
    return 0;
}

static int one_run(struct run_source *source, struct run *run)
{
    const struct run **left = (const struct run **)(source + 1);

    if (*left == NULL) {
        return 0;
    }
    *run = **left;
    *left = NULL;
    return 1;
}

/* Encodes one run without compression; the text, malloc. */
static char *encode_run(const struct run *run, size_t *size)
{
    struct {
        struct run_source source;
        const struct run *left;
    } source = {{one_run, jsonl_run_size(run), {"q", 1}}, run};
    struct byte_buffer text = {0};
    struct encode_result result;
    struct error error;
    int code = encode_stream(&plain, &source.source, 1, collect, &text, &result, &error);

    ck_assert_msg(code == 0, "%s", error.message);
    ck_assert_uint_eq(text.size, source.source.text_size);
    ck_assert_uint_eq(result.bytes, text.size);
    *size = text.size;
    return byte_buffer_take(&text);
}

static struct record record_of(int64_t offset, const char *id, const char *payload)
{
    return (struct record){.offset = offset,
                           .ts = {INT64_C(1788516221918204)},
                           .transaction_id = id,
                           .transaction_id_size = (uint32_t)strlen(id),
                           .payload = payload,
                           .payload_size = (uint32_t)strlen(payload)};
}

static void expect_line(const char *partition, struct record record, const char *expected)
{
    struct block block = {.records = &record, .record_count = 1};
    struct extent extent = {&block, 0, 1};
    struct run run = {{partition, strlen(partition)}, &extent, 1};
    size_t size = 0;
    char *text = encode_run(&run, &size);

    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(the_example_of_the_specification)
{
    expect_line(
        "cust-0420", record_of(1811, "ord-9f21", "{\"type\":\"paid\",\"amount\":1290}"),
        "{\"partition\":\"cust-0420\",\"offset\":1811,\"transactionId\":\"ord-9f21\",\"ts\":\"2026-09-04T10:03:41."
        "918204Z\",\"payload\":{\"type\":\"paid\",\"amount\":1290}}\n");
}
END_TEST

START_TEST(names_are_spelled_the_lakes_way)
{
    expect_line(
        "q\"\\\b\f\n\r\t\x01\x1f/\x7f\xc3\xa8", record_of(0, "", "1"),
        "{\"partition\":\"q\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f/\x7f\xc3\xa8\",\"offset\":0,\"transactionId\":\"\","
        "\"ts\":\"2026-09-04T10:03:41.918204Z\",\"payload\":1}\n");
    expect_line(
        "", record_of(INT64_MAX, "i", "\"\""),
        "{\"partition\":\"\",\"offset\":9223372036854775807,\"transactionId\":\"i\",\"ts\":\"2026-09-04T10:03:41."
        "918204Z\",\"payload\":\"\"}\n");
}
END_TEST

START_TEST(a_payload_is_spliced_as_it_came)
{
    static const char *const payloads[] = {"null",        "1e400",       " [ 1 , 2 ] ", "{\"a\":1,\"a\":2}",
                                           "\"\\u00E8\"", "\"\\ud800\"", "-0.10e+01",   "{\"\t\" :\t\"\"}"};

    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        char expected[256];
        (void)snprintf(
            expected, sizeof expected,
            "{\"partition\":\"p\",\"offset\":10,\"transactionId\":\"\\\"\",\"ts\":\"2026-09-04T10:03:41.918204Z\","
            "\"payload\":%s}\n",
            payloads[i]);
        expect_line("p", record_of(10, "\\\"", payloads[i]), expected);
    }
}
END_TEST

START_TEST(line_breaks_between_tokens_become_blanks_where_marked)
{
    struct record record = record_of(7, "t", "{\r\n \"a\":\n[\"\\n\"\r]\n}");

    record.flags = RECORD_LINE_BREAKS;
    expect_line("p", record,
                "{\"partition\":\"p\",\"offset\":7,\"transactionId\":\"t\",\"ts\":\"2026-09-04T10:03:41.918204Z\","
                "\"payload\":{   \"a\": [\"\\n\" ] }}\n");
}
END_TEST

START_TEST(a_null_is_written_as_null)
{
    struct record record = record_of(7, "t", "");

    record.payload = NULL;
    record.flags = RECORD_PAYLOAD_NULL;
    expect_line("p", record,
                "{\"partition\":\"p\",\"offset\":7,\"transactionId\":\"t\",\"ts\":\"2026-09-04T10:03:41.918204Z\","
                "\"payload\":null}\n");
}
END_TEST

/* Times that share a second, that don't, before 1970, and past the ends of the calendar. */
START_TEST(every_time_is_spelled_as_the_clock_spells_it)
{
    static const int64_t times[] = {0,
                                    1,
                                    999999,
                                    1000000,
                                    1000001,
                                    -1,
                                    -2,
                                    -1000000,
                                    -1000001,
                                    INT64_C(1788516221918204),
                                    INT64_C(1788516221918204),
                                    INT64_C(1788516221000000),
                                    INT64_C(1788516222000000),
                                    INT64_C(253402300799999999),
                                    INT64_C(253402300799999998),
                                    INT64_C(253402300800000000),
                                    INT64_C(253402300800000001),
                                    INT64_MAX,
                                    INT64_MAX - 1,
                                    INT64_C(-62167219200000000),
                                    INT64_C(-62167219200000001),
                                    INT64_C(-62167219200000002),
                                    INT64_MIN,
                                    INT64_MIN + 1,
                                    5};
    enum { COUNT = sizeof times / sizeof *times };
    struct record records[COUNT];
    struct block block = {.records = records, .record_count = COUNT};
    struct extent extent = {&block, 0, COUNT};
    struct run run = {{"p", 1}, &extent, 1};
    size_t size = 0;

    for (size_t i = 0; i < COUNT; i++) {
        records[i] = record_of((int64_t)i, "", "0");
        records[i].ts.v = times[i];
    }
    char *text = encode_run(&run, &size);
    const char *line = text;
    for (size_t i = 0; i < COUNT; i++) {
        char expected[CLOCK_TEXT_SIZE];
        clock_format_broker((struct broker_us){times[i]}, expected);
        const char *time = strstr(line, "\"ts\":\"") + 6;
        ck_assert_msg(strncmp(time, expected, 27) == 0, "%zu: %.27s, not %s", i, time, expected);
        line = strchr(line, '\n') + 1;
    }
    free(text);
}
END_TEST

START_TEST(offsets_of_every_length)
{
    enum { COUNT = 38 };
    struct record records[COUNT];
    struct block block = {.records = records, .record_count = COUNT};
    struct extent extents[2] = {{&block, 0, 1}, {&block, 1, COUNT - 1}};
    struct run run = {{"p", 1}, extents, 2};
    int64_t power = 1;
    size_t size = 0;

    for (size_t i = 0; i < COUNT; i += 2) {
        records[i] = record_of(power - 1, "", "0");
        records[i + 1] = record_of(power, "", "0");
        power = i < 36 ? power * 10 : power;
    }
    char *text = encode_run(&run, &size);
    const char *line = text;
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_int_eq(strtoll(strstr(line, "\"offset\":") + 9, NULL, 10), records[i].offset);
        line = strchr(line, '\n') + 1;
    }
    free(text);
}
END_TEST

/* Names, ids and payloads around and far beyond the buffer's size, one after the other so that they meet its end at
 * every fill. */
START_TEST(any_size_goes_through_the_buffer)
{
    static const size_t sizes[] = {1, 16383, 16384, 16385, 131071, 131072, 131073, 300000, 9000000};
    enum { COUNT = 9 };
    char *big = malloc(9000001);
    struct record records[3 * COUNT];
    struct byte_buffer expected = {0};
    size_t size = 0;

    ck_assert_ptr_nonnull(big);
    for (size_t i = 0; i < 9000000; i++) {
        big[i] = i % 97 == 96 ? '\n' : (char)('a' + i % 23);
    }
    for (size_t name = 1; name <= 140000; name += 69999) {
        struct block block = {.records = records, .record_count = 3 * COUNT};
        struct extent extent = {&block, 0, 3 * COUNT};
        memset(big, 'n', name);
        struct run run = {{big, name}, &extent, 1};
        byte_buffer_clear(&expected);
        for (size_t i = 0; i < 3 * COUNT; i++) {
            struct record *record = &records[i];
            *record = record_of((int64_t)i, "id", "0");
            if (i % 3 == 0) {
                record->transaction_id = big + name;
                record->transaction_id_size = (uint32_t)(sizes[i / 3] < 200000 ? sizes[i / 3] : 200000);
            } else {
                record->payload = big + name;
                record->payload_size = (uint32_t)(sizes[i / 3] - (sizes[i / 3] > name ? name : 0));
                record->flags = i % 3 == 1 ? RECORD_LINE_BREAKS : 0;
            }
            byte_buffer_add_text(&expected, "{\"partition\":\"");
            byte_buffer_add(&expected, big, name);
            byte_buffer_add_format(&expected, "\",\"offset\":%zu,\"transactionId\":\"", i);
            byte_buffer_add(&expected, record->transaction_id, record->transaction_id_size);
            byte_buffer_add_text(&expected, "\",\"ts\":\"2026-09-04T10:03:41.918204Z\",\"payload\":");
            for (size_t j = 0; j < record->payload_size; j++) {
                char byte = record->payload[j];
                byte_buffer_add(&expected, i % 3 == 1 && byte == '\n' ? " " : &byte, 1);
            }
            byte_buffer_add_text(&expected, "}\n");
        }
        char *text = encode_run(&run, &size);
        ck_assert_uint_eq(size, expected.size);
        ck_assert(memcmp(text, expected.bytes, size) == 0);
        free(text);
    }
    byte_buffer_free(&expected);
    free(big);
}
END_TEST

static int64_t number(const cJSON *item, const char *key)
{
    return (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(item, key));
}

/* One window of one lake: the log's records of it, encoded here, against the object and its manifest. */
static void check_window(const struct lake_file *log, const cJSON *manifest)
{
    struct window_shape shape = plain;
    struct byte_buffer bytes = {0};
    struct run_set set;
    struct encode_result result;
    struct error error;
    char path[600];
    size_t size = 0;
    size_t their_size = 0;

    ck_assert(setting_compression_parse(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(manifest, "compression")),
                                        &shape.compression));
    run_set_read(&set, log->bytes, log->size, number(manifest, "tStart"), number(manifest, "tEnd"));
    int code = encode_stream(&shape, &set.source, 2, collect, &bytes, &result, &error);
    ck_assert_msg(code == 0, "%s", error.message);
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(manifest, "objects")->child;
    (void)snprintf(path, sizeof path, "lake/%s", cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "key")));
    const struct lake_file *theirs = lakes_find(path);
    ck_assert_ptr_nonnull(theirs);
    if (shape.compression == COMPRESSION_NONE) {
        ck_assert_uint_eq(bytes.size, theirs->size);
        ck_assert(memcmp(bytes.bytes, theirs->bytes, theirs->size) == 0);
        char hex[65];
        for (size_t i = 0; i < 32; i++) {
            (void)snprintf(hex + 2 * i, 3, "%02x", result.sha256[i]);
        }
        ck_assert_str_eq(hex, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "sha256")));
    } else {
        char *(*unpack)(const void *, size_t, size_t *) =
            shape.compression == COMPRESSION_ZSTD ? unpack_zstd : unpack_gzip;
        char *text = unpack(bytes.bytes, bytes.size, &size);
        char *their_text = unpack(theirs->bytes, theirs->size, &their_size);
        ck_assert_uint_eq(size, their_size);
        ck_assert(memcmp(text, their_text, size) == 0);
        if (shape.compression == COMPRESSION_GZIP) {
            ck_assert_mem_eq(bytes.bytes, theirs->bytes, 10); /* header, XFL and OS byte included */
        }
        free(text);
        free(their_text);
    }
    ck_assert_int_eq((int64_t)result.records, number(manifest, "records"));
    ck_assert_int_eq((int64_t)result.partitions, number(manifest, "partitions"));
    ck_assert_int_eq(result.min_ts.v, number(manifest, "minTs"));
    ck_assert_int_eq(result.max_ts.v, number(manifest, "maxTs"));
    ck_assert_uint_eq(result.bytes, bytes.size);
    byte_buffer_free(&bytes);
    run_set_free(&set);
}

START_TEST(the_lines_of_the_original)
{
    static const char *const lakes[] = {"lake/jsonl/", "lake/jsonl-zstd/", "lake/jsonl-gzip/"};
    const struct lake_file *log = lakes_find("log.jsonl");
    const struct lake_file *file;

    if (log == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof lakes / sizeof *lakes; i++) {
        size_t from = 0;
        int windows = 0;
        while ((file = lakes_next(&from, lakes[i], ".json")) != NULL) {
            cJSON *manifest = cJSON_ParseWithLength(file->bytes, file->size);
            ck_assert_ptr_nonnull(manifest);
            check_window(log, manifest);
            cJSON_Delete(manifest);
            windows++;
        }
        ck_assert_int_eq(windows, 3);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jsonl");
    TCase *tests = tcase_create("lines");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_example_of_the_specification);
    tcase_add_test(tests, names_are_spelled_the_lakes_way);
    tcase_add_test(tests, a_payload_is_spliced_as_it_came);
    tcase_add_test(tests, line_breaks_between_tokens_become_blanks_where_marked);
    tcase_add_test(tests, a_null_is_written_as_null);
    tcase_add_test(tests, every_time_is_spelled_as_the_clock_spells_it);
    tcase_add_test(tests, offsets_of_every_length);
    tcase_add_test(tests, any_size_goes_through_the_buffer);
    tcase_add_test(tests, the_lines_of_the_original);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
