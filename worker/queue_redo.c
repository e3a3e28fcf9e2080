/*
 * The queue driver: what an earlier attempt at this window put up (spec 3.5). A redo must not shrink it: retention or a
 * deletion since then may have taken records that are in the bucket already. So what is there is read back; an object that
 * is whole and holds at least what could be rebuilt is kept, and described from its own content.
 *
 * Merged, that is the object under the window's key. Per partition, the offsets are part of the keys, so a shorter rebuild
 * would get another key beside the first: a list finds all that begin with the window's name.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/name.h"
#include "worker/queue_internal.h"

/* A key that the plan gives to a run, by its hash: of a window there can be as many as there are partitions. */
struct planned_key {
    uint64_t hash;
    size_t run;
};

struct redo_look {
    struct queue *queue;
    struct planned_key *planned; /* ascending */
    size_t planned_count;
    char **keys; /* to be read, one after the other */
    size_t count;
    size_t capacity;
    size_t at;
    char *list_prefix;
    char *list_token;
    struct store_call *list_call;
    struct describe_call *call;
    struct timer timer;
    struct retry retry;
};

static void describe_next(void *argument);
static void list_objects(void *argument);

void redo_look_drop(struct queue *queue)
{
    struct redo_look *look = queue->commit.look;
    if (look == NULL)
        return;
    queue->commit.look = NULL;
    if (look->list_call != NULL)
        queue->world->store->operations->cancel(queue->world->store, look->list_call);
    if (look->call != NULL)
        queue->world->describer->operations->cancel(queue->world->describer, look->call);
    timer_cancel(queue->world->timers, &look->timer);
    for (size_t i = 0; i < look->count; i++)
        free(look->keys[i]);
    free(look->keys);
    free(look->planned);
    free(look->list_prefix);
    free(look->list_token);
    free(look);
}

static void add_key(struct redo_look *look, const char *key)
{
    look->keys = memory_grow(look->keys, &look->capacity, look->count + 1, sizeof *look->keys);
    look->keys[look->count++] = memory_copy_text(key);
}

static void look_again(struct redo_look *look, const struct error *error, void (*step)(void *))
{
    struct queue *queue = look->queue;
    queue_note(queue, &queue->other_limit, "looking at what is up already", error);
    timer_set(queue->world->timers, &look->timer,
              world_after(queue->world, retry_delay(&look->retry, queue->world, error, RETRY_CAP_MS)), step, look);
}

/* ---- what is kept, and what then needs no rebuilding ---- */

static int64_t run_last(const struct run *run)
{
    const struct extent *last = &run->extents[run->extent_count - 1];
    return last->block->records[last->first + last->count - 1].offset;
}

static uint64_t run_records(const struct run *run)
{
    uint64_t records = 0;
    for (size_t i = 0; i < run->extent_count; i++)
        records += run->extents[i].count;
    return records;
}

static const struct described_span *last_span(const struct object_description *description)
{
    return &description->spans[description->span_count - 1];
}

/* What the plan has of the partition that an object holds; false where the object lacks some of it. */
static bool covers_run(const struct object_description *description, const struct run *run)
{
    int64_t first = run->extents[0].block->records[run->extents[0].first].offset;
    return description->spans[0].first <= first && last_span(description)->last >= run_last(run) &&
           description->records >= run_records(run);
}

static bool covers_surveyed(const struct object_description *description, const struct surveyed_run *run)
{
    return description->spans[0].first <= run->first && last_span(description)->last >= run->end - 1 &&
           description->records >= run->records;
}

/* Takes the partition that a kept object covers out of the plan. False where the plan has more of it than the object: then
 * the object isn't kept. */
static bool plan_leave_out(struct window_plan *plan, const struct object_description *description)
{
    for (size_t i = 0; i < plan->run_count; i++)
        if (name_compare(plan->runs[i].partition, description->spans[0].partition) == 0) {
            if (!covers_run(description, &plan->runs[i]))
                return false;
            memmove(&plan->runs[i], &plan->runs[i + 1], (plan->run_count - i - 1) * sizeof *plan->runs);
            plan->run_count--;
            return true;
        }
    for (size_t i = 0; i < plan->surveyed_count; i++)
        if (name_compare(plan->surveyed[i].partition, description->spans[0].partition) == 0) {
            if (!covers_surveyed(description, &plan->surveyed[i]))
                return false;
            memmove(&plan->surveyed[i], &plan->surveyed[i + 1],
                    (plan->surveyed_count - i - 1) * sizeof *plan->surveyed);
            plan->surveyed_count--;
            return true;
        }
    return true;
}

static void keep(struct queue *queue, const char *key, const struct object_description *description)
{
    struct commit *commit = &queue->commit;
    commit->kept = memory_grow(commit->kept, &commit->kept_capacity, commit->kept_count + 1, sizeof *commit->kept);
    struct kept_object *kept = &commit->kept[commit->kept_count++];
    memset(kept, 0, sizeof *kept);
    kept->object.key = memory_copy_text(key);
    kept->object.bytes = description->bytes;
    kept->object.records = description->records;
    memcpy(kept->object.sha256, description->sha256, sizeof kept->object.sha256);
    kept->partitions = description->partitions;
    kept->min_ts = description->min_ts;
    kept->max_ts = description->max_ts;
    if (commit->shape.layout == LAYOUT_PER_PARTITION) {
        const struct described_span *span = &description->spans[0];
        kept->object.has_partition = true;
        kept->object.partition = memory_copy(span->partition.bytes, span->partition.size);
        kept->object.partition_size = span->partition.size;
        kept->object.first_offset = span->first;
        kept->object.last_offset = last_span(description)->last;
    }
    window_plan_return_lost(queue->engine, &commit->plan);
    for (size_t i = 0; i < description->span_count; i++)
        window_found(queue->engine, description->spans[i].partition, description->spans[i].first,
                     description->spans[i].last);
    window_plan_take_lost(queue->engine, &commit->plan);
    log_line(LOG_INFO, queue->name, "%s is up already and whole: kept, %" PRIu64 " records", key, description->records);
}

static void take_description(struct queue *queue, const char *key, const struct object_description *description)
{
    struct window_plan *plan = &queue->commit.plan;
    if (queue->commit.shape.layout == LAYOUT_MERGED) {
        if (description->records < plan->records)
            return;
        plan->run_count = 0;
        plan->surveyed_count = 0;
        keep(queue, key, description);
    } else if (description->partitions == 1 && plan_leave_out(plan, description)) {
        keep(queue, key, description);
    }
}

/* ---- reading back ---- */

static void look_end(struct queue *queue)
{
    redo_look_drop(queue);
    queue->commit.lost = 0;
    for (size_t i = 0; i < queue->commit.plan.lost_count; i++)
        queue->commit.lost += (uint64_t)(queue->commit.plan.lost[i].to - queue->commit.plan.lost[i].from) + 1;
    commit_looked(queue);
}

static void described(void *argument, const struct error *error, const struct object_description *description)
{
    struct redo_look *look = argument;
    struct queue *queue = look->queue;
    look->call = NULL;
    if (error->code != QS_OK && error->retriable) {
        look_again(look, error, describe_next);
        return;
    }
    if (error->code == QS_OK)
        take_description(queue, look->keys[look->at], description);
    else if (error->code != QS_ERROR_NOT_FOUND) {
        struct error plain = *error;
        store_error_drop_key(&plain, look->keys[look->at]);
        log_line(LOG_WARN, queue->name, "%s is up already but isn't kept: %s", look->keys[look->at], plain.message);
    }
    look->retry.failures = 0;
    look->at++;
    describe_next(look);
}

static void describe_next(void *argument)
{
    struct redo_look *look = argument;
    struct queue *queue = look->queue;
    if (look->at == look->count) {
        look_end(queue);
        return;
    }
    look->call = queue->world->describer->operations->start(
        queue->world->describer, look->keys[look->at], &queue->commit.shape, &queue->commit.bounds, described, look);
}

/* ---- per partition: what the list finds ---- */

/* "" where it would be too long. */
static void planned_key(const struct queue *queue, size_t at, char out[LAKE_KEY_SIZE])
{
    const struct commit *commit = &queue->commit;
    const struct run *run = &commit->plan.runs[at];
    char escaped[LAKE_NAME_SIZE];
    lake_escape_name(run->partition, escaped);
    int64_t first = run->extents[0].block->records[run->extents[0].first].offset;
    if (lake_partition_object_key(commit->prefix, queue->escaped, &commit->shape, &commit->bounds, escaped, first,
                                  run_last(run), out, NULL) != 0)
        out[0] = '\0';
}

static int compare_planned(const void *a, const void *b)
{
    const struct planned_key *left = a;
    const struct planned_key *right = b;
    return (left->hash > right->hash) - (left->hash < right->hash);
}

/* With nothing lost, an object under a key that the plan gives too is the same to the byte. */
static void note_planned(struct redo_look *look)
{
    const struct window_plan *plan = &look->queue->commit.plan;
    char key[LAKE_KEY_SIZE];
    if (plan->lost_count > 0 || plan->run_count == 0)
        return;
    look->planned = memory_new(plan->run_count, sizeof *look->planned);
    look->planned_count = plan->run_count;
    for (size_t i = 0; i < plan->run_count; i++) {
        planned_key(look->queue, i, key);
        look->planned[i] = (struct planned_key){name_hash((struct name){key, strlen(key)}), i};
    }
    qsort(look->planned, look->planned_count, sizeof *look->planned, compare_planned);
}

static bool is_planned(const struct redo_look *look, const char *key)
{
    char planned[LAKE_KEY_SIZE];
    uint64_t hash = name_hash((struct name){key, strlen(key)});
    size_t low = 0;
    for (size_t high = look->planned_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (look->planned[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < look->planned_count && look->planned[low].hash == hash; low++) {
        planned_key(look->queue, look->planned[low].run, planned);
        if (strcmp(planned, key) == 0)
            return true;
    }
    return false;
}

static void listed(void *argument, const struct error *error, const struct listed_object *objects, size_t count,
                   const char *next)
{
    struct redo_look *look = argument;
    struct queue *queue = look->queue;
    look->list_call = NULL;
    if (error->code != QS_OK && error->retriable) {
        look_again(look, error, list_objects);
        return;
    }
    if (error->code != QS_OK) {
        queue_stop(queue, "listing what is up of window %" PRId64 ": %s", queue->commit.bounds.k, error->message);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!is_planned(look, objects[i].key))
            add_key(look, objects[i].key);
    free(look->list_token);
    look->list_token = memory_copy_text(next);
    if (next != NULL)
        list_objects(look);
    else
        describe_next(look);
}

static void list_objects(void *argument)
{
    struct redo_look *look = argument;
    struct world *world = look->queue->world;
    look->list_call = world->store->operations->list(world->store, look->list_prefix, look->list_token, listed, look);
}

/* The merged key without its extension, and "-p-" behind it. */
static char *partition_keys_prefix(const char *key, const char *extension)
{
    return memory_format("%.*s-p-", (int)(strlen(key) - strlen(extension) - 1), key);
}

void redo_look(struct queue *queue)
{
    struct commit *commit = &queue->commit;
    char key[LAKE_KEY_SIZE];
    struct error error;
    commit->step = COMMIT_LOOK;
    if (queue->world->describer == NULL) {
        commit_looked(queue);
        return;
    }
    if (lake_object_key(commit->prefix, queue->escaped, &commit->shape, &commit->bounds, key, &error) != 0) {
        queue_stop(queue, "%s", error.message);
        return;
    }
    struct redo_look *look = commit->look = memory_new(1, sizeof *look);
    look->queue = queue;
    if (commit->shape.layout == LAYOUT_MERGED) {
        add_key(look, key);
        describe_next(look);
        return;
    }
    look->list_prefix = partition_keys_prefix(key, lake_extension(&commit->shape));
    note_planned(look);
    list_objects(look);
}
