/* Records, and the file that they fill: partition.h. A record for which there is no room is held, and the partition paused. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/partition_internal.h"

/* ---- what is held ---- */

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

void partition_drop_held(struct partition *partition)
{
    for (size_t i = 0; i < partition->held_count; i++) {
        rd_kafka_message_destroy(partition->held[i]);
    }
    partition->held_count = 0;
}

void partition_release(struct partition *partition)
{
    set_paused(partition, false);
    partition_drop_held(partition);
    free(partition->held);
}

/* ---- a message as a record ---- */

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
        log_limited(&partition->odd, partition_now(partition), LOG_WARN,
                    partition_connector(partition)->definition->key,
                    "%s/%" PRId32 ": offset %" PRId64 ": its time of %" PRId64
                    " ms, after year 9999, is taken for the last of that year",
                    partition->topic, partition->number, message->offset, timestamp);
        return SINK_TIMESTAMP_MAX;
    }
    return timestamp < 0 ? 0 : (uint64_t)timestamp;
}

static struct sink_record record_of(struct partition *partition, const rd_kafka_message_t *message)
{
    struct byte_buffer *headers = &partition_connector(partition)->headers;

    if (partition_shape(partition)->include_headers) {
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

/* ---- a record into the file ---- */

static bool begin_formatting(struct partition *partition)
{
    struct connector *connector = partition_connector(partition);
    struct error error;

    if (connector->formatter_for == partition) {
        return true;
    }
    struct sink_slice topic = {partition->topic, strlen(partition->topic)};
    if (sink_formatter_begin(&connector->formatter, partition_shape(partition), topic, partition->number,
                             partition_schema(partition), &error) != 0) {
        connector_fail(connector, 1, "%s", error.message);
        return false;
    }
    connector->formatter_for = partition;
    return true;
}

void partition_shape_changes(const struct partition *partition)
{
    partition_connector(partition)->formatter_for = NULL;
}

static struct sink_place place_of(const struct partition *partition)
{
    return (struct sink_place){.prefix = partition_options(partition)->store.prefix,
                               .path_template = partition_options(partition)->path_template,
                               .topic = {partition->topic, strlen(partition->topic)},
                               .partition = partition->number,
                               .is_folder = partition_options(partition)->store.file_root != NULL};
}

/* What is to be done with a record whose payload isn't what its schema says; false: it isn't to be taken in. */
static bool pass_undecodable(struct partition *partition, const struct sink_record *record)
{
    struct connector *connector = partition_connector(partition);

    if (record->payload_null ||
        sink_payload_is_valid(&connector->formatter, partition_schema(partition), record->payload)) {
        return true;
    }
    switch (partition_undecodable(partition)) {
    case UNDECODABLE_BASE64: return true;
    case UNDECODABLE_SKIP:
        connector->totals.filtered++;
        log_limited(&partition->odd, partition_now(partition), LOG_WARN, connector->definition->key,
                    "%s/%" PRId32 ": offset %" PRIu64 " is no %s: skipped", partition->topic, partition->number,
                    record->offset, sink_schema_name(partition_schema(partition)));
        return false;
    case UNDECODABLE_STOP: break;
    }
    connector_fail(connector, 2, "%s/%" PRId32 ": offset %" PRIu64 " is no %s, and on_undecodable is stop",
                   partition->topic, partition->number, record->offset, sink_schema_name(partition_schema(partition)));
    return false;
}

static void aged(void *argument)
{
    struct partition *partition = argument;

    partition->full = partition->filling.count > 0;
    partition_go_on(partition);
}

static void opened(struct partition *partition)
{
    int64_t age = partition_options(partition)->max_file_age_ms;

    partition->filling.opened = partition_now(partition);
    if (partition->since.v == 0) {
        partition->since = partition->filling.opened;
    }
    if (age > 0 && !partition->cut.rebuilding) {
        partition_set_timer(partition, &partition->age, age, aged);
    }
}

enum added { ADDED, NOT_ADDED, NO_ROOM };

static enum added add(struct partition *partition, const struct sink_record *record)
{
    struct connector *connector = partition_connector(partition);
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
        log_limited(&partition->odd, partition_now(partition), LOG_WARN, connector->definition->key,
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

    if (partition_connector(partition)->failed) {
        return;
    }
    if (added == NO_ROOM) {
        partition->full = true;
        return;
    }
    partition->full =
        cut_took(&partition->cut, message->offset) ||
        (!partition->cut.rebuilding && open_file_is_full(&partition->filling, &partition_options(partition)->limits));
}

/* ---- records as they come ---- */

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
        partition_take_off(partition);
    }
    return verdict == CUT_REPEAT || message->offset < partition->cut.next || partition_connector(partition)->failed;
}

/* That there is one is all that is to be known. */
static void leave_out(struct partition *partition, rd_kafka_message_t *message)
{
    partition->since = partition->since.v > 0 ? partition->since : partition_now(partition);
    set_paused(partition, true);
    rd_kafka_message_destroy(message);
}

void partition_take(struct partition *partition, rd_kafka_message_t *message)
{
    struct connector *connector = partition_connector(partition);

    if (partition_is_left_out(partition)) {
        leave_out(partition, message);
        return;
    }
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

    while (taken < partition->held_count && !partition->full && !partition_connector(partition)->failed) {
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

void partition_go_on(struct partition *partition)
{
    if (partition_connector(partition)->stopping || partition_connector(partition)->failed) {
        return;
    }
    if (partition->full && cut_can_close(&partition->cut)) {
        partition_take_off(partition);
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
    if (partition_is_left_out(partition)) {
        return;
    }
    if (partition->cut.state == CUT_READING && partition->held_count == 0 && cut_reached(&partition->cut, offset)) {
        partition->full = true;
        partition_go_on(partition);
    }
}
