/*
 * Names compared as bytes, the order of a lake's objects and manifests (spec 2.2).
 */
#ifndef COMMON_NAME_H
#define COMMON_NAME_H

#include <stdint.h>

#include "common/queen_api.h"

/* Below, at or above 0, as memcmp(); a prefix comes before what it begins. */
int name_compare(struct name a, struct name b);

/* FNV-1a, its high bits brought down: names differ at their ends, places in a table are told by the low bits. */
uint64_t name_hash(struct name name);

#endif
