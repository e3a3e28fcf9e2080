/*
 * Answers of partitions/changed, kv and the queue list, good ones and every kind of bad one.
 */
#include "common/queen_answer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }

static struct json_scan scan;
static struct changed_reading changed;
static struct kv_reading kv;
static struct queues_reading queues;
static struct error error;
static char *body; /* exactly as large as the answer, so that a sanitizer sees a step past it */

static void tear_down(void)
{
    changed_reading_free(&changed);
    kv_reading_free(&kv);
    queues_reading_free(&queues);
    free(scan.bits);
    scan = (struct json_scan){0};
    free(body);
    body = NULL;
}

static size_t take_body(const char *text)
{
    size_t size = strlen(text);
    free(body);
    body = malloc(size > 0 ? size : 1);
    ck_assert_ptr_nonnull(body);
    memcpy(body, text, size); /* and no NUL */
    error_clear(&error);
    return size;
}

static bool is_name(struct name name, const char *wanted)
{
    return name.size == strlen(wanted) && memcmp(name.bytes, wanted, name.size) == 0;
}

/* ---- partitions/changed ---- */

#define SAFE "\"safeTime\": \"2026-09-04T10:04:57.412331Z\", \"safeTimeDegraded\": false"
#define PART "{\"name\": \"p\", \"lastOffset\": 5, \"logStart\": 2, \"lastWriteAt\": \"2026-09-04T10:04:00Z\"}"

static int read_changed(const char *text, const struct name *asked, size_t count)
{
    size_t size = take_body(text);
    return queen_read_changed(&scan, body, size, asked, count, &changed, &error);
}

START_TEST(a_page_is_read)
{
    const struct name asked[] = {NAME("orders"), NAME("a\"b"), NAME("gone"), NAME("odd")};
    int status = read_changed(
        " {\"entries\": [{\"partitions\": [{\"logStart\": 1400, \"name\": \"cust-\\u00e9\", \"extra\": {\"a\": [1]}, "
        "\"lastWriteAt\": \"2026-09-04T10:04:00.000001Z\", \"lastOffset\": 9007199254740993, "
        "\"id\": \"0123abCD-4567-89ab-cdef-0123456789AB\"}, "
        "{\"name\": \"\", \"lastOffset\": -1, \"logStart\": 0, \"lastWriteAt\": \"1970-01-01T00:00:00Z\", \"id\": null}],"
        " \"next\": \"t|1|\\\"x\\\"\", \"queue\": \"orders\"}, "
        "{\"queue\": \"a\\\"b\", \"partitions\": [], \"next\": null, \"error\": null}, "
        "{\"queue\": \"gone\", \"error\": \"UNKNOWN_TOPIC_OR_PARTITION\"}, "
        "{\"queue\": \"odd\", \"error\": \"BAD_CURSOR\", \"partitions\": []}], " SAFE "}\n",
        asked, COUNT(asked));
    ck_assert_msg(status == QS_OK, "%s", error.message);
    const struct changed_answer *answer = &changed.answer;
    ck_assert_int_eq(answer->safe_time.v, INT64_C(1788516297412331));
    ck_assert(!answer->degraded);
    ck_assert_uint_eq(answer->count, 4);
    const struct changed_entry *entry = &answer->entries[0];
    ck_assert_int_eq(entry->status, CHANGED_OK);
    ck_assert_str_eq(entry->next, "t|1|\"x\"");
    ck_assert_uint_eq(entry->count, 2);
    ck_assert(is_name(entry->partitions[0].name, "cust-\xC3\xA9"));
    ck_assert_int_eq(entry->partitions[0].last_offset, INT64_C(9007199254740993));
    ck_assert_int_eq(entry->partitions[0].log_start, 1400);
    ck_assert_int_eq(entry->partitions[0].last_write_at.v, INT64_C(1788516240000001));
    ck_assert(entry->partitions[0].has_id);
    static const uint8_t id[16] = {0x01, 0x23, 0xab, 0xcd, 0x45, 0x67, 0x89, 0xab,
                                   0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab};
    ck_assert_int_eq(memcmp(entry->partitions[0].id.bytes, id, sizeof id), 0);
    ck_assert(is_name(entry->partitions[1].name, ""));
    ck_assert_int_eq(entry->partitions[1].last_offset, -1);
    ck_assert(!entry->partitions[1].has_id);
    ck_assert_int_eq(answer->entries[1].status, CHANGED_OK);
    ck_assert_uint_eq(answer->entries[1].count, 0);
    ck_assert_ptr_null(answer->entries[1].next);
    ck_assert_int_eq(answer->entries[2].status, CHANGED_UNKNOWN_QUEUE);
    ck_assert_int_eq(answer->entries[3].status, CHANGED_BAD_CURSOR);
}
END_TEST

START_TEST(the_clock_alone_is_an_answer)
{
    ck_assert_int_eq(
        read_changed("{\"safeTime\":\"2026-09-04T10:04:57Z\",\"safeTimeDegraded\":true,\"entries\":[]}", NULL, 0),
        QS_OK);
    ck_assert(changed.answer.degraded);
    ck_assert_uint_eq(changed.answer.count, 0);
}
END_TEST

START_TEST(an_unknown_error_text_is_passing)
{
    const struct name asked[] = {NAME("q")};
    ck_assert_int_eq(read_changed("{" SAFE ",\"entries\":[{\"queue\":\"q\",\"error\":\"whatever\"}]}", asked, 1),
                     QS_OK);
    ck_assert_int_eq(changed.answer.entries[0].status, CHANGED_PASSING);
}
END_TEST

START_TEST(ids_that_are_no_uuid_are_none)
{
    static const char *const ids[] = {"17",
                                      "\"\"",
                                      "\"0123abcd-4567-89ab-cdef-0123456789a\"",
                                      "\"0123abcd-4567-89ab-cdef-0123456789abc\"",
                                      "\"0123abcd-4567-89ab-cdef-0123456789ag\"",
                                      "\"0123abcd+4567-89ab-cdef-0123456789ab\"",
                                      "{}"};
    const struct name asked[] = {NAME("q")};
    for (size_t i = 0; i < COUNT(ids); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{" SAFE ",\"entries\":[{\"queue\":\"q\",\"partitions\":[{\"name\":\"p\",\"lastOffset\":1,"
                 "\"logStart\":0,\"lastWriteAt\":\"2026-09-04T10:04:00Z\",\"id\":%s}]}]}",
                 ids[i]);
        changed_reading_free(&changed);
        ck_assert_msg(read_changed(text, asked, 1) == QS_OK, "%s", error.message);
        ck_assert(!changed.answer.entries[0].partitions[0].has_id);
    }
}
END_TEST

START_TEST(many_partitions_keep_their_entries)
{
    struct {
        char *text;
        size_t size;
    } page = {malloc(400000), 0};
    ck_assert_ptr_nonnull(page.text);
    struct name asked[3] = {NAME("a"), NAME("b"), NAME("c")};
    page.size += (size_t)sprintf(page.text, "{" SAFE ",\"entries\":[");
    for (int entry = 0; entry < 3; entry++) {
        page.size += (size_t)sprintf(page.text + page.size, "%s{\"queue\":\"%c\",\"partitions\":[",
                                     entry > 0 ? "," : "", 'a' + entry);
        for (int i = 0; i < 1000; i++) {
            page.size += (size_t)sprintf(page.text + page.size,
                                         "%s{\"name\":\"%d-%d\",\"lastOffset\":%d,\"logStart\":0,"
                                         "\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}",
                                         i > 0 ? "," : "", entry, i, i);
        }
        page.size += (size_t)sprintf(page.text + page.size, "]}");
    }
    sprintf(page.text + page.size, "]}");
    ck_assert_msg(read_changed(page.text, asked, 3) == QS_OK, "%s", error.message);
    free(page.text);
    ck_assert_uint_eq(changed.answer.entries[2].count, 1000);
    ck_assert(is_name(changed.answer.entries[2].partitions[999].name, "2-999"));
    ck_assert(is_name(changed.answer.entries[0].partitions[0].name, "0-0"));
    ck_assert_int_eq(changed.answer.entries[1].partitions[500].last_offset, 500);
}
END_TEST

#define ENTRY(entry)         "{" SAFE ",\"entries\":[" entry "]}"
#define PARTITION(partition) ENTRY("{\"queue\":\"q\",\"partitions\":[" partition "],\"next\":null}")

static const char *const bad_pages[] = {
    "",
    "   ",
    "{",
    "[]",
    "null",
    "{}",
    "{" SAFE "}",
    "{" SAFE ",\"entries\":{}}",
    "{" SAFE ",\"entries\":[]}",
    "{\"entries\":[{\"queue\":\"q\",\"partitions\":[]}]}",
    "{\"safeTime\":\"2026-09-04\",\"entries\":[{\"queue\":\"q\",\"partitions\":[]}]}",
    "{\"safeTime\":\"2026-02-30T00:00:00Z\",\"entries\":[{\"queue\":\"q\",\"partitions\":[]}]}",
    "{\"safeTime\":1788516297,\"entries\":[{\"queue\":\"q\",\"partitions\":[]}]}",
    "{\"safeTime\":null,\"entries\":[{\"queue\":\"q\",\"partitions\":[]}]}",
    ENTRY("{\"queue\":\"q\",\"partitions\":[]}") "x",
    ENTRY("1"),
    ENTRY("{\"queue\":\"Q\",\"partitions\":[]}"),
    ENTRY("{\"queue\":\"qq\",\"partitions\":[]}"),
    ENTRY("{\"queue\":\"Q\",\"error\":\"UNKNOWN_TOPIC_OR_PARTITION\"}"),
    ENTRY("{\"partitions\":[]}"),
    ENTRY("{\"queue\":null,\"partitions\":[]}"),
    ENTRY("{\"queue\":\"q\"}"),
    ENTRY("{\"queue\":\"q\",\"partitions\":null}"),
    ENTRY("{\"queue\":\"q\",\"partitions\":[],\"next\":7}"),
    ENTRY("{\"queue\":\"q\",\"partitions\":[],\"next\":\"a\\u0000b\"}"),
    ENTRY("{\"queue\":\"q\",\"partitions\":[]},{\"queue\":\"q\",\"partitions\":[]}"),
    PARTITION("null"),
    PARTITION("{}"),
    PARTITION("{\"lastOffset\":1,\"logStart\":0,\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}"),
    PARTITION("{\"name\":1,\"lastOffset\":1,\"logStart\":0,\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}"),
    PARTITION("{\"name\":\"p\",\"logStart\":0,\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}"),
    PARTITION("{\"name\":\"p\",\"lastOffset\":1.5,\"logStart\":0,\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}"),
    PARTITION("{\"name\":\"p\",\"lastOffset\":9223372036854775807,\"logStart\":0,"
              "\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}"),
    PARTITION("{\"name\":\"p\",\"lastOffset\":-2,\"logStart\":0,\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}"),
    PARTITION("{\"name\":\"p\",\"lastOffset\":1,\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}"),
    PARTITION("{\"name\":\"p\",\"lastOffset\":1,\"logStart\":-1,\"lastWriteAt\":\"2026-09-04T10:04:00Z\"}"),
    PARTITION("{\"name\":\"p\",\"lastOffset\":1,\"logStart\":0}"),
    PARTITION("{\"name\":\"p\",\"lastOffset\":1,\"logStart\":0,\"lastWriteAt\":\"yesterday\"}"),
    PARTITION(PART "," PART ",7"),
};

START_TEST(a_bad_page_is_a_bad_body)
{
    const struct name asked[] = {NAME("q")};
    int status = read_changed(bad_pages[_i], asked, 1);
    ck_assert_msg(status == QS_ERROR_BODY, "%s", bad_pages[_i]);
    ck_assert_int_eq(error.code, QS_ERROR_BODY);
    ck_assert(error.retriable);
    ck_assert_uint_gt(strlen(error.message), 0);
}
END_TEST

/* ---- kv ---- */

static const char *const asked_keys[] = {"s3:d:q:committed", "s3:d:q:intent"};
static const struct kv_operation get_many = {.kind = KV_GET_MANY, .keys = asked_keys, .key_count = 2};
static const struct kv_operation two_writes[] = {{.kind = KV_PUT, .required = true}, {.kind = KV_DELETE}};

static int read_kv(const char *text, const struct kv_operation *asked, size_t count)
{
    size_t size = take_body(text);
    return queen_read_kv(&scan, body, size, asked, count, &kv, &error);
}

START_TEST(rows_and_missing_keys)
{
    int status = read_kv("{\"results\":[{\"index\":0,\"op\":\"getMany\",\"truncated\":false,"
                         "\"missing\":[\"s3:d:q:intent\"],\"rows\":[{\"key\":\"s3:d:q:c\\u006fmmitted\","
                         "\"version\":9223372036854775807,\"value\":{\"k\":3,\"version\":\"mine\"},"
                         "\"updatedAt\":\"2026-09-04T10:04:00+00:00\"}]}]}",
                         &get_many, 1);
    ck_assert_msg(status == QS_OK, "%s", error.message);
    ck_assert(!kv.answer.precondition_failed);
    ck_assert_uint_eq(kv.answer.count, 1);
    const struct kv_result *result = &kv.answer.results[0];
    ck_assert_uint_eq(result->row_count, 1);
    ck_assert_str_eq(result->rows[0].key, "s3:d:q:committed");
    ck_assert_int_eq(result->rows[0].version, INT64_MAX);
    ck_assert_int_eq(cJSON_GetObjectItem(result->rows[0].value, "k")->valueint, 3);
    ck_assert(!kv_reading_lost(&kv, &get_many));
}
END_TEST

START_TEST(neighbouring_versions_beyond_a_double_stay_apart)
{
    int status = read_kv("{\"results\":[{\"index\":1,\"op\":\"delete\",\"applied\":false,\"reason\":\"version\","
                         "\"version\":9007199254740993,\"value\":{\"instance\":\"b\"}},"
                         "{\"index\":0,\"op\":\"put\",\"applied\":true,\"version\":9007199254740992}]}",
                         two_writes, 2);
    ck_assert_msg(status == QS_OK, "%s", error.message);
    ck_assert(kv.answer.results[0].applied);
    ck_assert_int_eq(kv.answer.results[0].version, INT64_C(9007199254740992));
    ck_assert(!kv.answer.results[1].applied);
    ck_assert_int_eq(kv.answer.results[1].version, INT64_C(9007199254740993));
    ck_assert_int_eq(kv.answer.results[1].reason, KV_REASON_VERSION);
    ck_assert_str_eq(cJSON_GetObjectItem(kv.answer.results[1].value, "instance")->valuestring, "b");
    ck_assert(kv_reading_lost(&kv, two_writes));
}
END_TEST

START_TEST(a_loss_can_say_little)
{
    const struct kv_operation asked = {.kind = KV_PUT};
    static const struct {
        const char *reason;
        enum kv_reason expected;
    } reasons[] = {{"\"exists\"", KV_REASON_EXISTS},
                   {"\"absent\"", KV_REASON_ABSENT},
                   {"null", KV_REASON_NONE},
                   {"\"new\"", KV_REASON_NONE}};
    for (size_t i = 0; i < COUNT(reasons); i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"results\":[{\"index\":0,\"op\":\"put\",\"applied\":false,\"reason\":%s,\"version\":null,"
                 "\"value\":null}]}",
                 reasons[i].reason);
        kv_reading_free(&kv);
        ck_assert_msg(read_kv(text, &asked, 1) == QS_OK, "%s", error.message);
        ck_assert_int_eq(kv.answer.results[0].reason, reasons[i].expected);
        ck_assert_int_eq(kv.answer.results[0].version, 0);
        ck_assert_ptr_null(kv.answer.results[0].value);
    }
}
END_TEST

START_TEST(a_lost_precondition_is_an_answer)
{
    int status = read_kv("{\"ok\":false,\"reason\":\"kv_precondition\",\"failedIndex\":1,\"kvReason\":\"absent\","
                         "\"version\":9007199254740993,\"value\":{\"k\":1}}",
                         two_writes, 2);
    ck_assert_msg(status == QS_OK, "%s", error.message);
    ck_assert(kv.answer.precondition_failed);
    ck_assert_uint_eq(kv.answer.failed_index, 1);
    ck_assert_int_eq(kv.answer.reason, KV_REASON_ABSENT);
    ck_assert_int_eq(kv.answer.version, INT64_C(9007199254740993));
    ck_assert_int_eq(cJSON_GetObjectItem(kv.answer.value, "k")->valueint, 1);
    ck_assert_ptr_null(kv.answer.results);
    ck_assert(kv_reading_lost(&kv, two_writes));
}
END_TEST

START_TEST(a_lost_precondition_can_be_bare)
{
    ck_assert_int_eq(read_kv("{\"ok\":false,\"reason\":\"kv_precondition\"}", two_writes, 2), QS_OK);
    ck_assert(kv.answer.precondition_failed);
    ck_assert_uint_eq(kv.answer.failed_index, SIZE_MAX);
    ck_assert_int_eq(kv.answer.reason, KV_REASON_NONE);
    ck_assert_int_eq(kv.answer.version, 0);
    ck_assert_ptr_null(kv.answer.value);
}
END_TEST

#define MANY(rest) "{\"results\":[{\"index\":0,\"op\":\"getMany\"," rest "}]}"
#define ROW(key)   "{\"key\":\"" key "\",\"version\":1,\"value\":1}"

static const char *const bad_reads[] = {
    "",
    "[]",
    "{}",
    "{\"ok\":true}",
    "{\"results\":[]}",
    "{\"results\":7}",
    "{\"results\":[7]}",
    "{\"ok\":false}",
    "{\"ok\":false,\"reason\":\"kv_down\"}",
    "{\"ok\":false,\"reason\":\"kv_precondition\",\"failedIndex\":1}",
    "{\"ok\":false,\"reason\":\"kv_precondition\",\"failedIndex\":-1}",
    "{\"ok\":false,\"reason\":\"kv_precondition\",\"failedIndex\":\"0\"}",
    "{\"ok\":false,\"reason\":\"kv_precondition\",\"version\":1.5}",
    "{\"results\":[{\"op\":\"getMany\",\"rows\":[],\"missing\":[\"s3:d:q:committed\",\"s3:d:q:intent\"]}]}",
    "{\"results\":[{\"index\":1,\"op\":\"getMany\",\"rows\":[],\"missing\":[\"s3:d:q:committed\",\"s3:d:q:intent\"]}]}",
    "{\"results\":[{\"index\":0,\"op\":\"get\",\"rows\":[],\"missing\":[\"s3:d:q:committed\",\"s3:d:q:intent\"]}]}",
    "{\"results\":[{\"index\":0,\"rows\":[],\"missing\":[\"s3:d:q:committed\",\"s3:d:q:intent\"]}]}",
    MANY("\"rows\":[]"),
    MANY("\"missing\":[\"s3:d:q:committed\",\"s3:d:q:intent\"]"),
    MANY("\"rows\":[],\"missing\":[\"s3:d:q:committed\"]"),
    MANY("\"rows\":[],\"missing\":[\"s3:d:q:committed\",7]"),
    MANY("\"rows\":[],\"missing\":{}"),
    MANY("\"rows\":[],\"missing\":[\"s3:d:q:committed\",\"s3:d:q:intent\",\"s3:d:q:lease\"]"),
    MANY("\"rows\":[],\"missing\":[\"s3:d:q:committed\",\"s3:d:q:lease\"]"),
    MANY("\"rows\":[" ROW("s3:d:q:committed") "],\"missing\":[\"s3:d:q:committed\",\"s3:d:q:intent\"]"),
    MANY("\"rows\":[" ROW("s3:d:q:committed") "," ROW("s3:d:q:committed") "],\"missing\":[\"s3:d:q:intent\"]"),
    MANY("\"rows\":[" ROW("s3:d:q:committed") "," ROW("s3:d:q:intent") "],\"missing\":[],\"truncated\":true"),
    MANY("\"rows\":[{\"key\":\"s3:d:q:committed\",\"value\":1}],\"missing\":[\"s3:d:q:intent\"]"),
    MANY("\"rows\":[{\"key\":\"s3:d:q:committed\",\"version\":1e3,\"value\":1}],\"missing\":[\"s3:d:q:intent\"]"),
    MANY("\"rows\":[{\"key\":\"s3:d:q:committed\",\"version\":1}],\"missing\":[\"s3:d:q:intent\"]"),
    MANY("\"rows\":[{\"version\":1,\"value\":1}],\"missing\":[\"s3:d:q:committed\",\"s3:d:q:intent\"]"),
};

START_TEST(a_bad_read_is_a_bad_body)
{
    ck_assert_msg(read_kv(bad_reads[_i], &get_many, 1) == QS_ERROR_BODY, "%s", bad_reads[_i]);
    ck_assert_int_eq(error.code, QS_ERROR_BODY);
}
END_TEST

#define GOOD_DELETE "{\"index\":1,\"op\":\"delete\",\"applied\":true}"
#define GOOD_PUT    "{\"index\":0,\"op\":\"put\",\"applied\":true,\"version\":1}"
#define WRITES(put) "{\"results\":[" put "," GOOD_DELETE "]}"

static const char *const bad_writes[] = {
    "{\"results\":[" GOOD_DELETE "]}",
    "{\"results\":[" GOOD_DELETE "," GOOD_DELETE "]}",
    WRITES("{\"index\":0,\"op\":\"put\",\"version\":1}"),
    WRITES("{\"index\":0,\"op\":\"put\",\"applied\":\"true\",\"version\":1}"),
    WRITES("{\"index\":0,\"op\":\"put\",\"applied\":true}"),
    WRITES("{\"index\":0,\"op\":\"put\",\"applied\":true,\"version\":\"1\"}"),
    WRITES("{\"index\":0,\"op\":\"put\",\"applied\":true,\"version\":99999999999999999999}"),
    WRITES("{\"index\":0,\"op\":\"putIfAbsent\",\"applied\":true,\"version\":1}"),
    /* required, lost, and yet the batch stands: two owners could both go on */
    WRITES("{\"index\":0,\"op\":\"put\",\"applied\":false,\"reason\":\"version\",\"version\":1}"),
    WRITES("{\"index\":0,\"op\":\"put\",\"applied\":true,\"version\":1},{\"index\":2,\"op\":\"put\"}"),
    "{\"results\":[" GOOD_PUT ",{\"index\":1,\"op\":\"delete\",\"applied\":false,\"version\":\"x\"}]}",
};

START_TEST(a_bad_write_is_a_bad_body)
{
    ck_assert_msg(read_kv(bad_writes[_i], two_writes, 2) == QS_ERROR_BODY, "%s", bad_writes[_i]);
    kv_reading_free(&kv);
    ck_assert_int_eq(read_kv(WRITES("{\"index\":0,\"op\":\"put\",\"applied\":true,\"version\":1}"), two_writes, 2),
                     QS_OK);
}
END_TEST

START_TEST(a_value_nested_beyond_reason_is_a_bad_body)
{
    char text[8192] = "{\"ok\":false,\"reason\":\"kv_precondition\",\"value\":";
    size_t size = strlen(text);
    memset(text + size, '[', 2000);
    memset(text + size + 2000, ']', 2000);
    strcpy(text + size + 4000, "}");
    ck_assert_int_eq(read_kv(text, two_writes, 2), QS_ERROR_BODY);
}
END_TEST

/* ---- the queue list ---- */

static int read_queues(const char *text)
{
    size_t size = take_body(text);
    return queen_read_queues(&scan, body, size, &queues, &error);
}

START_TEST(queues_are_listed_by_name)
{
    ck_assert_int_eq(read_queues("{\"queues\": [{\"partitions\": 3, \"name\": \"orders\"}, {\"name\": \"a\\/b\"}]}"),
                     QS_OK);
    ck_assert_uint_eq(queues.answer.count, 2);
    ck_assert(is_name(queues.answer.queues[0], "orders"));
    ck_assert(is_name(queues.answer.queues[1], "a/b"));
    queues_reading_free(&queues);
    ck_assert_int_eq(read_queues("{\"queues\":[]}"), QS_OK);
    ck_assert_uint_eq(queues.answer.count, 0);
}
END_TEST

START_TEST(a_bad_list_is_a_bad_body)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "{\"queues\":null}",
                                      "{\"queues\":[\"orders\"]}",
                                      "{\"queues\":[{\"name\":null}]}",
                                      "{\"queues\":[{}]}",
                                      "{\"queues\":[]} {}"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        queues_reading_free(&queues);
        ck_assert_msg(read_queues(bad[i]) == QS_ERROR_BODY, "%s", bad[i]);
    }
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *test = tcase_create(name);
    tcase_add_checked_fixture(test, NULL, tear_down);
    suite_add_tcase(suite, test);
    return test;
}

int main(void)
{
    Suite *suite = suite_create("queen_answer");
    TCase *test = add_case(suite, "changed");
    tcase_add_test(test, a_page_is_read);
    tcase_add_test(test, the_clock_alone_is_an_answer);
    tcase_add_test(test, an_unknown_error_text_is_passing);
    tcase_add_test(test, ids_that_are_no_uuid_are_none);
    tcase_add_test(test, many_partitions_keep_their_entries);
    tcase_add_loop_test(test, a_bad_page_is_a_bad_body, 0, (int)COUNT(bad_pages));
    test = add_case(suite, "kv");
    tcase_add_test(test, rows_and_missing_keys);
    tcase_add_test(test, neighbouring_versions_beyond_a_double_stay_apart);
    tcase_add_test(test, a_loss_can_say_little);
    tcase_add_test(test, a_lost_precondition_is_an_answer);
    tcase_add_test(test, a_lost_precondition_can_be_bare);
    tcase_add_loop_test(test, a_bad_read_is_a_bad_body, 0, (int)COUNT(bad_reads));
    tcase_add_loop_test(test, a_bad_write_is_a_bad_body, 0, (int)COUNT(bad_writes));
    tcase_add_test(test, a_value_nested_beyond_reason_is_a_bad_body);
    test = add_case(suite, "queues");
    tcase_add_test(test, queues_are_listed_by_name);
    tcase_add_test(test, a_bad_list_is_a_bad_body);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
