/*
 * Completion for bash and zsh: completion.h. Both offer the commands, the options of the one that is there, the words
 * that are known (`ddl`'s engines), and files where an argument's name begins with FILE or FOLDER. Names of queues are
 * the broker's to know.
 */
#include "man/completion.h"

#include <stdbool.h>
#include <string.h>

#include "supervisor/command.h"

static bool is_path(const char *argument)
{
    return strncmp(argument, "FILE", 4) == 0 || strncmp(argument, "FOLDER", 6) == 0;
}

enum taking { TAKING_NOTHING, TAKING_TEXT, TAKING_FILE, TAKING_ANY };

static enum taking taking_of(const struct command_option *option)
{
    if (option->argument == NULL) {
        return TAKING_NOTHING;
    }
    return is_path(option->argument) ? TAKING_FILE : TAKING_TEXT;
}

/* ---- bash ---- */

static const char bash_head[] =
    "# Completion of queen-s3 for bash, made from the program's own tables.\n"
    "\n"
    "_queen_s3()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=run\n"
    "    local options='' files='' texts='' choices='' words='' word\n"
    "    local -i at=1 place=0\n"
    "\n"
    "    COMPREPLY=()\n"
    "    while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == -f ]]; do\n"
    "        at+=2\n"
    "    done\n"
    "    if ((COMP_CWORD == at)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -W '-f";

static const char bash_middle[] = "' -- \"$current\")\n"
                                  "        return\n"
                                  "    elif ((COMP_CWORD > at)); then\n"
                                  "        command=${COMP_WORDS[at]}\n"
                                  "        at+=1\n"
                                  "    fi\n"
                                  "    case $command in\n";

static const char bash_tail[] = "    if [[ $current == '=' ]]; then\n"
                                "        current=''\n"
                                "    elif [[ $before == '=' ]]; then\n"
                                "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
                                "    fi\n"
                                "    if [[ \" $files \" == *\" $before \"* ]]; then\n"
                                "        compopt -o default\n"
                                "        return\n"
                                "    elif [[ \" $texts \" == *\" $before \"* ]]; then\n"
                                "        return\n"
                                "    fi\n"
                                "    for (( ; at < COMP_CWORD; at++)); do\n"
                                "        word=${COMP_WORDS[at]}\n"
                                "        if [[ \" $files $texts \" == *\" $word \"* ]]; then\n"
                                "            at+=1\n"
                                "            [[ ${COMP_WORDS[at]} != '=' ]] || at+=1\n"
                                "        elif [[ $word != -* ]]; then\n"
                                "            place+=1\n"
                                "        fi\n"
                                "    done\n"
                                "    if [[ $current != -* && $words == files ]]; then\n"
                                "        compopt -o default\n"
                                "    elif [[ $current != -* && -n $choices ]] && ((place == 0)); then\n"
                                "        mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$current\")\n"
                                "    else\n"
                                "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
                                "    fi\n"
                                "}\n"
                                "\n"
                                "complete -F _queen_s3 queen-s3\n";

static void bash_options(FILE *out, const struct command *command, const char *variable, enum taking taking)
{
    bool any = false;

    for (const struct command_option *at = command->options; at != NULL && at->name != NULL; at++) {
        if (taking == TAKING_ANY || taking == taking_of(at)) {
            if (any) {
                (void)fprintf(out, " %s", at->name);
            } else {
                (void)fprintf(out, "        %s='%s", variable, at->name);
            }
            any = true;
        }
    }
    (void)fputs(any ? "'\n" : "", out);
}

static void bash_command(FILE *out, const struct command *command)
{
    (void)fprintf(out, "    %s)\n", command->name);
    bash_options(out, command, "options", TAKING_ANY);
    bash_options(out, command, "files", TAKING_FILE);
    bash_options(out, command, "texts", TAKING_TEXT);
    if (command->choice != NULL) {
        (void)fputs("        choices='", out);
        for (size_t i = 0; command->choice(i) != NULL; i++) {
            (void)fprintf(out, "%s%s", i > 0 ? " " : "", command->choice(i));
        }
        (void)fputs("'\n", out);
    }
    if (is_path(command->words)) {
        (void)fputs("        words=files\n", out);
    }
    (void)fputs("        ;;\n", out);
}

void completion_bash(FILE *out)
{
    const struct command *command;

    (void)fputs(bash_head, out);
    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        (void)fprintf(out, " %s", command->name);
    }
    (void)fputs(bash_middle, out);
    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        bash_command(out, command);
    }
    (void)fputs("    esac\n", out);
    (void)fputs(bash_tail, out);
}

/* ---- zsh ---- */

static const char zsh_head[] = "#compdef queen-s3\n"
                               "# Completion of queen-s3 for zsh, made from the program's own tables.\n"
                               "\n"
                               "_queen-s3() {\n"
                               "    local curcontext=$curcontext state line\n"
                               "    local -A opt_args\n"
                               "    local -a commands\n"
                               "\n"
                               "    commands=(\n";

static const char zsh_middle[] = " \\\n"
                                 "        '(-): :->command' \\\n"
                                 "        '(-)*:: :->argument' && return\n"
                                 "    if [[ $state == command ]]; then\n"
                                 "        _describe -t commands command commands\n"
                                 "        return\n"
                                 "    fi\n"
                                 "    case $words[1] in\n";

static const char zsh_tail[] = "    esac\n"
                               "}\n"
                               "\n"
                               "_queen-s3 \"$@\"\n";

/* Up to where it becomes long, as it may stand between brackets and single quotes. */
static void zsh_text(FILE *out, const char *text)
{
    for (; *text != '\0' && !(strchr(".:;", *text) != NULL && text[1] == ' '); text++) {
        if (*text == '\'') {
            (void)fputs("'\\''", out);
        } else if (*text != '`') {
            (void)fprintf(out, "%s%c", strchr("[]:\\", *text) != NULL ? "\\" : "", *text);
        }
    }
}

static void zsh_option(FILE *out, const struct command_option *option)
{
    bool equals = option->argument != NULL && option->name[1] == '-';

    (void)fprintf(out, " \\\n            '%s%s[", option->name, equals ? "=" : "");
    zsh_text(out, option->help);
    (void)fputc(']', out);
    if (option->argument != NULL) {
        (void)fprintf(out, ":%s:%s", option->argument, taking_of(option) == TAKING_FILE ? "_files" : " ");
    }
    (void)fputc('\'', out);
}

static void zsh_words(FILE *out, const struct command *command)
{
    const char *at = command->words;
    struct command_word word;

    for (size_t number = 1; command_next_word(&at, &word); number++) {
        (void)fputs(" \\\n            '", out);
        if (word.many) {
            (void)fputc('*', out);
        } else {
            (void)fprintf(out, "%zu", number);
        }
        (void)fprintf(out, ":%.*s:", (int)word.size, word.name);
        if (number == 1 && command->choice != NULL) {
            for (size_t i = 0; command->choice(i) != NULL; i++) {
                (void)fprintf(out, "%c%s", i == 0 ? '(' : ' ', command->choice(i));
            }
            (void)fputs(")'", out);
        } else {
            /* Nothing, in a way that leaves an option that is being typed alone. */
            (void)fputs(is_path(word.name) ? "_files'" : "()'", out);
        }
    }
}

void completion_zsh(FILE *out)
{
    const struct command *command;

    (void)fputs(zsh_head, out);
    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        (void)fprintf(out, "        '%s:", command->name);
        zsh_text(out, command->summary);
        (void)fputs("'\n", out);
    }
    (void)fputs("    )\n    _arguments -C", out);
    zsh_option(out, &command_only_file[COMMAND_FILE]);
    (void)fputs(zsh_middle, out);
    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        (void)fprintf(out, "    %s)\n        _arguments -S :", command->name);
        for (const struct command_option *at = command->options; at != NULL && at->name != NULL; at++) {
            zsh_option(out, at);
        }
        zsh_words(out, command);
        (void)fputs("\n        ;;\n", out);
    }
    (void)fputs(zsh_tail, out);
}
