/*
 * Reading partitions/changed (spec 1.3) and the queue list (1.5): see queen_answer.h. One answer can name 64 000
 * partitions, so nothing is allocated for each, and names stay where they lie in the body.
 */
#include <stdlib.h>
#include <string.h>

#include "common/partition_id.h"
#include "common/queen_answer.h"

bool queen_answer_grow(void **array, size_t *capacity, size_t count, size_t element)
{
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity < 8 ? 8 : *capacity * 2;
    void *grown = reallocarray(*array, wanted, element);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

int queen_answer_scan(struct json_scan *scan, char *body, size_t size, struct json_text *whole, struct error *error)
{
    const char *end = body + size;
    const char *start = json_skip_blank(body, end);
    struct json_value value;
    const char *after = json_scan_value(scan, start, end, &value);
    if (after == NULL || json_skip_blank(after, end) != end) {
        return error_set(error, QS_ERROR_BODY, "the answer of %zu bytes isn't JSON", size);
    }
    *whole = (struct json_text){body + (start - body), value.size};
    return QS_OK;
}

/* Anything but a string in that form is no id. */
static bool read_id(struct json_text value, struct partition_id *id)
{
    struct name text;
    return json_text_string(value, &text) && partition_id_read(text, id);
}

static bool read_time(struct json_text value, struct broker_us *out)
{
    struct name text;
    return json_text_string(value, &text) && clock_parse_broker(text.bytes, text.size, out);
}

enum { HAS_NAME = 1, HAS_LAST_OFFSET = 2, HAS_LOG_START = 4, HAS_LAST_WRITE = 8, HAS_ALL = 15 };

/* NULL, or which field isn't what it must be. */
static const char *read_partition(struct json_scan *scan, struct json_text value, struct changed_partition *partition)
{
    struct json_walk walk;
    struct json_text key;
    unsigned has = 0;
    if (!json_walk_object(&walk, scan, value)) {
        return "a partition";
    }
    while (json_walk_member(&walk, &key, &value)) {
        if (json_text_is(key, "name")) {
            has |= json_text_string(value, &partition->name) ? HAS_NAME : 0;
        } else if (json_text_is(key, "lastOffset")) {
            /* -1: nothing was ever written; and another has to be able to follow */
            bool good = json_text_integer(value, &partition->last_offset) && partition->last_offset >= -1 &&
                        partition->last_offset < INT64_MAX;
            has |= good ? HAS_LAST_OFFSET : 0;
        } else if (json_text_is(key, "logStart")) {
            has |= json_text_integer(value, &partition->log_start) && partition->log_start >= 0 ? HAS_LOG_START : 0;
        } else if (json_text_is(key, "lastWriteAt")) {
            has |= read_time(value, &partition->last_write_at) ? HAS_LAST_WRITE : 0;
        } else if (json_text_is(key, "id")) {
            partition->has_id = read_id(value, &partition->id);
        }
    }
    if (has == HAS_ALL) {
        return NULL;
    }
    return !(has & HAS_NAME)          ? "a partition's name"
           : !(has & HAS_LAST_OFFSET) ? "a partition's lastOffset"
           : !(has & HAS_LOG_START)   ? "a partition's logStart"
                                      : "a partition's lastWriteAt";
}

static int read_partitions(struct json_scan *scan, struct json_text value, size_t index,
                           struct changed_reading *reading, struct error *error)
{
    struct json_walk walk;
    if (!json_walk_array(&walk, scan, value)) {
        return error_set(error, QS_ERROR_BODY, "entry %zu: partitions isn't an array", index);
    }
    while (json_walk_element(&walk, &value)) {
        void *array = reading->partitions;
        if (!queen_answer_grow(&array, &reading->partition_capacity, reading->partition_count,
                               sizeof *reading->partitions)) {
            return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a page of partitions");
        }
        reading->partitions = array;
        struct changed_partition *partition = &reading->partitions[reading->partition_count++];
        *partition = (struct changed_partition){0};
        const char *wrong = read_partition(scan, value, partition);
        if (wrong != NULL) {
            return error_set(error, QS_ERROR_BODY, "entry %zu: %s is missing or not what it must be", index, wrong);
        }
    }
    return QS_OK;
}

static enum changed_entry_status entry_status(struct name text)
{
    static const char unknown[] = "UNKNOWN_TOPIC_OR_PARTITION";
    static const char cursor[] = "BAD_CURSOR";
    if (text.size == sizeof unknown - 1 && memcmp(text.bytes, unknown, text.size) == 0) {
        return CHANGED_UNKNOWN_QUEUE;
    }
    if (text.size == sizeof cursor - 1 && memcmp(text.bytes, cursor, text.size) == 0) {
        return CHANGED_BAD_CURSOR;
    }
    return CHANGED_PASSING;
}

struct entry_members {
    struct json_text queue; /* bytes NULL: absent */
    struct json_text partitions;
    struct json_text next;
    struct json_text error;
};

static bool find_members(struct json_scan *scan, struct json_text value, struct entry_members *members)
{
    struct json_walk walk;
    struct json_text key;
    *members = (struct entry_members){0};
    if (!json_walk_object(&walk, scan, value)) {
        return false;
    }
    while (json_walk_member(&walk, &key, &value)) {
        if (json_text_is(key, "queue")) {
            members->queue = value;
        } else if (json_text_is(key, "partitions")) {
            members->partitions = value;
        } else if (json_text_is(key, "next") && !json_text_is(value, "null")) {
            members->next = value;
        } else if (json_text_is(key, "error") && !json_text_is(value, "null")) {
            members->error = value;
        }
    }
    return true;
}

/* An entry's count is set here, where its partitions start only once the array has stopped moving. */
static int read_entry(struct json_scan *scan, struct json_text value, struct name asked, size_t index,
                      struct changed_reading *reading, struct error *error)
{
    struct changed_entry *entry = &reading->entries[index];
    struct entry_members members;
    struct name text;
    if (!find_members(scan, value, &members)) {
        return error_set(error, QS_ERROR_BODY, "entry %zu isn't an object", index);
    }
    if (!json_text_string(members.queue, &text) || text.size != asked.size ||
        memcmp(text.bytes, asked.bytes, text.size) != 0) {
        return error_set(error, QS_ERROR_BODY, "entry %zu isn't of the queue that was asked for", index);
    }
    if (members.error.bytes != NULL) {
        entry->status = json_text_string(members.error, &text) ? entry_status(text) : CHANGED_PASSING;
        return QS_OK;
    }
    if (members.next.bytes != NULL && !json_text_c_string(members.next, &entry->next)) {
        return error_set(error, QS_ERROR_BODY, "entry %zu: next isn't a cursor", index);
    }
    size_t first = reading->partition_count;
    int status = read_partitions(scan, members.partitions, index, reading, error);
    entry->count = reading->partition_count - first;
    return status;
}

static int read_entries(struct json_scan *scan, struct json_text value, const struct name *asked, size_t count,
                        struct changed_reading *reading, struct error *error)
{
    struct json_walk walk;
    size_t index = 0;
    if (!json_walk_array(&walk, scan, value)) {
        return error_set(error, QS_ERROR_BODY, "the answer has no array of entries");
    }
    for (; json_walk_element(&walk, &value); index++) {
        if (index == count) {
            return error_set(error, QS_ERROR_BODY, "the answer has more entries than the %zu asked for", count);
        }
        int status = read_entry(scan, value, asked[index], index, reading, error);
        if (status != QS_OK) {
            return status;
        }
    }
    if (index != count) {
        return error_set(error, QS_ERROR_BODY, "the answer has %zu entries of the %zu asked for", index, count);
    }
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        reading->entries[i].partitions = reading->entries[i].count > 0 ? &reading->partitions[first] : NULL;
        first += reading->entries[i].count;
    }
    return QS_OK;
}

int queen_read_changed(struct json_scan *scan, char *body, size_t size, const struct name *asked, size_t count,
                       struct changed_reading *reading, struct error *error)
{
    struct json_walk walk;
    struct json_text key;
    struct json_text value = {0};
    struct json_text entries = {0};
    bool timed = false;
    int status = queen_answer_scan(scan, body, size, &value, error);
    if (status != QS_OK) {
        return status;
    }
    if (!json_walk_object(&walk, scan, value)) {
        return error_set(error, QS_ERROR_BODY, "the answer isn't an object");
    }
    while (json_walk_member(&walk, &key, &value)) {
        if (json_text_is(key, "safeTime")) {
            timed = read_time(value, &reading->answer.safe_time);
        } else if (json_text_is(key, "safeTimeDegraded")) {
            reading->answer.degraded = json_text_is(value, "true");
        } else if (json_text_is(key, "entries")) {
            entries = value;
        }
    }
    if (!timed) {
        return error_set(error, QS_ERROR_BODY, "safeTime is missing or not a time");
    }
    reading->entries = calloc(count > 0 ? count : 1, sizeof *reading->entries);
    if (reading->entries == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a page of partitions");
    }
    reading->answer.entries = reading->entries;
    reading->answer.count = count;
    return read_entries(scan, entries, asked, count, reading, error);
}

void changed_reading_free(struct changed_reading *reading)
{
    free(reading->entries);
    free(reading->partitions);
    *reading = (struct changed_reading){0};
}

/* ---- the queue list ---- */

static bool read_queue_name(struct json_scan *scan, struct json_text value, struct name *name)
{
    struct json_walk walk;
    struct json_text key;
    bool named = false;
    if (!json_walk_object(&walk, scan, value)) {
        return false;
    }
    while (json_walk_member(&walk, &key, &value)) {
        if (json_text_is(key, "name")) {
            named = json_text_string(value, name);
        }
    }
    return named;
}

static bool find_queues(struct json_scan *scan, struct json_text value, struct json_walk *queues)
{
    struct json_walk walk;
    struct json_text key;
    bool found = false;
    if (!json_walk_object(&walk, scan, value)) {
        return false;
    }
    while (json_walk_member(&walk, &key, &value)) {
        if (json_text_is(key, "queues")) {
            found = json_walk_array(queues, scan, value);
        }
    }
    return found;
}

int queen_read_queues(struct json_scan *scan, char *body, size_t size, struct queues_reading *reading,
                      struct error *error)
{
    struct json_walk walk;
    struct json_text value = {0};
    size_t count = 0;
    int status = queen_answer_scan(scan, body, size, &value, error);
    if (status != QS_OK) {
        return status;
    }
    if (!find_queues(scan, value, &walk)) {
        return error_set(error, QS_ERROR_BODY, "the answer has no array of queues");
    }
    while (json_walk_element(&walk, &value)) {
        void *array = reading->queues;
        if (!queen_answer_grow(&array, &reading->capacity, count, sizeof *reading->queues)) {
            return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the list of queues");
        }
        reading->queues = array;
        if (!read_queue_name(scan, value, &reading->queues[count++])) {
            return error_set(error, QS_ERROR_BODY, "queue %zu of the list has no name", count - 1);
        }
    }
    reading->answer = (struct queues_answer){reading->queues, count};
    return QS_OK;
}

void queues_reading_free(struct queues_reading *reading)
{
    free(reading->queues);
    *reading = (struct queues_reading){0};
}
