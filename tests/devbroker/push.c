/*
 * POST /api/v1/push (spec 01, 1.5): the producer's side.
 *
 * A payload is a slice of the body, spliced into the segment as it came. Items are grouped by (queue, partition), each
 * group is one segment. Transaction ids are remembered as 128-bit hashes for the deduplication window.
 */
#include "broker.h"
#include "clock.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define DEDUP_WINDOW_US    INT64_C(3600000000)
#define NAME_CONTROL_LIMIT 0x20

struct seen {
    uint64_t first;
    uint64_t second;
    int64_t at_us; /* 0: free */
};

struct dedup { /* open addressing; guarded by the store's write lock */
    struct seen *slots;
    size_t capacity; /* a power of two */
    size_t count;
    uint64_t minted;
};

struct item {
    struct text queue;
    struct text partition;
    struct text transaction_id;
    struct slice payload;
    bool duplicate;
};

struct batch {
    struct item *items;
    size_t count;
    size_t capacity;
};

struct dedup *dedup_start(void)
{
    struct dedup *dedup = memory_take(1, sizeof *dedup);

    dedup->capacity = 1024;
    dedup->slots = memory_take(dedup->capacity, sizeof *dedup->slots);
    return dedup;
}

void dedup_end(struct dedup *dedup)
{
    free(dedup->slots);
    free(dedup);
}

static struct seen *dedup_slot(struct seen *slots, size_t capacity, uint64_t first, uint64_t second)
{
    size_t at = first & (capacity - 1);

    while (slots[at].at_us != 0 && (slots[at].first != first || slots[at].second != second)) {
        at = (at + 1) & (capacity - 1);
    }
    return &slots[at];
}

static void dedup_grow(struct dedup *dedup, int64_t now_us)
{
    size_t capacity = dedup->capacity * 2;
    struct seen *slots = memory_take(capacity, sizeof *slots);

    dedup->count = 0;
    for (size_t i = 0; i < dedup->capacity; i++) {
        const struct seen *seen = &dedup->slots[i];

        if (seen->at_us != 0 && now_us - seen->at_us <= DEDUP_WINDOW_US) {
            *dedup_slot(slots, capacity, seen->first, seen->second) = *seen;
            dedup->count++;
        }
    }
    free(dedup->slots);
    dedup->slots = slots;
    dedup->capacity = capacity;
}

/* True when the partition has had this id inside the window; remembers it otherwise. */
static bool dedup_is_repeat(struct dedup *dedup, const struct partition *partition, struct slice id, int64_t now_us)
{
    uint64_t first = slice_hash(id, (uint64_t)partition->serial * 2);
    uint64_t second = slice_hash(id, (uint64_t)partition->serial * 2 + 1);
    struct seen *slot;

    if (dedup->count * 2 >= dedup->capacity) {
        dedup_grow(dedup, now_us);
    }
    slot = dedup_slot(dedup->slots, dedup->capacity, first, second);
    if (slot->at_us != 0 && now_us - slot->at_us <= DEDUP_WINDOW_US) {
        return true;
    }
    dedup->count += slot->at_us == 0;
    *slot = (struct seen){first, second, now_us};
    return false;
}

static void mint_id(struct dedup *dedup, struct text *id)
{
    uint64_t seed[2] = {++dedup->minted, (uint64_t)clock_now_us()};
    struct slice bytes = {(const char *)seed, sizeof seed};
    uint64_t high = slice_hash(bytes, 3);
    uint64_t low = slice_hash(bytes, 4);

    text_add_format(id, "%08x-%04x-7%03x-a%03x-%012llx", (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xFFFF),
                    (unsigned)(high & 0xFFF), (unsigned)(low >> 52), (unsigned long long)(low & 0xFFFFFFFFFFFF));
}

static bool is_name(const struct text *name)
{
    for (size_t i = 0; i < name->size; i++) {
        if ((unsigned char)name->at[i] < NAME_CONTROL_LIMIT) {
            return false;
        }
    }
    return true;
}

static bool read_name(struct slice value, const char *missing, struct text *name)
{
    if (value.at == NULL || json_is_null(value)) {
        text_add_string(name, missing == NULL ? "" : missing);
        return missing != NULL;
    }
    return json_is_string(value) && json_string(value, name) && is_name(name);
}

static const char *parse_item(struct slice element, struct item *item)
{
    static const char *const names[] = {"queue", "partition", "transactionId", "payload"};
    struct slice values[4];

    if (!json_members(element, names, values, 4)) {
        return "an item has to be an object";
    }
    if (!read_name(values[0], NULL, &item->queue) || item->queue.size == 0) {
        return "queue has to be a string without control characters";
    }
    if (!read_name(values[1], "Default", &item->partition)) {
        return "partition has to be a string without control characters";
    }
    if (!read_name(values[2], "", &item->transaction_id)) {
        return "transactionId has to be a string without control characters";
    }
    if (values[2].at != NULL && !json_is_null(values[2])) {
        text_reserve(&item->transaction_id, 1); /* given, though perhaps empty */
    }
    if (values[3].at == NULL) {
        return "payload is missing";
    }
    item->payload = values[3];
    return NULL;
}

static const char *parse_batch(struct slice body, struct batch *batch)
{
    static const char *const names[] = {"items"};
    struct slice items;
    struct slice element;

    if (!json_is_valid(body) || !json_members(body, names, &items, 1) || !json_is_array(items)) {
        return "the body has to be an object with items";
    }
    while (json_next_element(&items, &element)) {
        const char *problem;

        batch->items = memory_room(batch->items, batch->count, &batch->capacity, sizeof *batch->items);
        batch->items[batch->count] = (struct item){0};
        problem = parse_item(element, &batch->items[batch->count++]);
        if (problem != NULL) {
            return problem;
        }
    }
    return NULL;
}

static void free_batch(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        text_free(&batch->items[i].queue);
        text_free(&batch->items[i].partition);
        text_free(&batch->items[i].transaction_id);
    }
    free(batch->items);
}

static int item_compare(const void *left_item, const void *right_item)
{
    const struct item *left = *(struct item *const *)left_item;
    const struct item *right = *(struct item *const *)right_item;
    int order = slice_compare(text_slice(&left->queue), text_slice(&right->queue));

    if (order == 0) {
        order = slice_compare(text_slice(&left->partition), text_slice(&right->partition));
    }
    return order != 0 ? order : (left < right ? -1 : left > right);
}

static bool same_group(const struct item *left, const struct item *right)
{
    return slice_equal(text_slice(&left->queue), text_slice(&right->queue)) &&
           slice_equal(text_slice(&left->partition), text_slice(&right->partition));
}

static void append_group(struct broker *broker, struct item **items, size_t count)
{
    struct queue *queue = store_take_queue(&broker->store, text_slice(&items[0]->queue));
    struct partition *partition = store_take_partition(&broker->store, queue, text_slice(&items[0]->partition));
    struct record *records = memory_take(count, sizeof *records);
    int64_t stamp = clock_stamp();
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct slice id = text_slice(&items[i]->transaction_id);

        items[i]->duplicate = dedup_is_repeat(broker->dedup, partition, id, stamp);
        if (!items[i]->duplicate) {
            records[kept++] = (struct record){id, items[i]->payload};
        }
    }
    if (kept > 0) {
        store_append(&broker->store, queue, partition, partition->next_offset, stamp, records, kept);
    }
    free(records);
}

static void append_batch(struct broker *broker, struct batch *batch)
{
    struct item **sorted = memory_take(batch->count, sizeof(struct item *));

    for (size_t i = 0; i < batch->count; i++) {
        sorted[i] = &batch->items[i];
    }
    qsort(sorted, batch->count, sizeof *sorted, item_compare);
    store_write_lock(&broker->store);
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].transaction_id.at == NULL) {
            mint_id(broker->dedup, &batch->items[i].transaction_id);
        }
    }
    for (size_t i = 0; i < batch->count;) {
        size_t end = i + 1;

        while (end < batch->count && same_group(sorted[i], sorted[end])) {
            end++;
        }
        append_group(broker, sorted + i, end - i);
        i = end;
    }
    store_unlock(&broker->store);
    free(sorted);
}

static void add_results(const struct broker *broker, const struct batch *batch, bool buffered, struct text *text)
{
    text_add_string(text, "[");
    for (size_t i = 0; i < batch->count; i++) {
        const struct item *item = &batch->items[i];

        text_add_format(text, "%s{\"index\":%zu,\"message_id\":\"", i == 0 ? "" : ",", i);
        mint_id(broker->dedup, text);
        text_add_string(text, "\",\"transaction_id\":");
        text_add_quoted(text, text_slice(&item->transaction_id));
        text_add_string(text, ",\"queueName\":");
        text_add_quoted(text, text_slice(&item->queue));
        text_add_format(text, ",\"status\":\"%s\"}",
                        buffered ? "buffered" : (item->duplicate ? "duplicate" : "queued"));
    }
    text_add_string(text, "]");
}

void push_apply(struct broker *broker, struct slice body, struct answer *answer)
{
    struct batch batch = {0};
    const char *problem = parse_batch(body, &batch);
    bool buffered = broker_database_is_down(broker);

    if (problem != NULL) {
        answer_error(answer, 400, problem);
        free_batch(&batch);
        return;
    }
    if (buffered) {
        pthread_mutex_lock(&broker->control_lock);
        broker->buffered = memory_resize(broker->buffered, broker->buffered_count + 1, sizeof *broker->buffered);
        broker->buffered[broker->buffered_count++] = slice_copy(body);
        pthread_mutex_unlock(&broker->control_lock);
    } else {
        append_batch(broker, &batch);
    }
    answer->status = 201;
    store_write_lock(&broker->store);
    add_results(broker, &batch, buffered, &answer->text);
    store_unlock(&broker->store);
    answer->entries = (int64_t)batch.count;
    free_batch(&batch);
}

void push_answer(const struct call *call, struct answer *answer)
{
    push_apply(call->broker, call->body, answer);
}
