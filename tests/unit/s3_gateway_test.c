/*
 * The S3 store against a real gateway, whose signature check is not ours. QUEEN_S3_TEST_GATEWAY names the program (as
 * tests/integration/gateway prints it); without it nothing is tested, and one line says so. With
 * QUEEN_S3_TEST_GATEWAY_CERT and QUEEN_S3_TEST_GATEWAY_KEY, PEM files for 127.0.0.1, it is spoken to over TLS, where
 * bodies go unsigned.
 */
#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/s3_store.h"
#include "tests/unit/folders.h"
#include "tests/unit/s3_calls.h"

#define BUCKET "lake"

static const char *program;
static const char *certificate; /* NULL: plain http */
static const char *certificate_key;
static char folder[64];
static char endpoint[64];
static pid_t gateway;
static struct settings settings;

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(getsockname(descriptor, (struct sockaddr *)&address, &size), 0);
    close(descriptor);
    return ntohs(address.sin_port);
}

static void start_gateway(int port)
{
    char listen_at[32];
    snprintf(listen_at, sizeof listen_at, "127.0.0.1:%d", port);
    gateway = fork();
    if (gateway == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        if (certificate != NULL) {
            execl(program, "versitygw", "--access", "testkey", "--secret", "test/secret+key", "--region", "eu-test-1",
                  "--port", listen_at, "--cert", certificate, "--key", certificate_key, "posix", folder, (char *)NULL);
        } else {
            execl(program, "versitygw", "--access", "testkey", "--secret", "test/secret+key", "--region", "eu-test-1",
                  "--port", listen_at, "posix", folder, (char *)NULL);
        }
        _exit(127);
    }
    ck_assert_int_gt(gateway, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < 200; i++) {
        int descriptor = socket(AF_INET, SOCK_STREAM, 0);
        int failed = connect(descriptor, (struct sockaddr *)&address, sizeof address);
        close(descriptor);
        if (failed == 0) {
            return;
        }
        usleep(50000);
    }
    ck_abort_msg("the gateway doesn't listen");
}

static void open_store(void)
{
    struct error error;
    call_store = s3_store_create(call_reactor, &settings, NULL, NULL, &error);
    ck_assert_msg(call_store != NULL, "%s", error.message);
}

static void setup(void)
{
    struct error error;
    char bucket[128];
    int port = free_port();
    strcpy(folder, "/tmp/s3_gateway_test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(bucket, sizeof bucket, "%s/" BUCKET, folder);
    ck_assert_int_eq(mkdir(bucket, 0700), 0);
    start_gateway(port);
    snprintf(endpoint, sizeof endpoint, "%s://127.0.0.1:%d", certificate != NULL ? "https" : "http", port);
    settings = (struct settings){.endpoint = endpoint,
                                 .region = "eu-test-1",
                                 .bucket = BUCKET,
                                 .access_key = "testkey",
                                 .secret_key = "test/secret+key",
                                 .ca_file = (char *)(uintptr_t)certificate,
                                 .path_style = true};
    call_reactor = reactor_create(&error);
    open_store();
}

static void teardown(void)
{
    int status;
    calls_clear();
    call_store->operations->destroy(call_store);
    reactor_destroy(call_reactor);
    kill(gateway, SIGTERM);
    ck_assert_int_eq(waitpid(gateway, &status, 0), gateway);
    folder_remove(folder);
}

static void expect_good(const struct error *error)
{
    ck_assert_msg(error->code == QS_OK, "%s", error->message);
}

static const char *const odd_keys[] = {
    "queen/queue=caff%C3%A8/dt=2026-09-04/hour=10/w-0000000001-1-2.jsonl.zst",
    "queen/a%2Fb/x",
    "odd/with space",
    "odd/plus+plus",
    "odd/equals=and&amp;?question#hash",
    "odd/caff\xc3\xa8 \xe6\x97\xa5\xe6\x9c\xac",
    "odd/~tilde'(quote)!*$,;:@",
    "odd/per%cent%20",
};

START_TEST(signs_odd_keys)
{
    for (size_t i = 0; i < sizeof odd_keys / sizeof *odd_keys; i++) {
        const char *key = odd_keys[i];
        expect_good(call_put(key, key, strlen(key)));
        expect_good(call_head(key));
        ck_assert_uint_eq(outcome.size, strlen(key));
        expect_good(call_get(key, 1000));
        ck_assert_str_eq(outcome.bytes, key);
    }
    expect_good(call_list("odd/", NULL));
    ck_assert_uint_eq(outcome.key_count, 6);
    for (size_t i = 2; i < sizeof odd_keys / sizeof *odd_keys; i++) {
        bool found = false;
        for (size_t j = 0; j < outcome.key_count; j++) {
            found = found || strcmp(outcome.keys[j], odd_keys[i]) == 0;
        }
        ck_assert_msg(found, "%s isn't listed", odd_keys[i]);
    }
    expect_good(call_list("odd/with s", NULL));
    ck_assert_uint_eq(outcome.key_count, 1);
    for (size_t i = 0; i < sizeof odd_keys / sizeof *odd_keys; i++) {
        expect_good(call_remove(odd_keys[i]));
        expect_good(call_remove(odd_keys[i]));
        ck_assert_int_eq(call_get(odd_keys[i], 1000)->code, QS_ERROR_NOT_FOUND);
    }
}
END_TEST

START_TEST(puts_nothing_and_much)
{
    size_t size = 9u << 20;
    char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)(i * 31 >> 3);
    }
    expect_good(call_put("empty", "", 0));
    expect_good(call_head("empty"));
    ck_assert_uint_eq(outcome.size, 0);
    expect_good(call_put("much", bytes, size));
    expect_good(call_get("much", size));
    ck_assert_uint_eq(outcome.size, size);
    ck_assert_mem_eq(outcome.bytes, bytes, size);
    expect_good(call_get_range("much", size - 10, 10));
    ck_assert_mem_eq(outcome.bytes, bytes + size - 10, 10);
    ck_assert_int_ne(call_get_range("much", size - 10, 11)->code, QS_OK);
    ck_assert_int_eq(call_get("much", size - 1)->code, QS_ERROR_BODY);
    ck_assert(!outcome.error.retriable);
    free(bytes);
}
END_TEST

START_TEST(lists_by_pages)
{
    char key[64];
    for (int i = 0; i < 1205; i++) {
        snprintf(key, sizeof key, "many/%05d a", i);
        expect_good(call_put(key, "x", 1));
    }
    expect_good(call_list("many/", NULL));
    ck_assert_uint_eq(outcome.key_count, 1000);
    ck_assert_str_eq(outcome.keys[999], "many/00999 a");
    char token[1024];
    strcpy(token, outcome.text);
    ck_assert_str_ne(token, "");
    expect_good(call_list("many/", token));
    ck_assert_uint_eq(outcome.key_count, 205);
    ck_assert_str_eq(outcome.keys[0], "many/01000 a");
    ck_assert_str_eq(outcome.text, "");
    expect_good(call_list("none/", NULL));
    ck_assert_uint_eq(outcome.key_count, 0);
}
END_TEST

START_TEST(puts_parts_together)
{
    static const char key[] = "queen/queue=a%2Fb/big one.jsonl";
    size_t size = 5u << 20;
    char *bytes = malloc(size);
    memset(bytes, 'x', size);
    char upload[1024];
    char etags[2][1024];
    expect_good(call_create(key));
    strcpy(upload, outcome.text);
    expect_good(call_part(key, upload, 1, bytes, size));
    strcpy(etags[0], outcome.text);
    expect_good(call_part(key, upload, 2, "tail", 4));
    strcpy(etags[1], outcome.text);
    const struct object_part parts[] = {{1, etags[0]}, {2, etags[1]}};
    expect_good(call_complete(key, upload, parts, 2));
    expect_good(call_head(key));
    ck_assert_uint_eq(outcome.size, size + 4);
    ck_assert_int_eq(call_complete(key, upload, parts, 2)->code, QS_ERROR_NOT_FOUND);

    expect_good(call_create(key));
    strcpy(upload, outcome.text);
    expect_good(call_part(key, upload, 1, "x", 1));
    expect_good(call_abort(key, upload));
    expect_good(call_abort(key, upload));
    ck_assert_int_eq(call_part(key, upload, 2, "x", 1)->code, QS_ERROR_NOT_FOUND);
    free(bytes);
}
END_TEST

static void reopen(void)
{
    call_store->operations->destroy(call_store);
    open_store();
}

START_TEST(says_what_is_wrong_with_the_settings)
{
    settings.secret_key = "another";
    reopen();
    ck_assert_int_eq(call_put("k", "x", 1)->code, QS_ERROR_FORBIDDEN);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "QUEEN_S3_SECRET_KEY"));
    ck_assert_int_eq(call_head("k")->code, QS_ERROR_FORBIDDEN);
    settings.secret_key = "test/secret+key";
    settings.access_key = "nobody";
    reopen();
    ck_assert_int_eq(call_put("k", "x", 1)->code, QS_ERROR_FORBIDDEN);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "QUEEN_S3_ACCESS_KEY"));
    ck_assert_ptr_null(strstr(outcome.error.message, "nobody"));
    ck_assert_int_eq(call_get("k", 10)->code, QS_ERROR_FORBIDDEN);
    ck_assert_int_eq(call_remove("k")->code, QS_ERROR_FORBIDDEN);
    settings.access_key = "testkey";
    settings.bucket = "no-such";
    reopen();
    ck_assert_int_eq(call_list("", NULL)->code, QS_ERROR_REFUSED);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "QUEEN_S3_BUCKET"));
    settings.bucket = BUCKET;
    settings.region = "eu-other-1";
    reopen();
    ck_assert_int_ne(call_put("k", "x", 1)->code, QS_OK);
    ck_assert_msg(strstr(outcome.error.message, "QUEEN_S3_REGION") != NULL, "%s", outcome.error.message);
    settings.region = "eu-test-1";
    reopen();
    ck_assert_int_eq(call_get("k", 10)->code, QS_ERROR_NOT_FOUND);
}
END_TEST

int main(void)
{
    program = getenv("QUEEN_S3_TEST_GATEWAY");
    certificate = getenv("QUEEN_S3_TEST_GATEWAY_CERT");
    certificate_key = getenv("QUEEN_S3_TEST_GATEWAY_KEY");
    if (program == NULL) {
        printf("skipped: QUEEN_S3_TEST_GATEWAY names no gateway\n");
        return EXIT_SUCCESS;
    }
    Suite *suite = suite_create("s3_gateway");
    TCase *cases = tcase_create("s3_gateway");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, signs_odd_keys);
    tcase_add_test(cases, puts_nothing_and_much);
    tcase_add_test(cases, lists_by_pages);
    tcase_add_test(cases, puts_parts_together);
    tcase_add_test(cases, says_what_is_wrong_with_the_settings);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
