/*
 * See parquet_encoding.h.
 *
 * The hybrid packs values in groups of eight. Eight or more equal ones that begin where a group does become a run
 * length, everything else is packed; a packed run is cut at 63 groups, so that its head, (groups << 1 | 1) as ULEB128,
 * is always the one byte that was left free for it.
 */
#include "worker/parquet_encoding.h"

#include <stdbool.h>

#include "worker/parquet_thrift.h"

#define GROUP             8
#define PACKED_GROUPS_MAX 63

/* Blocks of 128 deltas in four miniblocks, as most writers have them: Encodings.md asks for a multiple of 128, and of 32
 * in each. */
#define BLOCK      128
#define MINIBLOCKS 4
#define MINIBLOCK  (BLOCK / MINIBLOCKS)

/* ---- run lengths and bit packing ---- */

void hybrid_begin(struct hybrid *hybrid, uint8_t *out, unsigned width)
{
    *hybrid = (struct hybrid){.width = width};
    hybrid->out = out;
}

static void end_packed(struct hybrid *hybrid)
{
    if (hybrid->packed_groups > 0) {
        hybrid->out[hybrid->packed_head] = (uint8_t)(hybrid->packed_groups << 1 | 1);
        hybrid->packed_groups = 0;
    }
}

/* Eight values of `width` bits are `width` bytes, the first value in the lowest bits. */
static void pack_group(struct hybrid *hybrid)
{
    uint64_t bits = 0;
    unsigned filled = 0;

    if (hybrid->packed_groups == 0) {
        hybrid->packed_head = hybrid->size++;
    }
    for (unsigned i = 0; i < GROUP; i++) {
        bits |= (uint64_t)hybrid->group[i] << filled;
        for (filled += hybrid->width; filled >= 8; filled -= 8) {
            hybrid->out[hybrid->size++] = (uint8_t)bits;
            bits >>= 8;
        }
    }
    hybrid->group_count = 0;
    if (++hybrid->packed_groups == PACKED_GROUPS_MAX) {
        end_packed(hybrid);
    }
}

static void write_repeat(struct hybrid *hybrid, uint32_t value, size_t count)
{
    uint8_t *out = varint_put(hybrid->out + hybrid->size, (uint64_t)count << 1);

    for (unsigned bits = 0; bits < hybrid->width; bits += 8) {
        *out++ = (uint8_t)(value >> bits);
    }
    hybrid->size = (size_t)(out - hybrid->out);
}

static void write_run(struct hybrid *hybrid)
{
    while (hybrid->count > 0) {
        if (hybrid->group_count == 0 && hybrid->count >= GROUP) {
            end_packed(hybrid);
            write_repeat(hybrid, hybrid->value, hybrid->count);
            hybrid->count = 0;
            return;
        }
        hybrid->group[hybrid->group_count++] = hybrid->value;
        hybrid->count--;
        if (hybrid->group_count == GROUP) {
            pack_group(hybrid);
        }
    }
}

void hybrid_add(struct hybrid *hybrid, uint32_t value, size_t count)
{
    if (value != hybrid->value) {
        write_run(hybrid);
        hybrid->value = value;
    }
    hybrid->count += count;
}

size_t hybrid_finish(struct hybrid *hybrid)
{
    write_run(hybrid);
    if (hybrid->group_count > 0) {
        while (hybrid->group_count < GROUP) {
            hybrid->group[hybrid->group_count++] = 0;
        }
        pack_group(hybrid);
    }
    end_packed(hybrid);
    return hybrid->size;
}

/* ---- deltas ---- */

static unsigned bit_width(uint64_t value)
{
    unsigned width = 0;

    while (value >= 256) {
        value >>= 8;
        width += 8;
    }
    for (; value > 0; value >>= 1) {
        width++;
    }
    return width;
}

static uint8_t *pack_miniblock(const uint64_t *values, unsigned width, uint8_t *out)
{
    uint64_t bits = 0;
    unsigned filled = 0;

    if (width == 0) {
        return out;
    }
    for (size_t i = 0; i < MINIBLOCK; i++) {
        unsigned room = 64 - filled;
        bits |= values[i] << filled;
        if (width < room) {
            filled += width;
            continue;
        }
        for (unsigned byte = 0; byte < 8; byte++) {
            *out++ = (uint8_t)(bits >> 8 * byte);
        }
        bits = room < 64 ? values[i] >> room : 0;
        filled = width - room;
    }
    /* 32 values are a multiple of four bytes. */
    for (; filled > 0; filled -= 8) {
        *out++ = (uint8_t)bits;
        bits >>= 8;
    }
    return out;
}

/* Deltas and what they are above the least of them wrap around, as Encodings.md has it: two's complement throughout. */
static uint8_t *encode_block(const int64_t *values, size_t count, uint8_t *out)
{
    uint64_t deltas[BLOCK] = {0};
    int64_t least = INT64_MAX;
    uint8_t *widths;

    for (size_t i = 0; i < count; i++) {
        deltas[i] = (uint64_t)values[i + 1] - (uint64_t)values[i];
        int64_t delta = (int64_t)deltas[i];
        least = delta < least ? delta : least;
    }
    for (size_t i = 0; i < count; i++) {
        deltas[i] -= (uint64_t)least;
    }
    widths = varint_put(out, zigzag(least));
    out = widths + MINIBLOCKS;
    /* Of a miniblock that isn't needed the width is there, and 0, and nothing else. */
    for (size_t i = 0; i < MINIBLOCKS; i++) {
        uint64_t any = 0;
        for (size_t j = 0; j < MINIBLOCK; j++) {
            any |= deltas[i * MINIBLOCK + j];
        }
        widths[i] = (uint8_t)bit_width(any);
        out = pack_miniblock(deltas + i * MINIBLOCK, widths[i], out);
    }
    return out;
}

size_t delta_encode(const int64_t *values, size_t count, uint8_t *out)
{
    const uint8_t *start = out;

    out = varint_put(out, BLOCK);
    out = varint_put(out, MINIBLOCKS);
    out = varint_put(out, count);
    out = varint_put(out, zigzag(values[0]));
    for (size_t i = 0; i + 1 < count; i += BLOCK) {
        size_t left = count - 1 - i;
        out = encode_block(values + i, left < BLOCK ? left : BLOCK, out);
    }
    return (size_t)(out - start);
}
