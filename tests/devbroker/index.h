/*
 * Partitions in an order that discovery walks: by name as a database's collation has it, by (lastWriteAt, name), or by
 * creation.
 *
 * A sorted array with a tail of what came since; the tail is sorted and merged from the back when the order is asked
 * for, so a page of a million partitions costs a binary search, and a refresh of one costs what it displaces. An entry
 * whose key is no longer its partition's is stale: it is skipped, and swept when stale ones are the majority.
 */
#ifndef DEVBROKER_INDEX_H
#define DEVBROKER_INDEX_H

#include "text.h"

struct partition;

enum index_order { INDEX_BY_NAME, INDEX_BY_WRITE, INDEX_BY_CREATION };

struct index_entry {
    int64_t key; /* lastWriteAt, or the creation number; 0 by name */
    struct partition *partition;
};

struct index {
    enum index_order order;
    struct index_entry *entries;
    size_t count;
    size_t settled; /* how many of count are sorted */
    size_t capacity;
};

void index_add(struct index *index, struct partition *partition, int64_t key);
void index_drop(struct index *index, const struct partition *partition); /* walks all of it */
bool index_is_settled(const struct index *index);
void index_settle(struct index *index);
/* The first entry after (key, name); with .at NULL for the name: the first with this key or a later one. */
size_t index_find(const struct index *index, int64_t key, struct slice name);
bool index_is_current(const struct index *index, const struct index_entry *entry);
void index_free(struct index *index);

/* Names as a collation orders them: letters before everything else decides, lower case before upper, then bytes. */
int index_collate(struct slice left, struct slice right);

#endif
