/* The table of commands, dispatch, and the two commands that are about the table itself: command.h. */
#include "supervisor/command.h"

#include <stdlib.h>
#include <string.h>

#include "common/settings.h"
#include "supervisor/commands/commands.h"

static int run_version(int argc, char **argv);
static int run_help(int argc, char **argv);
static const char *help_choice(size_t number);

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
    .exits = exits,
    .run = run_version,
};

static const struct command command_help = {
    .name = "help",
    .words = "[COMMAND]",
    .summary = "print this list, or what one command does",
    .help = "",
    .exits = exits,
    .choice = help_choice,
    .run = run_help,
};

static const struct command *const commands[] = {
    &command_run, &command_windows, &command_cat,     &command_verify,
    &command_ddl, &command_policy,  &command_version, &command_help,
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
    (void)fprintf(stderr, "queen-s3: unknown command %s; see queen-s3 help\n", name);
    return COMMAND_CONFIGURATION;
}

static int unexpected(const char *argument)
{
    (void)fprintf(stderr, "queen-s3: unexpected argument %s; see queen-s3 help\n", argument);
    return COMMAND_CONFIGURATION;
}

static void print_all(void)
{
    (void)puts("usage: queen-s3 [COMMAND] [ARGUMENT...]\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        (void)printf("  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    }
    (void)puts(
        "\nEvery setting is an environment variable. `run`, the default, needs QUEEN_S3_QUEUES, QUEEN_S3_ENDPOINT,\n"
        "QUEEN_S3_REGION, QUEEN_S3_BUCKET, QUEEN_S3_ACCESS_KEY and QUEEN_S3_SECRET_KEY (region and keys not\n"
        "with a file: endpoint); the others need of these what names the bucket. `queen-s3 help COMMAND` says\n"
        "more.");
}

static int run_version(int argc, char **argv)
{
    if (argc > 2) {
        return unexpected(argv[2]);
    }
    (void)puts("queen-s3 " QUEEN_S3_VERSION);
    return EXIT_SUCCESS;
}

static int run_help(int argc, char **argv)
{
    const struct command *command = argc > 2 ? command_find(argv[2]) : NULL;

    if (argc > 3) {
        return unexpected(argv[3]);
    }
    if (argc > 2 && command == NULL) {
        return unknown(argv[2]);
    }
    if (command != NULL) {
        command_print_help(stdout, command);
    } else {
        print_all();
    }
    return EXIT_SUCCESS;
}

int command_main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "run";

    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "--version") == 0) {
        name += strspn(name, "-");
        name = *name == 'h' ? "help" : name;
    }
    const struct command *command = command_find(name);
    if (command == NULL) {
        return unknown(name);
    }
    if (argc > 2 && command->run != run_help && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        command_print_help(stdout, command);
        return EXIT_SUCCESS;
    }
    return command->run(argc, argv);
}
