/*
 * The spool of a sink (spec 5.3): records on disk before the call that brought them is answered, until their object is
 * up.
 *
 *     <spool_dir>/lock                  held while the sink is open
 *     <spool_dir>/<sequence>.spool      one file that is being filled, or waits for the bucket
 *     <spool_dir>/<number>.note         which records the last batch of a topic and partition had
 *     <spool_dir>/note.new              room on the disk for the next note
 *
 * A .spool file is a row of frames, each with its length and checksums. The first says what shapes the object's key and
 * bytes, so that a file is finished under the options it was begun with; the others hold the records of a batch each:
 * who they are (offset and hash), and their bytes as they stand in the object. Frames are only ever added, each made
 * durable before the call returns; what a crash left half-written is a tail, which is cut.
 *
 * All of it blocks on the disk, and none of it is called with a lock held. Errors: QS_ERROR_SYSTEM, QS_ERROR_NO_MEMORY,
 * QS_ERROR_BODY for a file whose bytes are not what was written.
 */
#ifndef WORKER_CONNECTOR_PLUGIN_SPOOL_H
#define WORKER_CONNECTOR_PLUGIN_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "worker/connector/open_file.h"

struct spool;

struct spool_file {
    TAILQ_ENTRY(spool_file) link; /* whoever holds it may use this */
    struct spool *spool;
    uint64_t sequence;
    uint64_t size; /* of the file, to the end of the last frame that counts */
    char *topic;   /* UTF-8, not NUL-terminated */
    size_t topic_size;
    int32_t partition;
    char directory[SINK_KEY_MAX + 1];
    struct sink_shape shape;
    uint64_t count; /* records */
    uint64_t first_offset;
    uint64_t last_offset;
    uint64_t body_size;
    uint64_t last_batch; /* of its last frame */
};
TAILQ_HEAD(spool_files, spool_file);

/* Makes the folder (0700) and locks it. Otherwise NULL: QS_ERROR_REFUSED where another sink has it. */
struct spool *spool_open(const char *path, struct error *error);
void spool_close(struct spool *spool);

/* A batch's number: rises with each call, over restarts too. */
uint64_t spool_next_batch(struct spool *spool);

/* A new file with its first frame, not yet durable. */
struct spool_file *spool_file_create(struct spool *spool, struct sink_slice topic, int32_t partition,
                                     const char *directory, const struct sink_shape *shape, struct error *error);
/* Adds a frame with the last `count` records of `file` and all of its body, which are then durable, and the file's name
 * with them where it is new. repeats: who else was in the batch, and had been taken in before. On failure the file is as
 * before, or *torn: what was added could not be taken away. */
int spool_file_add(struct spool_file *spooled, const struct open_file *file, uint64_t count, const struct seen *repeats,
                   uint64_t batch, bool *torn, struct error *error);
/* Takes away what lies behind `size`, durably. */
int spool_file_cut(struct spool_file *spooled, uint64_t size, struct error *error);
/* The bytes of the object before compression, checked. */
int spool_file_load(const struct spool_file *spooled, struct sink_body *body, struct error *error);
/* Deletes it, once its object is up, and frees it. */
void spool_file_retire(struct spool_file *spooled);
/* Deletes it and frees it. */
void spool_file_remove(struct spool_file *spooled);
/* Puts it out of the way as <sequence>.damaged, and frees it. */
void spool_file_set_aside(struct spool_file *spooled);
void spool_file_free(struct spool_file *spooled);

/* A file leaves the disk only when the note about its records is there. So a disk that is full of files could never get
 * empty, had the note no room of its own: sees to it that one about so many records can be written whatever happens.
 * Nonzero: there is no room even for that. */
int spool_note_reserve(struct spool *spool, struct sink_slice topic, uint64_t records, struct error *error);
/* Writes the note `*number` (0: a new one), durably, in the place of the one before. */
int spool_note_write(struct spool *spool, uint32_t *number, struct sink_slice topic, int32_t partition,
                     const struct seen *last, const struct seen *recovered, struct error *error);

/* What a crash left behind, in order. A file: its records are read into *records, torn tails are cut and told. A note:
 * its records. Called with memory that is the callee's only during the call; nonzero ends the recovery with it. */
struct spool_found {
    void (*file)(void *argument, struct spool_file *spooled, const struct seen *records, const struct seen *repeats,
                 uint64_t first_batch);
    void (*note)(void *argument, uint32_t number, struct sink_slice topic, int32_t partition,
                 const struct seen *records);
    void *argument;
};
int spool_recover(struct spool *spool, const struct spool_found *found, struct error *error);

#endif
