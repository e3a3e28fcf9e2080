/* What a command's table says, for a terminal: command.h. */
#include "supervisor/command.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define COLUMNS     79
#define NAME_COLUMN 2  /* where an option or an exit code begins */
#define CODE_COLUMN 6  /* where what is said of an exit code begins */
#define TEXT_WIDEST 24 /* what is said of an option begins there at the latest; a longer name gets its own line */

/* A text on its way onto lines: words go where there is room, lines begin behind `indent` blanks. */
struct lines {
    FILE *out;
    size_t indent;
    size_t column; /* 0: a line that hasn't begun */
};

bool command_next_word(const char **at, struct command_word *word)
{
    const char *begin = *at + strspn(*at, " ");
    size_t size = strcspn(begin, " ");

    *at = begin + size;
    *word = (struct command_word){.name = begin, .size = size};
    if (size > 2 && begin[0] == '[') {
        word->optional = true;
        word->name++;
        word->size -= 2;
    }
    if (size > 3 && memcmp(begin + size - 3, "...", 3) == 0) {
        word->many = true;
        word->size -= 3;
    }
    return size > 0;
}

void command_word_limits(const struct command *command, size_t *least, size_t *most)
{
    const char *at = command->words;
    struct command_word word;

    *least = 0;
    *most = 0;
    while (command_next_word(&at, &word)) {
        *least += word.optional ? 0 : 1;
        *most = word.many || *most == SIZE_MAX ? SIZE_MAX : *most + 1;
    }
}

/* "queen-s3 windows [--since T] [--until T] [--json] QUEUE", without a line feed. */
static void print_synopsis(FILE *out, const struct command *command)
{
    (void)fprintf(out, "queen-s3 %s", command->name);
    for (const struct command_option *option = command->options; option != NULL && option->name != NULL; option++) {
        bool bare = option->argument == NULL;
        (void)fprintf(out, " [%s%s%s]", option->name, bare ? "" : " ", bare ? "" : option->argument);
    }
    if (command->words[0] != '\0') {
        (void)fprintf(out, " %s", command->words);
    }
}

static void put_word(struct lines *lines, const char *word, size_t size)
{
    if (lines->column > lines->indent && lines->column + 1 + size > COLUMNS) {
        (void)fputc('\n', lines->out);
        lines->column = 0;
    }
    size_t blanks = lines->column <= lines->indent ? lines->indent - lines->column : 1;
    (void)fprintf(lines->out, "%*s%.*s", (int)blanks, "", (int)size, word);
    lines->column += blanks + size;
}

static void put_text(struct lines *lines, const char *text, size_t size)
{
    for (const char *end = text + size; text < end; text++) {
        const char *blank = memchr(text, ' ', (size_t)(end - text));
        const char *stop = blank != NULL ? blank : end;
        put_word(lines, text, (size_t)(stop - text));
        text = stop;
    }
}

static void end_line(struct lines *lines)
{
    (void)fputc('\n', lines->out);
    lines->column = 0;
}

/* What is said behind a name that has been printed up to `column`. */
static void put_entry(FILE *out, size_t column, size_t indent, const char *text)
{
    struct lines lines = {.out = out, .indent = indent, .column = column};

    put_text(&lines, text, strlen(text));
    end_line(&lines);
}

static void print_summary(FILE *out, const struct command *command)
{
    (void)fprintf(out, "\n%c%s.\n", command->summary[0] - 'a' + 'A', command->summary + 1);
}

void command_print_paragraphs(FILE *out, const char *text)
{
    for (; *text != '\0'; text += *text == '\n') {
        struct lines lines = {.out = out};
        size_t size = strcspn(text, "\n");
        (void)fputc('\n', out);
        put_text(&lines, text, size);
        end_line(&lines);
        text += size;
    }
}

static void print_choices(FILE *out, const struct command *command)
{
    struct lines lines = {.out = out};
    const char *at = command->words;
    struct command_word word;
    const char *choice;

    if (command->choice == NULL || !command_next_word(&at, &word)) {
        return;
    }
    (void)fputc('\n', out);
    put_word(&lines, word.name, word.size);
    put_text(&lines, "is one of", 9);
    for (size_t i = 0; (choice = command->choice(i)) != NULL; i++) {
        char text[64];
        int size = snprintf(text, sizeof text, "%s%c", choice, command->choice(i + 1) != NULL ? ',' : '.');
        put_word(&lines, text, (size_t)size);
    }
    end_line(&lines);
}

static size_t option_width(const struct command_option *option)
{
    return NAME_COLUMN + strlen(option->name) + (option->argument != NULL ? 1 + strlen(option->argument) : 0);
}

/* Two blanks behind the widest name that isn't too wide. */
static size_t text_column(const struct command_option *options)
{
    size_t column = NAME_COLUMN;

    for (; options->name != NULL; options++) {
        size_t wanted = option_width(options) + 2;
        column = wanted > column && wanted <= TEXT_WIDEST ? wanted : column;
    }
    return column > NAME_COLUMN ? column : TEXT_WIDEST;
}

static void print_options(FILE *out, const struct command *command)
{
    if (command->options == NULL) {
        return;
    }
    size_t text = text_column(command->options);
    (void)fputs("\nOptions:\n", out);
    for (const struct command_option *option = command->options; option->name != NULL; option++) {
        bool bare = option->argument == NULL;
        size_t width = option_width(option);
        (void)fprintf(out, "%*s%s%s%s", NAME_COLUMN, "", option->name, bare ? "" : " ", bare ? "" : option->argument);
        if (width + 2 > text) {
            (void)fputc('\n', out);
            width = 0;
        }
        put_entry(out, width, text, option->help);
    }
}

static void print_exits(FILE *out, const struct command *command)
{
    if (command->exits == NULL) {
        return;
    }
    (void)fputs("\nExit codes:\n", out);
    for (const struct command_exit *at = command->exits; at->when != NULL; at++) {
        int width = fprintf(out, "%*s%d", NAME_COLUMN, "", at->code);
        put_entry(out, (size_t)width, CODE_COLUMN + 1, at->when);
    }
}

static void print_examples(FILE *out, const struct command *command)
{
    if (command->examples == NULL) {
        return;
    }
    (void)fputs("\nExamples:\n", out);
    for (const struct command_example *example = command->examples; example->line != NULL; example++) {
        (void)fprintf(out, "%*s%s\n", NAME_COLUMN, "", example->line);
        put_entry(out, 0, CODE_COLUMN, example->what);
    }
}

void command_print_help(FILE *out, const struct command *command)
{
    (void)fputs("usage: ", out);
    print_synopsis(out, command);
    (void)fputc('\n', out);
    print_summary(out, command);
    command_print_paragraphs(out, command->help);
    print_choices(out, command);
    print_options(out, command);
    print_exits(out, command);
    print_examples(out, command);
}
