/*
 * The bucket of a sink: the object store that the options name, signed with credentials that are fetched and renewed
 * where they come from the default chain, and with errors that speak of the options.
 *
 * As in object_store.h a call is one attempt, returns at once, and its callback runs once, later, from the loop.
 */
#ifndef WORKER_CONNECTOR_BUCKET_H
#define WORKER_CONNECTOR_BUCKET_H

#include "common/object_store.h"
#include "common/reactor.h"
#include "worker/connector/body.h"
#include "worker/connector/options.h"

struct sink_bucket;
struct bucket_call;

/* options must outlive it; lookup is where credentials.h looks variables up. NULL: *error says why. */
struct sink_bucket *sink_bucket_open(struct reactor *reactor, const struct sink_options *options,
                                     settings_lookup *lookup, void *lookup_argument, struct error *error);
/* Ends calls under way; their callbacks do not run. */
void sink_bucket_close(struct sink_bucket *bucket);

/* key is copied, body borrowed until the callback has run or the call is cancelled. */
struct bucket_call *sink_bucket_put(struct sink_bucket *bucket, const char *key, const char *content_type,
                                    const struct object_body *body, store_done *done, void *argument);
struct bucket_call *sink_bucket_head(struct sink_bucket *bucket, const char *key, store_head_done *done,
                                     void *argument);
struct bucket_call *sink_bucket_remove(struct sink_bucket *bucket, const char *key, store_done *done, void *argument);
void sink_bucket_cancel(struct sink_bucket *bucket, struct bucket_call *call);

/* A body as the store takes it: its pieces are borrowed, its MD5 is worked out where the store of these options sends
 * one. False where OpenSSL refuses. */
bool sink_bucket_body(const struct sink_options *options, const struct sink_body *body, struct object_body *out);

/* In the message, what the store calls by the sink's variables is called by the names of [plugin_config]. */
void sink_error_reword(struct error *error);

#endif
