/*
 * POST /api/v1/fetch (spec 01, 1.2): records from offsets, within ceilings.
 *
 * The ceilings are the point of this file. maxBytes counts compressed bytes of whole segments and is looked at before
 * each further one, so an entry overshoots; the call as a whole has two more, after which entries come back empty
 * though they are not caught up. Compression is modelled: rendered bytes divided by --compression-ratio.
 */
#include "broker.h"
#include "clock.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY_LIMIT         1024
#define ENTRY_RECORD_LIMIT  10000
#define ENTRY_BYTES_DEFAULT INT64_C(1048576)
#define ENTRY_BYTES_LIMIT   (INT64_C(8) * 1048576)
#define CALL_BYTES_LIMIT    (INT64_C(64) * 1048576)
#define WAIT_LIMIT_MS       30000

struct wanted {
    struct text queue;
    struct text partition;
    int64_t offset;
    int64_t max_bytes;
};

struct request {
    struct wanted *entries;
    size_t count;
    int64_t wait_ms;
    int64_t min_bytes;
};

struct reading { /* one call's progress */
    const struct call *call;
    struct answer *answer;
    int64_t compressed;
    int64_t rendered;
    int64_t visible_until_us; /* what a node that lags has not seen yet */
};

static bool is_fault(const struct call *call, enum fault_kind kind)
{
    return call->fault != NULL && call->fault->kind == kind;
}

static const char *parse_name(struct slice value, const char *missing, struct text *name)
{
    if (value.at == NULL && missing != NULL) {
        text_add_string(name, missing);
        return NULL;
    }
    return json_is_string(value) && json_string(value, name) ? NULL : "queue and partition have to be strings";
}

static const char *parse_entry(struct slice element, struct wanted *wanted)
{
    static const char *const names[] = {"queue", "partition", "offset", "maxBytes"};
    struct slice values[4];
    const char *problem;

    if (!json_members(element, names, values, 4)) {
        return "an entry has to be an object";
    }
    problem = parse_name(values[0], NULL, &wanted->queue);
    if (problem == NULL) {
        problem = parse_name(values[1], "Default", &wanted->partition);
    }
    if (problem != NULL) {
        return problem;
    }
    if (!json_integer(values[2], &wanted->offset) || wanted->offset < 0) {
        return "offset has to be an integer of at least 0";
    }
    wanted->max_bytes = ENTRY_BYTES_DEFAULT;
    if (values[3].at != NULL && !json_is_null(values[3]) && !json_integer(values[3], &wanted->max_bytes)) {
        return "maxBytes has to be an integer";
    }
    wanted->max_bytes = wanted->max_bytes < 1 ? 1 : wanted->max_bytes;
    wanted->max_bytes = wanted->max_bytes > ENTRY_BYTES_LIMIT ? ENTRY_BYTES_LIMIT : wanted->max_bytes;
    return NULL;
}

static const char *parse_request(struct slice body, struct request *request)
{
    static const char *const names[] = {"entries", "maxWaitMs", "minBytes"};
    struct slice values[3];
    struct slice element;

    if (!json_is_valid(body) || !json_members(body, names, values, 3) || !json_is_array(values[0])) {
        return "the body has to be an object with entries";
    }
    request->wait_ms = 0;
    request->min_bytes = 1;
    if ((values[1].at != NULL && !json_integer(values[1], &request->wait_ms)) ||
        (values[2].at != NULL && !json_integer(values[2], &request->min_bytes))) {
        return "maxWaitMs and minBytes have to be integers";
    }
    request->wait_ms = request->wait_ms > WAIT_LIMIT_MS ? WAIT_LIMIT_MS : request->wait_ms;
    while (json_next_element(&values[0], &element)) {
        const char *problem;

        if (request->count == ENTRY_LIMIT) {
            return "more than 1024 entries";
        }
        problem = parse_entry(element, &request->entries[request->count++]);
        if (problem != NULL) {
            return problem;
        }
    }
    return NULL;
}

/* How many of the records [first, last) fit what is left of the call; a call's very first record always does. */
static uint32_t fit_records(const struct reading *reading, const struct segment *segment, uint32_t first, uint32_t last)
{
    int64_t room = CALL_BYTES_LIMIT - reading->rendered;
    uint32_t low = first;
    uint32_t high = last;

    while (low < high) {
        uint32_t middle = high - (high - low) / 2;

        if ((int64_t)(segment->starts[middle] - segment->starts[first]) <= room) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low == first && reading->rendered == 0 ? first + 1 : low;
}

/* Adds a segment's readable records from offset on; returns how many, and sets *cut when a ceiling ended it. */
static uint32_t read_segment(struct reading *reading, const struct partition *partition, struct segment *segment,
                             int64_t offset, uint32_t already, bool *cut)
{
    int64_t end = segment->base_offset + (int64_t)segment->count;
    uint32_t added = 0;

    while (!*cut) {
        int64_t until;
        uint32_t first, last, fits;

        offset = store_skip_holes(partition, offset, &until);
        if (offset >= end) {
            break;
        }
        until = until < end ? until : end;
        if (until - offset > (int64_t)(ENTRY_RECORD_LIMIT - already - added)) {
            until = offset + (int64_t)(ENTRY_RECORD_LIMIT - already - added);
            *cut = true;
        }
        first = (uint32_t)(offset - segment->base_offset);
        last = (uint32_t)(until - segment->base_offset);
        fits = first < last ? fit_records(reading, segment, first, last) : first;
        *cut = *cut || fits < last;
        if (fits > first) {
            answer_add_records(reading->answer, segment, first, fits, already + added > 0);
            reading->rendered += (int64_t)(segment->starts[fits] - segment->starts[first]);
            added += fits - first;
        }
        offset = until;
    }
    return added;
}

static void read_records(struct reading *reading, const struct partition *partition, const struct wanted *wanted)
{
    double ratio = reading->call->broker->options.compression_ratio;
    int64_t spent = 0;
    uint32_t count = 0;
    bool cut = false;

    for (size_t i = store_find_segment(partition, wanted->offset); i < partition->segment_count && !cut; i++) {
        struct segment *segment = partition->segments[i];
        int64_t start = wanted->offset > segment->base_offset ? wanted->offset : segment->base_offset;
        uint32_t added;

        if (spent >= wanted->max_bytes || reading->compressed >= CALL_BYTES_LIMIT ||
            reading->rendered >= CALL_BYTES_LIMIT || segment->ts_us > reading->visible_until_us) {
            break;
        }
        added = read_segment(reading, partition, segment, start, count, &cut);
        if (added > 0) {
            int64_t compressed = (int64_t)((double)segment->starts[segment->count] / ratio) + 1;

            spent += compressed;
            reading->compressed += compressed;
        }
        count += added;
    }
}

static int64_t visible_watermark(const struct reading *reading, const struct partition *partition)
{
    int64_t watermark = partition->next_offset;

    for (size_t i = partition->segment_count; i > 0; i--) {
        const struct segment *segment = partition->segments[i - 1];

        if (segment->ts_us <= reading->visible_until_us) {
            break;
        }
        watermark = segment->base_offset;
    }
    return watermark;
}

static void add_entry_end(struct text *text, int64_t watermark, int64_t log_start, struct slice error)
{
    text_add_string(text, "],\"highWatermark\":");
    text_add_number(text, watermark);
    text_add_string(text, ",\"logStartOffset\":");
    text_add_number(text, log_start);
    if (error.at != NULL) {
        text_add_string(text, ",\"error\":");
        text_add_quoted(text, error);
    }
    text_add_string(text, "}");
}

/* The wrong-entry fault on an entry that is alone: the right records under another partition's name. */
static struct slice shown_partition(const struct reading *reading, const struct wanted *wanted, struct text *other)
{
    if (!is_fault(reading->call, FAULT_WRONG_ENTRY)) {
        return text_slice(&wanted->partition);
    }
    text_add_slice(other, text_slice(&wanted->partition));
    text_add_string(other, "-other");
    return text_slice(other);
}

static void read_entry(struct reading *reading, const struct wanted *wanted)
{
    struct store *store = &reading->call->broker->store;
    struct text *text = &reading->answer->text;
    struct queue *queue = store_find_queue(store, text_slice(&wanted->queue));
    struct partition *partition = queue == NULL ? NULL : store_find_partition(queue, text_slice(&wanted->partition));
    int64_t watermark = partition == NULL ? 0 : visible_watermark(reading, partition);
    int64_t log_start = partition == NULL ? 0 : partition->log_start;
    struct text other = {0};
    struct slice error = {0};
    bool hit = fault_hits(reading->call->fault, text_slice(&wanted->queue), text_slice(&wanted->partition));

    text_add_string(text, "{\"queue\":");
    text_add_quoted(text, text_slice(&wanted->queue));
    text_add_string(text, ",\"partition\":");
    text_add_quoted(text, shown_partition(reading, wanted, &other));
    text_add_string(text, ",\"records\":[");
    if (queue == NULL) {
        error = slice_of("UNKNOWN_TOPIC_OR_PARTITION");
    } else if (hit && is_fault(reading->call, FAULT_ENTRY_ERROR)) {
        error = slice_of(reading->call->fault->error);
    } else if (wanted->offset < log_start || wanted->offset > watermark) {
        error = slice_of("OFFSET_OUT_OF_RANGE");
    } else if (partition != NULL && !(hit && is_fault(reading->call, FAULT_EMPTY))) {
        read_records(reading, partition, wanted);
    }
    add_entry_end(text, watermark, log_start, error);
    text_free(&other);
}

static void read_request(const struct call *call, const struct request *request, struct answer *answer)
{
    struct reading reading = {.call = call, .answer = answer, .visible_until_us = INT64_MAX};
    bool backwards = is_fault(call, FAULT_WRONG_ENTRY) && request->count > 1;
    struct call straight = *call;

    if (backwards) {
        straight.fault = NULL;
        reading.call = &straight;
    }
    answer_start(answer);
    text_add_string(&answer->text, "{\"entries\":[");
    store_read_lock(&call->broker->store);
    if (is_fault(call, FAULT_LAG)) {
        reading.visible_until_us = clock_now_us() - call->fault->lag_us;
    }
    for (size_t i = 0; i < request->count; i++) {
        text_add_string(&answer->text, i == 0 ? "" : ",");
        read_entry(&reading, &request->entries[backwards ? request->count - 1 - i : i]);
    }
    store_unlock(&call->broker->store);
    text_add_string(&answer->text, "]}");
    answer_finish(answer);
}

static bool has_min_bytes(const struct request *request, const struct answer *answer)
{
    /* What an answer weighs without a record: near enough for a parked call, which the sink never makes. */
    int64_t bare = 0;

    for (size_t i = 0; i < request->count; i++) {
        bare += (int64_t)(request->entries[i].queue.size + request->entries[i].partition.size) + 200;
    }
    return (int64_t)answer_size(answer) >= bare + request->min_bytes;
}

static void read_or_wait(const struct call *call, const struct request *request, struct answer *answer)
{
    int64_t until_ms = clock_mono_ms() + request->wait_ms;

    for (;;) {
        uint64_t seen = store_change_count(&call->broker->store);
        int64_t left_ms;

        read_request(call, request, answer);
        left_ms = until_ms - clock_mono_ms();
        if (request->wait_ms <= 0 || left_ms <= 0 || has_min_bytes(request, answer) ||
            atomic_load(&call->broker->stopping)) {
            return;
        }
        store_wait_change(&call->broker->store, seen, left_ms > 100 ? 100 : left_ms);
        if (until_ms > clock_mono_ms()) {
            answer_free(answer);
        } else {
            return;
        }
    }
}

void fetch_answer(const struct call *call, struct answer *answer)
{
    struct request request = {.entries = memory_take(ENTRY_LIMIT, sizeof(struct wanted))};
    const char *problem = parse_request(call->body, &request);

    if (problem != NULL) {
        answer_error(answer, 400, problem);
    } else if (broker_database_is_down(call->broker)) {
        answer_error(answer, 500, "pool");
    } else {
        read_or_wait(call, &request, answer);
    }
    answer->entries = (int64_t)request.count;
    for (size_t i = 0; i < request.count; i++) {
        text_free(&request.entries[i].queue);
        text_free(&request.entries[i].partition);
    }
    free(request.entries);
}
