/*
 * POST /api/v1/partitions/changed (spec 01, 1.3 and 1.7): discovery, a page at a time, and safeTime.
 *
 * The answer is spelled the way PostgreSQL spells jsonb: blanks after colons and commas, keys by length and then bytes.
 */
#include "broker.h"
#include "clock.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY_LIMIT_1   64
#define ENTRY_LIMIT_2   1024
#define PAGE_LIMIT      1000
#define DEGRADED_LAG_US INT64_C(30000000)

enum cursor_mode { CURSOR_NONE, CURSOR_NAME, CURSOR_TIME, CURSOR_SERIAL, CURSOR_BAD };

struct asked {
    struct text queue;
    bool has_since;
    int64_t since_us;
    enum cursor_mode mode;
    int64_t cursor_key;
    struct text cursor_name;
    int64_t limit;
};

struct request {
    struct asked *entries;
    size_t count;
    unsigned status; /* of a refusal */
};

int64_t broker_safe_time(struct broker *broker, bool *degraded)
{
    int64_t safe_us =
        broker->store.version_2 ? clock_last_stamp() : clock_now_us() - broker->options.safe_lag_ms * INT64_C(1000);

    *degraded = false;
    pthread_mutex_lock(&broker->control_lock);
    if (broker->safe_mode == SAFE_PINNED && broker->safe_pin_us < safe_us) {
        safe_us = broker->safe_pin_us;
    }
    if (broker->safe_mode == SAFE_DEGRADED && !broker->store.version_2) {
        safe_us = clock_now_us() - DEGRADED_LAG_US;
        *degraded = true;
    }
    pthread_mutex_unlock(&broker->control_lock);
    return safe_us;
}

static bool parse_number(struct slice *from, int64_t *number)
{
    const char *bar = from->size == 0 ? NULL : memchr(from->at, '|', from->size);
    struct slice digits = {from->at, bar == NULL ? from->size : (size_t)(bar - from->at)};

    *from = (struct slice){digits.at + digits.size + (bar != NULL), from->size - digits.size - (bar != NULL)};
    return json_integer(digits, number);
}

/* False for a cursor that is of the right form with a timestamp that is none: that refuses the whole call. */
static bool parse_cursor(const struct broker *broker, struct slice cursor, struct asked *asked)
{
    char mode = '\0';

    if (cursor.size >= 2 && cursor.at[1] == '|') {
        mode = cursor.at[0];
        cursor = (struct slice){cursor.at + 2, cursor.size - 2};
    }
    asked->mode = CURSOR_BAD;
    if (broker->store.version_2) {
        if (mode == 'c' && parse_number(&cursor, &asked->cursor_key)) {
            asked->mode = CURSOR_SERIAL;
        }
        return true;
    }
    if (mode == 't') {
        asked->mode = CURSOR_TIME;
        if (!parse_number(&cursor, &asked->cursor_key)) {
            return false;
        }
    } else if (mode == 'n') {
        asked->mode = CURSOR_NAME;
    }
    text_add_slice(&asked->cursor_name, cursor);
    text_reserve(&asked->cursor_name, 1);
    return true;
}

static const char *parse_since(struct slice value, struct asked *asked)
{
    struct text decoded = {0};

    if (value.at == NULL || json_is_null(value)) {
        return NULL;
    }
    asked->has_since = true;
    if (!json_is_string(value) || !json_string(value, &decoded) ||
        !clock_parse(text_slice(&decoded), &asked->since_us)) {
        text_free(&decoded);
        return "since is no timestamp";
    }
    text_free(&decoded);
    return NULL;
}

static const char *parse_entry(const struct broker *broker, struct slice element, struct asked *asked)
{
    static const char *const names[] = {"queue", "since", "after", "limit"};
    struct slice values[4];
    struct text cursor = {0};
    const char *problem;

    if (!json_members(element, names, values, 4) || !json_is_string(values[0]) ||
        !json_string(values[0], &asked->queue)) {
        return "an entry has to be an object with a queue";
    }
    problem = parse_since(values[1], asked);
    if (problem != NULL) {
        return problem;
    }
    if (values[2].at != NULL && !json_is_null(values[2])) {
        if (!json_is_string(values[2]) || !json_string(values[2], &cursor)) {
            problem = "after has to be a string";
        } else if (!parse_cursor(broker, text_slice(&cursor), asked)) {
            problem = "the cursor's timestamp is none";
        }
        text_free(&cursor);
    }
    asked->limit = PAGE_LIMIT;
    if (values[3].at != NULL && !json_is_null(values[3]) && !json_integer(values[3], &asked->limit)) {
        problem = "limit has to be an integer";
    }
    asked->limit = asked->limit < 1 ? 1 : (asked->limit > PAGE_LIMIT ? PAGE_LIMIT : asked->limit);
    return problem;
}

static bool has_nul(const struct text *text)
{
    return text->size > 0 && memchr(text->at, '\0', text->size) != NULL;
}

static const char *parse_request(const struct broker *broker, struct slice body, struct request *request)
{
    static const char *const names[] = {"entries"};
    size_t limit = broker->store.version_2 ? ENTRY_LIMIT_2 : ENTRY_LIMIT_1;
    struct slice entries;
    struct slice element;

    request->status = 400;
    if (!json_is_valid(body) || !json_members(body, names, &entries, 1) || !json_is_array(entries)) {
        return "the body has to be an object with entries";
    }
    while (json_next_element(&entries, &element)) {
        const char *problem;

        if (request->count == limit) {
            return "too many entries";
        }
        problem = parse_entry(broker, element, &request->entries[request->count++]);
        if (problem != NULL) {
            return problem;
        }
    }
    for (size_t i = 0; i < request->count; i++) {
        if (has_nul(&request->entries[i].queue) || has_nul(&request->entries[i].cursor_name)) {
            request->status = 500;
            return "invalid byte sequence for encoding \"UTF8\": 0x00";
        }
    }
    return NULL;
}

/* A partition's last offset and whether it is there at all, as a node sees it that knows nothing after until_us. */
static bool visible_last_offset(const struct partition *partition, int64_t until_us, int64_t *last_offset)
{
    size_t i = partition->segment_count;

    *last_offset = partition->next_offset - 1;
    if (i == 0 || partition->segments[i - 1]->ts_us <= until_us) {
        return true;
    }
    while (i > 0 && partition->segments[i - 1]->ts_us > until_us) {
        *last_offset = partition->segments[i - 1]->base_offset - 1;
        i--;
    }
    return i > 0;
}

static void add_partition(const struct store *store, const struct partition *partition, int64_t last_offset,
                          struct text *text)
{
    char id[36];

    text_add_string(text, "{");
    if (store->version_2) {
        store_write_id(partition, id);
        text_add_string(text, "\"id\": \"");
        text_add(text, id, sizeof id);
        text_add_string(text, "\", ");
    }
    text_add_string(text, "\"name\": ");
    text_add_quoted(text, partition->name);
    text_add_string(text, ", \"logStart\": ");
    text_add_number(text, partition->log_start);
    text_add_string(text, ", \"lastOffset\": ");
    text_add_number(text, last_offset);
    text_add_string(text, ", \"lastWriteAt\": \"");
    clock_add(text, partition->last_write_at_us == INT64_MIN ? 0 : partition->last_write_at_us);
    text_add_string(text, "\"}");
}

static struct index *wanted_index(const struct store *store, const struct asked *asked, struct queue *queue)
{
    if (store->version_2) {
        return &queue->by_creation;
    }
    return asked->has_since ? &queue->by_write : &queue->by_name;
}

static size_t page_start(const struct index *index, const struct asked *asked)
{
    struct slice none = {0};

    switch (index->order) {
    case INDEX_BY_CREATION: return asked->mode == CURSOR_NONE ? 0 : index_find(index, asked->cursor_key + 1, none);
    case INDEX_BY_WRITE:
        if (asked->mode == CURSOR_NONE || asked->cursor_key < asked->since_us) {
            return index_find(index, asked->since_us, none);
        }
        return index_find(index, asked->cursor_key, text_slice(&asked->cursor_name));
    default: return asked->mode == CURSOR_NONE ? 0 : index_find(index, 0, text_slice(&asked->cursor_name));
    }
}

static void write_cursor(const struct index *index, const struct index_entry *last, struct text *next)
{
    static const char modes[] = {'n', 't', 'c'};
    struct text cursor = {0};

    text_add_format(&cursor, "%c|", modes[index->order]);
    if (index->order != INDEX_BY_NAME) {
        text_add_number(&cursor, last->key);
    }
    if (index->order == INDEX_BY_WRITE) {
        text_add_string(&cursor, "|");
    }
    if (index->order != INDEX_BY_CREATION) {
        text_add_slice(&cursor, last->partition->name);
    }
    text_add_quoted(next, text_slice(&cursor));
    text_free(&cursor);
}

/* The page's partitions; the cursor goes to next when the page is full. */
static void add_page(const struct store *store, const struct asked *asked, struct queue *queue, int64_t until_us,
                     struct text *partitions, struct text *next)
{
    const struct index *index = wanted_index(store, asked, queue);
    int64_t count = 0;

    for (size_t i = page_start(index, asked); i < index->settled && count < asked->limit; i++) {
        const struct index_entry *entry = &index->entries[i];
        int64_t last_offset;

        if (!index_is_current(index, entry) ||
            (asked->has_since && entry->partition->last_write_at_us < asked->since_us) ||
            !visible_last_offset(entry->partition, until_us, &last_offset)) {
            continue;
        }
        text_add_string(partitions, count == 0 ? "" : ", ");
        add_partition(store, entry->partition, last_offset, partitions);
        count++;
        if (count == asked->limit) {
            write_cursor(index, entry, next);
        }
    }
}

static bool is_bad_cursor(const struct store *store, const struct asked *asked)
{
    switch (asked->mode) {
    case CURSOR_NONE: return false;
    case CURSOR_NAME: return store->version_2 || asked->has_since;
    case CURSOR_TIME: return store->version_2 || !asked->has_since;
    case CURSOR_SERIAL: return !store->version_2;
    default: return true;
    }
}

static void add_entry(const struct call *call, const struct asked *asked, int64_t until_us, struct text *text)
{
    struct store *store = &call->broker->store;
    struct queue *queue = store_find_queue(store, text_slice(&asked->queue));
    const char *error = NULL;
    struct text partitions = {0};
    struct text next = {0};
    bool wrong = call->fault != NULL && call->fault->kind == FAULT_WRONG_ENTRY;

    if (queue == NULL) {
        error = "UNKNOWN_TOPIC_OR_PARTITION";
    } else if (is_bad_cursor(store, asked)) {
        error = "BAD_CURSOR";
    } else if (call->fault != NULL && call->fault->kind == FAULT_ENTRY_ERROR &&
               fault_hits(call->fault, text_slice(&asked->queue), call->fault->partition)) {
        error = call->fault->error;
    } else {
        add_page(store, asked, queue, until_us, &partitions, &next);
    }
    text_add_string(text, "{\"next\": ");
    text_add_slice(text, next.size == 0 ? slice_of("null") : text_slice(&next));
    if (error != NULL) {
        text_add_string(text, ", \"error\": ");
        text_add_quoted(text, slice_of(error));
    }
    text_add_string(text, ", \"queue\": ");
    text_add_quoted(text, wrong ? slice_of("another") : text_slice(&asked->queue));
    text_add_string(text, ", \"partitions\": [");
    text_add_slice(text, text_slice(&partitions));
    text_add_string(text, "]}");
    text_free(&partitions);
    text_free(&next);
}

/* Takes the lock that the request needs: for writing only when an index has to be settled first. */
static void lock_settled(struct store *store, const struct request *request)
{
    bool settled = true;

    store_read_lock(store);
    for (size_t i = 0; i < request->count; i++) {
        struct queue *queue = store_find_queue(store, text_slice(&request->entries[i].queue));

        settled = settled && (queue == NULL || index_is_settled(wanted_index(store, &request->entries[i], queue)));
    }
    if (settled) {
        return;
    }
    store_unlock(store);
    store_write_lock(store);
    for (size_t i = 0; i < request->count; i++) {
        struct queue *queue = store_find_queue(store, text_slice(&request->entries[i].queue));

        if (queue != NULL) {
            index_settle(wanted_index(store, &request->entries[i], queue));
        }
    }
}

static void add_answer(const struct call *call, const struct request *request, struct text *text)
{
    struct broker *broker = call->broker;
    int64_t until_us = INT64_MAX;
    int64_t safe_us;
    bool degraded;

    lock_settled(&broker->store, request);
    safe_us = broker_safe_time(broker, &degraded);
    if (call->fault != NULL && call->fault->kind == FAULT_LAG) {
        until_us = clock_now_us() - call->fault->lag_us;
        safe_us = safe_us < until_us ? safe_us : until_us;
    }
    text_add_string(text, "{\"entries\": [");
    for (size_t i = 0; i < request->count; i++) {
        text_add_string(text, i == 0 ? "" : ", ");
        add_entry(call, &request->entries[i], until_us, text);
    }
    store_unlock(&broker->store);
    text_add_string(text, "], \"safeTime\": \"");
    clock_add(text, safe_us);
    text_add_format(text, "\", \"safeTimeDegraded\": %s}", degraded ? "true" : "false");
}

void changed_answer(const struct call *call, struct answer *answer)
{
    struct request request = {.entries = memory_take(ENTRY_LIMIT_2, sizeof(struct asked))};
    const char *problem = parse_request(call->broker, call->body, &request);

    if (problem != NULL) {
        answer_error(answer, request.status, problem);
    } else if (broker_database_is_down(call->broker)) {
        answer_error(answer, 500, "pool");
    } else {
        add_answer(call, &request, &answer->text);
    }
    answer->entries = (int64_t)request.count;
    for (size_t i = 0; i < request.count; i++) {
        text_free(&request.entries[i].queue);
        text_free(&request.entries[i].cursor_name);
    }
    free(request.entries);
}
