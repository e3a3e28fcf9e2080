/* The table of commands, dispatch, and the two commands that are about the table itself: command.h. */
#include "supervisor/command.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/nearest.h"
#include "common/settings.h"
#include "supervisor/commands/arguments.h"
#include "supervisor/commands/commands.h"
#include "supervisor/commands/output.h"

static int run_version(int argc, char **argv);
static int run_help(int argc, char **argv);
static const char *help_choice(size_t number);

const struct command_option command_only_file[] = {[COMMAND_FILE] = COMMAND_FILE_OPTION, {NULL, NULL, NULL}};

static const struct command_exit exits[] = {
    {EXIT_SUCCESS, "it has been printed"},
    {COMMAND_CONFIGURATION, "an argument that isn't known"},
    {0, NULL},
};

static const struct command command_version = {
    .name = "version",
    .words = "",
    .summary = "print the version",
    .help = "",
    .options = command_only_file,
    .exits = exits,
    .run = run_version,
};

static const struct command command_help = {
    .name = "help",
    .words = "[COMMAND]",
    .summary = "print this list, or what one command does",
    .help = "",
    .options = command_only_file,
    .exits = exits,
    .choice = help_choice,
    .run = run_help,
};

static const struct command *const commands[] = {
    &command_run,     &command_check, &command_status, &command_windows, &command_cat,     &command_verify,
    &command_recover, &command_ddl,   &command_policy, &command_connect, &command_version, &command_help,
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

const struct command *command_at(size_t number)
{
    return number < COMMAND_COUNT ? commands[number] : NULL;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static const char *help_choice(size_t number)
{
    const struct command *command = command_at(number);

    return command != NULL ? command->name : NULL;
}

static int unknown(const char *name)
{
    struct nearest nearest;

    nearest_begin(&nearest, name);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        nearest_offer(&nearest, commands[i]->name);
    }
    if (nearest.name != NULL) {
        return command_fail(COMMAND_CONFIGURATION, "unknown command %s; did you mean %s?", name, nearest.name);
    }
    return command_fail(COMMAND_CONFIGURATION, "unknown command %s; see queen-s3 help", name);
}

static void print_all(void)
{
    (void)puts("usage: queen-s3 [-f FILE] [COMMAND] [ARGUMENT...]\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        (void)printf("  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    }
    command_print_paragraphs(
        stdout,
        "Every setting is an environment variable, or a line of FILE. `run`, the default, needs QUEEN_S3_QUEUES, "
        "QUEEN_S3_ENDPOINT, QUEEN_S3_REGION, QUEEN_S3_BUCKET, QUEEN_S3_ACCESS_KEY and QUEEN_S3_SECRET_KEY (region and "
        "keys not with a file: endpoint); the others need of these what names the bucket. `queen-s3 help COMMAND` says "
        "more, and so do the pages queen-s3(8) and queen-s3.conf(5).");
}

static int run_version(int argc, char **argv)
{
    struct arguments arguments;
    struct error error;

    if (arguments_parse(&command_version, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    free(arguments.words);
    output_begin();
    output_text("queen-s3 " QUEEN_S3_VERSION "\n");
    return output_end(EXIT_SUCCESS);
}

/* NULL: what all of them do. What is printed stays in the buffer up to output_end(). */
static int print_help(const struct command *command)
{
    output_begin();
    if (command != NULL) {
        command_print_help(stdout, command);
    } else {
        print_all();
    }
    return output_end(EXIT_SUCCESS);
}

static int run_help(int argc, char **argv)
{
    struct arguments arguments;
    struct error error;

    if (arguments_parse(&command_help, argc, argv, &arguments, &error) != 0) {
        return command_fail(COMMAND_CONFIGURATION, "%s", error.message);
    }
    const char *name = arguments.word_count > 0 ? arguments.words[0] : NULL;
    const struct command *command = name != NULL ? command_find(name) : NULL;
    free(arguments.words);
    if (name != NULL && command == NULL) {
        return unknown(name);
    }
    return print_help(command);
}

/* `-h`, `--help` and `--version` stand for commands, nothing for `run`. */
static char *command_name(char *word)
{
    static char run[] = "run";
    static char help[] = "help";
    static char version[] = "version";

    if (word == NULL) {
        return run;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        return help;
    }
    return strcmp(word, "--version") == 0 ? version : word;
}

static bool asks_for_help(int argc, char **argv)
{
    int first = argc > 2 && strcmp(argv[2], "-f") == 0 ? 4 : 2;

    return argc > first && (strcmp(argv[first], "--help") == 0 || strcmp(argv[first], "-h") == 0);
}

static int dispatch(int argc, char **argv)
{
    const struct command *command = command_find(argv[1]);

    if (command == NULL) {
        return unknown(argv[1]);
    }
    if (command->run != run_help && asks_for_help(argc, argv)) {
        return print_help(command);
    }
    return command->run(argc, argv);
}

/* Every command sees one shape of line: its name first, `run` where there is none, and behind it a -f FILE that stood
 * before it. */
int command_main(int argc, char **argv)
{
    int named = 1;

    while (named < argc && strcmp(argv[named], "-f") == 0) {
        named += 2;
    }
    if (named > argc) {
        return command_fail(COMMAND_CONFIGURATION, "-f wants a file; see queen-s3 help");
    }
    char **line = memory_new((size_t)argc + 2, sizeof *line);
    int count = 0;
    line[count++] = argc > 0 ? argv[0] : NULL;
    line[count++] = command_name(argc > named ? argv[named] : NULL);
    for (int i = 1; i < argc; i++) {
        if (i != named) {
            line[count++] = argv[i];
        }
    }
    int code = dispatch(count, line);
    free(line);
    return code;
}
