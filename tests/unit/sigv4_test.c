/*
 * SigV4 against cases that AWS published: the four worked examples of the S3 API reference ("Signature Calculations for
 * the Authorization Header"), which are built in, and the general signing suite, read from
 * $QUEEN_S3_SHARED/data/sigv4-test-suite.tar.zst (../shared where the variable isn't set). S3 doesn't normalise paths,
 * so of the path cases the `-unnormalized` ones are run.
 */
#include <check.h>
#include <cjson/cJSON.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sigv4.h"
#include "tests/unit/lakes.h"

#define EMPTY_HASH   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define EXAMPLE_HOST "examplebucket.s3.amazonaws.com"
#define EXAMPLE_DATE "20130524T000000Z"

static const struct sigv4_credentials example = {.access_key = "AKIAIOSFODNN7EXAMPLE",
                                                 .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                                 .region = "us-east-1",
                                                 .service = "s3"};

static void expect_example(const struct sigv4_request *request, const char *signed_names, const char *signature)
{
    char expected[512];
    snprintf(expected, sizeof expected,
             "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
             "SignedHeaders=%s, Signature=%s",
             signed_names, signature);
    char *got = sigv4_authorization(request, &example, EXAMPLE_DATE);
    ck_assert_str_eq(got, expected);
    free(got);
}

START_TEST(signs_the_get_example)
{
    const struct sigv4_header headers[] = {{"range", "bytes=0-9"},
                                           {"x-amz-date", EXAMPLE_DATE},
                                           {"host", EXAMPLE_HOST},
                                           {"x-amz-content-sha256", EMPTY_HASH}};
    struct sigv4_request request = {
        .method = "GET", .path = "/test.txt", .headers = headers, .header_count = 4, .payload_hash = EMPTY_HASH};

    expect_example(&request, "host;range;x-amz-content-sha256;x-amz-date",
                   "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}
END_TEST

START_TEST(signs_the_put_example)
{
    static const char hash[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const struct sigv4_header headers[] = {{"host", EXAMPLE_HOST},
                                           {"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                           {"x-amz-date", EXAMPLE_DATE},
                                           {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                                           {"x-amz-content-sha256", hash}};
    struct sigv4_request request = {
        .method = "PUT", .path = "/test$file.text", .headers = headers, .header_count = 5, .payload_hash = hash};

    expect_example(&request, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                   "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}
END_TEST

static const struct sigv4_header plain_headers[] = {
    {"host", EXAMPLE_HOST}, {"x-amz-content-sha256", EMPTY_HASH}, {"x-amz-date", EXAMPLE_DATE}};

START_TEST(signs_the_query_without_value_example)
{
    const struct sigv4_query query[] = {{"lifecycle", ""}};
    struct sigv4_request request = {.method = "GET",
                                    .path = "/",
                                    .query = query,
                                    .query_count = 1,
                                    .headers = plain_headers,
                                    .header_count = 3,
                                    .payload_hash = EMPTY_HASH};

    expect_example(&request, "host;x-amz-content-sha256;x-amz-date",
                   "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}
END_TEST

START_TEST(signs_the_list_example)
{
    const struct sigv4_query query[] = {{"prefix", "J"}, {"max-keys", "2"}};
    struct sigv4_request request = {.method = "GET",
                                    .path = "",
                                    .query = query,
                                    .query_count = 2,
                                    .headers = plain_headers,
                                    .header_count = 3,
                                    .payload_hash = EMPTY_HASH};

    expect_example(&request, "host;x-amz-content-sha256;x-amz-date",
                   "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}
END_TEST

START_TEST(encodes_everything_but_the_unreserved)
{
    static const struct {
        const char *text;
        int keep_slash;
        const char *expected;
    } cases[] = {{"", 0, ""},
                 {"AZaz09-._~", 0, "AZaz09-._~"},
                 {"a/b", 0, "a%2Fb"},
                 {"a/b", 1, "a/b"},
                 {"caff%C3%A8", 1, "caff%25C3%25A8"},
                 {"q=a b+c&d", 1, "q%3Da%20b%2Bc%26d"},
                 {"\xc3\xa8\x01\xff", 0, "%C3%A8%01%FF"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = sigv4_encode(cases[i].text, cases[i].keep_slash);
        ck_assert_str_eq(got, cases[i].expected);
        free(got);
    }
}
END_TEST

START_TEST(sorts_equal_names_by_value)
{
    const struct sigv4_query query[] = {{"b", "1"}, {"a", "~"}, {"a", " "}, {"a", ""}};
    struct sigv4_request request = {.method = "GET",
                                    .path = "/",
                                    .query = query,
                                    .query_count = 4,
                                    .headers = plain_headers,
                                    .header_count = 3,
                                    .payload_hash = EMPTY_HASH};
    char *got = sigv4_canonical_request(&request);
    ck_assert_ptr_nonnull(strstr(got, "GET\n/\na=&a=%20&a=~&b=1\nhost:"));
    free(got);
}
END_TEST

/* --- the suite --- */

#define SUITE_PATH "sigv4-test-suite/tests/aws-signing-test-suite/v4/"

static char *suite;
static size_t suite_size;

/* Of GNU tar as much as the archive has: plain files, long names in an entry of their own. Takes the next file at *at;
 * false at the end. The name is cut to what follows SUITE_PATH, "" for a file elsewhere. */
static bool next_file(size_t *at, char name[256], const char **content, size_t *size)
{
    char long_name[256] = "";
    while (*at + 512 <= suite_size && suite[*at] != '\0') {
        const char *header = suite + *at;
        char digits[13] = "";
        memcpy(digits, header + 124, 12);
        *content = header + 512;
        *size = strtoul(digits, NULL, 8);
        ck_assert_uint_le(*size, suite_size - *at - 512);
        *at += 512 + (*size + 511) / 512 * 512;
        if (header[156] == 'L') {
            snprintf(long_name, sizeof long_name, "%.*s", (int)*size, *content);
        } else if (header[156] == '0') {
            snprintf(name, 256, "%.*s", long_name[0] != '\0' ? 255 : 100, long_name[0] != '\0' ? long_name : header);
            bool inside = strncmp(name, SUITE_PATH, strlen(SUITE_PATH)) == 0;
            memmove(name, inside ? name + strlen(SUITE_PATH) : "", inside ? strlen(name + strlen(SUITE_PATH)) + 1 : 1);
            return true;
        }
    }
    return false;
}

/* malloc; it has to be there. */
static char *read_text(const char *folder, const char *file)
{
    char wanted[256];
    char name[256];
    const char *content;
    size_t size;
    size_t at = 0;
    snprintf(wanted, sizeof wanted, "%s/%s", folder, file);
    while (next_file(&at, name, &content, &size)) {
        if (strcmp(name, wanted) == 0) {
            return strndup(content, size);
        }
    }
    ck_abort_msg("no %s in the suite", wanted);
}

static void decode_percent(char *text)
{
    char *out = text;
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '%') {
            char digits[3] = {at[1], at[2], '\0'};
            *out++ = (char)strtoul(digits, NULL, 16);
            at += 2;
        } else {
            *out++ = *at;
        }
    }
    *out = '\0';
}

struct suite_case {
    struct sigv4_header headers[16];
    struct sigv4_query query[16];
    struct sigv4_request request;
    char hash[65];
};

static void add_header(struct suite_case *target, const char *name, const char *value)
{
    ck_assert_uint_lt(target->request.header_count, 16);
    target->headers[target->request.header_count++] = (struct sigv4_header){name, value};
}

static void parse_target(struct suite_case *target, char *text)
{
    char *query = strchr(text, '?');

    target->request.path = text;
    if (query == NULL) {
        return;
    }
    *query++ = '\0';
    char *rest = NULL;
    for (char *pair = strtok_r(query, "&", &rest); pair != NULL; pair = strtok_r(NULL, "&", &rest)) {
        char *value = strchr(pair, '=');
        ck_assert_ptr_nonnull(value);
        *value++ = '\0';
        decode_percent(pair);
        decode_percent(value);
        target->query[target->request.query_count++] = (struct sigv4_query){pair, value};
    }
}

/* Cuts the request into lines; one that begins with a blank goes on with the header before it. Returns the body. */
static char *parse_request(struct suite_case *target, char *text)
{
    char *line_end = strstr(text, " HTTP/1.1");
    ck_assert_ptr_nonnull(line_end);
    *line_end = '\0';
    char *headers = line_end + strlen(" HTTP/1.1");
    headers += *headers == '\n';
    char *body = strstr(headers, "\n\n");
    if (body != NULL) {
        *body = '\0';
        body += 2;
    }
    char *space = strchr(text, ' ');
    *space = '\0';
    target->request.method = text;
    parse_target(target, space + 1);

    char *line = headers;
    while (line != NULL && *line != '\0') {
        char *next = strchr(line, '\n');
        while (next != NULL && next[1] == ' ') {
            next = strchr(next + 1, '\n');
        }
        if (next != NULL) {
            *next++ = '\0';
        }
        char *value = strchr(line, ':');
        ck_assert_ptr_nonnull(value);
        *value++ = '\0';
        for (char *at = line; *at != '\0'; at++) {
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
        }
        add_header(target, line, value);
        line = next;
    }
    return body != NULL ? body : line_end;
}

static void hash_body(struct suite_case *target, const char *body)
{
    unsigned char hash[32];
    ck_assert_int_eq(EVP_Digest(body, strlen(body), hash, NULL, EVP_sha256(), NULL), 1);
    for (size_t i = 0; i < sizeof hash; i++) {
        snprintf(target->hash + 2 * i, 3, "%02x", hash[i]);
    }
    target->request.payload_hash = target->hash;
}

/* "2015-08-30T12:36:00Z" without its dashes and colons. */
static void compact_timestamp(const char *text, char out[17])
{
    size_t size = 0;
    for (; *text != '\0' && size < 16; text++) {
        if (*text != '-' && *text != ':') {
            out[size++] = *text;
        }
    }
    out[size] = '\0';
}

static const char *string_of(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
}

static void expect_file(const char *folder, const char *name, char *got)
{
    char *expected = read_text(folder, name);
    ck_assert_msg(strcmp(got, expected) == 0, "%s/%s: expected\n%s\ngot\n%s", folder, name, expected, got);
    free(expected);
    free(got);
}

static void run_case(const char *folder)
{
    char *context_text = read_text(folder, "context.json");
    char *text = read_text(folder, "request.txt");
    cJSON *context = cJSON_Parse(context_text);
    const cJSON *keys = cJSON_GetObjectItem(context, "credentials");
    const char *token = string_of(keys, "token");
    struct sigv4_credentials credentials = {.access_key = string_of(keys, "access_key_id"),
                                            .secret_key = string_of(keys, "secret_access_key"),
                                            .region = string_of(context, "region"),
                                            .service = string_of(context, "service")};
    char timestamp[17];
    struct suite_case target = {0};

    compact_timestamp(string_of(context, "timestamp"), timestamp);
    target.request.headers = target.headers;
    target.request.query = target.query;
    hash_body(&target, parse_request(&target, text));
    add_header(&target, "x-amz-date", timestamp);
    if (cJSON_IsTrue(cJSON_GetObjectItem(context, "sign_body"))) {
        add_header(&target, "x-amz-content-sha256", target.hash);
    }
    if (token != NULL && !cJSON_IsTrue(cJSON_GetObjectItem(context, "omit_session_token"))) {
        add_header(&target, "x-amz-security-token", token);
    }
    expect_file(folder, "header-canonical-request.txt", sigv4_canonical_request(&target.request));
    expect_file(folder, "header-string-to-sign.txt", sigv4_string_to_sign(&target.request, &credentials, timestamp));

    char *authorization = sigv4_authorization(&target.request, &credentials, timestamp);
    char *signature = strstr(authorization, "Signature=");
    expect_file(folder, "header-signature.txt", strdup(signature + strlen("Signature=")));
    char *sent = read_text(folder, "header-signed-request.txt");
    ck_assert_msg(strstr(sent, authorization) != NULL, "%s: %s", folder, authorization);
    free(sent);
    free(authorization);
    cJSON_Delete(context);
    free(context_text);
    free(text);
}

START_TEST(signs_the_published_suite)
{
    char name[256];
    const char *content;
    size_t size;
    size_t at = 0;
    int count = 0;
    suite = shared_data("sigv4-test-suite.tar.zst", &suite_size);
    if (suite == NULL) {
        return;
    }
    while (next_file(&at, name, &content, &size)) {
        char *slash = strstr(name, "/request.txt");
        if (slash != NULL && strstr(name, "-normalized") == NULL) {
            *slash = '\0';
            run_case(name);
            count++;
        }
    }
    ck_assert_int_ge(count, 30);
    free(suite);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("sigv4");
    TCase *cases = tcase_create("sigv4");
    tcase_add_test(cases, signs_the_get_example);
    tcase_add_test(cases, signs_the_put_example);
    tcase_add_test(cases, signs_the_query_without_value_example);
    tcase_add_test(cases, signs_the_list_example);
    tcase_add_test(cases, encodes_everything_but_the_unreserved);
    tcase_add_test(cases, sorts_equal_names_by_value);
    tcase_add_test(cases, signs_the_published_suite);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
