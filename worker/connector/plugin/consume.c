/*
 * Taking a batch in (spec 5.1, 5.3), and uploading what gets full before the call returns: durabilities buffered and
 * uploaded.
 *
 * What makes a batch that comes again harmless. A record counts as taken from the moment it is in an open file until
 * that file fails for good; who it was is kept for the open file and for the batch before. So a call that stops half-way
 * takes its first half once, and the same batch, when it comes again, goes on where the first call stopped.
 */
#include <inttypes.h>
#include <signal.h>

#include "common/log.h"
#include "worker/connector/plugin/sink_internal.h"

#define ANSWER_GOOD       0
#define ANSWER_AGAIN      1
#define ANSWER_UNREADABLE (-1)

bool taking_is_repeat(const struct sink_partition *partition, uint64_t offset, uint64_t hash)
{
    return seen_has(&partition->file.seen, offset, hash) || seen_has(&partition->last, offset, hash) ||
           seen_has(&partition->recovered, offset, hash);
}

void taking_note_oddities(struct taking *taking, const struct sink_record *record, unsigned oddities)
{
    if (oddities != 0 && taking->odd_headers + taking->odd_payloads == 0) {
        taking->first_odd = record->offset;
    }
    taking->odd_headers += (oddities & SINK_ODD_HEADERS) != 0 ? 1 : 0;
    taking->odd_payloads += (oddities & SINK_ODD_PAYLOAD) != 0 ? 1 : 0;
}

static void tell_oddities(const struct taking *taking)
{
    const struct sink_partition *partition = taking->partition;
    int shown = partition->topic_size < 256 ? (int)partition->topic_size : 256;

    if (taking->odd_headers > 0) {
        log_line(LOG_WARN, NULL,
                 "topic %.*s, partition %" PRId32 ": %" PRIu64 " records, from offset %" PRIu64
                 " on, have headers that don't decode: written without",
                 shown, partition->topic, partition->number, taking->odd_headers, taking->first_odd);
    }
    if (taking->odd_payloads > 0) {
        log_line(LOG_WARN, NULL,
                 "topic %.*s, partition %" PRId32 ": %" PRIu64 " records, from offset %" PRIu64
                 " on, aren't what their schema says: written as base64 strings",
                 shown, partition->topic, partition->number, taking->odd_payloads, taking->first_odd);
    }
}

void taking_succeeded(struct sink_partition *partition)
{
    struct seen before = partition->last;

    partition->last = partition->current;
    partition->current = before;
    seen_clear(&partition->current);
    seen_sort(&partition->last);
    const struct seen *recovered = &partition->recovered;
    if (recovered->count > 0 && partition->last.count > 0 &&
        partition->last.records[partition->last.count - 1].offset > recovered->records[recovered->count - 1].offset) {
        seen_free(&partition->recovered); /* the log has gone on from there */
    }
    partition->note_is_stale = true;
}

/* A call that failed adds to the batch before, since it comes again. */
static void taking_failed(struct sink_partition *partition)
{
    struct seen *current = &partition->current;

    seen_forget(current, &partition->last);
    /* Out of memory: they may come twice, which is better than not at all. */
    if (seen_reserve(&partition->last, current->count)) {
        for (size_t i = 0; i < current->count; i++) {
            seen_add(&partition->last, current->records[i].offset, current->records[i].hash);
        }
    }
    seen_sort(&partition->last);
    seen_clear(current);
    partition->note_is_stale = true;
}

int sink_prepare_flight(struct sink *sink, struct sink_partition *partition, struct flight *flight, struct error *error)
{
    struct open_file *file = &partition->file;
    sigset_t all;
    sigset_t before;

    /* libzstd starts a thread of its own, which no signal of the host is to reach. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = open_file_finish(file, &sink->options.shape, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0 && !sink_bucket_body(&sink->options, &file->body, &flight->body)) {
        code = error_set(error, QS_ERROR_NO_MEMORY, "OpenSSL can't hash a file: out of memory, or without MD5");
    }
    if (code == 0) {
        code = open_file_key(file->directory, partition->number, file->first_offset, file->last_offset,
                             &sink->options.shape, flight->key, error);
    }
    if (code != 0) {
        return code;
    }
    flight->options = &sink->options;
    flight->network = sink->network;
    flight->lost = &sink->lost;
    flight->shape = sink->options.shape;
    flight->marker = sink->options.durability == SINK_BUFFERED;
    flight->max_attempts = sink->options.max_attempts;
    flight->file = *file;
    *file = (struct open_file){0};
    return 0;
}

/* ---- uploading before the call returns ---- */

struct waiting_flight {
    struct flight flight; /* first: a flight * is a waiting_flight * */
    struct sink *sink;
    bool ended;
};

static void wake_caller(struct flight *flight)
{
    struct waiting_flight *waiting = (struct waiting_flight *)(void *)flight;
    struct sink *sink = waiting->sink;

    pthread_mutex_lock(&sink->lock);
    waiting->ended = true;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

static void wait_for(struct waiting_flight *waiting)
{
    struct sink *sink = waiting->sink;

    pthread_mutex_lock(&sink->lock);
    while (!waiting->ended) {
        pthread_cond_wait(&sink->changed, &sink->lock);
    }
    pthread_mutex_unlock(&sink->lock);
}

static bool is_closing(struct sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    bool closing = sink->closing;
    pthread_mutex_unlock(&sink->lock);
    return closing;
}

/* Closes the partition's file and puts it up. 0, or ANSWER_AGAIN: it is lost and its records are forgotten, or the sink
 * is being closed and the file is still there. */
static int32_t rotate(struct taking *taking, struct error *error)
{
    struct sink_partition *partition = taking->partition;
    struct waiting_flight waiting = {.flight = {.done = wake_caller}, .sink = taking->sink};

    if (is_closing(taking->sink)) {
        error_set(error, QS_ERROR_TRANSPORT, "the sink is being closed");
        return ANSWER_AGAIN;
    }
    if (sink_prepare_flight(taking->sink, partition, &waiting.flight, error) != 0) {
        return ANSWER_AGAIN;
    }
    flight_start(&waiting.flight);
    wait_for(&waiting);
    if (waiting.flight.result == FLIGHT_UP) {
        flight_clear(&waiting.flight);
        return ANSWER_GOOD;
    }
    *error = waiting.flight.error;
    if (waiting.flight.result == FLIGHT_CUT) {
        partition->file = waiting.flight.file;
        return ANSWER_AGAIN;
    }
    seen_forget(&partition->last, &waiting.flight.file.seen);
    seen_forget(&partition->current, &waiting.flight.file.seen);
    flight_clear(&waiting.flight);
    return ANSWER_AGAIN;
}

static int32_t add_record(struct taking *taking, const struct sink_record *record, uint64_t hash, struct error *error)
{
    struct sink_partition *partition = taking->partition;
    struct open_file *file = &partition->file;
    enum open_file_added added = OPEN_FILE_NO_ROOM;
    unsigned oddities = 0;
    int32_t answer = ANSWER_GOOD;

    if (open_file_is_behind(file, record->offset) && (answer = rotate(taking, error)) != ANSWER_GOOD) {
        return answer;
    }
    bool first = file->count == 0;
    if (open_file_add(file, &taking->place, &partition->formatter, record, hash, &added, &oddities, error) != 0) {
        return ANSWER_AGAIN;
    }
    if (added == OPEN_FILE_NO_ROOM) {
        answer = rotate(taking, error);
        return answer == ANSWER_GOOD ? add_record(taking, record, hash, error) : answer;
    }
    if (first) {
        file->opened = clock_mono();
    }
    taking_note_oddities(taking, record, oddities);
    return ANSWER_GOOD;
}

static int32_t take_record(struct taking *taking, const struct sink_record *record, struct error *error)
{
    struct sink_partition *partition = taking->partition;
    uint64_t hash = sink_record_hash(record);
    int32_t answer = ANSWER_GOOD;

    if (!seen_reserve(&partition->current, 1)) {
        error_set(error, QS_ERROR_NO_MEMORY, "out of memory for a record's offset");
        return ANSWER_AGAIN;
    }
    if (!taking_is_repeat(partition, record->offset, hash)) {
        answer = add_record(taking, record, hash, error);
    }
    if (answer == ANSWER_GOOD) {
        seen_add(&partition->current, record->offset, hash);
        if (open_file_is_full(&partition->file, &taking->sink->options.limits)) {
            answer = rotate(taking, error);
        }
    }
    return answer;
}

/* Takes the batch into memory and uploads what gets full. */
static int32_t take_in_memory(struct taking *taking, struct error *error)
{
    struct sink_partition *partition = taking->partition;
    struct sink_record record;
    int32_t answer = ANSWER_GOOD;

    /* What an earlier call could not close: for want of memory. */
    if (partition->file.finished || open_file_is_full(&partition->file, &taking->sink->options.limits)) {
        answer = rotate(taking, error);
    }
    for (uint64_t i = 0; i < taking->count && answer == ANSWER_GOOD && postcard_message(&taking->cursor, &record);
         i++) {
        answer = take_record(taking, &record, error);
    }
    if (answer == ANSWER_GOOD && taking->sink->options.durability == SINK_UPLOADED && partition->file.count > 0) {
        answer = rotate(taking, error);
    }
    if (answer == ANSWER_GOOD) {
        taking_succeeded(partition);
    } else {
        taking_failed(partition);
    }
    return answer;
}

/* ---- the call ---- */

/* What would fail whichever way the records are taken in: the batch is refused whole, so that retries don't pile up. */
static int check(const struct taking *taking, struct error *error)
{
    struct postcard cursor = taking->cursor;
    struct sink_record record;
    char directory[SINK_KEY_MAX + 1];

    for (uint64_t i = 0; i < taking->count && postcard_message(&cursor, &record); i++) {
        if (taking->sink->needs_date && record.timestamp_ms > SINK_TIMESTAMP_MAX) {
            return error_set(error, QS_ERROR_INPUT,
                             "the record at offset %" PRIu64 " has a time of %" PRIu64 " ms, after year 9999",
                             record.offset, record.timestamp_ms);
        }
        if (i == 0 && sink_place_render(&taking->place, record.timestamp_ms, &taking->sink->options.shape, directory,
                                        error) != 0) {
            return error->code;
        }
    }
    return 0;
}

/* One of two topics whose files get the same keys would replace the other's. What promises that nothing is lost takes
 * in but one of them; else it is told, and the keys are what the template makes them. */
static int check_rival(const struct taking *taking, struct error *error)
{
    struct sink_partition *partition = taking->partition;
    const struct sink_partition *rival = partition->rival;
    const struct sink_options *options = &taking->sink->options;

    if (rival == NULL || (partition->rival_told && options->durability == SINK_BUFFERED)) {
        return 0;
    }
    error_set(error, QS_ERROR_INPUT,
              "path_template '%.200s' makes the keys of topic '%.*s' too, so that files of one replace the other's: "
              "give it {topic}",
              options->path_template, rival->topic_size < 256 ? (int)rival->topic_size : 256, rival->topic);
    if (options->durability != SINK_BUFFERED) {
        return error->code;
    }
    partition->rival_told = true;
    log_line(LOG_ERROR, NULL, "topic %.*s: %s", partition->topic_size < 256 ? (int)partition->topic_size : 256,
             partition->topic, error->message);
    return 0;
}

static int32_t take_batch(struct taking *taking, enum sink_schema schema, struct error *error)
{
    struct sink *sink = taking->sink;

    if (check(taking, error) != 0) {
        return ANSWER_AGAIN;
    }
    taking->partition = partition_take(sink, taking->place.topic, taking->place.partition, error);
    if (taking->partition == NULL) {
        return ANSWER_AGAIN;
    }
    int32_t answer = ANSWER_AGAIN;
    if (check_rival(taking, error) == 0 &&
        sink_formatter_begin(&taking->partition->formatter, &sink->options.shape, taking->place.topic,
                             taking->place.partition, schema, error) == 0) {
        answer = sink->spool != NULL ? take_spooled(taking, error) : take_in_memory(taking, error);
    }
    tell_oddities(taking);
    partition_give(sink, taking->partition);
    return answer;
}

int32_t sink_consume(struct sink *sink, const struct sink_batch *batch)
{
    struct postcard_batch head;
    struct error error;
    struct taking taking = {.sink = sink};

    if (!postcard_topic(batch->topic, batch->topic_size, &taking.place.topic) ||
        !postcard_batch(batch->batch, batch->batch_size, &head) ||
        !postcard_messages(batch->messages, batch->messages_size, &taking.cursor, &taking.count)) {
        log_line(LOG_ERROR, NULL, "a batch can't be read: its buffers of %zu, %zu and %zu bytes aren't postcard",
                 batch->topic_size, batch->batch_size, batch->messages_size);
        return ANSWER_UNREADABLE;
    }
    if (taking.count == 0) {
        return ANSWER_GOOD;
    }
    taking.place.prefix = sink->options.store.prefix;
    taking.place.path_template = sink->options.path_template;
    taking.place.partition = head.partition;
    taking.place.is_folder = sink->options.store.file_root != NULL;
    int32_t answer = take_batch(&taking, head.schema, &error);
    if (answer != ANSWER_GOOD) {
        log_line(LOG_ERROR, NULL, "topic %.*s, partition %" PRId32 ": a batch of %" PRIu64 " records was not taken: %s",
                 taking.place.topic.size < 256 ? (int)taking.place.topic.size : 256, taking.place.topic.bytes,
                 head.partition, taking.count, error.message);
    }
    return answer;
}
