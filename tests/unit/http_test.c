/*
 * HTTP requests against a scripted server: what goes out byte for byte, what comes back, and every way in which the
 * other side can fail.
 */
#include "common/http.h"

#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/scripted_server.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct reactor *reactor;
static struct http_client *client;
static struct scripted_server *server;

static struct http_client *make_client(const struct http_client_options *options)
{
    struct error error;
    struct http_client *made = http_client_create(reactor, options, &error);
    ck_assert_msg(made != NULL, "%s", error.message);
    return made;
}

static void set_up(void)
{
    struct error error;
    reactor = reactor_create(&error);
    ck_assert_msg(reactor != NULL, "%s", error.message);
    client = make_client(&(struct http_client_options){.connect_timeout_ms = 5000});
    server = NULL;
}

static void tear_down(void)
{
    http_client_destroy(client);
    reactor_destroy(reactor);
    if (server != NULL) {
        scripted_server_stop(server);
    }
}

static void serve(const struct scripted_step *steps, size_t count)
{
    server = scripted_server_start(steps, count);
}

/* Before what it sends is freed: its threads may be about to look at it still. */
static void stop_serving(void)
{
    scripted_server_stop(server);
    server = NULL;
}

/* ---- one request ---- */

struct outcome {
    int calls;
    struct error error;
    struct http_response response; /* its body and block are ours */
};

static void keep_outcome(void *argument, const struct error *error, struct http_response *response)
{
    struct outcome *outcome = argument;
    outcome->calls++;
    outcome->error = *error;
    outcome->response = *response;
    response->body = NULL;
    response->block = NULL;
}

static void outcome_free(struct outcome *outcome)
{
    free(outcome->response.body);
    block_release(outcome->response.block);
    *outcome = (struct outcome){0};
}

static void wait_for(const int *calls, int wanted)
{
    struct mono_ms give_up = {clock_mono().v + 20000};
    while (*calls < wanted) {
        reactor_run_once(reactor, 100);
        ck_assert_msg(clock_mono().v < give_up.v, "no answer after 20 s");
    }
}

static void wait_for_requests(size_t wanted)
{
    struct mono_ms give_up = {clock_mono().v + 20000};
    while (scripted_server_requests(server) < wanted) {
        reactor_run_once(reactor, 5);
        ck_assert_msg(clock_mono().v < give_up.v, "no request after 20 s");
    }
}

static const char *url_of(const char *path)
{
    static char url[512];
    snprintf(url, sizeof url, "%s%s", scripted_server_url(server), path);
    return url;
}

static struct http_request *start(struct http_request_options options, struct outcome *outcome)
{
    options.method = options.method != NULL ? options.method : "GET";
    options.url = options.url != NULL ? options.url : url_of("/");
    struct http_request *request = http_start(client, &options, keep_outcome, outcome);
    ck_assert_ptr_nonnull(request);
    return request;
}

static struct outcome ask(struct http_request_options options)
{
    struct outcome outcome = {0};
    start(options, &outcome);
    ck_assert_int_eq(outcome.calls, 0); /* never from within the call */
    wait_for(&outcome.calls, 1);
    return outcome;
}

static void expect_failure(struct outcome *outcome, enum qs_error code)
{
    ck_assert_int_eq(outcome->error.code, code);
    ck_assert_int_eq(outcome->response.status, 0);
    ck_assert_ptr_null(outcome->response.body);
    ck_assert_ptr_null(outcome->response.block);
    ck_assert_int_eq(outcome->response.retry_after_ms, -1);
    ck_assert_ptr_null(strchr(outcome->error.message, '\n'));
    outcome_free(outcome);
}

/* ---- what goes out ---- */

START_TEST(a_get_is_sent_as_it_was_given)
{
    serve(&(struct scripted_step){.status = 200, .body = "hello"}, 1);
    const char *headers[] = {"X-One: 1", "Authorization: Bearer t"};
    struct outcome outcome = ask((struct http_request_options){
        .url = url_of("/a//b/../c%2F/./d?x=%20y"), .headers = headers, .header_count = 2});
    ck_assert_int_eq(outcome.error.code, QS_OK);
    ck_assert_int_eq(outcome.response.status, 200);
    ck_assert_str_eq(outcome.response.body, "hello");
    ck_assert_uint_eq(outcome.response.body_size, 5);
    ck_assert_uint_eq(outcome.response.content_length, 5);
    ck_assert(outcome.response.sent);
    ck_assert(!outcome.response.repeated);
    struct scripted_request request = scripted_server_request(server, 0);
    ck_assert(scripted_request_has(&request, "GET /a//b/../c%2F/./d?x=%20y HTTP/1.1"));
    ck_assert(scripted_request_has(&request, "X-One: 1"));
    ck_assert(scripted_request_has(&request, "Authorization: Bearer t"));
    ck_assert_ptr_null(strcasestr(request.head, "content-type"));
    ck_assert_ptr_null(strcasestr(request.head, "accept-encoding"));
    ck_assert_ptr_null(strcasestr(request.head, "user-agent"));
    outcome_free(&outcome);
}
END_TEST

static void expect_upload(const char *method)
{
    serve(&(struct scripted_step){.status = 201}, 1);
    struct iovec pieces[] = {{(void *)"one ", 4}, {NULL, 0}, {(void *)"two ", 4}, {(void *)"three", 5}};
    const char *headers[] = {"Content-Type: text/plain"};
    struct outcome outcome = ask((struct http_request_options){.method = method,
                                                               .pieces = pieces,
                                                               .piece_count = COUNT(pieces),
                                                               .body_size = 13,
                                                               .headers = headers,
                                                               .header_count = 1});
    ck_assert_int_eq(outcome.response.status, 201);
    ck_assert_str_eq(outcome.response.body, "");
    struct scripted_request request = scripted_server_request(server, 0);
    ck_assert_int_eq(strncmp(request.head, method, strlen(method)), 0);
    ck_assert(scripted_request_has(&request, "Content-Length: 13"));
    ck_assert(scripted_request_has(&request, "Content-Type: text/plain"));
    ck_assert_ptr_null(strcasestr(request.head, "expect"));
    ck_assert_ptr_null(strcasestr(request.head, "transfer-encoding"));
    ck_assert_str_eq(request.body, "one two three");
    outcome_free(&outcome);
}

START_TEST(a_put_sends_its_pieces_in_order)
{
    expect_upload("PUT");
}
END_TEST

START_TEST(a_post_sends_its_pieces_in_order)
{
    expect_upload("POST");
}
END_TEST

START_TEST(an_empty_body_has_its_length_too)
{
    const struct scripted_step steps[] = {{.status = 200}, {.status = 200}, {.status = 204}};
    serve(steps, COUNT(steps));
    const char *methods[] = {"PUT", "POST", "DELETE"};
    for (size_t i = 0; i < 3; i++) {
        struct outcome outcome = ask((struct http_request_options){.method = methods[i]});
        ck_assert_int_eq(outcome.response.status, i == 2 ? 204 : 200);
        struct scripted_request request = scripted_server_request(server, i);
        ck_assert_int_eq(strncmp(request.head, methods[i], strlen(methods[i])), 0);
        ck_assert(i == 2 || scripted_request_has(&request, "Content-Length: 0"));
        ck_assert_ptr_null(strcasestr(request.head, "content-type"));
        outcome_free(&outcome);
    }
    ck_assert_uint_eq(scripted_server_connections(server), 1);
}
END_TEST

START_TEST(a_large_upload_arrives_whole)
{
    size_t size = 5 * 1024 * 1024 + 7;
    char *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)(i * 31 >> 3);
    }
    serve(&(struct scripted_step){.status = 200}, 1);
    struct iovec pieces[] = {{bytes, 1000003}, {bytes + 1000003, size - 1000003}};
    struct outcome outcome = ask((struct http_request_options){
        .method = "PUT", .pieces = pieces, .piece_count = 2, .body_size = size, .stall_timeout_ms = 10000});
    ck_assert_int_eq(outcome.response.status, 200);
    struct scripted_request request = scripted_server_request(server, 0);
    ck_assert_uint_eq(request.body_size, size);
    ck_assert_int_eq(memcmp(request.body, bytes, size), 0);
    outcome_free(&outcome);
    stop_serving();
    free(bytes);
}
END_TEST

/* ---- what comes back ---- */

START_TEST(the_headers_that_are_kept)
{
    const struct scripted_step steps[] = {
        {.status = 307,
         .headers = "eTaG: \"0123abcd\"\r\nX-Amz-Bucket-Region:eu-west-3 \r\nDate: Fri, 04 Sep 2026 10:05:07 GMT\r\n"
                    "Location: http://127.0.0.1:1/\r\n",
         .body = "elsewhere"},
        {.status = 200, .headers = "ETag: unquoted\r\n"},
        {.status = 200}};
    serve(steps, COUNT(steps));
    struct outcome outcome = ask((struct http_request_options){0});
    ck_assert_int_eq(outcome.response.status, 307); /* and not followed */
    ck_assert_str_eq(outcome.response.etag, "0123abcd");
    ck_assert_str_eq(outcome.response.region, "eu-west-3");
    ck_assert_str_eq(outcome.response.date, "Fri, 04 Sep 2026 10:05:07 GMT");
    ck_assert_str_eq(outcome.response.body, "elsewhere");
    outcome_free(&outcome);
    outcome = ask((struct http_request_options){0});
    ck_assert_str_eq(outcome.response.etag, "unquoted");
    ck_assert_str_eq(outcome.response.region, "");
    outcome_free(&outcome);
    outcome = ask((struct http_request_options){0});
    ck_assert_str_eq(outcome.response.etag, "");
    outcome_free(&outcome);
}
END_TEST

START_TEST(an_etag_too_long_to_keep_is_none)
{
    char headers[400];
    snprintf(headers, sizeof headers, "ETag: %0300d\r\n", 0);
    serve(&(struct scripted_step){.status = 200, .headers = headers}, 1);
    struct outcome outcome = ask((struct http_request_options){0});
    ck_assert_int_eq(outcome.response.status, 200);
    ck_assert_str_eq(outcome.response.etag, "");
    outcome_free(&outcome);
}
END_TEST

START_TEST(an_interim_answer_leaves_nothing_behind)
{
    serve(&(struct scripted_step){.raw = "HTTP/1.1 103 Early Hints\r\nETag: \"early\"\r\nRetry-After: 9\r\n\r\n"
                                         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
          1);
    struct outcome outcome = ask((struct http_request_options){0});
    ck_assert_int_eq(outcome.response.status, 200);
    ck_assert_str_eq(outcome.response.body, "ok");
    ck_assert_str_eq(outcome.response.etag, "");
    ck_assert_int_eq(outcome.response.retry_after_ms, -1);
    outcome_free(&outcome);
}
END_TEST

static const struct {
    const char *header;
    int64_t expected;
} retry_after_cases[] = {{"Retry-After: 1\r\n", 1000},
                         {"Retry-After: 0\r\n", 0},
                         {"retry-after:\t17 \r\n", 17000},
                         {"Retry-After: 86400\r\n", 86400000},
                         {"Retry-After: 86401\r\n", 86400000},
                         {"Retry-After: 99999999999999999999999999\r\n", 86400000},
                         {"Retry-After: Fri, 04 Sep 2026 10:05:07 GMT\r\n", -1},
                         {"Retry-After: 1.5\r\n", -1},
                         {"Retry-After: -1\r\n", -1},
                         {"Retry-After: +1\r\n", -1},
                         {"Retry-After: \r\n", -1},
                         {"Retry-After: 5 s\r\n", -1},
                         {"", -1}};

START_TEST(retry_after_counts_in_whole_seconds_only)
{
    serve(&(struct scripted_step){.status = 503, .headers = retry_after_cases[_i].header}, 1);
    struct outcome outcome = ask((struct http_request_options){0});
    ck_assert_int_eq(outcome.error.code, QS_OK);
    ck_assert_int_eq(outcome.response.status, 503);
    ck_assert_int_eq(outcome.response.retry_after_ms, retry_after_cases[_i].expected);
    outcome_free(&outcome);
}
END_TEST

START_TEST(a_head_tells_the_length_and_has_no_body)
{
    const struct scripted_step steps[] = {
        {.status = 200, .headers = "Content-Length: 5368709120\r\n"},
        {.status = 200, .headers = "Content-Length: 18446744073709551615\r\n"},
        {.status = 404},
    };
    serve(steps, COUNT(steps));
    struct outcome outcome = ask((struct http_request_options){.method = "HEAD"});
    ck_assert_uint_eq(outcome.response.content_length, UINT64_C(5368709120));
    ck_assert_str_eq(outcome.response.body, "");
    struct scripted_request request = scripted_server_request(server, 0);
    ck_assert(scripted_request_has(&request, "HEAD / HTTP/1.1"));
    outcome_free(&outcome);
    outcome = ask((struct http_request_options){.method = "HEAD"});
    outcome_free(&outcome); /* absurd: an error or an answer, as curl likes, but nothing breaks */
    outcome = ask((struct http_request_options){.method = "HEAD"});
    outcome_free(&outcome);
}
END_TEST

START_TEST(a_body_without_length_grows)
{
    const struct scripted_step steps[] = {
        {.status = 200, .headers = "Transfer-Encoding: chunked\r\n", .body = "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"},
        {.raw = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end", .end = SCRIPTED_CLOSE}};
    serve(steps, COUNT(steps));
    struct outcome outcome = ask((struct http_request_options){0});
    ck_assert_str_eq(outcome.response.body, "abcdefg");
    ck_assert_uint_eq(outcome.response.content_length, 0);
    outcome_free(&outcome);
    outcome = ask((struct http_request_options){0});
    ck_assert_str_eq(outcome.response.body, "until the end");
    outcome_free(&outcome);
}
END_TEST

static char *make_body(size_t size)
{
    char *body = malloc(size + 1);
    ck_assert_ptr_nonnull(body);
    for (size_t i = 0; i < size; i++) {
        body[i] = (char)('a' + i % 26);
    }
    body[size] = '\0';
    return body;
}

START_TEST(a_body_above_the_limit_ends_the_call)
{
    char *body = make_body(5000);
    const struct scripted_step steps[] = {
        {.status = 200, .body = body},
        {.raw = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n0123456789", .end = SCRIPTED_CLOSE},
        {.status = 200, .body = body}};
    serve(steps, COUNT(steps));
    struct outcome outcome = ask((struct http_request_options){.body_limit = 4999});
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "4999"));
    expect_failure(&outcome, QS_ERROR_BODY);
    outcome = ask((struct http_request_options){.body_limit = 9});
    expect_failure(&outcome, QS_ERROR_BODY);
    outcome = ask((struct http_request_options){.body_limit = 5000});
    ck_assert_uint_eq(outcome.response.body_size, 5000);
    outcome_free(&outcome);
    stop_serving();
    free(body);
}
END_TEST

START_TEST(a_declared_length_is_not_believed_beyond_the_limit)
{
    serve(&(struct scripted_step){.raw = "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\nx"}, 1);
    struct outcome outcome = ask((struct http_request_options){0});
    expect_failure(&outcome, QS_ERROR_BODY);
}
END_TEST

/* ---- into a block ---- */

START_TEST(a_block_takes_the_reservation_over_and_is_exact)
{
    char *body = make_body(100000);
    serve(&(struct scripted_step){.status = 200, .body = body}, 1);
    struct budget budget = {.limit = 1000000, .used = 200000};
    struct outcome outcome =
        ask((struct http_request_options){.into_block = true, .budget = &budget, .reserved = 200000});
    ck_assert_int_eq(outcome.error.code, QS_OK);
    struct block *block = outcome.response.block;
    ck_assert_ptr_nonnull(block);
    ck_assert_ptr_null(outcome.response.body);
    ck_assert_uint_eq(block->body_size, 100000);
    ck_assert_uint_eq(block->body_capacity, 100000);
    ck_assert_int_eq(memcmp(block->body, body, 100000), 0);
    ck_assert_uint_eq(budget.used, 200000);
    outcome_free(&outcome);
    ck_assert_uint_eq(budget.used, 0);
    stop_serving();
    free(body);
}
END_TEST

START_TEST(a_block_that_is_not_taken_goes_back)
{
    char *body = make_body(1000);
    serve(&(struct scripted_step){.status = 200, .body = body}, 1);
    struct budget budget = {.limit = 1000000, .used = 5000};
    struct outcome outcome =
        ask((struct http_request_options){.into_block = true, .budget = &budget, .reserved = 5000});
    ck_assert_uint_eq(budget.used, 5000);
    outcome_free(&outcome);
    ck_assert_uint_eq(budget.used, 0);
    stop_serving();
    free(body);
}
END_TEST

START_TEST(a_body_without_room_ends_the_call_and_gives_all_back)
{
    char *body = make_body(300000);
    char *chunked = malloc(400000);
    ck_assert_ptr_nonnull(chunked);
    snprintf(chunked, 400000, "493E0\r\n%s\r\n0\r\n\r\n", body); /* 300000 */
    const struct scripted_step steps[] = {
        {.status = 200, .body = body}, {.status = 200, .headers = "Transfer-Encoding: chunked\r\n", .body = chunked}};
    serve(steps, COUNT(steps));
    for (int i = 0; i < 2; i++) {
        struct budget budget = {.limit = 250000, .used = 101000};
        struct outcome outcome =
            ask((struct http_request_options){.into_block = true, .budget = &budget, .reserved = 100000});
        ck_assert_ptr_nonnull(strstr(outcome.error.message, "budget"));
        expect_failure(&outcome, QS_ERROR_NO_ROOM);
        ck_assert_uint_eq(budget.used, 1000);
    }
    stop_serving();
    free(chunked);
    free(body);
}
END_TEST

START_TEST(what_may_exceed_does)
{
    char *body = make_body(300000);
    serve(&(struct scripted_step){.status = 200, .body = body}, 1);
    struct budget budget = {.limit = 1000, .used = 100};
    struct outcome outcome =
        ask((struct http_request_options){.into_block = true, .budget = &budget, .reserved = 100, .may_exceed = true});
    ck_assert_int_eq(outcome.error.code, QS_OK);
    ck_assert_uint_eq(outcome.response.block->body_size, 300000);
    ck_assert_uint_ge(budget.used, 300000);
    outcome_free(&outcome);
    ck_assert_uint_eq(budget.used, 0);
    stop_serving();
    free(body);
}
END_TEST

START_TEST(a_growing_body_uses_the_last_of_the_room)
{
    char *body = make_body(300000);
    char *chunked = malloc(400000);
    ck_assert_ptr_nonnull(chunked);
    snprintf(chunked, 400000, "493E0\r\n%s\r\n0\r\n\r\n", body);
    serve(&(struct scripted_step){.status = 200, .headers = "Transfer-Encoding: chunked\r\n", .body = chunked}, 1);
    struct budget budget = {.limit = 300000 + sizeof(struct block)};
    struct outcome outcome = ask((struct http_request_options){.into_block = true, .budget = &budget});
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_uint_eq(outcome.response.block->body_size, 300000);
    ck_assert_int_eq(memcmp(outcome.response.block->body, body, 300000), 0);
    outcome_free(&outcome);
    ck_assert_uint_eq(budget.used, 0);
    stop_serving();
    free(chunked);
    free(body);
}
END_TEST

START_TEST(a_cancelled_call_gives_its_reservation_back)
{
    serve(&(struct scripted_step){.status = 200, .body = "never", .hold = true}, 1);
    struct budget budget = {.limit = 1000000, .used = 5000};
    struct outcome outcome = {0};
    struct http_request *request =
        start((struct http_request_options){.into_block = true, .budget = &budget, .reserved = 5000}, &outcome);
    wait_for_requests(1);
    http_cancel(request);
    ck_assert_uint_eq(budget.used, 0);
    reactor_run_once(reactor, 10);
    ck_assert_int_eq(outcome.calls, 0);
}
END_TEST

/* ---- failures ---- */

/* A port that nobody listens on. */
static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(descriptor, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(descriptor, (struct sockaddr *)&address, &size), 0);
    close(descriptor);
    return ntohs(address.sin_port);
}

START_TEST(a_refused_connection_names_the_peer_and_nothing_else)
{
    char url[128];
    char peer[64];
    unsigned port = free_port();
    snprintf(url, sizeof url, "http://user:hush@127.0.0.1:%u/secret?token=hush", port);
    snprintf(peer, sizeof peer, "127.0.0.1:%u: ", port);
    struct outcome outcome = ask((struct http_request_options){.url = url});
    ck_assert_int_eq(strncmp(outcome.error.message, peer, strlen(peer)), 0);
    ck_assert_uint_gt(strlen(outcome.error.message), strlen(peer));
    ck_assert_ptr_null(strstr(outcome.error.message, "hush"));
    ck_assert_ptr_null(strstr(outcome.error.message, "secret"));
    ck_assert(outcome.error.retriable);
    ck_assert(!outcome.response.sent);
    expect_failure(&outcome, QS_ERROR_TRANSPORT);
}
END_TEST

static const struct scripted_step transport_cases[] = {
    {.unread = true, .end = SCRIPTED_RESET},
    {.unread = true, .end = SCRIPTED_CLOSE},
    {.end = SCRIPTED_RESET},
    {.end = SCRIPTED_CLOSE},
    {.raw = "\x16\x03\x01 this is no HTTP\r\n\r\n", .end = SCRIPTED_CLOSE},
    {.raw = "HTTP/1.1 2", .end = SCRIPTED_CLOSE},
    {.raw = "HTTP/1.1 200 OK\r\nContent-Le", .end = SCRIPTED_CLOSE},
    {.status = 200, .body = "0123456789", .cut = 3, .end = SCRIPTED_CLOSE},
    {.status = 200, .body = "0123456789", .cut = 3, .end = SCRIPTED_RESET},
    {.status = 200, .headers = "Transfer-Encoding: chunked\r\n", .body = "A\r\n01234", .end = SCRIPTED_CLOSE},
    {.status = 200, .headers = "Transfer-Encoding: chunked\r\n", .body = "zz\r\n01234", .end = SCRIPTED_CLOSE},
};

START_TEST(no_whole_answer_is_a_transport_failure)
{
    serve(&transport_cases[_i], 1);
    struct outcome outcome = ask((struct http_request_options){0});
    ck_assert(outcome.error.retriable);
    ck_assert(outcome.response.sent);
    ck_assert_int_eq(strncmp(outcome.error.message, "127.0.0.1:", 10), 0);
    expect_failure(&outcome, QS_ERROR_TRANSPORT);
}
END_TEST

START_TEST(a_call_that_takes_too_long_ends)
{
    serve(&(struct scripted_step){.status = 200, .body = "never", .hold = true}, 1);
    struct mono_ms before = clock_mono();
    struct outcome outcome = ask((struct http_request_options){.timeout_ms = 80});
    ck_assert_int_ge(clock_mono().v - before.v, 79);
    ck_assert(outcome.response.sent);
    expect_failure(&outcome, QS_ERROR_TRANSPORT);
}
END_TEST

START_TEST(a_stalled_call_ends)
{
    const struct scripted_step steps[] = {{.status = 200, .body = "never", .hold = true},
                                          {.status = 200, .body = "at once"}};
    serve(steps, COUNT(steps));
    struct mono_ms before = clock_mono();
    struct outcome outcome = ask((struct http_request_options){.stall_timeout_ms = 80});
    ck_assert_int_ge(clock_mono().v - before.v, 80);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "80 ms"));
    expect_failure(&outcome, QS_ERROR_TRANSPORT);
    outcome = ask((struct http_request_options){.stall_timeout_ms = 80});
    ck_assert_str_eq(outcome.response.body, "at once");
    outcome_free(&outcome);
}
END_TEST

/* ---- connections ---- */

START_TEST(connections_are_kept)
{
    struct scripted_step steps[20];
    for (size_t i = 0; i < COUNT(steps); i++) {
        steps[i] = (struct scripted_step){.status = 200, .body = "x"};
    }
    serve(steps, COUNT(steps));
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct outcome outcome = ask((struct http_request_options){0});
        ck_assert_int_eq(outcome.response.status, 200);
        outcome_free(&outcome);
    }
    ck_assert_uint_eq(scripted_server_connections(server), 1);
}
END_TEST

START_TEST(a_connection_that_died_while_kept_is_replaced)
{
    const struct scripted_step steps[] = {{.status = 200, .end = SCRIPTED_CLOSE}, {.status = 200, .body = "again"}};
    serve(steps, COUNT(steps));
    struct outcome outcome = ask((struct http_request_options){0});
    outcome_free(&outcome);
    struct iovec piece = {(void *)"body", 4};
    outcome = ask((struct http_request_options){.method = "POST", .pieces = &piece, .piece_count = 1, .body_size = 4});
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_str_eq(outcome.response.body, "again");
    outcome_free(&outcome);
}
END_TEST

START_TEST(a_request_that_went_out_twice_says_so)
{
    const struct scripted_step steps[] = {{.status = 200}, {.end = SCRIPTED_RESET}, {.status = 200, .body = "twice"}};
    serve(steps, COUNT(steps));
    struct outcome outcome = ask((struct http_request_options){0});
    ck_assert(!outcome.response.repeated);
    outcome_free(&outcome);
    struct iovec pieces[] = {{(void *)"bo", 2}, {(void *)"dy", 2}};
    outcome = ask((struct http_request_options){.method = "POST", .pieces = pieces, .piece_count = 2, .body_size = 4});
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_str_eq(outcome.response.body, "twice");
    ck_assert(outcome.response.repeated);
    ck_assert_str_eq(scripted_server_request(server, 1).body, "body");
    ck_assert_str_eq(scripted_server_request(server, 2).body, "body");
    outcome_free(&outcome);
}
END_TEST

START_TEST(what_is_above_the_connection_limit_waits_its_turn)
{
    struct scripted_step steps[5] = {{.status = 200, .body = "a", .hold = true},
                                     {.status = 200, .body = "b", .hold = true}};
    for (size_t i = 2; i < COUNT(steps); i++) {
        steps[i] = (struct scripted_step){.status = 200, .body = "c"};
    }
    serve(steps, COUNT(steps));
    http_client_destroy(client);
    client = make_client(&(struct http_client_options){.connect_timeout_ms = 5000, .connections_max = 2});
    struct outcome outcomes[6] = {0};
    struct http_request *requests[6];
    for (size_t i = 0; i < COUNT(requests); i++) {
        requests[i] = start((struct http_request_options){.timeout_ms = 10000}, &outcomes[i]);
    }
    wait_for_requests(2);
    http_cancel(requests[3]); /* one that waits */
    reactor_run_once(reactor, 20);
    ck_assert_uint_eq(scripted_server_requests(server), 2);
    http_cancel(requests[0]); /* one under way: its place is the next one's */
    wait_for(&outcomes[2].calls, 1);
    wait_for(&outcomes[4].calls, 1);
    wait_for(&outcomes[5].calls, 1);
    ck_assert_int_eq(outcomes[1].calls, 0);
    scripted_server_release(server);
    wait_for(&outcomes[1].calls, 1);
    ck_assert_int_eq(outcomes[0].calls + outcomes[3].calls, 0);
    for (size_t i = 0; i < COUNT(outcomes); i++) {
        ck_assert_int_eq(outcomes[i].calls == 1, i != 0 && i != 3);
        outcome_free(&outcomes[i]);
    }
}
END_TEST

START_TEST(tls_is_checked_against_the_given_file)
{
    const struct scripted_step steps[] = {{.status = 200, .body = "sealed"}, {.status = 200}};
    server = scripted_server_start_tls(steps, COUNT(steps));
    struct outcome outcome = ask((struct http_request_options){0});
    ck_assert(!outcome.response.sent);
    expect_failure(&outcome, QS_ERROR_TRANSPORT);
    http_client_destroy(client);
    client = make_client(
        &(struct http_client_options){.connect_timeout_ms = 5000, .ca_file = scripted_server_ca_file(server)});
    outcome = ask((struct http_request_options){0});
    ck_assert_msg(outcome.error.code == QS_OK, "%s", outcome.error.message);
    ck_assert_str_eq(outcome.response.body, "sealed");
    outcome_free(&outcome);
    http_client_destroy(client);
    client = make_client(&(struct http_client_options){.connect_timeout_ms = 5000, .ca_file = "/nonexistent.pem"});
    outcome = ask((struct http_request_options){0});
    expect_failure(&outcome, QS_ERROR_TRANSPORT);
}
END_TEST

/* ---- callbacks that start, cancel and destroy ---- */

struct chain {
    int calls;
    int wanted;
    struct http_request *self;
};

static void start_next(void *argument, const struct error *error, struct http_response *response)
{
    struct chain *chain = argument;
    ck_assert_int_eq(error->code, QS_OK);
    ck_assert_int_eq(response->status, 200);
    http_cancel(chain->self); /* its own: nothing */
    if (++chain->calls < chain->wanted) {
        struct http_request_options options = {.method = "GET", .url = url_of("/")};
        chain->self = http_start(client, &options, start_next, chain);
        ck_assert_ptr_nonnull(chain->self);
    }
}

START_TEST(a_callback_may_start_another_request_and_cancel_itself)
{
    const struct scripted_step steps[] = {{.status = 200}, {.status = 200}, {.status = 200}};
    serve(steps, COUNT(steps));
    struct chain chain = {.wanted = 3};
    struct http_request_options options = {.method = "GET", .url = url_of("/")};
    chain.self = http_start(client, &options, start_next, &chain);
    wait_for(&chain.calls, 3);
    ck_assert_uint_eq(scripted_server_requests(server), 3);
}
END_TEST

struct rival {
    struct http_request **other;
    struct http_request *self;
    int *calls;
};

static void cancel_other(void *argument, const struct error *error, struct http_response *response)
{
    struct rival *rival = argument;
    (void)error;
    (void)response;
    ++*rival->calls;
    http_cancel(*rival->other);
}

/* Both answers wait in the sockets before the loop turns, so both transfers end in one turn and the second one's end has
 * been collected when the first one's callback cancels it. */
START_TEST(a_callback_may_cancel_a_request_that_has_ended_too)
{
    const struct scripted_step steps[] = {{.status = 200, .body = "a", .hold = true},
                                          {.status = 200, .body = "b", .hold = true}};
    serve(steps, COUNT(steps));
    int calls = 0;
    struct rival first = {.calls = &calls};
    struct rival second = {.calls = &calls};
    first.other = &second.self;
    second.other = &first.self;
    struct http_request_options options = {.method = "GET", .url = url_of("/")};
    first.self = http_start(client, &options, cancel_other, &first);
    second.self = http_start(client, &options, cancel_other, &second);
    wait_for_requests(2);
    scripted_server_release(server);
    usleep(50000); /* nothing tells when bytes have reached a socket that nobody reads */
    wait_for(&calls, 1);
    reactor_run_once(reactor, 50);
    ck_assert_int_eq(calls, 1);
}
END_TEST

static void destroy_client(void *argument, const struct error *error, struct http_response *response)
{
    (void)error;
    (void)response;
    ++*(int *)argument;
    http_client_destroy(client);
    client = NULL;
}

START_TEST(a_callback_may_destroy_the_client)
{
    const struct scripted_step steps[] = {{.status = 200, .body = "a", .hold = true},
                                          {.status = 200, .body = "b", .hold = true}};
    serve(steps, COUNT(steps));
    http_client_destroy(client);
    client = make_client(&(struct http_client_options){.connect_timeout_ms = 5000, .connections_max = 2});
    int calls = 0;
    struct http_request_options options = {.method = "GET", .url = url_of("/")};
    for (int i = 0; i < 3; i++) { /* the third one waits */
        ck_assert_ptr_nonnull(http_start(client, &options, destroy_client, &calls));
    }
    wait_for_requests(2);
    scripted_server_release(server);
    wait_for(&calls, 1);
    reactor_run_once(reactor, 20);
    ck_assert_int_eq(calls, 1);
    ck_assert_uint_eq(scripted_server_requests(server), 2);
}
END_TEST

static void cancel_from_timer(void *argument)
{
    http_cancel(argument);
}

START_TEST(a_timer_may_cancel_a_request)
{
    serve(&(struct scripted_step){.status = 200, .body = "never", .hold = true}, 1);
    struct outcome outcome = {0};
    struct http_request *request = start((struct http_request_options){0}, &outcome);
    wait_for_requests(1);
    struct timer timer = {0};
    timer_set(reactor_timers(reactor), &timer, (struct mono_ms){0}, cancel_from_timer, request);
    reactor_run_once(reactor, -1);
    reactor_run_once(reactor, 10);
    ck_assert_int_eq(outcome.calls, 0);
}
END_TEST

START_TEST(many_requests_at_a_time)
{
    struct scripted_step steps[200];
    for (size_t i = 0; i < COUNT(steps); i++) {
        steps[i] = (struct scripted_step){.status = 200, .body = "many"};
    }
    serve(steps, COUNT(steps));
    struct outcome outcomes[200] = {0};
    for (size_t i = 0; i < COUNT(steps); i++) {
        start((struct http_request_options){0}, &outcomes[i]);
    }
    for (size_t i = 0; i < COUNT(steps); i++) {
        wait_for(&outcomes[i].calls, 1);
        ck_assert_msg(outcomes[i].error.code == QS_OK, "%s", outcomes[i].error.message);
        ck_assert_str_eq(outcomes[i].response.body, "many");
        outcome_free(&outcomes[i]);
    }
}
END_TEST

/* ---- the list ---- */

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *test = tcase_create(name);
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_set_timeout(test, 60);
    suite_add_tcase(suite, test);
    return test;
}

static void add_exchanges(Suite *suite)
{
    TCase *test = add_case(suite, "exchanges");
    tcase_add_test(test, a_get_is_sent_as_it_was_given);
    tcase_add_test(test, a_put_sends_its_pieces_in_order);
    tcase_add_test(test, a_post_sends_its_pieces_in_order);
    tcase_add_test(test, an_empty_body_has_its_length_too);
    tcase_add_test(test, a_large_upload_arrives_whole);
    tcase_add_test(test, the_headers_that_are_kept);
    tcase_add_test(test, an_etag_too_long_to_keep_is_none);
    tcase_add_test(test, an_interim_answer_leaves_nothing_behind);
    tcase_add_loop_test(test, retry_after_counts_in_whole_seconds_only, 0, (int)COUNT(retry_after_cases));
    tcase_add_test(test, a_head_tells_the_length_and_has_no_body);
    tcase_add_test(test, a_body_without_length_grows);
    tcase_add_test(test, a_body_above_the_limit_ends_the_call);
    tcase_add_test(test, a_declared_length_is_not_believed_beyond_the_limit);
}

static void add_blocks(Suite *suite)
{
    TCase *test = add_case(suite, "blocks");
    tcase_add_test(test, a_block_takes_the_reservation_over_and_is_exact);
    tcase_add_test(test, a_block_that_is_not_taken_goes_back);
    tcase_add_test(test, a_body_without_room_ends_the_call_and_gives_all_back);
    tcase_add_test(test, what_may_exceed_does);
    tcase_add_test(test, a_growing_body_uses_the_last_of_the_room);
    tcase_add_test(test, a_cancelled_call_gives_its_reservation_back);
}

static void add_failures(Suite *suite)
{
    TCase *test = add_case(suite, "failures");
    tcase_add_test(test, a_refused_connection_names_the_peer_and_nothing_else);
    tcase_add_loop_test(test, no_whole_answer_is_a_transport_failure, 0, (int)COUNT(transport_cases));
    tcase_add_test(test, a_call_that_takes_too_long_ends);
    tcase_add_test(test, a_stalled_call_ends);
}

static void add_connections(Suite *suite)
{
    TCase *test = add_case(suite, "connections");
    tcase_add_test(test, connections_are_kept);
    tcase_add_test(test, a_connection_that_died_while_kept_is_replaced);
    tcase_add_test(test, a_request_that_went_out_twice_says_so);
    tcase_add_test(test, what_is_above_the_connection_limit_waits_its_turn);
    tcase_add_test(test, tls_is_checked_against_the_given_file);
    tcase_add_test(test, a_callback_may_start_another_request_and_cancel_itself);
    tcase_add_test(test, a_callback_may_cancel_a_request_that_has_ended_too);
    tcase_add_test(test, a_callback_may_destroy_the_client);
    tcase_add_test(test, a_timer_may_cancel_a_request);
    tcase_add_test(test, many_requests_at_a_time);
}

int main(void)
{
    Suite *suite = suite_create("http");
    add_exchanges(suite);
    add_blocks(suite);
    add_failures(suite);
    add_connections(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
