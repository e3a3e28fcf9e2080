/*
 * Connector definitions: what is read, what it is by default, what is refused and in which words, what the environment
 * overrides, and which of several files counts.
 */
#include "worker/connector/definition.h"

#include <check.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/folders.h"
#include "worker/connector/definition_internal.h"

static char folder[64];
static struct definitions definitions;
static char *no_environment[] = {NULL};

static void make_folder(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/definition-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    definitions_free(&definitions);
    folder_remove(folder);
}

static void load(char *const *environment)
{
    struct error error;
    const char *path = folder;
    definitions_free(&definitions);
    ck_assert_int_eq(definitions_load(&path, 1, environment, &definitions, &error), 0);
}

#define HEAD    "type = 'sink'\nenabled = true\nversion = 0\nname = 'n'\npath = 'p'\nkey = 'orders'\n"
#define TOPICS  "[[topics]]\npattern = 'orders\\..*'\nschema = 'json'\n"
#define OPTIONS "[plugin_config]\nbucket = 'b'\nendpoint = 'file:///tmp/lake'\nregion = 'r'\n"

static const struct definition *load_one(const char *text, char *const *environment)
{
    folder_write(folder, "one.toml", text);
    load(environment);
    ck_assert_msg(definitions.fault_count == 0, "%s", definitions.fault_count > 0 ? definitions.faults[0].message : "");
    ck_assert_uint_eq(definitions.count, 1);
    return &definitions.list[0];
}

static void refuse_in(const char *text, char *const *environment, const char *words)
{
    folder_write(folder, "one.toml", text);
    load(environment);
    ck_assert_uint_eq(definitions.count, 0);
    ck_assert_uint_eq(definitions.fault_count, 1);
    ck_assert_msg(strstr(definitions.faults[0].message, words) != NULL, "%s: instead of: %s",
                  definitions.faults[0].message, words);
    ck_assert_ptr_null(strchr(definitions.faults[0].message, '\n'));
}

START_TEST(the_quick_start_is_read)
{
    const struct definition *definition = load_one(HEAD TOPICS OPTIONS, no_environment);
    ck_assert_str_eq(definition->key, "orders");
    ck_assert_str_eq(definition->name, "n");
    ck_assert_int_eq(definition->on_undecodable, UNDECODABLE_BASE64);
    ck_assert_uint_eq(definition->topic_count, 1);
    const struct definition_topics *topics = &definition->topics[0];
    ck_assert_uint_eq(topics->subscription_count, 1);
    ck_assert_str_eq(topics->subscriptions[0], "^(orders\\..*)");
    ck_assert_int_eq(topics->schema, SINK_SCHEMA_JSON);
    ck_assert_uint_eq(topics->batch_length, 1000);
    ck_assert_int_eq(topics->poll_interval_ms, 100);
    ck_assert_str_eq(topics->consumer_group, "picomq-connect-sink-orders");
    ck_assert(!topics->from_end);
    ck_assert_str_eq(definition->options.store.bucket, "b");
}
END_TEST

START_TEST(every_field_is_read)
{
    const struct definition *definition = load_one(HEAD "on_undecodable = 'Skip'\n"
                                                        "[[topics]]\ntopics = ['a', '^b|c']\nschema = 'flat_buffer'\n"
                                                        "batch_length = 5\npoll_interval = '1s'\nconsumer_group = 'g'\n"
                                                        "auto_offset_reset = 'latest'\n"
                                                        "[topics.properties]\nfetch.min.bytes = 7\n"
                                                        "'client.id' = 'me'\nallow.auto.create.topics = false\n"
                                                        "[[topics]]\ntopics = ['d']\nschema = 'flatbuffer'\n" OPTIONS,
                                                   no_environment);
    const struct definition_topics *topics = &definition->topics[0];
    ck_assert_int_eq(definition->on_undecodable, UNDECODABLE_SKIP);
    ck_assert_uint_eq(topics->subscription_count, 2);
    ck_assert_str_eq(topics->subscriptions[0], "a");
    ck_assert_str_eq(topics->subscriptions[1], "^(b|c)");
    ck_assert_int_eq(topics->schema, SINK_SCHEMA_FLATBUFFER);
    ck_assert_uint_eq(topics->batch_length, 5);
    ck_assert_int_eq(topics->poll_interval_ms, 1000);
    ck_assert_str_eq(topics->consumer_group, "g");
    ck_assert(topics->from_end);
    ck_assert_uint_eq(topics->property_count, 3);
    ck_assert_str_eq(topics->properties[0].name, "allow.auto.create.topics");
    ck_assert_str_eq(topics->properties[0].value, "false");
    ck_assert_str_eq(topics->properties[1].value, "me");
    ck_assert_str_eq(topics->properties[2].name, "fetch.min.bytes");
    ck_assert_str_eq(topics->properties[2].value, "7");
    ck_assert_int_eq(definition->topics[1].schema, SINK_SCHEMA_FLATBUFFER);
    ck_assert_str_eq(definition->topics[1].consumer_group, "picomq-connect-sink-orders");
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"type = ", "line 1, column"},
        {TOPICS OPTIONS, "key is missing"},
        {"key = 'a b'\n", "key = \"a b\": expected 1 to 128 letters"},
        {HEAD OPTIONS, "topics is missing: expected at least one [[topics]]"},
        {HEAD TOPICS, "bucket"},
        {"type = 'source'\nkey = 'k'\nenabled = true\nversion = 0\nname = 'n'\npath = 'p'\n" TOPICS OPTIONS,
         "line 1: type = \"source\": expected sink"},
        {"type = 'sink'\nkey = 'k'\nenabled = 1\nversion = 0\nname = 'n'\npath = 'p'\n" TOPICS OPTIONS,
         "line 3: enabled = 1: expected true or false"},
        {"type = 'sink'\nkey = 'k'\nenabled = true\nname = 'n'\npath = 'p'\n" TOPICS OPTIONS, "version is missing"},
        {"type = 'sink'\nkey = 'k'\nenabled = true\nversion = -1\nname = 'n'\npath = 'p'\n" TOPICS OPTIONS,
         "version = -1: expected a whole number from 0"},
        {"type = 'sink'\nkey = 'k'\nenabled = true\nversion = 0\npath = 'p'\n" TOPICS OPTIONS, "name is missing"},
        {"type = 'sink'\nkey = 'k'\nenabled = true\nversion = 0\nname = 'n'\n" TOPICS OPTIONS, "path is missing"},
        {HEAD "on_undecodeable = 'skip'\n" TOPICS OPTIONS, "unknown key on_undecodeable; did you mean on_undecodable?"},
        {HEAD "on_undecodable = 'drop'\n" TOPICS OPTIONS, "expected base64, skip or stop"},
        {HEAD "[transforms]\n" TOPICS OPTIONS, "transforms: not supported here"},
        {HEAD TOPICS "avro_schema_path = 'x'\n" OPTIONS, "line 10: avro_schema_path: not supported here"},
        {HEAD "[[topics]]\nschema = 'json'\n" OPTIONS, "expected either pattern or topics"},
        {HEAD TOPICS "topics = ['a']\n" OPTIONS, "expected either pattern or topics"},
        {HEAD "[[topics]]\ntopics = []\nschema = 'json'\n" OPTIONS, "expected an array of topic names"},
        {HEAD "[[topics]]\ntopics = ['a']\n" OPTIONS, "schema is missing"},
        {HEAD "[[topics]]\ntopics = ['a']\nschema = 'xml'\n" OPTIONS, "schema = \"xml\": expected json, raw"},
        {HEAD "[[topics]]\npattern = 'a('\nschema = 'raw'\n" OPTIONS, "POSIX extended regular expression"},
        {HEAD "[[topics]]\npattern = 'a\\p'\nschema = 'raw'\n" OPTIONS, "an escape that it does not have"},
        {HEAD "[[topics]]\npattern = '[\\d]'\nschema = 'raw'\n" OPTIONS, "a bracket without its end"},
        {HEAD TOPICS "batch_length = 0\n" OPTIONS, "batch_length = 0: expected a whole number from 1"},
        {HEAD TOPICS "poll_interval = '5'\n" OPTIONS, "poll_interval = \"5\": expected a duration"},
        {HEAD TOPICS "poll_intervall = '5s'\n" OPTIONS, "did you mean poll_interval?"},
        {HEAD TOPICS "auto_offset_reset = 'none'\n" OPTIONS, "expected earliest or latest"},
        {HEAD TOPICS "[topics.properties]\ngroup.id = 'g'\n" OPTIONS, "property group.id: the sink sets it"},
        {HEAD TOPICS "[topics.properties]\n'enable.auto.commit' = true\n" OPTIONS, "property enable.auto.commit"},
        {HEAD TOPICS "[topics.properties]\nenable.auto.offset.store = true\n" OPTIONS, "enable.auto.offset.store"},
        {HEAD TOPICS "[topics.properties]\nauto.offset.reset = 'latest'\n" OPTIONS, "property auto.offset.reset"},
        {HEAD TOPICS "[topics.properties]\na = [1]\n" OPTIONS, "a = an array: expected a string, a number"},
        {HEAD TOPICS OPTIONS "durability = 'uploaded'\n", "durability: a connector worker owns the offsets"},
        {HEAD TOPICS OPTIONS "spool_dir = '/tmp'\n", "spool_dir"},
        {HEAD TOPICS OPTIONS "buckt = 'x'\n", "bucket"},
        {HEAD TOPICS OPTIONS "max_attempts = 1.5\n", "max_attempts"},
        {HEAD TOPICS OPTIONS "prefix = 2026-01-01\n", "prefix"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuse_in(cases[i].text, no_environment, cases[i].words);
    }
}
END_TEST

static bool matches(const char *pattern, const char *topic)
{
    struct error error;
    regex_t compiled;
    char *text = definition_pattern(pattern, &error);
    ck_assert_msg(text != NULL, "%s: %s", pattern, error.message);
    ck_assert_int_eq(text[0], '^');
    ck_assert_int_eq(regcomp(&compiled, text, REG_EXTENDED | REG_NOSUB), 0);
    bool matched = regexec(&compiled, topic, 0, NULL, 0) == 0;
    regfree(&compiled);
    free(text);
    return matched;
}

START_TEST(patterns_are_anchored_at_the_start_only)
{
    ck_assert(matches("orders", "orders.eu"));
    ck_assert(!matches("orders", "my.orders"));
    ck_assert(matches("^orders$", "orders"));
    ck_assert(!matches("^orders$", "orders.eu"));
    ck_assert(matches("a|b", "bc"));
    ck_assert(!matches("a|b", "cb"));
    ck_assert(matches("o\\.\\d+$", "o.12"));
    ck_assert(!matches("o\\.\\d+$", "o.d"));
    ck_assert(matches("[]x-z]+$", "]yz"));
    ck_assert(matches("[^a].*", "b"));
    ck_assert(!matches("\\D$", "1"));
    ck_assert(matches("\\w+$", "a_b"));
}
END_TEST

START_TEST(the_environment_overrides_with_the_fields_types)
{
    char *environment[] = {"PICOMQ_CONNECTORS_SINK_ORDERS_NAME=12",
                           "picomq_connectors_sink_orders_on_undecodable=stop",
                           "PICOMQ_CONNECTORS_SINK_ORDERS_VERSION=7",
                           "PICOMQ_CONNECTORS_SINK_ORDERS_PLUGIN_CONFIG_SECRET_ACCESS_KEY=123456",
                           "PICOMQ_CONNECTORS_SINK_ORDERS_PLUGIN_CONFIG_ACCESS_KEY_ID=true",
                           "PICOMQ_CONNECTORS_SINK_ORDERS_PLUGIN_CONFIG_INCLUDE_METADATA=FALSE",
                           "PICOMQ_CONNECTORS_SINK_ORDERS_PLUGIN_CONFIG_MAX_FILE_SIZE=1000",
                           "PICOMQ_CONNECTORS_SINK_ORDERS_PLUGIN_CONFIG_MAX_MESSAGES_PER_FILE=9",
                           "PICOMQ_CONNECTORS_SINK_ORDERS_TOPICS_0_BATCH_LENGTH=3",
                           "PICOMQ_CONNECTORS_SINK_OTHER_NAME=x",
                           "PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS=y",
                           NULL};
    const struct definition *definition = load_one(HEAD TOPICS OPTIONS, environment);
    ck_assert_str_eq(definition->name, "12");
    ck_assert_int_eq(definition->on_undecodable, UNDECODABLE_STOP);
    ck_assert_int_eq(definition->version, 7);
    ck_assert_str_eq(definition->options.store.secret_key, "123456");
    ck_assert_str_eq(definition->options.store.access_key, "true");
    ck_assert(!definition->options.shape.include_metadata);
    ck_assert_uint_eq(definition->options.limits.max_size, 1000);
    ck_assert_uint_eq(definition->options.limits.max_messages, 9);
    ck_assert_uint_eq(definition->topics[0].batch_length, 3);

    char *list[] = {"PICOMQ_CONNECTORS_SINK_ORDERS_TOPICS_0_TOPICS=a, b\t,^c", NULL};
    definition = load_one(HEAD "[[topics]]\ntopics = ['x']\nschema = 'json'\n" OPTIONS, list);
    ck_assert_uint_eq(definition->topics[0].subscription_count, 3);
    ck_assert_str_eq(definition->topics[0].subscriptions[0], "a");
    ck_assert_str_eq(definition->topics[0].subscriptions[1], "b");
    ck_assert_str_eq(definition->topics[0].subscriptions[2], "^(c)");

    static const struct {
        char *variable;
        const char *words;
    } refused[] = {{"PICOMQ_CONNECTORS_SINK_ORDERS_VERSION=x", "version = \"x\" (from the environment)"},
                   {"PICOMQ_CONNECTORS_SINK_ORDERS_COLOUR=x",
                    "PICOMQ_CONNECTORS_SINK_ORDERS_COLOUR: expected the name of a field"},
                   {"PICOMQ_CONNECTORS_SINK_ORDERS_KEY=x", "expected the name of a field"},
                   {"PICOMQ_CONNECTORS_SINK_ORDERS_TOPICS_1_SCHEMA=raw", "expected the number of a [[topics]]"},
                   {"PICOMQ_CONNECTORS_SINK_ORDERS_PLUGIN_CONFIG_BUCKT=x", "bucket"},
                   {"PICOMQ_CONNECTORS_SINK_ORDERS_PLUGIN_CONFIG_MAX_ATTEMPTS=x", "max_attempts"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char *one[] = {refused[i].variable, NULL};
        refuse_in(HEAD TOPICS OPTIONS, one, refused[i].words);
    }
}
END_TEST

/* A definition of that key and version. */
static void write_definition(const char *file, const char *key, int version, bool enabled)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "type = 'sink'\nenabled = %s\nversion = %d\nname = '%s'\npath = 'p'\nkey = '%s'\n" TOPICS OPTIONS,
                   enabled ? "true" : "false", version, file, key);
    folder_write(folder, file, text);
}

START_TEST(the_longest_key_takes_an_override)
{
    char *environment[] = {"PICOMQ_CONNECTORS_SINK_ORDERS_S3_NAME=long", "PICOMQ_CONNECTORS_SINK_ORDERS_NAME=short",
                           NULL};
    write_definition("a.toml", "orders", 0, true);
    write_definition("b.toml", "orders.s3", 0, true);
    load(environment);
    ck_assert_uint_eq(definitions.fault_count, 0);
    ck_assert_uint_eq(definitions.count, 2);
    ck_assert_str_eq(definitions.list[0].name, "short");
    ck_assert_str_eq(definitions.list[1].name, "long");
}
END_TEST

START_TEST(of_one_key_the_highest_version_counts)
{
    write_definition("a.toml", "k", 2, true);
    write_definition("b.toml", "k", 10, true);
    write_definition("c.toml", "k", 3, true);
    load(no_environment);
    ck_assert_uint_eq(definitions.count, 1);
    ck_assert_uint_eq(definitions.fault_count, 0);
    ck_assert_str_eq(definitions.list[0].name, "b.toml");

    write_definition("d.toml", "k", 11, false);
    load(no_environment);
    ck_assert_uint_eq(definitions.count, 0);
    ck_assert_uint_eq(definitions.disabled, 1);

    write_definition("d.toml", "k", 10, true);
    load(no_environment);
    ck_assert_uint_eq(definitions.count, 0);
    ck_assert_uint_eq(definitions.fault_count, 1);
    ck_assert_str_eq(definitions.faults[0].key, "k");
    ck_assert_ptr_nonnull(strstr(definitions.faults[0].message, "the same key and version as in"));
}
END_TEST

START_TEST(a_broken_file_stops_itself_alone)
{
    write_definition("a.toml", "good", 0, true);
    folder_write(folder, "b.toml", "broken");
    folder_write(folder, ".c.toml", "broken");
    folder_write(folder, "d.toml.bak", "broken");
    folder_write(folder, "e.json", "{}");
    folder_write(folder, "f.toml", "key = 'f'\n");
    char path[256];
    (void)snprintf(path, sizeof path, "%s/g.toml", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    (void)snprintf(path, sizeof path, "%s/h.toml", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    load(no_environment);
    ck_assert_uint_eq(definitions.count, 1);
    ck_assert_uint_eq(definitions.fault_count, 4);
    ck_assert_ptr_nonnull(strstr(definitions.faults[1].message, "g.toml: not a file"));
    ck_assert_ptr_nonnull(strstr(definitions.faults[2].message, "h.toml: not a file"));
    ck_assert_str_eq(definitions.list[0].key, "good");
    ck_assert_ptr_nonnull(strstr(definitions.faults[0].message, "b.toml: line 1"));
    ck_assert_ptr_null(definitions.faults[0].key);
    ck_assert_str_eq(definitions.faults[3].key, "f");

    struct error error;
    const char *absent = "/nonexistent/x.toml";
    definitions_free(&definitions);
    ck_assert_int_eq(definitions_load(&absent, 1, no_environment, &definitions, &error), 0);
    ck_assert_uint_eq(definitions.fault_count, 1);
    ck_assert_ptr_nonnull(strstr(definitions.faults[0].message, "No such file"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("definition");
    TCase *cases = tcase_create("definition");

    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_test(cases, the_quick_start_is_read);
    tcase_add_test(cases, every_field_is_read);
    tcase_add_test(cases, what_is_wrong_is_named);
    tcase_add_test(cases, patterns_are_anchored_at_the_start_only);
    tcase_add_test(cases, the_environment_overrides_with_the_fields_types);
    tcase_add_test(cases, the_longest_key_takes_an_override);
    tcase_add_test(cases, of_one_key_the_highest_version_counts);
    tcase_add_test(cases, a_broken_file_stops_itself_alone);
    suite_add_tcase(suite, cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
