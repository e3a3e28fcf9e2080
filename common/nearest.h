/*
 * The known name that somebody who wrote an unknown one most likely meant: `unknown setting QUEEN_S3_BUKET; did you mean
 * QUEEN_S3_BUCKET?`. Near is what a slip of the hand makes: a letter too many, too few, wrong, or two exchanged. Case
 * counts for nothing.
 *
 *     struct nearest nearest;
 *     nearest_begin(&nearest, text);
 *     for (…) nearest_offer(&nearest, known);
 *     if (nearest.name != NULL) …
 */
#ifndef COMMON_NEAREST_H
#define COMMON_NEAREST_H

#include <stddef.h>

/* A name longer than this is near to nothing. */
#define NEAREST_BYTES 64

struct nearest {
    const char *text;
    const char *name; /* the nearest of those offered, the first of equals; NULL: none is near */
    size_t distance;  /* its slips; without a meaning where name is NULL */
};

/* text is not copied, and neither is any name offered. */
void nearest_begin(struct nearest *nearest, const char *text);
void nearest_offer(struct nearest *nearest, const char *name);

/* The nearest of count names, NULL where none is near. */
const char *nearest_find(const char *text, const char *const *names, size_t count);

/* Slips between two names of at most NEAREST_BYTES: insertions, deletions, replacements, and exchanges of neighbours,
 * none of whose letters is touched twice (the distance called optimal string alignment). */
size_t nearest_distance(const char *left, const char *right);

#endif
