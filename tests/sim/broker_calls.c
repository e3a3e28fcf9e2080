/*
 * The Queen API over the model of the broker (spec 1.2 to 1.4, 1.7).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "tests/sim/instance.h"

enum queen_kind { QUEEN_FETCH, QUEEN_CHANGED, QUEEN_KV, QUEEN_QUEUES };

/* One entry of a fetch as it was answered: what was visible at the moment of arrival. */
struct fetched {
    struct fetch_entry entry;
    struct log_record **records;
    size_t count;
    size_t capacity;
};

struct queen_call {
    struct sim_call call;
    enum queen_kind kind;
    void *argument;

    queen_fetch_done *fetch_done;
    struct fetch_request_entry *asked;
    size_t count;
    struct budget *budget;
    size_t reserved;
    bool may_exceed;
    struct fetched *fetched;

    queen_changed_done *changed_done;
    struct changed_request_entry *pages;
    struct changed_answer changed;
    struct changed_entry *changed_entries;

    queen_kv_done *kv_done;
    struct document_batch batch;
};

static struct name name_copy(struct name name)
{
    return (struct name){memory_copy(name.bytes, name.size), name.size};
}

static void name_drop(struct name name)
{
    free((void *)(uintptr_t)name.bytes);
}

static struct log_queue *queue_find(struct simulation *simulation, struct name name, size_t *number)
{
    for (size_t q = 0; q < simulation->scenario.queue_count; q++)
        if (strlen(simulation->queues[q]) == name.size && memcmp(simulation->queues[q], name.bytes, name.size) == 0) {
            *number = q;
            return &simulation->log.queues[q];
        }
    return NULL;
}

static struct log_partition *partition_find(struct log_queue *queue, struct name name)
{
    for (size_t p = 0; p < queue->partition_count; p++)
        if (queue->partitions[p].name_size == name.size &&
            memcmp(queue->partitions[p].name, name.bytes, name.size) == 0)
            return &queue->partitions[p];
    return NULL;
}

/* ---- fetch ---- */

/* No fetch shows an older life than one that a page or an answer showed: an answer has no id, so nobody could tell them
 * apart. A broker that doesn't keep to it costs records of the new life, whatever a sink does. */
static struct log_life *life_shown(struct log_partition *partition, const struct log_view *view, int64_t now)
{
    struct log_life *life = log_life_at(partition, view->at);
    if (partition->shown > 0 && (life == NULL || life < &partition->lives[partition->shown - 1]))
        life = log_life_at(partition, now);
    if (life != NULL && (size_t)(life - partition->lives) + 1 > partition->shown)
        partition->shown = (size_t)(life - partition->lives) + 1;
    return life;
}

static void fetched_add(struct fetched *fetched, struct log_record *record)
{
    fetched->records =
        memory_grow(fetched->records, &fetched->capacity, fetched->count + 1, sizeof(struct log_record *));
    fetched->records[fetched->count++] = record;
}

static void read_segments(const struct simulation *simulation, const struct log_life *life, int64_t at,
                          const struct fetch_request_entry *asked, struct fetched *fetched, int64_t *left)
{
    int64_t bytes = 0;
    for (size_t s = 0; s < life->segment_count; s++) {
        const struct log_segment *segment = life->segments[s];
        if (segment->first + (int64_t)segment->count <= asked->offset || segment->deleted <= at)
            continue;
        if (segment->visible > at || bytes >= (int64_t)asked->max_bytes || *left <= 0)
            return;
        if (!segment_is_readable(segment, simulation->scheduler.now))
            continue;
        bytes += segment->bytes;
        *left -= segment->bytes;
        for (size_t i = 0; i < segment->count; i++) {
            if (segment->records[i]->offset < asked->offset)
                continue;
            if ((int64_t)fetched->count >= simulation->scenario.records_ceiling)
                return;
            fetched_add(fetched, segment->records[i]);
        }
    }
}

static void fetch_entry(struct simulation *simulation, const struct log_view *view,
                        const struct fetch_request_entry *asked, struct fetched *fetched, int64_t *left)
{
    size_t number;
    struct log_queue *queue = queue_find(simulation, asked->queue, &number);
    struct log_partition *partition = queue != NULL ? partition_find(queue, asked->partition) : NULL;
    struct log_life *life = partition != NULL ? life_shown(partition, view, simulation->scheduler.now) : NULL;
    int64_t at = view->at;
    int64_t start = 0;
    int64_t end = 0;
    *fetched = (struct fetched){.entry = {.status = FETCH_OK}};
    if (queue == NULL) {
        fetched->entry.status = FETCH_UNKNOWN_QUEUE;
        return;
    }
    if (simulation->faults && chance_of(&simulation->chance, simulation->scenario.entry_fault)) {
        fetched->entry.status = FETCH_PASSING;
        return;
    }
    if (life != NULL) {
        if (life->created > at)
            at = simulation->scheduler.now;
        log_bounds(life, at, &start, &end);
    }
    fetched->entry.log_start = start;
    fetched->entry.high_watermark = end;
    if (asked->offset < start || asked->offset > end)
        fetched->entry.status = FETCH_OUT_OF_RANGE;
    else if (life != NULL)
        read_segments(simulation, life, at, asked, fetched, left);
}

static void tell_entry(const struct simulation *simulation, const struct fetch_request_entry *asked,
                       const struct fetched *fetched)
{
    int64_t first = fetched->count > 0 ? fetched->records[0]->segment->ts : 0;
    int64_t last = fetched->count > 0 ? fetched->records[fetched->count - 1]->segment->ts : 0;
    SIM_TRACE(simulation, "  fetch %.*s from %lld: status %d, %zu records of %lld to %lld, bounds %lld %lld",
              (int)asked->partition.size, asked->partition.bytes, (long long)asked->offset, (int)fetched->entry.status,
              fetched->count, (long long)first, (long long)last, (long long)fetched->entry.log_start,
              (long long)fetched->entry.high_watermark);
}

static void fetch_arrive(struct sim_call *base)
{
    struct queen_call *call = (struct queen_call *)base;
    struct simulation *simulation = base->simulation;
    struct log_view view = log_look(&simulation->log, &simulation->chance, simulation->scheduler.now);
    int64_t left = simulation->scenario.answer_ceiling;
    if (call->fetched != NULL)
        return; /* a read that came twice is answered once */
    call->fetched = memory_new(call->count, sizeof *call->fetched);
    for (size_t i = 0; i < call->count; i++) {
        fetch_entry(simulation, &view, &call->asked[i], &call->fetched[i], &left);
        tell_entry(simulation, &call->asked[i], &call->fetched[i]);
    }
}

static size_t body_size(const struct queen_call *call, size_t *records)
{
    size_t size = 0;
    *records = 0;
    for (size_t i = 0; i < call->count; i++) {
        *records += call->fetched[i].count;
        for (size_t r = 0; r < call->fetched[i].count; r++)
            size += 64 + call->fetched[i].records[r]->id_spelled_size + call->fetched[i].records[r]->payload_size;
    }
    return size + 64;
}

static void put_record(struct block *block, const struct log_record *from)
{
    struct record *record = block_add_record(block);
    char *to = block->body + block->body_size;
    memcpy(to, from->id_spelled, from->id_spelled_size);
    memcpy(to + from->id_spelled_size, from->payload, from->payload_size);
    *record = (struct record){.offset = from->offset,
                              .ts = {from->segment->ts},
                              .transaction_id = to,
                              .payload = to + from->id_spelled_size,
                              .transaction_id_size = (uint32_t)from->id_spelled_size,
                              .transaction_id_raw = (uint32_t)from->id_size,
                              .payload_size = (uint32_t)from->payload_size};
    if (from->null_payload)
        record->flags |= RECORD_PAYLOAD_NULL;
    if (from->line_breaks)
        record->flags |= RECORD_LINE_BREAKS;
    block->body_size += 64 + from->id_spelled_size + from->payload_size;
}

/* The answer as the client would decode it; NULL where the budget doesn't hold it. */
static struct block *block_make(struct queen_call *call)
{
    size_t records;
    size_t size = body_size(call, &records);
    struct block *block = block_create(call->budget, call->reserved);
    call->reserved = 0;
    if (block_reserve_body(block, size, call->may_exceed) != 0 ||
        block_reserve_records(block, records, call->may_exceed) != 0) {
        block_release(block);
        return NULL;
    }
    for (size_t i = 0; i < call->count; i++) {
        call->fetched[i].entry.first_record = block->record_count;
        call->fetched[i].entry.record_count = call->fetched[i].count;
        for (size_t r = 0; r < call->fetched[i].count; r++)
            put_record(block, call->fetched[i].records[r]);
    }
    block_trim(block);
    return block;
}

static void give_back_reservation(struct queen_call *call)
{
    if (call->budget != NULL)
        budget_give(call->budget, call->reserved);
    call->reserved = 0;
}

static void fetch_deliver(struct sim_call *base, const struct error *error)
{
    struct queen_call *call = (struct queen_call *)base;
    struct error no_room;
    if (error->code != QS_OK) {
        give_back_reservation(call);
        call->fetch_done(call->argument, error, NULL);
        return;
    }
    struct block *block = block_make(call);
    if (block == NULL) {
        error_set(&no_room, QS_ERROR_NO_ROOM, "the answer doesn't fit");
        call->fetch_done(call->argument, &no_room, NULL);
        return;
    }
    if (call->may_exceed && block->charged > base->instance->alone_excess)
        base->instance->alone_excess = block->charged;
    struct fetch_entry *entries = memory_new(call->count, sizeof *entries);
    for (size_t i = 0; i < call->count; i++)
        entries[i] = call->fetched[i].entry;
    struct fetch_answer answer = {block, entries, call->count};
    call->fetch_done(call->argument, error, &answer);
    free(entries);
}

static void queen_release(struct sim_call *base)
{
    struct queen_call *call = (struct queen_call *)base;
    for (size_t i = 0; i < call->count && call->asked != NULL; i++) {
        name_drop(call->asked[i].queue);
        name_drop(call->asked[i].partition);
    }
    for (size_t i = 0; i < call->count && call->fetched != NULL; i++)
        free(call->fetched[i].records);
    for (size_t i = 0; i < call->count && call->pages != NULL; i++) {
        name_drop(call->pages[i].queue);
        free((void *)(uintptr_t)call->pages[i].after);
    }
    for (size_t i = 0; i < call->count && call->changed_entries != NULL; i++) {
        free((void *)(uintptr_t)call->changed_entries[i].partitions);
        free((void *)(uintptr_t)call->changed_entries[i].next);
    }
    document_batch_free(&call->batch);
    free(call->asked);
    free(call->fetched);
    free(call->pages);
    free(call->changed_entries);
    free(call);
}

static struct queen_call *queen_call_make(enum queen_kind kind, const char *what, void *argument)
{
    struct queen_call *call = memory_new(1, sizeof *call);
    call->kind = kind;
    call->argument = argument;
    call->call.what = what;
    call->call.release = queen_release;
    return call;
}

static struct queen_call *queen_fetch(struct queen_api *api, const struct fetch_request *request,
                                      queen_fetch_done *done, void *argument)
{
    struct queen_call *call = queen_call_make(QUEEN_FETCH, "fetch", argument);
    call->call.arrive = fetch_arrive;
    call->call.deliver = fetch_deliver;
    call->fetch_done = done;
    call->count = request->count;
    call->asked = memory_new(request->count, sizeof *call->asked);
    for (size_t i = 0; i < request->count; i++) {
        call->asked[i] = request->entries[i];
        call->asked[i].queue = name_copy(request->entries[i].queue);
        call->asked[i].partition = name_copy(request->entries[i].partition);
        if (request->entries[i].offset < 0 || request->entries[i].max_bytes < 1)
            sim_fail(instance_of_queen(api)->simulation, "a fetch entry that the broker would refuse: offset %lld",
                     (long long)request->entries[i].offset);
    }
    call->budget = request->budget;
    call->reserved = request->reserved;
    call->may_exceed = request->may_exceed;
    call_begin(instance_of_queen(api), &call->call, 0);
    return call;
}

/* ---- partitions/changed ---- */

struct listing {
    struct log_partition *partition;
    struct log_life *life;
    int64_t last_write;
};

static int compare_names(const struct log_partition *a, const struct log_partition *b)
{
    /* The database's collation, not byte order (spec 1.3): backwards will do. */
    return strcmp(b->name, a->name);
}

static int compare_by_name(const void *a, const void *b)
{
    return compare_names(((const struct listing *)a)->partition, ((const struct listing *)b)->partition);
}

static int compare_by_time(const void *a, const void *b)
{
    const struct listing *left = a;
    const struct listing *right = b;
    if (left->last_write != right->last_write)
        return left->last_write < right->last_write ? -1 : 1;
    return compare_names(left->partition, right->partition);
}

static int compare_by_creation(const void *a, const void *b)
{
    uint32_t left = ((const struct listing *)a)->life->creation;
    uint32_t right = ((const struct listing *)b)->life->creation;
    return (left > right) - (left < right);
}

/* True where the cursor lies before the listing's place. */
static bool is_after(const struct simulation *simulation, const struct changed_request_entry *asked,
                     const struct listing *listing)
{
    char *end;
    if (asked->after == NULL)
        return true;
    if (simulation->log.second)
        return listing->life->creation > strtoul(asked->after + 2, NULL, 10);
    if (!asked->has_since)
        return strcmp(asked->after + 2, listing->partition->name) > 0;
    int64_t time = strtoll(asked->after + 2, &end, 10);
    if (listing->last_write != time)
        return listing->last_write > time;
    return strcmp(end + 1, listing->partition->name) > 0;
}

static char *cursor_of(const struct simulation *simulation, const struct changed_request_entry *asked,
                       const struct listing *listing)
{
    if (simulation->log.second)
        return memory_format("c|%u", listing->life->creation);
    if (!asked->has_since)
        return memory_format("n|%s", listing->partition->name);
    return memory_format("t|%lld|%s", (long long)listing->last_write, listing->partition->name);
}

static void page_fill(struct simulation *simulation, const struct changed_request_entry *asked,
                      const struct listing *listings, size_t count, int64_t at, struct changed_entry *entry)
{
    size_t limit = asked->limit < (uint64_t)simulation->scenario.page_ceiling
                       ? asked->limit
                       : (size_t)simulation->scenario.page_ceiling;
    struct changed_partition *partitions = memory_new(count + 1, sizeof *partitions);
    size_t filled = 0;
    for (size_t i = 0; i < count && filled < limit; i++) {
        if (!is_after(simulation, asked, &listings[i]))
            continue;
        struct changed_partition *partition = &partitions[filled++];
        int64_t start;
        int64_t end;
        log_bounds(listings[i].life, at, &start, &end);
        *partition = (struct changed_partition){.name = {listings[i].partition->name, listings[i].partition->name_size},
                                                .last_offset = end - 1,
                                                .log_start = start,
                                                .last_write_at = {listings[i].last_write},
                                                .has_id = simulation->log.second};
        memcpy(partition->id.bytes, listings[i].life->id, sizeof partition->id.bytes);
        size_t life = (size_t)(listings[i].life - listings[i].partition->lives) + 1;
        if (life > listings[i].partition->shown)
            listings[i].partition->shown = life;
        if (filled == limit)
            entry->next = cursor_of(simulation, asked, &listings[i]);
        SIM_TRACE(simulation, "  page names %s: last %lld start %lld", partition->name.bytes,
                  (long long)partition->last_offset, (long long)start);
    }
    entry->partitions = partitions;
    entry->count = filled;
}

static void changed_one(struct simulation *simulation, const struct changed_request_entry *asked, int64_t at,
                        struct changed_entry *entry)
{
    size_t number;
    size_t count = 0;
    struct log_queue *queue = queue_find(simulation, asked->queue, &number);
    if (queue == NULL) {
        entry->status = CHANGED_UNKNOWN_QUEUE;
        return;
    }
    if (simulation->faults && chance_of(&simulation->chance, simulation->scenario.entry_fault)) {
        entry->status = CHANGED_PASSING;
        return;
    }
    struct listing *listings = memory_new(queue->partition_count + 1, sizeof *listings);
    for (size_t p = 0; p < queue->partition_count; p++) {
        struct log_life *life = log_life_at(&queue->partitions[p], at);
        if (life == NULL)
            continue;
        int64_t last = log_last_write(&simulation->log, life, at);
        if (asked->has_since && last < asked->since.v)
            continue;
        listings[count++] = (struct listing){&queue->partitions[p], life, last};
    }
    qsort(listings, count, sizeof *listings,
          simulation->log.second ? compare_by_creation
          : asked->has_since     ? compare_by_time
                                 : compare_by_name);
    page_fill(simulation, asked, listings, count, at, entry);
    free(listings);
}

static void changed_arrive(struct sim_call *base)
{
    struct queen_call *call = (struct queen_call *)base;
    struct simulation *simulation = base->simulation;
    if (call->changed_entries != NULL)
        return; /* a read that came twice is answered once */
    struct log_view view = log_look(&simulation->log, &simulation->chance, simulation->scheduler.now);
    call->changed_entries = memory_new(call->count + 1, sizeof *call->changed_entries);
    SIM_TRACE(simulation, "  safeTime %lld", (long long)view.safe_time);
    for (size_t i = 0; i < call->count; i++)
        changed_one(simulation, &call->pages[i], view.at, &call->changed_entries[i]);
    call->changed =
        (struct changed_answer){{view.safe_time}, simulation->log.degraded, call->changed_entries, call->count};
}

static void changed_deliver(struct sim_call *base, const struct error *error)
{
    struct queen_call *call = (struct queen_call *)base;
    call->changed_done(call->argument, error, error->code == QS_OK ? &call->changed : NULL);
}

static struct queen_call *queen_changed(struct queen_api *api, const struct changed_request_entry *entries,
                                        size_t count, queen_changed_done *done, void *argument)
{
    struct queen_call *call = queen_call_make(QUEEN_CHANGED, "changed", argument);
    call->call.arrive = changed_arrive;
    call->call.deliver = changed_deliver;
    call->changed_done = done;
    call->count = count;
    call->pages = memory_new(count + 1, sizeof *call->pages);
    for (size_t i = 0; i < count; i++) {
        call->pages[i] = entries[i];
        call->pages[i].queue = name_copy(entries[i].queue);
        call->pages[i].after = memory_copy_text(entries[i].after);
    }
    call_begin(instance_of_queen(api), &call->call, 0);
    return call;
}

/* ---- kv ---- */

static void kv_arrive(struct sim_call *base)
{
    struct queen_call *call = (struct queen_call *)base;
    struct simulation *simulation = base->simulation;
    documents_apply(&simulation->documents, &call->batch, simulation->scheduler.now,
                    chance_of(&simulation->chance, 300));
    if (call->batch.wrote)
        log_stamp(&simulation->log, simulation->scheduler.now); /* a write like any other: it moves a 2.x safeTime */
    for (size_t i = 0; i < call->batch.count; i++)
        SIM_TRACE(simulation, "  kv %d %s %s: %s", (int)call->batch.operations[i].kind,
                  call->batch.operations[i].key != NULL ? call->batch.operations[i].key : "(read)",
                  call->batch.operations[i].value != NULL ? call->batch.operations[i].value : "",
                  call->batch.answer.precondition_failed ? "rolled back"
                  : call->batch.results[i].applied       ? "applied"
                                                         : "not applied");
}

static void kv_deliver(struct sim_call *base, const struct error *error)
{
    struct queen_call *call = (struct queen_call *)base;
    call->kv_done(call->argument, error, error->code == QS_OK ? &call->batch.answer : NULL);
}

static struct queen_call *queen_kv(struct queen_api *api, const struct kv_operation *operations, size_t count,
                                   int64_t timeout_ms, queen_kv_done *done, void *argument)
{
    struct queen_call *call = queen_call_make(QUEEN_KV, "kv", argument);
    call->call.arrive = kv_arrive;
    call->call.deliver = kv_deliver;
    call->kv_done = done;
    document_batch_copy(&call->batch, operations, count);
    call_begin(instance_of_queen(api), &call->call, timeout_ms);
    return call;
}

/* ---- the table ---- */

static struct queen_call *queen_queues(struct queen_api *api, queen_queues_done *done, void *argument)
{
    (void)done;
    (void)argument;
    sim_fail(instance_of_queen(api)->simulation, "a driver asked for the list of queues");
    return NULL;
}

static void queen_cancel(struct queen_api *api, struct queen_call *call)
{
    (void)api;
    give_back_reservation(call);
    call_cancel(&call->call);
}

const struct queen_api_operations sim_queen_operations = {queen_fetch, queen_changed, queen_kv, queen_queues,
                                                          queen_cancel};
