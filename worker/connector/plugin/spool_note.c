/*
 * Notes, and the room that is kept for the next one: spool.h.
 *
 * A note is written into note.new, whose bytes the disk has given already, and takes its name then. Of the file that
 * the note lets go the bytes become the next note.new: so they never belong to the disk in between, where a batch that
 * comes in could take them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "worker/connector/plugin/spool_internal.h"

#define RESERVE "note.new"
/* The frame's header; partition, size of the topic, count. */
#define NOTE_FIXED_SIZE (SPOOL_HEADER_SIZE + 3 * 8)
#define NOTE_ENTRY_SIZE 16
#define RESERVE_STEP    4096 /* as disks give it */

void spool_note_find_reserve(struct spool *spool)
{
    struct stat status;

    if (fstatat(spool->folder, RESERVE, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode)) {
        uint64_t given = 512 * (uint64_t)status.st_blocks;
        spool->reserved = given < (uint64_t)status.st_size ? given : (uint64_t)status.st_size;
    }
}

/* The lock is held. */
static int extend_reserve(struct spool *spool, struct error *error)
{
    int descriptor = spool_open_file(spool, RESERVE, O_WRONLY | O_CREAT, error);

    if (descriptor < 0) {
        return error->code;
    }
    errno = spool_is_within_limit(spool->reserve_wanted) ? posix_fallocate(descriptor, 0, (off_t)spool->reserve_wanted)
                                                         : EFBIG;
    int code = errno != 0 ? error_set_errno(error, "no room for a note in %s", spool->path) : 0;
    close(descriptor);
    if (code == 0) {
        spool->reserved = spool->reserve_wanted;
    }
    return code;
}

int spool_note_reserve(struct spool *spool, struct sink_slice topic, uint64_t records, struct error *error)
{
    uint64_t size = NOTE_FIXED_SIZE + topic.size + NOTE_ENTRY_SIZE * records;
    int code = 0;

    size += RESERVE_STEP - size % RESERVE_STEP;
    pthread_mutex_lock(&spool->note_lock);
    spool->reserve_wanted = size > spool->reserve_wanted ? size : spool->reserve_wanted;
    if (spool->reserved < size) {
        code = extend_reserve(spool, error);
    }
    pthread_mutex_unlock(&spool->note_lock);
    return code;
}

static void add_records(struct spool_table *table, const struct seen *records)
{
    for (size_t i = 0; i < records->count; i++) {
        spool_table_add_number(table, records->records[i].offset);
        spool_table_add_number(table, records->records[i].hash);
    }
}

/* The lock is held. */
static int write_note(struct spool *spool, const char *name, const struct spool_table *table, struct error *error)
{
    int descriptor = spool_open_file(spool, RESERVE, O_WRONLY | O_CREAT, error);
    uint64_t end = 0;

    if (descriptor < 0) {
        return error->code;
    }
    int code = spool_frame_write(descriptor, RESERVE, &end, SPOOL_NOTE, table, NULL, error);
    if (code == 0 && (ftruncate(descriptor, (off_t)end) != 0 || fdatasync(descriptor) != 0 ||
                      renameat(spool->folder, RESERVE, spool->folder, name) != 0)) {
        code = error_set_errno(error, "the spool's note %s can't be written", name);
    }
    close(descriptor);
    if (code == 0) {
        spool->reserved = 0;
    }
    return code;
}

int spool_note_write(struct spool *spool, uint32_t *number, struct sink_slice topic, int32_t partition,
                     const struct seen *last, const struct seen *recovered, struct error *error)
{
    struct spool_table table = {0};
    char name[SPOOL_NAME_SIZE];

    if (*number == 0) {
        pthread_mutex_lock(&spool->lock);
        *number = spool->next_note++;
        pthread_mutex_unlock(&spool->lock);
    }
    spool_note_name(*number, name);
    spool_table_add_number(&table, (uint32_t)partition);
    spool_table_add_text(&table, topic.bytes, topic.size);
    spool_table_add_number(&table, last->count + recovered->count);
    add_records(&table, last);
    add_records(&table, recovered);
    pthread_mutex_lock(&spool->note_lock);
    int code = write_note(spool, name, &table, error);
    pthread_mutex_unlock(&spool->note_lock);
    spool_table_free(&table);
    return code == 0 ? spool_sync_folder(spool, error) : code;
}

/* True where the file has become the reserve. Durably, before a note is written over it: else a crash could bring its
 * name back with the note's bytes. The lock is held. */
static bool make_reserve(struct spool *spool, const char *name, uint64_t size)
{
    struct stat status;
    struct error ignored;

    if (spool->reserved >= spool->reserve_wanted || spool->reserved >= size ||
        renameat(spool->folder, name, spool->folder, RESERVE) != 0) {
        return false;
    }
    spool->reserved = 0;
    int descriptor = spool_sync_folder(spool, &ignored) == 0 ? spool_open_file(spool, RESERVE, O_WRONLY, &ignored) : -1;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0) {
        bool larger = (uint64_t)status.st_size > spool->reserve_wanted;
        if (larger && ftruncate(descriptor, (off_t)spool->reserve_wanted) != 0) {
            log_line(LOG_WARN, NULL, "%s/%s can't be made smaller", spool->path, RESERVE);
        }
        spool->reserved = larger ? spool->reserve_wanted : (uint64_t)status.st_size;
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (spool->reserved < spool->reserve_wanted) {
        (void)extend_reserve(spool, &ignored); /* the next batch asks for it again */
    }
    return true;
}

void spool_file_retire(struct spool_file *spooled)
{
    struct spool *spool = spooled->spool;
    char name[SPOOL_NAME_SIZE];

    spool_file_name(spooled->sequence, "spool", name);
    pthread_mutex_lock(&spool->note_lock);
    bool reused = make_reserve(spool, name, spooled->size);
    pthread_mutex_unlock(&spool->note_lock);
    if (reused) {
        spool_file_free(spooled);
    } else {
        spool_file_remove(spooled);
    }
}
