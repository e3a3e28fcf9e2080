/*
 * The records of a lake, held against their manifests (proof.h): each object is read once from its first byte to its
 * last, hashed on the way, and its records must be in order, within the window, and as many as are promised.
 *
 * JSON Lines are hashed as they are read. Parquet is read here and there, so it is hashed first; blocks that are still
 * there are not fetched again (stored_object.h). Small objects come whole, many at a time.
 */
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/hex.h"
#include "common/lake/object_reader.h"
#include "common/memory.h"
#include "supervisor/command.h"
#include "supervisor/commands/progress.h"
#include "supervisor/commands/proof.h"
#include "supervisor/commands/stored_object.h"

#define HASH_BYTES 262144

/* A window while its objects are read. */
struct reading {
    struct proof *proof;
    const struct manifest *manifest;
    size_t next_small; /* objects: where the search for small ones goes on */
    size_t *small;     /* which were asked for, in order */
    size_t small_count;
    size_t small_capacity;
    bool whole; /* every object was read to its end */
    uint64_t partitions;
    struct broker_us min_ts;
    struct broker_us max_ts;
    uint64_t records;
};

/* An object while it is read. */
struct object {
    struct reading *reading;
    const struct manifest_object *entry;
    uint64_t records;
    struct byte_buffer partition; /* of the record before */
    int64_t first;
    int64_t last; /* offset of the record before */
    EVP_MD_CTX *hash;
    struct object_source below; /* what a hashed source reads from */
};

static struct name name_of(const struct byte_buffer *text)
{
    return (struct name){text->bytes != NULL ? text->bytes : "", text->size};
}

static int compare(struct name left, struct name right)
{
    size_t size = left.size < right.size ? left.size : right.size;
    int order = size > 0 ? memcmp(left.bytes, right.bytes, size) : 0;

    return order != 0 ? order : (left.size > right.size) - (left.size < right.size);
}

/* ---- across windows ---- */

/* Whether a partition may begin again at `first`: it does from 0, or from where what was lost of a new life ends. */
static bool may_begin_again(const struct manifest *manifest, struct name partition, int64_t first)
{
    if (first == 0) {
        return true;
    }
    for (size_t i = 0; i < manifest->lost_count; i++) {
        const struct manifest_lost *lost = &manifest->lost[i];
        struct name name = {lost->partition, lost->partition_size};
        if (compare(name, partition) == 0 && (lost->previous_life || lost->to == first - 1)) {
            return true;
        }
    }
    return false;
}

/* A partition's first record in an object. */
static void begin_partition(struct object *object, const struct lake_record *record)
{
    struct reading *reading = object->reading;
    int64_t k = reading->manifest->bounds.k;
    struct partition_place *place = partition_table_get(&reading->proof->partitions, record->partition);

    reading->partitions++;
    object->first = record->offset;
    if (place->k == k) {
        proof_fault(reading->proof, object->entry->key, "partition %.*s: expected it in one object of the window",
                    (int)record->partition.size, record->partition.bytes);
    } else if (place->k > 0 && record->offset <= place->last &&
               !may_begin_again(reading->manifest, record->partition, record->offset)) {
        proof_fault(reading->proof, object->entry->key,
                    "partition %.*s, offset %" PRId64 ": expected more than %" PRId64 ", which window %" PRId64
                    " has already",
                    (int)record->partition.size, record->partition.bytes, record->offset, place->last, place->k);
    }
}

static void end_partition(struct object *object)
{
    struct partition_place *place;

    if (object->records == 0) {
        return;
    }
    place = partition_table_get(&object->reading->proof->partitions, name_of(&object->partition));
    place->last = object->last;
    place->k = object->reading->manifest->bounds.k;
}

/* ---- a record ---- */

static void check_order(struct object *object, const struct lake_record *record, const char *where)
{
    int order = object->records > 0 ? compare(record->partition, name_of(&object->partition)) : 1;

    if (order == 0 && record->offset > object->last) {
        object->last = record->offset;
        return;
    }
    if (order <= 0) {
        proof_fault(object->reading->proof, object->entry->key,
                    "%s: partition %.*s, offset %" PRId64 ": %s behind partition %.*s, offset %" PRId64, where,
                    (int)record->partition.size, record->partition.bytes, record->offset,
                    order == 0 && record->offset == object->last ? "once more" : "out of order",
                    (int)object->partition.size, object->partition.bytes, object->last);
    }
    if (order != 0) {
        end_partition(object);
        begin_partition(object, record);
        byte_buffer_clear(&object->partition);
        byte_buffer_add(&object->partition, record->partition.bytes, record->partition.size);
    }
    object->last = record->offset;
}

static void check_record(struct object *object, const struct lake_record *record, const char *where)
{
    struct reading *reading = object->reading;
    const struct window_bounds *bounds = &reading->manifest->bounds;
    char time[CLOCK_TEXT_SIZE];
    char start[CLOCK_TEXT_SIZE];
    char end[CLOCK_TEXT_SIZE];

    check_order(object, record, where);
    if (record->ts.v < bounds->start.v || record->ts.v >= bounds->end.v) {
        clock_format_broker(record->ts, time);
        clock_format_broker(bounds->start, start);
        clock_format_broker(bounds->end, end);
        proof_fault(reading->proof, object->entry->key,
                    "%s: partition %.*s, offset %" PRId64 ": ts %s: expected it in the window, from %s to %s", where,
                    (int)record->partition.size, record->partition.bytes, record->offset, time, start, end);
    }
    if (reading->records == 0 || record->ts.v < reading->min_ts.v) {
        reading->min_ts = record->ts;
    }
    if (reading->records == 0 || record->ts.v > reading->max_ts.v) {
        reading->max_ts = record->ts;
    }
    object->records++;
    reading->records++;
}

/* ---- an object ---- */

static void check_end(const struct object *object)
{
    const struct manifest_object *entry = object->entry;
    struct proof *proof = object->reading->proof;

    if (object->records != entry->records) {
        proof_fault(proof, entry->key, "%" PRIu64 " records: expected %" PRIu64, object->records, entry->records);
    }
    if (!entry->has_partition || object->records == 0) {
        return;
    }
    struct name named = {entry->partition, entry->partition_size};
    if (compare(named, name_of(&object->partition)) != 0) {
        proof_fault(proof, entry->key, "partition %.*s: expected %s alone", (int)object->partition.size,
                    object->partition.bytes, entry->partition);
    } else if (object->first != entry->first_offset || object->last != entry->last_offset) {
        proof_fault(proof, entry->key, "offsets %" PRId64 " to %" PRId64 ": expected %" PRId64 " to %" PRId64,
                    object->first, object->last, entry->first_offset, entry->last_offset);
    }
}

static int read_records(struct object *object, const struct object_source *source, struct error *error)
{
    const struct window_shape *shape = &object->reading->manifest->shape;
    struct object_reader *reader = object_reader_open(shape->format, shape->compression, source, NULL, error);
    struct lake_record record;
    int more = reader != NULL ? 1 : (int)error->code;

    while (more == 1 && (more = object_reader_next(reader, &record, error)) == 1) {
        check_record(object, &record, object_reader_where(reader));
        if (object->records % 4096 == 0) {
            progress_show("%s: window %" PRId64 ", %" PRIu64 " records of it read", object->reading->proof->queue,
                          object->reading->manifest->bounds.k, object->reading->records);
        }
    }
    object_reader_close(reader);
    return more;
}

/* A source that hashes what is read forward of another. */
static int read_hashed(void *source, void *buffer, size_t size, size_t *got, struct error *error)
{
    struct object *object = source;
    int code = object->below.read(object->below.source, buffer, size, got, error);

    if (code == 0) {
        EVP_DigestUpdate(object->hash, buffer, *got);
    }
    return code;
}

static int hash_rest(struct object *object, struct error *error)
{
    char *buffer = memory_new(HASH_BYTES, 1);
    size_t got = 1;
    int code = 0;

    while (code == 0 && got > 0) {
        code = read_hashed(object, buffer, HASH_BYTES, &got, error);
    }
    free(buffer);
    return code;
}

static void check_hash(struct object *object)
{
    unsigned char found[EVP_MAX_MD_SIZE] = {0};
    char text[2][65];

    EVP_DigestFinal_ex(object->hash, found, NULL);
    if (memcmp(found, object->entry->sha256, sizeof object->entry->sha256) == 0) {
        return;
    }
    *hex_write(text[0], found, sizeof object->entry->sha256) = '\0';
    *hex_write(text[1], object->entry->sha256, sizeof object->entry->sha256) = '\0';
    proof_fault(object->reading->proof, object->entry->key, "sha256 %s: expected %s", text[0], text[1]);
}

/* Records and hash. failure: the bucket's, looked at where reading fails; NULL where there is none to have. */
static int read_both(struct object *object, const struct object_source *source, const struct error *failure)
{
    struct object_source hashed = {object, read_hashed, NULL, source->size};
    bool forward = object->reading->manifest->shape.format == FORMAT_JSONL;
    struct error error = {.code = QS_OK};
    int code = forward ? 0 : hash_rest(object, &error);
    int records = code == 0 ? read_records(object, forward ? &hashed : source, &error) : code;
    struct error ignored;

    end_partition(object);
    if (failure != NULL && failure->code != QS_OK) {
        object->reading->proof->failure = *failure;
        return -1;
    }
    if (records < 0) {
        proof_fault(object->reading->proof, object->entry->key, "%s", error.message);
        object->reading->whole = false;
    } else {
        check_end(object);
    }
    /* Damage, or what lies behind the end of what the reader needed: the hash is of all bytes. */
    if (forward && hash_rest(object, &ignored) != 0) {
        object->reading->proof->failure = failure != NULL ? *failure : ignored;
        return -1;
    }
    check_hash(object);
    return 0;
}

static int prove(struct reading *reading, const struct manifest_object *entry, const struct object_source *source,
                 const struct error *failure)
{
    struct object object = {.reading = reading, .entry = entry, .below = *source};
    int code = 0;

    object.hash = EVP_MD_CTX_new();
    if (object.hash == NULL || EVP_DigestInit_ex(object.hash, EVP_sha256(), NULL) != 1) {
        error_set(&reading->proof->failure, QS_ERROR_NO_MEMORY, "OpenSSL can't hash");
        code = -1;
    } else {
        code = read_both(&object, source, failure);
    }
    EVP_MD_CTX_free(object.hash);
    byte_buffer_free(&object.partition);
    return code;
}

/* ---- small objects, whole ---- */

static const char *next_small(void *argument, size_t which)
{
    struct reading *reading = argument;
    const struct manifest *manifest = reading->manifest;

    while (reading->next_small < manifest->object_count &&
           manifest->objects[reading->next_small].bytes > STORED_BLOCK_BYTES) {
        reading->next_small++;
    }
    if (reading->next_small == manifest->object_count) {
        return NULL;
    }
    reading->small = memory_grow(reading->small, &reading->small_capacity, which + 1, sizeof *reading->small);
    reading->small[which] = reading->next_small;
    return manifest->objects[reading->next_small++].key;
}

/* Whether it is there with its size; what isn't is told, and not read. 1: yes. Negative: the bucket failed. */
static int is_there(struct reading *reading, const struct manifest_object *entry, const struct error *error,
                    uint64_t size)
{
    int there = proof_size(reading->proof, entry->key, entry->bytes, error, size);

    reading->whole = reading->whole && there == 1;
    return there;
}

static int take_small(void *argument, size_t which, struct bucket_answer *answer)
{
    struct reading *reading = argument;
    const struct manifest_object *entry = &reading->manifest->objects[reading->small[which]];
    int there = is_there(reading, entry, &answer->error, answer->size);

    if (there <= 0) {
        return there;
    }
    struct memory_object memory = {.bytes = answer->bytes, .size = (size_t)answer->size};
    struct object_source source = object_source_memory(&memory);
    return prove(reading, entry, &source, NULL);
}

/* ---- large objects ---- */

static int prove_large(struct reading *reading, const struct manifest_object *entry)
{
    struct error error;
    uint64_t size = bucket_ask_size(reading->proof->bucket, entry->key, &error);
    int there = is_there(reading, entry, &error, size);

    if (there <= 0) {
        return there;
    }
    struct stored_object *object = stored_object_open(reading->proof->bucket, entry->key, entry->bytes);
    struct object_source source = stored_object_source(object);
    int code = prove(reading, entry, &source, stored_object_failure(object));
    stored_object_close(object);
    return code;
}

/* ---- a window ---- */

static void check_window(const struct reading *reading)
{
    const struct manifest *manifest = reading->manifest;
    char key[LAKE_KEY_SIZE];
    char found[2][CLOCK_TEXT_SIZE];
    char expected[2][CLOCK_TEXT_SIZE];

    if (!reading->whole) {
        return;
    }
    /* It was held against this very key when it was listed. */
    (void)lake_manifest_key(reading->proof->bucket->settings.prefix, reading->proof->escaped, manifest->bounds.k, key,
                            NULL);
    if (reading->partitions != manifest->partitions) {
        proof_fault(reading->proof, key, "partitions %" PRIu64 ": expected %" PRIu64 ", which its objects have",
                    manifest->partitions, reading->partitions);
    }
    if (reading->records > 0 && (reading->min_ts.v != manifest->min_ts.v || reading->max_ts.v != manifest->max_ts.v)) {
        clock_format_broker(manifest->min_ts, found[0]);
        clock_format_broker(manifest->max_ts, found[1]);
        clock_format_broker(reading->min_ts, expected[0]);
        clock_format_broker(reading->max_ts, expected[1]);
        proof_fault(reading->proof, key, "records from %s to %s: expected %s to %s, as its objects have them", found[0],
                    found[1], expected[0], expected[1]);
    }
}

int proof_records(struct proof *proof, const struct manifest *manifest)
{
    struct reading reading = {.proof = proof, .manifest = manifest, .whole = true};
    const struct bucket_asking asking = {.question = BUCKET_BYTES,
                                         .size_limit = STORED_BLOCK_BYTES,
                                         .next = next_small,
                                         .take = take_small,
                                         .argument = &reading};
    int code = bucket_ask(proof->bucket, &asking);

    for (size_t i = 0; i < manifest->object_count && code == 0; i++) {
        if (manifest->objects[i].bytes > STORED_BLOCK_BYTES) {
            code = prove_large(&reading, &manifest->objects[i]);
        }
    }
    if (code == 0) {
        check_window(&reading);
    }
    free(reading.small);
    return code;
}
