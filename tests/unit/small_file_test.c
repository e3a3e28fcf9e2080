/*
 * A small file is read whole, from a pipe too, and nothing that never ends holds the reader.
 */
#include "common/small_file.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM 64

static char folder[] = "/tmp/small-file-test-XXXXXX";
static char path[sizeof folder + 8];
static char bytes[ROOM];
static struct error error;

static void set_up(void)
{
    strcpy(folder + sizeof folder - sizeof "XXXXXX", "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/it", folder);
    memset(bytes, '#', sizeof bytes);
}

static void tear_down(void)
{
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(reads_a_file)
{
    write_file("some text");
    ck_assert_int_eq(small_file_read(path, bytes, ROOM, &error), 9);
    ck_assert_mem_eq(bytes, "some text#", 10);
    ck_assert_int_eq(small_file_read(path, bytes, 4, &error), 4);
    write_file("");
    ck_assert_int_eq(small_file_read(path, bytes, ROOM, &error), 0);
}
END_TEST

/* In two pieces, the first of them only once the reader is there. */
static void *write_pipe(void *unused)
{
    int descriptor = open(path, O_WRONLY);

    (void)unused;
    ck_assert_int_eq(write(descriptor, "some ", 5), 5);
    ck_assert_int_eq(write(descriptor, "text", 4), 4);
    close(descriptor);
    return NULL;
}

START_TEST(reads_a_pipe_to_its_end)
{
    pthread_t writer;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(pthread_create(&writer, NULL, write_pipe, NULL), 0);
    ck_assert_int_eq(small_file_read(path, bytes, ROOM, &error), 9);
    ck_assert_mem_eq(bytes, "some text#", 10);
    ck_assert_int_eq(pthread_join(writer, NULL), 0);
}
END_TEST

START_TEST(gives_up_a_pipe_that_nobody_writes_to)
{
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(small_file_read(path, bytes, ROOM, &error), -1);
    ck_assert_int_eq(error.code, QS_ERROR_SYSTEM);
    ck_assert_str_eq(error.message, "a pipe without an end within 5 s");
}
END_TEST

/* Somebody holds it open, and has written something. */
START_TEST(gives_up_a_pipe_that_does_not_end)
{
    int held;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    held = open(path, O_RDWR);
    ck_assert_int_eq(write(held, "some", 4), 4);
    ck_assert_int_eq(small_file_read(path, bytes, ROOM, &error), -1);
    ck_assert_str_eq(error.message, "a pipe without an end within 5 s");
    ck_assert_int_eq(small_file_read("/dev/zero", bytes, ROOM, &error), ROOM);
    close(held);
}
END_TEST

START_TEST(says_why_not)
{
    ck_assert_int_eq(small_file_read(path, bytes, ROOM, &error), -1);
    ck_assert_str_eq(error.message, "No such file or directory");
    ck_assert_int_eq(small_file_read(folder, bytes, ROOM, &error), -1);
    ck_assert_str_eq(error.message, "Is a directory");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("small_file");
    TCase *cases = tcase_create("small_file");

    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, reads_a_file);
    tcase_add_test(cases, reads_a_pipe_to_its_end);
    tcase_add_test(cases, gives_up_a_pipe_that_nobody_writes_to);
    tcase_add_test(cases, gives_up_a_pipe_that_does_not_end);
    tcase_add_test(cases, says_why_not);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
