/* Large mappings that are used again: spare.h. The list's links live in the mappings themselves. */
#include "common/spare.h"

#include <stdint.h>
#include <sys/mman.h>

#define SPARE_AGE_MAX 5 /* calls of spare_age() */

struct spare_region {
    struct spare_region *next; /* the newest first */
    size_t mapped;
    unsigned age;
};

size_t spare_round(size_t capacity)
{
    if (capacity < SPARE_MIN || capacity > SIZE_MAX - SPARE_MIN) {
        return capacity;
    }
    return (capacity + SPARE_MIN - 1) / SPARE_MIN * SPARE_MIN;
}

static void unmap(struct budget *budget, struct spare_region **link)
{
    struct spare_region *region = *link;
    *link = region->next;
    budget->spare -= region->mapped;
    (void)munmap(region, region->mapped);
}

/* The smallest that fits without wasting more than a quarter. */
static struct spare_region **best_fit(struct budget *budget, size_t capacity)
{
    struct spare_region **best = NULL;
    for (struct spare_region **link = &budget->spares; *link != NULL; link = &(*link)->next) {
        size_t mapped = (*link)->mapped;
        if (mapped >= capacity && mapped - capacity <= capacity / 4 && (best == NULL || mapped < (*best)->mapped)) {
            best = link;
        }
    }
    return best;
}

char *spare_take(struct budget *budget, size_t capacity, size_t *mapped)
{
    size_t size = spare_round(capacity);
    struct spare_region **fit = best_fit(budget, size);
    if (fit != NULL) {
        struct spare_region *region = *fit;
        *fit = region->next;
        budget->spare -= region->mapped;
        *mapped = region->mapped;
        if (region->mapped > size) {
            *mapped = spare_cut((char *)region, region->mapped, size);
        }
        return (char *)region;
    }
    void *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) {
        return NULL;
    }
    *mapped = size;
    return fresh;
}

void spare_give(struct budget *budget, char *mapping, size_t mapped)
{
    struct spare_region *region = (struct spare_region *)(void *)mapping;
    if (mapped > budget_room(budget)) {
        (void)munmap(mapping, mapped);
        return;
    }
    *region = (struct spare_region){budget->spares, mapped, 0};
    budget->spares = region;
    budget->spare += mapped;
    spare_limit(budget);
}

size_t spare_cut(char *mapping, size_t mapped, size_t used)
{
    size_t left = spare_round(used < SPARE_MIN ? SPARE_MIN : used);
    if (left >= mapped || munmap(mapping + left, mapped - left) != 0) {
        return mapped;
    }
    return left;
}

void spare_limit(struct budget *budget)
{
    while (budget->spares != NULL && budget->spare > budget_room(budget)) {
        struct spare_region **oldest = &budget->spares;
        while ((*oldest)->next != NULL) {
            oldest = &(*oldest)->next;
        }
        unmap(budget, oldest);
    }
}

void spare_age(struct budget *budget)
{
    for (struct spare_region **link = &budget->spares; *link != NULL;) {
        if (++(*link)->age > SPARE_AGE_MAX) {
            unmap(budget, link);
        } else {
            link = &(*link)->next;
        }
    }
}

void spare_drop(struct budget *budget)
{
    while (budget->spares != NULL) {
        unmap(budget, &budget->spares);
    }
}
