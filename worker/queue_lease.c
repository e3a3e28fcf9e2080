/*
 * The queue driver: the lease, and writes under it (spec 3.5, 3.6).
 *
 * One chain orders every kv write of a queue: a claim or refresh (which travels with other queues' through lease_calls),
 * or a guarded write; never two at once, so an instance never fences itself. After a lease write without an answer the
 * row is read back before the next. What a kv_precondition means is never guessed: both rows are read back, and they say
 * whether our write had landed, whether our lease merely expired, or whether another instance has it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/queue_internal.h"

#define EARLY_REFRESH_SHARE 3 /* a lease is refreshed every third of its TTL */
#define FIRST_LOOK_MS       50

static void chain_next(struct queue *queue);
static void guarded_send(void *argument);
static void read_back(void *argument);

static int64_t lease_ttl_ms(const struct queue *queue)
{
    return queue->host->settings->lease_ttl_ms;
}

static int64_t lease_ttl_seconds(const struct queue *queue)
{
    int64_t seconds = lease_ttl_ms(queue) / 1000;
    return seconds > 0 ? seconds : 1;
}

int64_t lease_kv_timeout_ms(const struct queue *queue)
{
    int64_t third = lease_ttl_ms(queue) / 3;
    return third < 3000 ? third : 3000;
}

static bool chain_busy(const struct queue *queue)
{
    const struct lease *lease = &queue->lease;
    return lease->requested || lease->call != NULL || timer_is_set(&lease->retry_timer);
}

static bool is_ours(const struct queue *queue, const cJSON *value)
{
    const cJSON *incarnation = cJSON_GetObjectItemCaseSensitive(value, "incarnation");
    return cJSON_IsString(incarnation) && strcmp(incarnation->valuestring, queue->host->incarnation) == 0;
}

static bool is_predecessors(const struct queue *queue, const cJSON *value)
{
    const cJSON *incarnation = cJSON_GetObjectItemCaseSensitive(value, "incarnation");
    return queue->host->previous_incarnation[0] != '\0' && cJSON_IsString(incarnation) &&
           strcmp(incarnation->valuestring, queue->host->previous_incarnation) == 0;
}

static const char *holder_of(const cJSON *value)
{
    const cJSON *instance = cJSON_GetObjectItemCaseSensitive(value, "instance");
    return cJSON_IsString(instance) ? instance->valuestring : "(unknown)";
}

static struct kv_operation lease_write(struct queue *queue, bool required)
{
    struct lease *lease = &queue->lease;
    struct kv_operation operation = {.kind = lease->expired ? KV_PUT_IF_ABSENT : KV_PUT,
                                     .key = queue->lease_key,
                                     .value = lease->value,
                                     .ttl_seconds = lease_ttl_seconds(queue),
                                     .has_expect = !lease->expired,
                                     .expect = lease->version,
                                     .required = required};
    return operation;
}

static void refresh_due(void *argument)
{
    struct queue *queue = argument;
    queue->lease.wants_refresh = true;
    chain_next(queue);
}

static void lease_written(struct queue *queue, int64_t version)
{
    struct lease *lease = &queue->lease;
    lease->version = version;
    lease->expired = false;
    lease->unsure = false;
    lease->wants_refresh = false;
    lease->retry.failures = 0;
    lease->written = queue->world->now(queue->world);
    timer_set(queue->world->timers, &lease->timer, world_after(queue->world, lease_ttl_ms(queue) / EARLY_REFRESH_SHARE),
              refresh_due, queue);
}

/* The first look after a lost answer is at once: the write has most likely landed, and the queue waits for it. */
static int64_t chain_delay(struct queue *queue, const struct error *error)
{
    if (queue->lease.retry.failures == 0 && error->retry_after_ms < 0) {
        queue->lease.retry.failures = 1;
        return FIRST_LOOK_MS;
    }
    return retry_delay(&queue->lease.retry, queue->world, error, lease_kv_timeout_ms(queue));
}

/* ---- claim ---- */

void lease_held_by(struct queue *queue, const char *holder)
{
    snprintf(queue->lease.holder, sizeof queue->lease.holder, "%.*s", (int)sizeof queue->lease.holder - 1, holder);
}

static void claim_again(void *argument)
{
    lease_claim(argument);
}

static void claim_won(struct queue *queue, int64_t version)
{
    struct lease *lease = &queue->lease;
    lease->held = true;
    lease->held_before = true;
    lease->standby = false;
    lease->holder[0] = '\0';
    lease_written(queue, version);
    origin_begin(queue);
}

static void claim_lost(struct queue *queue, const struct kv_result *result)
{
    struct lease *lease = &queue->lease;
    if (is_ours(queue, result->value)) {
        claim_won(queue, result->version);
        return;
    }
    if (is_predecessors(queue, result->value)) {
        lease->expired = false;
        lease->version = result->version;
        lease_claim(queue);
        return;
    }
    if (result->reason == KV_REASON_ABSENT) {
        lease->expired = true;
        lease_claim(queue);
        return;
    }
    lease->standby = !lease->held_before;
    lease_held_by(queue, holder_of(result->value));
    queue_fault_over(queue);
    lease->expired = true;
    lease->unsure = false;
    queue->state = lease->held_before ? QUEUE_LOST : QUEUE_CLAIMING;
    log_limited(&queue->kv_limit, queue->world->now(queue->world), LOG_INFO, queue->name,
                "held by instance %s: tried again in %" PRId64 " ms", holder_of(result->value), lease_ttl_ms(queue));
    timer_set(queue->world->timers, &lease->timer, world_after(queue->world, lease_ttl_ms(queue)), claim_again, queue);
    queue->host->changed(queue->host, queue);
}

static void claim_done(void *argument, const struct error *error, const struct kv_result *result)
{
    struct queue *queue = argument;
    struct lease *lease = &queue->lease;
    lease->requested = false;
    if (error->code != QS_OK && !error->retriable) {
        queue_stop(queue, "claiming the lease: %s", error->message);
        return;
    }
    if (error->code != QS_OK) {
        /* It may have been applied: a repeat then loses to a row with our own incarnation, and has won. */
        queue_note(queue, &queue->kv_limit, "claiming the lease", error);
        lease->expired = true;
        lease->unsure = true;
        timer_set(queue->world->timers, &lease->timer, world_after(queue->world, chain_delay(queue, error)),
                  claim_again, queue);
        return;
    }
    if (result->applied)
        claim_won(queue, result->version);
    else
        claim_lost(queue, result);
}

static void lease_value_make(struct queue *queue)
{
    struct lease *lease = &queue->lease;
    free(lease->value);
    lease->value =
        lease_format(queue->host->settings->instance, queue->host->incarnation, queue->world->wall(queue->world));
}

/* expired: putIfAbsent; otherwise over a known version (a predecessor's row). */
void lease_claim(struct queue *queue)
{
    struct lease *lease = &queue->lease;
    if (lease->requested)
        return;
    if (lease->value == NULL)
        lease_value_make(queue);
    queue->state = lease->held_before ? QUEUE_LOST : QUEUE_CLAIMING;
    lease->requested = true;
    lease->request.operation = lease_write(queue, false);
    lease->request.done = claim_done;
    lease->request.argument = queue;
    lease_calls_send(queue->host->leases, &lease->request);
}

/* ---- refresh ---- */

static void refresh_done(void *argument, const struct error *error, const struct kv_result *result)
{
    struct queue *queue = argument;
    struct lease *lease = &queue->lease;
    lease->requested = false;
    if (error->code != QS_OK && !error->retriable) {
        queue_stop(queue, "refreshing the lease: %s", error->message);
        return;
    }
    if (error->code != QS_OK) {
        queue_note(queue, &queue->kv_limit, "refreshing the lease", error);
        lease->unsure = true;
        timer_set(queue->world->timers, &lease->retry_timer, world_after(queue->world, chain_delay(queue, error)),
                  read_back, queue);
        return;
    }
    if (result->applied) {
        lease_written(queue, result->version);
    } else if (result->value != NULL && is_ours(queue, result->value)) {
        lease->version = result->version;
        lease->wants_refresh = true;
    } else if (result->reason == KV_REASON_ABSENT || result->value == NULL) {
        /* Expired without a rival: not lost (spec 3.6). */
        lease->expired = true;
        lease->wants_refresh = true;
    } else {
        queue_lose(queue, holder_of(result->value));
        return;
    }
    chain_next(queue);
}

static void refresh_send(struct queue *queue)
{
    struct lease *lease = &queue->lease;
    lease->wants_refresh = false;
    lease->requested = true;
    lease->request.operation = lease_write(queue, false);
    lease->request.done = refresh_done;
    lease->request.argument = queue;
    lease_calls_send(queue->host->leases, &lease->request);
}

void lease_refresh(struct queue *queue)
{
    queue->lease.wants_refresh = true;
    chain_next(queue);
}

/* ---- reading back ---- */

static void write_landed(struct queue *queue, int64_t version)
{
    struct guarded_write write = queue->lease.write;
    memset(&queue->lease.write, 0, sizeof queue->lease.write);
    *write.version = version;
    free(write.value);
    write.done(queue);
}

static const struct kv_row *row_of(const struct kv_result *result, const char *key)
{
    for (size_t i = 0; i < result->row_count; i++)
        if (strcmp(result->rows[i].key, key) == 0)
            return &result->rows[i];
    return NULL;
}

/* What the two rows say about a guarded write that lost or had no answer. */
static void write_judge(struct queue *queue, const struct kv_row *lease_row, const struct kv_row *document)
{
    struct lease *lease = &queue->lease;
    struct guarded_write *write = &lease->write;
    bool ours = lease_row != NULL && is_ours(queue, lease_row->value);
    int64_t version = document != NULL ? document->version : 0;
    if (lease_row != NULL && !ours) {
        queue_lose(queue, holder_of(lease_row->value));
        return;
    }
    cJSON *sent = cJSON_Parse(write->value);
    bool same = document != NULL && sent != NULL && cJSON_Compare(sent, document->value, true);
    cJSON_Delete(sent);
    if (ours)
        lease->version = lease_row->version;
    lease->expired = !ours;
    if (same) {
        /* It had landed, nobody knows how long ago, and the lease may have run out since without a rival. */
        write_landed(queue, version);
        lease_refresh(queue);
    } else if (version == *write->version) {
        guarded_send(queue);
    } else {
        /* Another instance moved the document, even if its lease is over by now. */
        queue_lose(queue, "(a rival whose lease is over)");
    }
}

static void read_back_done(void *argument, const struct error *error, const struct kv_answer *answer)
{
    struct queue *queue = argument;
    struct lease *lease = &queue->lease;
    lease->call = NULL;
    if (error->code != QS_OK && !error->retriable) {
        lease->unsure = true;
        queue_stop(queue, "reading the lease back: %s", error->message);
        return;
    }
    if (error->code != QS_OK || answer->precondition_failed || answer->count != 1) {
        queue_note(queue, &queue->kv_limit, "reading the lease back", error);
        timer_set(queue->world->timers, &lease->retry_timer, world_after(queue->world, chain_delay(queue, error)),
                  read_back, queue);
        return;
    }
    const struct kv_row *row = row_of(&answer->results[0], queue->lease_key);
    lease->unsure = false;
    /* A write that came up while only the lease was asked for was never sent: there is nothing to judge. */
    if (lease->judging && lease->write.active) {
        write_judge(queue, row, row_of(&answer->results[0], lease->write.key));
        return;
    }
    if (row != NULL && !is_ours(queue, row->value)) {
        queue_lose(queue, holder_of(row->value));
        return;
    }
    lease->expired = row == NULL;
    if (row != NULL)
        lease->version = row->version;
    lease->wants_refresh = true;
    chain_next(queue);
}

static void read_back(void *argument)
{
    struct queue *queue = argument;
    struct lease *lease = &queue->lease;
    const char *keys[2] = {queue->lease_key, lease->write.key};
    struct kv_operation get = {.kind = KV_GET_MANY, .keys = keys, .key_count = lease->write.active ? 2 : 1};
    lease->judging = lease->write.active;
    lease->call = queue->world->queen->operations->kv(queue->world->queen, &get, 1, lease_kv_timeout_ms(queue),
                                                      read_back_done, queue);
}

/* ---- guarded writes ---- */

static void guarded_done(void *argument, const struct error *error, const struct kv_answer *answer)
{
    struct queue *queue = argument;
    struct lease *lease = &queue->lease;
    lease->call = NULL;
    if (error->code != QS_OK && !error->retriable) {
        queue_stop(queue, "writing %s: %s", lease->write.key, error->message);
        return;
    }
    if (error->code != QS_OK) {
        queue_note(queue, &queue->kv_limit, "writing a pointer", error);
        lease->unsure = true;
        timer_set(queue->world->timers, &lease->retry_timer, world_after(queue->world, chain_delay(queue, error)),
                  read_back, queue);
        return;
    }
    if (!answer->precondition_failed && answer->count == 2 && answer->results[0].applied &&
        answer->results[1].applied) {
        lease_written(queue, answer->results[0].version);
        write_landed(queue, answer->results[1].version);
        chain_next(queue);
        return;
    }
    read_back(queue);
}

static void guarded_send(void *argument)
{
    struct queue *queue = argument;
    struct lease *lease = &queue->lease;
    struct guarded_write *write = &lease->write;
    struct kv_operation operations[2];
    operations[0] = lease_write(queue, true);
    operations[1] = (struct kv_operation){.kind = KV_PUT,
                                          .key = write->key,
                                          .value = write->value,
                                          .has_expect = true,
                                          .expect = *write->version,
                                          .required = true};
    lease->call = queue->world->queen->operations->kv(queue->world->queen, operations, 2, lease_kv_timeout_ms(queue),
                                                      guarded_done, queue);
}

void guarded_start(struct queue *queue, const char *key, char *value, int64_t *version,
                   void (*done)(struct queue *queue))
{
    struct guarded_write *write = &queue->lease.write;
    write->active = true;
    write->key = key;
    write->value = value;
    write->version = version;
    write->done = done;
    chain_next(queue);
}

/* ---- the chain ---- */

static void chain_next(struct queue *queue)
{
    struct lease *lease = &queue->lease;
    if (!lease->held || lease->releasing || chain_busy(queue))
        return;
    if (lease->unsure)
        read_back(queue);
    else if (lease->write.active)
        guarded_send(queue);
    else if (lease->wants_refresh)
        refresh_send(queue);
}

/* ---- giving it back ---- */

static void release_end(struct queue *queue)
{
    void (*released)(struct queue *) = queue->lease.released;
    lease_drop(queue);
    released(queue);
}

static void release_done(void *argument, const struct error *error, const struct kv_answer *answer)
{
    struct queue *queue = argument;
    (void)answer;
    queue->lease.call = NULL;
    if (error->code != QS_OK)
        log_line(LOG_DEBUG, queue->name, "giving the lease back: %s", error->message);
    release_end(queue);
}

/* A fenced delete, one attempt: what it misses expires by itself. */
static void release_remove(struct queue *queue, int64_t version)
{
    struct kv_operation remove = {.kind = KV_DELETE, .key = queue->lease_key, .has_expect = true, .expect = version};
    queue->lease.call = queue->world->queen->operations->kv(queue->world->queen, &remove, 1, lease_kv_timeout_ms(queue),
                                                            release_done, queue);
}

static void release_found(void *argument, const struct error *error, const struct kv_answer *answer)
{
    struct queue *queue = argument;
    queue->lease.call = NULL;
    const struct kv_row *row = NULL;
    if (error->code == QS_OK && !answer->precondition_failed && answer->count == 1)
        row = row_of(&answer->results[0], queue->lease_key);
    if (row != NULL && is_ours(queue, row->value))
        release_remove(queue, row->version);
    else
        release_end(queue);
}

/* A write whose answer is missing may have moved the row. */
static void release_look(struct queue *queue)
{
    const char *keys[1] = {queue->lease_key};
    struct kv_operation get = {.kind = KV_GET_MANY, .keys = keys, .key_count = 1};
    queue->lease.call = queue->world->queen->operations->kv(queue->world->queen, &get, 1, lease_kv_timeout_ms(queue),
                                                            release_found, queue);
}

static void release_last_write(void *argument, const struct error *error, const struct kv_result *result)
{
    struct queue *queue = argument;
    queue->lease.requested = false;
    if (error->code != QS_OK)
        release_look(queue);
    else if (result->applied || (result->value != NULL && is_ours(queue, result->value)))
        release_remove(queue, result->version);
    else
        release_end(queue);
}

/* A claim or refresh that is on its way is waited for: it would move the row, or make one, behind the delete's back. */
void lease_release(struct queue *queue, void (*done)(struct queue *queue))
{
    struct lease *lease = &queue->lease;
    bool under_way = lease->requested && lease->request.in_call;
    bool unsure = lease->unsure || lease->call != NULL;
    bool known = lease->held && !lease->expired;
    int64_t version = lease->version;
    if (under_way)
        lease->requested = false; /* lease_drop() would withdraw it */
    lease_drop(queue);
    lease->requested = under_way;
    lease->releasing = true;
    lease->released = done;
    if (under_way)
        lease->request.done = release_last_write;
    else if (unsure)
        release_look(queue);
    else if (known)
        release_remove(queue, version);
    else
        release_end(queue);
}

/* Whatever is under way is forgotten; the row stays as it may be. */
void lease_drop(struct queue *queue)
{
    struct lease *lease = &queue->lease;
    if (lease->requested)
        lease_calls_withdraw(queue->host->leases, &lease->request);
    if (lease->call != NULL)
        queue->world->queen->operations->cancel(queue->world->queen, lease->call);
    timer_cancel(queue->world->timers, &lease->timer);
    timer_cancel(queue->world->timers, &lease->retry_timer);
    free(lease->write.value);
    memset(&lease->write, 0, sizeof lease->write);
    lease->requested = false;
    lease->call = NULL;
    lease->held = false;
    lease->expired = true;
    lease->unsure = false;
    lease->wants_refresh = false;
    lease->judging = false;
    lease->releasing = false;
    lease->retry.failures = 0;
}
