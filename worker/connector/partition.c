/* A partition's place in the log, and its file in flight: partition.h. How files are filled is in partition_fill.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/partition_internal.h"
#include "worker/connector/path_template.h"

#define RETRY_MS        1000
#define SECOND_DELAY_MS 1000

static void perform(struct partition *partition, enum cut_action action);

/* ---- uploads ---- */

static void uploaded(void *argument, const struct error *error)
{
    struct partition *partition = argument;
    struct connector *connector = partition_connector(partition);

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
    struct connector *connector = partition_connector(partition);

    connector->totals.errors++;
    log_limited(&partition->trouble, partition_now(partition), LOG_WARN, connector->definition->key,
                "%s: attempt %" PRIu32 " failed, again in %" PRId64 " ms: %s", partition->flight.key, attempt, delay_ms,
                error->message);
}

static void upload(struct partition *partition)
{
    struct connector *connector = partition_connector(partition);
    struct sink_upload_options options = {
        .key = partition->flight.key,
        .content_type = sink_shape_content_type(&partition->flight.shape),
        .body = &partition->flight_body,
        .max_attempts = 0,
        .second_delay_ms = SECOND_DELAY_MS,
    };

    if (!sink_bucket_body(partition_options(partition), &partition->flying.body, &partition->flight_body)) {
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
        connector_fail(partition_connector(partition), 2, "%s", error.message);
        return;
    }
    consumer_commit(partition->consumer, partition, partition->cut.flight_start, note);
    free(note);
}

static void asked(void *argument, const struct error *error, const struct head_answer *answer)
{
    struct partition *partition = argument;
    struct connector *connector = partition_connector(partition);
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
        log_limited(&partition->trouble, partition_now(partition), LOG_WARN, connector->definition->key,
                    "%s: whether it is there: %s", partition->rebuilt.key, plain.message);
        partition_set_timer(partition, &partition->retry, RETRY_MS, again);
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
        partition->asked =
            sink_bucket_head(partition_connector(partition)->bucket, partition->rebuilt.key, asked, partition);
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
    struct connector *connector = partition_connector(partition);

    log_line(LOG_DEBUG, connector->definition->key, "%s: %" PRIu64 " records, %" PRIu64 " bytes", partition->flight.key,
             partition->flying.count, partition->flight_bytes);
    open_file_clear(&partition->flying);
    connector->committed = partition_now(partition);
    partition->landed = connector->committed;
    partition->since.v = partition->filling.count > 0 ? partition_now(partition).v : 0;
}

void partition_committed(struct partition *partition, bool good, const char *why)
{
    struct connector *connector = partition_connector(partition);

    if (!good) {
        connector->totals.errors++;
        log_limited(&partition->trouble, partition_now(partition), LOG_WARN, connector->definition->key,
                    "%s/%" PRId32 ": a commit failed: %s", partition->topic, partition->number, why);
        if (connector->stopping) {
            partition->given_up = true;
        } else {
            partition_set_timer(partition, &partition->retry, RETRY_MS, again);
        }
        return;
    }
    bool ends = partition->cut.flight == CUT_ADVANCING;
    perform(partition, cut_committed(&partition->cut));
    if (ends) {
        landed(partition);
        partition_go_on(partition);
    }
}

static bool name_flight(struct partition *partition, const struct cut *cut, struct error *error)
{
    if (cut->rebuilding) {
        partition->flight = partition->rebuilt;
        return true;
    }
    partition->flight = (struct cut_note){.next = cut->next,
                                          .shape = *partition_shape(partition),
                                          .schema = partition_schema(partition),
                                          .on_undecodable = partition_undecodable(partition)};
    return open_file_key(partition->filling.directory, partition->number, (uint64_t)cut->start, (uint64_t)cut->next - 1,
                         partition_shape(partition), partition->flight.key, error) == 0;
}

void partition_take_off(struct partition *partition)
{
    bool empty = partition->filling.count == 0;
    struct error error;

    timer_cancel(reactor_timers(partition_connector(partition)->reactor), &partition->age);
    if (!empty && !name_flight(partition, &partition->cut, &error)) {
        connector_fail(partition_connector(partition), 2, "%s", error.message);
        return;
    }
    if (!empty && open_file_finish(&partition->filling, &partition->flight.shape, &error) != 0) {
        connector_fail(partition_connector(partition), 1, "%s: %s", partition->flight.key, error.message);
        return;
    }
    partition->flying = partition->filling;
    partition->filling = (struct open_file){0};
    partition->full = false;
    partition_shape_changes(partition);
    perform(partition, cut_close(&partition->cut, empty));
}

/* ---- begin and end ---- */

/* The template's fault with a topic's name is there before any record is. */
static char *why_left_out(const struct partition *partition)
{
    struct sink_slice topic = {partition->topic, strlen(partition->topic)};
    char key[SINK_KEY_MAX + 1];
    struct error error;
    int code = path_template_render(partition_options(partition)->path_template, topic, partition->number, 0, key,
                                    sizeof key, &error);

    return code == 0 ? NULL : memory_copy_text(error.message);
}

struct partition *partition_create(struct consumer *consumer, const char *topic, int32_t number)
{
    struct partition *partition = memory_new(1, sizeof *partition);

    partition->consumer = consumer;
    partition->topic = memory_format("%s", topic);
    partition->number = number;
    partition->end = CUT_NO_OFFSET;
    partition->left_out = why_left_out(partition);
    cut_begin(&partition->cut, false);
    return partition;
}

bool partition_is_left_out(const struct partition *partition)
{
    return partition->left_out != NULL;
}

void partition_destroy(struct partition *partition)
{
    struct connector *connector = partition_connector(partition);

    consumer_forget(partition->consumer, partition);
    timer_cancel(reactor_timers(connector->reactor), &partition->retry);
    timer_cancel(reactor_timers(connector->reactor), &partition->age);
    if (partition->upload != NULL) {
        sink_upload_cancel(partition->upload);
    }
    if (partition->asked != NULL) {
        sink_bucket_cancel(connector->bucket, partition->asked);
    }
    partition_release(partition);
    open_file_clear(&partition->filling);
    open_file_clear(&partition->flying);
    partition_shape_changes(partition);
    free(partition->topic);
    free(partition->left_out);
    free(partition);
}

static void say_found(struct partition *partition, const struct cut_found *found, enum cut_finding finding)
{
    struct connector *connector = partition_connector(partition);
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
    struct connector *connector = partition_connector(partition);
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
    struct reactor *reactor = partition_connector(partition)->reactor;

    timer_cancel(reactor_timers(reactor), &partition->age);
    if (timer_is_set(&partition->retry)) {
        timer_cancel(reactor_timers(reactor), &partition->retry);
        partition->given_up = true;
    }
    partition_drop_held(partition);
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
    bool waits = partition->full || partition_is_left_out(partition) || partition->cut.flight != CUT_GROUNDED ||
                 (partition->filling.count > 0 && partition_options(partition)->max_file_age_ms > 0);

    return partition->since.v > 0 && waits ? now.v - partition->since.v : 0;
}

struct mono_ms partition_fresh(const struct partition *partition, struct mono_ms now)
{
    bool through = partition->cut.state == CUT_READING && partition->end >= partition->cut.next;

    return through && partition_late_ms(partition, now) == 0 ? now : partition->landed;
}
