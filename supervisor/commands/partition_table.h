/*
 * Where each partition of a queue stands while a lake is read: its last offset, and the window that has it.
 */
#ifndef SUPERVISOR_COMMANDS_PARTITION_TABLE_H
#define SUPERVISOR_COMMANDS_PARTITION_TABLE_H

#include "common/queen_api.h"

struct partition_place {
    char *name; /* NULL: free */
    size_t size;
    int64_t last; /* offset */
    int64_t k;    /* of the window; 0: just added */
};

/* Zero it before its first use. */
struct partition_table {
    struct partition_place *places;
    size_t count;
    size_t capacity;
};

/* Its place, added where it is missing; valid until the next call. */
struct partition_place *partition_table_get(struct partition_table *table, struct name name);
void partition_table_free(struct partition_table *table);

#endif
