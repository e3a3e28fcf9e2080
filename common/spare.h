/*
 * Large mappings that are used again (block.c alone). A body of some ten megabytes comes and goes many times a second; in
 * fresh pages the kernel's part of the work, finding and zeroing them, is the largest there is. So mappings that are let
 * go stay with the budget, inside its limit, until they are taken again, are in the way, or found no use for a while.
 */
#ifndef COMMON_SPARE_H
#define COMMON_SPARE_H

#include "common/block.h"

#define SPARE_MIN 1048576u /* smaller bodies are malloc's business */

/* What a body of that capacity takes: itself below SPARE_MIN, else whole megabytes. */
size_t spare_round(size_t capacity);
/* A mapping of at least capacity bytes, not zeroed; *mapped is its size. NULL if out of memory. */
char *spare_take(struct budget *budget, size_t capacity, size_t *mapped);
/* Keeps it or unmaps it. */
void spare_give(struct budget *budget, char *mapping, size_t mapped);
/* Gives the pages behind `used` bytes back, if that is worth a system call; what is left of `mapped`. */
size_t spare_cut(char *mapping, size_t mapped, size_t used);
/* Lets go of what no longer fits beside budget->used. */
void spare_limit(struct budget *budget);
void spare_age(struct budget *budget);
void spare_drop(struct budget *budget);

#endif
