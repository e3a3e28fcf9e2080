/*
 * Encoding on threads (encode_thread.h).
 *
 * A job goes waiting → running → ended. Its thread hands finished parts over under the encoder's one lock and waits
 * while ENCODE_PARTS_AHEAD of them are out; the loop is woken through an eventfd and tells one thing at a time: take it
 * out of the job under the lock, unlock, call. After the call nothing of that job is looked at again, so a handler may
 * end it, start another, or both.
 *
 * encode_end() on a running job sets a flag that the thread sees at its next piece of output, its next run or its wait
 * for a part, and waits for the thread: some ten milliseconds, a job of libzstd's.
 */
#include "worker/encode_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "worker/compress.h"
#include "worker/encode_parts.h"
#include "worker/encode_stream.h"
#include "worker/jsonl.h"
#include "worker/parquet.h"

enum job_state { JOB_WAITING, JOB_RUNNING, JOB_ENDED };

struct encode_job {
    struct thread_encoder *encoder;
    struct run_source guard; /* what the encoding reads from: the source, until the job is stopped */
    struct run_source *source;
    struct window_shape shape;
    struct encode_handlers handlers;
    void *argument;
    atomic_bool stopped;
    /* The thread's while running, the loop's afterwards. */
    struct encode_parts parts;
    struct encode_result result;
    struct error error;
    uint64_t threshold;
    /* Under the lock. */
    enum job_state state;
    struct part_buffer *ready; /* to be told, in order */
    struct part_buffer *ready_last;
    struct part_buffer *told; /* handed to part() and not released */
    struct part_buffer *spare;
    unsigned out; /* ready and told */
    bool asked;   /* next() was called since asked() was */
    bool done_told;
    bool pending; /* in the encoder's list of jobs with something to tell */
    struct encode_job *next_waiting;
    struct encode_job *next_pending;
};

struct thread_encoder {
    struct encoder base;
    struct reactor *reactor;
    int compression_threads;
    int wake; /* eventfd */
    pthread_mutex_t lock;
    pthread_cond_t work;  /* a job waits, or all threads shall end */
    pthread_cond_t moved; /* a part was released, a job stopped or ended */
    bool ending;
    struct encode_job *waiting;
    struct encode_job *pending;
    size_t thread_count;
    pthread_t threads[];
};

static void lock(struct thread_encoder *encoder)
{
    (void)pthread_mutex_lock(&encoder->lock);
}

static void unlock(struct thread_encoder *encoder)
{
    (void)pthread_mutex_unlock(&encoder->lock);
}

static void wake_loop(const struct thread_encoder *encoder)
{
    static const uint64_t one = 1;

    /* It fails only where 2^64 - 2 wakings wait already. */
    ssize_t written = write(encoder->wake, &one, sizeof one);
    (void)written;
}

/* Under the lock. */
static void mark_pending(struct encode_job *job)
{
    struct encode_job **end = &job->encoder->pending;

    if (job->pending) {
        return;
    }
    while (*end != NULL) {
        end = &(*end)->next_pending;
    }
    *end = job;
    job->next_pending = NULL;
    job->pending = true;
}

/* ---- the job's thread ---- */

static int guarded_next(struct run_source *guard, struct run *run)
{
    struct encode_job *job = (struct encode_job *)((char *)guard - offsetof(struct encode_job, guard));

    if (job->handlers.asked != NULL) {
        lock(job->encoder);
        job->asked = true;
        mark_pending(job);
        unlock(job->encoder);
        wake_loop(job->encoder);
    }
    return atomic_load(&job->stopped) ? QS_ERROR_SYSTEM : job->source->next(job->source, run);
}

static int take_bytes(void *argument, const uint8_t *bytes, size_t size)
{
    struct encode_job *job = argument;

    return atomic_load(&job->stopped) ? QS_ERROR_SYSTEM : encode_parts_add(&job->parts, bytes, size);
}

static struct part_buffer *reuse_buffer(void *argument)
{
    struct encode_job *job = argument;
    struct part_buffer *buffer;

    lock(job->encoder);
    buffer = job->spare;
    if (buffer != NULL) {
        job->spare = buffer->next;
    }
    unlock(job->encoder);
    return buffer;
}

static int hand_over(void *argument, struct part_buffer *buffer)
{
    struct encode_job *job = argument;
    struct thread_encoder *encoder = job->encoder;

    lock(encoder);
    while (job->out >= ENCODE_PARTS_AHEAD && !atomic_load(&job->stopped)) {
        (void)pthread_cond_wait(&encoder->moved, &encoder->lock);
    }
    if (atomic_load(&job->stopped)) {
        unlock(encoder);
        part_buffer_free(buffer);
        return QS_ERROR_SYSTEM;
    }
    if (job->ready == NULL) {
        job->ready = buffer;
    } else {
        job->ready_last->next = buffer;
    }
    job->ready_last = buffer;
    job->out++;
    mark_pending(job);
    unlock(encoder);
    wake_loop(encoder);
    return 0;
}

static void run_job(struct encode_job *job)
{
    bool known = job->shape.format == FORMAT_JSONL && job->shape.compression == COMPRESSION_NONE;
    int code = encode_parts_begin(&job->parts, job->threshold, known ? job->source->text_size : 0);

    error_clear(&job->error);
    job->parts.reuse = reuse_buffer;
    job->parts.hand = hand_over;
    job->parts.argument = job;
    if (code == 0) {
        code = encode_stream(&job->shape, &job->guard, job->encoder->compression_threads, take_bytes, job, &job->result,
                             &job->error);
    }
    if (code == 0) {
        code = encode_parts_finish(&job->parts, &job->result);
    }
    if (code != 0 && job->error.code == QS_OK) {
        error_set(&job->error, (enum qs_error)code, "out of memory for an object's parts");
    }
}

static void *thread_main(void *argument)
{
    struct thread_encoder *encoder = argument;

    lock(encoder);
    for (;;) {
        while (encoder->waiting == NULL && !encoder->ending) {
            (void)pthread_cond_wait(&encoder->work, &encoder->lock);
        }
        if (encoder->ending) {
            break;
        }
        struct encode_job *job = encoder->waiting;
        encoder->waiting = job->next_waiting;
        job->state = JOB_RUNNING;
        unlock(encoder);
        run_job(job);
        lock(encoder);
        job->state = JOB_ENDED;
        mark_pending(job);
        (void)pthread_cond_broadcast(&encoder->moved);
        wake_loop(encoder);
    }
    unlock(encoder);
    return NULL;
}

/* ---- the loop ---- */

/* Under the lock, which it gives up to call. False: nothing is left to tell. */
static bool tell_one(struct thread_encoder *encoder)
{
    struct encode_job *job = encoder->pending;
    struct encode_handlers handlers;
    struct part_buffer *buffer;
    void *argument;
    bool asked;

    if (job == NULL) {
        return false;
    }
    handlers = job->handlers;
    argument = job->argument;
    buffer = job->ready;
    asked = buffer == NULL && job->asked && job->state == JOB_RUNNING;
    if (buffer != NULL) {
        job->ready = buffer->next;
        buffer->next = job->told;
        job->told = buffer;
    }
    if (buffer == NULL || (job->ready == NULL && job->state != JOB_ENDED && !job->asked)) {
        encoder->pending = job->next_pending;
        job->pending = false;
    }
    if (asked) {
        job->asked = false;
        unlock(encoder);
        handlers.asked(argument);
        lock(encoder);
    } else if (buffer != NULL) {
        unlock(encoder);
        handlers.part(argument, &buffer->part);
        lock(encoder);
    } else if (job->state == JOB_ENDED && !job->done_told) {
        job->done_told = true;
        unlock(encoder);
        handlers.done(argument, &job->error, job->error.code == QS_OK ? &job->result : NULL);
        lock(encoder);
    }
    return true;
}

static void wake_ready(void *argument, short events)
{
    struct thread_encoder *encoder = argument;
    uint64_t count;

    (void)events;
    ssize_t got = read(encoder->wake, &count, sizeof count);
    (void)got;
    lock(encoder);
    while (tell_one(encoder)) {
    }
    unlock(encoder);
}

static struct encode_job *thread_start(struct encoder *base, const struct window_shape *shape,
                                       struct run_source *source, uint64_t threshold,
                                       const struct encode_handlers *handlers, void *argument)
{
    struct thread_encoder *encoder = (struct thread_encoder *)base;
    struct encode_job *job = calloc(1, sizeof *job);
    struct encode_job **end = &encoder->waiting;

    if (job == NULL) {
        return NULL;
    }
    job->encoder = encoder;
    job->guard.next = guarded_next;
    job->guard.text_size = source->text_size;
    job->guard.queue = source->queue;
    job->source = source;
    job->shape = *shape;
    job->threshold = threshold;
    job->handlers = *handlers;
    job->argument = argument;
    atomic_init(&job->stopped, false);
    lock(encoder);
    while (*end != NULL) {
        end = &(*end)->next_waiting;
    }
    *end = job;
    (void)pthread_cond_signal(&encoder->work);
    unlock(encoder);
    return job;
}

static void thread_release(struct encoder *base, struct encode_job *job, struct encode_part *part)
{
    struct thread_encoder *encoder = (struct thread_encoder *)base;
    struct part_buffer *buffer = (struct part_buffer *)part;
    struct part_buffer **link = &job->told;

    lock(encoder);
    while (*link != buffer) {
        link = &(*link)->next;
    }
    *link = buffer->next;
    job->out--;
    if (job->state == JOB_RUNNING) {
        buffer->next = job->spare;
        job->spare = buffer;
        buffer = NULL;
    }
    (void)pthread_cond_broadcast(&encoder->moved);
    unlock(encoder);
    part_buffer_free(buffer);
}

static void unlink_waiting(struct thread_encoder *encoder, const struct encode_job *job)
{
    struct encode_job **link = &encoder->waiting;

    while (*link != NULL && *link != job) {
        link = &(*link)->next_waiting;
    }
    if (*link != NULL) {
        *link = job->next_waiting;
    }
}

static void unlink_pending(struct thread_encoder *encoder, const struct encode_job *job)
{
    struct encode_job **link = &encoder->pending;

    while (*link != NULL && *link != job) {
        link = &(*link)->next_pending;
    }
    if (*link != NULL) {
        *link = job->next_pending;
    }
}

static void thread_end(struct encoder *base, struct encode_job *job)
{
    struct thread_encoder *encoder = (struct thread_encoder *)base;

    lock(encoder);
    atomic_store(&job->stopped, true);
    if (job->state == JOB_WAITING) {
        unlink_waiting(encoder, job);
    }
    (void)pthread_cond_broadcast(&encoder->moved);
    while (job->state == JOB_RUNNING) {
        (void)pthread_cond_wait(&encoder->moved, &encoder->lock);
    }
    unlink_pending(encoder, job);
    unlock(encoder);
    encode_parts_free(&job->parts);
    part_buffers_free(job->ready);
    part_buffers_free(job->told);
    part_buffers_free(job->spare);
    free(job);
}

/* ---- making and ending it ---- */

static const struct encoder_operations thread_operations = {thread_start, thread_release, thread_end};

static int start_threads(struct thread_encoder *encoder, int count, struct error *error)
{
    sigset_t all;
    sigset_t before;
    int result = 0;

    /* A new thread has its maker's mask, and so have those that libzstd starts from it. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (encoder->thread_count < (size_t)count && result == 0) {
        result = pthread_create(&encoder->threads[encoder->thread_count], NULL, thread_main, encoder);
        encoder->thread_count += result == 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0) {
        errno = result;
        return error_set_errno(error, "an encoder thread can't be started");
    }
    return 0;
}

struct encoder *encode_thread_create(struct reactor *reactor, int jobs, int compression_threads, struct error *error)
{
    size_t count = jobs < 1 ? 1 : (size_t)jobs;
    struct thread_encoder *encoder = calloc(1, sizeof *encoder + count * sizeof encoder->threads[0]);

    if (encoder == NULL) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for the encoder");
        return NULL;
    }
    encoder->base.operations = &thread_operations;
    encoder->base.threaded = true;
    encoder->reactor = reactor;
    encoder->compression_threads = compression_threads;
    (void)pthread_mutex_init(&encoder->lock, NULL);
    (void)pthread_cond_init(&encoder->work, NULL);
    (void)pthread_cond_init(&encoder->moved, NULL);
    encoder->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (encoder->wake < 0) {
        error_set_errno(error, "the encoder's eventfd");
    } else if (reactor_watch(reactor, encoder->wake, POLLIN, wake_ready, encoder) != 0) {
        error_set(error, QS_ERROR_SYSTEM, "the encoder's eventfd can't be watched");
    } else if (start_threads(encoder, (int)count, error) == 0) {
        return &encoder->base;
    }
    encode_thread_destroy(&encoder->base);
    return NULL;
}

void encode_thread_destroy(struct encoder *encoder)
{
    struct thread_encoder *own = (struct thread_encoder *)encoder;

    if (own == NULL) {
        return;
    }
    lock(own);
    own->ending = true;
    (void)pthread_cond_broadcast(&own->work);
    unlock(own);
    for (size_t i = 0; i < own->thread_count; i++) {
        (void)pthread_join(own->threads[i], NULL);
    }
    if (own->wake >= 0) {
        (void)reactor_watch(own->reactor, own->wake, 0, NULL, NULL);
        (void)close(own->wake);
    }
    (void)pthread_cond_destroy(&own->moved);
    (void)pthread_cond_destroy(&own->work);
    (void)pthread_mutex_destroy(&own->lock);
    free(own);
}

uint64_t encode_memory(const struct window_shape *shape, uint64_t text_size, uint64_t threshold)
{
    bool lines = shape->format == FORMAT_JSONL;
    uint64_t object =
        lines ? compressor_bound(shape->compression, text_size) : parquet_bound(shape->compression, text_size);
    uint64_t parts = (ENCODE_PARTS_AHEAD + 1) * (uint64_t)OBJECT_PART_SIZE;
    /* What is held back before it is clear that it goes up in parts, and the part being filled by then. */
    uint64_t held = threshold > UINT64_MAX - OBJECT_PART_SIZE ? threshold : threshold + OBJECT_PART_SIZE;

    if (held < parts) {
        held = parts;
    }
    if (held > object) {
        held = object;
    }
    if (lines) {
        return held + compressor_memory(shape->compression, text_size, 1) + jsonl_memory();
    }
    /* A row group waits until it is whole, however much that is. But each byte of the object is either there or in a
     * part, so that there are never more than all of them. */
    return object + parquet_memory(shape->compression, text_size);
}
