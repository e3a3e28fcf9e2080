/*
 * What the connector's tests need of a Kafka client, and a broker in memory (librdkafka's own) for those that need no
 * real one:
 *
 *     kafka mock BROKERS                          prints its bootstrap servers; on stdin: `down N`, `up N`,
 *                                                 `create TOPIC PARTITIONS`, `without notes` (the next
 *                                                 commit is refused for its metadata), `refuse N` (the next
 *                                                 N to join a group are; 0: no more); ends with it
 *     kafka create SERVERS TOPIC PARTITIONS [NAME=VALUE...]
 *     kafka remove SERVERS TOPIC
 *     kafka trim SERVERS TOPIC PARTITION OFFSET   deletes the records before it
 *     kafka produce SERVERS                       lines on stdin: TOPIC PARTITION TIMESTAMP KEY VALUE [HEADER VALUE]...,
 *                                                 keys and values in hex, `-` for none; prints how many
 *     kafka abort SERVERS TOPIC PARTITION COUNT   that many records in a transaction that is aborted
 *     kafka committed SERVERS GROUP TOPIC PARTITION   prints offset and metadata
 *     kafka commit SERVERS GROUP TOPIC PARTITION OFFSET [METADATA]
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS       30000
#define OFFSET_COMMIT 8 /* API keys of the Kafka protocol */
#define JOIN_GROUP    11

static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "kafka: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static void must(const char *what, rd_kafka_resp_err_t code)
{
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fail(what, rd_kafka_err2str(code));
    }
}

static int number_of(const char *text)
{
    char *end = NULL;
    long number = text == NULL ? 0 : strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < 0 || number > 1000000) {
        fail(text, "expected a number");
    }
    return (int)number;
}

static unsigned long failed_deliveries;

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *argument)
{
    (void)client;
    (void)argument;
    failed_deliveries += message->err != RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_t *connect_to(rd_kafka_type_t type, const char *servers, const char *group)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    if (rd_kafka_conf_set(conf, "bootstrap.servers", servers, why, sizeof why) != RD_KAFKA_CONF_OK ||
        (group != NULL && rd_kafka_conf_set(conf, "group.id", group, why, sizeof why) != RD_KAFKA_CONF_OK) ||
        (type == RD_KAFKA_PRODUCER && rd_kafka_conf_set(conf, "linger.ms", "5", why, sizeof why) != RD_KAFKA_CONF_OK)) {
        fail("configuration", why);
    }
    if (type == RD_KAFKA_PRODUCER) {
        rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    }
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (client == NULL) {
        fail("client", why);
    }
    return client;
}

/* ---- a broker in memory ---- */

static void refuse_members(rd_kafka_mock_cluster_t *cluster, int count)
{
    rd_kafka_mock_clear_request_errors(cluster, JOIN_GROUP);
    for (; count > 0; count--) {
        rd_kafka_mock_push_request_errors(cluster, JOIN_GROUP, 1, RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL);
    }
}

static void obey(rd_kafka_mock_cluster_t *cluster, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    const char *verb = strsep(&line, " ");
    const char *name = strsep(&line, " ");

    if (strcmp(verb, "create") == 0) {
        must(verb, rd_kafka_mock_topic_create(cluster, name, number_of(line), 1));
    } else if (strcmp(verb, "without") == 0) {
        rd_kafka_mock_push_request_errors(cluster, OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE);
    } else if (strcmp(verb, "refuse") == 0) {
        refuse_members(cluster, number_of(name));
    } else if (strcmp(verb, "down") == 0) {
        must(verb, rd_kafka_mock_broker_set_down(cluster, number_of(name)));
    } else {
        must(verb, rd_kafka_mock_broker_set_up(cluster, number_of(name)));
    }
}

static int mock(char **arguments)
{
    char line[320];
    rd_kafka_t *client = connect_to(RD_KAFKA_PRODUCER, "", NULL);
    rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(client, number_of(arguments[0]));

    if (cluster == NULL) {
        fail("mock", "no cluster");
    }
    (void)puts(rd_kafka_mock_cluster_bootstraps(cluster));
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        obey(cluster, line);
        (void)puts("done");
        (void)fflush(stdout);
    }
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(client);
    return EXIT_SUCCESS;
}

/* ---- topics ---- */

static rd_kafka_event_t *await(rd_kafka_queue_t *queue, const char *what)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);

    if (event == NULL) {
        fail(what, "no answer");
    }
    must(what, rd_kafka_event_error(event));
    return event;
}

static void must_topics(const char *what, const rd_kafka_topic_result_t **results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        must(what, rd_kafka_topic_result_error(results[i]));
    }
}

static int create(char **arguments)
{
    char why[256];
    size_t count;
    rd_kafka_t *client = connect_to(RD_KAFKA_PRODUCER, arguments[0], NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(arguments[1], number_of(arguments[2]), 1, why, sizeof why);

    for (char **setting = arguments + 3; *setting != NULL; setting++) {
        char *equals = strchr(*setting, '=');
        if (equals == NULL) {
            fail(*setting, "expected NAME=VALUE");
        } else {
            *equals = '\0';
            must(*setting, rd_kafka_NewTopic_set_config(topic, *setting, equals + 1));
        }
    }
    rd_kafka_CreateTopics(client, &topic, 1, NULL, queue);
    rd_kafka_event_t *event = await(queue, "create");
    must_topics("create", rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count),
                count);
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
    return EXIT_SUCCESS;
}

static int remove_topic(char **arguments)
{
    size_t count;
    rd_kafka_t *client = connect_to(RD_KAFKA_PRODUCER, arguments[0], NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(arguments[1]);

    rd_kafka_DeleteTopics(client, &topic, 1, NULL, queue);
    rd_kafka_event_t *event = await(queue, "remove");
    must_topics("remove", rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count),
                count);
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(topic);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
    return EXIT_SUCCESS;
}

static rd_kafka_topic_partition_list_t *one_partition(const char *topic, const char *partition, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(list, topic, number_of(partition))->offset = offset;
    return list;
}

static int trim(char **arguments)
{
    rd_kafka_t *client = connect_to(RD_KAFKA_PRODUCER, arguments[0], NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_topic_partition_list_t *list = one_partition(arguments[1], arguments[2], strtoll(arguments[3], NULL, 10));
    rd_kafka_DeleteRecords_t *records = rd_kafka_DeleteRecords_new(list);

    rd_kafka_DeleteRecords(client, &records, 1, NULL, queue);
    rd_kafka_event_t *event = await(queue, "trim");
    const rd_kafka_topic_partition_list_t *result =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
    must("trim", result->elems[0].err);
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteRecords_destroy(records);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
    return EXIT_SUCCESS;
}

/* ---- records ---- */

/* In place; NULL for none. */
static char *unhex(char *text, size_t *size)
{
    size_t digits = text == NULL ? 0 : strlen(text);

    *size = 0;
    if (text == NULL || strcmp(text, "-") == 0) {
        return NULL;
    }
    for (size_t i = 0; i + 1 < digits; i += 2) {
        char pair[3] = {text[i], text[i + 1], '\0'};
        text[(*size)++] = (char)strtoul(pair, NULL, 16);
    }
    text[*size] = '\0';
    return text;
}

static void produce_line(rd_kafka_t *client, char *line)
{
    char *rest = line;
    const char *topic = strsep(&rest, " ");
    const char *partition = strsep(&rest, " ");
    const char *timestamp = strsep(&rest, " ");
    size_t key_size;
    size_t value_size;
    char *key = unhex(strsep(&rest, " "), &key_size);
    char *value = unhex(strsep(&rest, " "), &value_size);
    rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
    rd_kafka_resp_err_t code;

    while (rest != NULL) {
        size_t header_size;
        const char *name = strsep(&rest, " ");
        const char *header = unhex(strsep(&rest, " "), &header_size);
        (void)rd_kafka_header_add(headers, name, -1, header, (ssize_t)header_size);
    }
    if (partition == NULL || timestamp == NULL) {
        fail("produce", "a line is too short");
    }
    const rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = number_of(partition)},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = strtoll(timestamp, NULL, 10)},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {key, key_size}},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {value, value_size}},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
    };
    do {
        rd_kafka_error_t *error = rd_kafka_produceva(client, parts, sizeof parts / sizeof *parts);
        code = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
        (void)rd_kafka_poll(client, code == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 100 : 0);
    } while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    must("produce", code);
}

static int produce(char **arguments)
{
    rd_kafka_t *client = connect_to(RD_KAFKA_PRODUCER, arguments[0], NULL);
    char *line = NULL;
    size_t capacity = 0;
    unsigned long count = 0;

    while (getline(&line, &capacity, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        produce_line(client, line);
        count++;
    }
    must("flush", rd_kafka_flush(client, WAIT_MS));
    if (failed_deliveries > 0) {
        fail("produce", "records were not delivered");
    }
    (void)printf("%lu\n", count);
    free(line);
    rd_kafka_destroy(client);
    return EXIT_SUCCESS;
}

static void must_do(const char *what, rd_kafka_error_t *error)
{
    if (error != NULL) {
        fail(what, rd_kafka_error_string(error));
    }
}

static int64_t end_of(rd_kafka_t *client, char **partition)
{
    int64_t low = 0;
    int64_t high = 0;

    must("watermarks",
         rd_kafka_query_watermark_offsets(client, partition[0], number_of(partition[1]), &low, &high, WAIT_MS));
    return high;
}

/* Offsets that no reader of committed records sees, and a marker behind them. The broker writes the marker after it has
 * answered: it is waited for, so that what is produced next stands behind it. */
static int abort_records(char **arguments)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    if (rd_kafka_conf_set(conf, "bootstrap.servers", arguments[0], why, sizeof why) != RD_KAFKA_CONF_OK ||
        rd_kafka_conf_set(conf, "transactional.id", "aborting", why, sizeof why) != RD_KAFKA_CONF_OK) {
        fail("configuration", why);
    }
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (client == NULL) {
        fail("client", why);
    }
    int64_t end = end_of(client, arguments + 1) + number_of(arguments[3]) + 1;
    must_do("transactions", rd_kafka_init_transactions(client, WAIT_MS));
    must_do("begin", rd_kafka_begin_transaction(client));
    for (int left = number_of(arguments[3]); left > 0; left--) {
        const rd_kafka_vu_t parts[] = {
            {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = arguments[1]},
            {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = number_of(arguments[2])},
            {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
            {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {arguments[1], strlen(arguments[1])}},
        };
        must_do("produce", rd_kafka_produceva(client, parts, sizeof parts / sizeof *parts));
    }
    must("flush", rd_kafka_flush(client, WAIT_MS));
    must_do("abort", rd_kafka_abort_transaction(client, WAIT_MS));
    for (int waited = 0; end_of(client, arguments + 1) < end; waited += 10) {
        if (waited >= WAIT_MS) {
            fail("abort", "its marker does not come");
        }
        (void)usleep(10000);
    }
    rd_kafka_destroy(client);
    return EXIT_SUCCESS;
}

/* ---- the group ---- */

static int committed(char **arguments)
{
    rd_kafka_t *client = connect_to(RD_KAFKA_CONSUMER, arguments[0], arguments[1]);
    rd_kafka_topic_partition_list_t *list = one_partition(arguments[2], arguments[3], RD_KAFKA_OFFSET_INVALID);

    must("committed", rd_kafka_committed(client, list, WAIT_MS));
    (void)printf("%lld %.*s\n", (long long)list->elems[0].offset, (int)list->elems[0].metadata_size,
                 list->elems[0].metadata == NULL ? "" : (const char *)list->elems[0].metadata);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
    return EXIT_SUCCESS;
}

static int commit(char **arguments)
{
    rd_kafka_t *client = connect_to(RD_KAFKA_CONSUMER, arguments[0], arguments[1]);
    rd_kafka_topic_partition_list_t *list = one_partition(arguments[2], arguments[3], strtoll(arguments[4], NULL, 10));

    if (arguments[5] != NULL) {
        list->elems[0].metadata = strdup(arguments[5]);
        list->elems[0].metadata_size = strlen(arguments[5]);
    }
    must("commit", rd_kafka_commit(client, list, 0));
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int least;
        int (*run)(char **arguments);
    } commands[] = {{"mock", 1, mock},           {"create", 3, create},       {"remove", 2, remove_topic},
                    {"trim", 4, trim},           {"abort", 4, abort_records}, {"produce", 1, produce},
                    {"committed", 4, committed}, {"commit", 5, commit}};

    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, argv[1]) == 0 && argc - 2 >= commands[i].least) {
            return commands[i].run(argv + 2);
        }
    }
    (void)fputs("usage: kafka mock|create|remove|trim|produce|committed|commit ...\n", stderr);
    return 2;
}
