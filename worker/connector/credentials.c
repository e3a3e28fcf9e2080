/*
 * The search (credentials.h): a row of sources, each asked in turn whether it is set up. What can be read at once is;
 * for the others one or more requests are sent, and a step a request says what its answer means.
 */
#include "worker/connector/credentials.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/http.h"
#include "common/memory.h"
#include "common/sigv4.h"
#include "common/small_file.h"
#include "worker/connector/options.h"

#define CONNECT_TIMEOUT_MS 2000
#define CALL_TIMEOUT_MS    5000
#define ANSWER_MAX         (1u << 20)
#define FILE_MAX           (1u << 20)
#define HEADERS_MAX        2

static const char *const variables[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AWS_ROLE_ARN",
                                        "AWS_ROLE_SESSION_NAME",
                                        "AWS_ENDPOINT_URL_STS",
                                        "AWS_PROFILE",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "HOME",
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                        "AWS_EC2_METADATA_DISABLED"};
#define VARIABLE_COUNT (sizeof variables / sizeof *variables)

typedef void credential_answer(struct credential_chain *chain, struct http_response *response);

struct credential_chain {
    struct reactor *reactor;
    struct http_client *http;
    struct http_client *direct; /* for addresses of this host, which no proxy may answer for */
    char *region;
    char *values[VARIABLE_COUNT]; /* NULL: not set, or empty */
    credentials_found *found;
    void *argument;
    const char *source; /* whose request is under way */
    struct http_request *request;
    credential_answer *answer;
    struct iovec piece; /* of a request's body */
    char *body;
    struct timer timer; /* what was found, or wasn't, without a request: told from the loop */
    struct sink_credentials result;
    struct error error;
    char *metadata_token;
};

static const char *get(const struct credential_chain *chain, const char *name)
{
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        if (strcmp(variables[i], name) == 0) {
            return chain->values[i];
        }
    }
    return NULL;
}

static void drop_body(struct credential_chain *chain)
{
    if (chain->body != NULL) {
        OPENSSL_cleanse(chain->body, chain->piece.iov_len);
        free(chain->body);
        chain->body = NULL;
    }
}

static void tell(void *argument)
{
    struct credential_chain *chain = argument;
    struct sink_credentials result = chain->result;

    chain->result = (struct sink_credentials){0};
    chain->found(chain->argument, &chain->error, &result);
}

static void conclude(struct credential_chain *chain)
{
    timer_set(reactor_timers(chain->reactor), &chain->timer, reactor_now(chain->reactor), tell, chain);
}

/* The source is set up, and doesn't give any. */
static void fail(struct credential_chain *chain)
{
    error_prefix(&chain->error, "credentials from %s", chain->source);
    chain->error.retriable = true; /* it may get well again: what was wrong is a file, or a service */
    conclude(chain);
}

static void found(struct credential_chain *chain)
{
    error_clear(&chain->error);
    conclude(chain);
}

static void on_answer(void *argument, const struct error *error, struct http_response *response)
{
    struct credential_chain *chain = argument;

    chain->request = NULL;
    drop_body(chain);
    chain->error = *error;
    if (error->code == QS_OK && (response->status < 200 || response->status >= 300)) {
        error_set(&chain->error, QS_ERROR_REFUSED, "status %d", response->status);
    }
    if (chain->error.code != QS_OK) {
        fail(chain);
        return;
    }
    chain->answer(chain, response);
    if (response->body != NULL) {
        OPENSSL_cleanse(response->body, response->body_size);
    }
}

struct question {
    struct http_client *http;
    const char *method;
    char *url;                  /* taken over */
    char *headers[HEADERS_MAX]; /* taken over; NULL: none */
    char *body;                 /* taken over; NULL: none */
};

static void ask(struct credential_chain *chain, struct question *question, credential_answer *answer)
{
    struct http_request_options options = {.method = question->method,
                                           .url = question->url,
                                           .headers = (const char *const *)question->headers,
                                           .timeout_ms = CALL_TIMEOUT_MS,
                                           .body_limit = ANSWER_MAX};

    while (options.header_count < HEADERS_MAX && question->headers[options.header_count] != NULL) {
        options.header_count++;
    }
    if (question->body != NULL) {
        chain->body = question->body;
        chain->piece = (struct iovec){question->body, strlen(question->body)};
        options.pieces = &chain->piece;
        options.piece_count = 1;
        options.body_size = chain->piece.iov_len;
    }
    chain->answer = answer;
    chain->request = http_start(question->http, &options, on_answer, chain);
    free(question->url);
    for (size_t i = 0; i < options.header_count; i++) {
        memory_free_secret(question->headers[i]);
    }
    if (chain->request == NULL) {
        drop_body(chain);
        error_set(&chain->error, QS_ERROR_NO_MEMORY, "out of memory for a request");
        fail(chain);
    }
}

/* A small text file, without the line feed at its end; malloc. NULL: *error says why. */
static char *read_file(const char *path, struct error *error)
{
    char *text = memory_new(FILE_MAX, 1);
    struct error reason;
    ssize_t size = small_file_read(path, text, FILE_MAX - 1, &reason);

    if (size < 0) {
        error_set(error, reason.code, "can't read %s: %s", path, reason.message);
        free(text);
        return NULL;
    }
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r')) {
        text[--size] = '\0';
    }
    return text;
}

/* ---- the sources: each returns whether it is set up, and has then begun or concluded ---- */

static bool try_environment(struct credential_chain *chain)
{
    const char *access_key = get(chain, "AWS_ACCESS_KEY_ID");
    const char *secret_key = get(chain, "AWS_SECRET_ACCESS_KEY");
    const char *token = get(chain, "AWS_SESSION_TOKEN");

    if (access_key == NULL || secret_key == NULL) {
        return false;
    }
    chain->result = (struct sink_credentials){.access_key = memory_copy_text(access_key),
                                              .secret_key = memory_copy_text(secret_key),
                                              .session_token = memory_copy_text(token),
                                              .expires = {INT64_MAX}};
    found(chain);
    return true;
}

static void take_sts(struct credential_chain *chain, struct http_response *response)
{
    if (credentials_read_sts(response->body, response->body_size, &chain->result, &chain->error) != 0) {
        fail(chain);
        return;
    }
    found(chain);
}

static void add_field(struct byte_buffer *form, const char *name, const char *value)
{
    char *encoded = sigv4_encode(value, 0);

    byte_buffer_add_format(form, "&%s=%s", name, encoded);
    free(encoded);
}

static bool try_web_identity(struct credential_chain *chain)
{
    const char *file = get(chain, "AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *role = get(chain, "AWS_ROLE_ARN");
    const char *session = get(chain, "AWS_ROLE_SESSION_NAME");
    const char *endpoint = get(chain, "AWS_ENDPOINT_URL_STS");
    struct byte_buffer form = {0};

    if (file == NULL || role == NULL) {
        return false;
    }
    chain->source = "web identity (AWS_WEB_IDENTITY_TOKEN_FILE)";
    char *token = read_file(file, &chain->error);
    if (token == NULL) {
        fail(chain);
        return true;
    }
    byte_buffer_add_text(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    add_field(&form, "RoleArn", role);
    add_field(&form, "RoleSessionName", session != NULL ? session : "picomq-s3-sink");
    add_field(&form, "WebIdentityToken", token);
    memory_free_secret(token);
    char *base = endpoint != NULL ? memory_copy_text(endpoint) : sink_aws_endpoint("sts", chain->region);
    static const char type[] = "Content-Type: application/x-www-form-urlencoded";
    struct question question = {.http = chain->http,
                                .method = "POST",
                                .url = memory_format("%s/", base),
                                .headers = {memory_copy(type, sizeof type - 1)},
                                .body = byte_buffer_take(&form)};
    free(base);
    ask(chain, &question, take_sts);
    return true;
}

static bool try_profile(struct credential_chain *chain)
{
    const char *named = get(chain, "AWS_PROFILE");
    const char *file = get(chain, "AWS_SHARED_CREDENTIALS_FILE");
    const char *home = get(chain, "HOME");
    const char *profile = named != NULL ? named : "default";
    char *path = file != NULL   ? memory_copy_text(file)
                 : home != NULL ? memory_format("%s/.aws/credentials", home)
                                : memory_copy("", 0);
    char *text = path[0] != '\0' ? read_file(path, &chain->error) : NULL;
    bool is_there = text != NULL && credentials_read_profile(text, profile, &chain->result) == 0;

    memory_free_secret(text);
    chain->source = "the shared profile";
    if (is_there) {
        found(chain);
    } else if (named != NULL) { /* somebody asked for this one */
        error_set(&chain->error, QS_ERROR_NOT_FOUND, "no profile %s with aws_access_key_id in %s", named, path);
        fail(chain);
    }
    free(path);
    return is_there || named != NULL;
}

static void take_json(struct credential_chain *chain, struct http_response *response)
{
    if (credentials_read_json(response->body, response->body_size, &chain->result, &chain->error) != 0) {
        fail(chain);
        return;
    }
    found(chain);
}

/* Over plain http a token may only go to this machine and to where the agents of ECS and EKS answer. */
static bool is_trusted(const char *url)
{
    static const char *const hosts[] = {"http://localhost",     "http://127.0.0.1",      "http://[::1]",
                                        "http://169.254.170.2", "http://169.254.170.23", "http://[fd00:ec2::23]"};

    if (strncmp(url, "https://", 8) == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size_t size = strlen(hosts[i]);
        if (strncmp(url, hosts[i], size) == 0 && (url[size] == '/' || url[size] == ':' || url[size] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool try_container(struct credential_chain *chain)
{
    const char *relative = get(chain, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = get(chain, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *token = get(chain, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    const char *token_file = get(chain, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    char *read = NULL;

    if (relative == NULL && full == NULL) {
        return false;
    }
    chain->source = "the container (AWS_CONTAINER_CREDENTIALS_*_URI)";
    if (relative == NULL && !is_trusted(full)) {
        error_set(&chain->error, QS_ERROR_INPUT, "%.200s is neither https nor an address of this host", full);
        fail(chain);
        return true;
    }
    if (token_file != NULL) {
        read = read_file(token_file, &chain->error);
        if (read == NULL) {
            fail(chain);
            return true;
        }
        token = read;
    }
    struct question question = {.http = chain->direct,
                                .method = "GET",
                                .url = relative != NULL ? memory_format("http://169.254.170.2%s", relative)
                                                        : memory_copy_text(full),
                                .headers = {token != NULL ? memory_format("Authorization: %s", token) : NULL}};
    memory_free_secret(read);
    ask(chain, &question, take_json);
    return true;
}

static char *metadata_url(const struct credential_chain *chain, const char *path)
{
    const char *endpoint = get(chain, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    size_t size = endpoint != NULL ? strlen(endpoint) : 0;

    while (size > 0 && endpoint[size - 1] == '/') {
        size--;
    }
    return endpoint != NULL ? memory_format("%.*s/latest/%s", (int)size, endpoint, path)
                            : memory_format("http://169.254.169.254/latest/%s", path);
}

static void ask_metadata(struct credential_chain *chain, const char *path, credential_answer *answer)
{
    struct question question = {.http = chain->direct,
                                .method = "GET",
                                .url = metadata_url(chain, path),
                                .headers = {memory_format("X-aws-ec2-metadata-token: %s", chain->metadata_token)}};

    ask(chain, &question, answer);
}

static const char role_path[] = "meta-data/iam/security-credentials/";

static void take_role(struct credential_chain *chain, struct http_response *response)
{
    size_t size = response->body != NULL ? strcspn(response->body, "\r\n") : 0;

    if (size == 0 || size > 128) {
        error_set(&chain->error, QS_ERROR_BODY, "the instance has no role");
        fail(chain);
        return;
    }
    char *name = memory_copy(response->body, size);
    char *encoded = sigv4_encode(name, 0);
    char *path = memory_format("%s%s", role_path, encoded);
    ask_metadata(chain, path, take_json);
    free(path);
    free(encoded);
    free(name);
}

static void take_metadata_token(struct credential_chain *chain, struct http_response *response)
{
    size_t size = response->body != NULL ? strcspn(response->body, "\r\n") : 0;

    free(chain->metadata_token);
    chain->metadata_token = memory_copy(response->body != NULL ? response->body : "", size);
    ask_metadata(chain, role_path, take_role);
}

static bool try_metadata(struct credential_chain *chain)
{
    static const char lifetime[] = "X-aws-ec2-metadata-token-ttl-seconds: 21600";
    const char *disabled = get(chain, "AWS_EC2_METADATA_DISABLED");

    if (disabled != NULL && (strcmp(disabled, "true") == 0 || strcmp(disabled, "TRUE") == 0)) {
        return false;
    }
    chain->source = "instance metadata (no other source of credentials is set up)";
    struct question question = {.http = chain->direct,
                                .method = "PUT",
                                .url = metadata_url(chain, "api/token"),
                                .headers = {memory_copy(lifetime, sizeof lifetime - 1)}};
    ask(chain, &question, take_metadata_token);
    return true;
}

void credential_chain_search(struct credential_chain *chain, credentials_found *tell_found, void *argument)
{
    static bool (*const sources[])(struct credential_chain *) = {try_environment, try_web_identity, try_profile,
                                                                 try_container, try_metadata};

    chain->found = tell_found;
    chain->argument = argument;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        if (sources[i](chain)) {
            return;
        }
    }
    error_set(&chain->error, QS_ERROR_NOT_FOUND,
              "no credentials: set access_key_id and secret_access_key, or one of the sources of the default chain");
    chain->error.retriable = true;
    conclude(chain);
}

struct credential_chain *credential_chain_create(struct reactor *reactor, const char *region, settings_lookup *lookup,
                                                 void *lookup_argument, struct error *error)
{
    struct http_client_options options = {.connect_timeout_ms = CONNECT_TIMEOUT_MS};
    struct http_client *http = http_client_create(reactor, &options, error);

    options.direct = true;
    struct http_client *direct = http != NULL ? http_client_create(reactor, &options, error) : NULL;
    if (direct == NULL) {
        http_client_destroy(http);
        return NULL;
    }
    struct credential_chain *chain = memory_new(1, sizeof *chain);
    chain->reactor = reactor;
    chain->http = http;
    chain->direct = direct;
    chain->region = memory_copy_text(region);
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        const char *value = lookup(lookup_argument, variables[i]);
        chain->values[i] = value != NULL && value[0] != '\0' ? memory_copy_text(value) : NULL;
    }
    return chain;
}

void credential_chain_destroy(struct credential_chain *chain)
{
    if (chain == NULL) {
        return;
    }
    if (chain->request != NULL) {
        http_cancel(chain->request);
    }
    timer_cancel(reactor_timers(chain->reactor), &chain->timer);
    drop_body(chain);
    sink_credentials_free(&chain->result);
    http_client_destroy(chain->http);
    http_client_destroy(chain->direct);
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        memory_free_secret(chain->values[i]);
    }
    free(chain->metadata_token);
    free(chain->region);
    free(chain);
}
