/*
 * The object store over S3's REST API: SigV4, path style or virtual host, SSE headers, the errors of spec 3.9.
 */
#ifndef COMMON_S3_STORE_H
#define COMMON_S3_STORE_H

#include "common/object_store.h"
#include "common/reactor.h"
#include "common/settings.h"

/* settings must outlive the store. Clock skew: a RequestTimeTooSkewed answer re-reads the server's Date. */
struct object_store *s3_store_create(struct reactor *reactor, const struct settings *settings, store_observe *observe,
                                     void *argument, struct error *error);

/* What is signed from now on, in the place of the settings' keypair; copied. session_token: NULL for none. Without
 * either every call fails, as not signed. */
void s3_store_set_credentials(struct object_store *store, const char *access_key, const char *secret_key,
                              const char *session_token);

/* size bytes (not 0) from position on, which must lie within the object: anything else is an error. For commands that
 * read a lake; it isn't in the table because the sink never asks for a part. */
struct store_call *s3_store_get_range(struct object_store *store, const char *key, uint64_t position, size_t size,
                                      store_get_done *done, void *argument);

#endif
