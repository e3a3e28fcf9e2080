/*
 * Which records were taken: offsets with the hash of what stood there (spec 5.3). A record that comes again has both; a
 * record of a topic that was deleted and created again has the offset alone.
 *
 * Sizes come from outside, so an allocation that fails is told, not fatal.
 */
#ifndef WORKER_CONNECTOR_SEEN_H
#define WORKER_CONNECTOR_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_record {
    uint64_t offset;
    uint64_t hash;
};

/* Zero it before its first use. In order of offsets as long as records are added in order; seen_sort() mends it. */
struct seen {
    struct seen_record *records;
    size_t count;
    size_t capacity;
};

/* Room for so many more; false: out of memory. */
bool seen_reserve(struct seen *seen, size_t more);
/* Adds at the end, where room was reserved. */
void seen_add(struct seen *seen, uint64_t offset, uint64_t hash);
/* Needs the order. */
bool seen_has(const struct seen *seen, uint64_t offset, uint64_t hash);
void seen_sort(struct seen *seen);
/* Removes whatever is in `gone`, which has to be in order. */
void seen_forget(struct seen *seen, const struct seen *gone);
void seen_clear(struct seen *seen);
void seen_free(struct seen *seen);

#endif
