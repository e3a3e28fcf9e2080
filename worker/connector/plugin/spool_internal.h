/* What the files of the spool share. Nobody else includes this. */
#ifndef WORKER_CONNECTOR_PLUGIN_SPOOL_INTERNAL_H
#define WORKER_CONNECTOR_PLUGIN_SPOOL_INTERNAL_H

#include <pthread.h>

#include "worker/connector/plugin/spool.h"
#include "worker/connector/plugin/spool_frame.h"

struct spool {
    char *path;
    int folder; /* its descriptor, which paths are relative to and which is synced */
    int lock_file;
    pthread_mutex_t lock;
    uint64_t next_sequence;
    uint64_t next_batch;
    uint32_t next_note;
    pthread_mutex_t note_lock; /* of what follows; held while a note is written, never over the network */
    uint64_t reserved;         /* bytes of the disk that the next note has for sure */
    uint64_t reserve_wanted;   /* as many as the largest note may take */
};

#define SPOOL_NAME_SIZE 32
void spool_file_name(uint64_t sequence, const char *extension, char name[SPOOL_NAME_SIZE]);
void spool_note_name(uint32_t number, char name[SPOOL_NAME_SIZE]);
/* Opens a file of the folder; -1 with *error. */
int spool_open_file(const struct spool *spool, const char *name, int flags, struct error *error);
/* What the run before has left of the reserve. */
void spool_note_find_reserve(struct spool *spool);
int spool_sync_folder(const struct spool *spool, struct error *error);

#endif
