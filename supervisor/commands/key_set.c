/* Which keys are named: key_set.h. Open addressing, at most half full. */
#include "supervisor/commands/key_set.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define FIRST_PLACES 1024

struct key_set {
    uint64_t *places; /* 0: free */
    size_t count;
    size_t capacity; /* a power of two */
};

static uint64_t digest(const char *key)
{
    unsigned char bytes[EVP_MAX_MD_SIZE] = {0};
    uint64_t number = 0;

    EVP_Digest(key, strlen(key), bytes, NULL, EVP_sha256(), NULL);
    memcpy(&number, bytes, sizeof number);
    return number != 0 ? number : 1;
}

/* Where it is, or the free place where it would be. */
static size_t find(const struct key_set *set, uint64_t number)
{
    size_t at = (size_t)number & (set->capacity - 1);

    while (set->places[at] != 0 && set->places[at] != number) {
        at = (at + 1) & (set->capacity - 1);
    }
    return at;
}

struct key_set *key_set_new(void)
{
    struct key_set *set = memory_new(1, sizeof *set);

    set->capacity = FIRST_PLACES;
    set->places = memory_new(set->capacity, sizeof *set->places);
    return set;
}

void key_set_free(struct key_set *set)
{
    if (set != NULL) {
        free(set->places);
        free(set);
    }
}

static void grow(struct key_set *set)
{
    struct key_set larger = {.capacity = set->capacity * 2};

    larger.places = memory_new(larger.capacity, sizeof *larger.places);
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->places[i] != 0) {
            larger.places[find(&larger, set->places[i])] = set->places[i];
        }
    }
    free(set->places);
    set->places = larger.places;
    set->capacity = larger.capacity;
}

bool key_set_add(struct key_set *set, const char *key)
{
    uint64_t number = digest(key);
    size_t at = find(set, number);

    if (set->places[at] != 0) {
        return false;
    }
    set->places[at] = number;
    if (++set->count * 2 > set->capacity) {
        grow(set);
    }
    return true;
}

bool key_set_has(const struct key_set *set, const char *key)
{
    return set->places[find(set, digest(key))] != 0;
}
