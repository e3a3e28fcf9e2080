/*
 * What errors say: one line, whole characters, and the reason last.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

static struct error error;

START_TEST(knows_what_can_be_tried_again)
{
    static const struct {
        enum qs_error code;
        bool retriable;
    } codes[] = {
        {QS_ERROR_TRANSPORT, true}, {QS_ERROR_STATUS, true},         {QS_ERROR_REFUSED, false},
        {QS_ERROR_BODY, true},      {QS_ERROR_NOT_FOUND, false},     {QS_ERROR_FORBIDDEN, false},
        {QS_ERROR_INTEGRITY, true}, {QS_ERROR_UNKNOWN_QUEUE, false}, {QS_ERROR_NO_ROOM, true},
        {QS_ERROR_INPUT, false},    {QS_ERROR_NO_MEMORY, false},     {QS_ERROR_SYSTEM, false},
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        error.status = 503;
        error.retry_after_ms = 1000;
        ck_assert_int_eq(error_set(&error, codes[i].code, "number %d of %s", 7, "many"), codes[i].code);
        ck_assert_int_eq(error.code, codes[i].code);
        ck_assert_int_eq(error.retriable, codes[i].retriable);
        ck_assert_int_eq(error.status, 0);
        ck_assert_int_eq(error.retry_after_ms, -1);
        ck_assert_str_eq(error.message, "number 7 of many");
    }
    ck_assert_int_eq(error_set(NULL, QS_ERROR_INPUT, "nobody asks"), QS_ERROR_INPUT);
    ck_assert_int_eq(error_refuse(&error, QS_ERROR_BODY, "number %d", 8), QS_ERROR_BODY);
    ck_assert_int_eq(error.code, QS_ERROR_BODY);
    ck_assert(!error.retriable);
    ck_assert_str_eq(error.message, "number 8");
    ck_assert_int_eq(error_refuse(NULL, QS_ERROR_BODY, "nobody asks"), QS_ERROR_BODY);
}
END_TEST

START_TEST(tells_what_the_system_said)
{
    errno = ENOENT;
    ck_assert_int_eq(error_set_errno(&error, "open %s", "/nowhere"), QS_ERROR_SYSTEM);
    ck_assert_str_eq(error.message, "open /nowhere: No such file or directory");
    errno = EACCES;
    ck_assert_int_eq(error_set_errno(NULL, "open"), QS_ERROR_SYSTEM);
}
END_TEST

/* The reason stays though what is before it is too long. */
START_TEST(cuts_what_is_too_long)
{
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    errno = ENOENT;
    error_set_errno(&error, "%s", text);
    ck_assert_uint_eq(strlen(error.message), sizeof error.message - 1);
    ck_assert_ptr_nonnull(strstr(error.message, "x: No such file or directory"));
    error_set(&error, QS_ERROR_INPUT, "%s", text);
    ck_assert_uint_eq(strlen(error.message), sizeof error.message - 1);
    error_prefix(&error, "%s", "before");
    ck_assert_uint_eq(strlen(error.message), sizeof error.message - 1);
    ck_assert_int_eq(strncmp(error.message, "before: xxx", 11), 0);
}
END_TEST

START_TEST(cuts_between_characters)
{
    static const char *const characters[] = {"\xC3\xA9", "\xE3\x81\x82", "\xF0\x9F\x98\x80"};
    for (size_t kind = 0; kind < 3; kind++) {
        for (int before = 500; before < 513; before++) {
            error_set(&error, QS_ERROR_INPUT, "%*s%s", before, "", characters[kind]);
            size_t size = strlen(error.message);
            size_t whole = (size_t)before + strlen(characters[kind]);
            size_t expected = whole <= 511 ? whole : before < 511 ? (size_t)before : 511;
            ck_assert_uint_eq(size, expected);
        }
    }
}
END_TEST

START_TEST(stays_one_line)
{
    error_set(&error, QS_ERROR_BODY, "a\r\nb\nc");
    ck_assert_str_eq(error.message, "a  b c");
    error_prefix(&error, "queue %s", "o\nrders");
    ck_assert_str_eq(error.message, "queue o rders: a  b c");
    error_set(&error, QS_ERROR_STATUS, "again: %s", error.message);
    ck_assert_str_eq(error.message, "again: queue o rders: a  b c");
    error_prefix(NULL, "nothing");
    error_clear(&error);
    ck_assert_int_eq(error.code, QS_OK);
    ck_assert(!error.retriable);
    ck_assert_str_eq(error.message, "");
    error_clear(NULL);
}
END_TEST

int main(void)
{
    Suite *all = suite_create("error");
    TCase *cases = tcase_create("error");
    tcase_add_test(cases, knows_what_can_be_tried_again);
    tcase_add_test(cases, tells_what_the_system_said);
    tcase_add_test(cases, cuts_what_is_too_long);
    tcase_add_test(cases, cuts_between_characters);
    tcase_add_test(cases, stays_one_line);
    suite_add_tcase(all, cases);
    SRunner *runner = srunner_create(all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
