/*
 * The control socket, driven as the supervisor's loop drives it, with clients that behave and clients that don't.
 */
#include "supervisor/control.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "supervisor/commands/control_ask.h"

#define LARGE ((size_t)4 << 20) /* more than any socket's buffers take */

static char folder[64];
static char path[128];
static struct control *control;
static struct mono_ms now;
static char logged[4096];

static void take_line(void *argument, enum log_level level, const char *line)
{
    (void)argument;
    (void)level;
    (void)snprintf(logged, sizeof logged, "%s", line);
}

static char *answer(void *argument, const char *request)
{
    (void)argument;
    if (strcmp(request, "large") == 0) {
        char *text = memory_new(LARGE + 1, 1);

        memset(text, 'x', LARGE);
        return text;
    }
    return strcmp(request, "status") == 0 ? strdup("{\"ok\":true}") : NULL;
}

static void begin(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/control-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/pool.sock", folder);
    now.v = 1000;
    logged[0] = '\0';
    log_capture(take_line, NULL);
    control = NULL;
}

static void end(void)
{
    control_close(control);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing is left in it */
    log_capture(NULL, NULL);
}

static int open_at(const char *setting, struct control **out, struct error *error)
{
    struct control_places places;
    int code;

    control_places_init(&places, setting, "default", folder, NULL);
    code = control_open(&places, answer, NULL, out, error);
    control_places_free(&places);
    return code;
}

static void must_open(void)
{
    struct error error;

    ck_assert_msg(open_at(path, &control, &error) == 0, "%s", error.message);
    ck_assert_ptr_nonnull(control);
}

static int call(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path));
    ck_assert_int_eq(connect(made, (const struct sockaddr *)&address, sizeof address), 0);
    return made;
}

static void say(int client, const char *text)
{
    ck_assert_int_eq(send(client, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* The loop's part: whatever there is to do, without waiting. */
static void serve(void)
{
    struct pollfd watched = {.fd = control_descriptor(control), .events = POLLIN};

    do {
        control_run(control, now);
    } while (poll(&watched, 1, 0) > 0);
}

/* All that comes until the pool hangs up. */
static size_t listen_to(int client, char *text, size_t room)
{
    size_t size = 0;
    ssize_t got;

    do {
        serve();
        got = recv(client, text + size, room - size, MSG_DONTWAIT);
        size += got > 0 ? (size_t)got : 0;
    } while (got != 0 && (got > 0 || errno == EAGAIN));
    (void)close(client);
    return size;
}

static void expect(int client, const char *wanted)
{
    char text[512];
    size_t size = listen_to(client, text, sizeof text - 1);

    text[size] = '\0';
    ck_assert_str_eq(text, wanted);
}

static void check_alive(void)
{
    int client = call();

    say(client, "status\n");
    expect(client, "{\"ok\":true}\n");
}

/* ---- conversations ---- */

START_TEST(a_request_gets_one_document_and_the_end)
{
    must_open();
    check_alive();
    int client = call();
    say(client, "sta");
    serve();
    say(client, "tus\r\n");
    expect(client, "{\"ok\":true}\n");
}
END_TEST

START_TEST(what_it_doesnt_know_is_refused)
{
    char long_line[CONTROL_REQUEST_MAX + 1];
    int client;

    must_open();
    client = call();
    say(client, "stop\n");
    expect(client, "{\"error\":\"no such request; expected status and a line feed\"}\n");
    client = call();
    say(client, "\n");
    expect(client, "{\"error\":\"no such request; expected status and a line feed\"}\n");
    client = call();
    memset(long_line, 'x', sizeof long_line);
    ck_assert_int_gt(send(client, long_line, sizeof long_line, MSG_NOSIGNAL), 0);
    expect(client, "{\"error\":\"the request has no line feed; expected status and a line feed\"}\n");
    client = call();
    say(client, "status");
    ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
    expect(client, "{\"error\":\"the request has no line feed; expected status and a line feed\"}\n");
    check_alive();
}
END_TEST

START_TEST(one_that_says_nothing_is_shown_out_after_its_time)
{
    int client;
    char byte;

    must_open();
    ck_assert_int_eq(control_timeout_ms(control, now), -1);
    client = call();
    serve();
    ck_assert_int_eq(control_timeout_ms(control, now), CONTROL_CLIENT_MS);
    now.v += CONTROL_CLIENT_MS - 1;
    serve();
    ck_assert_int_eq(recv(client, &byte, 1, MSG_DONTWAIT), -1);
    ck_assert_int_eq(control_timeout_ms(control, now), 1);
    now.v += 1;
    serve();
    ck_assert_int_eq(recv(client, &byte, 1, MSG_DONTWAIT), 0);
    ck_assert_int_eq(control_timeout_ms(control, now), -1);
    (void)close(client);
    check_alive();
}
END_TEST

START_TEST(one_that_doesnt_read_holds_nobody_up)
{
    char *text = memory_new(LARGE + 2, 1);
    int slow;
    int reader;

    must_open();
    slow = call();
    say(slow, "large\n");
    serve();
    reader = call();
    say(reader, "large\n");
    ck_assert_uint_eq(listen_to(reader, text, LARGE + 2), LARGE + 1);
    ck_assert_int_eq(text[LARGE], '\n');
    now.v += CONTROL_CLIENT_MS;
    serve();
    ck_assert_uint_lt(listen_to(slow, text, LARGE + 2), LARGE + 1);
    check_alive();
    free(text);
}
END_TEST

START_TEST(one_that_hangs_up_is_forgotten)
{
    must_open();
    for (int i = 0; i < 3 * CONTROL_CLIENTS_MAX; i++) {
        int client = call();

        if (i % 3 > 0) {
            say(client, i % 3 == 1 ? "stat" : "large\n");
        }
        if (i % 2 == 0) {
            serve();
        }
        (void)close(client);
        serve();
    }
    ck_assert_int_eq(control_timeout_ms(control, now), -1);
    check_alive();
}
END_TEST

START_TEST(the_next_waits_while_it_is_full)
{
    int clients[CONTROL_CLIENTS_MAX];
    struct pollfd watched;
    int next;
    char byte;

    must_open();
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        clients[i] = call();
        serve();
    }
    next = call();
    say(next, "status\n");
    serve();
    ck_assert_int_eq(recv(next, &byte, 1, MSG_DONTWAIT), -1);
    watched = (struct pollfd){.fd = control_descriptor(control), .events = POLLIN};
    ck_assert_int_eq(poll(&watched, 1, 0), 0); /* its loop isn't kept busy meanwhile */
    (void)close(clients[3]);
    expect(next, "{\"ok\":true}\n");
    now.v += CONTROL_CLIENT_MS;
    serve();
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        if (i != 3) {
            ck_assert_int_eq(recv(clients[i], &byte, 1, MSG_DONTWAIT), 0);
            (void)close(clients[i]);
        }
    }
    check_alive();
}
END_TEST

/* ---- the socket ---- */

static void check_modes(const char *file, mode_t type, mode_t mode)
{
    struct stat there;

    ck_assert_int_eq(lstat(file, &there), 0);
    ck_assert_int_eq(there.st_mode & S_IFMT, type);
    ck_assert_int_eq(there.st_mode & 0777, mode);
}

START_TEST(only_its_user_gets_in_and_nothing_stays)
{
    char lock[160];
    mode_t before = umask(0);

    must_open();
    ck_assert_int_eq(umask(before), 0);
    check_modes(path, S_IFSOCK, 0600);
    (void)snprintf(lock, sizeof lock, "%s" CONTROL_LOCK_SUFFIX, path);
    check_modes(lock, S_IFREG, 0600);
    ck_assert_str_eq(control_path(control), path);
    control_close(control);
    control = NULL;
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(access(lock, F_OK), -1);
}
END_TEST

START_TEST(what_a_killed_pool_left_is_replaced)
{
    char lock[160];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(lock, sizeof lock, "%s" CONTROL_LOCK_SUFFIX, path);
    (void)close(open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    memcpy(address.sun_path, path, strlen(path));
    ck_assert_int_eq(bind(stale, (const struct sockaddr *)&address, sizeof address), 0);
    (void)close(stale);
    must_open();
    check_alive();
}
END_TEST

START_TEST(a_living_pools_socket_is_left_alone)
{
    struct control *second = NULL;
    struct error error;

    must_open();
    ck_assert_int_eq(open_at(path, &second, &error), 0);
    ck_assert_ptr_null(second);
    ck_assert_ptr_nonnull(strstr(logged, "another pool has"));
    check_alive();
    control_close(control);
    control = NULL;
    must_open();
    check_alive();
}
END_TEST

static void check_refused(const char *setting, const char *says)
{
    struct control *made = NULL;
    struct error error;

    ck_assert_int_eq(open_at(setting, &made, &error), QS_ERROR_INPUT);
    ck_assert_ptr_null(made);
    ck_assert_int_eq(strncmp(error.message, "QUEEN_S3_CONTROL=", 17), 0);
    ck_assert_msg(strstr(error.message, says) != NULL, "%s", error.message);
}

START_TEST(a_place_that_was_chosen_and_cant_be_had_is_an_error)
{
    char long_path[160];
    int file;

    check_refused("/nowhere/at/all.sock", "No such file or directory");
    file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(file, "mine", 4), 4);
    check_refused(path, "no socket");
    check_modes(path, S_IFREG, 0600);
    ck_assert_int_eq(lseek(file, 0, SEEK_END), 4);
    (void)close(file);
    (void)unlink(path);
    (void)snprintf(long_path, sizeof long_path, "%s/%0*d", folder, (int)(control_path_most() - strlen(folder)), 1);
    check_refused(long_path, "longer than");
}
END_TEST

START_TEST(the_longest_path_works)
{
    (void)snprintf(path, sizeof path, "%s/%0*d", folder, (int)(control_path_most() - strlen(folder) - 1), 1);
    must_open();
    check_alive();
}
END_TEST

START_TEST(without_a_place_there_is_none)
{
    struct control *made = NULL;
    struct error error;

    ck_assert_int_eq(open_at("off", &made, &error), 0);
    ck_assert_ptr_null(made);
    ck_assert_str_eq(logged, "");
    (void)rmdir(folder);
    ck_assert_int_eq(open_at(NULL, &made, &error), 0);
    ck_assert_ptr_null(made);
    ck_assert_ptr_nonnull(strstr(logged, "no control socket"));
    ck_assert_int_eq(control_descriptor(NULL), -1);
    ck_assert_int_eq(control_timeout_ms(NULL, now), -1);
    control_run(NULL, now);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
}
END_TEST

/* ---- places ---- */

static void check_places(const char *setting, const char *runtime, bool chosen, const char *first, const char *second)
{
    struct control_places places;

    control_places_init(&places, setting, "lake", CONTROL_FOLDER, runtime);
    ck_assert_int_eq(places.chosen, chosen);
    ck_assert_uint_eq(places.count, first == NULL ? 0 : second == NULL ? 1 : 2);
    if (first != NULL) {
        ck_assert_str_eq(places.paths[0], first);
    }
    if (second != NULL) {
        ck_assert_str_eq(places.paths[1], second);
    }
    control_places_free(&places);
}

START_TEST(places)
{
    check_places("off", "/run/user/7", false, NULL, NULL);
    check_places("/a/b", "/run/user/7", true, "/a/b", NULL);
    check_places(NULL, "/run/user/7", false, "/run/queen-s3/lake.sock", "/run/user/7/queen-s3-lake.sock");
    check_places(NULL, NULL, false, "/run/queen-s3/lake.sock", NULL);
    check_places(NULL, "", false, "/run/queen-s3/lake.sock", NULL);
    check_places(NULL, "relative", false, "/run/queen-s3/lake.sock", NULL);
}
END_TEST

START_TEST(the_first_folder_that_can_be_written_is_taken)
{
    struct control_places found;
    struct error error;

    control_places_init(&found, NULL, "lake", "/nowhere/at/all", folder);
    ck_assert_int_eq(control_open(&found, answer, NULL, &control, &error), 0);
    control_places_free(&found);
    (void)snprintf(path, sizeof path, "%s/queen-s3-lake.sock", folder);
    ck_assert_str_eq(control_path(control), path);
    check_alive();
}
END_TEST

/* ---- asking ---- */

static int ask(const struct control_places *asked, struct error *error)
{
    struct byte_buffer document = {0};
    int code = control_ask_places(asked, "status", 20, &document, error);

    byte_buffer_free(&document);
    return code;
}

/* Root may enter any folder, so it asks as somebody else. */
START_TEST(another_users_pool_doesnt_hide_ones_own)
{
    const uid_t before = geteuid();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct control_places asked;
    struct error error;
    char theirs[80];
    char ours[80];

    (void)snprintf(theirs, sizeof theirs, "%s/theirs", folder);
    (void)snprintf(ours, sizeof ours, "%s/ours", folder);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/queen-s3-lake.sock", ours);
    control_places_init(&asked, NULL, "lake", theirs, ours);
    ck_assert_int_eq(mkdir(theirs, 0), 0);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    ck_assert(before != 0 || seteuid(65534) == 0);
    ck_assert_int_eq(mkdir(ours, 0700), 0);
    ck_assert_int_eq(ask(&asked, &error), QS_ERROR_FORBIDDEN);
    ck_assert_ptr_nonnull(strstr(error.message, asked.paths[0]));
    ck_assert_int_eq(bind(listening, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
    ck_assert_int_eq(ask(&asked, &error), QS_ERROR_TRANSPORT); /* it was asked, and says nothing */
    ck_assert_ptr_nonnull(strstr(error.message, asked.paths[1]));
    ck_assert(before == geteuid() || seteuid(before) == 0);
    (void)close(listening);
    (void)unlink(address.sun_path);
    ck_assert_int_eq(ask(&asked, &error), before == 0 ? QS_ERROR_NOT_FOUND : QS_ERROR_FORBIDDEN);
    (void)rmdir(theirs);
    (void)rmdir(ours);
    control_places_free(&asked);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("control");
    TCase *tests = tcase_create("control");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_request_gets_one_document_and_the_end);
    tcase_add_test(tests, what_it_doesnt_know_is_refused);
    tcase_add_test(tests, one_that_says_nothing_is_shown_out_after_its_time);
    tcase_add_test(tests, one_that_doesnt_read_holds_nobody_up);
    tcase_add_test(tests, one_that_hangs_up_is_forgotten);
    tcase_add_test(tests, the_next_waits_while_it_is_full);
    tcase_add_test(tests, only_its_user_gets_in_and_nothing_stays);
    tcase_add_test(tests, what_a_killed_pool_left_is_replaced);
    tcase_add_test(tests, a_living_pools_socket_is_left_alone);
    tcase_add_test(tests, a_place_that_was_chosen_and_cant_be_had_is_an_error);
    tcase_add_test(tests, the_longest_path_works);
    tcase_add_test(tests, without_a_place_there_is_none);
    tcase_add_test(tests, places);
    tcase_add_test(tests, the_first_folder_that_can_be_written_is_taken);
    tcase_add_test(tests, another_users_pool_doesnt_hide_ones_own);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
