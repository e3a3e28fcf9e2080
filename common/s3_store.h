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

#endif
