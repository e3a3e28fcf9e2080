/* Where each partition stands: partition_table.h. Open addressing, at most half full. */
#include "supervisor/commands/partition_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/name.h"

#define FIRST_PLACES 64

static struct partition_place *find(const struct partition_table *table, struct name name)
{
    size_t at = (size_t)name_hash(name) & (table->capacity - 1);

    while (table->places[at].name != NULL &&
           (table->places[at].size != name.size || memcmp(table->places[at].name, name.bytes, name.size) != 0)) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->places[at];
}

static void grow(struct partition_table *table)
{
    struct partition_table larger = {.count = table->count,
                                     .capacity = table->capacity > 0 ? table->capacity * 2 : FIRST_PLACES};

    larger.places = memory_new(larger.capacity, sizeof *larger.places);
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->places[i].name != NULL) {
            *find(&larger, (struct name){table->places[i].name, table->places[i].size}) = table->places[i];
        }
    }
    free(table->places);
    *table = larger;
}

struct partition_place *partition_table_get(struct partition_table *table, struct name name)
{
    if ((table->count + 1) * 2 > table->capacity) {
        grow(table);
    }
    struct partition_place *place = find(table, name);
    if (place->name == NULL) {
        place->name = memory_copy(name.bytes, name.size);
        place->size = name.size;
        table->count++;
    }
    return place;
}

void partition_table_free(struct partition_table *table)
{
    for (size_t i = 0; i < table->capacity; i++) {
        free(table->places[i].name);
    }
    free(table->places);
    memset(table, 0, sizeof *table);
}
