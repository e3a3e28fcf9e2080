/*
 * The spool on its own: what is written comes back, every cut of it is a tail, every changed byte is noticed, and a
 * folder has one owner.
 */
#include "worker/connector/plugin/spool.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/unit/folders.h"

static char folder[] = "/dev/shm/spool-test-XXXXXX";
static struct spool *spool;
static struct error error;
static const struct sink_shape shape = {.format = SINK_JSON_ARRAY, .compression = COMPRESSION_NONE};
static const struct sink_slice topic = {"orders", 6};

static struct seen_record repeated_records[] = {{1, 7}, {2, 14}};
static const struct seen repeated = {.records = repeated_records, .count = 2};

static struct {
    int files;
    uint64_t records;
    uint64_t repeats;
    uint64_t first_batch;
    uint64_t last_offset;
    struct spool_file *file; /* the last one */
    int notes;
    uint32_t note;
    uint64_t noted;
} got;

static void ignore(void *argument, enum log_level level, const char *line)
{
    (void)argument;
    (void)level;
    (void)line;
}

static void set_up(void)
{
    if (mkdtemp(folder) == NULL) {
        snprintf(folder, sizeof folder, "/tmp/spool-test-XXXXXX"); /* no memory to keep files in */
        ck_assert_ptr_nonnull(mkdtemp(folder));
    }
    log_capture(ignore, NULL);
    spool = spool_open(folder, &error);
    ck_assert_ptr_nonnull(spool);
}

static void tear_down(void)
{
    spool_close(spool);
    log_capture(NULL, NULL);
    folder_remove(folder);
}

static void on_file(void *argument, struct spool_file *file, const struct seen *records, const struct seen *repeats,
                    uint64_t first_batch)
{
    ck_assert_ptr_null(argument);
    got.files++;
    got.records += records->count;
    got.repeats += repeats->count;
    got.first_batch = first_batch;
    got.last_offset = file->last_offset;
    if (got.file != NULL) {
        spool_file_free(got.file);
    }
    got.file = file;
}

static void on_note(void *argument, uint32_t number, struct sink_slice name, int32_t partition,
                    const struct seen *records)
{
    ck_assert_ptr_null(argument);
    ck_assert(name.size == 6 && memcmp(name.bytes, "orders", 6) == 0);
    ck_assert_int_eq(partition, -3);
    got.notes++;
    got.note = number;
    got.noted = records->count;
}

/* As after a crash: the folder is opened anew. */
static int recover(void)
{
    const struct spool_found found = {.file = on_file, .note = on_note};

    if (got.file != NULL) {
        spool_file_free(got.file);
    }
    memset(&got, 0, sizeof got);
    spool_close(spool);
    spool = spool_open(folder, &error);
    ck_assert_ptr_nonnull(spool);
    return spool_recover(spool, &found, &error);
}

static void forget(void)
{
    if (got.file != NULL) {
        spool_file_free(got.file);
        got.file = NULL;
    }
}

/* A batch of `count` records from offset `first` on, each with these bytes. */
static void add(struct spool_file *spooled, uint64_t first, uint64_t count, const char *bytes)
{
    struct open_file file = {.first_offset = first, .last_offset = first + count - 1};
    bool torn;

    for (uint64_t i = 0; i < count; i++) {
        ck_assert(seen_reserve(&file.seen, 1));
        seen_add(&file.seen, first + i, 7 * (first + i));
        ck_assert(sink_body_add(&file.body, bytes, strlen(bytes)));
    }
    ck_assert_int_eq(spool_file_add(spooled, &file, count, &repeated, spool_next_batch(spool), &torn, &error), 0);
    ck_assert(!torn);
    open_file_clear(&file);
}

static struct spool_file *create(void)
{
    struct spool_file *spooled = spool_file_create(spool, topic, -3, "raw/orders", &shape, &error);

    ck_assert_ptr_nonnull(spooled);
    return spooled;
}

static char *path_of(uint64_t sequence, const char *extension)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%020llu.%s", folder, (unsigned long long)sequence, extension);
    return path;
}

START_TEST(what_is_written_comes_back)
{
    struct spool_file *spooled = create();
    struct sink_body body = {0};
    add(spooled, 5, 3, "abc,");
    add(spooled, 9, 2, "de");
    ck_assert_int_eq(spool_file_load(spooled, &body, &error), 0);
    ck_assert_uint_eq(body.size, 16);
    ck_assert_int_eq(memcmp(body.pieces[0].iov_base, "abc,abc,abc,dede", 16), 0);
    sink_body_clear(&body);
    spool_file_free(spooled);
    ck_assert_int_eq(recover(), 0);
    ck_assert_int_eq(got.files, 1);
    ck_assert_uint_eq(got.records, 5);
    ck_assert_uint_eq(got.first_batch, 1);
    ck_assert_uint_eq(got.file->first_offset, 5);
    ck_assert_uint_eq(got.file->last_offset, 10);
    ck_assert_uint_eq(got.file->last_batch, 2);
    ck_assert_int_eq(got.file->partition, -3);
    ck_assert_str_eq(got.file->directory, "raw/orders");
    ck_assert_int_eq(got.file->shape.format, SINK_JSON_ARRAY);
    ck_assert_uint_eq(got.file->topic_size, 6);
    ck_assert_int_eq(spool_file_load(got.file, &body, &error), 0);
    ck_assert_uint_eq(body.size, 16);
    sink_body_clear(&body);
    /* Neither a batch's number nor a file's name is given again. */
    ck_assert_uint_eq(spool_next_batch(spool), 3);
    struct spool_file *next = create();
    ck_assert_uint_gt(next->sequence, got.file->sequence);
    spool_file_remove(next);
    spool_file_remove(got.file);
    got.file = NULL;
    ck_assert_int_eq(recover(), 0);
    ck_assert_int_eq(got.files, 0);
}
END_TEST

START_TEST(every_cut_is_a_tail_and_is_cut)
{
    struct spool_file *spooled = create();
    uint64_t sequence = spooled->sequence;
    add(spooled, 0, 2, "xy");
    uint64_t whole = spooled->size;
    add(spooled, 2, 2, "zz");
    uint64_t end = spooled->size;
    spool_file_free(spooled);
    char *bytes = malloc(end);
    int file = open(path_of(sequence, "spool"), O_RDWR);
    ck_assert_int_eq(pread(file, bytes, end, 0), (ssize_t)end);
    for (uint64_t size = end; size-- > 0;) {
        ck_assert_int_eq(pwrite(file, bytes, end, 0), (ssize_t)end);
        ck_assert_int_eq(ftruncate(file, (off_t)size), 0);
        ck_assert_int_eq(recover(), 0);
        struct stat status;
        if (size >= whole) {
            ck_assert_uint_eq(got.records, 2);
            ck_assert_uint_eq(got.repeats, 2);
            ck_assert_int_eq(fstat(file, &status), 0);
            ck_assert_uint_eq((uint64_t)status.st_size, whole);
        } else { /* not one batch is left: the file goes */
            ck_assert_int_eq(got.files, 0);
            ck_assert_int_ne(access(path_of(sequence, "spool"), F_OK), 0);
            close(file);
            file = open(path_of(sequence, "spool"), O_RDWR | O_CREAT, 0600);
        }
        forget();
    }
    close(file);
    unlink(path_of(sequence, "spool"));
    free(bytes);
}
END_TEST

START_TEST(every_changed_byte_is_noticed)
{
    struct spool_file *spooled = create();
    uint64_t sequence = spooled->sequence;
    add(spooled, 0, 2, "xy");
    add(spooled, 2, 2, "zz");
    uint64_t end = spooled->size;
    int file = open(path_of(sequence, "spool"), O_RDWR);
    for (uint64_t at = 0; at < end; at++) {
        struct sink_body body = {0};
        char byte;
        ck_assert_int_eq(pread(file, &byte, 1, (off_t)at), 1);
        byte ^= 0x10;
        ck_assert_int_eq(pwrite(file, &byte, 1, (off_t)at), 1);
        ck_assert_int_eq(spool_file_load(spooled, &body, &error), QS_ERROR_BODY);
        ck_assert_uint_eq(body.size, 0);
        byte ^= 0x10;
        ck_assert_int_eq(pwrite(file, &byte, 1, (off_t)at), 1);
    }
    close(file);
    spool_file_set_aside(spooled);
    ck_assert_int_eq(access(path_of(sequence, "damaged"), F_OK), 0);
    ck_assert_int_eq(recover(), 0);
    ck_assert_int_eq(got.files, 0);
    struct spool_file *next = create(); /* not under the name of what is kept */
    ck_assert_uint_gt(next->sequence, sequence);
    spool_file_remove(next);
}
END_TEST

/* Who damages a batch that was confirmed must not make it go: it is either found when the file goes up, or at once. */
START_TEST(damage_before_the_last_batch_cuts_nothing)
{
    struct spool_file *spooled = create();
    add(spooled, 0, 2, "xy");
    uint64_t last = spooled->size;
    add(spooled, 2, 2, "zz");
    uint64_t end = spooled->size;
    char *good = malloc(end);
    char *path = strdup(path_of(spooled->sequence, "spool"));
    char *aside = strdup(path_of(spooled->sequence, "damaged"));
    int file = open(path, O_RDWR);
    ck_assert_int_eq(pread(file, good, end, 0), (ssize_t)end);
    close(file);
    spool_file_free(spooled);
    for (uint64_t at = 0; at < last; at++) {
        struct stat status;
        struct sink_body body = {0};
        file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        good[at] ^= 0x10;
        ck_assert_int_eq(pwrite(file, good, end, 0), (ssize_t)end);
        good[at] ^= 0x10;
        close(file);
        ck_assert_int_eq(recover(), 0);
        if (got.files == 1) {
            ck_assert_uint_eq(got.records, 4);
            ck_assert_int_eq(spool_file_load(got.file, &body, &error), QS_ERROR_BODY);
            ck_assert_int_eq(stat(path, &status), 0);
        } else {
            ck_assert_int_eq(stat(aside, &status), 0);
            unlink(aside);
        }
        ck_assert_uint_eq((uint64_t)status.st_size, end);
        forget();
    }
    unlink(path);
    free(aside);
    free(path);
    free(good);
}
END_TEST

START_TEST(names_that_are_not_ours_are_left_alone)
{
    static const char *const names[] = {"1.spool", "99999999999999999999999.spool", "+1.note", "x.spool",
                                        "18446744073709551615.note"};
    int root = open(folder, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int file = openat(root, names[i], O_WRONLY | O_CREAT, 0600);
        ck_assert_int_eq(write(file, "theirs", 6), 6);
        close(file);
    }
    ck_assert_int_eq(recover(), 0);
    ck_assert_int_eq(got.files, 0);
    ck_assert_int_eq(got.notes, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat status;
        ck_assert_int_eq(fstatat(root, names[i], &status, 0), 0);
        ck_assert_int_eq(status.st_size, 6);
        unlinkat(root, names[i], 0);
    }
    close(root);
}
END_TEST

START_TEST(a_note_is_replaced_whole)
{
    struct seen last = {0};
    struct seen none = {0};
    uint32_t number = 0;
    ck_assert(seen_reserve(&last, 2));
    seen_add(&last, 1, 10);
    seen_add(&last, 2, 20);
    ck_assert_int_eq(spool_note_write(spool, &number, topic, -3, &last, &none, &error), 0);
    ck_assert_int_eq(spool_note_write(spool, &number, topic, -3, &last, &last, &error), 0);
    ck_assert_int_eq(recover(), 0);
    ck_assert_int_eq(got.notes, 1);
    ck_assert_uint_eq(got.note, number);
    ck_assert_uint_eq(got.noted, 4);
    uint32_t other = 0;
    ck_assert_int_eq(spool_note_write(spool, &other, topic, -3, &last, &none, &error), 0);
    ck_assert_uint_ne(other, number);
    seen_free(&last);
}
END_TEST

START_TEST(a_folder_has_one_owner)
{
    ck_assert_ptr_null(spool_open(folder, &error));
    ck_assert_int_eq(error.code, QS_ERROR_REFUSED);
    ck_assert_ptr_nonnull(strstr(error.message, folder));
    ck_assert_int_eq(recover(), 0); /* once it is let go it is free */
}
END_TEST

START_TEST(a_file_is_cut_back)
{
    struct spool_file *spooled = create();
    struct sink_body body = {0};
    add(spooled, 0, 2, "xy");
    struct spool_file before = *spooled;
    add(spooled, 2, 2, "zz");
    ck_assert_int_eq(spool_file_cut(spooled, before.size, &error), 0);
    *spooled = before;
    add(spooled, 2, 1, "new");
    ck_assert_int_eq(spool_file_load(spooled, &body, &error), 0);
    ck_assert_uint_eq(body.size, 7);
    sink_body_clear(&body);
    spool_file_remove(spooled);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spool");
    TCase *test = tcase_create("spool");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_add_test(test, what_is_written_comes_back);
    tcase_add_test(test, every_cut_is_a_tail_and_is_cut);
    tcase_add_test(test, every_changed_byte_is_noticed);
    tcase_add_test(test, damage_before_the_last_batch_cuts_nothing);
    tcase_add_test(test, names_that_are_not_ours_are_left_alone);
    tcase_add_test(test, a_note_is_replaced_whole);
    tcase_add_test(test, a_folder_has_one_owner);
    tcase_add_test(test, a_file_is_cut_back);
    tcase_set_timeout(test, 60);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
