/* The encoder of a scripted world: encodes whole at the start, and hands over when told. See scripted_world.h. */
#include <check.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/byte_buffer.h"
#include "common/memory.h"
#include "scripted_world.h"
#include "worker/encode_stream.h"

struct given_part {
    struct encode_part part; /* first */
    bool released;
};

struct encode_job {
    struct scripted_world *world;
    struct encode_handlers handlers;
    void *argument;
    struct byte_buffer bytes;
    struct encode_result result;
    struct error error;
    bool multipart;
    struct iovec pieces[2];
    struct given_part **parts;
    size_t part_count;
    size_t part_capacity;
    size_t unreleased;
    size_t given;               /* bytes */
    struct scripted_call *word; /* the next one, open; NULL while it waits for a release, and after the end */
    bool over;
};

static int take(void *argument, const uint8_t *bytes, size_t size)
{
    struct encode_job *job = argument;
    byte_buffer_add(&job->bytes, bytes, size);
    return 0;
}

static void next_word(struct encode_job *job)
{
    bool waits = job->given < job->bytes.size && job->multipart && job->unreleased == ENCODE_PARTS_AHEAD;
    if (job->word != NULL || job->over || waits)
        return;
    job->word = call_new(job->world, CALL_ENCODE, NULL);
    job->word->job = job;
    call_spell(job->word, "encode");
}

static struct encode_job *start(struct encoder *encoder, const struct window_shape *shape, struct run_source *source,
                                uint64_t threshold, const struct encode_handlers *handlers, void *argument)
{
    struct scripted_world *w =
        (struct scripted_world *)(void *)((char *)encoder - offsetof(struct scripted_world, encoder));
    if (w->encoder_fails_to_start)
        return NULL;
    struct encode_job *job = memory_new(1, sizeof *job);
    job->world = w;
    job->handlers = *handlers;
    job->argument = argument;
    job->error.retry_after_ms = -1;
    encode_stream(shape, source, 1, take, job, &job->result, &job->error);
    job->multipart = job->bytes.size > threshold;
    w->jobs++;
    next_word(job);
    return job;
}

static void give_part(struct encode_job *job)
{
    struct given_part *given = memory_new(1, sizeof *given);
    size_t left = job->bytes.size - job->given;
    given->part.size = left < job->world->part_size ? left : job->world->part_size;
    /* A copy of its own: who reads it after the release reads freed memory. */
    given->part.bytes = (uint8_t *)memory_copy(job->bytes.bytes + job->given, given->part.size);
    EVP_Digest(given->part.bytes, given->part.size, given->part.md5, NULL, EVP_md5(), NULL);
    job->given += given->part.size;
    job->unreleased++;
    job->parts = memory_grow(job->parts, &job->part_capacity, job->part_count + 1, sizeof *job->parts);
    job->parts[job->part_count++] = given;
    next_word(job);
    job->handlers.part(job->argument, &given->part);
}

static void give_result(struct encode_job *job)
{
    job->over = true;
    if (!job->multipart) {
        size_t half = job->bytes.size / 2;
        job->pieces[0] = (struct iovec){job->bytes.bytes, half};
        job->pieces[1] = (struct iovec){job->bytes.bytes + half, job->bytes.size - half};
        job->result.pieces = job->pieces;
        job->result.piece_count = 2;
        EVP_Digest(job->bytes.bytes, job->bytes.size, job->result.md5, NULL, EVP_md5(), NULL);
    }
    job->handlers.done(job->argument, &job->error, job->error.code == QS_OK ? &job->result : NULL);
}

void encoder_deliver(struct scripted_call *call, const struct error *error)
{
    struct encode_job *job = call->job;
    call_close(call);
    job->word = NULL;
    if (error->code != QS_OK)
        job->error = *error;
    if (job->error.code == QS_OK && job->multipart && job->given < job->bytes.size)
        give_part(job);
    else
        give_result(job);
}

static void release(struct encoder *encoder, struct encode_job *job, struct encode_part *part)
{
    struct given_part *given = (struct given_part *)part;
    (void)encoder;
    ck_assert(!given->released);
    given->released = true;
    free(given->part.bytes);
    given->part.bytes = NULL;
    job->unreleased--;
    job->world->released++;
    next_word(job);
}

static void end(struct encoder *encoder, struct encode_job *job)
{
    (void)encoder;
    if (job->word != NULL)
        call_cancel(job->word);
    for (size_t i = 0; i < job->part_count; i++) {
        free(job->parts[i]->part.bytes);
        free(job->parts[i]);
    }
    free(job->parts);
    byte_buffer_free(&job->bytes);
    job->world->jobs--;
    free(job);
}

const struct encoder_operations scripted_encoder_operations = {start, release, end};
