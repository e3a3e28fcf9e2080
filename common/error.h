/*
 * What a failed call says about itself.
 *
 * A call that can fail returns 0 or a negative enum qs_error and fills a struct error: its kind, whether the same call
 * can succeed later without anything changing here, what the other side asked us to wait, and one line for a person
 * that says what failed, with which value, and what is accepted or what to check.
 */
#ifndef COMMON_ERROR_H
#define COMMON_ERROR_H

#include <stdbool.h>
#include <stdint.h>

enum qs_error {
    QS_OK = 0,
    QS_ERROR_TRANSPORT = -1,     /* no whole answer: name, connect, TLS, timeout, reset; retriable (spec 1.6) */
    QS_ERROR_STATUS = -2,        /* a passing status: 408, 429, 5xx, or an S3 code that means "again"; retriable */
    QS_ERROR_REFUSED = -3,       /* any other 4xx or a redirect: not retriable as it is */
    QS_ERROR_BODY = -4,          /* a good status with a body that can't be what was asked for; retriable */
    QS_ERROR_NOT_FOUND = -5,     /* the object isn't there (404) */
    QS_ERROR_FORBIDDEN = -6,     /* 403; kept apart from REFUSED because a missing key can answer so (spec 4.4) */
    QS_ERROR_INTEGRITY = -7,     /* what was stored differs from what was sent (ETag); retriable */
    QS_ERROR_UNKNOWN_QUEUE = -8, /* UNKNOWN_TOPIC_OR_PARTITION */
    QS_ERROR_NO_ROOM = -9,       /* the memory budget does not hold it now; retriable */
    QS_ERROR_NO_MEMORY = -10,    /* the allocator said no */
    QS_ERROR_INPUT = -11,        /* a value that isn't what is accepted */
    QS_ERROR_SYSTEM = -12        /* a system call failed: errno is told in the message */
};

struct error {
    enum qs_error code;
    bool retriable;
    int status;             /* HTTP status, 0 where there was no answer */
    int64_t retry_after_ms; /* from Retry-After in seconds, to be kept exactly; -1 where there was none */
    char message[512];      /* one line, no line feed; never holds a secret */
};

/* Fills *error (may be NULL) and returns code, so that a caller can `return error_set(...)`. retriable follows from the
 * code as said above; status is 0 and retry_after_ms -1. */
int error_set(struct error *error, enum qs_error code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As error_set(), but not retriable, whatever the code says: trying again can't mend it. */
int error_refuse(struct error *error, enum qs_error code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set with ": " and the text of errno at the end. */
int error_set_errno(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts a few words and ": " before the message that is there, cutting at the end. */
void error_prefix(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

void error_clear(struct error *error);

#endif
