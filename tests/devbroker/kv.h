/*
 * The kv rows (spec 01, 1.4): small documents with versions and expiry, changed in all-or-nothing batches.
 */
#ifndef DEVBROKER_KV_H
#define DEVBROKER_KV_H

#include "system.h"

#include <pthread.h>

#include "text.h"

#define KV_FOREVER INT64_MAX

struct kv_row {
    struct slice namespace;
    struct slice key;
    struct slice value; /* jsonb's text */
    int64_t version;
    int64_t updated_at_us;
    int64_t expires_at_us; /* KV_FOREVER: never */
};

struct kv_bucket { /* a rate limit */
    double tokens;
    int64_t at_ms;
};

struct kv {
    pthread_mutex_t lock;
    struct kv_row **rows; /* by (namespace, key), as bytes */
    size_t count;
    size_t capacity;
    int64_t last_version;
    struct kv_bucket writes;
    struct kv_bucket reads;
};

void kv_start(struct kv *kv);
void kv_end(struct kv *kv);
/* The caller holds the lock for all of these. Expired rows are there until they are replaced: kv_find_live skips them. */
size_t kv_position(const struct kv *kv, struct slice namespace, struct slice key, bool *found);
struct kv_row *kv_find_live(const struct kv *kv, struct slice namespace, struct slice key, int64_t now_us);
/* Takes the row out, or puts this one in its place; what was there is returned for the caller to free or put back. */
struct kv_row *kv_replace(struct kv *kv, struct slice namespace, struct slice key, struct kv_row *row);
struct kv_row *kv_row_make(struct kv *kv, struct slice namespace, struct slice key, struct slice value, int64_t now_us,
                           int64_t expires_at_us);
void kv_row_free(struct kv_row *row);
/* One token of a bucket that holds burst and gains a second's worth of rate; false when it is empty. */
bool kv_take_token(struct kv_bucket *bucket, double rate, double burst);

/* Adds a value the way jsonb spells it: keys by length and bytes, the last of equals, numbers without exponent, a
 * blank after each colon and comma. False for what jsonb can't hold (NUL, lone surrogates, absurd numbers, too deep). */
bool jsonb_add(struct slice value, struct text *text);

#endif
