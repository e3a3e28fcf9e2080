/*
 * The scanner with SSE2, which every x86-64 processor has: sixteen bytes at a time.
 */
#ifdef __x86_64__

#    include <emmintrin.h>

#    include "common/json_scan_inner.h"

#    define BLOCK_TARGET
#    define BLOCK_CONTAINER json_scan_container_sse2
#    define BLOCK_REST      json_scan_rest_sse2
#    define BLOCK_INLINE    static inline __attribute__((always_inline)) BLOCK_TARGET

BLOCK_INLINE uint64_t lane_mask(__m128i lane)
{
    return (uint64_t)(unsigned)_mm_movemask_epi8(lane);
}

BLOCK_INLINE __m128i lane_equal(__m128i lane, unsigned char c)
{
    return _mm_cmpeq_epi8(lane, _mm_set1_epi8((char)c));
}

BLOCK_INLINE void block_classify(const unsigned char *bytes, struct json_classes *classes)
{
    *classes = (struct json_classes){0};
    for (int i = 0; i < 64; i += 16) {
        __m128i lane = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        /* [ and ] differ from { and } by the bit that is a letter's case, and no other byte falls on them by it. */
        __m128i folded = _mm_or_si128(lane, _mm_set1_epi8(0x20));
        classes->quote |= lane_mask(lane_equal(lane, '"')) << i;
        classes->backslash |= lane_mask(lane_equal(lane, '\\')) << i;
        classes->blank |= lane_mask(lane_equal(lane, ' ')) << i;
        classes->control |= lane_mask(_mm_cmpeq_epi8(_mm_min_epu8(lane, _mm_set1_epi8(0x1F)), lane)) << i;
        classes->comma |= lane_mask(lane_equal(lane, ',')) << i;
        classes->colon |= lane_mask(lane_equal(lane, ':')) << i;
        classes->open |= lane_mask(lane_equal(folded, '{')) << i;
        classes->close |= lane_mask(lane_equal(folded, '}')) << i;
        classes->high |= lane_mask(lane) << i;
    }
}

BLOCK_INLINE uint64_t block_equal(const unsigned char *bytes, unsigned char c)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 16) {
        mask |= lane_mask(lane_equal(_mm_loadu_si128((const __m128i *)(const void *)(bytes + i)), c)) << i;
    }
    return mask;
}

BLOCK_INLINE uint64_t block_at_least(const unsigned char *bytes, unsigned char c)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 16) {
        __m128i lane = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        mask |= lane_mask(_mm_cmpeq_epi8(_mm_max_epu8(lane, _mm_set1_epi8((char)c)), lane)) << i;
    }
    return mask;
}

BLOCK_INLINE uint64_t block_prefix_xor(uint64_t mask)
{
    for (int shift = 1; shift < 64; shift *= 2) {
        mask ^= mask << shift;
    }
    return mask;
}

#    include "common/json_scan_blocks.h"

#else
typedef int json_scan_sse2_is_for_x86_64; /* C wants a declaration in every file */
#endif
