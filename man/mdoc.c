/* Texts as mdoc: mdoc.h. */
#include "man/mdoc.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 78
#define OPENING "(["
#define CLOSING ".,;:)]!?"

/* Words on their way into lines of the page. */
struct page {
    FILE *out;
    const struct command *command;
    size_t column; /* 0: at the beginning of a line */
};

/* A word of a text between two blanks. */
struct word {
    const char *opening;
    size_t opening_size;
    const char *core;
    size_t core_size;
    const char *closing;
    size_t closing_size;
    bool literal; /* the core stood in backquotes; it may have blanks */
};

static void put_escaped(FILE *out, const char *text, size_t size, bool quotes)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\') {
            (void)fputs("\\e", out);
        } else if (text[i] == '"' && quotes) {
            (void)fputs("\\(dq", out);
        } else {
            (void)fputc(text[i], out);
        }
    }
}

static void argument(FILE *out, const char *text, size_t size)
{
    bool blank = memchr(text, ' ', size) != NULL;
    bool macro = size <= 3 && isupper((unsigned char)text[0]);
    bool punctuation = ispunct((unsigned char)text[0]) && (size == 1 || text[0] == '.');

    (void)fputs(blank ? " \"" : " ", out);
    (void)fputs(blank || macro || punctuation ? "\\&" : "", out);
    put_escaped(out, text, size, true);
    (void)fputs(size > 0 && strchr(CLOSING, text[size - 1]) != NULL ? "\\&" : "", out);
    (void)fputs(blank ? "\"" : "", out);
}

void mdoc_literal(FILE *out, const char *line)
{
    (void)fputs(line[0] == '.' || line[0] == '\'' ? "\\&" : "", out);
    put_escaped(out, line, strlen(line), false);
    (void)fputc('\n', out);
}

void mdoc_option(FILE *out, const struct command_option *option)
{
    (void)fprintf(out, " Fl %s", option->name + 1);
    if (option->argument != NULL) {
        (void)fputs(" Ar", out);
        argument(out, option->argument, strlen(option->argument));
    }
}

void mdoc_words(FILE *out, const struct command *command, const char *begin, const char *end)
{
    const char *at = command->words;
    struct command_word word;

    while (command_next_word(&at, &word)) {
        (void)fprintf(out, "%s%sAr", begin, word.optional ? "Op " : "");
        argument(out, word.name, word.size);
        (void)fprintf(out, "%s%s", word.many ? " ..." : "", end);
    }
}

static void end_line(struct page *page)
{
    if (page->column > 0) {
        (void)fputc('\n', page->out);
        page->column = 0;
    }
}

static void put_plain(struct page *page, const char *text, size_t size)
{
    if (page->column > 0 && page->column + 1 + size > COLUMNS) {
        end_line(page);
    }
    if (page->column > 0) {
        (void)fputc(' ', page->out);
        page->column++;
    } else if (*text == '.' || *text == '\'') {
        (void)fputs("\\&", page->out);
    }
    put_escaped(page->out, text, size, false);
    page->column += size;
}

static bool is_argument(const struct command *command, const char *text, size_t size)
{
    const char *at = command != NULL ? command->words : "";
    struct command_word word;

    while (command_next_word(&at, &word)) {
        if (word.size == size && memcmp(word.name, text, size) == 0) {
            return true;
        }
    }
    const struct command_option *option = command != NULL ? command->options : NULL;
    for (; option != NULL && option->name != NULL; option++) {
        if (option->argument != NULL && strlen(option->argument) == size && memcmp(option->argument, text, size) == 0) {
            return true;
        }
    }
    return false;
}

static const char *macro_of(const struct page *page, const struct word *word)
{
    if (word->literal) {
        return "Ql";
    }
    if (word->core_size > 1 && word->core[0] == '-' &&
        (word->core[1] == '-' || islower((unsigned char)word->core[1]))) {
        return "Fl";
    }
    if (word->core_size > 6 && memcmp(word->core, "QUEEN_", 6) == 0) {
        return "Ev";
    }
    return is_argument(page->command, word->core, word->core_size) ? "Ar" : NULL;
}

/* A setting may have its value behind it: QUEEN_S3_ALIGN=none. */
static void put_core(FILE *out, const char *macro, const struct word *word)
{
    const char *equals = *macro == 'E' ? memchr(word->core, '=', word->core_size) : NULL;
    size_t name = equals != NULL ? (size_t)(equals - word->core) : word->core_size;
    size_t dash = *macro == 'F' ? 1 : 0;

    argument(out, word->core + dash, name - dash);
    if (equals != NULL) {
        (void)fputs(" Ns", out);
        (void)fputs(" \\&", out);
        put_escaped(out, equals, word->core_size - name, true);
    }
}

static void put_macro(struct page *page, const char *macro, const struct word *word)
{
    end_line(page);
    (void)fprintf(page->out, ".%s", macro);
    for (size_t i = 0; i < word->opening_size; i++) {
        (void)fprintf(page->out, " %c", word->opening[i]);
    }
    put_core(page->out, macro, word);
    for (size_t i = 0; i < word->closing_size; i++) {
        (void)fprintf(page->out, " %c", word->closing[i]);
    }
    (void)fputc('\n', page->out);
}

/* The next word at `text`, which isn't blank; returns where it ends. */
static const char *next_word(const char *text, const char *end, struct word *word)
{
    *word = (struct word){.opening = text};
    while (text < end && strchr(OPENING, *text) != NULL) {
        text++;
    }
    word->opening_size = (size_t)(text - word->opening);
    word->literal = text < end && *text == '`';
    word->core = text + (word->literal ? 1 : 0);
    const char *stop = memchr(word->core, word->literal ? '`' : ' ', (size_t)(end - word->core));
    if (stop == NULL && word->literal) {
        (void)fprintf(stderr, "a backquote is open in: %.*s\n", (int)(end - text), text);
        exit(EXIT_FAILURE);
    }
    stop = stop != NULL ? stop : end;
    word->core_size = (size_t)(stop - word->core);
    if (word->literal) {
        word->closing = stop + 1;
        for (stop = word->closing; stop < end && strchr(CLOSING, *stop) != NULL; stop++) {
        }
        word->closing_size = (size_t)(stop - word->closing);
        if (stop < end && *stop != ' ') {
            (void)fprintf(stderr, "a backquote closes inside of a word: %.*s\n", (int)(end - text), text);
            exit(EXIT_FAILURE);
        }
        return stop;
    }
    while (word->core_size > 0 && strchr(CLOSING, word->core[word->core_size - 1]) != NULL) {
        word->core_size--;
    }
    word->closing = word->core + word->core_size;
    word->closing_size = (size_t)(stop - word->closing);
    return stop;
}

static bool ends_sentence(const struct word *word)
{
    size_t size = word->core_size > 0 ? word->closing_size : 0;

    while (size > 0 && strchr(")]", word->closing[size - 1]) != NULL) {
        size--;
    }
    return size > 0 && strchr(".!?", word->closing[size - 1]) != NULL;
}

static void put_text(struct page *page, const char *text, size_t size)
{
    const char *end = text + size;

    while (text < end) {
        struct word word;
        const char *stop = next_word(text, end, &word);
        const char *macro = macro_of(page, &word);
        if (macro != NULL) {
            put_macro(page, macro, &word);
        } else if (stop > text) {
            put_plain(page, text, (size_t)(stop - text));
        }
        if (ends_sentence(&word)) {
            end_line(page);
        }
        text = stop + (stop < end ? 1 : 0);
    }
    end_line(page);
}

void mdoc_paragraphs(FILE *out, const char *text, const struct command *command)
{
    struct page page = {.out = out, .command = command};

    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        put_text(&page, text, size);
        text += size;
        if (*text == '\n') {
            (void)fputs(".Pp\n", out);
            text++;
        }
    }
}

void mdoc_sentence(FILE *out, const char *text, const struct command *command, const char *stop)
{
    struct page page = {.out = out, .command = command};
    size_t size = strlen(text) + strlen(stop) + 1;
    char *copy = malloc(size);

    if (copy == NULL) {
        exit(EXIT_FAILURE);
    }
    (void)snprintf(copy, size, "%s%s", text, stop);
    copy[0] = (char)(islower((unsigned char)copy[0]) ? toupper((unsigned char)copy[0]) : copy[0]);
    put_text(&page, copy, strlen(copy));
    free(copy);
}
