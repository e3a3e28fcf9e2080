/*
 * Two of Parquet's encodings (parquet-format, Encodings.md): the hybrid of run lengths and bit packing (RLE = 3), which
 * carries definition levels and dictionary indexes, and DELTA_BINARY_PACKED = 5 for 64-bit integers. Both write into
 * memory that the caller has sized for the worst.
 */
#ifndef WORKER_PARQUET_ENCODING_H
#define WORKER_PARQUET_ENCODING_H

#include <stddef.h>
#include <stdint.h>

#define HYBRID_WIDTH_MAX 24

/* Values are given as runs, and equal ones that come one by one are joined. */
struct hybrid {
    uint8_t *out;
    size_t size; /* bytes written */
    unsigned width;
    uint32_t value; /* of the run that is still growing */
    size_t count;   /* of it */
    uint32_t group[8];
    unsigned group_count;
    size_t packed_head; /* where the head of the open bit-packed run goes */
    unsigned packed_groups;
};

/* Bytes that `count` values of `width` bits take at the most. */
#define HYBRID_BOUND(count, width) (((count) / 8 + 1) * ((width) + 6))

/* out: HYBRID_BOUND bytes. 1 <= width <= HYBRID_WIDTH_MAX. */
void hybrid_begin(struct hybrid *hybrid, uint8_t *out, unsigned width);
void hybrid_add(struct hybrid *hybrid, uint32_t value, size_t count);
/* Returns the size of all that was written. */
size_t hybrid_finish(struct hybrid *hybrid);

/* Bytes that `count` values take at the most. */
#define DELTA_BOUND(count) (((count) / 128 + 1) * (128 * 8 + 14) + 32)

/* count >= 1 values into out (DELTA_BOUND bytes); returns the size. */
size_t delta_encode(const int64_t *values, size_t count, uint8_t *out);

#endif
