/*
 * The scanner in plain C, for processors without vector instructions that we know: eight bytes at a time, their classes
 * looked up as the bits of a byte each and the square of bits turned by multiplication.
 */
#define BLOCK_TARGET
#define BLOCK_CONTAINER json_scan_container_plain
#define BLOCK_REST      json_scan_rest_plain
#define BLOCK_INLINE    static inline __attribute__((always_inline)) BLOCK_TARGET

#include "common/json_scan_inner.h"

enum { QUOTE = 1, BACKSLASH = 2, BLANK = 4, CONTROL = 8, COMMA = 16, COLON = 32, OPEN = 64, CLOSE = 128 };

static const unsigned char class_of[256] = {
    [0x00] = CONTROL, [0x01] = CONTROL, [0x02] = CONTROL, [0x03] = CONTROL, [0x04] = CONTROL,   [0x05] = CONTROL,
    [0x06] = CONTROL, [0x07] = CONTROL, [0x08] = CONTROL, [0x09] = CONTROL, [0x0A] = CONTROL,   [0x0B] = CONTROL,
    [0x0C] = CONTROL, [0x0D] = CONTROL, [0x0E] = CONTROL, [0x0F] = CONTROL, [0x10] = CONTROL,   [0x11] = CONTROL,
    [0x12] = CONTROL, [0x13] = CONTROL, [0x14] = CONTROL, [0x15] = CONTROL, [0x16] = CONTROL,   [0x17] = CONTROL,
    [0x18] = CONTROL, [0x19] = CONTROL, [0x1A] = CONTROL, [0x1B] = CONTROL, [0x1C] = CONTROL,   [0x1D] = CONTROL,
    [0x1E] = CONTROL, [0x1F] = CONTROL, [' '] = BLANK,    ['"'] = QUOTE,    ['\\'] = BACKSLASH, [','] = COMMA,
    [':'] = COLON,    ['{'] = OPEN,     ['['] = OPEN,     ['}'] = CLOSE,    [']'] = CLOSE,
};

#define EACH_BYTE UINT64_C(0x0101010101010101)

/* The lowest bits of eight bytes side by side, the first byte's lowest. */
static inline uint64_t gather(uint64_t bytes)
{
    return (bytes & EACH_BYTE) * UINT64_C(0x0102040810204080) >> 56;
}

BLOCK_INLINE void block_classify(const unsigned char *bytes, struct json_classes *classes)
{
    *classes = (struct json_classes){0};
    for (int i = 0; i < 64; i += 8) {
        uint64_t class_bytes = 0;
        uint64_t raw = 0;
        for (int j = 0; j < 8; j++) {
            class_bytes |= (uint64_t)class_of[bytes[i + j]] << (8 * j);
            raw |= (uint64_t)bytes[i + j] << (8 * j);
        }
        classes->quote |= gather(class_bytes) << i;
        classes->backslash |= gather(class_bytes >> 1) << i;
        classes->blank |= gather(class_bytes >> 2) << i;
        classes->control |= gather(class_bytes >> 3) << i;
        classes->comma |= gather(class_bytes >> 4) << i;
        classes->colon |= gather(class_bytes >> 5) << i;
        classes->open |= gather(class_bytes >> 6) << i;
        classes->close |= gather(class_bytes >> 7) << i;
        classes->high |= gather(raw >> 7) << i;
    }
}

BLOCK_INLINE uint64_t block_equal(const unsigned char *bytes, unsigned char c)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i++) {
        mask |= (uint64_t)(bytes[i] == c) << i;
    }
    return mask;
}

BLOCK_INLINE uint64_t block_at_least(const unsigned char *bytes, unsigned char c)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i++) {
        mask |= (uint64_t)(bytes[i] >= c) << i;
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

#include "common/json_scan_blocks.h"
