/* A member of a consumer group on the worker's loop: consumer.h. */
#include "worker/connector/consumer.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "worker/connector/group.h"
#include "worker/connector/partition.h"

#define TICK_MIN_MS 10
#define TICK_MAX_MS 1000
#define LOOK_MS     "5000" /* far below the least limit of /healthz */
#define KIBIBYTE    1024u
#define QUEUE_MIN   1024u  /* KiB that librdkafka may fetch ahead */
#define QUEUE_MAX   65536u /* its own default */

struct commit_call {
    struct consumer *consumer;
    struct partition *partition; /* NULL: it is gone */
    bool probe;
    struct commit_call *next;
};

/* All calls under way in this process: few, and each must find its partition gone. */
static struct commit_call *commit_calls;

void connector_fail(struct connector *connector, int exit_code, const char *format, ...)
{
    va_list arguments;

    if (connector->failed) {
        return;
    }
    connector->failed = true;
    connector->exit_code = exit_code;
    va_start(arguments, format);
    (void)vsnprintf(connector->failure, sizeof connector->failure, format, arguments);
    va_end(arguments);
}

/* ---- commits ---- */

static void unlink_call(const struct commit_call *call)
{
    struct commit_call **at = &commit_calls;

    while (*at != call) {
        at = &(*at)->next;
    }
    *at = call->next;
}

void consumer_commit(struct consumer *consumer, struct partition *partition, int64_t offset, const char *note)
{
    struct commit_call *call = memory_new(1, sizeof *call);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *element = rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);

    *call = (struct commit_call){consumer, partition, consumer->probing, commit_calls};
    commit_calls = call;
    element->offset = offset;
    if (note != NULL) {
        element->metadata = memory_copy(note, strlen(note)); /* the list's to free */
        element->metadata_size = strlen(note);
    }
    consumer->commits++;
    rd_kafka_resp_err_t code = rd_kafka_commit_queue(consumer->kafka, list, consumer->replies, NULL, call);
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) { /* then no answer comes, and none is to be waited for */
        unlink_call(call);
        free(call);
        consumer->commits--;
        connector_fail(consumer->connector, 1, "a commit could not be sent: %s", rd_kafka_err2str(code));
    }
}

void consumer_forget(const struct consumer *consumer, const struct partition *partition)
{
    for (struct commit_call *call = commit_calls; call != NULL; call = call->next) {
        if (call->consumer == consumer && call->partition == partition) {
            call->partition = NULL;
        }
    }
}

static void take_reply(struct consumer *consumer, rd_kafka_event_t *event)
{
    struct commit_call *call = rd_kafka_event_opaque(event);
    const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);

    if (code == RD_KAFKA_RESP_ERR_NO_ERROR && list != NULL && list->cnt > 0) {
        code = list->elems[0].err;
    }
    bool good = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    struct partition *partition = call->partition;
    bool probe = call->probe;
    unlink_call(call);
    free(call);
    consumer->commits--;
    if (partition != NULL && probe) {
        assignment_probed(consumer, code);
    } else if (partition != NULL) {
        partition_committed(partition, good, rd_kafka_err2str(code));
    }
    assignment_advance(consumer);
}

static void take_replies(struct consumer *consumer)
{
    rd_kafka_event_t *event;

    while ((event = rd_kafka_queue_poll(consumer->replies, 0)) != NULL) {
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT) {
            take_reply(consumer, event);
        }
        rd_kafka_event_destroy(event);
    }
}

/* ---- whether it can read ---- */

void consumer_note(struct consumer *consumer, const char *what, const char *why)
{
    (void)snprintf(consumer->why, sizeof consumer->why, "%s: %s", what, why);
}

void consumer_can_read(struct consumer *consumer)
{
    consumer->blocked.v = 0;
    consumer->why[0] = '\0';
    consumer->refused = false;
}

/* One that has no partitions because others have them all, or because there is no topic yet, lacks nothing. */
static void stand(struct consumer *consumer, enum group_standing standing)
{
    static const char *const lacks[] = {[GROUP_AWAY] = "the group's coordinator is not reached",
                                        [GROUP_OUTSIDE] = "the group can't be joined",
                                        [GROUP_JOINING] = "no partitions are assigned yet"};

    if (standing == GROUP_UNTOLD || standing == GROUP_MEMBER || (standing == GROUP_OUTSIDE && !consumer->refused)) {
        consumer_can_read(consumer);
    } else {
        consumer->blocked = consumer->blocked.v > 0 ? consumer->blocked : reactor_now(consumer->connector->reactor);
        if (consumer->why[0] == '\0') {
            consumer_note(consumer, "kafka", lacks[standing]);
        }
    }
}

static int take_statistics(rd_kafka_t *kafka, char *statistics, size_t size, void *argument)
{
    (void)kafka;
    stand(argument, group_read(statistics, size));
    return 0; /* librdkafka frees them */
}

/* Of the group, or of a topic that is named. */
static bool is_refusal(const rd_kafka_message_t *message)
{
    return message->rkt == NULL || message->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
}

/* ---- records ---- */

static struct partition *partition_of(struct consumer *consumer, const rd_kafka_message_t *message)
{
    const char *topic = message->rkt == NULL ? "" : rd_kafka_topic_name(message->rkt);
    struct partition *last = consumer->last;

    if (last == NULL || last->number != message->partition || strcmp(last->topic, topic) != 0) {
        consumer->last = consumer_find(consumer, topic, message->partition);
    }
    return consumer->last;
}

static void take_trouble(struct consumer *consumer, const rd_kafka_message_t *message)
{
    struct connector *connector = consumer->connector;

    if (message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
        /* What was to be read next is not in the log: a fresh start resolves where to go on, and says what is lost. */
        connector_fail(connector, 1, "%s/%d: %s", message->rkt == NULL ? "?" : rd_kafka_topic_name(message->rkt),
                       (int)message->partition, rd_kafka_message_errstr(message));
        return;
    }
    if (is_refusal(message)) {
        consumer->refused = true;
        consumer_note(consumer, "kafka", rd_kafka_message_errstr(message));
    }
    log_limited(&consumer->trouble, reactor_now(connector->reactor), LOG_WARN, connector->definition->key, "%s",
                rd_kafka_message_errstr(message));
}

static void take_message(struct consumer *consumer, rd_kafka_message_t *message)
{
    struct partition *partition = partition_of(consumer, message);

    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR && partition != NULL) {
        partition_take(partition, message);
        return;
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && partition != NULL) {
        partition_reached(partition, message->offset);
    } else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        take_trouble(consumer, message);
    }
    rd_kafka_message_destroy(message);
}

static void take_resolution(struct consumer *consumer)
{
    struct resolution resolution;

    if (resolver_take(consumer->resolver, &resolution)) {
        assignment_resolved(consumer, &resolution);
        resolution_free(&resolution);
    }
}

void consumer_run(struct consumer *consumer)
{
    uint32_t left = consumer->topics->batch_length;
    rd_kafka_message_t *message = NULL;
    uint64_t count;

    (void)!read(consumer->event, &count, sizeof count);
    take_replies(consumer);
    take_resolution(consumer);
    while (left > 0 && !consumer->connector->failed && (message = rd_kafka_consumer_poll(consumer->kafka, 0)) != NULL) {
        take_message(consumer, message);
        left--;
    }
    consumer->more = left == 0;
}

static void ready(void *argument, short events)
{
    (void)events;
    consumer_run(argument);
}

/* The descriptor tells of a queue that was empty and is not any more; this is for what that can't tell. */
static void tick(void *argument)
{
    struct consumer *consumer = argument;
    int64_t interval = consumer->topics->poll_interval_ms;
    struct reactor *reactor = consumer->connector->reactor;

    interval = interval < TICK_MIN_MS ? TICK_MIN_MS : interval > TICK_MAX_MS ? TICK_MAX_MS : interval;
    consumer_run(consumer);
    timer_set(reactor_timers(reactor), &consumer->tick, (struct mono_ms){reactor_now(reactor).v + interval}, tick,
              consumer);
}

void consumer_pause(const struct consumer *consumer, const struct partition *partition, bool pause)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    (void)rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
    (void)(pause ? rd_kafka_pause_partitions(consumer->kafka, list)
                 : rd_kafka_resume_partitions(consumer->kafka, list));
    rd_kafka_topic_partition_list_destroy(list);
}

/* ---- begin and end ---- */

/* librdkafka's own lines, served on our thread. */
static void take_log(const rd_kafka_t *kafka, int level, const char *facility, const char *text)
{
    const struct consumer *consumer = rd_kafka_opaque(kafka);
    enum log_level own = level <= 3 ? LOG_WARN : level <= 5 ? LOG_INFO : LOG_DEBUG;

    log_line(own, consumer->connector->definition->key, "kafka %s: %s", facility, text);
}

static void take_error(rd_kafka_t *kafka, int code, const char *reason, void *argument)
{
    struct consumer *consumer = argument;
    struct connector *connector = consumer->connector;
    char fatal[256];

    if (code == RD_KAFKA_RESP_ERR__FATAL) {
        (void)rd_kafka_fatal_error(kafka, fatal, sizeof fatal);
        connector_fail(connector, 1, "%s", fatal);
        return;
    }
    connector->totals.errors++;
    consumer_note(consumer, "kafka", reason);
    log_limited(&consumer->trouble, reactor_now(connector->reactor), LOG_WARN, connector->definition->key,
                "kafka: %s: %s", rd_kafka_err2str((rd_kafka_resp_err_t)code), reason);
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, struct error *error)
{
    char why[256];

    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) == RD_KAFKA_CONF_OK) {
        return 0;
    }
    return error_set(error, QS_ERROR_INPUT, "property %s: %s", name, why);
}

static int set_all(rd_kafka_conf_t *conf, const struct definition_topics *topics, const struct kafka_settings *settings,
                   uint64_t budget_bytes, struct error *error)
{
    static const char *const ours[][2] = {{"enable.auto.commit", "false"},     {"enable.auto.offset.store", "false"},
                                          {"auto.offset.reset", "error"},      {"enable.partition.eof", "true"},
                                          {"statistics.interval.ms", LOOK_MS}, {"log.queue", "true"}};
    uint64_t ahead = budget_bytes / 4 / KIBIBYTE;
    char number[24];
    int status = set(conf, "client.id", "queen-s3", error);

    ahead = ahead < QUEUE_MIN ? QUEUE_MIN : ahead > QUEUE_MAX ? QUEUE_MAX : ahead;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)ahead);
    status = status == 0 ? set(conf, "queued.max.messages.kbytes", number, error) : status;
    status = status == 0 ? set(conf, "topic.metadata.refresh.interval.ms", "30000", error) : status;
    for (size_t i = 0; i < settings->count && status == 0; i++) {
        status = set(conf, settings->list[i].property, settings->list[i].value, error);
    }
    for (size_t i = 0; i < topics->property_count && status == 0; i++) {
        status = set(conf, topics->properties[i].name, topics->properties[i].value, error);
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours && status == 0; i++) {
        status = set(conf, ours[i][0], ours[i][1], error);
    }
    return status == 0 ? set(conf, "group.id", topics->consumer_group, error) : status;
}

static int create_client(struct consumer *consumer, const struct kafka_settings *settings, uint64_t budget_bytes,
                         struct error *error)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    if (set_all(conf, consumer->topics, settings, budget_bytes, error) != 0) {
        rd_kafka_conf_destroy(conf);
        return QS_ERROR_INPUT;
    }
    rd_kafka_conf_set_opaque(conf, consumer);
    rd_kafka_conf_set_rebalance_cb(conf, assignment_rebalance);
    rd_kafka_conf_set_error_cb(conf, take_error);
    rd_kafka_conf_set_log_cb(conf, take_log);
    rd_kafka_conf_set_stats_cb(conf, take_statistics);
    consumer->kafka = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (consumer->kafka == NULL) {
        rd_kafka_conf_destroy(conf);
        return error_set(error, QS_ERROR_INPUT, "the Kafka client: %s", why);
    }
    (void)rd_kafka_set_log_queue(consumer->kafka, NULL);
    (void)rd_kafka_poll_set_consumer(consumer->kafka);
    return 0;
}

static int subscribe(struct consumer *consumer, struct error *error)
{
    const struct definition_topics *topics = consumer->topics;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)topics->subscription_count);

    for (size_t i = 0; i < topics->subscription_count; i++) {
        (void)rd_kafka_topic_partition_list_add(list, topics->subscriptions[i], RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_resp_err_t code = rd_kafka_subscribe(consumer->kafka, list);
    rd_kafka_topic_partition_list_destroy(list);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? 0
               : error_set(error, QS_ERROR_INPUT, "the topics can't be subscribed to: %s", rd_kafka_err2str(code));
}

static int watch(struct consumer *consumer, struct error *error)
{
    static const uint64_t one = 1;

    consumer->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (consumer->event < 0) {
        return error_set_errno(error, "eventfd");
    }
    consumer->queue = rd_kafka_queue_get_consumer(consumer->kafka);
    consumer->replies = rd_kafka_queue_new(consumer->kafka);
    rd_kafka_queue_io_event_enable(consumer->queue, consumer->event, &one, sizeof one);
    rd_kafka_queue_io_event_enable(consumer->replies, consumer->event, &one, sizeof one);
    consumer->resolver = resolver_create(consumer->kafka, consumer->event, error);
    if (consumer->resolver == NULL ||
        reactor_watch(consumer->connector->reactor, consumer->event, POLLIN, ready, consumer) != 0) {
        return QS_ERROR_SYSTEM;
    }
    tick(consumer);
    return 0;
}

struct consumer *consumer_create(struct connector *connector, const struct definition_topics *topics,
                                 const struct kafka_settings *settings, uint64_t budget_bytes, struct error *error)
{
    struct consumer *consumer = memory_new(1, sizeof *consumer);

    consumer->connector = connector;
    consumer->topics = topics;
    consumer->event = -1;
    consumer->blocked = reactor_now(connector->reactor);
    if (create_client(consumer, settings, budget_bytes, error) != 0 || watch(consumer, error) != 0 ||
        subscribe(consumer, error) != 0) {
        consumer_destroy(consumer);
        return NULL;
    }
    return consumer;
}

void consumer_stop(struct consumer *consumer)
{
    for (size_t i = 0; i < consumer->partition_count; i++) {
        partition_stop(consumer->partitions[i]);
    }
}

bool consumer_is_idle(const struct consumer *consumer)
{
    for (size_t i = 0; i < consumer->partition_count; i++) {
        if (!partition_is_idle(consumer->partitions[i])) {
            return false;
        }
    }
    return true;
}

static void close_client(struct consumer *consumer)
{
    consumer->closing = true;
    assignment_drop_all(consumer);
    if (consumer->resolver != NULL) {
        (void)rd_kafka_consumer_close(consumer->kafka);
    }
    take_replies(consumer);
    resolver_destroy(consumer->resolver);
    if (consumer->replies != NULL) {
        rd_kafka_queue_io_event_enable(consumer->replies, -1, NULL, 0);
        rd_kafka_queue_io_event_enable(consumer->queue, -1, NULL, 0);
        rd_kafka_queue_destroy(consumer->replies);
        rd_kafka_queue_destroy(consumer->queue);
    }
    rd_kafka_destroy(consumer->kafka);
}

void consumer_destroy(struct consumer *consumer)
{
    struct reactor *reactor = consumer->connector->reactor;

    timer_cancel(reactor_timers(reactor), &consumer->retry);
    timer_cancel(reactor_timers(reactor), &consumer->tick);
    if (consumer->event >= 0) {
        (void)reactor_watch(reactor, consumer->event, 0, NULL, NULL);
    }
    if (consumer->kafka != NULL) {
        close_client(consumer);
    }
    if (consumer->event >= 0) {
        (void)close(consumer->event);
    }
    if (consumer->revoking != NULL) {
        rd_kafka_topic_partition_list_destroy(consumer->revoking);
    }
    free(consumer->partitions);
    free(consumer);
}
