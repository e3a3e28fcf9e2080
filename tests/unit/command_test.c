/*
 * The tables of commands: what they say is well formed, and `help` fits it on a terminal.
 */
#include "supervisor/command.h"

#include <check.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 79

/* Plain ASCII, one blank at a time, no full stop. */
static void check_phrase(const char *of, const char *text)
{
    size_t size = strlen(text);

    ck_assert_msg(size > 0 && text[size - 1] != '.' && text[size - 1] != ' ', "%s: %s", of, text);
    ck_assert_msg(strstr(text, "  ") == NULL, "%s: %s", of, text);
    for (const char *at = text; *at != '\0'; at++) {
        ck_assert_msg(isprint((unsigned char)*at), "%s: %s", of, text);
    }
}

static void check_help(const char *of, const char *text)
{
    size_t quotes = 0;

    for (const char *at = text; *at != '\0'; at++) {
        ck_assert_msg(*at == '\n' || isprint((unsigned char)*at), "%s: at %s", of, at);
        quotes += *at == '`';
    }
    ck_assert_msg(quotes % 2 == 0, "%s: a backquote is open", of);
    ck_assert_msg(strstr(text, "\n\n") == NULL && strstr(text, "  ") == NULL, "%s", of);
    ck_assert_msg(text[0] == '\0' || text[strlen(text) - 1] == '.', "%s", of);
}

START_TEST(describes_each_command)
{
    const struct command *command;

    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        ck_assert_ptr_eq(command_find(command->name), command);
        ck_assert_msg(islower((unsigned char)command->summary[0]), "%s", command->name);
        check_phrase(command->name, command->summary);
        check_help(command->name, command->help);
        ck_assert_ptr_nonnull(command->exits);
        for (const struct command_exit *at = command->exits; at->when != NULL; at++) {
            check_phrase(command->name, at->when);
            ck_assert_msg(at == command->exits ? at->code == 0 : at->code > at[-1].code, "%s", command->name);
        }
        for (const struct command_example *at = command->examples; at != NULL && at->line != NULL; at++) {
            check_phrase(command->name, at->what);
            ck_assert_msg(strstr(at->line, "queen-s3") != NULL, "%s", at->line);
            ck_assert_msg(strstr(at->line, command->name) != NULL, "%s", at->line);
        }
    }
    ck_assert_ptr_null(command_find("nothing"));
}
END_TEST

START_TEST(describes_each_option)
{
    const struct command *command;

    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        size_t count = 0;
        ck_assert_ptr_nonnull(command->options);
        ck_assert_str_eq(command->options[COMMAND_FILE].name, "-f");
        for (const struct command_option *at = command->options; at->name != NULL; at++) {
            check_phrase(command->name, at->help);
            ck_assert_msg(at->name[0] == '-', "%s", at->name);
            for (const struct command_option *other = command->options; other < at; other++) {
                ck_assert_str_ne(other->name, at->name);
            }
            count++;
        }
        ck_assert_uint_le(count, COMMAND_OPTIONS_MAX);
    }
}
END_TEST

START_TEST(prints_help_for_a_terminal)
{
    const struct command *command;

    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        ck_assert_ptr_nonnull(out);
        command_print_help(out, command);
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_int_eq(strncmp(text, "usage: queen-s3 ", 16), 0);
        char *end = strstr(text, "\nExamples:");
        *(end != NULL ? end : text + size) = '\0'; /* a line for a shell isn't broken */
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            ck_assert_msg(strlen(line) <= COLUMNS || strncmp(line, "usage: ", 7) == 0, "%s", line);
        }
        free(text);
    }
}
END_TEST

START_TEST(counts_words)
{
    static const struct {
        const char *words;
        size_t least;
        size_t most;
    } cases[] = {{"", 0, 0},          {"QUEUE", 1, 1},           {"ENGINE QUEUE", 2, 2},
                 {"[COMMAND]", 0, 1}, {"QUEUE...", 1, SIZE_MAX}, {"FILE.toml...", 1, SIZE_MAX}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct command command = {.words = cases[i].words};
        size_t least = 9;
        size_t most = 9;
        command_word_limits(&command, &least, &most);
        ck_assert_msg(least == cases[i].least && most == cases[i].most, "%s", cases[i].words);
    }
    const char *at = "FILE.toml... [OTHER]";
    struct command_word word;
    ck_assert(command_next_word(&at, &word));
    ck_assert(word.size == 9 && word.many && !word.optional);
    ck_assert(command_next_word(&at, &word));
    ck_assert(word.size == 5 && memcmp(word.name, "OTHER", 5) == 0 && word.optional && !word.many);
    ck_assert(!command_next_word(&at, &word));
}
END_TEST

START_TEST(breaks_lines_between_words)
{
    static const char text[] = "one two\n0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 "
                               "0123456789";
    char lines[256] = "";
    FILE *out = fmemopen(lines, sizeof lines, "w");

    ck_assert_ptr_nonnull(out);
    command_print_paragraphs(out, text);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(lines, "\none two\n"
                            "\n0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\n"
                            "0123456789\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("command");
    TCase *tests = tcase_create("command");
    SRunner *runner = srunner_create(suite);

    tcase_add_test(tests, describes_each_command);
    tcase_add_test(tests, describes_each_option);
    tcase_add_test(tests, prints_help_for_a_terminal);
    tcase_add_test(tests, counts_words);
    tcase_add_test(tests, breaks_lines_between_words);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
