/*
 * Reading the spool back (spool.h). A frame was made durable before its batch was answered, and nothing is ever written
 * behind a frame that wasn't: so only the last frame of a file can be a torn one, and only it is checked byte for byte
 * here. The others are checked when they go up. Where frames stand behind one that can't be read, it is no tail but
 * damage, and nothing is cut: the file is put aside as it is.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/utf8.h"
#include "worker/connector/plugin/spool_internal.h"

#define FORMAT_VERSION 1

/* ---- one file ---- */

struct reading {
    struct spool *spool;
    char name[SPOOL_NAME_SIZE];
    int descriptor;
    uint64_t size;
    struct spool_file *spooled;
    struct seen records;
    struct seen repeats;
    uint64_t first_batch;
};

static int out_of_memory(struct error *error)
{
    return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the spool's files");
}

static enum spool_read read_head(struct reading *reading, struct spool_table *table, struct error *error)
{
    struct spool_file *spooled = reading->spooled;
    uint64_t version = spool_table_number(table);
    uint64_t format = spool_table_number(table);
    uint64_t compression = spool_table_number(table);

    spooled->partition = (int32_t)(uint32_t)spool_table_number(table);
    uint64_t size = spool_table_number(table);
    const char *directory = spool_table_bytes(table, size);
    if (directory == NULL || size > SINK_KEY_MAX || version != FORMAT_VERSION || format > SINK_RAW ||
        compression > COMPRESSION_NONE) {
        return SPOOL_TORN;
    }
    memcpy(spooled->directory, directory, (size_t)size);
    spooled->shape =
        (struct sink_shape){.format = (enum sink_format)format, .compression = (enum setting_compression)compression};
    size = spool_table_number(table);
    const char *topic = spool_table_bytes(table, size);
    if (topic == NULL || !utf8_is_valid(topic, (size_t)size)) {
        return SPOOL_TORN;
    }
    spooled->topic = malloc((size_t)size + 1);
    if (spooled->topic == NULL) {
        (void)out_of_memory(error);
        return SPOOL_FAILED;
    }
    memcpy(spooled->topic, topic, (size_t)size);
    spooled->topic_size = (size_t)size;
    return SPOOL_READ;
}

static enum spool_read read_entries(struct spool_table *table, struct seen *records, struct error *error)
{
    uint64_t count = spool_table_number(table);

    if (table->failed || count > (table->size - table->at) / 16) {
        return SPOOL_TORN;
    }
    if (!seen_reserve(records, (size_t)count)) {
        (void)out_of_memory(error);
        return SPOOL_FAILED;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset = spool_table_number(table);
        seen_add(records, offset, spool_table_number(table));
    }
    return SPOOL_READ;
}

/* Takes a frame in. SPOOL_TORN: it is none that belongs there. */
static enum spool_read take_frame(struct reading *reading, struct spool_frame *frame, struct error *error)
{
    struct spool_file *spooled = reading->spooled;
    size_t before = reading->records.count;

    if (spooled->size == 0) {
        return frame->kind == SPOOL_HEAD ? read_head(reading, &frame->table, error) : SPOOL_TORN;
    }
    uint64_t batch = spool_table_number(&frame->table);
    enum spool_read read =
        frame->kind == SPOOL_RECORDS ? read_entries(&frame->table, &reading->records, error) : SPOOL_TORN;
    if (read == SPOOL_READ) {
        read = read_entries(&frame->table, &reading->repeats, error);
    }
    if (read != SPOOL_READ || reading->records.count == before) {
        reading->records.count = before;
        return read == SPOOL_READ ? SPOOL_TORN : read;
    }
    if (frame->next == reading->size) {
        enum spool_read body = spool_frame_body(reading->descriptor, reading->name, frame, NULL, error);
        if (body != SPOOL_READ) {
            reading->records.count = before;
            return body;
        }
    }
    reading->first_batch = before == 0 ? batch : reading->first_batch;
    spooled->last_batch = batch;
    spooled->body_size += frame->body_size;
    return SPOOL_READ;
}

/* Whether frames stand behind the one that can't be read: SPOOL_READ, or SPOOL_END where it is the last. */
static enum spool_read look_behind(const struct reading *reading, const struct spool_frame *unreadable,
                                   struct error *error)
{
    if (unreadable->next > 0) { /* its header can be read */
        return unreadable->next < reading->size ? SPOOL_READ : SPOOL_END;
    }
    return spool_frame_find(reading->descriptor, reading->name, reading->spooled->size + 1, reading->size, error);
}

static enum spool_read cut_tail(const struct reading *reading, struct error *error)
{
    uint64_t good = reading->spooled->size;

    log_line(LOG_WARN, NULL,
             "%s/%s: the last %" PRIu64 " of %" PRIu64
             " bytes were not written to the end before a crash, and are cut (their batch was not confirmed)",
             reading->spool->path, reading->name, reading->size - good, reading->size);
    if (ftruncate(reading->descriptor, (off_t)good) != 0 || fdatasync(reading->descriptor) != 0) {
        error_set_errno(error, "%s/%s can't be cut", reading->spool->path, reading->name);
        return SPOOL_FAILED;
    }
    return SPOOL_END;
}

/* SPOOL_END: all that is left is good. SPOOL_TORN: the file is damaged. */
static enum spool_read read_frames(struct reading *reading, struct error *error)
{
    enum spool_read read = SPOOL_READ;
    struct spool_frame frame;

    while (read == SPOOL_READ) {
        read =
            spool_frame_read(reading->descriptor, reading->name, reading->spooled->size, reading->size, &frame, error);
        if (read == SPOOL_READ) {
            read = take_frame(reading, &frame, error);
        }
        if (read == SPOOL_READ) {
            reading->spooled->size = frame.next;
        }
        spool_table_free(&frame.table);
    }
    if (read != SPOOL_TORN) {
        return read;
    }
    enum spool_read behind = look_behind(reading, &frame, error);
    return behind == SPOOL_END ? cut_tail(reading, error) : behind == SPOOL_READ ? SPOOL_TORN : SPOOL_FAILED;
}

static void count_records(const struct reading *reading)
{
    const struct seen *records = &reading->records;
    struct spool_file *spooled = reading->spooled;

    spooled->count = records->count;
    if (records->count > 0) {
        spooled->first_offset = records->records[0].offset;
        spooled->last_offset = records->records[records->count - 1].offset;
    }
}

static void finish_file(struct reading *reading, const struct spool_found *found)
{
    struct spool_file *spooled = reading->spooled;
    const struct seen *records = &reading->records;

    count_records(reading);
    if (records->count == 0) {
        spool_file_remove(spooled);
        return;
    }
    if (spooled->last_batch >= reading->spool->next_batch) {
        reading->spool->next_batch = spooled->last_batch + 1;
    }
    found->file(found->argument, spooled, records, &reading->repeats, reading->first_batch);
}

static int recover_file(struct spool *spool, uint64_t sequence, const struct spool_found *found, struct error *error)
{
    struct reading reading = {.spool = spool, .spooled = calloc(1, sizeof *reading.spooled)};
    struct stat status;

    if (reading.spooled == NULL) {
        return out_of_memory(error);
    }
    reading.spooled->spool = spool;
    reading.spooled->sequence = sequence;
    spool_file_name(sequence, "spool", reading.name);
    reading.descriptor = spool_open_file(spool, reading.name, O_RDWR, error);
    if (reading.descriptor < 0) {
        spool_file_free(reading.spooled);
        return error->code;
    }
    enum spool_read read = SPOOL_FAILED;
    if (fstat(reading.descriptor, &status) != 0) {
        error_set_errno(error, "%s/%s can't be read", spool->path, reading.name);
    } else {
        reading.size = (uint64_t)status.st_size;
        read = read_frames(&reading, error);
    }
    close(reading.descriptor);
    int code = 0;
    if (read == SPOOL_END) {
        finish_file(&reading, found);
    } else if (read == SPOOL_TORN) {
        log_line(LOG_ERROR, NULL, "%s/%s is damaged at byte %" PRIu64 " of %" PRIu64, spool->path, reading.name,
                 reading.spooled->size, reading.size);
        count_records(&reading);
        spool_file_set_aside(reading.spooled);
    } else {
        spool_file_free(reading.spooled);
        code = error->code;
    }
    seen_free(&reading.records);
    seen_free(&reading.repeats);
    return code;
}

/* A note was written whole or not at all; one that can't be read is of no use, and is told. */
static int recover_note(struct spool *spool, uint32_t number, const struct spool_found *found, struct error *error)
{
    char name[SPOOL_NAME_SIZE];
    struct spool_frame frame = {0};
    struct seen records = {0};
    struct stat status;

    spool_note_name(number, name);
    int descriptor = spool_open_file(spool, name, O_RDONLY, error);
    if (descriptor < 0) {
        return error->code;
    }
    enum spool_read read = SPOOL_FAILED;
    if (fstat(descriptor, &status) == 0) {
        read = spool_frame_read(descriptor, name, 0, (uint64_t)status.st_size, &frame, error);
    } else {
        error_set_errno(error, "%s/%s can't be read", spool->path, name);
    }
    close(descriptor);
    if (read == SPOOL_FAILED) {
        return error->code;
    }
    int32_t partition = (int32_t)(uint32_t)spool_table_number(&frame.table);
    uint64_t size = spool_table_number(&frame.table);
    const char *topic = spool_table_bytes(&frame.table, size);
    bool good = read == SPOOL_READ && frame.kind == SPOOL_NOTE && topic != NULL && utf8_is_valid(topic, (size_t)size);
    read = good ? read_entries(&frame.table, &records, error) : SPOOL_TORN;
    if (read == SPOOL_READ) {
        found->note(found->argument, number, (struct sink_slice){topic, (size_t)size}, partition, &records);
    } else if (read != SPOOL_FAILED) {
        log_line(LOG_WARN, NULL, "%s/%s can't be read: a batch that comes again may be doubled", spool->path, name);
    }
    seen_free(&records);
    spool_table_free(&frame.table);
    return read == SPOOL_FAILED ? error->code : 0;
}

/* ---- the folder ---- */

struct listing {
    uint64_t *numbers;
    size_t count;
    size_t capacity;
};

static bool listing_add(struct listing *listing, uint64_t number)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity > 0 ? 2 * listing->capacity : 64;
        uint64_t *numbers = realloc(listing->numbers, capacity * sizeof *numbers);
        if (numbers == NULL) {
            return false;
        }
        listing->numbers = numbers;
        listing->capacity = capacity;
    }
    listing->numbers[listing->count++] = number;
    return true;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* As spool_file_name() and spool_note_name() spell them; anything else isn't ours. */
static bool read_name(const char *name, const char *extension, uint64_t *number)
{
    char spelled[SPOOL_NAME_SIZE];

    *number = strtoull(name, NULL, 10);
    spool_file_name(*number, extension, spelled);
    return strcmp(name, spelled) == 0;
}

static bool read_note_name(const char *name, uint64_t *number)
{
    char spelled[SPOOL_NAME_SIZE];

    *number = strtoull(name, NULL, 10);
    spool_note_name((uint32_t)*number, spelled);
    return strcmp(name, spelled) == 0;
}

static int list(struct spool *spool, struct listing *files, struct listing *notes, struct error *error)
{
    int descriptor = spool_open_file(spool, ".", O_RDONLY | O_DIRECTORY, error);
    DIR *folder = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    const struct dirent *entry;
    bool good = true;

    if (folder == NULL) {
        if (descriptor >= 0) {
            close(descriptor);
        }
        return error_set_errno(error, "spool_dir %s can't be read", spool->path);
    }
    errno = 0;
    while (good && (entry = readdir(folder)) != NULL) {
        uint64_t number;
        if (read_name(entry->d_name, "spool", &number)) {
            good = listing_add(files, number);
        } else if (read_note_name(entry->d_name, &number)) {
            good = listing_add(notes, number);
        }
        uint64_t damaged;
        if (read_name(entry->d_name, "damaged", &damaged) && damaged >= spool->next_sequence) {
            spool->next_sequence = damaged + 1;
        }
        errno = 0; /* readdir()'s alone */
    }
    int number = errno;
    closedir(folder);
    errno = number;
    if (!good) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the names in spool_dir %s", spool->path);
    }
    return number != 0 ? error_set_errno(error, "spool_dir %s can't be read", spool->path) : 0;
}

static int recover_all(struct spool *spool, const struct listing *files, const struct listing *notes,
                       const struct spool_found *found, struct error *error)
{
    int code = 0;

    for (size_t i = 0; i < notes->count && code == 0; i++) {
        code = recover_note(spool, (uint32_t)notes->numbers[i], found, error);
        spool->next_note = (uint32_t)notes->numbers[i] + 1;
    }
    for (size_t i = 0; i < files->count && code == 0; i++) {
        code = recover_file(spool, files->numbers[i], found, error);
        if (files->numbers[i] >= spool->next_sequence) {
            spool->next_sequence = files->numbers[i] + 1;
        }
    }
    return code;
}

int spool_recover(struct spool *spool, const struct spool_found *found, struct error *error)
{
    struct listing files = {0};
    struct listing notes = {0};
    int code = list(spool, &files, &notes, error);

    if (code == 0) {
        if (files.count > 0) {
            qsort(files.numbers, files.count, sizeof *files.numbers, compare);
        }
        if (notes.count > 0) {
            qsort(notes.numbers, notes.count, sizeof *notes.numbers, compare);
        }
        code = recover_all(spool, &files, &notes, found, error);
    }
    free(files.numbers);
    free(notes.numbers);
    return code;
}

int spool_file_load(const struct spool_file *spooled, struct sink_body *body, struct error *error)
{
    char name[SPOOL_NAME_SIZE];
    uint64_t position = 0;
    enum spool_read read = SPOOL_READ;

    spool_file_name(spooled->sequence, "spool", name);
    int descriptor = spool_open_file(spooled->spool, name, O_RDONLY, error);
    if (descriptor < 0) {
        return error->code;
    }
    while (read == SPOOL_READ) {
        struct spool_frame frame;
        read = spool_frame_read(descriptor, name, position, spooled->size, &frame, error);
        position = frame.next;
        if (read == SPOOL_READ && frame.kind == SPOOL_RECORDS) {
            read = spool_frame_body(descriptor, name, &frame, body, error);
        }
        spool_table_free(&frame.table);
    }
    close(descriptor);
    if (read == SPOOL_END && body->size == spooled->body_size) {
        return 0;
    }
    sink_body_clear(body);
    if (read == SPOOL_FAILED) {
        return error->code;
    }
    return error_set(error, QS_ERROR_BODY, "%s/%s isn't what was written there", spooled->spool->path, name);
}
