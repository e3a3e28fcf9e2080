/* See runs.h. */
#include "runs.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/json_scan.h"
#include "tests/envelope_line.h"
#include "worker/encode_stream.h"

struct line {
    struct name partition;
    struct record record;
};

/* An assertion of Check's costs a system call or two, which a hundred thousand lines feel: asked first, then asserted. */
static void must(bool good, const char *cursor, const char *what)
{
    if (!good) {
        ck_abort_msg("expected %s, there is %.200s", what, cursor);
    }
}

static const char *read_line(const char *cursor, const char *end, struct line *line, char **names)
{
    struct name spelled = {"", 0};

    memset(line, 0, sizeof *line);
    const char *after = envelope_line_read(cursor, end, &spelled, &line->record);
    must(after != NULL, cursor, "a line of the envelope");
    line->partition = (struct name){*names, json_unescape(spelled.bytes, spelled.size, *names)};
    *names += spelled.size;
    return after;
}

static int compare(const void *left, const void *right)
{
    const struct line *a = left;
    const struct line *b = right;
    size_t size = a->partition.size < b->partition.size ? a->partition.size : b->partition.size;
    int order = memcmp(a->partition.bytes, b->partition.bytes, size);

    if (order == 0 && a->partition.size != b->partition.size) {
        order = a->partition.size < b->partition.size ? -1 : 1;
    }
    if (order == 0) {
        order = a->record.offset < b->record.offset ? -1 : 1;
    }
    return order;
}

static int next_run(struct run_source *source, struct run *run)
{
    struct run_set *set = (struct run_set *)source;

    if (set->next == set->fail_at) {
        return QS_ERROR_NO_ROOM;
    }
    if (set->next == set->run_count) {
        return 0;
    }
    *run = set->runs[set->next++];
    return 1;
}

void run_set_read(struct run_set *set, const char *text, size_t size, int64_t from, int64_t to)
{
    struct line *lines = NULL;
    size_t count = 0;
    size_t capacity = 0;
    const char *end = text + size;

    memset(set, 0, sizeof *set);
    set->fail_at = SIZE_MAX;
    set->names = malloc(size + 1);
    ck_assert_ptr_nonnull(set->names);
    char *names = set->names;
    for (const char *cursor = text; cursor < end;) {
        if (count == capacity) {
            capacity = capacity == 0 ? 1024 : capacity * 2;
            struct line *more = realloc(lines, capacity * sizeof *lines);
            ck_assert_ptr_nonnull(more);
            lines = more;
        }
        cursor = read_line(cursor, end, &lines[count], &names);
        count += lines[count].record.ts.v >= from && lines[count].record.ts.v < to;
    }
    set->block.records = calloc(count + 1, sizeof *set->block.records);
    set->extents = calloc(count + 1, sizeof *set->extents);
    set->runs = calloc(count + 1, sizeof *set->runs);
    ck_assert(set->block.records != NULL && set->extents != NULL && set->runs != NULL);
    set->block.record_count = count;
    if (count > 0) {
        qsort(lines, count, sizeof *lines, compare);
    }
    /* An extent holds at most three records, so that runs have several. */
    for (size_t i = 0, extent = 0; i < count; i++) {
        set->block.records[i] = lines[i].record;
        const struct line *before = i > 0 ? &lines[i - 1] : NULL;
        bool new_run = before == NULL || before->partition.size != lines[i].partition.size ||
                       memcmp(before->partition.bytes, lines[i].partition.bytes, before->partition.size) != 0;
        if (new_run) {
            set->runs[set->run_count++] = (struct run){lines[i].partition, &set->extents[extent], 0};
        }
        if (new_run || set->extents[extent - 1].count == 3) {
            set->extents[extent++] = (struct extent){&set->block, i, 0};
            set->runs[set->run_count - 1].extent_count++;
        }
        set->extents[extent - 1].count++;
    }
    free(lines);
    set->source.next = next_run;
    for (size_t i = 0; i < set->run_count; i++) {
        set->source.text_size += jsonl_run_size(&set->runs[i]);
    }
}

void run_set_rewind(struct run_set *set)
{
    set->next = 0;
}

void run_set_free(struct run_set *set)
{
    free(set->block.records);
    free(set->extents);
    free(set->runs);
    free(set->names);
}

char *made_up_lines(size_t count, size_t payload, unsigned seed, size_t *size)
{
    struct byte_buffer lines = {0};

    for (size_t i = 0; i < count; i++) {
        byte_buffer_add_format(
            &lines,
            "{\"partition\":\"p-%03zu\",\"offset\":%zu,\"transactionId\":\"t-%08x\",\"ts\":\"2026-09-04T"
            "%02zu:%02zu:%02zu.%06zuZ\",\"payload\":{\"filler\":\"",
            i * 20 / (count + 1), i, seed, i / 3600 % 24, i / 60 % 60, i % 60, i % 7);
        for (size_t filled = 0; filled < payload; filled += 16) {
            seed = seed * 1103515245u + 12345u;
            if ((seed >> 16) % 3 == 0) {
                byte_buffer_add_format(&lines, "%016x", seed);
            } else {
                byte_buffer_add_text(&lines, "the same 16 bits");
            }
        }
        byte_buffer_add_text(&lines, "\"}}\n");
    }
    *size = lines.size;
    char *text = byte_buffer_take(&lines);
    ck_assert_ptr_nonnull(text);
    return text;
}
