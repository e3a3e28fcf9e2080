/* Records to files, and files up: partition.h. */
#include "worker/connector/partition.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"

#define RETRY_MS        1000
#define SECOND_DELAY_MS 1000

static void perform(struct partition *partition, enum cut_action action);
static void close_if_full(struct partition *partition);

static struct connector *connector_of(const struct partition *partition)
{
    return partition->consumer->connector;
}

static const struct sink_options *options_of(const struct partition *partition)
{
    return &connector_of(partition)->definition->options;
}

static struct mono_ms now_of(const struct partition *partition)
{
    return reactor_now(connector_of(partition)->reactor);
}

static void set_timer(struct partition *partition, struct timer *timer, int64_t delay_ms, void (*fire)(void *))
{
    timer_set(reactor_timers(connector_of(partition)->reactor), timer, (struct mono_ms){now_of(partition).v + delay_ms},
              fire, partition);
}

/* ---- how the file being filled is made: as it is configured, or as it was noted ---- */

static const struct sink_shape *shape_of(const struct partition *partition)
{
    return partition->cut.rebuilding ? &partition->rebuilt.shape : &options_of(partition)->shape;
}

static enum sink_schema schema_of(const struct partition *partition)
{
    return partition->cut.rebuilding ? partition->rebuilt.schema : partition->consumer->topics->schema;
}

static enum on_undecodable undecodable_of(const struct partition *partition)
{
    return partition->cut.rebuilding ? partition->rebuilt.on_undecodable
                                     : connector_of(partition)->definition->on_undecodable;
}

static struct sink_place place_of(const struct partition *partition)
{
    return (struct sink_place){.prefix = options_of(partition)->store.prefix,
                               .path_template = options_of(partition)->path_template,
                               .topic = {partition->topic, strlen(partition->topic)},
                               .partition = partition->number,
                               .is_folder = options_of(partition)->store.file_root != NULL};
}

static bool begin_formatting(struct partition *partition)
{
    struct connector *connector = connector_of(partition);
    struct error error;

    if (connector->formatter_for == partition) {
        return true;
    }
    struct sink_slice topic = {partition->topic, strlen(partition->topic)};
    if (sink_formatter_begin(&connector->formatter, shape_of(partition), topic, partition->number, schema_of(partition),
                             &error) != 0) {
        connector_fail(connector, 1, "%s", error.message);
        return false;
    }
    connector->formatter_for = partition;
    return true;
}

/* The shape may be another from here on. */
static void shape_changes(struct partition *partition)
{
    connector_of(partition)->formatter_for = NULL;
}

/* ---- pausing ---- */

static void set_paused(struct partition *partition, bool paused)
{
    if (partition->paused != paused) {
        partition->paused = paused;
        consumer_pause(partition->consumer, partition, paused);
    }
}

static void hold(struct partition *partition, rd_kafka_message_t *message)
{
    partition->held =
        memory_grow(partition->held, &partition->held_capacity, partition->held_count + 1, sizeof *partition->held);
    partition->held[partition->held_count++] = message;
    set_paused(partition, true);
}

static void drop_held(struct partition *partition)
{
    for (size_t i = 0; i < partition->held_count; i++) {
        rd_kafka_message_destroy(partition->held[i]);
    }
    partition->held_count = 0;
}

/* ---- uploads ---- */

static void uploaded(void *argument, const struct error *error)
{
    struct partition *partition = argument;
    struct connector *connector = connector_of(partition);

    partition->upload = NULL;
    if (error->code != QS_OK) { /* only while stopping: its cut is durable, the next start does it again */
        log_line(LOG_WARN, connector->definition->key, "%s: left to the next start: %s", partition->flight.key,
                 error->message);
        connector->totals.errors++;
        partition->given_up = true;
        return;
    }
    connector->totals.files++;
    connector->totals.bytes += partition->flight_bytes;
    connector->totals.processed += partition->flying.count;
    perform(partition, cut_uploaded(&partition->cut));
}

static void upload_again(void *argument, const struct error *error, uint32_t attempt, int64_t delay_ms)
{
    struct partition *partition = argument;
    struct connector *connector = connector_of(partition);

    connector->totals.errors++;
    log_limited(&partition->trouble, now_of(partition), LOG_WARN, connector->definition->key,
                "%s: attempt %" PRIu32 " failed, again in %" PRId64 " ms: %s", partition->flight.key, attempt, delay_ms,
                error->message);
}

static void upload(struct partition *partition)
{
    struct connector *connector = connector_of(partition);
    struct sink_upload_options options = {
        .key = partition->flight.key,
        .content_type = sink_shape_content_type(&partition->flight.shape),
        .body = &partition->flight_body,
        .max_attempts = 0,
        .second_delay_ms = SECOND_DELAY_MS,
    };

    if (!sink_bucket_body(options_of(partition), &partition->flying.body, &partition->flight_body)) {
        connector_fail(connector, 1, "%s: its MD5 can't be worked out", partition->flight.key);
        return;
    }
    partition->flight_bytes = partition->flying.body.size;
    partition->upload =
        sink_upload_start(connector->reactor, connector->bucket, &options, upload_again, uploaded, partition);
    if (connector->stopping) {
        sink_upload_last(partition->upload);
    }
}

/* ---- actions ---- */

static void again(void *argument)
{
    struct partition *partition = argument;

    perform(partition, cut_again(&partition->cut));
}

static void commit_note(struct partition *partition)
{
    struct error error;
    char *note = cut_note_write(&partition->flight, &error);

    if (note == NULL) {
        connector_fail(connector_of(partition), 2, "%s", error.message);
        return;
    }
    consumer_commit(partition->consumer, partition, partition->cut.flight_start, note);
    free(note);
}

static void asked(void *argument, const struct error *error, const struct head_answer *answer)
{
    struct partition *partition = argument;
    struct connector *connector = connector_of(partition);
    struct error plain = *error;

    (void)answer;
    partition->asked = NULL;
    store_error_drop_key(&plain, partition->rebuilt.key);
    /* A store answers 403 for what is missing, where who asks may not list, and for all, where they may not read. */
    enum cut_object object = error->code == QS_OK                ? CUT_OBJECT_UP
                             : error->code == QS_ERROR_FORBIDDEN ? CUT_OBJECT_UNKNOWN
                                                                 : CUT_OBJECT_ABSENT;
    if (object == CUT_OBJECT_ABSENT && error->code != QS_ERROR_NOT_FOUND) {
        connector->totals.errors++;
        log_limited(&partition->trouble, now_of(partition), LOG_WARN, connector->definition->key,
                    "%s: whether it is there: %s", partition->rebuilt.key, plain.message);
        set_timer(partition, &partition->retry, RETRY_MS, again);
        return;
    }
    if (object == CUT_OBJECT_UNKNOWN) {
        log_line(LOG_WARN, connector->definition->key,
                 "%s: the bucket doesn't tell whether it is there: what the log still has of it goes up under a key of "
                 "its own (%s)",
                 partition->rebuilt.key, plain.message);
    }
    perform(partition, cut_object(&partition->cut, object));
    assignment_advance(partition->consumer);
}

static void perform(struct partition *partition, enum cut_action action)
{
    struct consumer *consumer = partition->consumer;

    switch (action) {
    case CUT_NOTHING:
    case CUT_READ: break;
    case CUT_ASK_OBJECT:
        partition->asked = sink_bucket_head(connector_of(partition)->bucket, partition->rebuilt.key, asked, partition);
        break;
    case CUT_COMMIT_POSITION: consumer_commit(consumer, partition, partition->cut.start, NULL); break;
    case CUT_COMMIT_NOTE: commit_note(partition); break;
    case CUT_COMMIT_END: consumer_commit(consumer, partition, partition->cut.flight_next, NULL); break;
    case CUT_UPLOAD: upload(partition); break;
    }
}

/* ---- files ---- */

/* The file in flight is up and its end committed. */
static void landed(struct partition *partition)
{
    struct connector *connector = connector_of(partition);

    log_line(LOG_DEBUG, connector->definition->key, "%s: %" PRIu64 " records, %" PRIu64 " bytes", partition->flight.key,
             partition->flying.count, partition->flight_bytes);
    open_file_clear(&partition->flying);
    connector->committed = now_of(partition);
    partition->landed = connector->committed;
    partition->since.v = partition->filling.count > 0 ? now_of(partition).v : 0;
}

void partition_committed(struct partition *partition, bool good, const char *why)
{
    struct connector *connector = connector_of(partition);

    if (!good) {
        connector->totals.errors++;
        log_limited(&partition->trouble, now_of(partition), LOG_WARN, connector->definition->key,
                    "%s/%" PRId32 ": a commit failed: %s", partition->topic, partition->number, why);
        if (connector->stopping) {
            partition->given_up = true;
        } else {
            set_timer(partition, &partition->retry, RETRY_MS, again);
        }
        return;
    }
    bool ends = partition->cut.flight == CUT_ADVANCING;
    perform(partition, cut_committed(&partition->cut));
    if (ends) {
        landed(partition);
        close_if_full(partition);
    }
}

static bool name_flight(struct partition *partition, const struct cut *cut, struct error *error)
{
    if (cut->rebuilding) {
        partition->flight = partition->rebuilt;
        return true;
    }
    partition->flight = (struct cut_note){.next = cut->next,
                                          .shape = *shape_of(partition),
                                          .schema = schema_of(partition),
                                          .on_undecodable = undecodable_of(partition)};
    return open_file_key(partition->filling.directory, partition->number, (uint64_t)cut->start, (uint64_t)cut->next - 1,
                         shape_of(partition), partition->flight.key, error) == 0;
}

static void take_off(struct partition *partition)
{
    bool empty = partition->filling.count == 0;
    struct error error;

    timer_cancel(reactor_timers(connector_of(partition)->reactor), &partition->age);
    if (!empty && !name_flight(partition, &partition->cut, &error)) {
        connector_fail(connector_of(partition), 2, "%s", error.message);
        return;
    }
    if (!empty && open_file_finish(&partition->filling, &partition->flight.shape, &error) != 0) {
        connector_fail(connector_of(partition), 1, "%s: %s", partition->flight.key, error.message);
        return;
    }
    partition->flying = partition->filling;
    partition->filling = (struct open_file){0};
    partition->full = false;
    shape_changes(partition);
    perform(partition, cut_close(&partition->cut, empty));
}

/* ---- records ---- */

static void aged(void *argument)
{
    struct partition *partition = argument;

    partition->full = partition->filling.count > 0;
    close_if_full(partition);
}

/* postcard, map<string, bytes>: what the formatter takes (worker/connector/format.h). */
static void add_varint(struct byte_buffer *out, size_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        byte_buffer_add(out, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void read_headers(const rd_kafka_message_t *message, struct byte_buffer *out)
{
    rd_kafka_headers_t *headers = NULL;
    const char *name = NULL;
    const void *value = NULL;
    size_t size = 0;

    byte_buffer_clear(out);
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return;
    }
    add_varint(out, rd_kafka_header_cnt(headers));
    for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        size_t bytes = value == NULL ? 0 : size;
        add_varint(out, strlen(name));
        byte_buffer_add(out, name, strlen(name));
        add_varint(out, bytes);
        byte_buffer_add(out, value, bytes);
    }
}

/* The plugin refuses a time that has no date, and is stopped by it. Here, where nobody looks at what comes, one such
 * record must not keep all behind it from the bucket. */
static uint64_t time_of(struct partition *partition, const rd_kafka_message_t *message)
{
    int64_t timestamp = rd_kafka_message_timestamp(message, NULL);

    if (timestamp > (int64_t)SINK_TIMESTAMP_MAX) {
        log_limited(&partition->odd, now_of(partition), LOG_WARN, connector_of(partition)->definition->key,
                    "%s/%" PRId32 ": offset %" PRId64 ": its time of %" PRId64
                    " ms, after year 9999, is taken for the last of that year",
                    partition->topic, partition->number, message->offset, timestamp);
        return SINK_TIMESTAMP_MAX;
    }
    return timestamp < 0 ? 0 : (uint64_t)timestamp;
}

static struct sink_record record_of(struct partition *partition, const rd_kafka_message_t *message)
{
    struct byte_buffer *headers = &connector_of(partition)->headers;

    if (shape_of(partition)->include_headers) {
        read_headers(message, headers);
    } else {
        byte_buffer_clear(headers);
    }
    return (struct sink_record){.offset = (uint64_t)message->offset,
                                .timestamp_ms = time_of(partition, message),
                                .has_key = message->key != NULL,
                                .payload_null = message->payload == NULL,
                                .key = {message->key, message->key_len},
                                .headers = {headers->bytes, headers->size},
                                .payload = {message->payload, message->len}};
}

/* What is to be done with a record whose payload isn't what its schema says; false: it isn't to be taken in. */
static bool pass_undecodable(struct partition *partition, const struct sink_record *record)
{
    struct connector *connector = connector_of(partition);

    if (record->payload_null || sink_payload_is_valid(&connector->formatter, schema_of(partition), record->payload)) {
        return true;
    }
    switch (undecodable_of(partition)) {
    case UNDECODABLE_BASE64: return true;
    case UNDECODABLE_SKIP:
        connector->totals.filtered++;
        log_limited(&partition->odd, now_of(partition), LOG_WARN, connector->definition->key,
                    "%s/%" PRId32 ": offset %" PRIu64 " is no %s: skipped", partition->topic, partition->number,
                    record->offset, sink_schema_name(schema_of(partition)));
        return false;
    case UNDECODABLE_STOP: break;
    }
    connector_fail(connector, 2, "%s/%" PRId32 ": offset %" PRIu64 " is no %s, and on_undecodable is stop",
                   partition->topic, partition->number, record->offset, sink_schema_name(schema_of(partition)));
    return false;
}

static void opened(struct partition *partition)
{
    int64_t age = options_of(partition)->max_file_age_ms;

    partition->filling.opened = now_of(partition);
    if (partition->since.v == 0) {
        partition->since = partition->filling.opened;
    }
    if (age > 0 && !partition->cut.rebuilding) {
        set_timer(partition, &partition->age, age, aged);
    }
}

enum added { ADDED, NOT_ADDED, NO_ROOM };

static enum added add(struct partition *partition, const struct sink_record *record)
{
    struct connector *connector = connector_of(partition);
    struct sink_place place = place_of(partition);
    enum open_file_added added = OPEN_FILE_ADDED;
    unsigned oddities = 0;
    struct error error;

    int code = open_file_add(&partition->filling, &place, &connector->formatter, record, sink_record_hash(record),
                             &added, &oddities, &error);
    if (code != 0) {
        connector_fail(connector, code == QS_ERROR_NO_MEMORY ? 1 : 2, "%s/%" PRId32 ": offset %" PRIu64 ": %s",
                       partition->topic, partition->number, record->offset, error.message);
        return NOT_ADDED;
    }
    if (oddities != 0) {
        log_limited(&partition->odd, now_of(partition), LOG_WARN, connector->definition->key,
                    "%s/%" PRId32 ": offset %" PRIu64 ": %s", partition->topic, partition->number, record->offset,
                    (oddities & SINK_ODD_HEADERS) != 0 ? "its headers can't be written" : "not valid for its schema");
    }
    if (added == OPEN_FILE_NO_ROOM) {
        return NO_ROOM;
    }
    if (partition->filling.count == 1) {
        opened(partition);
    }
    return ADDED;
}

static void take_in(struct partition *partition, const rd_kafka_message_t *message)
{
    if (!begin_formatting(partition)) {
        return;
    }
    struct sink_record record = record_of(partition, message);
    bool wanted = pass_undecodable(partition, &record);
    enum added added = wanted ? add(partition, &record) : NOT_ADDED;

    if (connector_of(partition)->failed) {
        return;
    }
    if (added == NO_ROOM) {
        partition->full = true;
        return;
    }
    partition->full =
        cut_took(&partition->cut, message->offset) ||
        (!partition->cut.rebuilding && open_file_is_full(&partition->filling, &options_of(partition)->limits));
}

/* True where it is done with; false: the file is complete, and it belongs to the next. */
static bool offer(struct partition *partition, const rd_kafka_message_t *message)
{
    enum cut_verdict verdict = cut_offer(&partition->cut, message->offset);

    if (verdict == CUT_TAKE) {
        take_in(partition, message);
    } else if (verdict == CUT_CLOSE_FIRST) {
        partition->full = true;
    }
    if (partition->full && cut_can_close(&partition->cut)) {
        take_off(partition);
    }
    return verdict == CUT_REPEAT || message->offset < partition->cut.next || connector_of(partition)->failed;
}

void partition_take(struct partition *partition, rd_kafka_message_t *message)
{
    struct connector *connector = connector_of(partition);

    if (partition->cut.state != CUT_READING || connector->stopping || connector->failed) {
        rd_kafka_message_destroy(message);
        return;
    }
    connector->totals.consumed++;
    bool done = false;
    while (!done && partition->held_count == 0 && !partition->full) {
        done = offer(partition, message);
    }
    if (done) {
        rd_kafka_message_destroy(message);
    } else {
        hold(partition, message);
    }
}

/* What was held goes on, as far as there is room. */
static void take_held(struct partition *partition)
{
    size_t taken = 0;

    while (taken < partition->held_count && !partition->full && !connector_of(partition)->failed) {
        if (offer(partition, partition->held[taken])) {
            rd_kafka_message_destroy(partition->held[taken++]);
        }
    }
    partition->held_count -= taken;
    memmove(partition->held, partition->held + taken, partition->held_count * sizeof *partition->held);
    if (partition->held_count == 0 && !partition->full) {
        set_paused(partition, false);
    }
}

static void close_if_full(struct partition *partition)
{
    if (connector_of(partition)->stopping || connector_of(partition)->failed) {
        return;
    }
    if (partition->full && cut_can_close(&partition->cut)) {
        take_off(partition);
    }
    if (partition->held_count > 0) {
        take_held(partition);
    } else if (!partition->full) {
        set_paused(partition, false);
    }
}

void partition_reached(struct partition *partition, int64_t offset)
{
    partition->end = offset;
    if (partition->cut.state == CUT_READING && partition->held_count == 0 && cut_reached(&partition->cut, offset)) {
        partition->full = true;
        close_if_full(partition);
    }
}

/* ---- begin and end ---- */

struct partition *partition_create(struct consumer *consumer, const char *topic, int32_t number)
{
    struct partition *partition = memory_new(1, sizeof *partition);

    partition->consumer = consumer;
    partition->topic = memory_format("%s", topic);
    partition->number = number;
    partition->end = CUT_NO_OFFSET;
    cut_begin(&partition->cut, false);
    return partition;
}

void partition_destroy(struct partition *partition)
{
    struct connector *connector = connector_of(partition);

    consumer_forget(partition->consumer, partition);
    timer_cancel(reactor_timers(connector->reactor), &partition->retry);
    timer_cancel(reactor_timers(connector->reactor), &partition->age);
    if (partition->upload != NULL) {
        sink_upload_cancel(partition->upload);
    }
    if (partition->asked != NULL) {
        sink_bucket_cancel(connector->bucket, partition->asked);
    }
    set_paused(partition, false);
    drop_held(partition);
    free(partition->held);
    open_file_clear(&partition->filling);
    open_file_clear(&partition->flying);
    shape_changes(partition);
    free(partition->topic);
    free(partition);
}

static void say_found(struct partition *partition, const struct cut_found *found, enum cut_finding finding)
{
    struct connector *connector = connector_of(partition);
    const char *key = connector->definition->key;

    switch (finding) {
    case CUT_FOUND_FIRST:
        log_line(LOG_INFO, key, "%s/%" PRId32 ": read from offset %" PRId64 " on, for the first time", partition->topic,
                 partition->number, partition->cut.start);
        break;
    case CUT_FOUND_POSITION:
        log_line(LOG_DEBUG, key, "%s/%" PRId32 ": goes on at offset %" PRId64, partition->topic, partition->number,
                 partition->cut.start);
        break;
    case CUT_FOUND_FILE: log_line(LOG_INFO, key, "%s: rebuilt, as it was begun with", partition->rebuilt.key); break;
    case CUT_FOUND_TORN_FILE:
    case CUT_FOUND_GAP:
        connector->totals.lost += (uint64_t)(found->low - found->committed);
        log_line(LOG_ERROR, key,
                 "%s/%" PRId32 ": offsets %" PRId64 " to %" PRId64 " were deleted from the log before they were read",
                 partition->topic, partition->number, found->committed, found->low - 1);
        break;
    case CUT_FOUND_NEW_LOG:
        log_line(LOG_ERROR, key,
                 "%s/%" PRId32 ": the log ends at offset %" PRId64 ", before the committed %" PRId64
                 ": the topic was created again, and is read from offset %" PRId64 " on",
                 partition->topic, partition->number, found->high, found->committed, found->low);
        break;
    }
}

void partition_resolve(struct partition *partition, const struct resolved_partition *found)
{
    struct connector *connector = connector_of(partition);
    enum cut_note_kind kind = cut_note_read(found->note, found->note_size, &partition->rebuilt);
    enum cut_finding finding;

    if (kind == CUT_NOTE_UNREADABLE || (kind == CUT_NOTE_FILE && partition->rebuilt.next <= found->committed)) {
        connector_fail(connector, 2,
                       "%s/%" PRId32 ": the note at offset %" PRId64
                       " is of another version: expected one that this version writes",
                       partition->topic, partition->number, found->committed);
        return;
    }
    struct cut_found place = {.committed = found->committed,
                              .has_note = kind == CUT_NOTE_FILE && found->committed != CUT_NO_OFFSET,
                              .note_next = partition->rebuilt.next,
                              .low = found->low,
                              .high = found->high,
                              .reset_to_end = partition->consumer->topics->from_end};
    cut_begin(&partition->cut, partition->consumer->noted == NOTED);
    enum cut_action action = cut_resolved(&partition->cut, &place, &finding);
    say_found(partition, &place, finding);
    perform(partition, action);
}

void partition_stop(struct partition *partition)
{
    struct reactor *reactor = connector_of(partition)->reactor;

    timer_cancel(reactor_timers(reactor), &partition->age);
    if (timer_is_set(&partition->retry)) {
        timer_cancel(reactor_timers(reactor), &partition->retry);
        partition->given_up = true;
    }
    drop_held(partition);
    open_file_clear(&partition->filling);
    if (partition->upload != NULL) {
        sink_upload_last(partition->upload);
    }
}

bool partition_is_idle(const struct partition *partition)
{
    return partition->given_up || partition->cut.state != CUT_READING || partition->cut.flight == CUT_GROUNDED;
}

int64_t partition_late_ms(const struct partition *partition, struct mono_ms now)
{
    bool waits = partition->full || partition->cut.flight != CUT_GROUNDED ||
                 (partition->filling.count > 0 && options_of(partition)->max_file_age_ms > 0);

    return partition->since.v > 0 && waits ? now.v - partition->since.v : 0;
}

struct mono_ms partition_fresh(const struct partition *partition, struct mono_ms now)
{
    bool through = partition->cut.state == CUT_READING && partition->end >= partition->cut.next;

    return through && partition_late_ms(partition, now) == 0 ? now : partition->landed;
}
