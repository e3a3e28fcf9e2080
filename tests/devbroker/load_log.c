/*
 * Loading a log in the lake's envelope (spec 02, 2.2), offsets and ts as they are; see load.h for the contract.
 *
 * The file may be in any order. Per partition, records of consecutive offsets and one ts are a segment again; a gap of
 * offsets stays a gap.
 */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "json.h"

struct logged {
    struct slice partition;
    int64_t offset;
    int64_t ts_us;
    struct record record;
};

struct logged_file {
    struct logged *records;
    size_t count;
    struct slice *owned; /* strings that had escapes */
    size_t owned_count;
    size_t owned_capacity;
};

static int logged_compare(const void *left_record, const void *right_record)
{
    const struct logged *left = left_record;
    const struct logged *right = right_record;
    int order = slice_compare(left->partition, right->partition);

    if (order != 0) {
        return order;
    }
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

static bool take_string(struct logged_file *file, struct slice value, struct slice *to)
{
    struct text decoded = {0};

    if (!json_is_string(value)) {
        return false;
    }
    if (memchr(value.at, '\\', value.size) == NULL) {
        *to = (struct slice){value.at + 1, value.size - 2};
        return true;
    }
    if (!json_string(value, &decoded)) {
        text_free(&decoded);
        return false;
    }
    *to = slice_copy(text_slice(&decoded));
    text_free(&decoded);
    file->owned = memory_room(file->owned, file->owned_count, &file->owned_capacity, sizeof *file->owned);
    file->owned[file->owned_count++] = *to;
    return true;
}

static bool parse_line(struct logged_file *file, struct slice line, struct logged *logged)
{
    static const char *const names[] = {"partition", "offset", "transactionId", "ts", "payload"};
    struct slice values[5];
    struct slice ts = {0};

    if (!json_is_valid(line) || !json_members(line, names, values, 5) || values[4].at == NULL) {
        return false;
    }
    logged->record.payload = values[4];
    return take_string(file, values[0], &logged->partition) &&
           take_string(file, values[2], &logged->record.transaction_id) && take_string(file, values[3], &ts) &&
           clock_parse(ts, &logged->ts_us) && json_integer(values[1], &logged->offset) && logged->offset >= 0;
}

static size_t segment_end(const struct logged_file *file, size_t start)
{
    size_t end = start + 1;

    while (end < file->count && slice_equal(file->records[end].partition, file->records[start].partition) &&
           file->records[end].ts_us == file->records[start].ts_us &&
           file->records[end].offset == file->records[end - 1].offset + 1) {
        end++;
    }
    return end;
}

/* False for a log that can't be one: an offset twice, or a ts that decreases. */
static bool append_segment(struct broker *broker, const char *queue_name, const struct logged *first, size_t count)
{
    struct record *records = memory_take(count, sizeof *records);
    struct queue *queue;
    struct partition *partition;
    bool fine;

    for (size_t i = 0; i < count; i++) {
        records[i] = first[i].record;
    }
    store_write_lock(&broker->store);
    queue = store_take_queue(&broker->store, slice_of(queue_name));
    partition = store_take_partition(&broker->store, queue, first->partition);
    fine = first->offset >= partition->next_offset && first->ts_us >= partition->last_ts_us;
    if (fine) {
        clock_note_stamp(first->ts_us);
        store_append(&broker->store, queue, partition, first->offset, first->ts_us, records, count);
    }
    store_unlock(&broker->store);
    free(records);
    return fine;
}

static bool append_all(struct broker *broker, const struct load *load, const struct logged_file *file)
{
    for (size_t i = 0; i < file->count;) {
        size_t end = segment_end(file, i);

        if (!append_segment(broker, load->queue, &file->records[i], end - i)) {
            fprintf(stderr, "devbroker: %s: offset %lld of a partition comes twice, or its ts decreases\n", load->file,
                    (long long)file->records[i].offset);
            return false;
        }
        i = end;
    }
    return true;
}

bool load_log_run(struct broker *broker, const struct load *load)
{
    struct lines lines;
    struct logged_file file = {0};
    bool fine = true;

    if (!lines_read(load->file, &lines)) {
        return false;
    }
    file.records = memory_take(lines.count, sizeof *file.records);
    for (size_t i = 0; i < lines.count && fine; i++) {
        fine = parse_line(&file, lines.lines[i], &file.records[file.count++]);
        if (!fine) {
            fprintf(stderr, "devbroker: %s: line %zu is no record of a log\n", load->file, i + 1);
        }
    }
    if (fine) {
        qsort(file.records, file.count, sizeof *file.records, logged_compare);
        fine = append_all(broker, load, &file);
    }
    for (size_t i = 0; i < file.owned_count; i++) {
        free((void *)(uintptr_t)file.owned[i].at);
    }
    free(file.owned);
    free(file.records);
    lines_free(&lines);
    return fine;
}
