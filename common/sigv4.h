/*
 * AWS Signature Version 4 in the Authorization header (own code: curl's, in the versions that distributions ship,
 * mis-signs keys and queries that need escaping). Source: AWS General Reference, "Signature Version 4 signing process";
 * S3's own rules: the path is encoded once and never normalised, x-amz-content-sha256 is always sent.
 */
#ifndef COMMON_SIGV4_H
#define COMMON_SIGV4_H

#include <stddef.h>
#include <time.h>

struct sigv4_header {
    const char *name; /* lower-case */
    const char *value;
};

struct sigv4_query {
    const char *name;  /* not yet encoded */
    const char *value; /* not yet encoded, "" for none */
};

struct sigv4_request {
    const char *method;
    const char *path; /* not yet encoded: "/bucket/key" */
    const struct sigv4_query *query;
    size_t query_count;
    const struct sigv4_header *headers; /* all are signed; must have host and x-amz-date */
    size_t header_count;
    const char *payload_hash; /* hex SHA-256 of the body, or UNSIGNED-PAYLOAD */
};

struct sigv4_credentials {
    const char *access_key;
    const char *secret_key;
    const char *region;
    const char *service; /* "s3" */
};

/* All three are malloc'ed; the latter two are NULL where OpenSSL refuses to hash. timestamp is YYYYMMDDTHHMMSSZ. */
char *sigv4_canonical_request(const struct sigv4_request *request);
char *sigv4_string_to_sign(const struct sigv4_request *request, const struct sigv4_credentials *credentials,
                           const char *timestamp);
char *sigv4_authorization(const struct sigv4_request *request, const struct sigv4_credentials *credentials,
                          const char *timestamp);

/* RFC 3986 encoding as AWS wants it (unreserved bytes stay, upper-case hex); keep_slash for paths. malloc. */
char *sigv4_encode(const char *text, int keep_slash);

#endif
