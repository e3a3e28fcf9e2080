/*
 * Blocks and the budget they are counted in: see block.h.
 *
 * A block is charged for its struct and for the capacity of its two arrays, never for less than what its maker had
 * reserved for it, until block_trim() gives back all that isn't used. Growing charges before it allocates, so that the
 * budget is never behind the allocator.
 */
#include "common/block.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/spare.h"

bool budget_take(struct budget *budget, size_t size)
{
    if (size > budget_room(budget)) {
        return false;
    }
    budget->used += size;
    spare_limit(budget);
    return true;
}

void budget_force(struct budget *budget, size_t size)
{
    budget->used += size;
    spare_limit(budget);
}

void budget_give(struct budget *budget, size_t size)
{
    budget->used -= size < budget->used ? size : budget->used;
}

size_t budget_room(const struct budget *budget)
{
    return budget->used < budget->limit ? budget->limit - budget->used : 0;
}

void budget_age(struct budget *budget)
{
    spare_age(budget);
}

void budget_close(struct budget *budget)
{
    spare_drop(budget);
}

/* What a block with such arrays takes; false where no size_t holds it. */
static bool block_footprint(size_t body_capacity, size_t record_capacity, size_t *size)
{
    return !__builtin_mul_overflow(record_capacity, sizeof(struct record), size) &&
           !__builtin_add_overflow(*size, body_capacity, size) &&
           !__builtin_add_overflow(*size, sizeof(struct block), size);
}

static int block_charge(struct block *block, size_t body_capacity, size_t record_capacity, bool may_exceed)
{
    size_t footprint;
    if (!block_footprint(body_capacity, record_capacity, &footprint)) {
        return QS_ERROR_NO_MEMORY;
    }
    if (footprint <= block->charged) {
        return QS_OK;
    }
    size_t more = footprint - block->charged;
    if (block->budget != NULL) {
        if (may_exceed) {
            budget_force(block->budget, more);
        } else if (!budget_take(block->budget, more)) {
            return QS_ERROR_NO_ROOM;
        }
    }
    block->charged = footprint;
    return QS_OK;
}

/* Gives back what is charged above `charged`. */
static void block_discharge(struct block *block, size_t charged)
{
    if (charged < block->charged) {
        if (block->budget != NULL) {
            budget_give(block->budget, block->charged - charged);
        }
        block->charged = charged;
    }
}

struct block *block_create(struct budget *budget, size_t charged)
{
    struct block *block = calloc(1, sizeof *block);
    if (block == NULL) {
        return NULL;
    }
    block->budget = budget;
    block->references = 1;
    block->charged = charged;
    if (block_charge(block, 0, 0, true) != QS_OK) {
        free(block);
        return NULL;
    }
    return block;
}

void block_retain(struct block *block)
{
    block->references++;
}

static void free_body(struct block *block)
{
    if (block->body_mapped > 0) {
        spare_give(block->budget, block->body, block->body_mapped);
    } else {
        free(block->body);
    }
    block->body = NULL;
    block->body_mapped = 0;
}

/* Large bodies live in mappings that are used again: fresh pages cost more than all that is done with them (each has to
 * be found and zeroed by the kernel). */
static char *grow_body(struct block *block, size_t capacity, size_t *mapped)
{
    if (block->budget == NULL || capacity < SPARE_MIN) {
        return block->body_mapped > 0 ? NULL : realloc(block->body, capacity);
    }
    char *body = spare_take(block->budget, capacity, mapped);
    if (body != NULL && block->body != NULL) {
        memcpy(body, block->body, block->body_size);
        free_body(block);
    }
    return body;
}

void block_release(struct block *block)
{
    if (block == NULL || --block->references > 0) {
        return;
    }
    block_discharge(block, 0);
    free_body(block);
    free(block->records);
    free(block);
}

int block_reserve_body(struct block *block, size_t capacity, bool may_exceed)
{
    if (capacity <= block->body_capacity) {
        return QS_OK;
    }
    size_t charged = block->charged;
    size_t mapped = 0;
    capacity = block->budget != NULL ? spare_round(capacity) : capacity;
    int status = block_charge(block, capacity, block->record_capacity, may_exceed);
    if (status != QS_OK) {
        return status;
    }
    char *body = grow_body(block, capacity, &mapped);
    if (body == NULL) {
        block_discharge(block, charged);
        return QS_ERROR_NO_MEMORY;
    }
    block->body = body;
    block->body_mapped = mapped;
    block->body_capacity = capacity;
    return QS_OK;
}

int block_reserve_records(struct block *block, size_t capacity, bool may_exceed)
{
    if (capacity <= block->record_capacity) {
        return QS_OK;
    }
    size_t charged = block->charged;
    int status = block_charge(block, block->body_capacity, capacity, may_exceed);
    if (status != QS_OK) {
        return status;
    }
    /* The charge proved that the product fits. */
    struct record *records = realloc(block->records, capacity * sizeof *records);
    if (records == NULL) {
        block_discharge(block, charged);
        return QS_ERROR_NO_MEMORY;
    }
    block->records = records;
    block->record_capacity = capacity;
    return QS_OK;
}

struct record *block_add_record(struct block *block)
{
    if (block->record_count == block->record_capacity) {
        size_t capacity = block->record_capacity < 16 ? 16 : block->record_capacity + block->record_capacity / 2;
        if (block_reserve_records(block, capacity, true) != QS_OK) {
            return NULL;
        }
    }
    struct record *record = &block->records[block->record_count++];
    *record = (struct record){0};
    return record;
}

/* A slice of a body that was at `from`, of `size` bytes, and is now at `to`. Anything else stays what it is. */
static const char *rebased(const char *slice, uintptr_t from, size_t size, const char *to)
{
    uintptr_t at = (uintptr_t)slice - from;
    return at <= size ? to + at : slice;
}

static void move_slices(struct block *block, uintptr_t from, const char *to)
{
    for (size_t i = 0; i < block->record_count; i++) {
        struct record *record = &block->records[i];
        record->transaction_id = rebased(record->transaction_id, from, block->body_size, to);
        record->payload = rebased(record->payload, from, block->body_size, to);
    }
}

/* A mapping that turned out to be far too large: its bytes move to memory of their size. */
static void unmap_body(struct block *block)
{
    char *body = malloc(block->body_size);
    if (body == NULL) {
        return;
    }
    memcpy(body, block->body, block->body_size);
    move_slices(block, (uintptr_t)block->body, body);
    free_body(block);
    block->body = body;
    block->body_capacity = block->body_size;
}

/* What can't be shrunk stays as large as it is, and counted. Shrinking seldom moves the bytes, but it may: then the
 * slices move along. An empty array is freed, as realloc to 0 bytes says nothing clear. */
static void trim_body(struct block *block)
{
    if (block->body_size == 0) {
        free_body(block);
        block->body_capacity = 0;
        return;
    }
    if (block->body_size >= block->body_capacity) {
        return;
    }
    if (block->body_mapped > 0 && block->body_size >= SPARE_MIN) {
        block->body_mapped = spare_cut(block->body, block->body_mapped, block->body_size);
        block->body_capacity = block->body_mapped;
        return;
    }
    if (block->body_mapped > 0) {
        unmap_body(block);
        return;
    }
    uintptr_t before = (uintptr_t)block->body;
    char *body = realloc(block->body, block->body_size);
    if (body == NULL) {
        return;
    }
    if ((uintptr_t)body != before) {
        move_slices(block, before, body);
    }
    block->body = body;
    block->body_capacity = block->body_size;
}

static void trim_records(struct block *block)
{
    if (block->record_count == 0) {
        free(block->records);
        block->records = NULL;
        block->record_capacity = 0;
        return;
    }
    if (block->record_count >= block->record_capacity) {
        return;
    }
    struct record *records = realloc(block->records, block->record_count * sizeof *records);
    if (records != NULL) {
        block->records = records;
        block->record_capacity = block->record_count;
    }
}

void block_trim(struct block *block)
{
    trim_body(block);
    trim_records(block);
    size_t footprint;
    if (block_footprint(block->body_capacity, block->record_capacity, &footprint)) {
        block_discharge(block, footprint);
    }
}
