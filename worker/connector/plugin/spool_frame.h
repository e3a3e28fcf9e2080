/*
 * Frames of the spool's files (spool.h): what is on the disk, and how it is read back.
 *
 *     32 bytes   magic, kind, size of the table, size of the body, CRC-32 of table and of body, CRC-32 of the 28 before
 *     table      kind 1, the head: what shapes the object; kind 2, records: who they are; kind 3, a note
 *     body       of kind 2: the records' bytes
 *
 * Numbers are little-endian.
 */
#ifndef WORKER_CONNECTOR_PLUGIN_SPOOL_FRAME_H
#define WORKER_CONNECTOR_PLUGIN_SPOOL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/connector/body.h"

#define SPOOL_HEADER_SIZE 32

enum spool_kind { SPOOL_HEAD = 1, SPOOL_RECORDS = 2, SPOOL_NOTE = 3 };

/* A table being put together or read. Zero it before its first use; failed: out of memory, or read past its end. */
struct spool_table {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    size_t at; /* of reading */
    bool failed;
};
void spool_table_add_number(struct spool_table *table, uint64_t number);
/* Its size, then the bytes. */
void spool_table_add_text(struct spool_table *table, const char *bytes, size_t size);
/* 0 where it has failed. */
uint64_t spool_table_number(struct spool_table *table);
/* The next size bytes, NULL where it has failed. */
const void *spool_table_bytes(struct spool_table *table, uint64_t size);
void spool_table_free(struct spool_table *table);

/* Whether a file may end there. A write past RLIMIT_FSIZE would raise SIGXFSZ, which ends a host that doesn't expect it. */
bool spool_is_within_limit(uint64_t end);
/* Writes a frame at position, which becomes the one behind it. 0, or QS_ERROR_SYSTEM; path is for its message. */
int spool_frame_write(int descriptor, const char *path, uint64_t *position, enum spool_kind kind,
                      const struct spool_table *table, const struct sink_body *body, struct error *error);

struct spool_frame {
    enum spool_kind kind;
    uint64_t table_at;
    uint64_t table_size;
    uint64_t body_at;
    uint64_t body_size;
    uint64_t next; /* position behind it */
    uint32_t body_crc;
    struct spool_table table; /* the callee's to free */
};
enum spool_read { SPOOL_READ, SPOOL_END, SPOOL_TORN, SPOOL_FAILED };
/* The frame at position of a file of `size` bytes, its table read and checked. SPOOL_TORN: what stands there is no whole
 * frame; its `next` is 0 unless the header is good. SPOOL_FAILED: *error. */
enum spool_read spool_frame_read(int descriptor, const char *path, uint64_t position, uint64_t size,
                                 struct spool_frame *frame, struct error *error);
/* Whether a frame's header stands anywhere from position on: SPOOL_READ or SPOOL_END; SPOOL_FAILED: *error. */
enum spool_read spool_frame_find(int descriptor, const char *path, uint64_t position, uint64_t size,
                                 struct error *error);
/* Its body behind what `out` has; NULL: is only checked. SPOOL_TORN: it isn't what was written. */
enum spool_read spool_frame_body(int descriptor, const char *path, const struct spool_frame *frame,
                                 struct sink_body *out, struct error *error);

#endif
