/*
 * Faults on order: what a real broker, its database or the network does on a bad day, on the call a test names.
 *
 * A fault is a rule: calls of its route that match are let through `skip` times, then hit `count` times (-1: for ever).
 * The first rule that hits a call is the only one for it.
 */
#ifndef DEVBROKER_FAULTS_H
#define DEVBROKER_FAULTS_H

#include "system.h"

#include <pthread.h>

#include "text.h"

enum fault_kind {
    FAULT_STATUS,       /* this status, no effect; with retryAfter */
    FAULT_DELAY,        /* answers after delayMs */
    FAULT_RESET_BEFORE, /* connection closed, no effect */
    FAULT_RESET_AFTER,  /* the effect, then the connection closed */
    FAULT_CUT,          /* the effect, half of the body under its whole Content-Length */
    FAULT_GARBLED,      /* the effect, a body that is no JSON */
    FAULT_WRONG_ENTRY,  /* entries in another order, or of another name */
    FAULT_EMPTY,        /* fetch: no records below the watermark */
    FAULT_ENTRY_ERROR,  /* fetch, changed: this error in the entry */
    FAULT_LAG,          /* fetch, changed: answers of a node that is lagUs behind */
    FAULT_HANG          /* no answer until the client goes away */
};

struct fault {
    int64_t id;
    char route[16]; /* fetch, changed, kv, queues, push, configure; any */
    enum fault_kind kind;
    int64_t count;
    int64_t skip;
    int64_t hits;
    unsigned status;
    int retry_after;
    int64_t delay_ms;
    int64_t lag_us;
    char error[128];
    /* Which calls; .at NULL: all. */
    struct slice queue;              /* an entry's queue */
    struct slice partition;          /* … and partition */
    struct slice key_contains;       /* kv: a write's key contains this */
    struct slice every_key_contains; /* kv: every write's key does */
    struct slice op;                 /* kv: an operation of this name (with key_contains: that operation) */
};

struct faults {
    pthread_mutex_t lock;
    struct fault **rules;
    size_t count;
    int64_t next_id;
};

void faults_start(struct faults *faults);
void faults_end(struct faults *faults);
/* Adds the rules of a control call's body: one object, or an array of them. Returns NULL, or what is wrong. */
const char *faults_add(struct faults *faults, struct slice body);
void faults_clear(struct faults *faults);
void faults_list(struct faults *faults, struct text *text);
/* The rule that hits this call, as a copy to be given to fault_free(), or NULL. */
struct fault *faults_take(struct faults *faults, const char *route, struct slice body);
void fault_free(struct fault *fault);
/* Whether an entry is one that the fault means. */
bool fault_hits(const struct fault *fault, struct slice queue, struct slice partition);

#endif
