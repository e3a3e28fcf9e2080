/*
 * The bucket as a command sees it: the asynchronous table of object_store.h, driven to an end by a reactor of its own.
 * Calls here block. Whatever may pass (spec 3.9) is tried again a few times; a command then gives up, other than the
 * sink, because somebody waits for it.
 */
#ifndef SUPERVISOR_COMMANDS_BUCKET_H
#define SUPERVISOR_COMMANDS_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lake/key.h"
#include "common/lake/window_list.h"
#include "common/object_store.h"
#include "common/reactor.h"
#include "common/settings.h"

struct bucket {
    struct settings settings;
    struct reactor *reactor;
    struct object_store *store;
};

/* Reads the settings, from file too where it isn't NULL. 0, or the exit code to end with once *error has been told. A
 * folder must be there: what only reads makes none. */
int bucket_open(struct bucket *bucket, const char *file, struct error *error);
void bucket_close(struct bucket *bucket);

/* One turn of the loop, waiting for whatever comes next. */
void bucket_turn(struct bucket *bucket);

/* All keys that begin so, in key order; with `keep` only those for which it says true (called from the loop, so it asks
 * for nothing itself). keys: to be zeroed before, bucket_keys_free() after. */
struct bucket_keys {
    char **keys;
    size_t count;
    size_t capacity;
};
typedef bool bucket_keep(void *argument, const char *key);
int bucket_list(struct bucket *bucket, const char *prefix, bucket_keep *keep, void *argument, struct bucket_keys *keys,
                struct error *error);
void bucket_keys_free(struct bucket_keys *keys);

/* Asks for many objects, at most BUCKET_UNDER_WAY at a time, and gives the answers in order. */
#define BUCKET_UNDER_WAY 16
enum bucket_question { BUCKET_SIZE, BUCKET_BYTES };
struct bucket_answer {
    struct error error; /* code 0, QS_ERROR_NOT_FOUND, or what ended it */
    uint64_t size;
    char *bytes; /* BUCKET_BYTES; the callee's if taken: set to NULL to keep */
};
struct bucket_asking {
    enum bucket_question question;
    size_t size_limit; /* BUCKET_BYTES */
    /* The key of the which-th object; NULL: no more. Valid until the next call. */
    const char *(*next)(void *argument, size_t which);
    /* Nonzero ends the asking with that. */
    int (*take)(void *argument, size_t which, struct bucket_answer *answer);
    void *argument;
};
/* 0, or what take() returned. */
int bucket_ask(struct bucket *bucket, const struct bucket_asking *asking);
/* The size of one object; *error as in struct bucket_answer. */
uint64_t bucket_ask_size(struct bucket *bucket, const char *key, struct error *error);

/* Bytes of an object, under way. Zeroed: none. */
struct bucket_fetch {
    struct bucket *bucket;
    const char *key;
    uint64_t position;
    size_t size;
    store_get_done *done;
    void *argument;
    struct store_call *call;
    struct timer timer;
    int tries;
};
/* Doesn't block: done() is called from bucket_turn(). key must stay until then; the object must hold these bytes. */
void bucket_fetch_range(struct bucket *bucket, struct bucket_fetch *fetch, const char *key, uint64_t position,
                        size_t size, store_get_done *done, void *argument);
void bucket_fetch_cancel(struct bucket *bucket, struct bucket_fetch *fetch);

/* Calls `take` for each window that the query finds, in order. 0; what take() returned where that isn't 0 and so ended
 * it; or a negative error->code where the list failed. */
typedef int bucket_window(void *argument, const struct window_entry *entry);
int bucket_windows(struct bucket *bucket, const struct window_query *query, bucket_window *take, void *argument,
                   struct error *error);

/* Windows have no hole in k (spec 2.5). 0 where `entry` follows window last_k (0: none was before); else negative, and
 * *error names the manifest that is missing. */
int bucket_check_follows(const struct window_query *query, int64_t last_k, const struct window_entry *entry,
                         struct error *error);

/* The exit code for a failure: of what was found (COMMAND_FAULT), or to find anything (COMMAND_UNREACHABLE). */
int bucket_exit_code(const struct error *error);
/* Says that a query found nothing; COMMAND_FAULT. */
int command_no_window(const struct bucket *bucket, const struct window_query *query);

#endif
