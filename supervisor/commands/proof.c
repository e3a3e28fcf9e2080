/*
 * The manifests of a queue, held against each other and against what spec 2.1, 2.3 and 2.5 promise: proof.h. Nothing of
 * it needs an object to be read.
 */
#include "supervisor/commands/proof.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "supervisor/command.h"
#include "supervisor/commands/key_set.h"
#include "supervisor/commands/output.h"
#include "supervisor/commands/progress.h"

void proof_begin(struct proof *proof, struct bucket *bucket, const char *queue, bool deep)
{
    memset(proof, 0, sizeof *proof);
    proof->bucket = bucket;
    proof->queue = queue;
    proof->deep = deep;
    proof->named = key_set_new();
    lake_escape_name((struct name){queue, strlen(queue)}, proof->escaped);
}

void proof_end(struct proof *proof)
{
    for (size_t i = 0; i < proof->waiting_count; i++) {
        free(proof->waiting[i].key);
    }
    free(proof->waiting);
    free(proof->sink);
    key_set_free(proof->named);
    partition_table_free(&proof->partitions);
    memset(proof, 0, sizeof *proof);
}

void proof_fault(struct proof *proof, const char *subject, const char *format, ...)
{
    va_list arguments;

    proof->faults++;
    va_start(arguments, format);
    char *line = memory_format_list(format, arguments);
    va_end(arguments);
    progress_clear();
    output_line("fault: %s: %s", subject, line);
    free(line);
}

/* ---- one manifest ---- */

struct checking {
    struct proof *proof;
    const struct manifest *manifest;
    const char *key; /* the manifest's */
};

static const char *spell(struct broker_us time, char out[CLOCK_TEXT_SIZE])
{
    clock_format_broker(time, out);
    return out;
}

static void check_bounds(const struct checking *checking)
{
    struct proof *proof = checking->proof;
    const struct window_bounds *bounds = &checking->manifest->bounds;
    char one[CLOCK_TEXT_SIZE];
    char other[CLOCK_TEXT_SIZE];

    if (bounds->start.v >= bounds->end.v) {
        proof_fault(proof, checking->key, "a window from %s to %s: expected its end behind its start",
                    spell(bounds->start, one), spell(bounds->end, other));
    }
    if (proof->last_k > 0 && bounds->start.v < proof->end.v) {
        proof_fault(proof, checking->key,
                    "the window begins at %s: expected at %s, the end of window %" PRId64 ", or later: they overlap",
                    spell(bounds->start, one), spell(proof->end, other), proof->last_k);
    }
}

/* Whether an hour is one of the key's parts, behind the prefix, which may be anything. */
static enum setting_align align_of(const struct proof *proof, const char *key)
{
    const char *prefix = proof->bucket->settings.prefix;
    size_t size = strlen(prefix);

    return strstr(strncmp(key, prefix, size) == 0 ? key + size : key, "/hour=") == NULL ? ALIGN_DAY : ALIGN_HOUR;
}

/* The keys say whether an hour is one of their parts; whether a window may leave its hour only the setting can. */
static bool find_align(const struct checking *checking, enum setting_align *align)
{
    const struct manifest *manifest = checking->manifest;
    const char *key = manifest->object_count > 0 ? manifest->objects[0].key : "";

    *align = align_of(checking->proof, key);
    return *align == ALIGN_DAY || checking->proof->bucket->settings.align == ALIGN_HOUR;
}

static void check_align(const struct checking *checking)
{
    const struct window_bounds *bounds = &checking->manifest->bounds;
    enum setting_align align;
    char one[CLOCK_TEXT_SIZE];
    char other[CLOCK_TEXT_SIZE];

    if (bounds->start.v >= bounds->end.v || !find_align(checking, &align)) {
        return;
    }
    struct broker_us last = {bounds->end.v - 1};
    if (lake_align_floor(align, bounds->start).v != lake_align_floor(align, last).v) {
        proof_fault(checking->proof, checking->key, "a window from %s to %s: expected it within one %s%s",
                    spell(bounds->start, one), spell(bounds->end, other), setting_align_name(align),
                    align == ALIGN_HOUR ? " (QUEEN_S3_ALIGN=none says that it needn't be)" : "");
    }
}

static void check_key(const struct checking *checking, const struct manifest_object *object)
{
    const struct manifest *manifest = checking->manifest;
    struct proof *proof = checking->proof;
    struct window_shape shape = manifest->shape;
    char expected[LAKE_KEY_SIZE];
    char partition[LAKE_NAME_SIZE];
    struct error error;
    int code;

    shape.align = align_of(proof, object->key);
    if (shape.layout == LAYOUT_MERGED) {
        code = lake_object_key(proof->bucket->settings.prefix, proof->escaped, &shape, &manifest->bounds, expected,
                               &error);
    } else {
        lake_escape_name((struct name){object->partition, object->partition_size}, partition);
        code = lake_partition_object_key(proof->bucket->settings.prefix, proof->escaped, &shape, &manifest->bounds,
                                         partition, object->first_offset, object->last_offset, expected, &error);
    }
    if (code != 0 || strcmp(expected, object->key) != 0) {
        proof_fault(proof, checking->key, "it names the object %s: expected %s", object->key,
                    code != 0 ? error.message : expected);
    }
    if (!key_set_add(proof->named, object->key)) {
        proof_fault(proof, checking->key, "it names the object %s: expected it to be named once", object->key);
    }
}

static void check_objects(const struct checking *checking)
{
    const struct manifest *manifest = checking->manifest;
    bool merged = manifest->shape.layout == LAYOUT_MERGED;

    if (manifest->object_count == 0 || (merged && manifest->object_count != 1)) {
        proof_fault(checking->proof, checking->key, "%zu objects: expected %s", manifest->object_count,
                    merged ? "1, the layout is merged" : "at least 1");
    }
    for (size_t i = 0; i < manifest->object_count; i++) {
        const struct manifest_object *object = &manifest->objects[i];
        if (object->has_partition == merged) {
            proof_fault(checking->proof, checking->key, "the object %s has %s partition: the layout is %s", object->key,
                        merged ? "a" : "no", setting_layout_name(manifest->shape.layout));
        }
        check_key(checking, object);
    }
}

static void check_number(const struct checking *checking, const char *what, uint64_t found, uint64_t expected,
                         const char *why)
{
    if (found != expected) {
        proof_fault(checking->proof, checking->key, "%s %" PRIu64 ": expected %" PRIu64 ", %s", what, found, expected,
                    why);
    }
}

static void check_sums(const struct checking *checking)
{
    const struct manifest *manifest = checking->manifest;
    uint64_t records = 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < manifest->object_count; i++) {
        records += manifest->objects[i].records;
        bytes += manifest->objects[i].bytes;
    }
    check_number(checking, "records", manifest->records, records, "what its objects add up to");
    check_number(checking, "bytes", manifest->bytes, bytes, "what its objects add up to");
    if (manifest->records == 0) {
        proof_fault(checking->proof, checking->key, "a window without a record: expected none to be written");
    }
    if (manifest->shape.layout == LAYOUT_PER_PARTITION) {
        check_number(checking, "partitions", manifest->partitions, manifest->object_count, "its objects");
    } else if (manifest->partitions == 0 || manifest->partitions > manifest->records) {
        proof_fault(checking->proof, checking->key,
                    "%" PRIu64 " partitions: expected 1 to %" PRIu64 ", as it has records", manifest->partitions,
                    manifest->records);
    }
}

static void check_times(const struct checking *checking)
{
    const struct manifest *manifest = checking->manifest;
    char one[CLOCK_TEXT_SIZE];
    char other[CLOCK_TEXT_SIZE];

    if (manifest->records > 0 &&
        (manifest->min_ts.v > manifest->max_ts.v || manifest->min_ts.v < manifest->bounds.start.v ||
         manifest->max_ts.v >= manifest->bounds.end.v)) {
        proof_fault(checking->proof, checking->key, "records from %s to %s: expected them within the window",
                    spell(manifest->min_ts, one), spell(manifest->max_ts, other));
    }
}

static void tell_lost(const struct checking *checking)
{
    struct proof *proof = checking->proof;
    const struct manifest *manifest = checking->manifest;

    for (size_t i = 0; i < manifest->lost_count; i++) {
        const struct manifest_lost *lost = &manifest->lost[i];
        if (lost->from > lost->to) {
            proof_fault(proof, checking->key, "lost from %" PRId64 " to %" PRId64 ": expected no end before the start",
                        lost->from, lost->to);
            continue;
        }
        proof->lost += (uint64_t)(lost->to - lost->from) + 1;
        progress_clear();
        output_line("lost: window %" PRId64 ": partition %s, offsets %" PRId64 " to %" PRId64 "%s", manifest->bounds.k,
                    lost->partition, lost->from, lost->to, lost->previous_life ? ", of its previous life" : "");
    }
}

static void check_sink(const struct checking *checking)
{
    struct proof *proof = checking->proof;
    const char *sink = checking->manifest->sink;

    if (proof->sink == NULL) {
        proof->sink = memory_copy_text(sink);
    } else if (strcmp(proof->sink, sink) != 0) {
        proof_fault(proof, checking->key, "it is of the sink %s: expected %s, as before", sink, proof->sink);
    }
}

static void count(struct proof *proof, const struct manifest *manifest)
{
    if (proof->last_k == 0) {
        proof->first_k = manifest->bounds.k;
        proof->start = manifest->bounds.start;
    }
    proof->windows++;
    proof->records += manifest->records;
    proof->bytes += manifest->bytes;
    proof->objects += manifest->object_count;
    proof->last_k = manifest->bounds.k;
    proof->end = manifest->bounds.end;
}

/* ---- all of them ---- */

struct walking {
    struct proof *proof;
    proof_each *each;
    int64_t next_k;
};

static void check_hole(struct walking *walking, const struct window_entry *entry)
{
    int64_t missing = entry->k - walking->next_k;
    char folder[LAKE_KEY_SIZE];
    struct error error;

    if (missing > 0 && lake_manifest_key(walking->proof->bucket->settings.prefix, walking->proof->escaped,
                                         walking->next_k, folder, &error) == 0) {
        proof_fault(walking->proof, folder,
                    missing == 1 ? "the manifest is missing: expected window %" PRId64
                                 : "manifests are missing: expected windows %" PRId64 " to %" PRId64,
                    walking->next_k, entry->k - 1);
    }
    walking->next_k = entry->k + 1;
}

static int take_window(void *argument, const struct window_entry *entry)
{
    struct walking *walking = argument;
    struct proof *proof = walking->proof;
    struct checking checking = {proof, entry->manifest, entry->key};

    progress_show("%s: window %" PRId64 ", %" PRIu64 " records", proof->queue, entry->k, proof->records);
    check_hole(walking, entry);
    if (entry->manifest == NULL) {
        if (bucket_exit_code(&entry->error) == COMMAND_UNREACHABLE) {
            proof->failure = entry->error;
            error_prefix(&proof->failure, "the manifest %s", entry->key);
            return 1;
        }
        proof_fault(proof, entry->key, "%s: expected that of window %" PRId64 " of the queue %s", entry->error.message,
                    entry->k, proof->queue);
        return 0;
    }
    (void)key_set_add(proof->named, entry->key);
    check_sink(&checking);
    check_bounds(&checking);
    check_align(&checking);
    check_objects(&checking);
    check_sums(&checking);
    check_times(&checking);
    tell_lost(&checking);
    count(proof, entry->manifest);
    return walking->each != NULL ? walking->each(proof, entry->manifest) : 0;
}

int proof_manifests(struct proof *proof, proof_each *each)
{
    struct walking walking = {.proof = proof, .each = each, .next_k = 1};
    struct window_query query = {.prefix = proof->bucket->settings.prefix,
                                 .queue = {proof->queue, strlen(proof->queue)}};
    int code = bucket_windows(proof->bucket, &query, take_window, &walking, &proof->failure);

    progress_clear();
    return code == 0 ? 0 : -1;
}
