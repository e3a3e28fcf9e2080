/*
 * `queen-s3 [run]`: the sink. Settings, the boot line; then the supervisor, whose exit code is the program's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/file_store.h"
#include "common/log.h"
#include "common/settings.h"
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

    if (settings_read_environment(&settings, &error) != 0) {
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
    if (argc > 2) {
        (void)fprintf(stderr, "queen-s3: unexpected argument %s; see queen-s3 help\n", argv[2]);
        return COMMAND_CONFIGURATION;
    }
    supervisor_hold_signals();
    environment_init(argc, argv);
    environment_set_title("queen-s3: supervisor");
    return run_sink();
}

const struct command command_run = {
    .name = "run",
    .arguments = "",
    .summary = "mirror queues of a Queen broker into object storage (the default)",
    .help =
        "Runs until SIGTERM or SIGINT, which drain it; a second signal kills it at once. Exit code 0 after a stop,\n"
        "2 for a configuration that can't be right, 3 where the broker or the bucket didn't answer at the start.\n",
    .run = run,
};
