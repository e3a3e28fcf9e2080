/*
 * `queen-s3 check`: are the settings right, and do broker and bucket answer? What the start asks, asked of a configuration
 * before it is started (spec 3.2, 4.4).
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/visible.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/output.h"
#include "supervisor/hints.h"
#include "worker/worker.h"

/* Names of one kind on a line; the rest is counted. */
#define NAMES_SHOWN 20

static void warn(const char *line)
{
    (void)command_fail(0, "warning: %s", line);
}

static void print_names(const struct worker_findings *findings)
{
    for (size_t i = 0; i < findings->queue_count && i < NAMES_SHOWN; i++) {
        char *name = visible_text(findings->queues[i]);

        output_format("%s%s", i > 0 ? ", " : "", name);
        free(name);
    }
    if (findings->queue_count > NAMES_SHOWN) {
        output_format(" and %zu more", findings->queue_count - NAMES_SHOWN);
    }
}

static void print_queues(const struct settings *settings, const struct worker_findings *findings)
{
    if (settings->all_queues) {
        output_format("queues: * is %zu by now%s", findings->queue_count, findings->queue_count > 0 ? ": " : "");
        print_names(findings);
        output_text("\n");
        return;
    }
    output_format("queues: %zu of %zu are there", settings->queue_count - findings->queue_count, settings->queue_count);
    if (findings->queue_count > 0) {
        output_text("; asked for again every minute: ");
        print_names(findings);
    }
    output_text("\n");
}

static void print_broker(const struct worker_findings *findings)
{
    static const char *const generations[] = {
        [GENERATION_UNKNOWN] = "", [GENERATION_1] = ", version 1.x", [GENERATION_2] = ", version 2.x"};
    char time[CLOCK_TEXT_SIZE];

    clock_format_broker(findings->safe_time, time);
    output_format("broker: answers in %" PRId64 " ms%s, safeTime %s\n", findings->queen_ms,
                  generations[findings->generation], time);
    if (findings->degraded) {
        warn("the broker's safeTime is degraded, so windows close half a minute later: its database role lacks "
             "pg_read_all_stats");
    }
}

static void print_bucket(const struct worker_findings *findings)
{
    static const char *const answers[] = {
        [BUCKET_WRITTEN] = "a file was written and removed",
        [BUCKET_THERE] = "HEAD of the prefix gives 200",
        [BUCKET_EMPTY] = "HEAD of the prefix gives 404, which is fine",
        [BUCKET_LISTED] = "HEAD of the prefix gives 403, and its keys can be listed, which is enough"};

    output_format("bucket: answers in %" PRId64 " ms: %s\n", findings->bucket_ms, answers[findings->bucket_answer]);
}

static int probe(const struct settings *settings)
{
    struct worker_findings findings;
    int code = EXIT_SUCCESS;

    worker_check(settings, &findings);
    if (findings.queen.code == QS_OK) {
        print_broker(&findings);
        print_queues(settings, &findings);
    } else {
        code = command_fail(COMMAND_UNREACHABLE, "%s", findings.queen.message);
    }
    if (findings.bucket.code == QS_OK) {
        print_bucket(&findings);
    } else {
        code = command_fail(COMMAND_UNREACHABLE, "%s", findings.bucket.message);
    }
    worker_findings_free(&findings);
    return code;
}

static int check(const struct settings *settings)
{
    char *line = settings_boot_line(settings);

    output_line("%s", line);
    free(line);
    hints_tell(settings, warn);
    return probe(settings);
}

static int run_check(int argc, char **argv)
{
    struct arguments arguments;
    struct settings settings;
    struct error error;

    output_begin();
    if (arguments_parse(&command_check, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    free(arguments.words);
    if (settings_load(arguments.values[COMMAND_FILE], &settings, &error) != 0) {
        hints_tell(NULL, warn);
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    log_configure(LOG_WARN, false);
    int code = check(&settings);
    settings_free(&settings);
    return output_end(code);
}

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "the settings are right, and broker and bucket answer"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong; the line names the variable"},
    {COMMAND_UNREACHABLE, "the broker or the bucket could not be reached"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"queen-s3 check -f /etc/queen-s3/queen-s3.conf", "tries a configuration before it is started or reloaded"},
    {NULL, NULL},
};

const struct command command_check = {
    .name = "check",
    .words = "",
    .summary = "check the settings, and whether broker and bucket answer",
    .help = "Prints the boot line, every setting as the sink would take it, and then what the two probes of the start "
            "find: how fast the broker answers and up to which time its log is safe, which of the queues are there, "
            "how the bucket answers. Both are asked, also where the first fails. A queue that isn't there is no "
            "error: the sink asks for it again.\n"
            "No queue is claimed and no object is written; with a file: endpoint the folder is made, where it has to "
            "be, and a file is written and removed.",
    .options = command_only_file,
    .exits = exits,
    .examples = examples,
    .run = run_check,
};
