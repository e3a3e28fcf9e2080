/*
 * The endpoint over a real socket, polled by the test as the supervisor's loop polls it.
 */
#include "supervisor/listener.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct listener *listener;

static bool route(void *argument, const char *path, struct listener_answer *answer)
{
    (void)argument;
    if (strcmp(path, "/empty") == 0) {
        answer->content_type = "application/json";
        answer->status = 200;
        return true;
    }
    if (strcmp(path, "/healthz") != 0) {
        return false;
    }
    answer->content_type = "application/json";
    answer->status = 503;
    answer->body = strdup("{\"ok\":false}");
    return true;
}

static int threads_now(void)
{
    DIR *threads = opendir("/proc/self/task");
    int count = 0;

    ck_assert_ptr_nonnull(threads);
    for (const struct dirent *entry = readdir(threads); entry != NULL; entry = readdir(threads)) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(threads);
    return count;
}

static int threads_at_first; /* a sanitizer may have one of its own */

static void begin(void)
{
    struct error error;

    threads_at_first = threads_now();
    listener = listener_create("127.0.0.1", "0", route, NULL, &error);
    ck_assert_msg(listener != NULL, "%s", error.message);
}

static void end(void)
{
    listener_destroy(listener);
}

static int connect_to(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(listener_port(listener))};
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(made, (const struct sockaddr *)&address, sizeof address), 0);
    return made;
}

/* The loop's part, for all that has come by now. */
static void serve_what_is_there(void)
{
    struct pollfd watched = {.fd = listener_descriptor(listener), .events = POLLIN};

    while (poll(&watched, 1, 0) > 0) {
        listener_run(listener);
    }
}

/* The loop's part, until the client has something to read. No answer is one that comes because time has passed. */
static void serve_until_readable(int client)
{
    for (;;) {
        struct pollfd watched[2] = {{.fd = listener_descriptor(listener), .events = POLLIN},
                                    {.fd = client, .events = POLLIN}};
        int64_t timeout = listener_timeout_ms(listener);
        int ready = poll(watched, 2, timeout < 0 || timeout > 10000 ? 10000 : (int)timeout);

        ck_assert(ready > 0 || (ready == 0 && timeout == 0));
        if (watched[1].revents != 0) {
            return;
        }
        listener_run(listener);
    }
}

/* Reads to the end of the connection; the request says `Connection: close`. */
static void answer_to(const char *request, char *text, size_t room)
{
    int client = connect_to();
    size_t size = 0;
    ssize_t got = 0;

    ck_assert_int_eq(send(client, request, strlen(request), 0), (ssize_t)strlen(request));
    do {
        serve_until_readable(client);
        got = recv(client, text + size, room - 1 - size, 0);
        ck_assert_int_ge(got, 0);
        size += (size_t)got;
    } while (got > 0);
    text[size] = '\0';
    (void)close(client);
}

static void expect(const char *request, const char *status, const char *body)
{
    char text[4096];
    const char *rest;

    answer_to(request, text, sizeof text);
    ck_assert_msg(strncmp(text, status, strlen(status)) == 0, "%s", text);
    rest = strstr(text, "\r\n\r\n");
    ck_assert_ptr_nonnull(rest);
    ck_assert_str_eq(rest + 4, body);
}

#define CLOSE " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

START_TEST(a_path_is_answered_as_its_route_says)
{
    expect("GET /healthz" CLOSE, "HTTP/1.1 503 ", "{\"ok\":false}");
    expect("GET /healthz?verbose=1" CLOSE, "HTTP/1.1 503 ", "{\"ok\":false}");
}
END_TEST

START_TEST(head_has_no_body_but_its_length)
{
    char text[4096];

    expect("HEAD /healthz" CLOSE, "HTTP/1.1 503 ", "");
    answer_to("HEAD /healthz" CLOSE, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "Content-Length: 12\r\n"));
    ck_assert_ptr_nonnull(strstr(text, "Content-Type: application/json\r\n"));
}
END_TEST

START_TEST(other_paths_and_methods_are_refused)
{
    char text[4096];

    expect("GET /" CLOSE, "HTTP/1.1 404 ", "/, /healthz and /metrics\n");
    expect("GET /healthz/" CLOSE, "HTTP/1.1 404 ", "/, /healthz and /metrics\n");
    expect("DELETE /healthz" CLOSE, "HTTP/1.1 405 ", "GET and HEAD only\n");
    answer_to("POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody", text,
              sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 405 "));
    ck_assert_ptr_nonnull(strstr(text, "Allow: GET, HEAD\r\n"));
}
END_TEST

START_TEST(no_memory_for_a_body_is_an_error_for_the_client_alone)
{
    expect("GET /empty" CLOSE, "HTTP/1.1 500 ", "out of memory\n");
    expect("GET /healthz" CLOSE, "HTTP/1.1 503 ", "{\"ok\":false}");
}
END_TEST

START_TEST(what_is_no_http_harms_no_one)
{
    char text[4096];

    answer_to("\x16\x03\x01\r\n\r\n", text, sizeof text); /* the library may answer 400, or just close */
    ck_assert_ptr_null(strstr(text, "ok"));
    expect("GET /healthz" CLOSE, "HTTP/1.1 503 ", "{\"ok\":false}");
}
END_TEST

START_TEST(one_connection_carries_several_requests)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    int client = connect_to();
    char text[4096];

    for (int i = 0; i < 3; i++) {
        ssize_t got;

        ck_assert_int_eq(send(client, request, sizeof request - 1, 0), (ssize_t)sizeof request - 1);
        serve_until_readable(client);
        got = recv(client, text, sizeof text - 1, 0);
        ck_assert_int_gt(got, 12);
        text[got] = '\0';
        ck_assert_ptr_nonnull(strstr(text, "{\"ok\":false}"));
    }
    (void)close(client);
}
END_TEST

#define MOST ((int)LISTENER_CONNECTIONS_MAX)

static int connect_and_send(const char *bytes)
{
    int client = connect_to();

    serve_what_is_there();
    ck_assert_int_eq(send(client, bytes, strlen(bytes), 0), (ssize_t)strlen(bytes));
    serve_what_is_there();
    return client;
}

static bool was_closed(int client)
{
    char byte;

    return recv(client, &byte, 1, MSG_DONTWAIT) == 0;
}

static void expect_answer(int client, const char *rest)
{
    char text[4096];
    ssize_t got;

    ck_assert_int_eq(send(client, rest, strlen(rest), MSG_NOSIGNAL), (ssize_t)strlen(rest));
    serve_until_readable(client);
    got = recv(client, text, sizeof text - 1, 0);
    ck_assert_int_gt(got, 0);
    text[got] = '\0';
    ck_assert_ptr_nonnull(strstr(text, "{\"ok\":false}"));
}

/* Some say nothing, others a byte now and then. */
START_TEST(who_holds_all_places_keeps_nobody_waiting)
{
    int idle[MOST];

    for (int i = 0; i < MOST; i++) {
        idle[i] = connect_and_send(i % 2 == 0 ? "" : "GET /hea");
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < MOST; i += 2) {
            (void)send(idle[i], "l", 1, MSG_NOSIGNAL);
        }
        expect("GET /healthz" CLOSE, "HTTP/1.1 503 ", "{\"ok\":false}");
    }
    for (int i = 0; i < MOST; i++) {
        (void)close(idle[i]);
    }
}
END_TEST

START_TEST(the_place_is_of_who_has_owed_a_request_for_longest)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    int clients[MOST];
    int newcomer;

    for (int i = 0; i < MOST; i++) {
        clients[i] = connect_and_send(i == 2 ? "GET /hea" : "");
    }
    expect_answer(clients[0], request);
    newcomer = connect_and_send("");
    ck_assert(was_closed(clients[1]));
    expect_answer(clients[2], "lthz HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 3; i < MOST; i++) {
        expect_answer(clients[i], request);
    }
    expect_answer(clients[0], request);
    expect_answer(newcomer, request);
    for (int i = 0; i < MOST; i++) {
        (void)close(clients[i]);
    }
    (void)close(newcomer);
}
END_TEST

/* More at once than the system's own queue of the socket holds; then many more, one after another. */
START_TEST(a_crowd_is_let_in_and_shown_out)
{
    int crowd[4 * MOST];
    int left = 0;

    for (int i = 0; i < 4 * MOST; i++) {
        crowd[i] = connect_to();
        if (i >= MOST) {
            serve_what_is_there();
        }
    }
    expect("GET /healthz" CLOSE, "HTTP/1.1 503 ", "{\"ok\":false}");
    serve_what_is_there();
    for (int i = 0; i < 4 * MOST; i++) {
        left += !was_closed(crowd[i]);
        (void)close(crowd[i]);
    }
    ck_assert_int_eq(left, MOST - 1);
    serve_what_is_there();
    expect("GET /healthz" CLOSE, "HTTP/1.1 503 ", "{\"ok\":false}");
}
END_TEST

START_TEST(no_thread_is_ever_started)
{
    expect("GET /healthz" CLOSE, "HTTP/1.1 503 ", "{\"ok\":false}");
    ck_assert_int_eq(threads_now(), threads_at_first);
}
END_TEST

START_TEST(a_taken_port_is_told_with_the_variable)
{
    struct error error;
    char port[8];

    (void)snprintf(port, sizeof port, "%u", listener_port(listener));
    ck_assert_ptr_null(listener_create("127.0.0.1", port, route, NULL, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_S3_LISTEN=127.0.0.1:"));
    ck_assert_ptr_nonnull(strstr(error.message, strerror(EADDRINUSE)));
    ck_assert_ptr_null(listener_create("256.0.0.1", "1", route, NULL, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_S3_LISTEN=256.0.0.1:1"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("listener");
    TCase *tests = tcase_create("requests");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, a_path_is_answered_as_its_route_says);
    tcase_add_test(tests, head_has_no_body_but_its_length);
    tcase_add_test(tests, other_paths_and_methods_are_refused);
    tcase_add_test(tests, no_memory_for_a_body_is_an_error_for_the_client_alone);
    tcase_add_test(tests, what_is_no_http_harms_no_one);
    tcase_add_test(tests, one_connection_carries_several_requests);
    tcase_add_test(tests, who_holds_all_places_keeps_nobody_waiting);
    tcase_add_test(tests, the_place_is_of_who_has_owed_a_request_for_longest);
    tcase_add_test(tests, a_crowd_is_let_in_and_shown_out);
    tcase_add_test(tests, no_thread_is_ever_started);
    tcase_add_test(tests, a_taken_port_is_told_with_the_variable);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
