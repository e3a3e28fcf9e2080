/* Names compared as bytes: name.h. */
#include "common/name.h"

#include <string.h>

uint64_t name_hash(struct name name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < name.size; i++) {
        hash = (hash ^ (unsigned char)name.bytes[i]) * UINT64_C(1099511628211);
    }
    return hash ^ hash >> 32;
}

int name_compare(struct name a, struct name b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.bytes, b.bytes, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}
