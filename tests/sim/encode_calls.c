/*
 * The encoder without its thread: the whole object is made at one moment, and what it hands over travels as events.
 */
#include <stdlib.h>

#include "common/memory.h"
#include "tests/sim/instance.h"
#include "worker/encode_parts.h"
#include "worker/encode_stream.h"

#define TURN_MS 20

struct encode_job {
    struct instance *instance;
    struct window_shape shape;
    struct run_source *source;
    struct encode_handlers handlers;
    void *argument;
    struct encode_parts parts;
    struct encode_result result;
    struct error error;
    bool encoded;
    struct part_buffer *ready; /* finished, not handed over yet; in order */
    struct part_buffer *ready_last;
    struct part_buffer *given;
    size_t given_count;
    struct sim_event *event;
};

static void job_turn(void *argument);

static void job_schedule(struct encode_job *job)
{
    struct simulation *simulation = job->instance->simulation;
    if (job->event == NULL)
        job->event =
            scheduler_at(&simulation->scheduler,
                         simulation->scheduler.now + chance_between(&simulation->chance, 0, TURN_MS), job_turn, job);
}

static struct part_buffer *no_reuse(void *argument)
{
    (void)argument;
    return NULL;
}

static int part_finished(void *argument, struct part_buffer *buffer)
{
    struct encode_job *job = argument;
    if (job->ready_last != NULL)
        job->ready_last->next = buffer;
    else
        job->ready = buffer;
    job->ready_last = buffer;
    return 0;
}

static int take_bytes(void *argument, const uint8_t *bytes, size_t size)
{
    struct encode_job *job = argument;
    return encode_parts_add(&job->parts, bytes, size);
}

static void encode_all(struct encode_job *job)
{
    job->encoded = true;
    int status = encode_stream(&job->shape, job->source, 1, take_bytes, job, &job->result, &job->error);
    if (status == 0)
        status = encode_parts_finish(&job->parts, &job->result);
    if (status == 0)
        job->error = (struct error){.retry_after_ms = -1};
    else
        sim_fail(job->instance->simulation, "encoding failed: %s", job->error.message);
}

/* One thing a turn: a part, or the end. */
static void job_turn(void *argument)
{
    struct encode_job *job = argument;
    struct instance *instance = job->instance;
    job->event = NULL;
    if (instance->paused_until > instance->simulation->scheduler.now) {
        job->event = scheduler_at(&instance->simulation->scheduler, instance->paused_until, job_turn, job);
        return;
    }
    if (!job->encoded)
        encode_all(job);
    struct part_buffer *buffer = job->ready;
    if (buffer != NULL && job->given_count >= ENCODE_PARTS_AHEAD)
        return; /* the encoder waits */
    if (!instance_enter(instance))
        return;
    if (buffer != NULL) {
        job->ready = buffer->next;
        if (job->ready == NULL)
            job->ready_last = NULL;
        buffer->next = job->given;
        job->given = buffer;
        job->given_count++;
        job_schedule(job);
        job->handlers.part(job->argument, &buffer->part);
    } else {
        job->handlers.done(job->argument, &job->error, &job->result);
    }
    instance_leave(instance);
}

static struct encode_job *job_start(struct encoder *encoder, const struct window_shape *shape,
                                    struct run_source *source, uint64_t threshold,
                                    const struct encode_handlers *handlers, void *argument)
{
    struct encode_job *job = memory_new(1, sizeof *job);
    job->instance = instance_of_encoder(encoder);
    job->shape = *shape;
    job->source = source;
    job->handlers = *handlers;
    job->argument = argument;
    job->parts.reuse = no_reuse;
    job->parts.hand = part_finished;
    job->parts.argument = job;
    encode_parts_begin(&job->parts, threshold, 0);
    job_schedule(job);
    return job;
}

/* cppcheck-suppress constParameter ; the table's type says so */
static void job_release(struct encoder *encoder, struct encode_job *job, struct encode_part *part)
{
    (void)encoder;
    for (struct part_buffer **link = &job->given; *link != NULL; link = &(*link)->next)
        if (&(*link)->part == part) {
            struct part_buffer *buffer = *link;
            *link = buffer->next;
            part_buffer_free(buffer);
            job->given_count--;
            if (job->ready != NULL)
                job_schedule(job);
            return;
        }
    sim_fail(job->instance->simulation, "a part was released that was not given");
}

static void job_end(struct encoder *encoder, struct encode_job *job)
{
    (void)encoder;
    scheduler_cancel(&job->instance->simulation->scheduler, job->event);
    part_buffers_free(job->ready);
    part_buffers_free(job->given);
    encode_parts_free(&job->parts);
    free(job);
}

const struct encoder_operations sim_encoder_operations = {job_start, job_release, job_end};
