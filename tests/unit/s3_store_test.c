/*
 * The S3 store against a server that plays a script: what each operation sends, and what each answer comes to.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "common/s3_store.h"
#include "tests/unit/s3_calls.h"
#include "tests/unit/scripted_server.h"

#define KEY        "queen/queue=a%2Fb/w-1.jsonl"
#define WIRE_KEY   "queen/queue%3Da%252Fb/w-1.jsonl"
#define HELLO_MD5  "5d41402abc4b2a76b9719d911017c592" /* of "hello" */
#define HELLO_B64  "XUFAKrxLKna5cZ2REBfFkg=="
#define HELLO_HASH "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define FAULT(code) \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" code "</Code><Message>m</Message></Error>"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct settings settings;
static struct scripted_server *server;
static char endpoint[128];
static char logged[1024];
static int observed_code;
static enum store_operation observed_operation;

static void observe(void *argument, enum store_operation operation, int code)
{
    ck_assert_ptr_eq(argument, &settings);
    observed_operation = operation;
    observed_code = code;
}

static void take_line(void *argument, enum log_level level, const char *line)
{
    (void)argument;
    (void)level;
    snprintf(logged, sizeof logged, "%s", line);
}

static void setup(void)
{
    struct error error;
    call_reactor = reactor_create(&error);
    ck_assert_ptr_nonnull(call_reactor);
    settings = (struct settings){
        .region = "eu-test-1", .bucket = "lake", .access_key = "AKTESTING", .secret_key = "sesame", .path_style = true};
    log_configure(LOG_DEBUG, false);
    log_capture(take_line, NULL);
    logged[0] = '\0';
}

static void close_store(void)
{
    if (call_store != NULL) {
        call_store->operations->destroy(call_store);
        call_store = NULL;
    }
    if (server != NULL) {
        scripted_server_stop(server);
        server = NULL;
    }
}

static void teardown(void)
{
    calls_clear();
    close_store();
    reactor_destroy(call_reactor);
}

static void open_store(void)
{
    struct error error;
    call_store = s3_store_create(call_reactor, &settings, observe, &settings, &error);
    ck_assert_msg(call_store != NULL, "%s", error.message);
}

static void play(const struct scripted_step *steps, size_t count)
{
    close_store();
    server = scripted_server_start(steps, count);
    snprintf(endpoint, sizeof endpoint, "%s", scripted_server_url(server));
    settings.endpoint = endpoint;
    open_store();
}

static void play_one(int status, const char *headers, const char *body)
{
    static struct scripted_step step;
    step = (struct scripted_step){.status = status, .headers = headers, .body = body};
    play(&step, 1);
}

static struct scripted_request sent(size_t index)
{
    return scripted_server_request(server, index);
}

static void expect_line(const struct scripted_request *request, const char *line)
{
    ck_assert_msg(scripted_request_has(request, line), "no \"%s\" in\n%s", line, request->head);
}

static void expect_start(const struct scripted_request *request, const char *line)
{
    ck_assert_msg(strncmp(request->head, line, strlen(line)) == 0 && request->head[strlen(line)] == '\r',
                  "\"%s\" doesn't begin\n%s", line, request->head);
}

static void expect_no(const struct scripted_request *request, const char *text)
{
    ck_assert_msg(strstr(request->head, text) == NULL, "\"%s\" in\n%s", text, request->head);
}

static void expect_message(const char *text)
{
    ck_assert_msg(strstr(outcome.error.message, text) != NULL, "no \"%s\" in: %s", text, outcome.error.message);
    ck_assert_ptr_null(strstr(outcome.error.message, "sesame"));
    ck_assert_ptr_null(strstr(outcome.error.message, "AKTESTING"));
    ck_assert_ptr_null(strchr(outcome.error.message, '\n'));
}

/* ---- what is sent ---- */

START_TEST(sends_a_put)
{
    play_one(200, "ETag: \"" HELLO_MD5 "\"\r\n", "");
    ck_assert_msg(call_put(KEY, "hello", 5)->code == QS_OK, "%s", outcome.error.message);
    struct scripted_request request = sent(0);
    expect_start(&request, "PUT /lake/" WIRE_KEY " HTTP/1.1");
    expect_line(&request, "content-md5: " HELLO_B64);
    expect_line(&request, "content-type: application/x-ndjson");
    expect_line(&request, "x-amz-content-sha256: " HELLO_HASH);
    expect_line(&request, "Content-Length: 5");
    ck_assert_ptr_nonnull(strstr(request.head, "authorization: AWS4-HMAC-SHA256 Credential=AKTESTING/"));
    ck_assert_ptr_nonnull(strstr(request.head, "/eu-test-1/s3/aws4_request, SignedHeaders="
                                               "content-md5;content-type;host;x-amz-content-sha256;x-amz-date, "));
    char host[160];
    snprintf(host, sizeof host, "Host: %s", endpoint + strlen("http://"));
    expect_line(&request, host);
    expect_no(&request, "server-side");
    expect_no(&request, "Expect");
    ck_assert_mem_eq(request.body, "hello", 5);
    ck_assert_int_eq(observed_operation, STORE_PUT);
    ck_assert_int_eq(observed_code, 200);
}
END_TEST

START_TEST(sends_encryption_on_put_and_create_only)
{
    static const struct scripted_step steps[] = {
        {.status = 200},
        {.status = 200,
         .body = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"},
        {.status = 200, .headers = "ETag: \"opaque\"\r\n"}};
    settings.sse = SSE_KMS;
    settings.sse_kms_key_id = "arn:aws:kms:x:1:key/cafe";
    play(steps, COUNT(steps));
    ck_assert_int_eq(call_put(KEY, "hello", 5)->code, QS_OK);
    ck_assert_int_eq(call_create(KEY)->code, QS_OK);
    ck_assert_str_eq(outcome.text, "u");
    ck_assert_int_eq(call_part(KEY, "u", 1, "hello", 5)->code, QS_OK);
    ck_assert_str_eq(outcome.text, "opaque");
    for (size_t i = 0; i < 2; i++) {
        struct scripted_request request = sent(i);
        expect_line(&request, "x-amz-server-side-encryption: aws:kms");
        expect_line(&request, "x-amz-server-side-encryption-aws-kms-key-id: arn:aws:kms:x:1:key/cafe");
    }
    struct scripted_request part = sent(2);
    expect_no(&part, "server-side");
    settings.sse = SSE_AES256;
    play(steps, 1);
    ck_assert_int_eq(call_put(KEY, "hello", 5)->code, QS_OK);
    struct scripted_request put = sent(0);
    expect_line(&put, "x-amz-server-side-encryption: AES256");
    expect_no(&put, "key-id");
}
END_TEST

START_TEST(sends_head_get_and_delete)
{
    static const struct scripted_step steps[] = {
        {.status = 200, .headers = "Content-Length: 1234\r\nETag: \"abc\"\r\n"},
        {.status = 200, .body = "content"},
        {.status = 204},
        {.status = 404, .body = FAULT("NoSuchKey")},
        {.status = 404, .body = FAULT("NoSuchBucket")},
        {.status = 200}};
    play(steps, COUNT(steps));
    ck_assert_int_eq(call_head(KEY)->code, QS_OK);
    ck_assert_uint_eq(outcome.size, 1234);
    ck_assert_str_eq(outcome.etag, "abc");
    ck_assert_int_eq(call_get(KEY, 7)->code, QS_OK);
    ck_assert_str_eq(outcome.bytes, "content");
    ck_assert_int_eq(call_remove(KEY)->code, QS_OK);
    ck_assert_int_eq(call_remove(KEY)->code, QS_OK);
    ck_assert_int_eq(observed_code, 404);
    ck_assert_int_eq(call_remove(KEY)->code, QS_ERROR_REFUSED);
    ck_assert_int_eq(call_remove(KEY)->code, QS_OK);
    static const char *const methods[] = {"HEAD", "GET", "DELETE"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        char line[256];
        struct scripted_request request = sent(i);
        snprintf(line, sizeof line, "%s /lake/%s HTTP/1.1", methods[i], WIRE_KEY);
        expect_start(&request, line);
        expect_line(&request, "x-amz-content-sha256: " EMPTY_HASH);
        expect_no(&request, "content-md5");
        expect_no(&request, "content-type");
    }
}
END_TEST

START_TEST(sends_multipart)
{
    static const struct scripted_step steps[] = {
        {.status = 200,
         .body = "<?xml version=\"1.0\"?><InitiateMultipartUploadResult xmlns=\"x\"><Bucket>lake</Bucket>"
                 "<UploadId>a+b/c=</UploadId></InitiateMultipartUploadResult>"},
        {.status = 200, .headers = "ETag: \"" HELLO_MD5 "\"\r\n"},
        {.status = 200,
         .body = "  \n <?xml version=\"1.0\"?><CompleteMultipartUploadResult><ETag>&quot;" HELLO_MD5
                 "-2&quot;</ETag></CompleteMultipartUploadResult>"},
        {.status = 204},
        {.status = 404, .body = FAULT("NoSuchUpload")}};
    const struct object_part parts[] = {{1, "e<1"}, {2, "e2"}};
    play(steps, COUNT(steps));
    ck_assert_int_eq(call_create(KEY)->code, QS_OK);
    ck_assert_str_eq(outcome.text, "a+b/c=");
    ck_assert_int_eq(call_part(KEY, "a+b/c=", 7, "hello", 5)->code, QS_OK);
    ck_assert_str_eq(outcome.text, HELLO_MD5);
    ck_assert_msg(call_complete(KEY, "a+b/c=", parts, 2)->code == QS_OK, "%s", outcome.error.message);
    ck_assert_int_eq(call_abort(KEY, "a+b/c=")->code, QS_OK);
    ck_assert_int_eq(call_abort(KEY, "a+b/c=")->code, QS_OK);
    struct scripted_request request = sent(0);
    expect_start(&request, "POST /lake/" WIRE_KEY "?uploads HTTP/1.1");
    expect_line(&request, "content-type: application/x-ndjson");
    expect_line(&request, "Content-Length: 0");
    request = sent(1);
    expect_start(&request, "PUT /lake/" WIRE_KEY "?partNumber=7&uploadId=a%2Bb%2Fc%3D HTTP/1.1");
    expect_line(&request, "content-md5: " HELLO_B64);
    request = sent(2);
    expect_start(&request, "POST /lake/" WIRE_KEY "?uploadId=a%2Bb%2Fc%3D HTTP/1.1");
    ck_assert_str_eq(request.body, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                                   "<Part><PartNumber>1</PartNumber><ETag>&quot;e&lt;1&quot;</ETag></Part>"
                                   "<Part><PartNumber>2</PartNumber><ETag>&quot;e2&quot;</ETag></Part>"
                                   "</CompleteMultipartUpload>");
    request = sent(3);
    expect_start(&request, "DELETE /lake/" WIRE_KEY "?uploadId=a%2Bb%2Fc%3D HTTP/1.1");
}
END_TEST

START_TEST(lists)
{
    static const struct scripted_step steps[] = {
        {.status = 200,
         .body = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>"
                 "<IsTruncated>true</IsTruncated><NextContinuationToken>t/1+=</NextContinuationToken>"
                 "<Contents><Key>a/caff%C3%A8+b%2525%zz</Key><Size>12</Size><ETag>x</ETag></Contents>"
                 "<Contents><Key>a/c%2B</Key><Size>18446744073709551615</Size></Contents></ListBucketResult>"},
        {.status = 200,
         .body = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a&amp;+%41</Key><Size>1</Size>"
                 "</Contents></ListBucketResult>"},
        {.status = 200, .body = "<ListBucketResult/>"},
        {.status = 200, .body = "<html>hello"},
        {.status = 200, .body = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"},
        {.status = 200, .body = "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult>&a;</ListBucketResult>"}};
    play(steps, COUNT(steps));
    ck_assert_int_eq(call_list("a/ b", NULL)->code, QS_OK);
    ck_assert_uint_eq(outcome.key_count, 2);
    ck_assert_str_eq(outcome.keys[0], "a/caff\xc3\xa8 b%25%zz");
    ck_assert_uint_eq(outcome.sizes[0], 12);
    ck_assert_str_eq(outcome.keys[1], "a/c+");
    ck_assert_uint_eq(outcome.sizes[1], UINT64_MAX);
    ck_assert_str_eq(outcome.text, "t/1+=");
    ck_assert_int_eq(call_list("a/ b", "t/1+=")->code, QS_OK);
    ck_assert_str_eq(outcome.keys[0], "a&+%41");
    ck_assert_str_eq(outcome.text, "");
    ck_assert_int_eq(call_list("", NULL)->code, QS_OK);
    ck_assert_uint_eq(outcome.key_count, 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(call_list("", NULL)->code, QS_ERROR_BODY);
        ck_assert(outcome.error.retriable);
    }
    struct scripted_request request = sent(0);
    expect_start(&request, "GET /lake/?encoding-type=url&list-type=2&max-keys=1000&prefix=a%2F%20b HTTP/1.1");
    request = sent(1);
    expect_start(&request, "GET /lake/?continuation-token=t%2F1%2B%3D&encoding-type=url&list-type=2&max-keys=1000&"
                           "prefix=a%2F%20b HTTP/1.1");
}
END_TEST

START_TEST(addresses_a_virtual_host)
{
    static const struct scripted_step step = {.status = 200};
    char host[160];
    server = scripted_server_start(&step, 1);
    const char *port = strrchr(scripted_server_url(server), ':');
    snprintf(endpoint, sizeof endpoint, "http://localhost%s", port);
    settings.endpoint = endpoint;
    settings.path_style = false;
    open_store();
    ck_assert_msg(call_head(KEY)->code == QS_OK, "%s", outcome.error.message);
    struct scripted_request request = sent(0);
    expect_start(&request, "HEAD /" WIRE_KEY " HTTP/1.1");
    snprintf(host, sizeof host, "Host: lake.localhost%s", port);
    expect_line(&request, host);
}
END_TEST

START_TEST(leaves_a_body_unsigned_over_tls)
{
    static const struct scripted_step steps[] = {{.status = 200}, {.status = 204}};
    server = scripted_server_start_tls(steps, COUNT(steps));
    snprintf(endpoint, sizeof endpoint, "https://127.0.0.1%s", strrchr(scripted_server_url(server), ':'));
    settings.endpoint = endpoint;
    settings.ca_file = (char *)(uintptr_t)scripted_server_ca_file(server);
    open_store();
    ck_assert_msg(call_put(KEY, "hello", 5)->code == QS_OK, "%s", outcome.error.message);
    ck_assert_int_eq(call_remove(KEY)->code, QS_OK);
    struct scripted_request request = sent(0);
    expect_line(&request, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
    request = sent(1);
    expect_line(&request, "x-amz-content-sha256: " EMPTY_HASH);
}
END_TEST

/* ---- what comes back ---- */

static const struct {
    int status;
    const char *body;
    enum qs_error code;
    bool retriable;
    const char *message;
} answers[] = {
    {408, "", QS_ERROR_STATUS, true, "put " KEY ": 408"},
    {429, "", QS_ERROR_STATUS, true, "429"},
    {500, FAULT("InternalError"), QS_ERROR_STATUS, true, "500 InternalError"},
    {502, "<html>", QS_ERROR_STATUS, true, "502"},
    {503, FAULT("SlowDown"), QS_ERROR_STATUS, true, "503 SlowDown"},
    {507, "", QS_ERROR_STATUS, true, "507"},
    {503, FAULT("NoSuchBucket"), QS_ERROR_STATUS, true, "503"},
    {400, FAULT("RequestTimeout"), QS_ERROR_STATUS, true, "400 RequestTimeout"},
    {400, FAULT("SlowDown"), QS_ERROR_STATUS, true, "SlowDown"},
    {409, FAULT("OperationAborted"), QS_ERROR_STATUS, true, "409"},
    {400, FAULT("BadDigest"), QS_ERROR_INTEGRITY, true, "BadDigest"},
    {400, FAULT("XAmzContentSHA256Mismatch"), QS_ERROR_INTEGRITY, true, ""},
    {400, FAULT("EntityTooLarge"), QS_ERROR_REFUSED, false, "400 EntityTooLarge"},
    {400, "", QS_ERROR_REFUSED, false, "QUEEN_S3_ENDPOINT"},
    {400, FAULT("<x>&amp;sesame"), QS_ERROR_REFUSED, false, "400: check"},
    {401, "", QS_ERROR_REFUSED, false, "QUEEN_S3_ACCESS_KEY"},
    {403, FAULT("SignatureDoesNotMatch"), QS_ERROR_FORBIDDEN, false, "QUEEN_S3_SECRET_KEY"},
    {403, FAULT("InvalidAccessKeyId"), QS_ERROR_FORBIDDEN, false, "QUEEN_S3_ACCESS_KEY"},
    {403, FAULT("AccessDenied"), QS_ERROR_FORBIDDEN, false, "policy"},
    {403, FAULT("AccountProblem"), QS_ERROR_FORBIDDEN, false, "AccountProblem"},
    {403, "", QS_ERROR_FORBIDDEN, false, "QUEEN_S3_SECRET_KEY"},
    {404, FAULT("NoSuchBucket"), QS_ERROR_REFUSED, false, "QUEEN_S3_PATH_STYLE"},
    {404, FAULT("NoSuchKey"), QS_ERROR_NOT_FOUND, false, "404 NoSuchKey"},
    {404, FAULT("NoSuchUpload"), QS_ERROR_NOT_FOUND, false, ""},
    {404, "", QS_ERROR_NOT_FOUND, false, "404"},
    {404, FAULT("XAdminUserNotFound"), QS_ERROR_FORBIDDEN, false, "QUEEN_S3_ACCESS_KEY"},
    {404, FAULT("SomethingElse"), QS_ERROR_REFUSED, false, "SomethingElse"},
    {412, "", QS_ERROR_REFUSED, false, "412"},
    {501, FAULT("NotImplemented"), QS_ERROR_REFUSED, false, "QUEEN_S3_SSE"},
};

START_TEST(tells_answers_apart)
{
    play_one(answers[_i].status, NULL, answers[_i].body);
    call_put(KEY, "hello", 5);
    ck_assert_msg(outcome.error.code == answers[_i].code, "%d: %s", (int)outcome.error.code, outcome.error.message);
    ck_assert_int_eq(outcome.error.retriable, answers[_i].retriable);
    ck_assert_int_eq(outcome.error.status, answers[_i].status);
    ck_assert_int_eq(observed_code, answers[_i].status);
    expect_message(answers[_i].message);
}
END_TEST

START_TEST(names_the_region)
{
    play_one(301, "x-amz-bucket-region: eu-west-3\r\n", "");
    ck_assert_int_eq(call_head(KEY)->code, QS_ERROR_REFUSED);
    expect_message("QUEEN_S3_REGION=eu-west-3");
    play_one(307, NULL,
             "<Error><Code>TemporaryRedirect</Code><Endpoint>lake.s3.eu-west-1.amazonaws.com</Endpoint></Error>");
    ck_assert_int_eq(call_put(KEY, "hello", 5)->code, QS_ERROR_REFUSED);
    expect_message("lake.s3.eu-west-1.amazonaws.com");
    expect_message("QUEEN_S3_REGION");
    play_one(400, NULL, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-north-1</Region></Error>");
    ck_assert_int_eq(call_get(KEY, 10)->code, QS_ERROR_REFUSED);
    expect_message("QUEEN_S3_REGION=eu-north-1");
    play_one(301, "x-amz-bucket-region: $(rm -rf)\r\n", "");
    ck_assert_int_eq(call_head(KEY)->code, QS_ERROR_REFUSED);
    ck_assert_ptr_null(strstr(outcome.error.message, "rm"));
}
END_TEST

START_TEST(keeps_retry_after)
{
    play_one(503, "Retry-After: 7\r\n", FAULT("SlowDown"));
    call_put(KEY, "hello", 5);
    ck_assert_int_eq(outcome.error.retry_after_ms, 7000);
    play_one(503, NULL, "");
    call_put(KEY, "hello", 5);
    ck_assert_int_eq(outcome.error.retry_after_ms, -1);
}
END_TEST

START_TEST(compares_etags)
{
    static const struct {
        const char *header;
        enum setting_sse sse;
        enum qs_error code;
    } cases[] = {
        {"ETag: \"5D41402ABC4B2A76B9719D911017C592\"\r\n", SSE_OFF, QS_OK},
        {"ETag: \"5d41402abc4b2a76b9719d911017c593\"\r\n", SSE_OFF, QS_ERROR_INTEGRITY},
        {"ETag: \"5d41402abc4b2a76b9719d911017c593\"\r\n", SSE_AES256, QS_ERROR_INTEGRITY},
        {"ETag: \"5d41402abc4b2a76b9719d911017c593\"\r\n", SSE_KMS, QS_OK},
        {"ETag: \"5d41402abc4b2a76b9719d911017c593-1\"\r\n", SSE_OFF, QS_OK},
        {"ETag: \"other\"\r\n", SSE_OFF, QS_OK},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        settings.sse = cases[i].sse;
        play_one(200, cases[i].header, "");
        ck_assert_int_eq(call_put(KEY, "hello", 5)->code, cases[i].code);
        ck_assert_int_eq(outcome.error.retriable, cases[i].code != QS_OK);
        play_one(200, cases[i].header, "");
        ck_assert_int_eq(call_part(KEY, "u", 1, "hello", 5)->code, cases[i].code);
    }
    ck_assert_ptr_nonnull(strstr(logged, "\"other\""));
    settings.sse = SSE_OFF;
    play_one(200, NULL, "");
    ck_assert_int_eq(call_put(KEY, "hello", 5)->code, QS_OK);
    play_one(200, NULL, "");
    ck_assert_int_eq(call_part(KEY, "u", 1, "hello", 5)->code, QS_ERROR_BODY);
}
END_TEST

#define WHOLE(etag) "<CompleteMultipartUploadResult><ETag>" etag "</ETag></CompleteMultipartUploadResult>"

static const struct {
    int status;
    const char *body;
    enum qs_error code;
    bool retriable;
} completions[] = {
    {200, WHOLE(HELLO_MD5 "-2"), QS_OK, false},
    {200, WHOLE("&quot;" HELLO_MD5 "-2&quot;"), QS_OK, false},
    {200, WHOLE("&quot;" HELLO_MD5 "-3&quot;"), QS_ERROR_INTEGRITY, true},
    {200, WHOLE("&quot;" HELLO_MD5 "&quot;"), QS_OK, false},
    {200, WHOLE("&quot;" HELLO_MD5 "-2x&quot;"), QS_OK, false},
    {200, "<CompleteMultipartUploadResult/>", QS_OK, false},
    {200, FAULT("InternalError"), QS_ERROR_STATUS, true},
    {200, "\n   \n" FAULT("SlowDown"), QS_ERROR_STATUS, true},
    {200, "<Error><Code>NoSuchUpload</Code></Error>", QS_ERROR_NOT_FOUND, false},
    {200, "<Error><Code>InvalidPart</Code></Error>", QS_ERROR_REFUSED, false},
    {200, "", QS_ERROR_BODY, true},
    {200, "     ", QS_ERROR_BODY, true},
    {200, "<CompleteMultipartUploadResult><ETag>", QS_ERROR_BODY, true},
    {404, FAULT("NoSuchUpload"), QS_ERROR_NOT_FOUND, false},
    {500, FAULT("InternalError"), QS_ERROR_STATUS, true},
};

START_TEST(believes_a_complete_by_its_body)
{
    const struct object_part parts[] = {{1, "a"}, {2, "b"}};
    play_one(completions[_i].status, NULL, completions[_i].body);
    call_complete(KEY, "u", parts, 2);
    ck_assert_msg(outcome.error.code == completions[_i].code, "%s", outcome.error.message);
    ck_assert_int_eq(outcome.error.retriable, completions[_i].retriable);
}
END_TEST

START_TEST(needs_an_upload_id)
{
    static const char *const bodies[] = {"", "<html/>", "<InitiateMultipartUploadResult/>",
                                         "<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>"};
    for (size_t i = 0; i < COUNT(bodies); i++) {
        play_one(200, NULL, bodies[i]);
        ck_assert_int_eq(call_create(KEY)->code, QS_ERROR_BODY);
        ck_assert(outcome.error.retriable);
    }
}
END_TEST

START_TEST(limits_what_it_reads)
{
    char *large = malloc(100001);
    memset(large, 'x', 100000);
    large[100000] = '\0';
    const struct scripted_step steps[] = {{.status = 200, .body = "12345678"}, {.status = 200, .body = large}};
    play(steps, COUNT(steps));
    for (size_t i = 0; i < COUNT(steps); i++) {
        ck_assert_int_eq(call_get(KEY, 7)->code, QS_ERROR_BODY);
        ck_assert(!outcome.error.retriable);
        ck_assert_ptr_null(outcome.bytes);
    }
    close_store();
    free(large);
}
END_TEST

/* A part, and what a gateway may make of the wish for one. */
START_TEST(gets_a_range)
{
    static const struct scripted_step steps[] = {{.status = 206, .body = "ent"},
                                                 {.status = 206, .body = "en"},
                                                 {.status = 200, .body = "con"},
                                                 {.status = 200, .body = "con"},
                                                 {.status = 416, .body = FAULT("InvalidRange")}};
    play(steps, COUNT(steps));
    ck_assert_int_eq(call_get_range(KEY, 4, 3)->code, QS_OK);
    ck_assert_str_eq(outcome.bytes, "ent");
    ck_assert_int_eq(call_get_range(KEY, 4, 3)->code, QS_ERROR_BODY);
    ck_assert_ptr_null(outcome.bytes);
    ck_assert_int_eq(call_get_range(KEY, 4, 3)->code, QS_ERROR_BODY);
    ck_assert_int_eq(call_get_range(KEY, 0, 3)->code, QS_OK);
    ck_assert_int_eq(call_get_range(KEY, 4000000000000, 3)->code, QS_ERROR_REFUSED);
    struct scripted_request request = sent(0);
    expect_line(&request, "range: bytes=4-6");
    request = sent(4);
    expect_line(&request, "range: bytes=4000000000000-4000000000002");
    close_store();
}
END_TEST

START_TEST(tells_of_a_lost_connection)
{
    static const struct scripted_step steps[] = {{.status = 0, .end = SCRIPTED_RESET},
                                                 {.status = 0, .end = SCRIPTED_RESET},
                                                 {.status = 0, .end = SCRIPTED_RESET}};
    play(steps, COUNT(steps));
    ck_assert_int_eq(call_head(KEY)->code, QS_ERROR_TRANSPORT);
    ck_assert(outcome.error.retriable);
    ck_assert_int_eq(outcome.error.status, 0);
    ck_assert_int_eq(observed_code, 0);
    expect_message("head " KEY ": ");
    close_store();
    settings.path_style = false;
    settings.endpoint = "http://no-such-name.invalid";
    open_store();
    ck_assert_int_eq(call_head(KEY)->code, QS_ERROR_TRANSPORT);
    expect_message("QUEEN_S3_PATH_STYLE");
}
END_TEST

/* ---- the clock ---- */

static void date_header(time_t when, char out[80])
{
    struct tm broken;
    strftime(out, 80, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&when, &broken));
}

/* Seconds by which the time in a request's signature is ahead of ours. */
static int64_t signed_ahead(size_t index)
{
    struct scripted_request request = sent(index);
    const char *at = strstr(request.head, "x-amz-date: ");
    struct tm broken = {0};
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(strptime(at + strlen("x-amz-date: "), "%Y%m%dT%H%M%SZ", &broken));
    return (int64_t)timegm(&broken) - (int64_t)time(NULL);
}

START_TEST(learns_the_clock)
{
    char date[80];
    date_header(time(NULL) + 7200, date);
    const struct scripted_step steps[] = {{.status = 403, .headers = date, .body = FAULT("RequestTimeTooSkewed")},
                                          {.status = 200},
                                          {.status = 403, .headers = date, .body = FAULT("AccessDenied")}};
    play(steps, COUNT(steps));
    ck_assert_int_eq(call_put(KEY, "hello", 5)->code, QS_ERROR_STATUS);
    ck_assert(outcome.error.retriable);
    ck_assert_ptr_nonnull(strstr(logged, "ahead of ours"));
    ck_assert_int_eq(call_put(KEY, "hello", 5)->code, QS_OK);
    ck_assert_int_eq(call_put(KEY, "hello", 5)->code, QS_ERROR_FORBIDDEN);
    ck_assert_int_le(llabs(signed_ahead(0)), 5);
    ck_assert_int_le(llabs(signed_ahead(1) - 7200), 5);
    ck_assert_int_le(llabs(signed_ahead(2) - 7200), 5);
}
END_TEST

START_TEST(learns_the_clock_from_a_head)
{
    char behind[80];
    char right[80];
    date_header(time(NULL) - 3600, behind);
    date_header(time(NULL), right);
    const struct scripted_step steps[] = {{.status = 403, .headers = right},
                                          {.status = 403, .headers = behind},
                                          {.status = 403, .headers = behind},
                                          {.status = 403, .headers = "Date: nonsense\r\n"}};
    play(steps, COUNT(steps));
    ck_assert_int_eq(call_head(KEY)->code, QS_ERROR_FORBIDDEN);
    ck_assert_int_eq(call_head(KEY)->code, QS_ERROR_STATUS);
    ck_assert(outcome.error.retriable);
    ck_assert_ptr_nonnull(strstr(logged, "behind ours"));
    ck_assert_int_eq(call_head(KEY)->code, QS_ERROR_FORBIDDEN);
    ck_assert_int_le(llabs(signed_ahead(2) + 3600), 5);
    ck_assert_int_eq(call_head(KEY)->code, QS_ERROR_FORBIDDEN);
}
END_TEST

/* ---- ends ---- */

static void never(void *argument, const struct error *error)
{
    (void)argument;
    ck_abort_msg("a cancelled call answered: %s", error->message);
}

static void destroy_the_store(void *argument, const struct error *error)
{
    ck_assert_int_eq(error->code, QS_OK);
    *(int *)argument += 1;
    call_store->operations->destroy(call_store);
    call_store = NULL;
}

START_TEST(cancels)
{
    static const struct scripted_step steps[] = {{.status = 200}, {.status = 200}, {.status = 200}, {.status = 200}};
    int destroyed = 0;
    play(steps, COUNT(steps));
    struct store_call *first = call_store->operations->remove(call_store, KEY, never, NULL);
    reactor_run_once(call_reactor, 10);
    call_store->operations->cancel(call_store, first);
    ck_assert_int_eq(call_remove(KEY)->code, QS_OK);
    call_store->operations->remove(call_store, KEY, destroy_the_store, &destroyed);
    for (int i = 0; i < 100 && destroyed == 0; i++) {
        reactor_run_once(call_reactor, 100);
    }
    ck_assert_int_eq(destroyed, 1);
    open_store();
    call_store->operations->remove(call_store, KEY, never, NULL);
    call_store->operations->remove(call_store, KEY, never, NULL);
    close_store();
    reactor_run_once(call_reactor, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("s3_store");
    TCase *cases = tcase_create("s3_store");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, sends_a_put);
    tcase_add_test(cases, sends_encryption_on_put_and_create_only);
    tcase_add_test(cases, sends_head_get_and_delete);
    tcase_add_test(cases, sends_multipart);
    tcase_add_test(cases, lists);
    tcase_add_test(cases, addresses_a_virtual_host);
    tcase_add_test(cases, leaves_a_body_unsigned_over_tls);
    tcase_add_loop_test(cases, tells_answers_apart, 0, (int)COUNT(answers));
    tcase_add_test(cases, names_the_region);
    tcase_add_test(cases, keeps_retry_after);
    tcase_add_test(cases, compares_etags);
    tcase_add_loop_test(cases, believes_a_complete_by_its_body, 0, (int)COUNT(completions));
    tcase_add_test(cases, needs_an_upload_id);
    tcase_add_test(cases, limits_what_it_reads);
    tcase_add_test(cases, gets_a_range);
    tcase_add_test(cases, tells_of_a_lost_connection);
    tcase_add_test(cases, learns_the_clock);
    tcase_add_test(cases, learns_the_clock_from_a_head);
    tcase_add_test(cases, cancels);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
