/*
 * Recognising a protobuf Any (format.h). Field 1 is type_url, a string, field 2 value, bytes; the last of a field given
 * twice counts (Protocol Buffers, "Encoding"). A message with any other field is something else: writing it as an Any
 * would drop that field.
 */
#include "worker/connector/format.h"

#include "common/utf8.h"
#include "worker/connector/postcard.h"

#define TAG_TYPE_URL 0x0a /* field 1, length-delimited */
#define TAG_VALUE    0x12 /* field 2, length-delimited */

bool protobuf_any_decode(struct sink_slice message, struct sink_slice *type_url, struct sink_slice *value)
{
    const uint8_t *bytes = (const uint8_t *)message.bytes;
    struct postcard in = {bytes, message.size > 0 ? bytes + message.size : bytes};

    *type_url = *value = (struct sink_slice){0};
    while (in.at < in.end) {
        uint32_t tag;
        struct sink_slice field;
        /* Varints and byte vectors are spelled alike in both encodings. */
        if (!postcard_u32(&in, &tag) || (tag != TAG_TYPE_URL && tag != TAG_VALUE) || !postcard_bytes(&in, &field)) {
            return false;
        }
        *(tag == TAG_TYPE_URL ? type_url : value) = field;
    }
    return utf8_is_valid(type_url->bytes, type_url->size);
}
