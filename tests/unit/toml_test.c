/*
 * TOML through our own door, against the published suite ($QUEEN_S3_SHARED/data/toml-test.tar.zst, ../shared where the
 * variable isn't set): each valid document of TOML 1.0 gives the expected values, each invalid one an error with its
 * line. And made cases, for what the door itself adds: lines, limits, and NUL bytes.
 */
#include "worker/connector/toml.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/json_cases.h"
#include "tests/unit/lakes.h"

static struct toml_value *parse(const char *text, struct error *error)
{
    return toml_parse(text, strlen(text), error);
}

/* ---- the published suite ---- */

/* The suite writes a fraction without zeros at its end, and a time's seconds always. */
static bool same_time(const char *got, const char *expected)
{
    while (*got != '\0' && *got == *expected) {
        got++;
        expected++;
    }
    while (*got == '0') {
        got++;
    }
    while (*expected == '0') {
        expected++;
    }
    return strcmp(got, expected) == 0;
}

static bool same_number(double got, const char *expected)
{
    double other = strtod(expected, NULL);
    return (isnan(got) && isnan(other)) || got == other;
}

static bool same_scalar(const struct toml_value *got, const char *type, const char *expected)
{
    if (strcmp(type, "string") == 0) {
        return got->type == TOML_STRING && strcmp(got->text, expected) == 0;
    }
    if (strcmp(type, "integer") == 0) {
        return got->type == TOML_INTEGER && got->integer == strtoll(expected, NULL, 10);
    }
    if (strcmp(type, "float") == 0) {
        return got->type == TOML_FLOAT && same_number(got->number, expected);
    }
    if (strcmp(type, "bool") == 0) {
        return got->type == TOML_BOOLEAN && got->boolean == (strcmp(expected, "true") == 0);
    }
    return got->type == TOML_TIME && same_time(got->text, expected);
}

static bool same(const struct toml_value *got, const cJSON *expected)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(expected, "type");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(expected, "value");

    if (cJSON_IsString(type) && cJSON_IsString(value)) {
        return same_scalar(got, type->valuestring, value->valuestring);
    }
    if (got->type != (cJSON_IsArray(expected) ? TOML_ARRAY : TOML_TABLE) ||
        got->count != (size_t)cJSON_GetArraySize(expected)) {
        return false;
    }
    size_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach (item, expected) {
        const struct toml_value *member =
            got->type == TOML_ARRAY ? &got->items[i++] : toml_find(got, item->string == NULL ? "" : item->string);
        if (member == NULL || !same(member, item)) {
            return false;
        }
    }
    return true;
}

static bool find_file(const char *archive, size_t size, const char *name, struct tar_file *file)
{
    *file = (struct tar_file){0};
    while (next_tar_file(archive, size, file)) {
        const char *own = strstr(file->name, "tests/");
        if (own != NULL && strcmp(own + strlen("tests/"), name) == 0) {
            return true;
        }
    }
    return false;
}

static void check_valid(const char *archive, size_t size, const char *name, const struct tar_file *document)
{
    char expected_name[256];
    struct tar_file expected;
    struct error error;

    (void)snprintf(expected_name, sizeof expected_name, "%.*s.json", (int)(strlen(name) - strlen(".toml")), name);
    ck_assert_msg(find_file(archive, size, expected_name, &expected), "%s is missing", expected_name);
    cJSON *json = cJSON_ParseWithLength(expected.bytes, expected.size);
    ck_assert_ptr_nonnull(json);
    struct toml_value *got = toml_parse(document->bytes, document->size, &error);
    ck_assert_msg(got != NULL, "%s: %s", name, got == NULL ? error.message : "");
    /* cJSON has no string with a NUL byte in it. */
    bool comparable = memmem(expected.bytes, expected.size, "\\u0000", 6) == NULL;
    ck_assert_msg(!comparable || same(got, json), "%s gives other values", name);
    toml_free(got);
    cJSON_Delete(json);
}

static void check_invalid(const char *name, const struct tar_file *document)
{
    struct error error = {0};
    struct toml_value *got = toml_parse(document->bytes, document->size, &error);

    ck_assert_msg(got == NULL, "%s is accepted", name);
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
    ck_assert_msg(strncmp(error.message, "line ", 5) == 0, "%s: %s", name, error.message);
}

START_TEST(published_suite_holds)
{
    size_t size = 0;
    char *archive = shared_data("toml-test.tar.zst", &size);
    struct tar_file list;
    int valid = 0;
    int invalid = 0;

    if (archive == NULL) {
        return;
    }
    ck_assert(find_file(archive, size, "files-toml-1.0.0", &list));
    char *names = strndup(list.bytes, list.size);
    for (char *rest = names, *name = strsep(&rest, "\n"); name != NULL; name = strsep(&rest, "\n")) {
        size_t length = strlen(name);
        struct tar_file document;
        if (length < 5 || strcmp(name + length - 5, ".toml") != 0) {
            continue;
        }
        ck_assert_msg(find_file(archive, size, name, &document), "%s is missing", name);
        if (strncmp(name, "valid/", 6) == 0) {
            check_valid(archive, size, name, &document);
            valid++;
        } else {
            check_invalid(name, &document);
            invalid++;
        }
    }
    ck_assert_int_gt(valid, 150);
    ck_assert_int_gt(invalid, 300);
    free(names);
    free(archive);
}
END_TEST

/* ---- made cases ---- */

START_TEST(a_definition_is_a_tree_with_lines)
{
    struct error error;
    struct toml_value *root = parse("type = \"sink\"\n"
                                    "enabled = true\n"
                                    "version = 3\n"
                                    "\n"
                                    "[[topics]]\n"
                                    "pattern = 'orders\\..*'\n"
                                    "[[topics]]\n"
                                    "topics = [\"a\",\n \"b\"]\n"
                                    "\n"
                                    "[plugin_config]\n"
                                    "rate = 1.5\n"
                                    "since = 2026-09-04T10:00:00Z\n",
                                    &error);
    ck_assert_ptr_nonnull(root);
    ck_assert_int_eq(root->type, TOML_TABLE);
    ck_assert_uint_eq(root->count, 5);
    ck_assert_str_eq(toml_find(root, "type")->text, "sink");
    ck_assert(toml_find(root, "enabled")->boolean);
    ck_assert_int_eq(toml_find(root, "version")->integer, 3);
    ck_assert_uint_eq(toml_find(root, "version")->line, 3);
    ck_assert_ptr_null(toml_find(root, "absent"));

    const struct toml_value *topics = toml_find(root, "topics");
    ck_assert_int_eq(topics->type, TOML_ARRAY);
    ck_assert_uint_eq(topics->count, 2);
    ck_assert_str_eq(toml_find(&topics->items[0], "pattern")->text, "orders\\..*");
    ck_assert_uint_eq(topics->items[1].line, 7);
    ck_assert_uint_eq(toml_find(&topics->items[1], "topics")->items[1].line, 9);

    const struct toml_value *options = toml_find(root, "plugin_config");
    ck_assert_double_eq(toml_find(options, "rate")->number, 1.5);
    ck_assert_str_eq(toml_find(options, "since")->text, "2026-09-04T10:00:00Z");
    ck_assert_uint_eq(toml_find(options, "since")->line, 13);
    toml_free(root);
}
END_TEST

START_TEST(strings_keep_nul_bytes_and_keys_are_found_whole)
{
    struct error error;
    struct toml_value *root = parse("text = \"a\\u0000b\"\n\"k\\u0000x\" = 1\nk = 2\n", &error);
    ck_assert_ptr_nonnull(root);
    ck_assert_uint_eq(toml_find(root, "text")->text_size, 3);
    ck_assert_int_eq(memcmp(toml_find(root, "text")->text, "a\0b", 4), 0);
    ck_assert_int_eq(toml_find(root, "k")->integer, 2);
    toml_free(root);
}
END_TEST

START_TEST(errors_say_where)
{
    static const struct {
        const char *text;
        const char *begin;
    } cases[] = {{"a = 1\nb = \n", "line 2, column "},        {"a = 1\na = 2\n", "line 2, column "},
                 {"[t]\nx = 'open\n", "line 2, column "},     {"key\n", "line 1, column "},
                 {"a = \"\xff\"\n", "line 1, column "},       {"a = 99999999999999999999\n", "line 1, column "},
                 {"[plugin_config\nb=1\n", "line 1, column "}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = {0};
        ck_assert_ptr_null(parse(cases[i].text, &error));
        ck_assert_int_eq(error.code, QS_ERROR_INPUT);
        ck_assert_msg(strncmp(error.message, cases[i].begin, strlen(cases[i].begin)) == 0, "%s", error.message);
    }
}
END_TEST

static char *repeat(const char *before, const char *piece, size_t times, const char *after)
{
    size_t size = strlen(before) + times * strlen(piece) + strlen(after) + 1;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    char *at = stpcpy(text, before);
    for (size_t i = 0; i < times; i++) {
        at = stpcpy(at, piece);
    }
    (void)stpcpy(at, after);
    return text;
}

/* What is accepted has a size that recursion can walk. */
START_TEST(depth_is_bounded)
{
    static const struct {
        const char *before;
        const char *piece;
        const char *after;
    } cases[] = {{"a", ".a", " = 1\n"},        {"a", " . a", " = 1\n"},
                 {"[a", ".a", "]\n"},          {"a", ".\"a\"", " = 1\n"},
                 {"\"x=\"", ".'='", " = 1\n"}, {"a = { b", ".c", " = 1 }\n"},
                 {"a = ", "[", "\n"},          {"[[a", ".a", "]]\n"},
                 {"a = [ {b", ".c", "=1}]\n"}, {"t = \"\"\"\n\"\"\"\na", ".a", " = 1\n"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = {0};
        char *text = repeat(cases[i].before, cases[i].piece, 150000, cases[i].after);
        ck_assert_msg(parse(text, &error) == NULL, "case %zu is accepted", i);
        ck_assert_int_eq(error.code, QS_ERROR_INPUT);
        free(text);
    }
    struct error error;
    char *text = repeat("a", ".a", TOML_DEPTH_MAX - 1, " = 1\n");
    struct toml_value *root = parse(text, &error);
    ck_assert_ptr_nonnull(root);
    toml_free(root);
    free(text);
    text = repeat("a = \"", ".a", 1000, "\" # ...................\nb = '''\n...'''\n");
    root = parse(text, &error);
    ck_assert_ptr_nonnull(root);
    toml_free(root);
    free(text);
}
END_TEST

START_TEST(size_is_bounded)
{
    struct error error;
    char *text = repeat("a = '", "x", TOML_SIZE_MAX, "'\n");
    ck_assert_ptr_null(parse(text, &error));
    ck_assert_int_eq(error.code, QS_ERROR_INPUT);
    free(text);
    struct toml_value *root = toml_parse(NULL, 0, &error);
    ck_assert_ptr_nonnull(root);
    ck_assert_uint_eq(root->count, 0);
    toml_free(root);
    toml_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("toml");
    TCase *cases = tcase_create("toml");

    tcase_add_test(cases, published_suite_holds);
    tcase_add_test(cases, a_definition_is_a_tree_with_lines);
    tcase_add_test(cases, strings_keep_nul_bytes_and_keys_are_found_whole);
    tcase_add_test(cases, errors_say_where);
    tcase_add_test(cases, depth_is_bounded);
    tcase_add_test(cases, size_is_bounded);
    suite_add_tcase(suite, cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
