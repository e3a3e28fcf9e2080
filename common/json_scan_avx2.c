/*
 * The scanner with AVX2: thirty-two bytes at a time, and a carry-less multiplication by all ones for the parity of
 * quotes.
 */
#ifdef __x86_64__

#    include <immintrin.h>

#    include "common/json_scan_inner.h"

/* The whole program is built for any x86-64; only what is called where json_scan_has_avx2() said yes may use more. */
#    define BLOCK_TARGET    __attribute__((target("avx2,bmi,bmi2,pclmul")))
#    define BLOCK_CONTAINER json_scan_container_avx2
#    define BLOCK_REST      json_scan_rest_avx2
#    define BLOCK_INLINE    static inline __attribute__((always_inline)) BLOCK_TARGET

bool json_scan_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("pclmul");
}

BLOCK_INLINE __m256i lane_load(const unsigned char *bytes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

BLOCK_INLINE uint64_t pair_mask(__m256i low, __m256i high)
{
    return (uint64_t)(unsigned)_mm256_movemask_epi8(low) | (uint64_t)(unsigned)_mm256_movemask_epi8(high) << 32;
}

BLOCK_INLINE uint64_t pair_equal(__m256i low, __m256i high, unsigned char c)
{
    __m256i wanted = _mm256_set1_epi8((char)c);
    return pair_mask(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted));
}

BLOCK_INLINE void block_classify(const unsigned char *bytes, struct json_classes *classes)
{
    __m256i low = lane_load(bytes);
    __m256i high = lane_load(bytes + 32);
    /* [ and ] differ from { and } by the bit that is a letter's case, and no other byte falls on them by it. */
    __m256i folded_low = _mm256_or_si256(low, _mm256_set1_epi8(0x20));
    __m256i folded_high = _mm256_or_si256(high, _mm256_set1_epi8(0x20));
    __m256i controls = _mm256_set1_epi8(0x1F);
    classes->quote = pair_equal(low, high, '"');
    classes->backslash = pair_equal(low, high, '\\');
    classes->blank = pair_equal(low, high, ' ');
    classes->control = pair_mask(_mm256_cmpeq_epi8(_mm256_min_epu8(low, controls), low),
                                 _mm256_cmpeq_epi8(_mm256_min_epu8(high, controls), high));
    classes->comma = pair_equal(low, high, ',');
    classes->colon = pair_equal(low, high, ':');
    classes->open = pair_equal(folded_low, folded_high, '{');
    classes->close = pair_equal(folded_low, folded_high, '}');
    classes->high = pair_mask(low, high);
}

BLOCK_INLINE uint64_t block_equal(const unsigned char *bytes, unsigned char c)
{
    return pair_equal(lane_load(bytes), lane_load(bytes + 32), c);
}

BLOCK_INLINE uint64_t block_at_least(const unsigned char *bytes, unsigned char c)
{
    __m256i low = lane_load(bytes);
    __m256i high = lane_load(bytes + 32);
    __m256i least = _mm256_set1_epi8((char)c);
    return pair_mask(_mm256_cmpeq_epi8(_mm256_max_epu8(low, least), low),
                     _mm256_cmpeq_epi8(_mm256_max_epu8(high, least), high));
}

BLOCK_INLINE uint64_t block_prefix_xor(uint64_t mask)
{
    __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)mask), _mm_set1_epi8((char)0xFF), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

#    include "common/json_scan_blocks.h"

#else
typedef int json_scan_avx2_is_for_x86_64; /* C wants a declaration in every file */
#endif
