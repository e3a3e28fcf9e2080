/*
 * What goes on the wire, and the signature over it.
 *
 * Addressing: `https://bucket.host/key`, or `https://host/bucket/key` with QUEEN_S3_PATH_STYLE. A key is encoded once,
 * every byte but the unreserved ones and the slash; its own `%XX` (spec 2.1) so become `%25XX`.
 *
 * The hash of the body. SigV4 wants SHA-256 of each body in x-amz-content-sha256, or the word UNSIGNED-PAYLOAD. Over
 * https an object's body goes unsigned: TLS protects it on the way, the service checks it against Content-MD5 (a signed
 * header), and we check the ETag; hashing it once more would cost the loop's thread a second pass over every byte.
 * Over plain http it is signed, since there TLS protects nothing and AWS documents the unsigned form for https; the
 * AWS SDKs decide the same way. Small bodies (XML) and empty ones are always signed.
 *
 * Sources: Amazon S3 API Reference, "Signature Calculations for the Authorization Header: Transferring Payload in a
 * Single Chunk", "Common Request Headers"; Amazon S3 User Guide, "Virtual hosting of buckets".
 */
#include "common/s3_request.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/byte_buffer.h"
#include "common/hex.h"
#include "common/memory.h"
#include "common/text.h"

#define TIMESTAMP_SIZE 17 /* YYYYMMDDTHHMMSSZ and its NUL */
#define HASH_TEXT_SIZE 65
#define MD5_TEXT_SIZE  25 /* base64 and its NUL */
#define UNSIGNED       "UNSIGNED-PAYLOAD"

void s3_target_init(struct s3_target *target, const struct settings *settings)
{
    const char *separator = strstr(settings->endpoint, "://");
    const char *host = separator != NULL ? separator + 3 : settings->endpoint;

    *target = (struct s3_target){.settings = settings};
    if (settings->access_key != NULL) {
        s3_target_set_credentials(target, settings->access_key, settings->secret_key, NULL);
    }
    target->tls = strncmp(settings->endpoint, "https:", 6) == 0;
    /* A port that is the scheme's own is left out of a Host header by every client; the signature is over that. */
    size_t size = strlen(host);
    const char *own_port = target->tls ? ":443" : ":80";
    if (text_ends_with(host, own_port)) {
        size -= strlen(own_port);
    }
    if (settings->path_style) {
        target->host = memory_copy(host, size);
    } else {
        target->host = memory_format("%s.%.*s", settings->bucket, (int)size, host);
    }
    target->origin = memory_format("%s://%s", target->tls ? "https" : "http", target->host);
}

void s3_target_set_credentials(struct s3_target *target, const char *access_key, const char *secret_key,
                               const char *session_token)
{
    char *before[] = {target->access_key, target->secret_key, target->session_token};

    target->access_key = memory_copy_text(access_key);
    target->secret_key = memory_copy_text(secret_key);
    target->session_token = memory_copy_text(session_token);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        memory_free_secret(before[i]);
    }
}

void s3_target_free(struct s3_target *target)
{
    memory_free_secret(target->access_key);
    memory_free_secret(target->secret_key);
    memory_free_secret(target->session_token);
    free(target->origin);
    free(target->host);
}

static void format_timestamp(struct wall_ms now, char out[TIMESTAMP_SIZE])
{
    time_t seconds = (time_t)(now.v / 1000);
    struct tm broken;

    if (gmtime_r(&seconds, &broken) == NULL || strftime(out, TIMESTAMP_SIZE, "%Y%m%dT%H%M%SZ", &broken) == 0) {
        strcpy(out, "19700101T000000Z");
    }
}

static bool hash_body(const struct object_body *body, char out[HASH_TEXT_SIZE])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;

    for (size_t i = 0; good && body != NULL && i < body->piece_count; i++) {
        good = EVP_DigestUpdate(context, body->pieces[i].iov_base, body->pieces[i].iov_len) == 1;
    }
    good = good && EVP_DigestFinal_ex(context, hash, &size) == 1;
    EVP_MD_CTX_free(context);
    if (good) {
        *hex_write(out, hash, size) = '\0';
    }
    return good;
}

struct headers {
    struct sigv4_header items[S3_HEADERS_MAX];
    size_t count;
};

static void add_header(struct headers *headers, const char *name, const char *value)
{
    headers->items[headers->count++] = (struct sigv4_header){name, value};
}

static void add_encryption(struct headers *headers, const struct settings *settings)
{
    if (settings->sse == SSE_OFF) {
        return;
    }
    add_header(headers, "x-amz-server-side-encryption", settings->sse == SSE_KMS ? "aws:kms" : "AES256");
    if (settings->sse == SSE_KMS && settings->sse_kms_key_id != NULL) {
        add_header(headers, "x-amz-server-side-encryption-aws-kms-key-id", settings->sse_kms_key_id);
    }
}

/* "/bucket/key" or "/key", not yet encoded. */
static char *path_of(const struct s3_target *target, const struct s3_request *request)
{
    const char *key = request->key != NULL ? request->key : "";

    if (target->settings->path_style) {
        return memory_format("/%s/%s", target->settings->bucket, key);
    }
    return memory_format("/%s", key);
}

/* A name without a value goes out bare, as in `?uploads`: the spelling of S3's own documents. */
static char *url_of(const struct s3_target *target, const char *path, const struct s3_request *request)
{
    struct byte_buffer out = {0};
    char *encoded = sigv4_encode(path, 1);

    byte_buffer_add_format(&out, "%s%s", target->origin, encoded);
    free(encoded);
    for (size_t i = 0; i < request->query_count; i++) {
        char *name = sigv4_encode(request->query[i].name, 0);
        char *value = sigv4_encode(request->query[i].value, 0);
        byte_buffer_add_format(&out, "%s%s%s%s", i == 0 ? "?" : "&", name, value[0] != '\0' ? "=" : "", value);
        free(name);
        free(value);
    }
    return byte_buffer_take(&out);
}

static bool authorize(const struct s3_target *target, const struct sigv4_request *request, const char *timestamp,
                      struct s3_signed *out)
{
    const struct sigv4_credentials credentials = {.access_key = target->access_key,
                                                  .secret_key = target->secret_key,
                                                  .region = target->settings->region,
                                                  .service = "s3"};
    char *authorization = target->access_key != NULL ? sigv4_authorization(request, &credentials, timestamp) : NULL;

    if (authorization == NULL) {
        return false;
    }
    for (size_t i = 0; i < request->header_count; i++) {
        out->headers[out->header_count++] =
            memory_format("%s: %s", request->headers[i].name, request->headers[i].value);
    }
    out->headers[out->header_count++] = memory_format("authorization: %s", authorization);
    free(authorization);
    return true;
}

bool s3_request_sign(const struct s3_target *target, const struct s3_request *request, struct wall_ms now,
                     struct s3_signed *out)
{
    char timestamp[TIMESTAMP_SIZE];
    char hash[HASH_TEXT_SIZE] = UNSIGNED;
    unsigned char md5[MD5_TEXT_SIZE];
    struct headers headers = {.count = 0};

    memset(out, 0, sizeof *out);
    format_timestamp(now, timestamp);
    bool leave_unsigned = target->tls && request->check_md5;
    if (!leave_unsigned && !hash_body(request->body, hash)) {
        return false;
    }
    add_header(&headers, "host", target->host);
    add_header(&headers, "x-amz-date", timestamp);
    add_header(&headers, "x-amz-content-sha256", hash);
    if (request->content_type != NULL) {
        add_header(&headers, "content-type", request->content_type);
    }
    if (request->check_md5 && request->body != NULL) {
        EVP_EncodeBlock(md5, request->body->md5, sizeof request->body->md5);
        add_header(&headers, "content-md5", (const char *)md5);
    }
    if (request->range != NULL) {
        add_header(&headers, "range", request->range);
    }
    if (target->session_token != NULL) {
        add_header(&headers, "x-amz-security-token", target->session_token);
    }
    if (request->encrypt) {
        add_encryption(&headers, target->settings);
    }
    char *path = path_of(target, request);
    struct sigv4_request signing = {.method = request->method,
                                    .path = path,
                                    .query = request->query,
                                    .query_count = request->query_count,
                                    .headers = headers.items,
                                    .header_count = headers.count,
                                    .payload_hash = hash};
    out->url = url_of(target, path, request);
    bool made = authorize(target, &signing, timestamp, out);
    free(path);
    return made;
}

void s3_signed_free(struct s3_signed *out)
{
    for (size_t i = 0; i < out->header_count; i++) {
        free(out->headers[i]);
    }
    free(out->url);
    memset(out, 0, sizeof *out);
}
