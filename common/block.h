/*
 * Where records live between the socket and the object store: one reference-counted block a fetch answer.
 *
 * A block is the body of one answer, as it came, and an array of records whose fields are slices into it. Records are
 * never copied or moved one by one; the block lives until the windows that use it are up. All of it is the loop
 * thread's, except that an encoder thread may read records and bytes of blocks that its plan holds: nobody changes
 * either after decoding.
 *
 * Every byte of a block is counted in the budget it was made with, from the moment it is reserved.
 */
#ifndef COMMON_BLOCK_H
#define COMMON_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"

/* A worker's share of QUEEN_S3_MEMORY_MB (spec 3.3, 4.1), in bytes. used counts reservations, blocks, and the buffers
 * of uploads. It can exceed limit: one record may be larger than a share alone, and a share can shrink. */
struct budget {
    size_t limit;
    size_t used;
    size_t spare;                /* held by the regions below: room that is taken back before anything is refused */
    struct spare_region *spares; /* bodies of blocks that are gone, for the next ones (spare.c) */
};

/* True, and counted, where it fits. */
bool budget_take(struct budget *budget, size_t size);
/* Counted whether it fits or not. */
void budget_force(struct budget *budget, size_t size);
void budget_give(struct budget *budget, size_t size);
size_t budget_room(const struct budget *budget);
/* To be called about once a second: gives spare memory that found no use for some seconds back to the kernel. */
void budget_age(struct budget *budget);
/* Gives all of it back. */
void budget_close(struct budget *budget);

enum {
    RECORD_PAYLOAD_NULL = 1, /* the wire said null */
    RECORD_LINE_BREAKS = 2   /* the payload holds a raw LF or CR between tokens */
};

struct record {
    int64_t offset;
    struct broker_us ts;
    const char *transaction_id; /* as it stands between the quotes of a JSON string in the lake's spelling (spec 2.2) */
    const char *payload;        /* the producer's own bytes */
    uint32_t transaction_id_size; /* of the spelling above */
    uint32_t transaction_id_raw;  /* of the id itself, unescaped: what a record's weight counts (spec 3.3) */
    uint32_t payload_size;
    uint32_t flags;
};

struct block {
    struct budget *budget; /* may be NULL: not counted */
    size_t references;
    size_t charged; /* what it has taken from the budget */
    char *body;     /* owned: malloc, or a mapping of body_mapped bytes */
    size_t body_mapped;
    size_t body_size;
    size_t body_capacity;
    struct record *records; /* owned, malloc */
    size_t record_count;
    size_t record_capacity;
    size_t live; /* for its user: bytes of records still wanted */
};

/* One reference, nothing in it; NULL if out of memory. `charged` bytes that the caller has already taken from the
 * budget become the block's (they stay the caller's where it returns NULL). */
struct block *block_create(struct budget *budget, size_t charged);
void block_retain(struct block *block);
/* Frees and gives back to the budget with the last reference. NULL is nothing. */
void block_release(struct block *block);

/* Grows body_capacity to at least `capacity`. With may_exceed false and the budget without room: QS_ERROR_NO_ROOM; out
 * of memory: QS_ERROR_NO_MEMORY. The block is then as it was. What is in the body may move: not to be called once there
 * are records. */
int block_reserve_body(struct block *block, size_t capacity, bool may_exceed);
/* The same for record_capacity. */
int block_reserve_records(struct block *block, size_t capacity, bool may_exceed);
/* Room for one more record, growing whether the budget has room or not; NULL if out of memory. The record is counted in
 * by the call, and zeroed. */
struct record *block_add_record(struct block *block);
/* Gives what isn't used back to the allocator and to the budget: after decoding. The body may move; slices of records
 * that point into it move along. */
void block_trim(struct block *block);

#endif
