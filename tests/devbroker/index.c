/*
 * Ordered partitions; see index.h for the contract.
 */
#include "index.h"

#include <stdlib.h>
#include <string.h>

#include "store.h"

#define SWEEP_MINIMUM 4096

/* 0 for a byte that the first look at two names ignores. */
static unsigned char collate_weight(unsigned char byte)
{
    if (byte >= 'A' && byte <= 'Z') {
        return (unsigned char)(byte + ('a' - 'A'));
    }
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte >= 0x80 ? byte : 0;
}

static unsigned char next_weight(struct slice *from)
{
    unsigned char weight = 0;

    while (weight == 0 && from->size > 0) {
        weight = collate_weight((unsigned char)*from->at);
        from->at++;
        from->size--;
    }
    return weight;
}

int index_collate(struct slice left, struct slice right)
{
    struct slice left_rest = left;
    struct slice right_rest = right;
    unsigned char left_weight, right_weight;

    do {
        left_weight = next_weight(&left_rest);
        right_weight = next_weight(&right_rest);
        if (left_weight != right_weight) {
            return left_weight < right_weight ? -1 : 1;
        }
    } while (left_weight != 0);
    for (size_t i = 0; i < left.size && i < right.size; i++) {
        if (left.at[i] != right.at[i] && collate_weight((unsigned char)left.at[i]) != 0 &&
            collate_weight((unsigned char)right.at[i]) != 0) {
            return (unsigned char)left.at[i] > (unsigned char)right.at[i] ? -1 : 1;
        }
    }
    return slice_compare(left, right);
}

static int entry_compare(const void *left_entry, const void *right_entry)
{
    const struct index_entry *left = left_entry;
    const struct index_entry *right = right_entry;

    if (left->key != right->key) {
        return left->key < right->key ? -1 : 1;
    }
    return index_collate(left->partition->name, right->partition->name);
}

bool index_is_current(const struct index *index, const struct index_entry *entry)
{
    return index->order != INDEX_BY_WRITE || entry->key == entry->partition->last_write_at_us;
}

static void index_sweep(struct index *index)
{
    size_t kept = 0;

    for (size_t i = 0; i < index->settled; i++) {
        if (index_is_current(index, &index->entries[i])) {
            index->entries[kept++] = index->entries[i];
        }
    }
    index->count = kept;
    index->settled = kept;
}

void index_add(struct index *index, struct partition *partition, int64_t key)
{
    index->entries = memory_room(index->entries, index->count, &index->capacity, sizeof *index->entries);
    index->entries[index->count++] = (struct index_entry){key, partition};
}

void index_drop(struct index *index, const struct partition *partition)
{
    size_t kept = 0;
    size_t settled = 0;

    for (size_t i = 0; i < index->count; i++) {
        if (index->entries[i].partition != partition) {
            settled += i < index->settled;
            index->entries[kept++] = index->entries[i];
        }
    }
    index->count = kept;
    index->settled = settled;
}

bool index_is_settled(const struct index *index)
{
    return index->settled == index->count;
}

void index_settle(struct index *index)
{
    size_t tail_count = index->count - index->settled;
    size_t from_sorted = index->settled;
    size_t to = index->count;
    struct index_entry *tail;

    if (tail_count == 0) {
        return;
    }
    tail = memory_take(tail_count, sizeof *tail);
    memcpy(tail, index->entries + index->settled, tail_count * sizeof *tail);
    qsort(tail, tail_count, sizeof *tail, entry_compare);
    while (tail_count > 0) {
        if (from_sorted > 0 && entry_compare(&index->entries[from_sorted - 1], &tail[tail_count - 1]) > 0) {
            index->entries[--to] = index->entries[--from_sorted];
        } else {
            index->entries[--to] = tail[--tail_count];
        }
    }
    free(tail);
    index->settled = index->count;
    if (index->order == INDEX_BY_WRITE && index->count > SWEEP_MINIMUM) {
        size_t stale = 0;

        for (size_t i = 0; i < index->count; i += 16) {
            stale += !index_is_current(index, &index->entries[i]);
        }
        if (stale > index->count / 32) {
            index_sweep(index);
        }
    }
}

size_t index_find(const struct index *index, int64_t key, struct slice name)
{
    size_t low = 0;
    size_t high = index->settled;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct index_entry *entry = &index->entries[middle];
        bool before = entry->key < key;

        if (entry->key == key && name.at != NULL) {
            before = index_collate(entry->partition->name, name) <= 0;
        }
        if (before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void index_free(struct index *index)
{
    free(index->entries);
    *index = (struct index){.order = index->order};
}
