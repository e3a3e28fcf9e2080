/*
 * The Queen client against a scripted server: the requests as they go out, every status, what a broken answer or
 * connection becomes, and whose memory is whose.
 */
#include "common/queen_client.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/scripted_server.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }
#define TOKEN "tok-3n"

static struct reactor *reactor;
static struct queen_api *queen;
static struct scripted_server *server;

static void tear_down(void)
{
    queen_client_destroy(queen);
    queen = NULL;
    if (server != NULL) {
        scripted_server_stop(server);
    }
    server = NULL;
    reactor_destroy(reactor);
}

static void connect_to(const char *path, const char *token)
{
    struct error error;
    char url[256];
    snprintf(url, sizeof url, "%s%s", scripted_server_url(server), path);
    reactor = reactor_create(&error);
    ck_assert_msg(reactor != NULL, "%s", error.message);
    queen = queen_client_create(
        reactor, &(struct queen_client_options){.url = url, .token = token, .connections_max = 8}, &error);
    ck_assert_msg(queen != NULL, "%s", error.message);
}

static void serve(const struct scripted_step *steps, size_t count)
{
    server = scripted_server_start(steps, count);
    connect_to("", TOKEN);
}

/* ---- what came of a call ---- */

struct outcome {
    int calls;
    struct error error;
    struct block *block; /* of a fetch; ours */
    struct fetch_entry entries[4];
    size_t count;
    struct broker_us safe_time;
    enum changed_entry_status changed_status;
    char next[64];
    bool precondition_failed;
    size_t failed_index;
    bool applied[4];
    int64_t versions[4];
    char text[64]; /* the first name, or the first value's JSON */
};

static void keep_fetch(void *argument, const struct error *error, struct fetch_answer *answer)
{
    struct outcome *outcome = argument;
    outcome->calls++;
    outcome->error = *error;
    ck_assert_int_eq(answer != NULL, error->code == QS_OK);
    if (answer != NULL) {
        outcome->block = answer->block;
        outcome->count = answer->count;
        memcpy(outcome->entries, answer->entries, answer->count * sizeof *answer->entries);
    }
}

static void keep_changed(void *argument, const struct error *error, const struct changed_answer *answer)
{
    struct outcome *outcome = argument;
    outcome->calls++;
    outcome->error = *error;
    ck_assert_int_eq(answer != NULL, error->code == QS_OK);
    if (answer != NULL) {
        outcome->count = answer->count;
        outcome->safe_time = answer->safe_time;
        if (answer->count > 0) {
            outcome->changed_status = answer->entries[0].status;
            const char *next = answer->entries[0].next;
            snprintf(outcome->next, sizeof outcome->next, "%s", next != NULL ? next : "");
        }
    }
}

static void keep_kv(void *argument, const struct error *error, const struct kv_answer *answer)
{
    struct outcome *outcome = argument;
    outcome->calls++;
    outcome->error = *error;
    ck_assert_int_eq(answer != NULL, error->code == QS_OK);
    if (answer == NULL) {
        return;
    }
    outcome->precondition_failed = answer->precondition_failed;
    outcome->failed_index = answer->failed_index;
    outcome->count = answer->count;
    for (size_t i = 0; answer->results != NULL && i < answer->count && i < COUNT(outcome->applied); i++) {
        outcome->applied[i] = answer->results[i].applied;
        outcome->versions[i] =
            answer->results[i].row_count > 0 ? answer->results[i].rows[0].version : answer->results[i].version;
    }
    if (answer->results != NULL && answer->results[0].row_count > 0) {
        char *value = cJSON_PrintUnformatted(answer->results[0].rows[0].value);
        snprintf(outcome->text, sizeof outcome->text, "%s", value);
        free(value);
    }
}

static void keep_queues(void *argument, const struct error *error, const struct queues_answer *answer)
{
    struct outcome *outcome = argument;
    outcome->calls++;
    outcome->error = *error;
    if (answer != NULL) {
        outcome->count = answer->count;
        if (answer->count > 0) {
            snprintf(outcome->text, sizeof outcome->text, "%.*s", (int)answer->queues[0].size, answer->queues[0].bytes);
        }
    }
}

static void wait_for(struct outcome *outcome)
{
    struct mono_ms give_up = {clock_mono().v + 20000};
    ck_assert_int_eq(outcome->calls, 0); /* never from within the call */
    while (outcome->calls == 0) {
        reactor_run_once(reactor, 100);
        ck_assert_msg(clock_mono().v < give_up.v, "no answer after 20 s");
    }
    ck_assert_int_eq(outcome->calls, 1);
}

static void wait_for_requests(size_t wanted)
{
    while (scripted_server_requests(server) < wanted) {
        reactor_run_once(reactor, 5);
    }
}

static struct outcome fetch_one(struct budget *budget, size_t reserved)
{
    const struct fetch_request_entry entry = {NAME("orders"), NAME("cust"), 5, 1048576};
    struct outcome outcome = {0};
    ck_assert_ptr_nonnull(queen->operations->fetch(
        queen, &(struct fetch_request){.entries = &entry, .count = 1, .budget = budget, .reserved = reserved},
        keep_fetch, &outcome));
    wait_for(&outcome);
    return outcome;
}

static struct outcome ask_clock(void)
{
    struct outcome outcome = {0};
    ck_assert_ptr_nonnull(queen->operations->changed(queen, NULL, 0, keep_changed, &outcome));
    wait_for(&outcome);
    return outcome;
}

static struct outcome send_kv(const struct kv_operation *operations, size_t count)
{
    struct outcome outcome = {0};
    ck_assert_ptr_nonnull(queen->operations->kv(queen, operations, count, 3000, keep_kv, &outcome));
    wait_for(&outcome);
    return outcome;
}

static struct outcome list_queues(void)
{
    struct outcome outcome = {0};
    ck_assert_ptr_nonnull(queen->operations->queues(queen, keep_queues, &outcome));
    wait_for(&outcome);
    return outcome;
}

/* ---- requests ---- */

#define CLOCK_ANSWER "{\"safeTime\":\"2026-09-04T10:04:57.412331Z\",\"safeTimeDegraded\":false,\"entries\":[]}"
#define FETCH_ANSWER                                                                                        \
    "{\"entries\":[{\"queue\":\"orders\",\"partition\":\"cust\",\"records\":["                              \
    "{\"offset\":5,\"transactionId\":\"t5\",\"payload\":{\"a\":1},\"ts\":\"2026-09-04T10:03:41.918204Z\"}," \
    "{\"offset\":7,\"transactionId\":\"t7\",\"payload\":null,\"ts\":\"2026-09-04T10:03:41.918204Z\"}],"     \
    "\"highWatermark\":8,\"logStartOffset\":2}]}"

START_TEST(every_call_carries_token_and_type)
{
    const struct scripted_step steps[] = {{.status = 200, .body = CLOCK_ANSWER},
                                          {.status = 200, .body = "{\"queues\":[{\"name\":\"orders\"}]}"}};
    serve(steps, COUNT(steps));
    struct outcome outcome = ask_clock();
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_int_eq(outcome.safe_time.v, INT64_C(1788516297412331));
    outcome = list_queues();
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_str_eq(outcome.text, "orders");
    static const char *const lines[] = {"POST /api/v1/partitions/changed HTTP/1.1",
                                        "GET /api/v1/resources/queues?stats=cached HTTP/1.1"};
    for (size_t i = 0; i < 2; i++) {
        struct scripted_request request = scripted_server_request(server, i);
        ck_assert(scripted_request_has(&request, lines[i]));
        ck_assert(scripted_request_has(&request, "Authorization: Bearer " TOKEN));
        ck_assert(scripted_request_has(&request, "Content-Type: application/json"));
        ck_assert_str_eq(request.body, i == 0 ? "{\"entries\":[]}" : "");
    }
}
END_TEST

START_TEST(without_a_token_there_is_no_header_and_a_path_is_kept)
{
    const struct scripted_step step = {.status = 200, .body = CLOCK_ANSWER};
    server = scripted_server_start(&step, 1);
    connect_to("/behind/a%20proxy/", NULL);
    ck_assert_int_eq(ask_clock().error.code, QS_OK);
    struct scripted_request request = scripted_server_request(server, 0);
    ck_assert(scripted_request_has(&request, "POST /behind/a%20proxy/api/v1/partitions/changed HTTP/1.1"));
    ck_assert_ptr_null(strcasestr(request.head, "authorization"));
}
END_TEST

START_TEST(a_token_that_would_break_the_header_is_refused)
{
    static const char *const tokens[] = {"hush x", "hush\r\nX-Evil: 1", "hush\x7F", "hush\t"};
    struct error error;
    reactor = reactor_create(&error);
    for (size_t i = 0; i < COUNT(tokens); i++) {
        ck_assert_ptr_null(queen_client_create(
            reactor, &(struct queen_client_options){.url = "http://127.0.0.1:1", .token = tokens[i]}, &error));
        ck_assert_int_eq(error.code, QS_ERROR_INPUT);
        ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_TOKEN"));
        ck_assert_ptr_null(strstr(error.message, "hush"));
    }
}
END_TEST

START_TEST(a_fetch_is_spelled_exactly)
{
    const struct scripted_step step = {.status = 503};
    serve(&step, 1);
    const struct fetch_request_entry entries[] = {{NAME("or\"ders"), NAME("a\\b\x7F\xE2\x80\xA8/%"), 0, 1},
                                                  {NAME("orders"), NAME(""), INT64_MAX, QUEEN_FETCH_BYTES_MAX}};
    struct outcome outcome = {0};
    queen->operations->fetch(queen, &(struct fetch_request){.entries = entries, .count = 2}, keep_fetch, &outcome);
    wait_for(&outcome);
    struct scripted_request request = scripted_server_request(server, 0);
    ck_assert(scripted_request_has(&request, "POST /api/v1/fetch HTTP/1.1"));
    ck_assert_str_eq(request.body,
                     "{\"entries\":[{\"queue\":\"or\\\"ders\",\"partition\":\"a\\\\b\x7F\xE2\x80\xA8/%\",\"offset\":0,"
                     "\"maxBytes\":1},{\"queue\":\"orders\",\"partition\":\"\",\"offset\":9223372036854775807,"
                     "\"maxBytes\":8388608}],\"maxWaitMs\":0,\"minBytes\":1}");
}
END_TEST

START_TEST(a_discovery_is_spelled_exactly)
{
    const struct scripted_step step = {
        .status = 200,
        .body = "{\"safeTime\":\"2026-09-04T10:04:57Z\",\"safeTimeDegraded\":false,\"entries\":[{\"queue\":\"a\","
                "\"partitions\":[],\"next\":\"n|1\"},{\"queue\":\"b\",\"partitions\":[],\"next\":null}]}"};
    serve(&step, 1);
    const struct changed_request_entry entries[] = {
        {.queue = NAME("a"), .has_since = true, .since = {INT64_C(1788516240000001)}, .limit = 1000},
        {.queue = NAME("b"), .after = "t|1|\"x\"", .limit = 1}};
    struct outcome outcome = {0};
    queen->operations->changed(queen, entries, 2, keep_changed, &outcome);
    wait_for(&outcome);
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_uint_eq(outcome.count, 2);
    ck_assert_int_eq(outcome.changed_status, CHANGED_OK);
    ck_assert_str_eq(outcome.next, "n|1");
    ck_assert_str_eq(scripted_server_request(server, 0).body,
                     "{\"entries\":[{\"queue\":\"a\",\"since\":\"2026-09-04T10:04:00.000001Z\",\"after\":null,"
                     "\"limit\":1000},{\"queue\":\"b\",\"since\":null,\"after\":\"t|1|\\\"x\\\"\",\"limit\":1}]}");
}
END_TEST

static const char *const pointer_keys[] = {"s3:d:q:committed", "s3:d:\"q\":intent"};
static const struct kv_operation every_kind[] = {
    {.kind = KV_PUT,
     .key = "s3:d:q:lease",
     .value = "{\"a\":1}",
     .ttl_seconds = 30,
     .has_expect = true,
     .expect = INT64_MAX,
     .required = true},
    {.kind = KV_PUT_IF_ABSENT, .key = "s3:d:q:intent", .value = "null"},
    {.kind = KV_DELETE, .key = "s3:d:q:x", .has_expect = true, .expect = 0},
    {.kind = KV_GET_MANY, .keys = pointer_keys, .key_count = 2}};

START_TEST(a_batch_is_spelled_exactly_and_answered)
{
    const struct scripted_step step = {
        .status = 200,
        .body =
            "{\"results\":[{\"index\":0,\"op\":\"put\",\"applied\":true,\"version\":9007199254740993},"
            "{\"index\":1,\"op\":\"putIfAbsent\",\"applied\":false,\"reason\":\"exists\",\"version\":2,\"value\":{}},"
            "{\"index\":2,\"op\":\"delete\",\"applied\":true,\"version\":3},"
            "{\"index\":3,\"op\":\"getMany\",\"rows\":[{\"key\":\"s3:d:q:committed\",\"version\":4,\"value\":[5]}],"
            "\"missing\":[\"s3:d:\\\"q\\\":intent\"],\"truncated\":false}]}"};
    serve(&step, 1);
    struct outcome outcome = send_kv(every_kind, COUNT(every_kind));
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert(outcome.applied[0] && !outcome.applied[1] && outcome.applied[2]);
    ck_assert_int_eq(outcome.versions[0], INT64_C(9007199254740993));
    ck_assert_int_eq(outcome.versions[1], 2);
    ck_assert_int_eq(outcome.versions[3], 4);
    ck_assert_str_eq(scripted_server_request(server, 0).body,
                     "{\"operations\":[{\"op\":\"put\",\"ns\":\"queen-s3\",\"key\":\"s3:d:q:lease\","
                     "\"value\":{\"a\":1},\"ttlSeconds\":30,\"expect\":9223372036854775807,\"required\":true},"
                     "{\"op\":\"putIfAbsent\",\"ns\":\"queen-s3\",\"key\":\"s3:d:q:intent\",\"value\":null,"
                     "\"forever\":true},{\"op\":\"delete\",\"ns\":\"queen-s3\",\"key\":\"s3:d:q:x\",\"expect\":0},"
                     "{\"op\":\"getMany\",\"ns\":\"queen-s3\",\"keys\":[\"s3:d:q:committed\","
                     "\"s3:d:\\\"q\\\":intent\"]}]}");
}
END_TEST

/* ---- fetch ---- */

START_TEST(a_fetch_answer_is_decoded_trimmed_and_ours)
{
    const struct scripted_step step = {.status = 200, .body = FETCH_ANSWER};
    serve(&step, 1);
    struct budget budget = {.limit = 10000000, .used = 9000000};
    struct outcome outcome = fetch_one(&budget, 9000000);
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_int_eq(outcome.entries[0].status, FETCH_OK);
    ck_assert_uint_eq(outcome.entries[0].record_count, 2);
    ck_assert_int_eq(outcome.entries[0].high_watermark, 8);
    ck_assert_int_eq(outcome.block->records[1].offset, 7);
    ck_assert_uint_lt(budget.used, 2000);
    ck_assert_uint_eq(budget.used, outcome.block->charged);
    block_release(outcome.block);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

static const struct {
    struct scripted_step step;
    enum qs_error expected;
} fetch_failures[] = {
    {{.status = 500, .body = "{\"error\":\"pool\"}"}, QS_ERROR_STATUS},
    {{.status = 400}, QS_ERROR_REFUSED},
    {{.status = 200, .body = "{\"entries\":[]}"}, QS_ERROR_BODY},
    {{.status = 200, .body = ""}, QS_ERROR_BODY},
    {{.status = 200, .body = FETCH_ANSWER, .cut = 5, .end = SCRIPTED_CLOSE}, QS_ERROR_TRANSPORT},
    {{.end = SCRIPTED_RESET}, QS_ERROR_TRANSPORT},
};

START_TEST(a_failed_fetch_gives_its_reservation_back)
{
    serve(&fetch_failures[_i].step, 1);
    struct budget budget = {.limit = 10000000, .used = 9000000};
    struct outcome outcome = fetch_one(&budget, 9000000);
    ck_assert_msg(outcome.error.code == fetch_failures[_i].expected, "%s", outcome.error.message);
    ck_assert_int_eq(strncmp(outcome.error.message, "POST /api/v1/fetch: ", 20), 0);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

START_TEST(a_fetch_beyond_the_budget_has_no_room)
{
    const struct scripted_step step = {.status = 200, .body = FETCH_ANSWER};
    serve(&step, 1);
    struct budget budget = {.limit = 200, .used = 150};
    struct outcome outcome = fetch_one(&budget, 150);
    ck_assert_msg(outcome.error.code == QS_ERROR_NO_ROOM, "%s", outcome.error.message);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

/* ---- statuses (spec 1.6) ---- */

static const struct {
    int status;
    const char *headers;
    enum qs_error expected;
    int64_t retry_after_ms;
    const char *says;
} statuses[] = {{408, NULL, QS_ERROR_STATUS, -1, "408"},
                {429, "Retry-After: 1\r\n", QS_ERROR_STATUS, 1000, "429"},
                {500, NULL, QS_ERROR_STATUS, -1, "500"},
                {503, "Retry-After: 17\r\n", QS_ERROR_STATUS, 17000, "503"},
                {503, "Retry-After: Fri, 04 Sep 2026 10:05:07 GMT\r\n", QS_ERROR_STATUS, -1, "503"},
                {599, NULL, QS_ERROR_STATUS, -1, "599"},
                {400, NULL, QS_ERROR_REFUSED, -1, "400"},
                {401, NULL, QS_ERROR_FORBIDDEN, -1, "QUEEN_TOKEN"},
                {403, NULL, QS_ERROR_FORBIDDEN, -1, "scope"},
                {404, NULL, QS_ERROR_REFUSED, -1, "QUEEN_URL"},
                {413, NULL, QS_ERROR_REFUSED, -1, "413"},
                {302, "Location: http://127.0.0.1:1/\r\n", QS_ERROR_REFUSED, -1, "redirect"}};

START_TEST(a_status_is_what_the_table_says)
{
    const struct scripted_step step = {
        .status = statuses[_i].status, .headers = statuses[_i].headers, .body = "{\"error\":\"because\"}"};
    serve(&step, 1);
    struct outcome outcome = ask_clock();
    ck_assert_int_eq(outcome.error.code, statuses[_i].expected);
    ck_assert_int_eq(outcome.error.retriable, statuses[_i].expected == QS_ERROR_STATUS);
    ck_assert_int_eq(outcome.error.status, statuses[_i].status);
    ck_assert_int_eq(outcome.error.retry_after_ms, statuses[_i].retry_after_ms);
    ck_assert_msg(strstr(outcome.error.message, statuses[_i].says) != NULL, "%s", outcome.error.message);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "because"));
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "/api/v1/partitions/changed"));
}
END_TEST

START_TEST(a_quoted_body_is_short_and_harmless)
{
    static char body[1000]; /* the server's thread may still send when the test is over */
    memset(body, 'x', sizeof body);
    memcpy(body, "\x1B[31m\r\n\x07", 8);
    body[sizeof body - 1] = '\0';
    const struct scripted_step step = {.status = 400, .body = body};
    serve(&step, 1);
    struct outcome outcome = ask_clock();
    ck_assert_uint_lt(strlen(outcome.error.message), 200);
    for (const char *at = outcome.error.message; *at != '\0'; at++) {
        ck_assert_int_ge((unsigned char)*at, 0x20);
    }
}
END_TEST

START_TEST(a_quoted_body_is_cut_between_characters)
{
    static char body[400];
    body[0] = 'x';
    for (size_t i = 1; i + 2 < sizeof body; i += 2) {
        memcpy(body + i, "\xC3\xA9", 3);
    }
    const struct scripted_step step = {.status = 400, .body = body};
    serve(&step, 1);
    struct outcome outcome = ask_clock();
    size_t size = strlen(outcome.error.message);
    ck_assert_int_eq(memcmp(outcome.error.message + size - 2, "\xC3\xA9", 2), 0);
}
END_TEST

START_TEST(no_message_holds_the_token)
{
    char far[300];
    memset(far, ' ', sizeof far);
    snprintf(far + 115, sizeof far - 115, "Bearer %s", TOKEN); /* the cut alone would leave its start */
    const struct scripted_step steps[] = {{.status = 400, .body = "you sent Authorization: Bearer " TOKEN},
                                          {.status = 503, .body = far},
                                          {.status = 200, .body = "\"" TOKEN "\""},
                                          {.end = SCRIPTED_RESET}};
    serve(steps, COUNT(steps));
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct outcome outcome = ask_clock();
        ck_assert_int_ne(outcome.error.code, QS_OK);
        ck_assert_ptr_null(strstr(outcome.error.message, TOKEN));
        ck_assert_ptr_null(strstr(outcome.error.message, "Bearer"));
    }
}
END_TEST

START_TEST(a_good_status_with_a_bad_body_is_a_bad_body)
{
    const struct scripted_step steps[] = {{.status = 200, .body = "<html>"},
                                          {.status = 204},
                                          {.status = 200, .body = "{}"},
                                          {.status = 200, .body = "{}"}};
    serve(steps, COUNT(steps));
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct outcome outcome = i < 2 ? ask_clock() : i == 2 ? send_kv(every_kind, 4) : list_queues();
        ck_assert_int_eq(outcome.error.code, QS_ERROR_BODY);
        ck_assert(outcome.error.retriable);
        ck_assert_ptr_nonnull(strstr(outcome.error.message, "/api/v1/"));
    }
}
END_TEST

/* ---- kv over a connection that dies ---- */

#define PRECONDITION \
    "{\"ok\":false,\"reason\":\"kv_precondition\",\"failedIndex\":0,\"kvReason\":\"version\",\"version\":9}"
#define APPLIED "{\"results\":[{\"index\":0,\"op\":\"put\",\"applied\":true,\"version\":7}]}"

START_TEST(a_lost_precondition_is_no_error)
{
    const struct scripted_step step = {.status = 200, .body = PRECONDITION};
    serve(&step, 1);
    struct outcome outcome = send_kv(every_kind, 1);
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert(outcome.precondition_failed);
    ck_assert_uint_eq(outcome.failed_index, 0);
}
END_TEST

START_TEST(a_batch_that_went_out_twice_and_lost_has_no_answer)
{
    const struct scripted_step steps[] = {
        {.status = 200, .body = APPLIED}, {.end = SCRIPTED_RESET}, {.status = 200, .body = PRECONDITION}};
    serve(steps, COUNT(steps));
    ck_assert_int_eq(send_kv(every_kind, 1).error.code, QS_OK);
    struct outcome outcome = send_kv(every_kind, 1);
    ck_assert_uint_eq(scripted_server_requests(server), 3);
    ck_assert_msg(outcome.error.code == QS_ERROR_TRANSPORT, "%s", outcome.error.message);
    ck_assert(outcome.error.retriable);
}
END_TEST

START_TEST(a_batch_that_went_out_twice_and_holds_is_an_answer)
{
    const struct scripted_step steps[] = {
        {.status = 200, .body = APPLIED}, {.end = SCRIPTED_RESET}, {.status = 200, .body = APPLIED}};
    serve(steps, COUNT(steps));
    ck_assert_int_eq(send_kv(every_kind, 1).error.code, QS_OK);
    struct outcome outcome = send_kv(every_kind, 1);
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_int_eq(outcome.versions[0], 7);
}
END_TEST

START_TEST(kv_has_its_own_timeout)
{
    const struct scripted_step step = {.status = 200, .body = APPLIED, .hold = true};
    serve(&step, 1);
    struct outcome outcome = {0};
    queen->operations->kv(queen, every_kind, 1, 60, keep_kv, &outcome);
    wait_for(&outcome);
    ck_assert_int_eq(outcome.error.code, QS_ERROR_TRANSPORT);
}
END_TEST

/* ---- several at a time ---- */

START_TEST(a_lease_does_not_wait_for_fetches)
{
    struct scripted_step steps[9];
    for (size_t i = 0; i < 8; i++) {
        steps[i] = (struct scripted_step){.status = 200, .body = FETCH_ANSWER, .hold = true};
    }
    steps[8] = (struct scripted_step){.status = 200, .body = APPLIED};
    serve(steps, COUNT(steps));
    const struct fetch_request_entry entry = {NAME("orders"), NAME("cust"), 5, 1048576};
    struct outcome fetches[8] = {0};
    for (size_t i = 0; i < 8; i++) {
        queen->operations->fetch(queen, &(struct fetch_request){.entries = &entry, .count = 1}, keep_fetch,
                                 &fetches[i]);
    }
    wait_for_requests(8);
    ck_assert_int_eq(send_kv(every_kind, 1).error.code, QS_OK);
    scripted_server_release(server);
    for (size_t i = 0; i < 8; i++) {
        while (fetches[i].calls == 0) {
            reactor_run_once(reactor, 100);
        }
        ck_assert_int_eq(fetches[i].error.code, QS_OK);
        block_release(fetches[i].block);
    }
}
END_TEST

START_TEST(a_cancelled_call_is_never_answered)
{
    const struct scripted_step step = {.status = 200, .body = FETCH_ANSWER, .hold = true};
    serve(&step, 1);
    const struct fetch_request_entry entry = {NAME("orders"), NAME("cust"), 5, 1048576};
    struct budget budget = {.limit = 1000000, .used = 1000};
    struct outcome outcome = {0};
    struct queen_call *call = queen->operations->fetch(
        queen, &(struct fetch_request){.entries = &entry, .count = 1, .budget = &budget, .reserved = 1000}, keep_fetch,
        &outcome);
    wait_for_requests(1);
    queen->operations->cancel(queen, call);
    ck_assert_uint_eq(budget.used, 0);
    scripted_server_release(server);
    reactor_run_once(reactor, 20);
    ck_assert_int_eq(outcome.calls, 0);
}
END_TEST

struct loop {
    int calls;
    struct queen_call *self;
    struct queen_call *other;
};

static void cancel_all_and_leave(void *argument, const struct error *error, const struct changed_answer *answer)
{
    struct loop *loop = argument;
    loop->calls++;
    ck_assert_int_eq(error->code, QS_OK);
    ck_assert_uint_eq(answer->count, 0);
    queen->operations->cancel(queen, loop->self);
    queen->operations->cancel(queen, loop->other);
    queen_client_destroy(queen);
    queen = NULL;
    ck_assert_int_eq(answer->safe_time.v, INT64_C(1788516297412331)); /* still there */
}

START_TEST(a_callback_may_cancel_and_destroy)
{
    const struct scripted_step steps[] = {{.status = 200, .body = CLOCK_ANSWER},
                                          {.status = 200, .body = CLOCK_ANSWER, .hold = true}};
    serve(steps, COUNT(steps));
    struct loop loop = {0};
    struct outcome never = {0};
    loop.self = queen->operations->changed(queen, NULL, 0, cancel_all_and_leave, &loop);
    loop.other = queen->operations->queues(queen, keep_queues, &never);
    /* Whichever took the held step: the other one's answer is a clock. */
    while (loop.calls == 0 && never.calls == 0) {
        reactor_run_once(reactor, 100);
    }
    ck_assert(loop.calls == 1 || never.error.code == QS_ERROR_BODY);
}
END_TEST

START_TEST(what_is_under_way_ends_with_the_client)
{
    const struct scripted_step steps[] = {{.status = 200, .body = FETCH_ANSWER, .hold = true},
                                          {.status = 200, .body = APPLIED, .hold = true}};
    serve(steps, COUNT(steps));
    const struct fetch_request_entry entry = {NAME("orders"), NAME("cust"), 5, 1048576};
    struct budget budget = {.limit = 1000000, .used = 1000};
    struct outcome outcome = {0};
    queen->operations->fetch(
        queen, &(struct fetch_request){.entries = &entry, .count = 1, .budget = &budget, .reserved = 1000}, keep_fetch,
        &outcome);
    queen->operations->kv(queen, every_kind, 1, 3000, keep_kv, &outcome);
    wait_for_requests(2);
    queen_client_destroy(queen);
    queen = NULL;
    ck_assert_uint_eq(budget.used, 0);
    reactor_run_once(reactor, 20);
    ck_assert_int_eq(outcome.calls, 0);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *test = tcase_create(name);
    tcase_add_checked_fixture(test, NULL, tear_down);
    tcase_set_timeout(test, 60);
    suite_add_tcase(suite, test);
    return test;
}

static void add_requests(Suite *suite)
{
    TCase *test = add_case(suite, "requests");
    tcase_add_test(test, every_call_carries_token_and_type);
    tcase_add_test(test, without_a_token_there_is_no_header_and_a_path_is_kept);
    tcase_add_test(test, a_fetch_is_spelled_exactly);
    tcase_add_test(test, a_discovery_is_spelled_exactly);
    tcase_add_test(test, a_batch_is_spelled_exactly_and_answered);
    tcase_add_test(test, a_fetch_answer_is_decoded_trimmed_and_ours);
    tcase_add_loop_test(test, a_failed_fetch_gives_its_reservation_back, 0, (int)COUNT(fetch_failures));
    tcase_add_test(test, a_fetch_beyond_the_budget_has_no_room);
    tcase_add_test(test, a_token_that_would_break_the_header_is_refused);
}

static void add_failures(Suite *suite)
{
    TCase *test = add_case(suite, "failures");
    tcase_add_loop_test(test, a_status_is_what_the_table_says, 0, (int)COUNT(statuses));
    tcase_add_test(test, a_quoted_body_is_short_and_harmless);
    tcase_add_test(test, a_quoted_body_is_cut_between_characters);
    tcase_add_test(test, no_message_holds_the_token);
    tcase_add_test(test, a_good_status_with_a_bad_body_is_a_bad_body);
    tcase_add_test(test, a_lost_precondition_is_no_error);
    tcase_add_test(test, a_batch_that_went_out_twice_and_lost_has_no_answer);
    tcase_add_test(test, a_batch_that_went_out_twice_and_holds_is_an_answer);
    tcase_add_test(test, kv_has_its_own_timeout);
}

static void add_concurrency(Suite *suite)
{
    TCase *test = add_case(suite, "several at a time");
    tcase_add_test(test, a_lease_does_not_wait_for_fetches);
    tcase_add_test(test, a_cancelled_call_is_never_answered);
    tcase_add_test(test, a_callback_may_cancel_and_destroy);
    tcase_add_test(test, what_is_under_way_ends_with_the_client);
}

int main(void)
{
    Suite *suite = suite_create("queen_client");
    add_requests(suite);
    add_failures(suite);
    add_concurrency(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
