/*
 * The two ways in which Parquet packs whole numbers (Encodings.md of the format): runs of bit-packed or repeated values
 * (levels, dictionary indices) and deltas in miniblocks (DELTA_BINARY_PACKED). Both are read value by value from memory,
 * allocate nothing, and never read behind their end.
 */
#ifndef COMMON_LAKE_STORED_NUMBERS_H
#define COMMON_LAKE_STORED_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers are little-endian (Encodings.md, PLAIN). Compilers make one load of each. */
static inline uint32_t stored_load32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t stored_load64(const uint8_t *bytes)
{
    return (uint64_t)stored_load32(bytes) | (uint64_t)stored_load32(bytes + 4) << 32;
}

/* ---- RLE / bit-packing hybrid (RLE = 3) ---- */

struct bit_runs {
    const uint8_t *at;
    const uint8_t *end;
    unsigned width; /* bits a value, 0 … 32 */
    uint64_t left;  /* values left in the run at hand */
    bool packed;    /* the run's values are each their own, from bit `bit` of `bits` on */
    uint32_t value; /* otherwise they are all this */
    const uint8_t *bits;
    uint64_t bit;
};

/* False where the width is none. */
bool bit_runs_begin(struct bit_runs *runs, const uint8_t *bytes, size_t size, unsigned width);
/* False where there is no further value, or what is there is no run. */
bool bit_runs_next(struct bit_runs *runs, uint32_t *value);
/* Of the next `count` values of one bit, how many are 1; false where there aren't as many. Takes time by the bytes there
 * are, not by `count`. Works on a copy: the runs stay where they are. */
bool bit_runs_count(struct bit_runs runs, uint64_t count, uint64_t *ones);

/* ---- DELTA_BINARY_PACKED = 5 ---- */

struct deltas {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t total;         /* values that the header declares */
    uint64_t left;          /* values not yet read */
    uint64_t value;         /* the last; arithmetic wraps, as the format says */
    bool first;             /* the next is the first, which stands in the header */
    uint64_t per_miniblock; /* values */
    uint64_t miniblocks;    /* of a block */
    uint64_t miniblocks_left;
    const uint8_t *widths; /* of the block's miniblocks left */
    uint64_t least;        /* the block's smallest delta */
    unsigned width;        /* bits a delta in the miniblock at hand */
    uint64_t in_miniblock; /* values left in it */
    const uint8_t *bits;
    uint64_t bit;
};

/* False where no such header is there. */
bool deltas_begin(struct deltas *deltas, const uint8_t *bytes, size_t size);
bool deltas_next(struct deltas *deltas, int64_t *value);
/* Where the last miniblock ends, NULL where it isn't all there. Takes time by the bytes there are. Works on a copy. */
const uint8_t *deltas_end(struct deltas deltas);

#endif
