/*
 * Signature Version 4 in four steps, each a function below: the canonical request, its hash in a string to sign, a key
 * derived from the secret by four HMACs over the credential's scope, and the HMAC of the string with that key.
 *
 * What is signed must be what is sent, byte for byte, or the service answers SignatureDoesNotMatch; so the encoding
 * used here is exported, and whoever builds the URL uses it too.
 *
 * Two rules are S3's own. A path is encoded once and `.`, `..` and `//` stay (other services encode twice and
 * normalise). And the payload's hash is the value of the header x-amz-content-sha256, which may be the word
 * UNSIGNED-PAYLOAD.
 *
 * Sources: AWS General Reference, "Create a signed AWS API request"; Amazon S3 API Reference, "Signature Calculations
 * for the Authorization Header: Transferring Payload in a Single Chunk"; AWS's published signing test suite, against
 * which tests/unit/sigv4_test.c holds it.
 */
#include "common/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/hex.h"
#include "common/memory.h"
#include "common/text.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define DATE_SIZE 8 /* YYYYMMDD at the start of a timestamp */
#define HASH_SIZE 32

static bool is_unreserved(unsigned char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
           byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

static void add_encoded(struct byte_buffer *out, const char *text, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";

    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (is_unreserved(*at) || (keep_slash && *at == '/')) {
            byte_buffer_add(out, at, 1);
        } else {
            char escape[3] = {'%', digits[*at >> 4], digits[*at & 15]};
            byte_buffer_add(out, escape, sizeof escape);
        }
    }
}

char *sigv4_encode(const char *text, int keep_slash)
{
    struct byte_buffer out = {0};

    add_encoded(&out, text, keep_slash != 0);
    return byte_buffer_take(&out);
}

struct encoded_pair {
    char *name;
    char *value;
};

static int compare_pairs(const void *left, const void *right)
{
    const struct encoded_pair *a = left;
    const struct encoded_pair *b = right;
    int order = strcmp(a->name, b->name);

    return order != 0 ? order : strcmp(a->value, b->value);
}

/* The order is that of the encoded spellings: `Param` before `Param-3`, and both after `%E1`. */
static void add_query(struct byte_buffer *out, const struct sigv4_request *request)
{
    struct encoded_pair *pairs = memory_new(request->query_count, sizeof *pairs);

    for (size_t i = 0; i < request->query_count; i++) {
        pairs[i].name = sigv4_encode(request->query[i].name, 0);
        pairs[i].value = sigv4_encode(request->query[i].value, 0);
    }
    qsort(pairs, request->query_count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < request->query_count; i++) {
        byte_buffer_add_format(out, "%s%s=%s", i == 0 ? "" : "&", pairs[i].name, pairs[i].value);
        free(pairs[i].name);
        free(pairs[i].value);
    }
    free(pairs);
}

/* Headers of one name keep the order in which they were given, and qsort() isn't stable: they are ordered by where
 * they stand in the request's own array. */
static int compare_headers(const void *left, const void *right)
{
    const struct sigv4_header *const *a = left;
    const struct sigv4_header *const *b = right;
    int order = strcmp((*a)->name, (*b)->name);

    return order != 0 ? order : (*a > *b) - (*a < *b);
}

static const struct sigv4_header **sorted_headers(const struct sigv4_request *request)
{
    const struct sigv4_header **sorted = memory_new(request->header_count, sizeof(*sorted));

    for (size_t i = 0; i < request->header_count; i++) {
        sorted[i] = &request->headers[i];
    }
    qsort(sorted, request->header_count, sizeof(*sorted), compare_headers);
    return sorted;
}

/* Without blanks at either end, and each run of them inside as one space, within quotes too. */
static void add_header_value(struct byte_buffer *out, const char *value)
{
    bool blank = false;
    bool begun = false;

    for (const char *at = value; *at != '\0'; at++) {
        if (text_is_blank(*at)) {
            blank = true;
            continue;
        }
        if (blank && begun) {
            byte_buffer_add(out, " ", 1);
        }
        byte_buffer_add(out, at, 1);
        begun = true;
        blank = false;
    }
}

static void add_headers(struct byte_buffer *out, const struct sigv4_header *const *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(sorted[i]->name, sorted[i - 1]->name) == 0) {
            byte_buffer_add(out, ",", 1);
        } else {
            byte_buffer_add_format(out, "%s%s:", i == 0 ? "" : "\n", sorted[i]->name);
        }
        add_header_value(out, sorted[i]->value);
    }
    byte_buffer_add(out, "\n", 1);
}

static void add_signed_names(struct byte_buffer *out, const struct sigv4_header *const *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(sorted[i]->name, sorted[i - 1]->name) != 0) {
            byte_buffer_add_format(out, "%s%s", i == 0 ? "" : ";", sorted[i]->name);
        }
    }
}

char *sigv4_canonical_request(const struct sigv4_request *request)
{
    const struct sigv4_header **sorted = sorted_headers(request);
    struct byte_buffer out = {0};

    byte_buffer_add_format(&out, "%s\n", request->method);
    add_encoded(&out, request->path[0] == '\0' ? "/" : request->path, true);
    byte_buffer_add(&out, "\n", 1);
    add_query(&out, request);
    byte_buffer_add(&out, "\n", 1);
    add_headers(&out, sorted, request->header_count);
    byte_buffer_add(&out, "\n", 1);
    add_signed_names(&out, sorted, request->header_count);
    byte_buffer_add_format(&out, "\n%s", request->payload_hash);
    free(sorted);
    return byte_buffer_take(&out);
}

char *sigv4_string_to_sign(const struct sigv4_request *request, const struct sigv4_credentials *credentials,
                           const char *timestamp)
{
    char *canonical = sigv4_canonical_request(request);
    unsigned char hash[HASH_SIZE];
    char hex[2 * HASH_SIZE + 1];

    int hashed = EVP_Digest(canonical, strlen(canonical), hash, NULL, EVP_sha256(), NULL);
    free(canonical);
    if (hashed != 1) {
        return NULL;
    }
    *hex_write(hex, hash, sizeof hash) = '\0';

    struct byte_buffer out = {0};
    byte_buffer_add_format(&out, ALGORITHM "\n%s\n%.*s/%s/%s/aws4_request\n%s", timestamp, DATE_SIZE, timestamp,
                           credentials->region, credentials->service, hex);
    return byte_buffer_take(&out);
}

static bool hmac(const unsigned char *key, size_t key_size, const char *text, size_t size, unsigned char out[HASH_SIZE])
{
    return HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)text, size, out, NULL) != NULL;
}

/* Each key comes from the one before; the secret and all that is derived from it is wiped. */
static bool sign(const char *text, const struct sigv4_credentials *credentials, const char *timestamp,
                 unsigned char out[HASH_SIZE])
{
    struct byte_buffer first = {0};

    byte_buffer_add_format(&first, "AWS4%s", credentials->secret_key);
    unsigned char key[HASH_SIZE];
    bool made = hmac((const unsigned char *)first.bytes, first.size, timestamp, DATE_SIZE, key) &&
                hmac(key, sizeof key, credentials->region, strlen(credentials->region), key) &&
                hmac(key, sizeof key, credentials->service, strlen(credentials->service), key) &&
                hmac(key, sizeof key, "aws4_request", strlen("aws4_request"), key) &&
                hmac(key, sizeof key, text, strlen(text), out);
    OPENSSL_cleanse(key, sizeof key);
    OPENSSL_cleanse(first.bytes, first.size);
    byte_buffer_free(&first);
    return made;
}

char *sigv4_authorization(const struct sigv4_request *request, const struct sigv4_credentials *credentials,
                          const char *timestamp)
{
    char *text = sigv4_string_to_sign(request, credentials, timestamp);
    const struct sigv4_header **sorted = sorted_headers(request);
    unsigned char signature[HASH_SIZE];
    struct byte_buffer out = {0};

    bool made = text != NULL && sign(text, credentials, timestamp, signature);
    if (made) {
        char hex[2 * HASH_SIZE + 1];
        *hex_write(hex, signature, sizeof signature) = '\0';
        byte_buffer_add_format(
            &out, ALGORITHM " Credential=%s/%.*s/%s/%s/aws4_request, SignedHeaders=", credentials->access_key,
            DATE_SIZE, timestamp, credentials->region, credentials->service);
        add_signed_names(&out, sorted, request->header_count);
        byte_buffer_add_format(&out, ", Signature=%s", hex);
    }
    free(sorted);
    free(text);
    return made ? byte_buffer_take(&out) : NULL;
}
