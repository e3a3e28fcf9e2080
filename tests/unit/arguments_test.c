/*
 * Words, options, times and numbers on a command's line.
 */
#include "supervisor/commands/arguments.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))

enum { SINCE, DEEP };
static const struct command_option options[] = {{"--since", "T", "x"}, {"--deep", NULL, "x"}, {NULL, NULL, NULL}};
static struct command command = {.name = "verify", .options = options};
static struct arguments parsed;
static struct error error;

/* The words behind `queen-s3 verify`, blanks between them. */
static int parse(const char *line)
{
    static char text[256];
    static char *argv[16];
    int argc = 0;

    command.words = "QUEUE [OTHER]";
    ck_assert_uint_lt(strlen(line), sizeof text - 32);
    (void)stpcpy(stpcpy(text, "queen-s3 verify "), line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    return arguments_parse(&command, argc, argv, &parsed, &error);
}

START_TEST(takes_words_and_options_in_any_order)
{
    ck_assert_int_eq(parse("orders --since 12 --deep clicks"), 0);
    ck_assert_uint_eq(parsed.word_count, 2);
    ck_assert_str_eq(parsed.words[0], "orders");
    ck_assert_str_eq(parsed.words[1], "clicks");
    ck_assert_str_eq(parsed.values[SINCE], "12");
    ck_assert_ptr_nonnull(parsed.values[DEEP]);
    free(parsed.words);
    ck_assert_int_eq(parse("--since=a=b -"), 0);
    ck_assert_str_eq(parsed.values[SINCE], "a=b");
    ck_assert_str_eq(parsed.words[0], "-");
    free(parsed.words);
    ck_assert_int_eq(parse("-- --deep"), 0);
    ck_assert_ptr_null(parsed.values[DEEP]);
    ck_assert_str_eq(parsed.words[0], "--deep");
    free(parsed.words);
}
END_TEST

START_TEST(refuses_in_one_line)
{
    static const struct {
        const char *line;
        const char *part;
    } cases[] = {{"", "an argument is missing: expected verify QUEUE [OTHER]; "},
                 {"a b c", "unexpected argument c"},
                 {"a --sinc 1", "unknown option --sinc"},
                 {"a --since", "--since wants a value"},
                 {"a --deep=1", "--deep takes no value"},
                 {"a --since 1 --since 2", "given twice"}};

    for (size_t i = 0; i < LENGTH(cases); i++) {
        ck_assert_int_eq(parse(cases[i].line), QS_ERROR_INPUT);
        ck_assert_msg(strstr(error.message, cases[i].part) != NULL, "%s", error.message);
        ck_assert_ptr_null(parsed.words);
    }
}
END_TEST

START_TEST(reads_times)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {{"0", 0},
                {"1788516000000000", INT64_C(1788516000000000)},
                {"-1", -1},
                {"2026-09-04T10:00:00Z", INT64_C(1788516000000000)},
                {"2026-09-04t10:00:00z", INT64_C(1788516000000000)},
                {"2026-09-04 12:00:00.5+02:00", INT64_C(1788516000500000)},
                {"2026-09-04T09:30:00.123456789-00:30", INT64_C(1788516000123456)}};
    static const char *const bad[] = {"",
                                      "-",
                                      "yesterday",
                                      "2026-09-04",
                                      "2026-09-04T10:00:00",
                                      "2026-09-04T10:00:00.Z",
                                      "2026-09-04T10:00:00+2:00",
                                      "2026-09-04T10:00:00+24:00",
                                      "2026-02-30T10:00:00Z",
                                      "2026-09-04T10:00:00Zx",
                                      "12345678901234567890"};
    struct broker_us time = {0};

    for (size_t i = 0; i < LENGTH(good); i++) {
        ck_assert_msg(arguments_time("--since", good[i].text, &time, &error) == 0, "%s", good[i].text);
        ck_assert_int_eq(time.v, good[i].us);
    }
    for (size_t i = 0; i < LENGTH(bad); i++) {
        ck_assert_msg(arguments_time("--since", bad[i], &time, &error) == QS_ERROR_INPUT, "%s", bad[i]);
    }
    time.v = 7;
    ck_assert_int_eq(arguments_time("--since", NULL, &time, &error), 0);
    ck_assert_int_eq(time.v, 7);
}
END_TEST

START_TEST(makes_queries)
{
    struct window_query query = {.first_k = 0};

    ck_assert_int_eq(arguments_window(NULL, &query, &error), 0);
    ck_assert_int_eq(arguments_stretch(NULL, NULL, &query, &error), 0);
    ck_assert(query.first_k == 0 && query.last_k == 0 && !query.has_since && !query.has_until);
    ck_assert_int_eq(arguments_window("12", &query, &error), 0);
    ck_assert(query.first_k == 12 && query.last_k == 12);
    ck_assert_int_eq(arguments_window("0", &query, &error), QS_ERROR_INPUT);
    ck_assert_int_eq(arguments_window("-12", &query, &error), QS_ERROR_INPUT);
    ck_assert_int_eq(arguments_window("1x", &query, &error), QS_ERROR_INPUT);
    ck_assert_int_eq(arguments_stretch("5", NULL, &query, &error), 0);
    ck_assert(query.has_since && query.since.v == 5 && !query.has_until);
    ck_assert_int_eq(arguments_stretch(NULL, "x", &query, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "--until x"));
    ck_assert_int_eq(arguments_stretch("5", "6", &query, &error), 0);
    ck_assert_int_eq(arguments_stretch("5", "5", &query, &error), QS_ERROR_INPUT);
    ck_assert_str_eq(error.message, "--until 5: expected a time after --since 5");
    ck_assert_int_eq(arguments_queue("a b\x7f", &error), 0);
    ck_assert_int_eq(arguments_queue("", &error), QS_ERROR_INPUT);
    ck_assert_int_eq(arguments_queue("a\nb", &error), QS_ERROR_INPUT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arguments");
    TCase *tests = tcase_create("arguments");
    SRunner *runner = srunner_create(suite);

    tcase_add_test(tests, takes_words_and_options_in_any_order);
    tcase_add_test(tests, refuses_in_one_line);
    tcase_add_test(tests, reads_times);
    tcase_add_test(tests, makes_queries);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
