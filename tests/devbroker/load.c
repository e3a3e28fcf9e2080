/*
 * Loading plain records: one JSON value a line; see load.h for the contract.
 */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "json.h"

static bool read_whole(const char *file, struct text *bytes)
{
    FILE *stream = fopen(file, "rb");
    size_t got = 1;

    if (stream == NULL) {
        fprintf(stderr, "devbroker: can't read %s: %s\n", file, strerror(errno));
        return false;
    }
    while (got > 0) {
        text_reserve(bytes, 1 << 20);
        got = fread(bytes->at + bytes->size, 1, bytes->capacity - bytes->size, stream);
        bytes->size += got;
    }
    if (ferror(stream) != 0) {
        fprintf(stderr, "devbroker: can't read %s: %s\n", file, strerror(errno));
        fclose(stream);
        return false;
    }
    fclose(stream);
    return true;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

bool lines_read(const char *file, struct lines *lines)
{
    struct text bytes = {0};
    size_t capacity = 0;
    const char *at;
    const char *end;

    *lines = (struct lines){0};
    if (!read_whole(file, &bytes)) {
        text_free(&bytes);
        return false;
    }
    lines->bytes = bytes.at;
    lines->size = bytes.size;
    end = bytes.at + bytes.size;
    for (at = bytes.at; at < end;) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        const char *stop = feed == NULL ? end : feed;
        const char *next = feed == NULL ? end : feed + 1;

        while (at < stop && is_blank(*at)) {
            at++;
        }
        while (stop > at && is_blank(stop[-1])) {
            stop--;
        }
        if (stop > at) {
            lines->lines = memory_room(lines->lines, lines->count, &capacity, sizeof *lines->lines);
            lines->lines[lines->count++] = (struct slice){at, (size_t)(stop - at)};
        }
        at = next;
    }
    return true;
}

void lines_free(struct lines *lines)
{
    free(lines->lines);
    free(lines->bytes);
    *lines = (struct lines){0};
}

void load_partition(struct slice record, const char *field, struct text *name)
{
    const char *const names[] = {field};
    struct slice value = {0};

    name->size = 0;
    if (field == NULL || !json_members(record, names, &value, 1) || value.at == NULL) {
        text_add_string(name, "Default");
    } else if (!json_is_string(value)) {
        text_add_slice(name, value);
    } else if (!json_string(value, name)) {
        name->size = 0;
        text_add_slice(name, value);
    }
    for (size_t i = 0; i < name->size; i++) {
        if ((unsigned char)name->at[i] < 0x20) {
            name->at[i] = ' ';
        }
    }
}

bool load_run(struct broker *broker, const struct load *load)
{
    struct lines lines;
    struct gather gather;
    struct text name = {0};
    bool fine = true;

    if (!lines_read(load->file, &lines)) {
        return false;
    }
    gather_start(&gather, broker, load->queue, load->segment_records);
    gather.has_next_ts = load->has_base_time;
    gather.next_ts_us = load->base_time_us;
    gather.time_step_us = load->time_step_us;
    for (size_t i = 0; i < lines.count && fine; i++) {
        fine = json_is_valid(lines.lines[i]);
        if (!fine) {
            fprintf(stderr, "devbroker: %s: record %zu is no JSON\n", load->file, i + 1);
        }
    }
    for (int64_t round = 0; round < load->repeat && fine; round++) {
        for (size_t i = 0; i < lines.count; i++) {
            load_partition(lines.lines[i], load->partition_by, &name);
            gather_add(&gather, text_slice(&name), lines.lines[i], (uint64_t)round * lines.count + i);
        }
        gather_flush(&gather);
    }
    gather_end(&gather);
    text_free(&name);
    lines_free(&lines);
    return fine;
}
