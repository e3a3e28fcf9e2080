/* Names compared as bytes: name.h. */
#include "common/name.h"

#include <string.h>

int name_compare(struct name a, struct name b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.bytes, b.bytes, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}
