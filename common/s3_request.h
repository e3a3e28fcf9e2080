/*
 * A request to S3, built and signed: URL and headers.
 */
#ifndef COMMON_S3_REQUEST_H
#define COMMON_S3_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/object_store.h"
#include "common/settings.h"
#include "common/sigv4.h"

/* Where requests go: scheme and host as the URL has them, and as the Host header says them. */
struct s3_target {
    const struct settings *settings;
    char *access_key; /* NULL: not known yet, and nothing can be signed */
    char *secret_key;
    char *session_token; /* of temporary credentials, else NULL */
    char *origin; /* "https://bucket.s3.eu-central-1.amazonaws.com", with a port where it isn't the scheme's own */
    char *host;
    bool tls;
};

void s3_target_init(struct s3_target *target, const struct settings *settings);
void s3_target_free(struct s3_target *target);
/* Copies them, in the place of the settings' or of those before. */
void s3_target_set_credentials(struct s3_target *target, const char *access_key, const char *secret_key,
                               const char *session_token);

struct s3_request {
    const char *method;
    const char *key;                 /* NULL: the bucket itself */
    const struct sigv4_query *query; /* in the order of their encoded names */
    size_t query_count;
    const char *content_type;       /* NULL: none */
    const struct object_body *body; /* NULL: none */
    const char *range;              /* NULL: the whole object */
    bool check_md5;                 /* send the body's MD5 */
    bool encrypt;                   /* send the SSE headers that are configured */
};

#define S3_HEADERS_MAX 11

struct s3_signed {
    char *url;
    char *headers[S3_HEADERS_MAX]; /* "name: value" */
    size_t header_count;
};

/* now: what the service takes for the time. False where OpenSSL refuses; s3_signed_free() either way. */
bool s3_request_sign(const struct s3_target *target, const struct s3_request *request, struct wall_ms now,
                     struct s3_signed *out);
void s3_signed_free(struct s3_signed *out);

#endif
