/*
 * The engine's containers of partitions: an indexed binary heap (each partition knows its place, so a changed frontier
 * costs O(log n) and no search) and an open-addressing table by name with linear probing.
 */
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/name.h"
#include "worker/window_internal.h"

static int64_t heap_key(const struct partition_heap *heap, const struct partition *partition)
{
    return heap->kind == HEAP_MERGE ? partition_next_ts(partition) : partition->frontier;
}

static void heap_set(struct partition_heap *heap, size_t index, struct partition *partition)
{
    heap->items[index] = partition;
    partition->heap_index[heap->kind] = (uint32_t)index;
}

static void heap_up(struct partition_heap *heap, size_t index)
{
    struct partition *partition = heap->items[index];
    int64_t key = heap_key(heap, partition);
    while (index > 1 && key < heap_key(heap, heap->items[index / 2])) {
        heap_set(heap, index, heap->items[index / 2]);
        index /= 2;
    }
    heap_set(heap, index, partition);
}

static void heap_down(struct partition_heap *heap, size_t index)
{
    struct partition *partition = heap->items[index];
    int64_t key = heap_key(heap, partition);
    for (;;) {
        size_t child = index * 2;
        if (child > heap->count)
            break;
        if (child < heap->count && heap_key(heap, heap->items[child + 1]) < heap_key(heap, heap->items[child]))
            child++;
        if (key <= heap_key(heap, heap->items[child]))
            break;
        heap_set(heap, index, heap->items[child]);
        index = child;
    }
    heap_set(heap, index, partition);
}

void heap_put(struct partition_heap *heap, struct partition *partition)
{
    size_t index = partition->heap_index[heap->kind];
    if (index == 0) {
        heap->items = memory_grow(heap->items, &heap->capacity, heap->count + 2, sizeof *heap->items);
        index = ++heap->count;
        heap->items[index] = partition;
    }
    heap_up(heap, index);
    heap_down(heap, partition->heap_index[heap->kind]);
}

void heap_take(struct partition_heap *heap, struct partition *partition)
{
    size_t index = partition->heap_index[heap->kind];
    if (index == 0)
        return;
    partition->heap_index[heap->kind] = 0;
    struct partition *last = heap->items[heap->count--];
    if (last == partition)
        return;
    heap_set(heap, index, last);
    heap_up(heap, index);
    heap_down(heap, last->heap_index[heap->kind]);
}

struct partition *heap_top(const struct partition_heap *heap)
{
    return heap->count > 0 ? heap->items[1] : NULL;
}

void heap_free(struct partition_heap *heap)
{
    free(heap->items);
    heap->items = NULL;
    heap->count = heap->capacity = 0;
}

static bool same_name(const struct partition *partition, uint32_t hash, struct name name)
{
    return partition->hash == hash && partition->name_size == name.size &&
           memcmp(partition->name, name.bytes, name.size) == 0;
}

struct partition *table_find(const struct partition_table *table, struct name name)
{
    if (table->count == 0)
        return NULL;
    uint32_t hash = (uint32_t)name_hash(name);
    for (size_t i = hash & (table->capacity - 1); table->slots[i] != NULL; i = (i + 1) & (table->capacity - 1))
        if (same_name(table->slots[i], hash, name))
            return table->slots[i];
    return NULL;
}

static void table_insert(struct partition_table *table, struct partition *partition)
{
    size_t i = partition->hash & (table->capacity - 1);
    while (table->slots[i] != NULL)
        i = (i + 1) & (table->capacity - 1);
    table->slots[i] = partition;
}

static void table_grow(struct partition_table *table)
{
    struct partition_table old = *table;
    table->capacity = old.capacity > 0 ? old.capacity * 2 : 64;
    table->slots = memory_new(table->capacity, sizeof(struct partition *));
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i] != NULL)
            table_insert(table, old.slots[i]);
    free(old.slots);
}

struct partition *table_add(struct partition_table *table, struct name name)
{
    if ((table->count + 1) * 4 > table->capacity * 3)
        table_grow(table);
    struct partition *partition = memory_new(1, sizeof *partition);
    partition->name = memory_copy(name.bytes, name.size);
    partition->name_size = (uint32_t)name.size;
    partition->hash = (uint32_t)name_hash(name);
    partition->frontier = TIME_UNKNOWN;
    table_insert(table, partition);
    table->count++;
    return partition;
}

/* Closes the gap that a removal leaves, so that no probe sequence is cut and no marker is needed. */
void table_remove(struct partition_table *table, struct partition *partition)
{
    size_t mask = table->capacity - 1;
    size_t hole = partition->hash & mask;
    while (table->slots[hole] != partition)
        hole = (hole + 1) & mask;
    for (size_t i = (hole + 1) & mask; table->slots[i] != NULL; i = (i + 1) & mask) {
        size_t home = table->slots[i]->hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            table->slots[hole] = table->slots[i];
            hole = i;
        }
    }
    table->slots[hole] = NULL;
    table->count--;
}
