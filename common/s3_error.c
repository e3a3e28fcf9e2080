/*
 * Answers told apart, and each that a person can do something about answered with what to check.
 *
 * The code decides before the status does, since gateways differ in statuses and since CompleteMultipartUpload carries
 * errors under 200. What a code isn't known for, its status is. A service's own <Message> is never passed on: some
 * quote the access key or what was signed.
 *
 * Sources: Amazon S3 API Reference, "Error responses" (list of error codes), "CompleteMultipartUpload"; Amazon S3 User
 * Guide, "Making requests using the REST API" (request redirection).
 */
#include "common/s3_error.h"

#include <stdio.h>
#include <string.h>

#include "common/s3_xml.h"

struct known_code {
    const char *code;
    enum qs_error means;
    const char *check; /* NULL: nothing to add */
};

static const struct known_code known_codes[] = {
    {"AccessDenied", QS_ERROR_FORBIDDEN,
     "check the bucket's policy (queen-s3 policy prints what it needs), QUEEN_S3_BUCKET and QUEEN_S3_PREFIX"},
    {"AuthorizationHeaderMalformed", QS_ERROR_REFUSED, "check QUEEN_S3_REGION"},
    {"BadDigest", QS_ERROR_INTEGRITY, NULL},
    {"BandwidthLimitExceeded", QS_ERROR_STATUS, NULL},
    {"InternalError", QS_ERROR_STATUS, NULL},
    {"InvalidAccessKeyId", QS_ERROR_FORBIDDEN, "check QUEEN_S3_ACCESS_KEY"},
    {"InvalidBucketName", QS_ERROR_REFUSED, "check QUEEN_S3_BUCKET"},
    {"InvalidRegion", QS_ERROR_REFUSED, "check QUEEN_S3_REGION"},
    {"KMS.DisabledException", QS_ERROR_REFUSED, "check QUEEN_S3_SSE_KMS_KEY_ID"},
    {"KMS.NotFoundException", QS_ERROR_REFUSED, "check QUEEN_S3_SSE_KMS_KEY_ID"},
    {"NoSuchBucket", QS_ERROR_REFUSED,
     "check QUEEN_S3_BUCKET, and QUEEN_S3_PATH_STYLE (a gateway mostly wants it true, AWS false)"},
    {"NoSuchKey", QS_ERROR_NOT_FOUND, NULL},
    {"NoSuchUpload", QS_ERROR_NOT_FOUND, NULL},
    {"NoSuchVersion", QS_ERROR_NOT_FOUND, NULL},
    {"NotFound", QS_ERROR_NOT_FOUND, NULL},
    {"NotImplemented", QS_ERROR_REFUSED, "check QUEEN_S3_SSE: this service may not know it"},
    {"OperationAborted", QS_ERROR_STATUS, NULL},
    {"RequestExpired", QS_ERROR_FORBIDDEN, "check the clock of this machine"},
    {"RequestTimeTooSkewed", QS_ERROR_STATUS, NULL},
    {"RequestTimeout", QS_ERROR_STATUS, NULL},
    {"ServiceUnavailable", QS_ERROR_STATUS, NULL},
    {"SignatureDoesNotMatch", QS_ERROR_FORBIDDEN, "check QUEEN_S3_SECRET_KEY and QUEEN_S3_REGION"},
    {"SlowDown", QS_ERROR_STATUS, NULL},
    {"Throttling", QS_ERROR_STATUS, NULL},
    {"ThrottlingException", QS_ERROR_STATUS, NULL},
    {"TooManyRequests", QS_ERROR_STATUS, NULL},
    {"XAdminUserNotFound", QS_ERROR_FORBIDDEN, "check QUEEN_S3_ACCESS_KEY"}, /* versitygw, under 404 */
    {"XAmzContentSHA256Mismatch", QS_ERROR_INTEGRITY, NULL},
};

static const struct known_code *find_code(const char *code)
{
    for (size_t i = 0; i < sizeof known_codes / sizeof *known_codes; i++) {
        if (strcmp(known_codes[i].code, code) == 0) {
            return &known_codes[i];
        }
    }
    return NULL;
}

/* Only what such a field can look like goes on: it ends in a log and in advice to set a variable. */
static void copy_word(char *out, size_t out_size, const char *text, size_t size)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:";

    out[0] = '\0';
    if (size < out_size && strspn(text, allowed) == size) {
        memcpy(out, text, size);
        out[size] = '\0';
    }
}

struct reading {
    struct s3_fault *fault;
    bool is_error;
};

static void take_element(void *argument, const char *path, const char *text, size_t size)
{
    struct reading *reading = argument;
    struct s3_fault *fault = reading->fault;

    if (strcmp(path, "Error/Code") == 0) {
        copy_word(fault->code, sizeof fault->code, text, size);
    } else if (strcmp(path, "Error/Region") == 0) {
        copy_word(fault->region, sizeof fault->region, text, size);
    } else if (strcmp(path, "Error/Endpoint") == 0) {
        copy_word(fault->endpoint, sizeof fault->endpoint, text, size);
    } else if (strcmp(path, "Error") == 0) {
        reading->is_error = true;
    }
}

bool s3_fault_read(const char *body, size_t size, struct s3_fault *fault)
{
    struct reading reading = {.fault = fault};

    memset(fault, 0, sizeof *fault);
    if (!s3_xml_read(body, size, take_element, &reading) || !reading.is_error) {
        memset(fault, 0, sizeof *fault);
        return false;
    }
    return true;
}

bool s3_fault_is_skew(const struct s3_fault *fault)
{
    return strcmp(fault->code, "RequestTimeTooSkewed") == 0;
}

/* A 404 with a code that isn't known for it speaks of something else than an object: a gateway answers so to a user
 * that it doesn't know, and that must not pass for "no such manifest". */
static enum qs_error meaning_of_status(int status, bool has_code)
{
    if (status == 408 || status == 429 || status >= 500) {
        return QS_ERROR_STATUS;
    }
    switch (status) {
    case 403: return QS_ERROR_FORBIDDEN;
    case 404: return has_code ? QS_ERROR_REFUSED : QS_ERROR_NOT_FOUND;
    default: return QS_ERROR_REFUSED;
    }
}

static const char *check_of_status(int status)
{
    switch (status) {
    case 301:
    case 302:
    case 307:
    case 308: return "check QUEEN_S3_ENDPOINT and QUEEN_S3_REGION";
    case 400: return "check QUEEN_S3_ENDPOINT, QUEEN_S3_REGION and QUEEN_S3_PATH_STYLE";
    case 401:
    case 403:
        return "check QUEEN_S3_ACCESS_KEY and QUEEN_S3_SECRET_KEY, and that they may use the bucket and the prefix";
    default: return NULL;
    }
}

/* What is said after the colon; "" where there is nothing to say. */
static void advise(const struct http_response *response, const struct s3_fault *fault, char *out, size_t size)
{
    const char *region = response->region[0] != '\0' ? response->region : fault->region;
    const struct known_code *known = find_code(fault->code);
    const char *check = known != NULL ? known->check : check_of_status(response->status);
    bool redirect = response->status >= 300 && response->status < 400;
    bool wrong_region = redirect || response->status == 400;
    char word[64];

    copy_word(word, sizeof word, region, strlen(region));
    if (wrong_region && word[0] != '\0') {
        snprintf(out, size,
                 ": the bucket is in another region: set QUEEN_S3_REGION=%s, and the QUEEN_S3_ENDPOINT of it", word);
    } else if (redirect && fault->endpoint[0] != '\0') {
        snprintf(out, size, ": the bucket answers at %s: set QUEEN_S3_REGION and QUEEN_S3_ENDPOINT to its region",
                 fault->endpoint);
    } else {
        snprintf(out, size, "%s%s", check != NULL ? ": " : "", check != NULL ? check : "");
    }
}

void s3_error_classify(enum store_operation operation, const char *key, const struct http_response *response,
                       const struct s3_fault *fault, struct error *error)
{
    const struct known_code *known = find_code(fault->code);
    enum qs_error means = known != NULL ? known->means : meaning_of_status(response->status, fault->code[0] != '\0');
    char advice[384];

    /* A code that says "no" under a status that says "later": the status is the newer news. */
    if (known != NULL && response->status >= 500 && means == QS_ERROR_REFUSED && response->status != 501) {
        means = QS_ERROR_STATUS;
    }
    advise(response, fault, advice, sizeof advice);
    error_set(error, means, "%s %s: %d%s%s%s", store_operation_name(operation), key, response->status,
              fault->code[0] != '\0' ? " " : "", fault->code, advice);
    error->status = response->status;
    error->retry_after_ms = response->retry_after_ms;
}
