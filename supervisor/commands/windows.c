/*
 * `queen-s3 windows QUEUE`: the committed windows of a queue, from their manifests (spec 4.4): a table for a person, or
 * an object a line for a program.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/json_scan.h"
#include "common/memory.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/bucket.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/output.h"

struct windows {
    const struct window_query *query;
    bool json;
    int64_t last_k;
    uint64_t count;
    uint64_t records;
    uint64_t bytes;
    uint64_t lost;
    uint64_t objects;
    struct error error; /* of the manifest that ended it */
};

static uint64_t count_lost(const struct manifest *manifest)
{
    uint64_t lost = 0;

    for (size_t i = 0; i < manifest->lost_count; i++) {
        lost += (uint64_t)(manifest->lost[i].to - manifest->lost[i].from) + 1;
    }
    return lost;
}

static void print_row(const struct manifest *manifest, uint64_t lost)
{
    char from[CLOCK_TEXT_SIZE];
    char to[CLOCK_TEXT_SIZE];

    clock_format_broker(manifest->bounds.start, from);
    clock_format_broker(manifest->bounds.end, to);
    output_format("%10" PRId64 "  %s  %s  %12" PRIu64 "  %15" PRIu64 "  %10" PRIu64 "  %10" PRIu64 "  %8zu\n",
                  manifest->bounds.k, from, to, manifest->records, manifest->bytes, manifest->partitions, lost,
                  manifest->object_count);
}

static void print_head(void)
{
    output_format("%10s  %-27s  %-27s  %12s  %15s  %10s  %10s  %8s\n", "k", "from", "to", "records", "bytes",
                  "partitions", "lost", "objects");
}

static void print_totals(const struct windows *windows)
{
    output_format("%10" PRIu64 "  %-27s  %-27s  %12" PRIu64 "  %15" PRIu64 "  %10s  %10" PRIu64 "  %8" PRIu64 "\n",
                  windows->count, windows->count == 1 ? "window" : "windows", "", windows->records, windows->bytes, "",
                  windows->lost, windows->objects);
}

static void add_string(struct byte_buffer *out, const char *text, size_t size)
{
    size_t spelled = json_spelled_size(text, size);
    char *bytes = memory_new(spelled + 1, 1);

    json_spell_string(text, size, bytes);
    byte_buffer_add_text(out, "\"");
    byte_buffer_add(out, bytes, spelled);
    byte_buffer_add_text(out, "\"");
    free(bytes);
}

static void add_lost(struct byte_buffer *out, const struct manifest *manifest)
{
    byte_buffer_add_text(out, ",\"lost\":[");
    for (size_t i = 0; i < manifest->lost_count; i++) {
        const struct manifest_lost *lost = &manifest->lost[i];
        byte_buffer_add_text(out, i > 0 ? ",{\"partition\":" : "{\"partition\":");
        add_string(out, lost->partition, lost->partition_size);
        byte_buffer_add_format(out, ",\"from\":%" PRId64 ",\"to\":%" PRId64 "%s}", lost->from, lost->to,
                               lost->previous_life ? ",\"life\":\"previous\"" : "");
    }
    byte_buffer_add_text(out, "]");
}

/* The manifest's own names and units, the objects as their number. */
static void print_json(const struct manifest *manifest, const char *key)
{
    struct byte_buffer out = {0};
    char committed_at[CLOCK_TEXT_SIZE];

    byte_buffer_add_format(&out, "{\"k\":%" PRId64 ",\"tStart\":%" PRId64 ",\"tEnd\":%" PRId64, manifest->bounds.k,
                           manifest->bounds.start.v, manifest->bounds.end.v);
    byte_buffer_add_format(&out, ",\"format\":\"%s\",\"compression\":\"%s\",\"layout\":\"%s\"",
                           setting_format_name(manifest->shape.format),
                           setting_compression_name(manifest->shape.compression),
                           setting_layout_name(manifest->shape.layout));
    byte_buffer_add_format(&out,
                           ",\"objects\":%zu,\"records\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"partitions\":%" PRIu64,
                           manifest->object_count, manifest->records, manifest->bytes, manifest->partitions);
    if (manifest->records > 0) {
        byte_buffer_add_format(&out, ",\"minTs\":%" PRId64 ",\"maxTs\":%" PRId64, manifest->min_ts.v,
                               manifest->max_ts.v);
    }
    add_lost(&out, manifest);
    clock_format_wall(manifest->committed_at, committed_at);
    byte_buffer_add_format(&out, ",\"committedAt\":\"%s\",\"manifest\":", committed_at);
    add_string(&out, key, strlen(key));
    byte_buffer_add_text(&out, "}\n");
    output_write(out.bytes, out.size);
    byte_buffer_free(&out);
}

static int take_window(void *argument, const struct window_entry *entry)
{
    struct windows *windows = argument;
    const struct manifest *manifest = entry->manifest;

    if (bucket_check_follows(windows->query, windows->last_k, entry, &windows->error) != 0) {
        return 1;
    }
    if (manifest == NULL) {
        windows->error = entry->error;
        error_prefix(&windows->error, "the manifest %s", entry->key);
        return 1;
    }
    windows->last_k = entry->k;
    uint64_t lost = count_lost(manifest);
    if (windows->count == 0 && !windows->json) {
        print_head();
    }
    if (windows->json) {
        print_json(manifest, entry->key);
    } else {
        print_row(manifest, lost);
    }
    windows->count++;
    windows->records += manifest->records;
    windows->bytes += manifest->bytes;
    windows->lost += lost;
    windows->objects += manifest->object_count;
    return output_closed() ? 1 : 0;
}

static int print_windows(struct bucket *bucket, const struct window_query *query, bool json)
{
    struct windows windows = {.query = query, .json = json};
    struct error error;

    if (bucket_windows(bucket, query, take_window, &windows, &error) < 0) {
        return command_fail(bucket_exit_code(&error), "%s", error.message);
    }
    if (windows.error.code != QS_OK) {
        return command_fail(bucket_exit_code(&windows.error), "%s", windows.error.message);
    }
    if (windows.count == 0) {
        return command_no_window(bucket, query);
    }
    if (!json) {
        print_totals(&windows);
    }
    return EXIT_SUCCESS;
}

enum { OPTION_SINCE = COMMAND_FILE + 1, OPTION_UNTIL, OPTION_JSON };

static int run_windows(int argc, char **argv)
{
    struct window_query query = {.first_k = 0};
    struct arguments arguments;
    struct bucket bucket;
    struct error error;

    output_begin();
    if (arguments_parse(&command_windows, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    const char *queue = arguments.words[0];
    free(arguments.words);
    if (arguments_queue(queue, &error) != 0 ||
        arguments_stretch(arguments.values[OPTION_SINCE], arguments.values[OPTION_UNTIL], &query, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    int code = bucket_open(&bucket, arguments.values[COMMAND_FILE], &error);
    if (code != 0) {
        return command_fail(code, "%s", error.message);
    }
    query.prefix = bucket.settings.prefix;
    query.queue = (struct name){queue, strlen(queue)};
    code = print_windows(&bucket, &query, arguments.values[OPTION_JSON] != NULL);
    bucket_close(&bucket);
    return output_end(code);
}

static const struct command_option options[] = {
    [COMMAND_FILE] = COMMAND_FILE_OPTION,
    [OPTION_SINCE] = {"--since", "T",
                      "only windows that have anything of the time from T on. T is as in RFC 3339 "
                      "(2026-09-04T10:05:00Z, with any offset), or microseconds since 1970-01-01"},
    [OPTION_UNTIL] = {"--until", "T", "only windows that have anything of the time before T"},
    [OPTION_JSON] = {"--json", NULL,
                     "a JSON object a window, each on its own line, with the names and units of the manifest: k, "
                     "tStart, tEnd, format, compression, layout, objects (their number), records, bytes, partitions, "
                     "minTs, maxTs, lost, committedAt, manifest (its key)"},
    {NULL, NULL, NULL},
};

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "the windows have been listed"},
    {COMMAND_FAULT, "there is no such window, or a manifest is missing or can't be read"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong"},
    {COMMAND_UNREACHABLE, "the bucket can't be reached"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"queen-s3 windows orders --since 2026-09-04T00:00:00Z --until 2026-09-05T00:00:00Z",
     "lists the windows of one day"},
    {"queen-s3 windows orders --json | jq 'select(.lost != [])'", "finds the windows before which records were lost"},
    {NULL, NULL},
};

const struct command command_windows = {
    .name = "windows",
    .words = "QUEUE",
    .summary = "list the committed windows of a queue",
    .help = "A row for each window, from its manifest: its number, the time that it spans (the second end is not part "
            "of it), its records, the bytes of its objects, partitions with a record, records that were lost to "
            "retention before they were read, and objects. The last row adds up.\n"
            "Needs the settings that name the bucket, and its keys; no broker.",
    .options = options,
    .exits = exits,
    .examples = examples,
    .run = run_windows,
};
