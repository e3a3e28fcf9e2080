/*
 * The least and the greatest of a column of texts, cut to 64 bytes (spec 2.2) by the format's rules (parquet.thrift,
 * Statistics.min_value and max_value, is_*_exact): what a bound says must hold for every value, so a least one may be
 * cut short, and a greatest one that was cut has to be made greater.
 */
#ifndef WORKER_PARQUET_BOUND_H
#define WORKER_PARQUET_BOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOUND_SIZE 64

/* Of a value its first bytes, one more than a bound may have: that there is one more is all a cut needs to know. Values
 * that differ later than that have the same bounds. */
struct bound {
    size_t size;
    uint8_t bytes[BOUND_SIZE + 1];
};

struct bounds {
    bool any;
    struct bound least;
    struct bound greatest;
};

/* Zeroed bounds are those of no value. */
void bounds_add(struct bounds *bounds, const void *bytes, size_t size);

/* The value as a lower bound of at most BOUND_SIZE bytes; true where it is exact. Text is cut between characters. */
bool bound_cut_least(const struct bound *value, struct bound *out);
/* The value as an upper bound; *exact as above. Cut, its last character that can be is replaced by the next one, and what
 * followed dropped. False: no upper bound of that size exists. */
bool bound_cut_greatest(const struct bound *value, struct bound *out, bool *exact);

#endif
