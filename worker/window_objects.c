/* The objects of one window on their way up: window_objects.h. */
#include "worker/window_objects.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/encode_stream.h"
#include "worker/redo_stream.h"
#include "worker/upload.h"

#define UPLOADS_AT_ONCE 16

/* Runs of the plan, [next, end). */
struct plan_source {
    struct run_source base;
    const struct window_plan *plan;
    size_t first;
    size_t next;
    size_t end;
};

struct object_upload {
    struct window_objects *objects;
    size_t index; /* of the object */
    struct plan_source source;
    struct redo_stream *stream; /* instead, where the window isn't held in memory */
    struct upload *upload;      /* NULL: this seat is free */
};

struct window_objects {
    struct world *world;
    struct window_objects_request request;
    struct manifest_object *list;
    size_t count;
    size_t next; /* to be started */
    size_t left; /* not up yet */
    struct window_totals totals;
    struct object_upload seats[UPLOADS_AT_ONCE];
};

static void start_more(struct window_objects *objects);

static bool is_merged(const struct window_objects *objects)
{
    return objects->request.shape.layout == LAYOUT_MERGED;
}

/* ---- sources ---- */

static int plan_next(struct run_source *source, struct run *run)
{
    struct plan_source *plan = (struct plan_source *)source;
    if (plan->next >= plan->end)
        return 0;
    *run = plan->plan->runs[plan->next++];
    return 1;
}

static void source_rewind(void *argument)
{
    struct object_upload *seat = argument;
    seat->source.next = seat->source.first;
    if (seat->stream != NULL)
        redo_stream_rewind(seat->stream);
}

static void source_asked(void *argument)
{
    struct object_upload *seat = argument;
    redo_stream_asked(seat->stream);
}

static void source_stop(void *argument)
{
    struct object_upload *seat = argument;
    redo_stream_stop(seat->stream);
}

/* ---- ends ---- */

static void seat_clear(struct object_upload *seat)
{
    upload_cancel(seat->upload);
    redo_stream_destroy(seat->stream);
    seat->upload = NULL;
    seat->stream = NULL;
}

static void clear_all(struct window_objects *objects)
{
    for (size_t i = 0; i < UPLOADS_AT_ONCE; i++)
        seat_clear(&objects->seats[i]);
}

static void give_up(struct window_objects *objects, const struct error *error)
{
    clear_all(objects);
    objects->next = objects->count;
    objects->request.done(objects->request.argument, error);
}

void window_objects_destroy(struct window_objects *objects)
{
    if (objects == NULL)
        return;
    clear_all(objects);
    for (size_t i = 0; i < objects->count; i++)
        free(objects->list[i].key);
    free(objects->list);
    free(objects);
}

struct manifest_object *window_objects_list(struct window_objects *objects, size_t *count, struct window_totals *totals)
{
    *count = objects->count;
    *totals = objects->totals;
    return objects->list;
}

/* ---- one object ---- */

static void add_up(struct window_totals *totals, const struct encode_result *result)
{
    if (totals->records == 0 || result->min_ts.v < totals->min_ts.v)
        totals->min_ts = result->min_ts;
    if (totals->records == 0 || result->max_ts.v > totals->max_ts.v)
        totals->max_ts = result->max_ts;
    totals->records += result->records;
    totals->bytes += result->bytes;
    totals->partitions += result->partitions;
}

static void object_done(void *argument, const struct error *error, const struct encode_result *result)
{
    struct object_upload *seat = argument;
    struct window_objects *objects = seat->objects;
    struct manifest_object *object = &objects->list[seat->index];
    seat->upload = NULL;
    if (error->code != QS_OK) {
        struct error told = *error;
        store_error_drop_key(&told, object->key);
        error_prefix(&told, "upload of %.200s", object->key);
        give_up(objects, &told);
        return;
    }
    object->bytes = result->bytes;
    object->records = result->records;
    memcpy(object->sha256, result->sha256, sizeof object->sha256);
    add_up(&objects->totals, result);
    seat_clear(seat);
    if (--objects->left == 0)
        objects->request.done(objects->request.argument, error);
    else
        start_more(objects);
}

static void stream_failed(void *argument, const struct error *error)
{
    struct object_upload *seat = argument;
    give_up(seat->objects, error);
}

static void tell_failure(void *argument, const struct error *error)
{
    struct object_upload *seat = argument;
    seat->objects->request.failed(seat->objects->request.argument, error);
}

static uint64_t runs_text_size(const struct window_plan *plan, size_t first, size_t end)
{
    uint64_t size = 0;
    for (size_t i = first; i < end; i++)
        size += jsonl_run_size(&plan->runs[i]);
    return size;
}

static void seat_source(struct object_upload *seat, size_t first, size_t end)
{
    const struct window_objects *objects = seat->objects;
    const struct window_plan *plan = objects->request.plan;
    struct name queue = {objects->request.subject, strlen(objects->request.subject)};
    if (plan->surveyed != NULL)
        seat->stream =
            redo_stream_create(objects->world, queue, plan->surveyed + first, end - first, stream_failed, seat);
    else
        seat->source =
            (struct plan_source){{plan_next, runs_text_size(plan, first, end), queue}, plan, first, first, end};
}

static void seat_start(struct object_upload *seat, size_t index)
{
    struct window_objects *objects = seat->objects;
    bool merged = is_merged(objects);
    const struct window_plan *plan = objects->request.plan;
    size_t all = plan->surveyed != NULL ? plan->surveyed_count : plan->run_count;
    seat->index = index;
    seat_source(seat, merged ? 0 : index, merged ? all : index + 1);
    bool streamed = seat->stream != NULL;
    struct upload_request request = {.subject = objects->request.subject,
                                     .key = objects->list[index].key,
                                     .shape = objects->request.shape,
                                     .source = streamed ? redo_stream_source(seat->stream) : &seat->source.base,
                                     .rewind = source_rewind,
                                     .asked = streamed ? source_asked : NULL,
                                     .stop = streamed ? source_stop : NULL,
                                     .threshold = objects->request.threshold,
                                     .failed = tell_failure,
                                     .done = object_done,
                                     .argument = seat};
    seat->upload = upload_start(objects->world, &request);
}

/* More than one at a time only while the memory that each takes for its encoding is free. */
static bool has_room(const struct window_objects *objects, size_t active)
{
    uint64_t each = encode_memory(&objects->request.shape, 0, objects->request.threshold);
    return active == 0 || budget_room(objects->world->budget) / 4 > each;
}

static void start_more(struct window_objects *objects)
{
    size_t active = 0;
    for (size_t i = 0; i < UPLOADS_AT_ONCE; i++)
        active += objects->seats[i].upload != NULL;
    for (size_t i = 0; i < UPLOADS_AT_ONCE && objects->next < objects->count && has_room(objects, active); i++)
        if (objects->seats[i].upload == NULL) {
            seat_start(&objects->seats[i], objects->next++);
            active++;
        }
}

/* ---- what there is to put ---- */

static int64_t last_offset(const struct run *run)
{
    const struct extent *last = &run->extents[run->extent_count - 1];
    return last->block->records[last->first + last->count - 1].offset;
}

static int name_partition_object(struct window_objects *objects, size_t index, struct error *error)
{
    const struct window_objects_request *request = &objects->request;
    const struct window_plan *plan = request->plan;
    struct manifest_object *object = &objects->list[index];
    struct name partition = plan->surveyed != NULL ? plan->surveyed[index].partition : plan->runs[index].partition;
    char escaped[LAKE_NAME_SIZE];
    char key[LAKE_KEY_SIZE];
    object->has_partition = true;
    object->partition = (char *)(uintptr_t)partition.bytes;
    object->partition_size = partition.size;
    if (plan->surveyed != NULL) {
        object->first_offset = plan->surveyed[index].first;
        object->last_offset = plan->surveyed[index].end - 1;
    } else {
        const struct extent *first = &plan->runs[index].extents[0];
        object->first_offset = first->block->records[first->first].offset;
        object->last_offset = last_offset(&plan->runs[index]);
    }
    lake_escape_name(partition, escaped);
    int status = lake_partition_object_key(request->prefix, request->escaped_queue, &request->shape, &request->bounds,
                                           escaped, object->first_offset, object->last_offset, key, error);
    if (status == 0)
        object->key = memory_copy_text(key);
    return status;
}

static int name_objects(struct window_objects *objects, struct error *error)
{
    const struct window_objects_request *request = &objects->request;
    char key[LAKE_KEY_SIZE];
    int status = 0;
    if (is_merged(objects)) {
        status =
            lake_object_key(request->prefix, request->escaped_queue, &request->shape, &request->bounds, key, error);
        if (status == 0)
            objects->list[0].key = memory_copy_text(key);
        return status;
    }
    for (size_t i = 0; i < objects->count && status == 0; i++)
        status = name_partition_object(objects, i, error);
    return status;
}

struct window_objects *window_objects_start(struct world *world, const struct window_objects_request *request,
                                            struct error *error)
{
    struct window_objects *objects = memory_new(1, sizeof *objects);
    const struct window_plan *plan = request->plan;
    objects->world = world;
    objects->request = *request;
    objects->count = is_merged(objects) ? 1 : plan->surveyed != NULL ? plan->surveyed_count : plan->run_count;
    objects->left = objects->count;
    objects->list = memory_new(objects->count, sizeof *objects->list);
    for (size_t i = 0; i < UPLOADS_AT_ONCE; i++)
        objects->seats[i].objects = objects;
    if (name_objects(objects, error) != 0) {
        window_objects_destroy(objects);
        return NULL;
    }
    start_more(objects);
    return objects;
}
