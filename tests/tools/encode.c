/*
 * encode QUEUE FORMAT COMPRESSION [ROUNDS] <lines >object
 *
 * Turns lines in the lake's envelope, in order already, into one object through encode_stream(), so that a script can
 * hold objects against readers that others wrote. With ROUNDS it encodes as often and says on standard error what each
 * time took: `processor SECONDS`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/byte_buffer.h"
#include "common/json_scan.h"
#include "common/memory.h"
#include "tests/envelope_line.h"
#include "worker/encode_stream.h"

struct lines {
    struct run_source source;
    struct block block;
    struct extent *extents; /* one a run */
    struct run *runs;
    size_t run_count;
    size_t run_capacity;
    size_t next;
};

static void must(int good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "encode: %s\n", what);
        exit(1);
    }
}

static char *read_all(size_t *size)
{
    struct byte_buffer text = {0};
    size_t got;
    char *piece = memory_new(1, 1 << 20);

    while ((got = fread(piece, 1, 1 << 20, stdin)) > 0) {
        byte_buffer_add(&text, piece, got);
    }
    free(piece);
    *size = text.size;
    return byte_buffer_take(&text);
}

static int next_run(struct run_source *source, struct run *run)
{
    struct lines *lines = (struct lines *)source;

    if (lines->next == lines->run_count) {
        lines->next = 0; /* for the next round */
        return 0;
    }
    *run = lines->runs[lines->next];
    run->extents = &lines->extents[lines->next++];
    return 1;
}

static void add_run(struct lines *lines, struct name partition)
{
    size_t capacity = lines->run_capacity;

    lines->runs = memory_grow(lines->runs, &capacity, lines->run_count + 1, sizeof *lines->runs);
    lines->extents = memory_grow(lines->extents, &lines->run_capacity, lines->run_count + 1, sizeof *lines->extents);
    lines->extents[lines->run_count] = (struct extent){&lines->block, lines->block.record_count, 0};
    lines->runs[lines->run_count++] = (struct run){partition, NULL, 1};
}

static void read_lines(struct lines *lines, const char *text, size_t size)
{
    struct name partition = {"", 0};
    const char *end = text + size;

    for (const char *cursor = text; cursor < end;) {
        struct name before = partition;
        struct record *record = block_add_record(&lines->block);
        must(record != NULL, "memory");
        cursor = envelope_line_read(cursor, end, &partition, record); /* unescaped below, once a run */
        must(cursor != NULL, "expected lines of the lake's envelope on standard input");
        if (lines->run_count == 0 || partition.size != before.size ||
            memcmp(partition.bytes, before.bytes, before.size) != 0) {
            lines->block.record_count--;
            add_run(lines, partition);
            lines->block.record_count++;
        }
        lines->extents[lines->run_count - 1].count++;
    }
    for (size_t i = 0; i < lines->run_count; i++) {
        struct name *name = &lines->runs[i].partition;
        char *bytes = memory_copy(name->bytes, name->size);
        name->size = json_unescape(name->bytes, name->size, bytes);
        name->bytes = bytes;
    }
    lines->source.next = next_run;
    lines->source.text_size = size;
}

static int write_out(void *argument, const uint8_t *bytes, size_t size)
{
    return argument == NULL || size == 0 || fwrite(bytes, 1, size, argument) == size ? 0 : QS_ERROR_SYSTEM;
}

static double processor_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct window_shape shape = {FORMAT_PARQUET, COMPRESSION_ZSTD, LAYOUT_MERGED, ALIGN_HOUR};
    struct lines lines = {0};
    struct encode_result result;
    struct error error = {0};
    size_t size = 0;

    must(argc >= 4 && setting_format_parse(argv[2], &shape.format) &&
             setting_compression_parse(argv[3], &shape.compression),
         "usage: encode QUEUE FORMAT COMPRESSION [ROUNDS]");
    char *text = read_all(&size);
    read_lines(&lines, text, size);
    lines.source.queue = (struct name){argv[1], strlen(argv[1])};
    long rounds = argc > 4 ? strtol(argv[4], NULL, 10) : 0;
    for (long round = 0; round < rounds || round == 0; round++) {
        double before = processor_seconds();
        int code = encode_stream(&shape, &lines.source, 1, write_out, round == 0 ? stdout : NULL, &result, &error);
        must(code == 0, error.message);
        if (rounds > 0) {
            (void)fprintf(stderr, "processor %.3f\n", processor_seconds() - before);
        }
    }
    must(fflush(stdout) == 0, "standard output");
    for (size_t i = 0; i < lines.run_count; i++) {
        free((void *)(uintptr_t)lines.runs[i].partition.bytes);
    }
    free(lines.runs);
    free(lines.extents);
    free(lines.block.records);
    free(text);
    return 0;
}
