/*
 * The committed windows of a queue, from their manifests (spec 2.3), in the order of k: for the commands that read the
 * lake (spec 4.4). The manifests' folder is listed page by page, manifests are fetched a few ahead; in memory are one
 * page of numbers and the manifests that were fetched and not yet taken.
 *
 * What is there is what was uploaded: a manifest stands before its pointer moves (spec 3.5), so the last window may be
 * one whose commit is under way. Who has the pointer gives its k as last_k.
 */
#ifndef COMMON_LAKE_WINDOW_LIST_H
#define COMMON_LAKE_WINDOW_LIST_H

#include "common/lake/manifest.h"
#include "common/object_store.h"
#include "common/reactor.h"

struct window_list;

struct window_query {
    const char *prefix; /* QUEEN_S3_PREFIX */
    struct name queue;
    int64_t first_k; /* 0: from the first on */
    int64_t last_k;  /* 0: to the last */
    bool has_since;
    bool has_until;
    struct broker_us since; /* only windows that end after it; found by bisection: windows of a queue tile time (2.5) */
    struct broker_us until; /* only windows that start before it */
};

struct window_entry {
    int64_t k;
    const char *key;                 /* of the manifest */
    const struct manifest *manifest; /* NULL where it can't be had or is none: error says why */
    struct error error;
};

enum window_list_state {
    WINDOW_LIST_WAIT,   /* not there yet: ready() will be called */
    WINDOW_LIST_WINDOW, /* *entry is the next, valid until the next call with this list */
    WINDOW_LIST_END,
    WINDOW_LIST_FAILED /* the listing failed: *error; it stays so */
};

/* Called from the loop, once for each WINDOW_LIST_WAIT; may close the list. */
typedef void window_list_ready(void *argument);

/* What the query points to is read during the call. NULL and *error: a prefix and queue too long for a key. */
struct window_list *window_list_open(struct reactor *reactor, struct object_store *store,
                                     const struct window_query *query, window_list_ready *ready, void *argument,
                                     struct error *error);

/* Calls that fail for a passing reason are made again, five times in a few seconds. One manifest that can't be had
 * doesn't end the list: whether it may be missing is for who asked. */
enum window_list_state window_list_take(struct window_list *list, struct window_entry *entry, struct error *error);

void window_list_close(struct window_list *list);

#endif
