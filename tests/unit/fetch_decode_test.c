/*
 * The fetch decoder, sentence by sentence of spec 1.2 and of its header. Each answer ends where its page ends.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fetch_decode.h"
#include "tests/unit/guarded.h"

#define TS     "\"ts\":\"2026-09-04T10:03:41.918204Z\""
#define TS_US  1788516221918204
#define BOUNDS "\"highWatermark\":1812,\"logStartOffset\":1400"
#define NAMES  "\"queue\":\"orders\",\"partition\":\"cust-0420\""

static const struct fetch_request_entry asked_one[] = {
    {.queue = {"orders", 6}, .partition = {"cust-0420", 9}, .offset = 1400, .max_bytes = 1}};

static struct json_scan scan;
static struct fetch_entry entries[8];
static struct error error;
static struct block *block;

/* Decodes into `block`, whose body is the guarded copy. */
static int decode_with(const char *body, size_t size, const struct fetch_request_entry *asked, size_t count,
                       struct budget *budget, bool may_exceed)
{
    if (block != NULL) {
        block->body = NULL;
        block_release(block);
    }
    block = block_create(budget, 0);
    ck_assert_ptr_nonnull(block);
    block->body = guarded_copy(body, size);
    block->body_size = size;
    error_clear(&error);
    return fetch_decode(&scan, block, asked, count, may_exceed, entries, &error);
}

static int decode(const char *body)
{
    return decode_with(body, strlen(body), asked_one, 1, NULL, false);
}

/* An answer of one entry with these records. */
static int decode_records(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int decode_records(const char *format, ...)
{
    static char body[1 << 18];
    va_list arguments;
    int size = snprintf(body, sizeof body, "{\"entries\":[{" NAMES ",\"records\":[");
    va_start(arguments, format);
    size += vsnprintf(body + size, sizeof body - (size_t)size, format, arguments);
    va_end(arguments);
    size += snprintf(body + size, sizeof body - (size_t)size, "]," BOUNDS "}]}");
    ck_assert_uint_lt((size_t)size, sizeof body);
    return decode_with(body, (size_t)size, asked_one, 1, NULL, false);
}

static void expect_bad(int status, const char *words)
{
    ck_assert_int_eq(status, QS_ERROR_BODY);
    ck_assert_int_eq(error.code, QS_ERROR_BODY);
    ck_assert(error.retriable);
    ck_assert_msg(strstr(error.message, words) != NULL, "\"%s\" doesn't say \"%s\"", error.message, words);
}

static void expect_good(int status)
{
    ck_assert_msg(status == QS_OK, "%d: %s", status, error.message);
}

static void expect_record(size_t i, int64_t offset, const char *id, const char *payload)
{
    ck_assert_uint_lt(i, block->record_count);
    const struct record *record = &block->records[i];
    ck_assert_int_eq(record->offset, offset);
    ck_assert_uint_eq(record->transaction_id_size, strlen(id));
    ck_assert_mem_eq(record->transaction_id, id, strlen(id));
    ck_assert_uint_eq(record->payload_size, strlen(payload));
    ck_assert_mem_eq(record->payload, payload, strlen(payload));
}

START_TEST(reads_the_example)
{
    expect_good(
        decode("{\"entries\":[{\"queue\":\"orders\",\"partition\":\"cust-0420\",\"records\":[\n"
               "   {\"offset\":1400,\"transactionId\":\"ord-9f21\",\"payload\":{\"type\":\"paid\",\"amount\":1290},"
               "\"ts\":\"2026-09-04T10:03:41.918204Z\"}],\n  \"highWatermark\":1812,\"logStartOffset\":1400}]}\n"));
    expect_record(0, 1400, "ord-9f21", "{\"type\":\"paid\",\"amount\":1290}");
    ck_assert_int_eq(block->records[0].ts.v, TS_US);
    ck_assert_uint_eq(block->records[0].flags, 0);
    ck_assert_uint_eq(block->records[0].transaction_id_raw, 8);
    ck_assert_uint_eq(block->record_count, 1);
    ck_assert_int_eq(entries[0].status, FETCH_OK);
    ck_assert_uint_eq(entries[0].first_record, 0);
    ck_assert_uint_eq(entries[0].record_count, 1);
    ck_assert_int_eq(entries[0].high_watermark, 1812);
    ck_assert_int_eq(entries[0].log_start, 1400);
}
END_TEST

/* Every spelling of the same record: order, blanks, unknown keys, escaped keys. */
START_TEST(reads_members_in_any_order_and_spelling)
{
    static const char *const spellings[] = {
        "{\"offset\":1401,\"transactionId\":\"i\",\"payload\":[1]," TS "}",
        "{" TS ",\"payload\":[1],\"transactionId\":\"i\",\"offset\":1401}",
        "{\"transactionId\":\"i\",\"offset\":1401,\"payload\":[1]," TS "}",
        "{\"offset\":1401,\"payload\":[1],\"transactionId\":\"i\"," TS "}",
        "{\"offset\":1401,\"transactionId\":\"i\"," TS ",\"payload\":[1]}",
        "{\"offset\":1401,\"transactionId\":\"i\",\"payload\":[1]," TS ",\"producer\":{\"offset\":[\"}\"]}}",
        "{\"new\":null,\"offset\":1401,\"new\":\"\\\"\",\"transactionId\":\"i\",\"n\":-0.5,\"payload\":[1]," TS "}",
        " { \"offset\" : 1401 , \"transactionId\" : \"i\" , \"payload\" : [1] , \"ts\" :\t\"2026-09-04T10:03:41.918204Z\"\r\n}",
        "{\"offset\": 1401,\"transactionId\": \"i\",\"payload\": [1],\"ts\": \"2026-09-04T10:03:41.918204Z\"}",
        "{\"off\\u0073et\":1401,\"\\u0074ransactionId\":\"i\",\"payload\":[1],\"t\\u0073\":\"2026\\u002d09-04T10:03:41.918204Z\"}",
        "{\"\":0,\"offset\":1401,\"transactionId\":\"i\",\"payload\":[1],\"ts\":\"2026-09-04T10:03:41.918204+00:00\"}",
    };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        expect_good(decode_records("%s", spellings[i]));
        expect_record(0, 1401, "i", "[1]");
        ck_assert_int_eq(block->records[0].ts.v, TS_US);
    }
}
END_TEST

START_TEST(reads_entries_in_any_order_and_spelling)
{
    static const char *const bodies[] = {
        "{\"entries\":[{" BOUNDS ",\"records\":[%s]," NAMES "}]}",
        "{\"a\":[[]],\"entries\":[ {\"records\" : [ %s ] , " BOUNDS ",\"x\":{}, " NAMES " } ] ,\"b\":0 } \n",
        "{\"entr\\u0069es\":[{\"queue\":\"\\u006frders\",\"partition\":\"cust\\u002d0420\",\"records\":[%s],\"error\":null," BOUNDS
        "}]}",
    };
    char body[1024];
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const char *place = strstr(bodies[i], "%s");
        snprintf(body, sizeof body, "%.*s{\"offset\":1400,\"payload\":0," TS "}%s", (int)(place - bodies[i]), bodies[i],
                 place + 2);
        expect_good(decode(body));
        expect_record(0, 1400, "", "0");
        ck_assert_int_eq(entries[0].high_watermark, 1812);
        ck_assert_int_eq(entries[0].log_start, 1400);
    }
}
END_TEST

START_TEST(keeps_payloads_to_the_byte)
{
    static const char *const payloads[] = {
        "{\"a\":1e400,\"a\":12345678901234567890,\"b\":-0}",
        "\"\\/ \\u0041 \\ud800 \\u0000\"",
        "[ 1 , 2 ]",
        "{ }",
        "false",
        "-0.0",
        "\"\"",
        "\"a long text with \xE3\x81\x82\xE3\x82\x8A\xE3\x81\x8C and \\\"quotes\\\" in it\"",
        "1e400",
        "[{\"offset\":9,\"ts\":\"never\"}]"};
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        expect_good(decode_records("{\"offset\":1400,\"transactionId\":\"a\",\"payload\":%s," TS "}", payloads[i]));
        expect_record(0, 1400, "a", payloads[i]);
        ck_assert_uint_eq(block->records[0].flags, 0);
    }
    expect_good(decode_records("{\"offset\":1400,\"transactionId\":\"a\",\"payload\":null," TS "}"));
    ck_assert_uint_eq(block->records[0].flags, RECORD_PAYLOAD_NULL);
    expect_record(0, 1400, "a", "null");
}
END_TEST

START_TEST(flags_line_breaks_inside_payloads_only)
{
    static const char *const broken[] = {"{\n}", "[1,\r\n\t2]", "{\"a\":1\r}", "[[\n1]]"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        expect_good(decode_records("{\"offset\":1400,\n\"payload\":\n%s\n,\r\n" TS "}", broken[i]));
        expect_record(0, 1400, "", broken[i]);
        ck_assert_uint_eq(block->records[0].flags, RECORD_LINE_BREAKS);
    }
    expect_good(decode_records("\n{\"offset\":1400,\n\"payload\":\n[\"\\n\",\t1 ]\n,\r\n" TS "}\n"));
    ck_assert_uint_eq(block->records[0].flags, 0);
}
END_TEST

START_TEST(spells_ids_the_lakes_way)
{
    static const struct {
        const char *wire;
        const char *spelled;
        unsigned raw;
    } ids[] = {
        {"\"\"", "", 0},
        {"null", "", 0},
        {"\"plain \x7F / \xE2\x80\xA8\"", "plain \x7F / \xE2\x80\xA8", 13},
        {"\"a\\/b\\u0041\"", "a/bA", 4},
        {"\"\\u0022\\u005C\"", "\\\"\\\\", 2},
        {"\"\\u000A\\u001F\"", "\\n\\u001f", 2},
        {"\"\\uD83D\\uDE00\"", "\xF0\x9F\x98\x80", 4},
        {"\"\\uD83Dx\"", "\\ud83dx", 4},
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        expect_good(decode_records("{\"offset\":1400,\"transactionId\":%s,\"payload\":\"p\"," TS "},"
                                   "{\"offset\":1401,\"payload\":\"q\"," TS ",\"transactionId\":%s}",
                                   ids[i].wire, ids[i].wire));
        expect_record(0, 1400, ids[i].spelled, "\"p\"");
        expect_record(1, 1401, ids[i].spelled, "\"q\"");
        ck_assert_uint_eq(block->records[0].transaction_id_raw, ids[i].raw);
    }
}
END_TEST

START_TEST(reads_the_longest_ids)
{
    enum { SIZE = 65535 };
    static char wire[SIZE * 2 + 1];
    static char plain[SIZE + 1];
    for (size_t i = 0; i < SIZE; i++) {
        wire[i * 2] = '\\';
        wire[i * 2 + 1] = i % 2 == 0 ? '/' : '"';
        plain[i] = 'x';
    }
    expect_good(decode_records("{\"offset\":1400,\"transactionId\":\"%s\",\"payload\":1," TS "}", wire));
    ck_assert_uint_eq(block->records[0].transaction_id_raw, SIZE);
    ck_assert_uint_eq(block->records[0].transaction_id_size, SIZE + SIZE / 2);
    ck_assert_mem_eq(block->records[0].transaction_id, "/\\\"/\\\"", 6);
    expect_good(decode_records("{\"offset\":1400,\"transactionId\":\"%s\",\"payload\":1," TS "}", plain));
    expect_record(0, 1400, plain, "1");
}
END_TEST

START_TEST(matches_odd_names)
{
    static char long_name[3001];
    static char body[8192];
    memset(long_name, 'n', 3000);
    const struct fetch_request_entry asked[] = {
        {.queue = {"", 0}, .partition = {" ", 1}, .offset = 0},
        {.queue = {"a\"b/%\x7F\xE2\x80\xA8", 9}, .partition = {long_name, 3000}, .offset = 0},
        {.queue = {NULL, 0}, .partition = {"\xED\xA0\x80", 3}, .offset = 0},
    };
    snprintf(body, sizeof body,
             "{\"entries\":[{\"queue\":\"\",\"partition\":\"\\u0020\",\"records\":[]," BOUNDS "},"
             "{\"queue\":\"a\\\"b\\/%%\x7F\\u2028\",\"partition\":\"%s\",\"records\":[]," BOUNDS "},"
             "{\"queue\":\"\",\"partition\":\"\\ud800\",\"records\":null," BOUNDS "}]}",
             long_name);
    ck_assert_int_eq(decode_with(body, strlen(body), asked, 3, NULL, false), QS_OK);
    expect_bad(decode_with(body, strlen(body), asked, 2, NULL, false), "no more entries");
    expect_bad(decode_with(body, strlen(body), asked + 1, 2, NULL, false), "the queue that was asked for");
}
END_TEST

START_TEST(keeps_entries_apart)
{
    const struct fetch_request_entry asked[] = {
        {.queue = {"q", 1}, .partition = {"a", 1}, .offset = 5},
        {.queue = {"q", 1}, .partition = {"b", 1}, .offset = 0},
        {.queue = {"q", 1}, .partition = {"c", 1}, .offset = 0},
        {.queue = {"r", 1}, .partition = {"a", 1}, .offset = 2},
    };
    static const char body[] =
        "{\"entries\":[{\"queue\":\"q\",\"partition\":\"a\",\"records\":["
        "{\"offset\":5,\"payload\":1," TS "},{\"offset\":6,\"payload\":2," TS
        "}],\"highWatermark\":7,\"logStartOffset\":0},"
        "{\"queue\":\"q\",\"partition\":\"b\",\"error\":\"UNKNOWN_TOPIC_OR_PARTITION\"},"
        "{\"queue\":\"q\",\"partition\":\"c\",\"records\":[],\"highWatermark\":9,\"logStartOffset\":3},"
        "{\"queue\":\"r\",\"partition\":\"a\",\"records\":[{\"offset\":4,\"payload\":3,\"ts\":\"1999-01-01T00:00:00Z\"},"
        "{\"offset\":5,\"payload\":4," TS "}],\"highWatermark\":6,\"logStartOffset\":0}]}";

    ck_assert_int_eq(decode_with(body, sizeof body - 1, asked, 4, NULL, false), QS_OK);
    ck_assert_uint_eq(entries[0].record_count, 2);
    ck_assert_int_eq(entries[1].status, FETCH_UNKNOWN_QUEUE);
    ck_assert_uint_eq(entries[2].record_count, 0);
    ck_assert_int_eq(entries[2].log_start, 3);
    ck_assert_uint_eq(entries[3].first_record, 2);
    ck_assert_uint_eq(entries[3].record_count, 2);
    expect_record(2, 4, "", "3");
    expect_bad(decode_with(body, sizeof body - 1, asked, 5, NULL, false), "as many entries");
}
END_TEST

START_TEST(reads_what_entries_say_of_themselves)
{
    expect_good(decode("{\"entries\":[{" NAMES ",\"records\":[],\"error\":\"OFFSET_OUT_OF_RANGE\"," BOUNDS "}]}"));
    ck_assert_int_eq(entries[0].status, FETCH_OUT_OF_RANGE);
    ck_assert_int_eq(entries[0].log_start, 1400);
    expect_good(decode("{\"entries\":[{\"error\":\"OFFSET_OUT_OF\\u005fRANGE\"," NAMES "}]}"));
    ck_assert_int_eq(entries[0].status, FETCH_OUT_OF_RANGE);
    expect_good(decode("{\"entries\":[{" NAMES ",\"error\":\"UNKNOWN_TOPIC_OR_PARTITION\",\"records\":[]}]}"));
    ck_assert_int_eq(entries[0].status, FETCH_UNKNOWN_QUEUE);
    expect_good(decode("{\"entries\":[{" NAMES ",\"error\":\"\",\"records\":[]}]}"));
    ck_assert_int_eq(entries[0].status, FETCH_PASSING);
    expect_good(decode("{\"entries\":[{" NAMES
                       ",\"records\":[],\"highWatermark\":9223372036854775807,\"logStartOffset\":0}]}"));
    ck_assert_int_eq(entries[0].status, FETCH_OK);
    ck_assert_int_eq(entries[0].high_watermark, INT64_MAX);
}
END_TEST

START_TEST(refuses_what_does_not_match)
{
    expect_bad(decode("{\"entries\":[{\"queue\":\"order\",\"partition\":\"cust-0420\",\"records\":[]," BOUNDS "}]}"),
               "queue");
    expect_bad(decode("{\"entries\":[{\"queue\":\"orders\",\"partition\":\"cust-0421\",\"records\":[]," BOUNDS "}]}"),
               "partition");
    expect_bad(decode("{\"entries\":[{\"partition\":\"cust-0420\",\"records\":[]," BOUNDS "}]}"),
               "an entry with queue");
    expect_bad(decode("{\"entries\":[{\"queue\":\"orders\",\"records\":[]," BOUNDS "}]}"), "an entry with queue");
    expect_bad(decode("{\"entries\":[{" NAMES "," BOUNDS "}]}"), "an entry with queue");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":[],\"highWatermark\":1}]}"), "logStartOffset");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":[],\"logStartOffset\":1}]}"), "highWatermark");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":[],\"records\":[]," BOUNDS "}]}"), "no key twice");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":{}," BOUNDS "}]}"), "an array");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":[],\"error\":{}," BOUNDS "}]}"), "error");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":[],\"highWatermark\":-1,\"logStartOffset\":0}]}"),
               "an integer");
    expect_bad(decode("{\"entries\":[]}"), "as many entries");
    expect_bad(decode("{\"entries\":[" NAMES "]}"), "an entry");
    expect_bad(decode("{\"entries\":{}}"), "an array");
    expect_bad(decode("{\"error\":\"pool\"}"), "an answer with entries");
    expect_bad(decode("{}"), "an answer with entries");
    expect_bad(decode("[]"), "an object");
    expect_bad(decode("<html>"), "an object");
    expect_bad(decode(""), "an object");
    expect_bad(decode(" \n"), "an object");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":[]," BOUNDS "}]}x"), "nothing behind");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":[]," BOUNDS "}],}"), "a key");
    expect_bad(decode("{\"entries\":[{" NAMES ",\"records\":[]," BOUNDS "},]}"), "no more entries");
}
END_TEST

START_TEST(refuses_bad_records)
{
    static const struct {
        const char *records;
        const char *words;
    } cases[] = {
        {"{\"transactionId\":\"a\",\"payload\":1," TS "}", "a record with"},
        {"{\"offset\":1400,\"transactionId\":\"a\"," TS "}", "a record with"},
        {"{\"offset\":1400,\"transactionId\":\"a\",\"payload\":1}", "a record with"},
        {"{}", "a record with"},
        {"{\"offset\":1399,\"payload\":1," TS "}", "offsets that rise"},
        {"{\"offset\":1400,\"payload\":1," TS "},{\"offset\":1400,\"payload\":1," TS "}", "offsets that rise"},
        {"{\"offset\":1402,\"payload\":1," TS "},{\"offset\":1401,\"payload\":1," TS "}", "offsets that rise"},
        {"{\"offset\":1400,\"payload\":1," TS
         "},{\"offset\":1401,\"payload\":1,\"ts\":\"2026-09-04T10:03:41.918203Z\"}",
         "no ts below"},
        {"{\"offset\":-1,\"payload\":1," TS "}", "an integer"},
        {"{\"offset\":\"1400\",\"payload\":1," TS "}", "an integer"},
        {"{\"offset\":1400.0,\"payload\":1," TS "}", "an integer"},
        {"{\"offset\":14e2,\"payload\":1," TS "}", "an integer"},
        {"{\"offset\":01400,\"payload\":1," TS "}", "an integer"},
        {"{\"offset\":9223372036854775808,\"payload\":1," TS "}", "an integer"},
        {"{\"offset\":99999999999999999999999999,\"payload\":1," TS "}", "an integer"},
        {"{\"offset\":9223372036854775807,\"payload\":1," TS "}", "an offset that another"},
        {"{\"offset\":1400,\"offset\":1401,\"payload\":1," TS "}", "no key twice"},
        {"{\"offset\":1400,\"payload\":1,\"payload\":2," TS "}", "no key twice"},
        {"{\"offset\":1400,\"payload\":1," TS "," TS "}", "no key twice"},
        {"{\"offset\":1400,\"payload\":1,\"ts\":\"2026-02-30T10:03:41Z\"}", "a time"},
        {"{\"offset\":1400,\"payload\":1,\"ts\":1788516221918204}", "a time"},
        {"{\"offset\":1400,\"payload\":1,\"ts\":null}", "a time"},
        {"{\"offset\":1400,\"transactionId\":7,\"payload\":1," TS "}", "transactionId"},
        {"{\"offset\":1400,\"transactionId\":\"a\nb\",\"payload\":1," TS "}", "transactionId"},
        {"{\"offset\":1400,\"transactionId\":\"\xFF\",\"payload\":1," TS "}", "transactionId"},
        {"{\"offset\":1400,\"payload\":01," TS "}", "a comma"},
        {"{\"offset\":1400,\"payload\":nul," TS "}", "a JSON value"},
        {"{\"offset\":1400,\"payload\":," TS "}", "a JSON value"},
        {"{\"offset\":1400,\"payload\":{\"a\":[1}," TS "}", "a JSON value"},
        {"{\"offset\":1400,\"payload\":\"\xC0\xAF\"," TS "}", "a JSON value"},
        {"{\"offset\":1400 \"payload\":1," TS "}", "a comma"},
        {"{\"offset\":1400,,\"payload\":1," TS "}", "a key"},
        {"{\"offset\":1400,\"payload\":1," TS ",}", "a key"},
        {"{\"offset\":1400,\"payload\":1," TS "},", "a record"},
        {"{\"offset\":1400,\"payload\":1," TS "}{\"offset\":1401,\"payload\":1," TS "}", "a comma"},
        {"{\"offset\":1400,\"x\":[,],\"payload\":1," TS "}", "a JSON value"},
        {"1400", "a record"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_bad(decode_records("%s", cases[i].records), cases[i].words);
        ck_assert(strstr(error.message, "byte ") != NULL && strncmp(error.message, "entry 1 of 1: ", 14) == 0);
    }
    ck_assert_int_eq(fetch_decode(&scan, block, asked_one, 1, true, entries, NULL), QS_ERROR_BODY);
}
END_TEST

START_TEST(takes_holes_and_shared_stamps)
{
    expect_good(decode_records("{\"offset\":1404,\"payload\":1," TS "},{\"offset\":1405,\"payload\":2," TS "},"
                               "{\"offset\":2000,\"payload\":3,\"ts\":\"2026-09-04T10:03:41.918205Z\"},"
                               "{\"offset\":2001,\"payload\":4,\"ts\":\"2026-09-04T10:03:42Z\"},"
                               "{\"offset\":2002,\"payload\":5,\"ts\":\"2026-09-04T10:03:42.5Z\"}"));
    ck_assert_uint_eq(entries[0].record_count, 5);
    ck_assert_int_eq(block->records[1].ts.v, TS_US);
    ck_assert_int_eq(block->records[2].ts.v, TS_US + 1);
    ck_assert_int_eq(block->records[4].ts.v - block->records[3].ts.v, 500000);
    expect_record(2, 2000, "", "3");
}
END_TEST

START_TEST(refuses_every_beginning_of_an_answer)
{
    static const char body[] =
        "{\"entries\":[{" NAMES ",\"records\":[{\"offset\":1400,\"transactionId\":\"a\\u0041\",\"payload\":"
        "{\"k\":[true,null,-1.5e3,\"\\u00e9\xC3\xA9\"]}," TS "},{\"payload\":\"x\",\"offset\":1401," TS "}]," BOUNDS
        "}]}";
    for (size_t size = 0; size < sizeof body - 1; size++) {
        ck_assert_int_eq(decode_with(body, size, asked_one, 1, NULL, false), QS_ERROR_BODY);
    }
    ck_assert_int_eq(decode_with(body, sizeof body - 1, asked_one, 1, NULL, false), QS_OK);
}
END_TEST

/* One record around `payload`; the rest of it is there already. */
static int decode_large(char *body, size_t payload_at, size_t payload_size)
{
    static const char head[] =
        "{\"entries\":[{" NAMES ",\"records\":[{\"offset\":1400,\"transactionId\":\"a\",\"payload\":";
    static const char tail[] = "," TS "}]," BOUNDS "}]}";
    char *start = body + payload_at - (sizeof head - 1);
    memcpy(start, head, sizeof head - 1);
    memcpy(body + payload_at + payload_size, tail, sizeof tail - 1);
    return decode_with(start, sizeof head - 1 + payload_size + sizeof tail - 1, asked_one, 1, NULL, false);
}

START_TEST(reads_deep_and_large_payloads)
{
    enum { ROOM = 1024, DEEP = 100000, LARGE = 60 * 1024 * 1024 };
    char *body = malloc(ROOM * 2 + LARGE);
    ck_assert_ptr_nonnull(body);
    memset(body + ROOM, '[', DEEP);
    memset(body + ROOM + DEEP, ']', DEEP);
    expect_good(decode_large(body, ROOM, (size_t)DEEP * 2));
    ck_assert_uint_eq(block->records[0].payload_size, DEEP * 2);
    expect_bad(decode_large(body, ROOM, (size_t)DEEP * 2 - 1), "a JSON value");
    memset(body + ROOM, 'x', LARGE);
    body[ROOM] = '"';
    body[ROOM + LARGE - 1] = '"';
    expect_good(decode_large(body, ROOM, LARGE));
    ck_assert_uint_eq(block->records[0].payload_size, LARGE);
    body[ROOM + LARGE / 2] = '\n';
    expect_bad(decode_large(body, ROOM, LARGE), "a JSON value");
    memset(body + ROOM + 1, ' ', LARGE - 2);
    body[ROOM] = '[';
    body[ROOM + LARGE - 1] = ']';
    expect_good(decode_large(body, ROOM, LARGE));
    ck_assert_uint_eq(block->records[0].flags, 0);
    free(body);
}
END_TEST

/* Many records of very different sizes: the array grows, counted to the byte, and gives back what it took. */
START_TEST(counts_records_in_the_budget)
{
    enum { RECORDS = 20000 };
    size_t room = (size_t)RECORDS * 200;
    char *body = malloc(room);
    ck_assert_ptr_nonnull(body);
    size_t size = (size_t)sprintf(body, "{\"entries\":[{" NAMES ",\"records\":[");
    for (int i = 0; i < RECORDS; i++) {
        size += (size_t)sprintf(body + size, "%s{\"offset\":%d,\"transactionId\":\"%d\",\"payload\":\"%*s\"," TS "}",
                                i > 0 ? "," : "", 1400 + i, i, i < RECORDS / 2 ? 0 : 80, "");
    }
    size += (size_t)sprintf(body + size, "]," BOUNDS "}]}");

    size_t needed = sizeof(struct block) + RECORDS * sizeof(struct record);
    struct budget budget = {.limit = 2 * needed};
    ck_assert_int_eq(decode_with(body, size, asked_one, 1, &budget, false), QS_OK);
    ck_assert_uint_eq(block->record_count, RECORDS);
    for (int i = 0; i < RECORDS; i++) {
        ck_assert_int_eq(block->records[i].offset, 1400 + i);
    }
    ck_assert_uint_eq(budget.used, sizeof(struct block) + block->record_capacity * sizeof(struct record));
    ck_assert_uint_le(budget.used, budget.limit);
    block->body_size = 0; /* it is not the block's to shrink */
    block->body = NULL;
    block_trim(block);
    ck_assert_uint_eq(budget.used, needed);
    block_release(block);
    block = NULL;
    ck_assert_uint_eq(budget.used, 0);

    budget.limit = needed - 1;
    ck_assert_int_eq(decode_with(body, size, asked_one, 1, &budget, false), QS_ERROR_NO_ROOM);
    ck_assert(error.retriable);
    ck_assert_int_eq(decode_with(body, size, asked_one, 1, &budget, true), QS_OK);
    block->body = NULL;
    block_release(block);
    block = NULL;
    ck_assert_uint_eq(budget.used, 0);
    budget.limit = needed + RECORDS / 8 * sizeof(struct record) + 4096;
    ck_assert_int_eq(decode_with(body, size, asked_one, 1, &budget, false), QS_OK);
    free(body);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("fetch_decode");
    TCase *cases = tcase_create("fetch_decode");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, reads_the_example);
    tcase_add_test(cases, reads_members_in_any_order_and_spelling);
    tcase_add_test(cases, reads_entries_in_any_order_and_spelling);
    tcase_add_test(cases, keeps_payloads_to_the_byte);
    tcase_add_test(cases, flags_line_breaks_inside_payloads_only);
    tcase_add_test(cases, spells_ids_the_lakes_way);
    tcase_add_test(cases, reads_the_longest_ids);
    tcase_add_test(cases, matches_odd_names);
    tcase_add_test(cases, keeps_entries_apart);
    tcase_add_test(cases, reads_what_entries_say_of_themselves);
    tcase_add_test(cases, refuses_what_does_not_match);
    tcase_add_test(cases, refuses_bad_records);
    tcase_add_test(cases, takes_holes_and_shared_stamps);
    tcase_add_test(cases, refuses_every_beginning_of_an_answer);
    tcase_add_test(cases, reads_deep_and_large_payloads);
    tcase_add_test(cases, counts_records_in_the_budget);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
