/* Which records were taken: seen.h. */
#include "worker/connector/seen.h"

#include <stdlib.h>

bool seen_reserve(struct seen *seen, size_t more)
{
    if (more <= seen->capacity - seen->count) {
        return true;
    }
    if (more > SIZE_MAX / sizeof *seen->records / 2 - seen->count) {
        return false;
    }
    size_t capacity = seen->count + more < 2 * seen->capacity ? 2 * seen->capacity : seen->count + more;
    struct seen_record *records = realloc(seen->records, capacity * sizeof *records);
    if (records == NULL) {
        return false;
    }
    seen->records = records;
    seen->capacity = capacity;
    return true;
}

void seen_add(struct seen *seen, uint64_t offset, uint64_t hash)
{
    seen->records[seen->count++] = (struct seen_record){offset, hash};
}

static int compare(const void *left, const void *right)
{
    const struct seen_record *a = left;
    const struct seen_record *b = right;

    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    return a->hash < b->hash ? -1 : a->hash > b->hash;
}

bool seen_has(const struct seen *seen, uint64_t offset, uint64_t hash)
{
    struct seen_record wanted = {offset, hash};

    /* What is new is mostly behind all that is known. */
    if (seen->count == 0 || compare(&wanted, &seen->records[seen->count - 1]) > 0) {
        return false;
    }
    return bsearch(&wanted, seen->records, seen->count, sizeof wanted, compare) != NULL;
}

void seen_sort(struct seen *seen)
{
    for (size_t i = 1; i < seen->count; i++) {
        if (compare(&seen->records[i - 1], &seen->records[i]) > 0) {
            qsort(seen->records, seen->count, sizeof *seen->records, compare);
            return;
        }
    }
}

void seen_forget(struct seen *seen, const struct seen *gone)
{
    size_t kept = 0;

    for (size_t i = 0; i < seen->count; i++) {
        struct seen_record record = seen->records[i];
        if (!seen_has(gone, record.offset, record.hash)) {
            seen->records[kept++] = record;
        }
    }
    seen->count = kept;
}

void seen_clear(struct seen *seen)
{
    seen->count = 0;
}

void seen_free(struct seen *seen)
{
    free(seen->records);
    *seen = (struct seen){0};
}
