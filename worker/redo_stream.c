/*
 * A redo read again while it is written: redo_stream.h.
 *
 * The loop fetches one answer at a time, at most two ahead of the encoder; pieces wait in a short list under a lock. The
 * reference counts of blocks are the loop's alone, so a piece that the encoder is done with goes to a list that the loop
 * lets go of.
 */
#include "worker/redo_stream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/memory.h"
#include "worker/retry.h"

#define PIECES_AHEAD  2
#define PIECE_BYTES   2097152 /* of compressed segments asked for */
#define PIECE_RESERVE 16777216

struct piece {
    struct extent extent;
    struct name partition;
    struct piece *next;
};

struct redo_stream {
    struct run_source base;
    struct world *world;
    struct name queue;
    const struct surveyed_run *surveyed;
    size_t count;
    void (*failed)(void *argument, const struct error *error);
    void *argument;
    /* the loop's */
    size_t at;        /* the partition being read */
    int64_t offset;   /* the next to ask for; -1: at its first */
    uint64_t records; /* of it so far */
    struct queen_call *call;
    struct timer timer;
    struct retry retry;
    bool over; /* everything was fetched, or it failed */
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct piece *first;
    struct piece *last;
    size_t ahead;
    struct piece *spent;
    bool ended;
    bool stopped;
    /* the encoder's */
    struct piece *current;
};

static void piece_free(struct piece *piece)
{
    block_release(piece->extent.block);
    free(piece);
}

/* ---- the encoder's thread ---- */

static int stream_next(struct run_source *source, struct run *run)
{
    struct redo_stream *stream = (struct redo_stream *)source;
    pthread_mutex_lock(&stream->lock);
    if (stream->current != NULL) {
        stream->current->next = stream->spent;
        stream->spent = stream->current;
        stream->current = NULL;
    }
    while (stream->first == NULL && !stream->ended && !stream->stopped)
        pthread_cond_wait(&stream->changed, &stream->lock);
    int status = stream->stopped ? QS_ERROR_SYSTEM : stream->first != NULL ? 1 : 0;
    if (status == 1) {
        stream->current = stream->first;
        stream->first = stream->first->next;
        stream->last = stream->first != NULL ? stream->last : NULL;
        stream->ahead--;
        *run = (struct run){stream->current->partition, &stream->current->extent, 1};
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* ---- the loop ---- */

static void stream_fetch(struct redo_stream *stream);

static void fetch_again(void *argument)
{
    stream_fetch(argument);
}

static void let_go_of_spent(struct redo_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    struct piece *spent = stream->spent;
    stream->spent = NULL;
    pthread_mutex_unlock(&stream->lock);
    while (spent != NULL) {
        struct piece *next = spent->next;
        piece_free(spent);
        spent = next;
    }
}

static void stream_fail(struct redo_stream *stream, const struct error *error)
{
    stream->over = true;
    redo_stream_stop(stream);
    stream->failed(stream->argument, error);
}

static void hand_over(struct redo_stream *stream, struct block *block, size_t first, size_t count)
{
    struct piece *piece = memory_new(1, sizeof *piece);
    piece->extent = (struct extent){block, first, count};
    piece->partition = stream->surveyed[stream->at].partition;
    block_retain(block);
    pthread_mutex_lock(&stream->lock);
    if (stream->last != NULL)
        stream->last->next = piece;
    else
        stream->first = piece;
    stream->last = piece;
    stream->ahead++;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static void stream_end(struct redo_stream *stream)
{
    stream->over = true;
    pthread_mutex_lock(&stream->lock);
    stream->ended = true;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

/* Takes what an answer brought of the partition being read; false where it can't be what was measured. */
static bool take_answer(struct redo_stream *stream, const struct fetch_entry *entry, struct block *block)
{
    const struct surveyed_run *run = &stream->surveyed[stream->at];
    const struct record *records = block->records + entry->first_record;
    size_t count = 0;
    while (count < entry->record_count && records[count].offset < run->end)
        count++;
    if (count > 0) {
        hand_over(stream, block, entry->first_record, count);
        stream->offset = records[count - 1].offset + 1;
        stream->records += count;
    }
    if (stream->offset < run->end && stream->offset >= 0)
        return count > 0; /* what lies behind the range only shows that its rest is gone */
    if (stream->records != run->records)
        return false;
    stream->at++;
    stream->offset = -1;
    stream->records = 0;
    return true;
}

static void fetch_done(void *argument, const struct error *error, struct fetch_answer *answer)
{
    struct redo_stream *stream = argument;
    struct error gone;
    stream->call = NULL;
    if (error->code != QS_OK && !error->retriable) {
        stream_fail(stream, error);
        return;
    }
    bool passing = error->code != QS_OK || answer->entries[0].status == FETCH_PASSING ||
                   (answer->entries[0].status == FETCH_OK && answer->entries[0].record_count == 0);
    if (error->code == QS_OK && !passing && !take_answer(stream, &answer->entries[0], answer->block)) {
        block_release(answer->block);
        error_set(&gone, QS_ERROR_BODY, "records of the window being redone are gone since they were measured");
        stream_fail(stream, &gone);
        return;
    }
    if (error->code == QS_OK)
        block_release(answer->block);
    if (passing) {
        int64_t delay = retry_delay(&stream->retry, stream->world, error, RETRY_CAP_MS);
        timer_set(stream->world->timers, &stream->timer, world_after(stream->world, delay), fetch_again, stream);
        return;
    }
    stream->retry.failures = 0;
    stream_fetch(stream);
}

static bool has_room(struct redo_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool room = stream->ahead < PIECES_AHEAD;
    pthread_mutex_unlock(&stream->lock);
    return room;
}

static void stream_fetch(struct redo_stream *stream)
{
    let_go_of_spent(stream);
    if (stream->over || stream->call != NULL || timer_is_set(&stream->timer) || !has_room(stream))
        return;
    if (stream->at == stream->count) {
        stream_end(stream);
        return;
    }
    const struct surveyed_run *run = &stream->surveyed[stream->at];
    if (stream->offset < 0)
        stream->offset = run->first;
    struct fetch_request_entry entry = {stream->queue, run->partition, stream->offset, PIECE_BYTES};
    /* Nothing else of this queue is in memory meanwhile, and it can't go on without: so it may pass the budget. */
    struct fetch_request request = {&entry, 1, stream->world->budget, PIECE_RESERVE, true};
    budget_force(stream->world->budget, PIECE_RESERVE);
    stream->call = stream->world->queen->operations->fetch(stream->world->queen, &request, fetch_done, stream);
}

void redo_stream_asked(struct redo_stream *stream)
{
    stream_fetch(stream);
}

struct redo_stream *redo_stream_create(struct world *world, struct name queue, const struct surveyed_run *surveyed,
                                       size_t count, void (*failed)(void *argument, const struct error *error),
                                       void *argument)
{
    struct redo_stream *stream = memory_new(1, sizeof *stream);
    stream->base.next = stream_next;
    stream->base.queue = queue;
    stream->world = world;
    stream->queue = queue;
    stream->surveyed = surveyed;
    stream->count = count;
    stream->failed = failed;
    stream->argument = argument;
    stream->offset = -1;
    for (size_t i = 0; i < count; i++)
        stream->base.text_size += surveyed[i].text_size;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    return stream;
}

struct run_source *redo_stream_source(struct redo_stream *stream)
{
    return &stream->base;
}

static void drop_all(struct redo_stream *stream)
{
    if (stream->call != NULL)
        stream->world->queen->operations->cancel(stream->world->queen, stream->call);
    stream->call = NULL;
    timer_cancel(stream->world->timers, &stream->timer);
    if (stream->current != NULL)
        piece_free(stream->current);
    stream->current = NULL;
    while (stream->first != NULL) {
        struct piece *next = stream->first->next;
        piece_free(stream->first);
        stream->first = next;
    }
    stream->last = NULL;
    stream->ahead = 0;
    let_go_of_spent(stream);
}

void redo_stream_rewind(struct redo_stream *stream)
{
    drop_all(stream);
    stream->at = 0;
    stream->offset = -1;
    stream->records = 0;
    stream->over = false;
    stream->ended = false;
    stream->stopped = false;
}

void redo_stream_stop(struct redo_stream *stream)
{
    if (stream == NULL)
        return;
    pthread_mutex_lock(&stream->lock);
    stream->stopped = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

void redo_stream_destroy(struct redo_stream *stream)
{
    if (stream == NULL)
        return;
    drop_all(stream);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}
