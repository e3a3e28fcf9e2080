/*
 * The hash that tells a record that comes again from another at the same offset (spec 5.3).
 *
 * Nobody attacks it (who can write to the topic can write anything), so it has to be quick and to mix well: eight bytes
 * at a time, each multiplied by an odd constant and folded in, with the finishing steps of a 64-bit avalanche. Bytes are
 * taken as little-endian, so that a spool can move between machines.
 */
#include "worker/connector/record.h"

#include <string.h>

#define MULTIPLIER UINT64_C(0x9E3779B97F4A7C15) /* 2^64 divided by the golden ratio, made odd */

static uint64_t avalanche(uint64_t value)
{
    value ^= value >> 32;
    value *= UINT64_C(0xD6E8FEB86659FD93);
    value ^= value >> 32;
    value *= UINT64_C(0xD6E8FEB86659FD93);
    return value ^ value >> 32;
}

static uint64_t fold(uint64_t hash, uint64_t word)
{
    word *= MULTIPLIER;
    hash ^= word ^ word >> 29;
    return (hash << 27 | hash >> 37) * MULTIPLIER + 0x52dce729;
}

static uint64_t load(const char *bytes, size_t size)
{
    uint64_t word = 0;

    memcpy(&word, bytes, size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint64_t fold_slice(uint64_t hash, struct sink_slice slice)
{
    const char *at = slice.bytes;
    size_t left = slice.size;

    hash = fold(hash, slice.size);
    for (; left >= 8; at += 8, left -= 8) {
        hash = fold(hash, load(at, 8));
    }
    return left > 0 ? fold(hash, load(at, left)) : hash;
}

uint64_t sink_record_hash(const struct sink_record *record)
{
    uint64_t hash = fold(record->has_key ? 1 : 0, record->timestamp_ms);

    hash = fold(hash, record->payload_null ? 1 : 0);
    hash = fold_slice(hash, record->key);
    hash = fold_slice(hash, record->headers);
    return avalanche(fold_slice(hash, record->payload));
}
