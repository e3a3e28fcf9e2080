/*
 * `queen-s3 cat QUEUE`: records of a queue as JSON Lines, whatever format their objects have (spec 4.4, 2.2). Only
 * windows whose manifest can match are opened, and of Parquet files only row groups that can.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/json_scan.h"
#include "common/lake/object_reader.h"
#include "common/memory.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/bucket.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/output.h"
#include "supervisor/commands/stored_object.h"

struct cat {
    struct bucket *bucket;
    const struct window_query *query;
    struct object_filter filter;
    int64_t last_k; /* 0: no window yet */
    struct byte_buffer line;
    int code; /* the exit code, once something went wrong */
};

static void add_string(struct byte_buffer *out, struct name text)
{
    size_t spelled = json_spelled_size(text.bytes, text.size);

    if (spelled == text.size) {
        byte_buffer_add(out, text.bytes, text.size);
        return;
    }
    char *bytes = memory_new(spelled + 1, 1);
    json_spell_string(text.bytes, text.size, bytes);
    byte_buffer_add(out, bytes, spelled);
    free(bytes);
}

/* A raw line break can only stand between tokens, where a blank means the same. */
static void flatten(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' || text[i] == '\r') {
            text[i] = ' ';
        }
    }
}

static void print_record(struct byte_buffer *line, const struct lake_record *record)
{
    char time[CLOCK_TEXT_SIZE];

    byte_buffer_clear(line);
    clock_format_broker(record->ts, time);
    byte_buffer_add_text(line, "{\"partition\":\"");
    add_string(line, record->partition);
    byte_buffer_add_format(line, "\",\"offset\":%" PRId64 ",\"transactionId\":\"", record->offset);
    add_string(line, record->transaction_id);
    byte_buffer_add_format(line, "\",\"ts\":\"%s\",\"payload\":", time);
    size_t before = line->size;
    byte_buffer_add(line, record->payload.bytes, record->payload.size);
    if (record->line_breaks) {
        flatten(line->bytes + before, record->payload.size);
    }
    byte_buffer_add(line, "}\n", 2);
    output_write(line->bytes, line->size);
}

/* The reader's records until the end, an error, or a reader of ours that has gone. */
static int print_records(struct cat *cat, struct object_reader *reader, struct error *error)
{
    struct lake_record record;
    int more = 0;

    while (!output_closed() && (more = object_reader_next(reader, &record, error)) == 1) {
        print_record(&cat->line, &record);
    }
    return more < 0 ? more : 0;
}

static int print_object(struct cat *cat, const struct manifest *manifest, const struct manifest_object *entry)
{
    struct stored_object *object = stored_object_open(cat->bucket, entry->key, entry->bytes);
    struct object_source source = stored_object_source(object);
    struct error error;
    struct object_reader *reader =
        object_reader_open(manifest->shape.format, manifest->shape.compression, &source, &cat->filter, &error);
    int code = reader != NULL ? print_records(cat, reader, &error) : (int)error.code;

    if (code != 0) {
        /* Not what it led to, but what happened. */
        const struct error *cause = stored_object_failure(object);
        cause = cause->code != QS_OK ? cause : &error;
        cat->code = command_fail(bucket_exit_code(cause), "%s: %s", entry->key, cause->message);
    }
    object_reader_close(reader);
    stored_object_close(object);
    return cat->code != 0 || output_closed() ? 1 : 0;
}

static bool is_wanted(const struct cat *cat, const struct manifest_object *entry)
{
    const struct name *partition = cat->filter.partition;

    return partition == NULL || !entry->has_partition ||
           (partition->size == entry->partition_size &&
            memcmp(partition->bytes, entry->partition, partition->size) == 0);
}

static int take_window(void *argument, const struct window_entry *entry)
{
    struct cat *cat = argument;
    struct error error;
    int code = 0;

    if (bucket_check_follows(cat->query, cat->last_k, entry, &error) != 0) {
        cat->code = command_fail(bucket_exit_code(&error), "%s", error.message);
        return 1;
    }
    if (entry->manifest == NULL) {
        cat->code =
            command_fail(bucket_exit_code(&entry->error), "the manifest %s: %s", entry->key, entry->error.message);
        return 1;
    }
    cat->last_k = entry->k;
    for (size_t i = 0; i < entry->manifest->object_count && code == 0; i++) {
        if (is_wanted(cat, &entry->manifest->objects[i])) {
            code = print_object(cat, entry->manifest, &entry->manifest->objects[i]);
        }
    }
    return code;
}

static int print_queue(struct bucket *bucket, const struct window_query *query, const struct name *partition)
{
    struct cat cat = {.bucket = bucket,
                      .query = query,
                      .filter = {.partition = partition,
                                 .has_since = query->has_since,
                                 .has_until = query->has_until,
                                 .since = query->since,
                                 .until = query->until}};
    struct error error;
    int code = bucket_windows(bucket, query, take_window, &cat, &error);

    byte_buffer_free(&cat.line);
    if (code < 0) {
        return command_fail(bucket_exit_code(&error), "%s", error.message);
    }
    if (cat.code == 0 && cat.last_k == 0) {
        return command_no_window(bucket, query);
    }
    return cat.code;
}

static int open_and_print(const char *file, const char *queue, struct window_query *query, const char *partition)
{
    struct name name = {partition, partition != NULL ? strlen(partition) : 0};
    struct bucket bucket;
    struct error error;
    int code = bucket_open(&bucket, file, &error);

    if (code != 0) {
        return command_fail(code, "%s", error.message);
    }
    query->prefix = bucket.settings.prefix;
    query->queue = (struct name){queue, strlen(queue)};
    code = print_queue(&bucket, query, partition != NULL ? &name : NULL);
    bucket_close(&bucket);
    return code;
}

enum { OPTION_WINDOW = COMMAND_FILE + 1, OPTION_PARTITION, OPTION_SINCE, OPTION_UNTIL };

static int run_cat(int argc, char **argv)
{
    struct window_query query = {.first_k = 0};
    struct arguments arguments;
    struct error error;

    output_begin();
    if (arguments_parse(&command_cat, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    const char *queue = arguments.words[0];
    free(arguments.words);
    if (arguments_queue(queue, &error) != 0 ||
        arguments_stretch(arguments.values[OPTION_SINCE], arguments.values[OPTION_UNTIL], &query, &error) != 0 ||
        arguments_window(arguments.values[OPTION_WINDOW], &query, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    return output_end(
        open_and_print(arguments.values[COMMAND_FILE], queue, &query, arguments.values[OPTION_PARTITION]));
}

static const struct command_option options[] = {
    [COMMAND_FILE] = COMMAND_FILE_OPTION,
    [OPTION_WINDOW] = {"--window", "K", "only the window with this number"},
    [OPTION_PARTITION] = {"--partition", "P", "only this partition, named as the broker names it"},
    [OPTION_SINCE] = {"--since", "T",
                      "only records whose ts is T or later. T is as in RFC 3339 (2026-09-04T10:05:00Z, with any "
                      "offset), or microseconds since 1970-01-01"},
    [OPTION_UNTIL] = {"--until", "T", "only records whose ts is before T"},
    {NULL, NULL, NULL},
};

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "the records have been printed, or a reader went away, as head does"},
    {COMMAND_FAULT,
     "there is no such window, or a manifest or an object is missing or damaged (what came before it has been "
     "printed)"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong"},
    {COMMAND_UNREACHABLE, "the bucket can't be reached"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"queen-s3 cat orders --partition cust-0420 | head", "prints the first records of a partition"},
    {"queen-s3 cat orders --window 1842 | jq -c .payload", "prints the payloads of one window"},
    {NULL, NULL},
};

const struct command command_cat = {
    .name = "cat",
    .words = "QUEUE",
    .summary = "print records of a queue as JSON Lines",
    .help = "The envelope lines of the lake, window after window, within an object by partition and offset. Parquet "
            "comes out as the same lines; a line break between the tokens of a payload becomes a blank.\n"
            "Needs the settings that name the bucket, and its keys; no broker. Only windows, and of Parquet files "
            "only row groups, that can match are read.",
    .options = options,
    .exits = exits,
    .examples = examples,
    .run = run_cat,
};
