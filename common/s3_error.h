/*
 * What an answer of S3 means: its status and, where there is a body, the <Code> in it.
 */
#ifndef COMMON_S3_ERROR_H
#define COMMON_S3_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/http.h"
#include "common/object_store.h"

/* The fields of an <Error>; "" where absent, or of a spelling that can't be right. */
struct s3_fault {
    char code[64];
    char region[64];
    char endpoint[256];
};

/* False, and all fields "", where the body isn't an <Error>. */
bool s3_fault_read(const char *body, size_t size, struct s3_fault *fault);

/* Turns an answer that isn't a good one into *error, by spec 3.9's list. key: what the call was about, for people. */
void s3_error_classify(enum store_operation operation, const char *key, const struct http_response *response,
                       const struct s3_fault *fault, struct error *error);

/* The service finds our clock wrong: the answer's own Date is to be read. */
bool s3_fault_is_skew(const struct s3_fault *fault);

#endif
