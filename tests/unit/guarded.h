/*
 * Memory whose end is the end of what can be read: a byte too far is a crash, in any build.
 */
#ifndef TESTS_UNIT_GUARDED_H
#define TESTS_UNIT_GUARDED_H

#include <stddef.h>

/* A copy of the bytes that ends right before a page that can't be read. Valid until the next call; not to be freed. */
char *guarded_copy(const char *bytes, size_t size);

#endif
