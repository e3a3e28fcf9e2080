/*
 * `queen-s3 connect FILE.toml...`: connectors alone (spec 5.4), each a worker of the pool. And how `run` takes them in
 * beside its queues.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/connectors_run.h"
#include "supervisor/commands/output.h"
#include "supervisor/environment.h"
#include "supervisor/signals.h"

static void say_found(const struct worker_connectors *connectors)
{
    for (size_t i = 0; i < worker_connectors_fault_count(connectors); i++) {
        log_line(LOG_ERROR, worker_connectors_fault_key(connectors, i), "the connector stays down: %s",
                 worker_connectors_fault(connectors, i));
    }
    for (size_t i = 0; i < worker_connectors_count(connectors); i++) {
        log_line(LOG_INFO, worker_connector_key(connectors, i), "connector");
    }
}

static int check_memory(const struct settings *settings, const struct worker_connectors *connectors,
                        struct error *error)
{
    size_t workers = settings_queue_workers(settings) + worker_connectors_count(connectors);

    return settings_check_memory(settings, workers, error);
}

/* The control socket is called after the sink: without one, after the first connector. */
static void name_pool(struct settings *settings, const struct worker_connectors *connectors)
{
    free(settings->sink);
    settings->sink = memory_format("connect-%s", worker_connector_key(connectors, 0));
}

/* `run` has said it. */
static void say_boot(const struct settings *settings)
{
    if (settings->bucket == NULL) {
        char *line = settings_boot_line(settings);
        log_line(LOG_INFO, NULL, "%s", line);
        free(line);
    }
}

int connectors_run(struct settings *settings, const char *const *paths, size_t path_count,
                   const struct supervisor_hooks *hooks)
{
    struct error error;
    struct worker_connectors *connectors = worker_connectors_load(paths, path_count, environ, &error);
    bool alone = !settings->all_queues && settings->queue_count == 0;
    int exit_code = COMMAND_CONFIGURATION;

    if (connectors == NULL || check_memory(settings, connectors, &error) != 0) {
        (void)command_fail(exit_code, "%s", error.message);
    } else {
        say_found(connectors);
        if (alone && worker_connectors_count(connectors) == 0) {
            size_t broken = worker_connectors_fault_count(connectors);
            (void)command_fail(exit_code, "no connector to run: %s",
                               broken > 0 ? worker_connectors_fault(connectors, 0)
                                          : "expected a definition with enabled = true");
        } else {
            if (alone) {
                name_pool(settings, connectors);
                say_boot(settings);
            }
            exit_code = supervisor_run_connectors(settings, connectors, hooks);
        }
    }
    worker_connectors_free(connectors);
    return exit_code;
}

/* Neither a queue nor a bucket of the sink's: whatever names them is somebody else's. */
static void leave_queues(struct settings *settings)
{
    for (size_t i = 0; i < settings->queue_count; i++) {
        free(settings->queues[i]);
    }
    free(settings->queues);
    settings->queues = NULL;
    settings->queue_count = 0;
    settings->all_queues = false;
    free(settings->endpoint);
    free(settings->bucket);
    settings->endpoint = NULL;
    settings->bucket = NULL;
}

struct reading {
    const char *file;
    const struct settings *current;
};

/* For a rolling restart: as at the start. */
static int read_again(void *argument, struct settings *fresh, struct error *error)
{
    const struct reading *reading = argument;
    int code = settings_load_connect(reading->file, fresh, error);

    if (code == 0) {
        leave_queues(fresh);
        free(fresh->sink);
        fresh->sink = memory_format("%s", reading->current->sink);
    }
    return code;
}

static int run_connect(const char *file, const char *const *paths, size_t path_count)
{
    struct settings settings;
    struct reading reading = {file, &settings};
    const struct supervisor_hooks hooks = {
        .run_connector = worker_run_connector, .reload = read_again, .reload_argument = &reading};
    struct error error;

    log_open();
    if (settings_load_connect(file, &settings, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    log_configure(settings.log_level, settings.log_json);
    leave_queues(&settings);
    int exit_code = connectors_run(&settings, paths, path_count, &hooks);
    settings_free(&settings);
    return exit_code;
}

/* What argv points to becomes a title. */
static const char **copy_words(const struct arguments *arguments)
{
    const char **words = memory_new(arguments->word_count + 1, sizeof *words);

    for (size_t i = 0; i < arguments->word_count; i++) {
        words[i] = memory_format("%s", arguments->words[i]);
    }
    return words;
}

static int run(int argc, char **argv)
{
    struct arguments arguments;
    struct error error;

    if (arguments_parse(&command_connect, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    const char *given = arguments.values[COMMAND_FILE];
    char *file = given == NULL ? NULL : memory_format("%s", given);
    const char **words = copy_words(&arguments);
    free(arguments.words);
    signals_hold();
    environment_set_title("queen-s3: supervisor");
    int exit_code = run_connect(file, words, arguments.word_count);
    for (size_t i = 0; i < arguments.word_count; i++) {
        free((void *)words[i]);
    }
    free(words);
    free(file);
    return exit_code;
}

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "a signal came, and what was on its way to the bucket is there, or the grace ran out"},
    {COMMAND_FAULT, "QUEEN_S3_LISTEN could not be bound"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong, or no definition is left that can run"},
    {128 + SIGINT, "a second signal came, SIGINT"},
    {128 + SIGTERM, "a second signal came, SIGTERM"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS=broker:9092 queen-s3 connect orders.toml",
     "runs one connector against that broker"},
    {NULL, NULL},
};

const struct command command_connect = {
    .name = "connect",
    .words = "FILE.toml...",
    .summary = "mirror topics of PicoMQ or Kafka into object storage, by connector definitions",
    .help =
        "Runs the sink connectors that the files define, each as a worker of its own, until SIGTERM or SIGINT. They "
        "consume over the Kafka protocol and put each range of offsets up exactly once: before a file exists, its cut "
        "is noted with the consumer group's offset, so that whoever goes on builds that very file.\n"
        "A definition is PicoMQ's: type, key, enabled, version, name, path, one or more [[topics]], and "
        "[plugin_config] as its S3 sink takes it, without `durability` and `spool_dir`. `on_undecodable` beside them "
        "says what becomes of a record that is not what its schema says: `base64` (it lands as text), `skip` or "
        "`stop`. Any field can be overridden by a variable PICOMQ_CONNECTORS_SINK_<KEY>_<FIELD>, and of "
        "[plugin_config] by PICOMQ_CONNECTORS_SINK_<KEY>_PLUGIN_CONFIG_<FIELD>. The broker is named by "
        "PICOMQ_CONNECTORS_KAFKA__BOOTSTRAP_SERVERS, by default `localhost:9092`, with "
        "PICOMQ_CONNECTORS_KAFKA__SECURITY_PROTOCOL, `...__SASL__MECHANISM`, `...__SASL__USERNAME`, "
        "`...__SASL__PASSWORD`, `...__TLS__CA_FILE`, `...__TLS__CERT_FILE`, `...__TLS__KEY_FILE`, "
        "`...__TLS__KEY_PASSWORD` and `...__TLS__VERIFY`.\n"
        "Of the sink's settings only QUEEN_S3_LISTEN, QUEEN_S3_CONTROL, QUEEN_S3_LOG_LEVEL, QUEEN_S3_LOG_FORMAT, "
        "QUEEN_S3_MEMORY_MB and QUEEN_S3_SHUTDOWN_GRACE_MS count, and none is needed. A broken definition stops its "
        "own connector alone.\n"
        "A topic that was deleted and created again is noticed, and read from its start, where it stays shorter than "
        "what was committed for ten seconds; one that has outgrown the commit by then can not be told from the old one.",
    .options = command_only_file,
    .exits = exits,
    .examples = examples,
    .run = run,
};
