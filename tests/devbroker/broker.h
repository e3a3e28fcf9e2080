/*
 * The development broker as one struct, and what each route is given.
 *
 * It is a stand-in for Queen that tests and benchmarks run against: memory only, one process, faithful to what the
 * sink's specification says of the HTTP API (spec 01), and obedient to control routes under /_dev/ that no real
 * broker has.
 */
#ifndef DEVBROKER_BROKER_H
#define DEVBROKER_BROKER_H

#include "answer.h"
#include "embed.h"
#include "faults.h"
#include "kv.h"
#include "options.h"
#include "stats.h"
#include "store.h"

enum safe_mode { SAFE_NORMAL, SAFE_PINNED, SAFE_DEGRADED };

struct broker {
    struct options options;
    struct store store;
    struct kv kv;
    struct faults faults;
    struct stats stats;
    struct dedup *dedup;
    struct embed *embed;          /* NULL: no sink is embedded */
    pthread_mutex_t control_lock; /* what is below */
    enum safe_mode safe_mode;
    int64_t safe_pin_us;
    bool database_down;
    struct slice *buffered; /* push bodies that came while the database was down */
    size_t buffered_count;
    atomic_bool stopping;
};

struct call {
    struct broker *broker;
    struct slice body;   /* .at is never NULL */
    struct fault *fault; /* one that the route itself has to play, or NULL */
};

/* Each fills the answer and locks what it needs. */
void fetch_answer(const struct call *call, struct answer *answer);
void changed_answer(const struct call *call, struct answer *answer);
void push_answer(const struct call *call, struct answer *answer);
void kv_answer(const struct call *call, struct answer *answer);
void queues_answer(const struct call *call, struct answer *answer);
void configure_answer(const struct call *call, struct answer *answer);
void delete_queue_answer(const struct call *call, struct slice name, struct answer *answer);

/* safeTime by the version's rule, the pin and the degraded mode; the store's lock is held, for reading at least. */
int64_t broker_safe_time(struct broker *broker, bool *degraded);
bool broker_database_is_down(struct broker *broker);

/* Remembers the ids of pushes (push.c). */
struct dedup *dedup_start(void);
void dedup_end(struct dedup *dedup);
/* Writes a push body to the log; the items' answers go to answer. Used again for what was buffered. */
void push_apply(struct broker *broker, struct slice body, struct answer *answer);

#endif
