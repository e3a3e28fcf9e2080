/*
 * A configuration file is read as systemd reads an environment file, and what systemd would pass over is refused with
 * file and line. Values of the environment win, and errors say where a value stands.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/settings_file.h"
#include "tests/unit/environments.h"

static char path[64];

/* A file that holds this text. */
static void write_file(const char *text)
{
    strcpy(path, "/tmp/settings-file-test-XXXXXX");
    int descriptor = mkstemp(path);

    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
}

static void remove_file(void)
{
    ck_assert_int_eq(unlink(path), 0);
}

static struct settings_file must_parse(const char *text)
{
    struct settings_file file;
    struct error error;
    int code = settings_file_parse("F", text, strlen(text), &file, &error);

    ck_assert_msg(code == 0, "%s: %s", text, code != 0 ? error.message : "");
    return file;
}

static void refuse(const char *text, size_t size, const char *message)
{
    struct settings_file file;
    struct error error;

    ck_assert_int_eq(settings_file_parse("F", text, size, &file, &error), QS_ERROR_INPUT);
    ck_assert_str_eq(error.message, message);
    ck_assert_ptr_null(file.entries);
    ck_assert_ptr_null(file.path);
}

static const struct value_case {
    const char *text; /* behind QUEEN_S3_SINK= */
    const char *value;
} values[] = {
    {"", ""},
    {"\n", ""},
    {"plain", "plain"},
    {" \t plain \t ", "plain"},
    {"two  words\r\n", "two  words"},
    {"a # no comment", "a # no comment"},
    {"a=b", "a=b"},
    {"it's", "it's"},
    {"say \"it\"", "say \"it\""},
    {"one\\\ntwo", "onetwo"},
    {"\\\n two", " two"},
    {"one \\\n two", "one  two"},
    {"\\a\\\\b\\'", "a\\b'"},
    {"kept\\ ", "kept "},
    {"kept\\ \t ", "kept "},
    {"end\\", "end"},
    {"a \\\n", "a "},
    {"''", ""},
    {"'single' ", "single"},
    {"' both ends '", " both ends "},
    {"'no \\escape \"in\" $here'", "no \\escape \"in\" $here"},
    {"'two\nlines'", "two\nlines"},
    {"'con\\\ntinued'", "con\\\ntinued"},
    {"\"double\"", "double"},
    {"\"a \\\" b \\\\ c \\$ d \\` e\"", "a \" b \\ c $ d ` e"},
    {"\"\\n \\t \\' \\x\"", "\\n \\t \\' \\x"},
    {"\"two\nlines\"", "two\nlines"},
    {"\"con\\\ntinued\"", "continued"},
    {"\"dos\\\r\nline\"", "dos\\\r\nline"},
    {"'a' \"b\"c", "abc"},
    {"'a' b 'c' ", "ab 'c'"},
    {"'a ' \t ", "a "},
    {"\"$HOME\"", "$HOME"},
    {"\xC3\xA9", "\xC3\xA9"},
};

START_TEST(reads_values)
{
    const struct value_case *value = &values[_i];
    char text[256];

    snprintf(text, sizeof text, "QUEEN_S3_SINK=%s", value->text);
    struct settings_file file = must_parse(text);
    ck_assert_uint_eq(file.count, 1);
    ck_assert_str_eq(file.entries[0].name, "QUEEN_S3_SINK");
    ck_assert_str_eq(file.entries[0].value, value->value);
    ck_assert_uint_eq(file.entries[0].line, 1);
    settings_file_free(&file);
}
END_TEST

START_TEST(reads_lines)
{
    struct settings_file file = must_parse("# a comment with QUEEN_S3_SINK=no, and a backslash \\\n"
                                           "QUEEN_S3_BUCKET = first\r\n"
                                           "\n"
                                           "  \t\n"
                                           "  ; another QUEEN_S3_SINK=no\n"
                                           "\tQUEEN_S3_SINK\t=one\\\n"
                                           "two\n"
                                           "QUEEN_S3_PREFIX='a\n"
                                           "b'\n"
                                           "QUEEN_S3_EMBEDDED=true\r"
                                           "QUEEN_S3_BUCKET=second");
    static const struct settings_file_entry expected[] = {{"QUEEN_S3_BUCKET", "first", 2},
                                                          {"QUEEN_S3_SINK", "onetwo", 6},
                                                          {"QUEEN_S3_PREFIX", "a\nb", 8},
                                                          {"QUEEN_S3_EMBEDDED", "true", 10},
                                                          {"QUEEN_S3_BUCKET", "second", 11}};

    ck_assert_uint_eq(file.count, LENGTH(expected));
    for (size_t i = 0; i < LENGTH(expected); i++) {
        ck_assert_str_eq(file.entries[i].name, expected[i].name);
        ck_assert_str_eq(file.entries[i].value, expected[i].value);
        ck_assert_uint_eq(file.entries[i].line, expected[i].line);
    }
    ck_assert_str_eq(settings_file_find(&file, "QUEEN_S3_BUCKET")->value, "second");
    ck_assert_ptr_null(settings_file_find(&file, "QUEEN_S3_REGION"));
    ck_assert_str_eq(file.path, "F");
    settings_file_free(&file);
    ck_assert_ptr_null(settings_file_find(&file, "QUEEN_S3_BUCKET"));
}
END_TEST

START_TEST(reads_nothing_from_nothing)
{
    static const char *const empty[] = {"", "\n", "\r\n\r\n", "#", "; \\", " ", "\t\n "};

    for (size_t i = 0; i < LENGTH(empty); i++) {
        struct settings_file file = must_parse(empty[i]);
        ck_assert_uint_eq(file.count, 0);
        settings_file_free(&file);
    }
}
END_TEST

START_TEST(refuses_what_cannot_be_meant)
{
    static const char line[] = ": expected NAME=value, or a comment that begins with # or ;";
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"QUEEN_S3_BUKET=a", "F:1: unknown setting QUEEN_S3_BUKET; did you mean QUEEN_S3_BUCKET?"},
        {"\n#\nqueen_url=a", "F:3: unknown setting queen_url; did you mean QUEEN_URL?"},
        {"PG_HOST=a", "F:1: unknown setting PG_HOST"},
        {"QUEEN_S3_SINK=a\\\nb\nQUEEN_S3_BUCKET='x", "F:3: the quote that begins here never ends"},
        {"QUEEN_S3_SINK='a\n' \"b\nQUEEN_S3_BUCKET=x", "F:2: the quote that begins here never ends"},
        {"QUEEN_S3_SINK=\"a\\\"", "F:1: the quote that begins here never ends"},
        {"QUEEN_S3_SINK=\"a\\", "F:1: the quote that begins here never ends"},
        {"QUEEN_S3_BUCKET: mine", NULL},
        {"export QUEEN_S3_BUCKET=mine", NULL},
        {"[Service]", NULL},
        {"=a", NULL},
        {"\xEF\xBB\xBFQUEEN_S3_SINK=a", NULL},
        {"\033[1mQUEEN_S3_SINK=a", NULL},
    };
    char expected[128];

    for (size_t i = 0; i < LENGTH(cases); i++) {
        snprintf(expected, sizeof expected, "F:1%s", line);
        refuse(cases[i].text, strlen(cases[i].text), cases[i].message != NULL ? cases[i].message : expected);
    }
    refuse("QUEEN_S3_SINK=a\nQUEEN_S3_BUCKET=\0b\n", 34, "F:2: a NUL byte: expected text");
}
END_TEST

/* Nothing that stands in the place of a value is shown. */
START_TEST(shows_no_value)
{
    struct settings_file file;
    struct error error;
    static const char *const texts[] = {"QUEEN_S3_SECRET_KEY='hidden", "QUEEN_S3_SECRET_KEY hidden",
                                        "QUEEN_S3_SECRETKEY=hidden", "QUEEN_S3_SECRET_KEY\nhidden"};

    for (size_t i = 0; i < LENGTH(texts); i++) {
        ck_assert_int_eq(settings_file_parse("F", texts[i], strlen(texts[i]), &file, &error), QS_ERROR_INPUT);
        ck_assert_msg(strstr(error.message, "hidden") == NULL, "%s", error.message);
    }
}
END_TEST

START_TEST(reads_files)
{
    struct settings_file file;
    struct error error;

    write_file("QUEEN_S3_SINK=a\n");
    ck_assert_int_eq(settings_file_read(path, &file, &error), 0);
    ck_assert_str_eq(file.path, path);
    ck_assert_uint_eq(file.count, 1);
    settings_file_free(&file);
    remove_file();
    ck_assert_int_eq(settings_file_read(path, &file, &error), QS_ERROR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(error.message, path));
    ck_assert_int_eq(settings_file_read("/tmp", &file, &error), QS_ERROR_SYSTEM);
    ck_assert_int_eq(settings_file_read("/dev/zero", &file, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "at most 1048576 bytes"));
}
END_TEST

START_TEST(reads_a_file_of_the_largest_size)
{
    char *text = malloc(SETTINGS_FILE_BYTES + 2);
    struct settings_file file;
    struct error error;

    memset(text, '#', SETTINGS_FILE_BYTES + 1);
    text[SETTINGS_FILE_BYTES] = '\0';
    write_file(text);
    ck_assert_int_eq(settings_file_read(path, &file, &error), 0);
    settings_file_free(&file);
    remove_file();
    text[SETTINGS_FILE_BYTES] = '#';
    text[SETTINGS_FILE_BYTES + 1] = '\0';
    write_file(text);
    ck_assert_int_eq(settings_file_read(path, &file, &error), QS_ERROR_INPUT);
    remove_file();
    free(text);
}
END_TEST

#define PLACE                               \
    "QUEEN_S3_QUEUES=orders\n"              \
    "QUEEN_S3_ENDPOINT=file:///srv/lakes\n" \
    "QUEEN_S3_BUCKET=from-file\n"

/* Whatever else is wrong, or missing. */
START_TEST(loads_what_names_the_control_socket)
{
    struct settings settings;
    struct error error;

    write_file("QUEEN_S3_SINK=from-file\nQUEEN_S3_CONTROL=/run/x\nQUEEN_S3_TARGET_MB=much\n");
    ck_assert_int_eq(settings_load_control(path, &settings, &error), 0);
    ck_assert_str_eq(settings.sink, "from-file");
    ck_assert_str_eq(settings.control, "/run/x");
    ck_assert_ptr_null(settings.bucket);
    settings_free(&settings);
    setenv("QUEEN_S3_CONTROL", "relative", 1);
    ck_assert_int_eq(settings_load_control(path, &settings, &error), QS_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error.message, "QUEEN_S3_CONTROL=relative"));
    unsetenv("QUEEN_S3_CONTROL");
    remove_file();
    ck_assert_int_eq(settings_load_control(NULL, &settings, &error), 0);
    ck_assert_str_eq(settings.sink, "default");
    ck_assert_ptr_null(settings.control);
    settings_free(&settings);
}
END_TEST

START_TEST(loads_the_environment_before_the_file)
{
    struct settings settings;
    struct error error;

    write_file(PLACE "QUEEN_S3_SINK=from-file\nQUEEN_S3_PREFIX=from-file\nQUEEN_S3_TARGET_MB=\nRUST_LOG=debug\n");
    setenv("QUEEN_S3_SINK", "from-environment", 1);
    setenv("QUEEN_S3_PREFIX", " \t", 1); /* blank is unset */
    ck_assert_int_eq(settings_load(path, &settings, &error), 0);
    ck_assert_str_eq(settings.sink, "from-environment");
    ck_assert_str_eq(settings.prefix, "from-file");
    ck_assert_str_eq(settings.bucket, "from-file");
    ck_assert_int_eq(settings.target_bytes, 128 << 20);
    ck_assert_int_eq(settings.log_level, LOG_DEBUG);
    settings_free(&settings);
    ck_assert_int_eq(settings_load_bucket(path, true, &settings, &error), 0);
    settings_free(&settings);
    remove_file();
    ck_assert_int_eq(settings_load(path, &settings, &error), QS_ERROR_SYSTEM);
    ck_assert_ptr_null(settings.sink);
}
END_TEST

static void refuse_load(const char *text, const char *line, const char *message)
{
    struct settings settings;
    struct error error;
    char expected[512];

    write_file(text);
    ck_assert_int_eq(settings_load(path, &settings, &error), QS_ERROR_INPUT);
    snprintf(expected, sizeof expected, "%s%s%s%s", line[0] != '\0' ? path : "", line, line[0] != '\0' ? ": " : "",
             message);
    ck_assert_str_eq(error.message, expected);
    remove_file();
}

START_TEST(says_where_a_value_stands)
{
    refuse_load("\n\nQUEEN_S3_SINK=a:b\n", ":3", "QUEEN_S3_SINK=a:b: expected 1 to 64 characters of A-Z a-z 0-9 . _ -");
    refuse_load(PLACE "QUEEN_S3_SSE_KMS_KEY_ID=k\n", ":4",
                "QUEEN_S3_SSE_KMS_KEY_ID=k: expected it only with QUEEN_S3_SSE=aws:kms, which is unset");
    refuse_load(PLACE "QUEEN_S3_PARTITIONS=p\n", ":4",
                "QUEEN_S3_PARTITIONS=p: expected it unset: a static list of partitions has no safeTime, so no window "
                "could ever be closed; they are discovered with POST /api/v1/partitions/changed");
    refuse_load(PLACE "QUEEN_TOKEN=a\nQUEEN_TOKEN_FILE=/dev/null\n", ":5",
                "QUEEN_TOKEN_FILE=/dev/null: expected either the secret itself or a file that holds it, not both");
    refuse_load("QUEEN_S3_QUEUES=a\n", "",
                "QUEEN_S3_ENDPOINT is not set: expected scheme://host[:port], or "
                "file:///absolute/dir");
    setenv("QUEEN_S3_SINK", "c:d", 1);
    refuse_load("QUEEN_S3_SINK=a\n", "", "QUEEN_S3_SINK=c:d: expected 1 to 64 characters of A-Z a-z 0-9 . _ -");
}
END_TEST

/* What was told, one a line. */
static void collect(void *argument, const char *name, const char *meant)
{
    char *told = argument;

    sprintf(told + strlen(told), "%s %s\n", name, meant != NULL ? meant : "-");
}

START_TEST(tells_of_unknown_variables)
{
    char told[1024] = "";

    clearenv();
    settings_tell_unknown(collect, told);
    ck_assert_str_eq(told, "");
    setenv("QUEEN_S3_BUKET", "a value that nobody sees", 1);
    setenv("QUEEN_S3_COLOUR", "", 1);
    setenv("QUEEN_S3_BUCKET", "known", 1);
    setenv("QUEEN_S3_EMBEDDED", "the broker's", 1);
    setenv("QUEEN_S3_PARTITIONS", "refused elsewhere", 1);
    setenv("QUEEN_PORT", "another program's", 1);
    setenv("QUEEN_S3_PORT", "tcp://10.0.0.1:9333", 1);
    setenv("QUEEN_S3_PORT_9333_TCP_ADDR", "10.0.0.1", 1);
    setenv("QUEEN_S3_SERVICE_HOST", "10.0.0.1", 1);
    setenv("QUEEN_S3_SERVICE_PORT", "9333", 1);
    setenv("QUEEN_S3_SERVICE_PORT_METRICS", "9333", 1);
    settings_tell_unknown(collect, told);
    ck_assert_str_eq(told, "QUEEN_S3_BUKET QUEEN_S3_BUCKET\nQUEEN_S3_COLOUR -\n");
}
END_TEST

int main(void)
{
    Suite *all = suite_create("settings_file");
    TCase *cases = tcase_create("settings_file");
    tcase_add_loop_test(cases, reads_values, 0, (int)LENGTH(values));
    tcase_add_test(cases, reads_lines);
    tcase_add_test(cases, reads_nothing_from_nothing);
    tcase_add_test(cases, refuses_what_cannot_be_meant);
    tcase_add_test(cases, shows_no_value);
    tcase_add_test(cases, reads_files);
    tcase_add_test(cases, reads_a_file_of_the_largest_size);
    tcase_add_test(cases, loads_what_names_the_control_socket);
    tcase_add_test(cases, loads_the_environment_before_the_file);
    tcase_add_test(cases, says_where_a_value_stands);
    tcase_add_test(cases, tells_of_unknown_variables);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
