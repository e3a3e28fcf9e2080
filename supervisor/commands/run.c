/*
 * `queen-s3 [run]`: the sink. Settings, the boot line; then the supervisor, whose exit code is the program's.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/file_store.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/settings.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/connectors_run.h"
#include "supervisor/environment.h"
#include "supervisor/hints.h"
#include "supervisor/loop.h"
#include "supervisor/signals.h"
#include "worker/worker.h"

static void warn(const char *line)
{
    log_line(LOG_WARN, NULL, "%s", line);
}

static void say_boot(const struct settings *settings)
{
    char *line = settings_boot_line(settings);

    if (settings->log_json) {
        log_line(LOG_INFO, NULL, "%s", line);
    } else {
        log_say("%s", line); /* whole, however many queues it names */
    }
    free(line);
    hints_tell(settings, warn);
}

/* A rolling restart reads the file again: its name is kept whole, and apart from the arguments, which become a title. */
static char *keep_path(const char *file)
{
    char *directory = file != NULL && file[0] != '/' ? getcwd(NULL, 0) : NULL;
    char *path = NULL;

    if (file != NULL) {
        path = directory != NULL ? memory_format("%s/%s", directory, file) : memory_format("%s", file);
    }
    free(directory);
    return path;
}

/* For a rolling restart: as at the start. file: as run_sink() has it. */
static int read_again(void *file, struct settings *fresh, struct error *error)
{
    return settings_load(file, fresh, error);
}

/* file: NULL, or where settings are read from beside the environment. */
static int run_sink(char *file)
{
    const struct supervisor_hooks hooks = {worker_run,           worker_probe, file_store_clean,
                                           worker_run_connector, read_again,   file};
    struct settings settings;
    struct error error;
    int exit_code;

    log_open();
    if (settings_load(file, &settings, &error) != 0) {
        hints_tell(NULL, warn);
        log_say("queen-s3: %s", error.message);
        return COMMAND_CONFIGURATION;
    }
    log_configure(settings.log_level, settings.log_json);
    say_boot(&settings);
    exit_code = settings.connectors == NULL
                    ? supervisor_run(&settings, &hooks)
                    : connectors_run(&settings, (const char *const *)&settings.connectors, 1, &hooks);
    settings_free(&settings);
    return exit_code;
}

static int run(int argc, char **argv)
{
    struct arguments arguments;
    struct error error;

    if (arguments_parse(&command_run, argc, argv, &arguments, &error) != 0) {
        log_say("queen-s3: %s", error.message);
        return COMMAND_CONFIGURATION;
    }
    char *file = keep_path(arguments.values[COMMAND_FILE]);
    free(arguments.words);
    signals_hold();
    environment_set_title("queen-s3: supervisor");
    int exit_code = run_sink(file);
    free(file);
    return exit_code;
}

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "a signal came and every queue drained, or the grace ran out"},
    {COMMAND_FAULT, "QUEEN_S3_LISTEN could not be bound"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong; the line names the variable"},
    {COMMAND_UNREACHABLE, "the broker or the bucket could not be reached at the start"},
    {128 + SIGINT, "a second signal came, SIGINT"},
    {128 + SIGTERM, "a second signal came, SIGTERM"},
    {0, NULL},
};

const struct command command_run = {
    .name = "run",
    .words = "",
    .summary = "mirror queues of a Queen broker into object storage (the default)",
    .help =
        "Runs until SIGTERM or SIGINT, which drain it; a second signal kills it at once. Once it runs, nothing that "
        "broker or bucket do ends it: it lags, and goes on.",
    .options = command_only_file,
    .exits = exits,
    .run = run,
};
