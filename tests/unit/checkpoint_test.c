/*
 * Checkpoints: there and back, the original's, a million entries in little memory, and everything that is none.
 */
#include "common/lake/checkpoint.h"

#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/byte_buffer.h"
#include "lakes.h"

static int write_down(void *argument, struct name partition, int64_t position, const struct partition_id *id)
{
    struct byte_buffer *out = argument;

    byte_buffer_add_format(out, "%.*s=%lld", (int)partition.size, partition.bytes, (long long)position);
    for (size_t i = 0; id != NULL && i < 16; i++) {
        byte_buffer_add_format(out, "%s%02x", i == 0 ? "/" : "", id->bytes[i]);
    }
    byte_buffer_add_text(out, " ");
    return 0;
}

static int read_text(const char *text, int64_t *k, struct broker_us *end, struct byte_buffer *told, struct error *error)
{
    size_t bound = ZSTD_compressBound(strlen(text));
    char *bytes = malloc(bound);

    ck_assert_ptr_nonnull(bytes);
    size_t size = ZSTD_compress(bytes, bound, text, strlen(text), 1);
    ck_assert(!ZSTD_isError(size));
    int code = checkpoint_read(bytes, size, k, end, write_down, told, error);
    free(bytes);
    return code;
}

static void add(struct checkpoint_writer *writer, const char *name, int64_t position, const struct partition_id *id)
{
    ck_assert_int_eq(checkpoint_add(writer, (struct name){name, strlen(name)}, position, id), 0);
}

START_TEST(the_example_of_the_specification)
{
    struct checkpoint_writer *writer = checkpoint_begin(1840, (struct broker_us){INT64_C(1788515700000000)});
    struct partition_id id = {
        {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10}};
    char *bytes = NULL;
    size_t size = 0;
    size_t text_size = 0;

    add(writer, "cust-0420", 1812, NULL);
    add(writer, "cust-0421", 44, &id);
    add(writer, "q\"\n", INT64_MAX, NULL);
    ck_assert_int_eq(checkpoint_finish(writer, &bytes, &size), 0);
    char *text = unpack_zstd(bytes, size, &text_size);
    static const char expected[] =
        "{\"k\":1840,\"tEnd\":1788515700000000,\"positions\":[[\"cust-0420\",1812],[\"cust-0421\",44,"
        "\"01234567-89ab-cdef-fedc-ba9876543210\"],[\"q\\\"\\n\",9223372036854775807]]}";
    ck_assert_uint_eq(text_size, strlen(expected));
    ck_assert_mem_eq(text, expected, text_size);
    struct byte_buffer told = {0};
    int64_t k = 0;
    struct broker_us end = {0};
    ck_assert_int_eq(checkpoint_read(bytes, size, &k, &end, write_down, &told, NULL), 0);
    ck_assert_int_eq(k, 1840);
    ck_assert_int_eq(end.v, INT64_C(1788515700000000));
    ck_assert_str_eq(told.bytes, "cust-0420=1812 cust-0421=44/0123456789abcdeffedcba9876543210 "
                                 "q\"\n=9223372036854775807 ");
    byte_buffer_free(&told);
    free(text);
    free(bytes);
}
END_TEST

START_TEST(no_position_at_all)
{
    char *bytes = NULL;
    size_t size = 0;
    int64_t k = 0;
    struct broker_us end = {0};
    struct byte_buffer told = {0};

    ck_assert_int_eq(checkpoint_finish(checkpoint_begin(1, (struct broker_us){-1}), &bytes, &size), 0);
    ck_assert_int_eq(checkpoint_read(bytes, size, &k, &end, write_down, &told, NULL), 0);
    ck_assert_int_eq(end.v, -1);
    ck_assert_uint_eq(told.size, 0);
    free(bytes);
    checkpoint_discard(checkpoint_begin(1, (struct broker_us){-1}));
    checkpoint_discard(NULL);
}
END_TEST

START_TEST(any_spelling_is_read)
{
    static const char *const texts[] = {
        "{\"k\":3,\"tEnd\":-7,\"positions\":[[\"a\",0],[\"b\",1,null],[\"\\u00e8\",2,null,{\"x\":[1,\"]\"]},\"s\"]]}",
        " {\"positions\" : [ [ \"a\" , 0 ] ,\n[\"b\",1,null,true],[\"\xc3\xa8\",2 ]],\"x\":{\"y\":[{},[],\"}\",{\"a\":-1.5E+3}]},"
        "\"tEnd\":-7\t,\"later\":\"\\\"\",\"k\":3,\"z\":false}\r\n",
    };

    for (size_t i = 0; i < 2; i++) {
        struct byte_buffer told = {0};
        struct error error;
        int64_t k = 0;
        struct broker_us end = {0};
        int code = read_text(texts[i], &k, &end, &told, &error);
        ck_assert_msg(code == 0, "%s", error.message);
        ck_assert_int_eq(k, 3);
        ck_assert_int_eq(end.v, -7);
        ck_assert_str_eq(told.bytes, "a=0 b=1 \xc3\xa8=2 ");
        byte_buffer_free(&told);
    }
}
END_TEST

START_TEST(what_is_no_checkpoint_is_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"k\":1,\"tEnd\":1}",
        "{\"k\":1,\"positions\":[]}",
        "{\"tEnd\":1,\"positions\":[]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[]",
        "{\"k\":1,\"tEnd\":1,\"positions\":[]} x",
        "{\"k\":1,\"tEnd\":1,\"positions\":[],}",
        "{\"k\":1,\"k\":1,\"tEnd\":1,\"positions\":[]}",
        "{\"k\":\"1\",\"tEnd\":1,\"positions\":[]}",
        "{\"k\":1.0,\"tEnd\":1,\"positions\":[]}",
        "{\"k\":1e1,\"tEnd\":1,\"positions\":[]}",
        "{\"k\":01,\"tEnd\":1,\"positions\":[]}",
        "{\"k\":-,\"tEnd\":1,\"positions\":[]}",
        "{\"k\":1,\"tEnd\":9223372036854775808,\"positions\":[]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":{}}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\"]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[1,\"a\"]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\",-1]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\",1],]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\",1][\"b\",1]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\",1,\"01234567-89ab-cdef-fedc-ba987654321\"]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\",1,\"01234567-89ab-cdef-fedc-ba987654321g\"]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\",1,\"01234567+89ab-cdef-fedc-ba9876543210\"]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\\x\",1]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a\n\",1]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"\xff\",1]]}",
        "{\"k\":1,\"tEnd\":1,\"positions\":[[\"a",
        "{\"k\":1,\"tEnd\":1,\"positions\":[],\"x\":",
        "{\"k\":1,\"tEnd\":1,\"positions\":[],\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct byte_buffer told = {0};
        struct error error;
        int64_t k = 0;
        struct broker_us end = {0};
        ck_assert_msg(read_text(texts[i], &k, &end, &told, &error) == QS_ERROR_BODY, "%s", texts[i]);
        ck_assert_str_ne(error.message, "");
        byte_buffer_free(&told);
    }
}
END_TEST

static int refuse_second(void *argument, struct name partition, int64_t position, const struct partition_id *id)
{
    (void)partition;
    (void)id;
    ++*(int *)argument;
    return position == 1;
}

START_TEST(who_reads_can_refuse)
{
    struct checkpoint_writer *writer = checkpoint_begin(1, (struct broker_us){1});
    char *bytes = NULL;
    size_t size = 0;
    int calls = 0;
    int64_t k = 0;
    struct broker_us end = {0};

    add(writer, "a", 0, NULL);
    add(writer, "b", 1, NULL);
    add(writer, "c", 2, NULL);
    ck_assert_int_eq(checkpoint_finish(writer, &bytes, &size), 0);
    ck_assert_int_eq(checkpoint_read(bytes, size, &k, &end, refuse_second, &calls, NULL), QS_ERROR_BODY);
    ck_assert_int_eq(calls, 2);
    free(bytes);
}
END_TEST

/* Nonzero, which fails the reading, at the first entry that isn't as written. */
static int count(void *argument, struct name partition, int64_t position, const struct partition_id *id)
{
    int64_t *next = argument;
    char expected[32];
    int size = snprintf(expected, sizeof expected, "partition-%08lld", (long long)*next);
    bool same = partition.size == (size_t)size && memcmp(partition.bytes, expected, partition.size) == 0 &&
                position == *next * 37 && (id != NULL) == (*next % 2 == 1);

    ++*next;
    return !same;
}

static size_t in_use(void)
{
    struct mallinfo2 now = mallinfo2();

    return now.uordblks + now.hblkhd;
}

static size_t most;

static int count_and_weigh(void *argument, struct name partition, int64_t position, const struct partition_id *id)
{
    if (*(int64_t *)argument % 1000 == 0 && in_use() > most) {
        most = in_use();
    }
    return count(argument, partition, position, id);
}

START_TEST(a_million_entries_make_no_tree)
{
    struct checkpoint_writer *writer = checkpoint_begin(1, (struct broker_us){1});
    const struct partition_id id = {{7}};
    char *bytes = NULL;
    size_t size = 0;
    int64_t k = 0;
    int64_t next = 0;
    struct broker_us end = {0};

    for (int64_t i = 0; i < 1000000; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "partition-%08lld", (long long)i);
        if (checkpoint_add(writer, (struct name){name, strlen(name)}, i * 37, i % 2 == 1 ? &id : NULL) != 0) {
            ck_abort();
        }
    }
    ck_assert_int_eq(checkpoint_finish(writer, &bytes, &size), 0);
    size_t before = in_use();
    struct error error;
    int code = checkpoint_read(bytes, size, &k, &end, count_and_weigh, &next, &error);
    ck_assert_msg(code == 0, "%s", error.message);
    ck_assert_int_eq(next, 1000000);
    ck_assert_uint_lt(most, before + (6 << 20));
    /* Whole or nothing, wherever the object was cut. */
    for (size_t cut = 0; cut < size; cut += size / 6) {
        next = 0;
        ck_assert_int_eq(checkpoint_read(bytes, cut, &k, &end, count, &next, &error), QS_ERROR_BODY);
        ck_assert_ptr_null(strstr(error.message, "refused"));
    }
    free(bytes);
}
END_TEST

START_TEST(long_names_and_their_limit)
{
    static const size_t sizes[] = {65536, 65535, 131072, 200000, 1048570, 1048576};
    char *name = malloc(1048577);
    ck_assert_ptr_nonnull(name);

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct checkpoint_writer *writer = checkpoint_begin(1, (struct broker_us){1});
        char *bytes = NULL;
        size_t size = 0;
        int64_t k = 0;
        struct broker_us end = {0};
        struct byte_buffer told = {0};
        memset(name, 'n', sizes[i]);
        name[sizes[i]] = '\0';
        add(writer, name, 5, NULL);
        add(writer, "z", 6, NULL);
        ck_assert_int_eq(checkpoint_finish(writer, &bytes, &size), 0);
        int code = checkpoint_read(bytes, size, &k, &end, write_down, &told, NULL);
        ck_assert_int_eq(code, sizes[i] < 1048575 ? 0 : QS_ERROR_BODY);
        if (code == 0) {
            ck_assert_uint_eq(told.size, sizes[i] + strlen("=5 z=6 "));
        }
        byte_buffer_free(&told);
        free(bytes);
    }
    free(name);
}
END_TEST

START_TEST(bytes_that_are_no_zstd)
{
    int64_t k = 0;
    struct broker_us end = {0};
    struct error error;

    ck_assert_int_eq(checkpoint_read("{\"k\":1}", 7, &k, &end, write_down, NULL, &error), QS_ERROR_BODY);
    ck_assert_int_eq(checkpoint_read(NULL, 0, &k, &end, write_down, NULL, &error), QS_ERROR_BODY);
    /* A frame that wants a window of 2 GiB. */
    ck_assert_int_eq(checkpoint_read("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", 9, &k, &end, write_down, NULL, &error),
                     QS_ERROR_BODY);
}
END_TEST

START_TEST(the_checkpoints_of_the_original)
{
    size_t from = 0;
    size_t seen = 0;
    const struct lake_file *file;

    while ((file = lakes_next(&from, "lake/", ".json.zst")) != NULL) {
        struct byte_buffer told = {0};
        struct error error;
        int64_t k = 0;
        struct broker_us end = {0};
        int code = checkpoint_read(file->bytes, file->size, &k, &end, write_down, &told, &error);
        ck_assert_msg(code == 0, "%s: %s", file->path, error.message);
        ck_assert_int_eq(k, 2);
        ck_assert_int_eq(end.v, INT64_C(1788523200000000));
        ck_assert_ptr_nonnull(strstr(told.bytes, "#ar.wikipedia=10 #be.wikipedia=3 "));
        ck_assert_ptr_nonnull(strstr(told.bytes, " quo\"te=16 "));
        byte_buffer_free(&told);
        seen++;
    }
    ck_assert(seen == 0 || seen == 6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tests = tcase_create("positions");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, the_example_of_the_specification);
    tcase_add_test(tests, no_position_at_all);
    tcase_add_test(tests, any_spelling_is_read);
    tcase_add_test(tests, what_is_no_checkpoint_is_refused);
    tcase_add_test(tests, who_reads_can_refuse);
    tcase_add_test(tests, a_million_entries_make_no_tree);
    tcase_add_test(tests, long_names_and_their_limit);
    tcase_add_test(tests, bytes_that_are_no_zstd);
    tcase_add_test(tests, the_checkpoints_of_the_original);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
