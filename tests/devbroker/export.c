/*
 * The oracle; see export.h for the contract. What is exported is fixed when the call comes: ranges of segments that it
 * holds references to.
 */
#include "export.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "segment.h"

#define BLOCK_SIZE 262144

struct range {
    const struct partition *partition; /* never freed before the broker's end */
    struct segment *segment;
    uint32_t first;
    uint32_t last;
};

struct exporting {
    struct range *ranges;
    size_t count;
    size_t capacity;
    size_t at;
    struct text ready; /* rendered, not yet sent from sent on */
    size_t sent;
};

static void add_range(struct exporting *exporting, const struct partition *partition, struct segment *segment,
                      int64_t first, int64_t last)
{
    exporting->ranges =
        memory_room(exporting->ranges, exporting->count, &exporting->capacity, sizeof *exporting->ranges);
    segment_keep(segment);
    exporting->ranges[exporting->count++] = (struct range){partition, segment, (uint32_t)(first - segment->base_offset),
                                                           (uint32_t)(last - segment->base_offset)};
}

static void add_readable(struct exporting *exporting, const struct partition *partition, struct segment *segment)
{
    int64_t end = segment->base_offset + (int64_t)segment->count;
    int64_t offset = partition->log_start > segment->base_offset ? partition->log_start : segment->base_offset;

    while (offset < end) {
        int64_t until;

        offset = store_skip_holes(partition, offset, &until);
        until = until < end ? until : end;
        if (offset < until) {
            add_range(exporting, partition, segment, offset, until);
        }
        offset = until;
    }
}

static void add_partition(struct exporting *exporting, const struct partition *partition,
                          const struct export_wish *wish)
{
    for (size_t i = 0; i < partition->segment_count; i++) {
        struct segment *segment = partition->segments[i];

        if (segment->ts_us < wish->since_us || segment->ts_us >= wish->until_us) {
            continue;
        }
        if (wish->deleted) {
            add_range(exporting, partition, segment, segment->base_offset,
                      segment->base_offset + (int64_t)segment->count);
        } else {
            add_readable(exporting, partition, segment);
        }
    }
}

static void add_queue(struct exporting *exporting, const struct queue *queue, const struct export_wish *wish)
{
    for (size_t i = 0; i < queue->bucket_count; i++) {
        for (const struct partition *partition = queue->buckets[i]; partition != NULL; partition = partition->next) {
            add_partition(exporting, partition, wish);
        }
    }
    for (const struct partition *partition = wish->deleted ? queue->dead : NULL; partition != NULL;
         partition = partition->next) {
        add_partition(exporting, partition, wish);
    }
}

static int range_compare(const void *left_range, const void *right_range)
{
    const struct range *left = left_range;
    const struct range *right = right_range;
    int order = slice_compare(left->partition->name, right->partition->name);

    if (order != 0) {
        return order;
    }
    if (left->partition->serial != right->partition->serial) {
        return left->partition->serial < right->partition->serial ? -1 : 1;
    }
    if (left->segment->base_offset != right->segment->base_offset) {
        return left->segment->base_offset < right->segment->base_offset ? -1 : 1;
    }
    return left->first < right->first ? -1 : left->first > right->first;
}

static void add_line(const struct range *range, uint32_t index, struct text *text)
{
    struct slice transaction_id, payload;
    size_t start;

    segment_pieces(range->segment, index, &transaction_id, &payload);
    text_add_string(text, "{\"partition\":");
    text_add_quoted(text, range->partition->name);
    text_add_string(text, ",\"offset\":");
    text_add_number(text, range->segment->base_offset + (int64_t)index);
    text_add_string(text, ",\"transactionId\":");
    text_add_slice(text, transaction_id);
    text_add_string(text, ",\"ts\":\"");
    clock_add(text, range->segment->ts_us);
    text_add_string(text, "\",\"payload\":");
    start = text->size;
    text_add_slice(text, payload);
    for (size_t i = start; i < text->size; i++) {
        if (text->at[i] == '\n' || text->at[i] == '\r') {
            text->at[i] = ' ';
        }
    }
    text_add_string(text, "}\n");
}

static ssize_t export_read(void *context, uint64_t position, char *to, size_t size)
{
    struct exporting *exporting = context;
    size_t left;

    (void)position;
    if (exporting->sent == exporting->ready.size) {
        exporting->ready.size = 0;
        exporting->sent = 0;
    }
    while (exporting->ready.size < BLOCK_SIZE && exporting->at < exporting->count) {
        struct range *range = &exporting->ranges[exporting->at];

        add_line(range, range->first++, &exporting->ready);
        exporting->at += range->first == range->last;
    }
    left = exporting->ready.size - exporting->sent;
    if (left == 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    size = size < left ? size : left;
    memcpy(to, exporting->ready.at + exporting->sent, size);
    exporting->sent += size;
    return (ssize_t)size;
}

static void export_free(void *context)
{
    struct exporting *exporting = context;

    for (size_t i = 0; i < exporting->count; i++) {
        segment_release(exporting->ranges[i].segment);
    }
    free(exporting->ranges);
    text_free(&exporting->ready);
    free(exporting);
}

struct MHD_Response *export_response(struct broker *broker, const struct export_wish *wish)
{
    struct exporting *exporting = memory_take(1, sizeof *exporting);
    struct MHD_Response *response;
    const struct queue *queue;
    bool known;

    store_read_lock(&broker->store);
    queue = store_find_queue(&broker->store, wish->queue);
    known = queue != NULL;
    if (known) {
        add_queue(exporting, queue, wish);
    }
    for (queue = wish->deleted ? broker->store.dead : NULL; queue != NULL; queue = queue->next) {
        if (slice_equal(queue->name, wish->queue)) {
            add_queue(exporting, queue, wish);
            known = true;
        }
    }
    store_unlock(&broker->store);
    if (!known) {
        export_free(exporting);
        return NULL;
    }
    if (exporting->count > 0) {
        qsort(exporting->ranges, exporting->count, sizeof *exporting->ranges, range_compare);
    }
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, export_read, exporting, export_free);
    if (response == NULL) {
        export_free(exporting);
    }
    return response;
}
