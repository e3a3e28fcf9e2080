/*
 * Makes the manual pages and the shells' completions from the tables that the program itself runs by, so that none of
 * them can say anything else than the program does.
 *
 *     generate page man/queen-s3-windows.1.in     a page, on standard output
 *     generate bash | zsh                         the completion for that shell
 *
 * A page is a template: mdoc written by hand, in which a line that begins with % is replaced.
 *
 *     %page NAME SECTION DATE    the page's head. DATE is as in November 30, 2026
 *     %command COMMAND           NAME, SYNOPSIS, DESCRIPTION with choices and options; what follows goes on with it
 *     %options COMMAND           a list of its options alone
 *     %exits COMMAND             EXIT STATUS
 *     %examples COMMAND          EXAMPLES
 *     %commands                  a list of all commands
 *     %engines                   what ddl knows
 *     %metrics                   a list of all metrics
 *     %signals                  a list of the signals that a pool takes
 *     %settings NAME...          a list of these settings. A page that has any has to have all
 *
 * A new command's page is these lines in man/queen-s3-COMMAND.1.in and a word or two of its own; the build, the
 * installation, the list of commands and the tests find it.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/setting_table.h"
#include "common/settings.h"
#include "man/completion.h"
#include "man/mdoc.h"
#include "supervisor/command.h"
#include "supervisor/commands/ddl.h"
#include "supervisor/metric_table.h"
#include "supervisor/signal_table.h"

struct template
{
    const char *path;
    size_t line;
};

static _Noreturn void fail(const struct template *template, const char *what, const char *which)
{
    (void)fprintf(stderr, "generate: %s:%zu: %s%s\n", template->path, template->line, what, which);
    exit(EXIT_FAILURE);
}

static const struct command *find(const struct template *template, const char *name)
{
    const struct command *command = command_find(name);

    if (command == NULL) {
        fail(template, "there is no command ", name);
    }
    return command;
}

/* The command's page beside this one. */
static bool has_page(const struct template *template, const struct command *command)
{
    const char *slash = strrchr(template->path, '/');
    char path[4096];

    (void)snprintf(path, sizeof path, "%.*squeen-s3-%s.1.in", slash != NULL ? (int)(slash + 1 - template->path) : 0,
                   template->path, command->name);
    return access(path, R_OK) == 0;
}

static void write_page(const struct template *template, const char *arguments)
{
    char name[64];
    char section[4];
    int date = 0;

    if (sscanf(arguments, "%63s %3s %n", name, section, &date) != 2 || arguments[date] == '\0') {
        fail(template, "%page wants NAME SECTION DATE, not ", arguments);
    }
    for (char *at = name; *at != '\0'; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    (void)printf(".Dd %s\n.Dt %s %s\n.Os queen-s3 %s\n", arguments + date, name, section, QUEEN_S3_VERSION);
}

static void write_synopsis(const struct command *command)
{
    (void)printf(".Sh SYNOPSIS\n.Nm queen-s3 Cm %s\n", command->name);
    for (const struct command_option *option = command->options; option != NULL && option->name != NULL; option++) {
        (void)fputs(".Op", stdout);
        mdoc_option(stdout, option);
        (void)fputc('\n', stdout);
    }
    mdoc_words(stdout, command, ".", "\n");
}

static void write_choices(const struct command *command)
{
    const char *at = command->words;
    struct command_word word;

    if (command->choice == NULL || !command_next_word(&at, &word)) {
        return;
    }
    (void)printf(".Pp\n.Ar %.*s\nis one of\n", (int)word.size, word.name);
    for (size_t i = 0; command->choice(i) != NULL; i++) {
        (void)printf(".Cm %s %s\n", command->choice(i), command->choice(i + 1) != NULL ? "," : ".");
    }
}

static void write_options(const struct template *template, const char *name)
{
    const struct command *command = find(template, name);

    if (command->options == NULL) {
        fail(template, "there are no options of ", name);
    }
    (void)puts(".Bl -tag -width Ds");
    for (const struct command_option *option = command->options; option->name != NULL; option++) {
        (void)fputs(".It", stdout);
        mdoc_option(stdout, option);
        (void)fputc('\n', stdout);
        mdoc_sentence(stdout, option->help, command, ".");
    }
    (void)puts(".El");
}

static void write_command(const struct template *template, const char *name)
{
    const struct command *command = find(template, name);

    (void)printf(".Sh NAME\n.Nm queen-s3-%s\n.Nd %s\n", command->name, command->summary);
    write_synopsis(command);
    (void)puts(".Sh DESCRIPTION");
    mdoc_paragraphs(stdout, command->help, command);
    write_choices(command);
    if (command->options != NULL) {
        (void)puts(".Pp\nThe options are as follows:");
        write_options(template, name);
    }
}

static void write_exits(const struct template *template, const char *name)
{
    const struct command *command = find(template, name);

    if (command->exits == NULL) {
        fail(template, "no exit codes are given for ", name);
    }
    (void)puts(".Sh EXIT STATUS\n.Bl -tag -width Ds");
    for (const struct command_exit *at = command->exits; at->when != NULL; at++) {
        (void)printf(".It %d\n", at->code);
        mdoc_sentence(stdout, at->when, command, ".");
    }
    (void)puts(".El");
}

static void write_examples(const struct template *template, const char *name)
{
    const struct command *command = find(template, name);

    if (command->examples == NULL) {
        fail(template, "no examples are given for ", name);
    }
    (void)puts(".Sh EXAMPLES");
    for (const struct command_example *at = command->examples; at->line != NULL; at++) {
        (void)fputs(at > command->examples ? ".Pp\n" : "", stdout);
        mdoc_sentence(stdout, at->what, command, ":");
        (void)puts(".Bd -literal -offset indent");
        mdoc_literal(stdout, at->line);
        (void)puts(".Ed");
    }
}

/* Others than the one that all have. */
static bool has_options(const struct command *command)
{
    return command->options != NULL && command->options != command_only_file;
}

static void write_commands(const struct template *template, const char *arguments)
{
    const struct command *command;

    (void)arguments;
    (void)puts(".Bl -tag -width Ds");
    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        bool page = has_page(template, command);
        (void)printf(".It Cm %s", command->name);
        (void)fputs(has_options(command) ? " Oo Ar options Oc" : "", stdout);
        mdoc_words(stdout, command, " ", "");
        (void)fputc('\n', stdout);
        mdoc_sentence(stdout, command->summary, command, page ? ":" : ".");
        if (page) {
            (void)printf(".Xr queen-s3-%s 1 .\n", command->name);
        } else if (has_options(command)) {
            fail(template, "its options are described nowhere: there is no page of ", command->name);
        }
    }
    (void)puts(".El");
}

static void write_engines(const struct template *template, const char *arguments)
{
    (void)template;
    (void)arguments;
    for (const struct ddl_engine *engine = ddl_engines; engine->name != NULL; engine++) {
        (void)printf(".Cm %s%s\n", engine->name, engine[1].name == NULL ? "" : " ,");
    }
}

static void write_metrics(const struct template *template, const char *arguments)
{
    (void)template;
    (void)arguments;
    (void)puts(".Bl -tag -width Ds");
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric_row *row = &metric_table[i];
        (void)printf(".It Va %s\n.Pq %s", row->name, row->type);
        (void)printf("%s%s", row->labels[0] != NULL ? " by " : "", row->labels[0] != NULL ? row->labels[0] : "");
        (void)printf("%s%s\n", row->labels[1] != NULL ? " and " : "", row->labels[1] != NULL ? row->labels[1] : "");
        mdoc_paragraphs(stdout, row->help, NULL);
        mdoc_paragraphs(stdout, row->meaning, NULL);
    }
    (void)puts(".El");
}

static void write_signals(const struct template *template, const char *arguments)
{
    (void)template;
    (void)arguments;
    (void)puts(".Bl -tag -width Ds");
    for (const struct signal_row *row = signal_table; row->name != NULL; row++) {
        (void)printf(".It Dv %s\n", row->name);
        mdoc_paragraphs(stdout, row->effect, NULL);
    }
    (void)puts(".El");
}

static void write_setting(const struct setting *setting)
{
    char line[1024];

    (void)printf(".It Ev %s\n", setting->name);
    mdoc_paragraphs(stdout, setting->description, NULL);
    if ((setting->flags & (SETTING_REFUSED | SETTING_BROKERS)) == 0) {
        (void)snprintf(line, sizeof line, "Accepted: %s.", setting->accepted);
        (void)puts(".br");
        mdoc_paragraphs(stdout, line, NULL);
    }
    if ((setting->flags & SETTING_REQUIRED) != 0 || setting->initial != NULL) {
        bool required = (setting->flags & SETTING_REQUIRED) != 0;
        (void)snprintf(line, sizeof line, "%s%s.",
                       required ? "Required" : "Default: ", required ? "" : setting->initial);
        (void)puts(".br");
        mdoc_paragraphs(stdout, line, NULL);
    }
}

static bool listed[256]; /* settings, by their index */

static void write_settings(const struct template *template, const char *arguments)
{
    struct setting setting;

    (void)puts(".Bl -tag -width Ds");
    for (const char *at = arguments; *at != '\0'; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        size_t i = 0;
        while (setting_at(i, &setting) && !(strlen(setting.name) == size && memcmp(setting.name, at, size) == 0)) {
            i++;
        }
        if (i >= sizeof listed || !setting_at(i, &setting) || listed[i]) {
            fail(template, "unknown, or there already: ", at);
        }
        listed[i] = true;
        write_setting(&setting);
        at += size;
    }
    (void)puts(".El");
}

static void check_settings(const struct template *template)
{
    struct setting setting;
    bool any = false;

    for (size_t i = 0; i < sizeof listed; i++) {
        any = any || listed[i];
    }
    for (size_t i = 0; any && setting_at(i, &setting); i++) {
        if (!listed[i]) {
            fail(template, "no list of settings has ", setting.name);
        }
    }
}

static const struct directive {
    const char *name;
    void (*write)(const struct template *template, const char *arguments);
} directives[] = {
    {"page", write_page},         {"command", write_command},   {"options", write_options}, {"exits", write_exits},
    {"examples", write_examples}, {"commands", write_commands}, {"engines", write_engines}, {"metrics", write_metrics},
    {"settings", write_settings}, {"signals", write_signals},
};

static void expand(const struct template *template, const char *line)
{
    size_t size = strcspn(line, " ");

    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
        if (strlen(directives[i].name) == size && memcmp(directives[i].name, line, size) == 0) {
            directives[i].write(template, line + size + strspn(line + size, " "));
            return;
        }
    }
    fail(template, "unknown directive %", line);
}

static void take_line(const struct template *template, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    for (const char *at = line; *at != '\0'; at++) {
        if ((unsigned char)*at >= 0x80) {
            fail(template, "expected ASCII: ", line);
        }
    }
    if (line[0] == '%') {
        expand(template, line + 1);
    } else {
        (void)puts(line);
    }
}

static int write_template(const char *path)
{
    struct template template = {.path = path};
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;

    if (file == NULL) {
        perror(path);
        return EXIT_FAILURE;
    }
    while (getline(&line, &capacity, file) > 0) {
        template.line++;
        take_line(&template, line);
    }
    free(line);
    check_settings(&template);
    return fclose(file) == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "page") == 0) {
        return write_template(argv[2]);
    }
    if (argc == 2 && strcmp(argv[1], "bash") == 0) {
        completion_bash(stdout);
    } else if (argc == 2 && strcmp(argv[1], "zsh") == 0) {
        completion_zsh(stdout);
    } else {
        (void)fputs("usage: generate page TEMPLATE | bash | zsh\n", stderr);
        return 2;
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
