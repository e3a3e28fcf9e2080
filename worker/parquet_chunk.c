/* See parquet_chunk.h. */
#include "worker/parquet_chunk.h"

#include <stdlib.h>
#include <string.h>

/* Small enough for the allocator's heap, where a block that was freed is at hand again without new pages of memory. */
#define BLOCK_SIZE  (64u << 10)
#define HEADER_SIZE 48 /* of a page, at the most: its fields are four varints of five bytes, one-byte enums and heads */

struct chunk_block {
    struct chunk_block *next;
    size_t used;
    uint8_t bytes[BLOCK_SIZE];
};

/* Pages lie one behind the other in the blocks; a header is known only when its page is compressed, and stands here. */
struct chunk_page {
    uint32_t size;
    uint8_t header_size;
    uint8_t header[HEADER_SIZE];
};

struct keeping {
    struct chunk_pages *pages;
    uint64_t size;
};

int page_writer_give(struct page_writer *writer, const void *bytes, size_t size, struct error *error)
{
    int code = writer->emit(writer->argument, bytes, size);

    writer->position += size;
    if (code != 0) {
        return error_set(error, code < 0 ? (enum qs_error)code : QS_ERROR_SYSTEM,
                         "the encoded bytes were not taken: encoding stopped");
    }
    return 0;
}

static int keep(void *argument, const uint8_t *bytes, size_t size)
{
    struct keeping *keeping = argument;
    struct chunk_pages *pages = keeping->pages;

    keeping->size += size;
    while (size > 0) {
        struct chunk_block *block = pages->last;
        if (block == NULL || block->used == BLOCK_SIZE) {
            block = malloc(sizeof *block);
            if (block == NULL) {
                return QS_ERROR_NO_MEMORY;
            }
            block->next = NULL;
            block->used = 0;
            *(pages->last == NULL ? &pages->first : &pages->last->next) = block;
            pages->last = block;
        }
        size_t piece = BLOCK_SIZE - block->used;
        if (piece > size) {
            piece = size;
        }
        memcpy(block->bytes + block->used, bytes, piece);
        block->used += piece;
        bytes += piece;
        size -= piece;
    }
    return 0;
}

static int reserve_page(struct chunk_pages *pages, struct error *error)
{
    if (pages->count == pages->capacity) {
        size_t capacity = pages->capacity == 0 ? 16 : pages->capacity * 2;
        struct chunk_page *grown = realloc(pages->pages, capacity * sizeof *grown);
        if (grown == NULL) {
            return error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a row group's pages");
        }
        pages->pages = grown;
        pages->capacity = capacity;
    }
    return 0;
}

/* Compresses and keeps; page->values and encoding are there, the sizes come from here. */
static int add_page(struct parquet_chunk *chunk, struct chunk_pages *pages, struct page_writer *writer,
                    struct parquet_page *page, const struct iovec *pieces, size_t count, struct error *error)
{
    struct keeping keeping = {pages, 0};
    uint64_t size = 0;
    int code = reserve_page(pages, error);

    for (size_t i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    if (code == 0 && size <= INT32_MAX) {
        code = parquet_codec_compress(writer->codec, pieces, count, keep, &keeping, error);
    }
    if (code == 0 && (size > INT32_MAX || keeping.size > INT32_MAX)) {
        code =
            error_set(error, QS_ERROR_INPUT, "a record of %llu bytes is more than a page of Parquet can hold (2 GiB)",
                      (unsigned long long)size);
    }
    if (code != 0) {
        return code;
    }
    page->uncompressed_size = (int32_t)size;
    page->compressed_size = (int32_t)keeping.size;
    (pages == &chunk->dictionary ? parquet_dictionary_page_header : parquet_data_page_header)(&writer->header, page);
    struct chunk_page *kept = &pages->pages[pages->count++];
    kept->size = (uint32_t)keeping.size;
    kept->header_size = (uint8_t)writer->header.bytes.size;
    memcpy(kept->header, writer->header.bytes.bytes, kept->header_size);
    chunk->facts.uncompressed_size += size + kept->header_size;
    chunk->facts.compressed_size += keeping.size + kept->header_size;
    return page_writer_give(writer, NULL, 0, error);
}

int parquet_chunk_add(struct parquet_chunk *chunk, struct page_writer *writer, enum parquet_encoding encoding,
                      size_t values, const struct iovec *pieces, size_t count, struct error *error)
{
    struct parquet_page page = {.values = (int32_t)values, .encoding = encoding};

    chunk->facts.values += values;
    *(encoding == ENCODING_PLAIN ? &chunk->facts.plain : &chunk->facts.encoded) += 1;
    return add_page(chunk, &chunk->data, writer, &page, pieces, count, error);
}

int parquet_chunk_add_dictionary(struct parquet_chunk *chunk, struct page_writer *writer, size_t values,
                                 const void *bytes, size_t size, struct error *error)
{
    struct parquet_page page = {.values = (int32_t)values, .encoding = ENCODING_PLAIN};
    struct iovec piece = {(void *)(uintptr_t)bytes, size};

    chunk->facts.dictionary = true;
    return add_page(chunk, &chunk->dictionary, writer, &page, &piece, 1, error);
}

static void free_first(struct chunk_pages *pages)
{
    struct chunk_block *block = pages->first;

    pages->first = block->next;
    if (pages->first == NULL) {
        pages->last = NULL;
    }
    free(block);
}

static int emit_pages(struct chunk_pages *pages, struct page_writer *writer, struct error *error)
{
    size_t at = 0;

    for (size_t i = 0; i < pages->count; i++) {
        const struct chunk_page *page = &pages->pages[i];
        size_t left = page->size;
        int code = page_writer_give(writer, page->header, page->header_size, error);
        while (left > 0 && code == 0) {
            struct chunk_block *block = pages->first;
            size_t piece = block->used - at < left ? block->used - at : left;
            code = page_writer_give(writer, block->bytes + at, piece, error);
            at += piece;
            left -= piece;
            if (at == block->used) {
                free_first(pages);
                at = 0;
            }
        }
        if (code != 0) {
            return code;
        }
    }
    pages->count = 0;
    return 0;
}

int parquet_chunk_emit(struct parquet_chunk *chunk, struct page_writer *writer, struct error *error)
{
    int code;

    chunk->facts.start = writer->position;
    code = emit_pages(&chunk->dictionary, writer, error);
    if (code == 0) {
        chunk->facts.data = writer->position;
        code = emit_pages(&chunk->data, writer, error);
    }
    return code;
}

void parquet_chunk_reset(struct parquet_chunk *chunk)
{
    memset(&chunk->facts, 0, sizeof chunk->facts);
}

static void free_pages(struct chunk_pages *pages)
{
    while (pages->first != NULL) {
        free_first(pages);
    }
    free(pages->pages);
}

void parquet_chunk_free(struct parquet_chunk *chunk)
{
    free_pages(&chunk->dictionary);
    free_pages(&chunk->data);
}
