/*
 * See partition_id.h.
 */
#include "common/partition_id.h"

#include "common/hex.h"

static bool follows_dash(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

bool partition_id_read(struct name text, struct partition_id *id)
{
    const char *at = text.bytes;

    if (text.size != PARTITION_ID_TEXT_SIZE) {
        return false;
    }
    for (size_t i = 0; i < sizeof id->bytes; i++) {
        if (follows_dash(i) && *at++ != '-') {
            return false;
        }
        int byte = hex_byte(at);
        if (byte < 0) {
            return false;
        }
        id->bytes[i] = (uint8_t)byte;
        at += 2;
    }
    return true;
}

char *partition_id_write(char *out, const struct partition_id *id)
{
    for (size_t i = 0; i < sizeof id->bytes; i++) {
        if (follows_dash(i)) {
            *out++ = '-';
        }
        out = hex_write(out, &id->bytes[i], 1);
    }
    return out;
}
