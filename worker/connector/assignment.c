/*
 * Rebalances (consumer.h). An assignment is resolved, its positions are committed, and then it is answered with the
 * offsets to read from. Whether the broker gives notes back is asked with the first partition of the first one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/partition.h"

#define RETRY_MS 1000
/* A log that ends before what is committed was created again, and is read from its start: believed when it is seen so
 * often, over ten seconds. */
#define DOUBT_MS   3500
#define DOUBTS_MAX 3

/* ---- answers ---- */

static bool is_cooperative(const struct consumer *consumer)
{
    const char *protocol = rd_kafka_rebalance_protocol(consumer->kafka);

    return protocol != NULL && strcmp(protocol, "COOPERATIVE") == 0;
}

static void answered(struct consumer *consumer, rd_kafka_resp_err_t code, rd_kafka_error_t *error)
{
    if (error != NULL) {
        connector_fail(consumer->connector, 1, "the assignment: %s", rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
    } else if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        connector_fail(consumer->connector, 1, "the assignment: %s", rd_kafka_err2str(code));
    }
}

static void answer_assign(struct consumer *consumer, const rd_kafka_topic_partition_list_t *list)
{
    consumer_can_read(consumer);
    if (is_cooperative(consumer)) {
        answered(consumer, RD_KAFKA_RESP_ERR_NO_ERROR, rd_kafka_incremental_assign(consumer->kafka, list));
    } else {
        answered(consumer, rd_kafka_assign(consumer->kafka, list), NULL);
    }
}

static void answer_revoke(struct consumer *consumer, const rd_kafka_topic_partition_list_t *list)
{
    if (is_cooperative(consumer)) {
        answered(consumer, RD_KAFKA_RESP_ERR_NO_ERROR, rd_kafka_incremental_unassign(consumer->kafka, list));
    } else {
        answered(consumer, rd_kafka_assign(consumer->kafka, NULL), NULL);
    }
}

static void list_free(rd_kafka_topic_partition_list_t **list)
{
    if (*list != NULL) {
        rd_kafka_topic_partition_list_destroy(*list);
        *list = NULL;
    }
}

/* Every partition of the list may be read; fills in from where. */
static bool may_read(const struct consumer *consumer, rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++) {
        const struct partition *partition = consumer_find(consumer, list->elems[i].topic, list->elems[i].partition);
        if (partition == NULL || partition->cut.state != CUT_READING) {
            return false;
        }
        list->elems[i].offset = partition->cut.next;
    }
    return true;
}

void assignment_advance(struct consumer *consumer)
{
    if (consumer->revoking != NULL && consumer->commits == 0) {
        rd_kafka_topic_partition_list_t *list = consumer->revoking;
        consumer->revoking = NULL;
        answer_revoke(consumer, list);
        list_free(&list);
    }
    if (consumer->assigning != NULL && may_read(consumer, consumer->assigning)) {
        rd_kafka_topic_partition_list_t *list = consumer->assigning;
        consumer->assigning = NULL;
        answer_assign(consumer, list);
        list_free(&list);
    }
}

/* ---- partitions come and go ---- */

static size_t place_of(const struct consumer *consumer, const char *topic, int32_t number)
{
    size_t low = 0;
    size_t high = consumer->partition_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct partition *partition = consumer->partitions[middle];
        int order = strcmp(partition->topic, topic);
        order = order != 0 ? order : (partition->number > number) - (partition->number < number);
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return low;
}

struct partition *consumer_find(const struct consumer *consumer, const char *topic, int32_t number)
{
    size_t place = place_of(consumer, topic, number);
    struct partition *partition = place < consumer->partition_count ? consumer->partitions[place] : NULL;

    return partition != NULL && partition->number == number && strcmp(partition->topic, topic) == 0 ? partition : NULL;
}

static void drop(struct consumer *consumer, const char *topic, int32_t number)
{
    struct partition *partition = consumer_find(consumer, topic, number);

    if (partition != NULL) {
        size_t place = place_of(consumer, topic, number);
        consumer->partition_count--;
        memmove(&consumer->partitions[place], &consumer->partitions[place + 1],
                (consumer->partition_count - place) * sizeof *consumer->partitions);
        consumer->last = NULL;
        partition_destroy(partition);
    }
}

/* A topic whose files would get the keys of this one's, and replace them; NULL: there is none. */
static const char *find_rival(const struct connector *connector, const char *topic, int32_t number)
{
    const char *text = connector->definition->options.path_template;
    struct sink_slice name = {topic, strlen(topic)};

    for (size_t i = 0; i < connector->consumer_count; i++) {
        const struct consumer *consumer = connector->consumers[i];
        for (size_t j = 0; j < consumer->partition_count; j++) {
            const struct partition *other = consumer->partitions[j];
            if (other->number == number && strcmp(other->topic, topic) != 0 &&
                !path_template_parts(text, name, (struct sink_slice){other->topic, strlen(other->topic)})) {
                return other->topic;
            }
        }
    }
    return NULL;
}

/* Once for a topic: its partitions stand side by side. */
static void say_left_out(const struct consumer *consumer, size_t place)
{
    const struct partition *partition = consumer->partitions[place];
    bool said = place > 0 && strcmp(consumer->partitions[place - 1]->topic, partition->topic) == 0;

    said = said || (place + 1 < consumer->partition_count &&
                    strcmp(consumer->partitions[place + 1]->topic, partition->topic) == 0);
    if (partition_is_left_out(partition) && !said) {
        log_line(LOG_ERROR, consumer->connector->definition->key, "the topic is left out: %s", partition->left_out);
    }
}

static void add(struct consumer *consumer, const char *topic, int32_t number)
{
    drop(consumer, topic, number);
    const char *rival = find_rival(consumer->connector, topic, number);
    if (rival != NULL) {
        connector_fail(consumer->connector, 2,
                       "path_template '%.200s' makes the same keys for the topics %.200s and %.200s, so that files of "
                       "one replace the other's: expected {topic} in it",
                       consumer->connector->definition->options.path_template, rival, topic);
    }
    size_t place = place_of(consumer, topic, number);
    consumer->partitions = memory_grow(consumer->partitions, &consumer->partition_capacity,
                                       consumer->partition_count + 1, sizeof *consumer->partitions);
    memmove(&consumer->partitions[place + 1], &consumer->partitions[place],
            (consumer->partition_count - place) * sizeof *consumer->partitions);
    consumer->partitions[place] = partition_create(consumer, topic, number);
    consumer->partition_count++;
    consumer->last = NULL;
    say_left_out(consumer, place);
}

void assignment_drop_all(struct consumer *consumer)
{
    list_free(&consumer->assigning);
    while (consumer->partition_count > 0) {
        const struct partition *partition = consumer->partitions[consumer->partition_count - 1];
        drop(consumer, partition->topic, partition->number);
    }
}

/* ---- resolving ---- */

static void ask(void *argument)
{
    struct consumer *consumer = argument;

    if (consumer->assigning != NULL) {
        resolver_ask(consumer->resolver, consumer->assigning);
    }
}

static void ask_again(struct consumer *consumer, int64_t delay_ms)
{
    struct mono_ms due = {reactor_now(consumer->connector->reactor).v + delay_ms};

    timer_set(reactor_timers(consumer->connector->reactor), &consumer->retry, due, ask, consumer);
}

static bool is_blank(const struct resolved_partition *found)
{
    return found->note_size == strlen(CUT_NOTE_BLANK) && memcmp(found->note, CUT_NOTE_BLANK, found->note_size) == 0;
}

static void do_without_notes(struct consumer *consumer)
{
    consumer->noted = NOT_NOTED;
    log_line(LOG_WARN, consumer->connector->definition->key,
             "the broker gives no commit metadata back: files are cut by size and count alone");
}

/* Whether notes are given back is known afterwards, or asked: then false, and the whole is resolved once more. */
static bool know_noted(struct consumer *consumer, const struct resolution *resolution)
{
    struct cut_note note;

    for (size_t i = 0; i < resolution->count && consumer->noted == NOTED_UNKNOWN; i++) {
        const struct resolved_partition *found = &resolution->partitions[i];
        if (is_blank(found) || cut_note_read(found->note, found->note_size, &note) != CUT_NOTE_NONE) {
            consumer->noted = NOTED;
        }
    }
    if (consumer->noted == NOTED_UNKNOWN && consumer->probing) {
        do_without_notes(consumer);
    }
    consumer->probing = false;
    if (consumer->noted != NOTED_UNKNOWN || resolution->count == 0) {
        return true;
    }
    const struct resolved_partition *first = &resolution->partitions[0];
    int64_t position = consumer->topics->from_end ? first->high : first->low;
    consumer->probing = true;
    consumer_commit(consumer, consumer_find(consumer, first->topic, first->partition),
                    first->committed == CUT_NO_OFFSET ? position : first->committed, CUT_NOTE_BLANK);
    return false;
}

void assignment_probed(struct consumer *consumer, rd_kafka_resp_err_t code)
{
    if (code == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE) {
        do_without_notes(consumer);
        ask(consumer);
    } else if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        ask(consumer);
    } else {
        consumer->probing = false;
        ask_again(consumer, RETRY_MS);
    }
}

static bool ends_early(const struct resolved_partition *found)
{
    struct cut_note note = {0};
    bool has_note = cut_note_read(found->note, found->note_size, &note) == CUT_NOTE_FILE;
    struct cut_found place = {.committed = found->committed,
                              .has_note = has_note,
                              .note_next = note.next,
                              .low = found->low,
                              .high = found->high};

    return cut_ends_early(&place);
}

/* Whether the whole is resolved once more before it is believed. */
static bool is_doubted(struct consumer *consumer, const struct resolution *resolution)
{
    for (size_t i = 0; i < resolution->count && consumer->doubts < DOUBTS_MAX; i++) {
        const struct resolved_partition *found = &resolution->partitions[i];
        if (ends_early(found)) {
            consumer->doubts++;
            log_line(LOG_WARN, consumer->connector->definition->key,
                     "%s/%" PRId32 ": the log ends at offset %" PRId64 ", before the committed %" PRId64
                     ": it is looked at again",
                     found->topic, found->partition, found->high, found->committed);
            ask_again(consumer, DOUBT_MS);
            return true;
        }
    }
    return false;
}

void assignment_resolved(struct consumer *consumer, struct resolution *resolution)
{
    struct connector *connector = consumer->connector;

    if (consumer->assigning == NULL || connector->stopping) {
        return;
    }
    if (resolution->error.code != QS_OK) {
        connector->totals.errors++;
        consumer_note(consumer, "positions could not be resolved", resolution->error.message);
        log_limited(&consumer->trouble, reactor_now(connector->reactor), LOG_WARN, connector->definition->key,
                    "positions could not be resolved: %s", resolution->error.message);
        ask_again(consumer, RETRY_MS);
        return;
    }
    if (!know_noted(consumer, resolution) || is_doubted(consumer, resolution)) {
        return;
    }
    if (consumer->noted == NOT_NOTED && connector->definition->options.max_file_age_ms > 0) {
        connector_fail(connector, 2,
                       "max_file_age: expected to be absent with a broker that gives no commit metadata back");
        return;
    }
    for (size_t i = 0; i < resolution->count && !connector->failed; i++) {
        struct partition *partition =
            consumer_find(consumer, resolution->partitions[i].topic, resolution->partitions[i].partition);
        if (partition != NULL && partition->cut.state == CUT_RESOLVING) {
            partition_resolve(partition, &resolution->partitions[i]);
        }
    }
    assignment_advance(consumer);
}

/* ---- what librdkafka says ---- */

static void assigned(struct consumer *consumer, const rd_kafka_topic_partition_list_t *list)
{
    list_free(&consumer->assigning);
    if (list->cnt == 0 || consumer->connector->stopping) {
        rd_kafka_topic_partition_list_t *nothing = rd_kafka_topic_partition_list_new(0);
        answer_assign(consumer, nothing);
        list_free(&nothing);
        return;
    }
    for (int i = 0; i < list->cnt; i++) {
        add(consumer, list->elems[i].topic, list->elems[i].partition);
    }
    consumer->assigning = rd_kafka_topic_partition_list_copy(list);
    consumer->probing = false;
    consumer->doubts = 0;
    ask(consumer);
}

static void revoked(struct consumer *consumer, const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++) {
        drop(consumer, list->elems[i].topic, list->elems[i].partition);
    }
    list_free(&consumer->assigning); /* one that was never answered is over */
    if (consumer->closing) {
        answer_revoke(consumer, list);
        return;
    }
    list_free(&consumer->revoking);
    consumer->revoking = rd_kafka_topic_partition_list_copy(list);
    assignment_advance(consumer);
}

void assignment_rebalance(rd_kafka_t *kafka, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list,
                          void *argument)
{
    struct consumer *consumer = argument;
    const char *key = consumer->connector->definition->key;

    switch (code) {
    case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS:
        log_line(LOG_INFO, key, "%d partition%s assigned", list->cnt, list->cnt == 1 ? "" : "s");
        assigned(consumer, list);
        break;
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS:
        log_line(LOG_INFO, key, "%d partition%s %s", list->cnt, list->cnt == 1 ? "" : "s",
                 rd_kafka_assignment_lost(kafka) ? "lost" : "revoked");
        revoked(consumer, list);
        break;
    default:
        log_line(LOG_WARN, key, "rebalance: %s", rd_kafka_err2str(code));
        assignment_drop_all(consumer);
        (void)rd_kafka_assign(kafka, NULL);
        break;
    }
}
