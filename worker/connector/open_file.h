/*
 * A file that is being filled with the records of one topic and partition, in memory (seed, "How it works"; spec 5.2).
 *
 *     open_file_add()  …  until open_file_is_full() or the file is old: open_file_finish(), open_file_key(), upload,
 *     open_file_clear()
 *
 * No thread, no clock of its own, no log.
 */
#ifndef WORKER_CONNECTOR_OPEN_FILE_H
#define WORKER_CONNECTOR_OPEN_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "worker/connector/body.h"
#include "worker/connector/format.h"
#include "worker/connector/path_template.h"
#include "worker/connector/record.h"
#include "worker/connector/seen.h"

/* S3's largest single PutObject: a body is closed before the record that would take it past this. */
#define SINK_OBJECT_MAX (UINT64_C(5) << 30)

enum sink_rotation { SINK_BY_SIZE, SINK_BY_MESSAGES };

/* When a file is full. */
struct sink_limits {
    enum sink_rotation rotation;
    uint64_t max_size;     /* of the records' own bytes: no line feed, comma or bracket counts */
    uint64_t max_messages; /* 0 where not given */
};

/* Where a file goes: what its first record decides. */
struct sink_place {
    const char *prefix;        /* without slashes around it; NULL or "": none */
    const char *path_template; /* checked */
    struct sink_slice topic;
    int32_t partition;
    bool is_folder; /* the bucket is a directory (spec 3.9), which not every key can be a file of */
};

/* Zero it before its first use. */
struct open_file {
    char directory[SINK_KEY_MAX + 1]; /* `<prefix>/<rendered path_template>` */
    uint64_t count;                   /* records; 0: nothing is open, and what follows has no meaning */
    uint64_t first_offset;
    uint64_t last_offset;
    uint64_t own_bytes; /* as max_size counts */
    struct sink_body body;
    uint64_t written;      /* bytes of the body that are kept elsewhere, in front of these: a spool's */
    bool finished;         /* the body is what goes up */
    struct seen seen;      /* its records, in order of offsets */
    struct mono_ms opened; /* the caller's to set and to read */
};

/* `<prefix>/<rendered path_template>` into out; QS_ERROR_INPUT as path_template_render(), and where no object can have
 * a key under it. To be asked of every topic before its records are taken in. */
int sink_place_render(const struct sink_place *place, uint64_t timestamp_ms, const struct sink_shape *shape,
                      char out[SINK_KEY_MAX + 1], struct error *error);

/* Whether a record may only go into another file: its offset doesn't come after the last (a topic created again). */
bool open_file_is_behind(const struct open_file *file, uint64_t offset);

enum open_file_added {
    OPEN_FILE_ADDED,
    OPEN_FILE_NO_ROOM /* would go past SINK_OBJECT_MAX: to be added to the next file, this one is full */
};

/* Formats a record into the file, whose first one it may be. hash: sink_record_hash(). 0 with *added, or QS_ERROR_INPUT,
 * QS_ERROR_NO_MEMORY, and the file is as before. */
int open_file_add(struct open_file *file, const struct sink_place *place, struct sink_formatter *formatter,
                  const struct sink_record *record, uint64_t hash, enum open_file_added *added, unsigned *oddities,
                  struct error *error);

bool open_file_is_full(const struct open_file *file, const struct sink_limits *limits);

/* Ends the body and compresses it, once: then it is what goes up. On failure (QS_ERROR_NO_MEMORY) it can be tried again. */
int open_file_finish(struct open_file *file, const struct sink_shape *shape, struct error *error);

/* `<directory>/<partition>-<first>-<last>.<extension>`: the offsets of the first and last record, or for whom the file
 * covers a range (spec 5.4), that. QS_ERROR_INPUT where it is longer than a key may be. */
int open_file_key(const char *directory, int32_t partition, uint64_t first, uint64_t last,
                  const struct sink_shape *shape, char out[SINK_KEY_MAX + 1], struct error *error);

/* Forgets everything and frees it. */
void open_file_clear(struct open_file *file);

#endif
