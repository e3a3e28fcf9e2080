/* Parquet's packed numbers: stored_numbers.h. */
#include "common/lake/stored_numbers.h"

/* Bits fill a byte from its lowest on (Encodings.md). At most 64 bits from bit `bit` on;
 * nothing at or behind `end` is read. */
static uint64_t take_bits(const uint8_t *bits, uint64_t bit, unsigned width, const uint8_t *end)
{
    const uint8_t *from = bits + bit / 8;
    unsigned shift = (unsigned)(bit % 8);
    uint64_t value = 0;
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    size_t bytes = ((size_t)shift + width + 7) / 8;

    if (width == 0) {
        return 0;
    }
    if (end - from >= 8) {
        value = stored_load64(from);
    } else {
        for (size_t i = 0; i < bytes && i < 8; i++) {
            value |= (uint64_t)from[i] << (8 * i);
        }
    }
    value >>= shift;
    if (bytes > 8) {
        value |= (uint64_t)from[8] << (64 - shift);
    }
    return value & mask;
}

/* ULEB128 of at most 64 bits. */
static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1) {
            return false;
        }
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

/* ---- runs ---- */

bool bit_runs_begin(struct bit_runs *runs, const uint8_t *bytes, size_t size, unsigned width)
{
    *runs = (struct bit_runs){.at = bytes, .end = bytes + size, .width = width};
    return width <= 32;
}

static bool begin_packed(struct bit_runs *runs, uint64_t groups)
{
    uint64_t room = (uint64_t)(runs->end - runs->at);

    runs->packed = true;
    runs->bits = runs->at;
    runs->bit = 0;
    runs->left = groups * 8;
    if (groups * runs->width <= room) {
        runs->at += groups * runs->width;
        return true;
    }
    /* The last run of some writers stops where its values do. */
    runs->left = room * 8 / runs->width;
    runs->at = runs->end;
    return runs->left > 0;
}

static bool begin_repeated(struct bit_runs *runs, uint64_t count)
{
    size_t bytes = (runs->width + 7) / 8;

    if ((size_t)(runs->end - runs->at) < bytes) {
        return false;
    }
    runs->packed = false;
    runs->value = 0;
    for (size_t i = 0; i < bytes; i++) {
        runs->value |= (uint32_t)*runs->at++ << (8 * i);
    }
    if (runs->width < 32 && runs->value >> runs->width != 0) {
        return false;
    }
    runs->left = count;
    return true;
}

/* The next run that isn't empty. Where there is none, there is none from then on. */
static bool next_run(struct bit_runs *runs)
{
    while (runs->left == 0) {
        uint64_t head;
        /* A run is at most 2^31 - 1 values long (Encodings.md), its head so at most 32 bits. */
        if (!take_varint(&runs->at, runs->end, &head) || head > UINT32_MAX ||
            !((head & 1) != 0 ? begin_packed(runs, head >> 1) : begin_repeated(runs, head >> 1))) {
            runs->at = runs->end;
            return false;
        }
    }
    return true;
}

bool bit_runs_next(struct bit_runs *runs, uint32_t *value)
{
    if (runs->left == 0 && !next_run(runs)) {
        return false;
    }
    runs->left--;
    if (!runs->packed) {
        *value = runs->value;
        return true;
    }
    *value = (uint32_t)take_bits(runs->bits, runs->bit, runs->width, runs->end);
    runs->bit += runs->width;
    return true;
}

bool bit_runs_count(struct bit_runs runs, uint64_t count, uint64_t *ones)
{
    *ones = 0;
    while (count > 0) {
        if (runs.left == 0 && !next_run(&runs)) {
            return false;
        }
        uint64_t here = runs.left < count ? runs.left : count;
        if (!runs.packed) {
            *ones += runs.value != 0 ? here : 0;
        } else {
            for (uint64_t i = 0; i < here; i++) {
                *ones += take_bits(runs.bits, runs.bit + i * runs.width, runs.width, runs.end);
            }
        }
        runs.left = 0;
        count -= here;
    }
    return true;
}

/* ---- deltas ---- */

static bool take_signed(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t zigzag;

    if (!take_varint(at, end, &zigzag)) {
        return false;
    }
    *value = zigzag >> 1 ^ (0 - (zigzag & 1));
    return true;
}

bool deltas_begin(struct deltas *deltas, const uint8_t *bytes, size_t size)
{
    uint64_t per_block;

    *deltas = (struct deltas){.at = bytes, .end = bytes + size, .first = true};
    if (!take_varint(&deltas->at, deltas->end, &per_block) ||
        !take_varint(&deltas->at, deltas->end, &deltas->miniblocks) ||
        !take_varint(&deltas->at, deltas->end, &deltas->total) ||
        !take_signed(&deltas->at, deltas->end, &deltas->value)) {
        return false;
    }
    deltas->left = deltas->total;
    /* Multiples of 128 and of 32 (Encodings.md); beyond 2^31 nothing has that many values. */
    if (per_block == 0 || per_block > INT32_MAX || per_block % 128 != 0 || deltas->miniblocks == 0 ||
        per_block % deltas->miniblocks != 0) {
        return false;
    }
    deltas->per_miniblock = per_block / deltas->miniblocks;
    return deltas->per_miniblock % 32 == 0;
}

/* Into the next miniblock; its bits are all there, padding included. */
static bool next_miniblock(struct deltas *deltas)
{
    if (deltas->miniblocks_left == 0) {
        if (!take_signed(&deltas->at, deltas->end, &deltas->least) ||
            (uint64_t)(deltas->end - deltas->at) < deltas->miniblocks) {
            return false;
        }
        deltas->widths = deltas->at;
        deltas->at += deltas->miniblocks;
        deltas->miniblocks_left = deltas->miniblocks;
    }
    deltas->miniblocks_left--;
    deltas->width = *deltas->widths++;
    uint64_t bytes = deltas->per_miniblock / 8 * deltas->width;
    if (deltas->width > 64 || bytes > (uint64_t)(deltas->end - deltas->at)) {
        return false;
    }
    deltas->bits = deltas->at;
    deltas->bit = 0;
    deltas->at += bytes;
    deltas->in_miniblock = deltas->per_miniblock;
    return true;
}

bool deltas_next(struct deltas *deltas, int64_t *value)
{
    if (deltas->left == 0) {
        return false;
    }
    if (deltas->first) {
        deltas->first = false;
    } else {
        if (deltas->in_miniblock == 0 && !next_miniblock(deltas)) {
            return false;
        }
        deltas->in_miniblock--;
        deltas->value += deltas->least + take_bits(deltas->bits, deltas->bit, deltas->width, deltas->end);
        deltas->bit += deltas->width;
    }
    deltas->left--;
    *value = (int64_t)deltas->value;
    return true;
}

const uint8_t *deltas_end(struct deltas deltas)
{
    uint64_t left = deltas.left > 0 ? deltas.left - (deltas.first ? 1 : 0) : 0;

    while (left > deltas.in_miniblock) {
        left -= deltas.in_miniblock;
        if (!next_miniblock(&deltas)) {
            return NULL;
        }
    }
    return deltas.at;
}
