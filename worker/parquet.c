/* See parquet.h. */
#include "worker/parquet.h"

#include <stdlib.h>
#include <string.h>

#include "worker/parquet_column.h"

#define GROUP_ROWS 100000

static const char magic[] = {'P', 'A', 'R', '1'};

struct parquet {
    enum setting_compression codec;
    struct name queue;
    struct page_writer writer;
    struct parquet_footer footer;
    bool begun;
    uint64_t rows; /* of the row group */
    char *mended;  /* a partition's name, where it had to be */
    struct name_column partition;
    struct number_column offset;
    struct text_column transaction_id;
    struct number_column ts;
    struct text_column payload;
};

static void all_chunks(struct parquet *parquet, struct parquet_chunk *chunks[COLUMN_COUNT])
{
    chunks[COLUMN_PARTITION] = &parquet->partition.plain.chunk;
    chunks[COLUMN_OFFSET] = &parquet->offset.chunk;
    chunks[COLUMN_TRANSACTION_ID] = &parquet->transaction_id.chunk;
    chunks[COLUMN_TS] = &parquet->ts.chunk;
    chunks[COLUMN_PAYLOAD] = &parquet->payload.chunk;
}

struct parquet *parquet_create(enum setting_compression codec, struct name queue, encode_emit *emit, void *argument,
                               struct error *error)
{
    struct parquet *parquet = calloc(1, sizeof *parquet);

    if (parquet == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for Parquet");
        return NULL;
    }
    parquet->codec = codec;
    parquet->queue = queue;
    parquet->writer.emit = emit;
    parquet->writer.argument = argument;
    parquet->writer.codec = parquet_codec_create(codec, error);
    parquet->writer.scratch = malloc(PAGE_SCRATCH_SIZE);
    if (parquet->writer.scratch == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a page of Parquet");
    }
    if (parquet->writer.codec == NULL || parquet->writer.scratch == NULL ||
        name_column_begin(&parquet->partition, error) != 0 ||
        text_column_begin(&parquet->transaction_id, false, error) != 0 ||
        text_column_begin(&parquet->payload, true, error) != 0) {
        parquet_destroy(parquet);
        return NULL;
    }
    return parquet;
}

void parquet_destroy(struct parquet *parquet)
{
    if (parquet == NULL) {
        return;
    }
    name_column_free(&parquet->partition);
    parquet_chunk_free(&parquet->offset.chunk);
    text_column_free(&parquet->transaction_id);
    parquet_chunk_free(&parquet->ts.chunk);
    text_column_free(&parquet->payload);
    parquet_footer_free(&parquet->footer);
    byte_buffer_free(&parquet->writer.header.bytes);
    parquet_codec_destroy(parquet->writer.codec);
    free(parquet->writer.scratch);
    free(parquet->mended);
    free(parquet);
}

static int begin_file(struct parquet *parquet, struct error *error)
{
    if (parquet->begun) {
        return 0;
    }
    parquet->begun = true;
    return page_writer_give(&parquet->writer, magic, sizeof magic, error);
}

static int finish_columns(struct parquet *parquet, struct error *error)
{
    struct page_writer *writer = &parquet->writer;
    int code = name_column_finish(&parquet->partition, writer, error);

    if (code == 0) {
        code = number_column_finish(&parquet->offset, writer, error);
    }
    if (code == 0) {
        code = text_column_finish(&parquet->transaction_id, writer, error);
    }
    if (code == 0) {
        code = number_column_finish(&parquet->ts, writer, error);
    }
    return code != 0 ? code : text_column_finish(&parquet->payload, writer, error);
}

static int finish_group(struct parquet *parquet, struct error *error)
{
    struct parquet_chunk *chunks[COLUMN_COUNT];
    struct parquet_chunk_facts facts[COLUMN_COUNT];
    int code = begin_file(parquet, error);

    if (code == 0) {
        code = finish_columns(parquet, error);
    }
    all_chunks(parquet, chunks);
    for (int i = 0; i < COLUMN_COUNT && code == 0; i++) {
        code = parquet_chunk_emit(chunks[i], &parquet->writer, error);
        facts[i] = chunks[i]->facts;
        parquet_chunk_reset(chunks[i]);
    }
    if (code == 0) {
        parquet_footer_add(&parquet->footer, parquet->codec, parquet->rows, facts);
        parquet->rows = 0;
    }
    return code;
}

static int write_record(struct parquet *parquet, const struct record *record, struct error *error)
{
    struct page_writer *writer = &parquet->writer;
    int code = number_column_add(&parquet->offset, writer, record->offset, error);

    if (code == 0) {
        code = text_column_add_spelled(&parquet->transaction_id, writer, record->transaction_id,
                                       record->transaction_id_size, error);
    }
    if (code == 0) {
        code = number_column_add(&parquet->ts, writer, record->ts.v, error);
    }
    if (code != 0) {
        return code;
    }
    return (record->flags & RECORD_PAYLOAD_NULL) != 0
               ? text_column_add_null(&parquet->payload, writer, error)
               : text_column_add(&parquet->payload, writer, record->payload, record->payload_size, error);
}

/* As many records of an extent as the row group has room for. */
static int write_records(struct parquet *parquet, struct name partition, const struct record *records, size_t count,
                         struct error *error)
{
    int code = name_column_add(&parquet->partition, &parquet->writer, partition.bytes, partition.size, count, error);

    for (size_t i = 0; i < count && code == 0; i++) {
        code = write_record(parquet, &records[i], error);
    }
    parquet->rows += count;
    return code == 0 && parquet->rows == GROUP_ROWS ? finish_group(parquet, error) : code;
}

static int write_extent(struct parquet *parquet, struct name partition, const struct extent *extent,
                        struct error *error)
{
    const struct record *records = extent->block->records + extent->first;
    size_t left = extent->count;
    int code = 0;

    while (left > 0 && code == 0) {
        size_t room = (size_t)(GROUP_ROWS - parquet->rows);
        size_t count = left < room ? left : room;
        code = write_records(parquet, partition, records, count, error);
        records += count;
        left -= count;
    }
    return code;
}

/* Sees to it that a partition's name is UTF-8. */
static int mend_name(struct parquet *parquet, struct name *partition, struct error *error)
{
    if (partition->size < 3 || memchr(partition->bytes, 0xED, partition->size) == NULL) {
        return 0;
    }
    char *mended = realloc(parquet->mended, partition->size);
    if (mended == NULL) {
        return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a partition's name");
    }
    parquet->mended = mended;
    memcpy(mended, partition->bytes, partition->size);
    (void)parquet_mend_text(mended, partition->size);
    partition->bytes = mended;
    return 0;
}

int parquet_write_run(struct parquet *parquet, const struct run *run, struct error *error)
{
    struct name partition = run->partition;
    int code = mend_name(parquet, &partition, error);

    for (size_t i = 0; i < run->extent_count && code == 0; i++) {
        code = write_extent(parquet, partition, &run->extents[i], error);
    }
    return code;
}

int parquet_finish(struct parquet *parquet, struct error *error)
{
    struct thrift out = {0};
    int code = parquet->rows > 0 ? finish_group(parquet, error) : begin_file(parquet, error);

    if (code == 0) {
        parquet_footer_finish(&parquet->footer, parquet->queue, &out);
        code = page_writer_give(&parquet->writer, out.bytes.bytes, out.bytes.size, error);
    }
    byte_buffer_free(&out.bytes);
    return code;
}

uint64_t parquet_memory(enum setting_compression codec, uint64_t text_size)
{
    /* Pages of the two columns of texts and of names, and the dictionary. */
    uint64_t pages = 3 * (LEVELS_SIZE + (uint64_t)PAGE_SIZE) + DICTIONARY_SIZE;
    uint64_t fixed = sizeof(struct parquet) + PAGE_SCRATCH_SIZE;
    uint64_t codec_size = parquet_codec_memory(codec, text_size);

    /* Buffers take memory as they fill, each with a part of the text. */
    return fixed + (pages < 2 * text_size ? pages : 2 * text_size) + codec_size;
}

uint64_t parquet_bound(enum setting_compression codec, uint64_t text_size)
{
    /* What doesn't shrink grows by 3 bytes in 128 KiB with zstd, and by a sixth at the very most with snappy
     * (snappy_max_compressed_length). A row group's metadata is far less than what its lines take beside its columns. */
    return text_size + text_size / (codec == COMPRESSION_SNAPPY ? 6 : 2048) + 8192;
}
