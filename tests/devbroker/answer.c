/*
 * Building answers; see answer.h for the contract.
 */
#include "answer.h"

#include <stdlib.h>
#include <string.h>

/* Below this a copy is cheaper than one more element for the kernel to gather. */
#define COPY_LIMIT 4096

void answer_start(struct answer *answer)
{
    *answer = (struct answer){.status = 200, .retry_after = -1};
}

void answer_free(struct answer *answer)
{
    for (size_t i = 0; i < answer->piece_count; i++) {
        if (answer->pieces[i].segment != NULL) {
            segment_release(answer->pieces[i].segment);
        }
    }
    free(answer->pieces);
    text_free(&answer->text);
    answer_start(answer);
}

void answer_error(struct answer *answer, unsigned status, const char *message)
{
    int retry_after = answer->retry_after;

    answer_free(answer);
    answer->retry_after = retry_after;
    answer->status = status;
    text_add_string(&answer->text, "{\"error\":");
    text_add_quoted(&answer->text, slice_of(message));
    text_add_string(&answer->text, "}");
}

static void add_piece(struct answer *answer, struct segment *segment, size_t start, size_t size)
{
    answer->pieces = memory_room(answer->pieces, answer->piece_count, &answer->piece_capacity, sizeof *answer->pieces);
    answer->pieces[answer->piece_count++] = (struct answer_piece){segment, start, size};
}

static void cover_text(struct answer *answer)
{
    if (answer->text.size > answer->text_covered) {
        add_piece(answer, NULL, answer->text_covered, answer->text.size - answer->text_covered);
        answer->text_covered = answer->text.size;
    }
}

void answer_add_records(struct answer *answer, struct segment *segment, uint32_t first, uint32_t last, bool comma)
{
    size_t start = (size_t)segment->starts[first] + !comma;
    size_t size = segment->starts[last] - start;

    if (size < COPY_LIMIT) {
        text_add(&answer->text, segment->text + start, size);
        return;
    }
    cover_text(answer);
    segment_keep(segment);
    add_piece(answer, segment, start, size);
    answer->segment_bytes += size;
}

size_t answer_size(const struct answer *answer)
{
    return answer->text.size + answer->segment_bytes;
}

void answer_finish(struct answer *answer)
{
    if (answer->piece_count > 0) {
        cover_text(answer);
    }
}

void answer_flatten(struct answer *answer)
{
    struct text flat = {0};
    struct answer flattened;

    if (answer->piece_count == 0) {
        return;
    }
    answer_finish(answer);
    text_reserve(&flat, answer_size(answer));
    for (size_t i = 0; i < answer->piece_count; i++) {
        const struct answer_piece *piece = &answer->pieces[i];
        const char *base = piece->segment == NULL ? answer->text.at : piece->segment->text;

        text_add(&flat, base + piece->start, piece->size);
    }
    answer_start(&flattened);
    flattened.status = answer->status;
    flattened.retry_after = answer->retry_after;
    flattened.text = flat;
    answer_free(answer);
    *answer = flattened;
}
