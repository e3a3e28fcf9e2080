/* See runs.h. */
#include "runs.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/json_scan.h"
#include "worker/encode_stream.h"

struct line {
    struct name partition;
    struct record record;
};

/* An assertion of Check's costs a system call or two, which a hundred thousand lines feel: asked first, then asserted. */
static void must(bool good, const char *cursor, const char *what)
{
    if (!good) {
        ck_abort_msg("expected %s in a line, there is %.40s", what, cursor);
    }
}

/* By their sizes: what strncmp() and strtoll() are given, a sanitizer walks to its NUL, which is at the end of them all. */
static bool begins(const char *cursor, const char *end, const char *text)
{
    size_t size = strlen(text);

    return (size_t)(end - cursor) >= size && memcmp(cursor, text, size) == 0;
}

static const char *expect(const char *cursor, const char *end, const char *text)
{
    must(begins(cursor, end, text), cursor, text);
    return cursor + strlen(text);
}

static const char *read_number(const char *cursor, const char *end, int64_t *number)
{
    const char *first = cursor;

    for (*number = 0; cursor < end && *cursor >= '0' && *cursor <= '9'; cursor++) {
        *number = 10 * *number + (*cursor - '0');
    }
    must(cursor > first, first, "a number");
    return cursor;
}

static const char *read_line(const char *cursor, const char *end, struct line *line, char **names)
{
    const char *text = NULL;
    const char *rest;
    size_t size = 0;
    bool escaped = false;

    memset(line, 0, sizeof *line);
    cursor = json_scan_string(expect(cursor, end, "{\"partition\":"), end, &text, &size, &escaped);
    must(cursor != NULL, text, "a string");
    line->partition = (struct name){*names, json_unescape(text, size, *names)};
    *names += size;
    rest = read_number(expect(cursor, end, ",\"offset\":"), end, &line->record.offset);
    cursor = json_scan_string(expect(rest, end, ",\"transactionId\":"), end, &text, &size, &escaped);
    must(cursor != NULL, rest, "a string");
    line->record.transaction_id = text;
    line->record.transaction_id_size = (uint32_t)size;
    cursor = json_scan_string(expect(cursor, end, ",\"ts\":"), end, &text, &size, &escaped);
    must(cursor != NULL && clock_parse_broker(text, size, &line->record.ts), rest, "a time");
    cursor = expect(cursor, end, ",\"payload\":");
    const char *stop = memchr(cursor, '\n', (size_t)(end - cursor));
    must(stop != NULL, cursor, "an end");
    line->record.payload = cursor;
    line->record.payload_size = (uint32_t)(stop - cursor - 1);
    line->record.flags = begins(cursor, end, "null}") ? RECORD_PAYLOAD_NULL : 0;
    return stop + 1;
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
