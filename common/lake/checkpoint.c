/*
 * Writing a checkpoint (checkpoint.h, spec 2.4): JSON, straight through zstd into memory. A million entries take some
 * ten bytes each when compressed, and no more than a small buffer before that.
 */
#include "common/lake/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/byte_buffer.h"
#include "common/json_scan.h"
#include "common/memory.h"
#include "common/partition_id.h"

#define ZSTD_LEVEL 3
#define TEXT_SIZE  65536

struct checkpoint_writer {
    ZSTD_CCtx *zstd;
    struct byte_buffer out;
    bool first;
    bool failed;
    size_t used;
    char text[TEXT_SIZE];
};

static void compress(struct checkpoint_writer *writer, const char *bytes, size_t size, ZSTD_EndDirective directive)
{
    ZSTD_inBuffer in = {bytes, size, 0};
    char chunk[16384];
    size_t left;

    do {
        ZSTD_outBuffer out = {chunk, sizeof chunk, 0};
        left = ZSTD_compressStream2(writer->zstd, &out, &in, directive);
        if (ZSTD_isError(left)) {
            writer->failed = true;
            return;
        }
        byte_buffer_add(&writer->out, chunk, out.pos);
    } while (directive == ZSTD_e_end ? left != 0 : in.pos < in.size);
}

static void put(struct checkpoint_writer *writer, const char *bytes, size_t size)
{
    if (size > sizeof writer->text - writer->used) {
        compress(writer, writer->text, writer->used, ZSTD_e_continue);
        writer->used = 0;
        if (size > sizeof writer->text) {
            compress(writer, bytes, size, ZSTD_e_continue);
            return;
        }
    }
    memcpy(writer->text + writer->used, bytes, size);
    writer->used += size;
}

struct checkpoint_writer *checkpoint_begin(int64_t k, struct broker_us end)
{
    struct checkpoint_writer *writer = memory_new(1, sizeof *writer);
    char head[80];

    writer->first = true;
    writer->zstd = ZSTD_createCCtx();
    if (writer->zstd == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL))) {
        checkpoint_discard(writer);
        return NULL;
    }
    int size = snprintf(head, sizeof head, "{\"k\":%" PRId64 ",\"tEnd\":%" PRId64 ",\"positions\":[", k, end.v);
    put(writer, head, (size_t)size);
    return writer;
}

int checkpoint_add(struct checkpoint_writer *writer, struct name partition, int64_t position,
                   const struct partition_id *id)
{
    size_t spelled = json_spelled_size(partition.bytes, partition.size);
    char tail[32];
    size_t size;

    put(writer, ",", writer->first ? 0 : 1);
    put(writer, "[\"", 2);
    writer->first = false;
    if (spelled == partition.size) {
        put(writer, partition.bytes, partition.size);
    } else {
        char *escaped = memory_new(spelled, 1);
        json_spell_string(partition.bytes, partition.size, escaped);
        put(writer, escaped, spelled);
        free(escaped);
    }
    size = (size_t)snprintf(tail, sizeof tail, "\",%" PRId64, position);
    put(writer, tail, size);
    if (id != NULL) {
        char text[PARTITION_ID_TEXT_SIZE];

        (void)partition_id_write(text, id);
        put(writer, ",\"", 2);
        put(writer, text, sizeof text);
        put(writer, "\"", 1);
    }
    put(writer, "]", 1);
    return writer->failed ? QS_ERROR_NO_MEMORY : 0;
}

int checkpoint_finish(struct checkpoint_writer *writer, char **bytes, size_t *size)
{
    int code;

    put(writer, "]}", 2);
    compress(writer, writer->text, writer->used, ZSTD_e_end);
    code = writer->failed ? QS_ERROR_NO_MEMORY : 0;
    *size = code == 0 ? writer->out.size : 0;
    *bytes = code == 0 ? byte_buffer_take(&writer->out) : NULL;
    checkpoint_discard(writer);
    return code;
}

void checkpoint_discard(struct checkpoint_writer *writer)
{
    if (writer != NULL) {
        ZSTD_freeCCtx(writer->zstd);
        byte_buffer_free(&writer->out);
        free(writer);
    }
}
