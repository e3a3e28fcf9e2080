/*
 * `queen-s3 [run]`: the sink. Settings, the boot line; then the supervisor, whose exit code is the program's.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/file_store.h"
#include "common/log.h"
#include "common/settings.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/environment.h"
#include "supervisor/loop.h"
#include "supervisor/validate.h"
#include "worker/worker.h"

/* Below it the broker's largest answer doesn't fit (spec 3.1). */
#define ROOMY_MEMORY_BYTES ((int64_t)256 << 20)

static void say_boot(const struct settings *settings)
{
    char *line = settings_boot_line(settings);

    if (settings->log_json) {
        log_line(LOG_INFO, NULL, "%s", line);
    } else {
        (void)fprintf(stderr, "%s\n", line); /* whole, however many queues it names */
    }
    free(line);
    if (settings->memory_bytes < ROOMY_MEMORY_BYTES) {
        log_line(LOG_WARN, NULL,
                 "QUEEN_S3_MEMORY_MB=%lld: below 256 the broker's largest answer does not fit, and the budget is not "
                 "held when it comes",
                 (long long)(settings->memory_bytes >> 20));
    }
}

static int run_sink(void)
{
    static const struct supervisor_hooks hooks = {worker_run, worker_probe, file_store_clean};
    struct settings settings;
    struct error error;
    int exit_code = COMMAND_CONFIGURATION;

    if (settings_load(NULL, &settings, &error) != 0) {
        (void)fprintf(stderr, "queen-s3: %s\n", error.message);
        return COMMAND_CONFIGURATION;
    }
    log_configure(settings.log_level, settings.log_json);
    if (validate_settings(&settings, &error) != 0) {
        (void)fprintf(stderr, "queen-s3: %s\n", error.message);
    } else {
        say_boot(&settings);
        exit_code = supervisor_run(&settings, &hooks);
    }
    settings_free(&settings);
    return exit_code;
}

static int run(int argc, char **argv)
{
    struct arguments arguments;
    struct error error;

    if (arguments_parse(&command_run, argc, argv, &arguments, &error) != 0) {
        (void)fprintf(stderr, "queen-s3: %s\n", error.message);
        return COMMAND_CONFIGURATION;
    }
    free(arguments.words);
    supervisor_hold_signals();
    environment_init(argc, argv);
    environment_set_title("queen-s3: supervisor");
    return run_sink();
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
    .exits = exits,
    .run = run,
};
