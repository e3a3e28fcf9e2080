/* The spool's folder and files, as they are written: spool.h. Reading them back after a crash: spool_recover.c. */
#include "worker/connector/plugin/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/plugin/spool_internal.h"

#define FORMAT_VERSION 1

void spool_file_name(uint64_t sequence, const char *extension, char name[SPOOL_NAME_SIZE])
{
    snprintf(name, SPOOL_NAME_SIZE, "%020" PRIu64 ".%s", sequence, extension);
}

void spool_note_name(uint32_t number, char name[SPOOL_NAME_SIZE])
{
    snprintf(name, SPOOL_NAME_SIZE, "%010" PRIu32 ".note", number);
}

int spool_open_file(const struct spool *spool, const char *name, int flags, struct error *error)
{
    int descriptor = openat(spool->folder, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (descriptor < 0) {
        error_set_errno(error, "can't open %s/%s", spool->path, name);
    }
    return descriptor;
}

int spool_sync_folder(const struct spool *spool, struct error *error)
{
    if (fsync(spool->folder) != 0 && errno != EINVAL && errno != ENOTSUP) {
        return error_set_errno(error, "can't sync %s", spool->path);
    }
    return 0;
}

/* ---- the folder ---- */

/* The folder and those above it, 0700 where they are made. */
static int make_folders(const char *path, struct error *error)
{
    char *copy = memory_copy_text(path);
    int code = 0;

    for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL) {
            *slash = '\0';
        }
        if (mkdir(copy, 0700) != 0 && errno != EEXIST) {
            code = error_set_errno(error, "spool_dir %s can't be made", copy);
        }
        if (slash == NULL || code != 0) {
            break;
        }
        *slash = '/';
    }
    free(copy);
    return code;
}

static int take_lock(struct spool *spool, struct error *error)
{
    spool->lock_file = spool_open_file(spool, "lock", O_RDWR | O_CREAT, error);
    if (spool->lock_file < 0) {
        return error->code;
    }
    if (flock(spool->lock_file, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? error_set(error, QS_ERROR_REFUSED, "spool_dir %s is in use by another sink: give each its own",
                               spool->path)
                   : error_set_errno(error, "spool_dir %s can't be locked", spool->path);
    }
    return 0;
}

struct spool *spool_open(const char *path, struct error *error)
{
    struct spool *spool = memory_new(1, sizeof *spool);

    spool->path = memory_copy_text(path);
    spool->folder = spool->lock_file = -1;
    spool->next_sequence = spool->next_batch = 1;
    spool->next_note = 1;
    pthread_mutex_init(&spool->lock, NULL);
    pthread_mutex_init(&spool->note_lock, NULL);
    error_clear(error);
    int code = make_folders(path, error);
    if (code == 0) {
        spool->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        code = spool->folder < 0 ? error_set_errno(error, "spool_dir %s can't be opened", path) : 0;
    }
    if (code == 0) {
        code = take_lock(spool, error);
    }
    if (code == 0) {
        spool_note_find_reserve(spool);
    }
    if (code != 0) {
        spool_close(spool);
        return NULL;
    }
    return spool;
}

void spool_close(struct spool *spool)
{
    if (spool == NULL) {
        return;
    }
    if (spool->lock_file >= 0) {
        flock(spool->lock_file, LOCK_UN); /* a forked child of the host may have it too: closing alone keeps it */
        close(spool->lock_file);
    }
    if (spool->folder >= 0) {
        close(spool->folder);
    }
    pthread_mutex_destroy(&spool->lock);
    pthread_mutex_destroy(&spool->note_lock);
    free(spool->path);
    free(spool);
}

uint64_t spool_next_batch(struct spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    uint64_t batch = spool->next_batch++;
    pthread_mutex_unlock(&spool->lock);
    return batch;
}

/* ---- a file ---- */

static struct spool_file *file_new(struct spool *spool, struct sink_slice topic, int32_t partition,
                                   const char *directory, const struct sink_shape *shape)
{
    struct spool_file *spooled = calloc(1, sizeof *spooled);
    char *name = malloc(topic.size + 1);

    if (spooled == NULL || name == NULL) {
        free(spooled);
        free(name);
        return NULL;
    }
    if (topic.size > 0) {
        memcpy(name, topic.bytes, topic.size);
    }
    spooled->spool = spool;
    spooled->topic = name;
    spooled->topic_size = topic.size;
    spooled->partition = partition;
    spooled->shape = *shape;
    snprintf(spooled->directory, sizeof spooled->directory, "%s", directory);
    pthread_mutex_lock(&spool->lock);
    spooled->sequence = spool->next_sequence++;
    pthread_mutex_unlock(&spool->lock);
    return spooled;
}

static int write_head(int descriptor, const char *name, struct spool_file *spooled, struct error *error)
{
    struct spool_table table = {0};

    spool_table_add_number(&table, FORMAT_VERSION);
    spool_table_add_number(&table, (uint64_t)spooled->shape.format);
    spool_table_add_number(&table, (uint64_t)spooled->shape.compression);
    spool_table_add_number(&table, (uint32_t)spooled->partition);
    spool_table_add_text(&table, spooled->directory, strlen(spooled->directory));
    spool_table_add_text(&table, spooled->topic, spooled->topic_size);
    int code = spool_frame_write(descriptor, name, &spooled->size, SPOOL_HEAD, &table, NULL, error);
    spool_table_free(&table);
    return code;
}

struct spool_file *spool_file_create(struct spool *spool, struct sink_slice topic, int32_t partition,
                                     const char *directory, const struct sink_shape *shape, struct error *error)
{
    struct spool_file *spooled = file_new(spool, topic, partition, directory, shape);
    char name[SPOOL_NAME_SIZE];

    if (spooled == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a file of the spool");
        return NULL;
    }
    spool_file_name(spooled->sequence, "spool", name);
    int descriptor = spool_open_file(spool, name, O_WRONLY | O_CREAT | O_EXCL, error);
    if (descriptor < 0) {
        spool_file_free(spooled);
        return NULL;
    }
    int code = write_head(descriptor, name, spooled, error);
    close(descriptor);
    if (code != 0) {
        spool_file_remove(spooled);
        return NULL;
    }
    return spooled;
}

static void add_entries(struct spool_table *table, const struct seen *seen, size_t first)
{
    spool_table_add_number(table, seen->count - first);
    for (size_t i = first; i < seen->count; i++) {
        spool_table_add_number(table, seen->records[i].offset);
        spool_table_add_number(table, seen->records[i].hash);
    }
}

static int cut_at(int descriptor, const char *name, uint64_t size, struct error *error)
{
    if (ftruncate(descriptor, (off_t)size) != 0 || fdatasync(descriptor) != 0) {
        return error_set_errno(error, "%s can't be cut back", name);
    }
    return 0;
}

int spool_file_cut(struct spool_file *spooled, uint64_t size, struct error *error)
{
    char name[SPOOL_NAME_SIZE];

    spool_file_name(spooled->sequence, "spool", name);
    int descriptor = spool_open_file(spooled->spool, name, O_WRONLY, error);
    if (descriptor < 0) {
        return error->code;
    }
    int code = cut_at(descriptor, name, size, error);
    close(descriptor);
    if (code == 0) {
        spooled->size = size;
    }
    return code;
}

static int write_records(int descriptor, const char *name, struct spool_file *spooled, uint64_t *end,
                         const struct open_file *file, uint64_t count, const struct seen *repeats, uint64_t batch,
                         struct error *error)
{
    struct spool_table table = {0};

    spool_table_add_number(&table, batch);
    add_entries(&table, &file->seen, file->seen.count - (size_t)count);
    add_entries(&table, repeats, 0);
    int code = spool_frame_write(descriptor, name, end, SPOOL_RECORDS, &table, &file->body, error);
    spool_table_free(&table);
    if (code == 0 && fdatasync(descriptor) != 0) {
        code = error_set_errno(error, "can't sync %s", name);
    }
    if (code == 0 && spooled->count == 0) {
        code = spool_sync_folder(spooled->spool, error);
    }
    return code;
}

int spool_file_add(struct spool_file *spooled, const struct open_file *file, uint64_t count, const struct seen *repeats,
                   uint64_t batch, bool *torn, struct error *error)
{
    char name[SPOOL_NAME_SIZE];
    uint64_t end = spooled->size;
    struct error ignored;

    *torn = false;
    spool_file_name(spooled->sequence, "spool", name);
    int descriptor = spool_open_file(spooled->spool, name, O_WRONLY, error);
    if (descriptor < 0) {
        return error->code;
    }
    int code = write_records(descriptor, name, spooled, &end, file, count, repeats, batch, error);
    if (code != 0) {
        *torn = cut_at(descriptor, name, spooled->size, &ignored) != 0;
        close(descriptor);
        return code;
    }
    close(descriptor);
    spooled->first_offset = spooled->count == 0 ? file->first_offset : spooled->first_offset;
    spooled->last_offset = file->last_offset;
    spooled->count += count;
    spooled->body_size += file->body.size;
    spooled->last_batch = batch;
    spooled->size = end;
    return 0;
}

void spool_file_remove(struct spool_file *spooled)
{
    char name[SPOOL_NAME_SIZE];

    spool_file_name(spooled->sequence, "spool", name);
    if (unlinkat(spooled->spool->folder, name, 0) != 0 && errno != ENOENT) {
        struct error error;
        error_set_errno(&error, "can't delete %s/%s", spooled->spool->path, name);
        log_line(LOG_WARN, NULL, "%s", error.message);
    }
    spool_file_free(spooled);
}

void spool_file_set_aside(struct spool_file *spooled)
{
    char name[SPOOL_NAME_SIZE];
    char aside[SPOOL_NAME_SIZE];
    struct error ignored;

    spool_file_name(spooled->sequence, "spool", name);
    spool_file_name(spooled->sequence, "damaged", aside);
    if (renameat(spooled->spool->folder, name, spooled->spool->folder, aside) == 0) {
        (void)spool_sync_folder(spooled->spool, &ignored);
        log_line(LOG_ERROR, NULL,
                 "%s/%s is kept for you to look at: %" PRIu64 " records of offsets %" PRIu64 " to %" PRIu64,
                 spooled->spool->path, aside, spooled->count, spooled->first_offset, spooled->last_offset);
    } else {
        struct error error;
        error_set_errno(&error, "can't rename %s/%s", spooled->spool->path, name);
        log_line(LOG_ERROR, NULL, "%s", error.message);
    }
    spool_file_free(spooled);
}

void spool_file_free(struct spool_file *spooled)
{
    free(spooled->topic);
    free(spooled);
}
