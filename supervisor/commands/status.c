/*
 * `queen-s3 status`: what a running pool says of itself over its control socket (spec 4.3, 4.4).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/settings.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/control_ask.h"
#include "supervisor/commands/output.h"
#include "supervisor/commands/status_text.h"
#include "supervisor/control.h"
#include "supervisor/snapshot.h"

enum { OPTION_JSON = COMMAND_FILE + 1 };

static bool wants_colour(void)
{
    const char *refused = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && (refused == NULL || refused[0] == '\0') &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

static int fail_places(const struct control_places *places)
{
    if (places->count == 1) {
        return command_fail(COMMAND_UNREACHABLE,
                            "no pool answers at %s; QUEEN_S3_SINK and QUEEN_S3_CONTROL have to be those of the pool",
                            places->paths[0]);
    }
    return command_fail(COMMAND_UNREACHABLE,
                        "no pool answers at %s or %s; QUEEN_S3_SINK and QUEEN_S3_CONTROL have to be those of the pool",
                        places->paths[0], places->paths[1]);
}

/* The exit code, which is 0 where the answer is there. */
static int ask_places(const struct control_places *places, struct byte_buffer *answer)
{
    struct error error;
    int code = control_ask_places(places, "status", CONTROL_CLIENT_MS, answer, &error);

    switch (code) {
    case 0: return EXIT_SUCCESS;
    case QS_ERROR_NOT_FOUND: return fail_places(places);
    case QS_ERROR_INPUT:
        return command_fail(COMMAND_CONFIGURATION, "%s%s", places->chosen ? "QUEEN_S3_CONTROL=" : "", error.message);
    default: return command_fail(COMMAND_UNREACHABLE, "%s", error.message);
    }
}

static int print_answer(const struct byte_buffer *answer, bool json)
{
    struct snapshot snapshot;
    struct error error;
    int code;

    if (snapshot_read(answer->bytes, answer->size, &snapshot, &error) != 0) {
        return command_fail(COMMAND_FAULT, "%s", error.message);
    }
    if (json) {
        output_write(answer->bytes, answer->size);
    } else {
        snapshot_sort(&snapshot);
        status_print(&snapshot, wants_colour());
    }
    code = snapshot.late_count > 0 ? COMMAND_FAULT : EXIT_SUCCESS;
    snapshot_free(&snapshot);
    return output_end(code);
}

static int ask_and_print(const struct settings *settings, bool json)
{
    struct byte_buffer answer = {0};
    struct control_places places;
    int code;

    control_places_init(&places, settings->control, settings->sink, CONTROL_FOLDER, getenv("XDG_RUNTIME_DIR"));
    if (places.count == 0) {
        code = command_fail(COMMAND_CONFIGURATION, "QUEEN_S3_CONTROL=off: such a pool has no socket to ask it over");
    } else {
        code = ask_places(&places, &answer);
    }
    if (code == EXIT_SUCCESS) {
        code = print_answer(&answer, json);
    }
    control_places_free(&places);
    byte_buffer_free(&answer);
    return code;
}

static int run_status(int argc, char **argv)
{
    struct arguments arguments;
    struct settings settings;
    struct error error;
    int code;

    output_begin();
    if (arguments_parse(&command_status, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    free(arguments.words);
    if (settings_load_control(arguments.values[COMMAND_FILE], &settings, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    code = ask_and_print(&settings, arguments.values[OPTION_JSON] != NULL);
    settings_free(&settings);
    return code;
}

static const struct command_option options[] = {
    [COMMAND_FILE] = COMMAND_FILE_OPTION,
    [OPTION_JSON] =
        {"--json", NULL,
         "the answer as it came, one JSON object on one line: sink, instance, version, phase, pid, "
         "uptimeMs, at, limitMs, late (how many queues are), workers, queues, and connectors where there are any"},
    {NULL, NULL, NULL},
};

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "the pool answers, and no queue is late"},
    {COMMAND_FAULT, "the pool answers, and a queue is late: `/healthz` is red"},
    {COMMAND_CONFIGURATION, "arguments or settings are wrong"},
    {COMMAND_UNREACHABLE, "no pool answers, or this user may not ask it"},
    {0, NULL},
};

static const struct command_example examples[] = {
    {"queen-s3 status", "shows the pool that this configuration names"},
    {"queen-s3 status --json | jq -r '.queues[] | select(.late) | .queue'", "names the late queues"},
    {NULL, NULL},
};

const struct command command_status = {
    .name = "status",
    .words = "",
    .summary = "show what a running pool is doing: its workers and its queues",
    .help = "Asks the pool over its control socket, and prints a table of its workers and one of its queues, late ones "
            "first and marked with a !: state, owner (the worker, or the instance that has the queue instead), the "
            "last committed window and the time that it ends, how far the lake is behind the broker, and what is "
            "buffered. Below a queue that can't go on stands why, and how long ago that was last tried.\n"
            "Needs QUEEN_S3_SINK and QUEEN_S3_CONTROL as the pool has them, and nothing else. Without "
            "QUEEN_S3_CONTROL the socket is looked for in `/run/queen-s3` and in `$XDG_RUNTIME_DIR`. Only the user "
            "that runs the pool, and root, may ask.",
    .options = options,
    .exits = exits,
    .examples = examples,
    .run = run_status,
};
