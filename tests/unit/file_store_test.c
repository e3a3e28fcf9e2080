/*
 * The directory store, through its table and a real reactor: every operation, what a crash leaves behind, disks that
 * are full or not writable, cancelling.
 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file_store.h"
#include "common/file_temporary.h"
#include "tests/unit/folders.h"

#define BUCKET "lake"

static char root[64];
static struct reactor *reactor;
static struct object_store *store;
static int observed[STORE_OPERATION_COUNT];
static int observed_count;

static void observe(void *argument, enum store_operation operation, int code)
{
    ck_assert_ptr_eq(argument, observed);
    observed[operation] = code;
    observed_count++;
}

static void open_store(void)
{
    struct error error;
    store = file_store_create(reactor, root, BUCKET, observe, observed, &error);
    ck_assert_msg(store != NULL, "%s", error.message);
}

static void setup(void)
{
    struct error error;
    strcpy(root, "/tmp/file_store_test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    memset(observed, 0, sizeof observed);
    observed_count = 0;
    reactor = reactor_create(&error);
    ck_assert_ptr_nonnull(reactor);
    open_store();
}

static void teardown(void)
{
    if (store != NULL) {
        store->operations->destroy(store);
    }
    reactor_destroy(reactor);
    folder_remove(root);
}

/* What a call came to. */
struct outcome {
    int calls;
    struct error error;
    uint64_t size;
    char *bytes;
    char text[64];
    char keys[4096];
    size_t key_count;
    char next[1100];
};

static void on_done(void *argument, const struct error *error)
{
    struct outcome *result = argument;
    result->calls++;
    result->error = *error;
}

static void on_head(void *argument, const struct error *error, const struct head_answer *answer)
{
    struct outcome *result = argument;
    on_done(argument, error);
    if (answer != NULL) {
        result->size = answer->size;
        ck_assert_str_eq(answer->etag, "");
    }
}

static void on_get(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct outcome *result = argument;
    on_done(argument, error);
    result->bytes = bytes;
    result->size = size;
}

static void on_text(void *argument, const struct error *error, const char *text)
{
    struct outcome *result = argument;
    on_done(argument, error);
    snprintf(result->text, sizeof result->text, "%s", text != NULL ? text : "");
}

static void on_list(void *argument, const struct error *error, const struct listed_object *objects, size_t count,
                    const char *next)
{
    struct outcome *result = argument;
    on_done(argument, error);
    result->keys[0] = '\0';
    result->key_count = count;
    for (size_t i = 0; i < count && strlen(result->keys) < 2000; i++) {
        snprintf(result->keys + strlen(result->keys), 1100, "%s=%" PRIu64 "\n", objects[i].key, objects[i].size);
    }
    snprintf(result->next, sizeof result->next, "%s", next != NULL ? next : "");
}

static void wait_for(const struct outcome *result, int calls)
{
    for (int i = 0; i < 1000 && result->calls < calls; i++) {
        reactor_run_once(reactor, 100);
    }
    ck_assert_int_eq(result->calls, calls);
}

static struct outcome outcome;

static const struct error *finish(struct store_call *call)
{
    ck_assert_ptr_nonnull(call);
    ck_assert_int_eq(outcome.calls, 0);
    wait_for(&outcome, 1);
    outcome.calls = 0;
    return &outcome.error;
}

static struct iovec pieces[2];

static struct object_body body_of(const char *text)
{
    size_t half = strlen(text) / 2;
    struct object_body body = {.pieces = pieces, .piece_count = 2, .size = strlen(text)};
    pieces[0] = (struct iovec){(char *)(uintptr_t)text, half};
    pieces[1] = (struct iovec){(char *)(uintptr_t)text + half, strlen(text) - half};
    return body;
}

static const struct error *put(const char *key, const char *text)
{
    struct object_body body = body_of(text);
    return finish(store->operations->put(store, key, "text/plain", &body, on_done, &outcome));
}

static void put_good(const char *key, const char *text)
{
    const struct error *error = put(key, text);
    ck_assert_msg(error->code == QS_OK, "%s", error->message);
}

static const struct error *get(const char *key, size_t limit)
{
    return finish(store->operations->get(store, key, limit, on_get, &outcome));
}

static const struct error *list(const char *prefix, const char *after)
{
    return finish(store->operations->list(store, prefix, after, on_list, &outcome));
}

static void expect_object(const char *key, const char *text)
{
    const struct error *error = get(key, 1 << 20);
    ck_assert_msg(error->code == QS_OK, "%s", error->message);
    ck_assert_uint_eq(outcome.size, strlen(text));
    ck_assert_str_eq(outcome.bytes, text);
    free(outcome.bytes);
}

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/" BUCKET "/%s", root, name);
    return path;
}

static int temporaries(void)
{
    DIR *folder = opendir(path_of(".tmp"));
    int count = 0;
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

START_TEST(puts_and_gets)
{
    put_good("queen/queue=a%2Fb/dt=2026-09-04/w-1.jsonl", "one\ntwo\n");
    ck_assert_int_eq(observed[STORE_PUT], 200);
    expect_object("queen/queue=a%2Fb/dt=2026-09-04/w-1.jsonl", "one\ntwo\n");
    put_good("queen/queue=a%2Fb/dt=2026-09-04/w-1.jsonl", "");
    expect_object("queen/queue=a%2Fb/dt=2026-09-04/w-1.jsonl", "");
    ck_assert_int_eq(observed[STORE_GET], 200);
    ck_assert_int_eq(temporaries(), 0);
    ck_assert_int_eq(access(path_of("queen/queue=a%2Fb/dt=2026-09-04/w-1.jsonl"), F_OK), 0);
}
END_TEST

START_TEST(limits_what_it_reads)
{
    put_good("k", "12345");
    ck_assert_int_eq(get("k", 4)->code, QS_ERROR_BODY);
    ck_assert(!outcome.error.retriable);
    ck_assert_ptr_null(outcome.bytes);
    ck_assert_int_eq(get("k", 5)->code, QS_OK);
    free(outcome.bytes);
}
END_TEST

static const struct error *get_range(const char *key, uint64_t position, size_t size)
{
    return finish(file_store_get_range(store, key, position, size, on_get, &outcome));
}

START_TEST(reads_ranges)
{
    put_good("a/k", "12345");
    ck_assert_int_eq(get_range("a/k", 1, 3)->code, QS_OK);
    ck_assert_str_eq(outcome.bytes, "234");
    free(outcome.bytes);
    ck_assert_int_eq(get_range("a/k", 0, 5)->code, QS_OK);
    ck_assert_str_eq(outcome.bytes, "12345");
    free(outcome.bytes);
    ck_assert_int_eq(get_range("a/k", 3, 3)->code, QS_ERROR_BODY);
    ck_assert(!outcome.error.retriable);
    ck_assert_int_eq(get_range("a/k", 6, 1)->code, QS_ERROR_BODY);
    ck_assert_int_eq(get_range("a", 0, 1)->code, QS_ERROR_NOT_FOUND);
    ck_assert_int_eq(get_range("x", 0, 1)->code, QS_ERROR_NOT_FOUND);
    ck_assert_int_eq(get_range("../x", 0, 1)->code, QS_ERROR_INPUT);
}
END_TEST

START_TEST(makes_nothing_for_who_only_reads)
{
    struct error error;
    struct object_store *reading = file_store_open(reactor, root, "nothing", &error);

    ck_assert_ptr_null(reading);
    ck_assert_int_eq(error.code, QS_ERROR_NOT_FOUND);
    put_good("k", "1");
    reading = file_store_open(reactor, root, BUCKET, &error);
    ck_assert_ptr_nonnull(reading);
    ck_assert_int_eq(finish(reading->operations->head(reading, "k", on_head, &outcome))->code, QS_OK);
    reading->operations->destroy(reading);
}
END_TEST

START_TEST(tells_the_missing_from_the_rest)
{
    put_good("a/b", "12345");
    static const char *const missing[] = {"x", "a", "a/c", "a/b/c", "x/y/z"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        ck_assert_int_eq(get(missing[i], 100)->code, QS_ERROR_NOT_FOUND);
        ck_assert_int_eq(outcome.error.status, 404);
        ck_assert_int_eq(finish(store->operations->head(store, missing[i], on_head, &outcome))->code,
                         QS_ERROR_NOT_FOUND);
    }
    ck_assert_int_eq(observed[STORE_HEAD], 404);
    ck_assert_int_eq(finish(store->operations->head(store, "a/", on_head, &outcome))->code, QS_ERROR_NOT_FOUND);
    ck_assert_int_eq(finish(store->operations->head(store, "a/b", on_head, &outcome))->code, QS_OK);
    ck_assert_uint_eq(outcome.size, 5);
}
END_TEST

START_TEST(refuses_keys_that_lead_away)
{
    static const char *const keys[] = {"", "/a", "a//b", "a/", "..", "a/../b", "./a", ".tmp", ".tmp/x", "../../etc/x"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        ck_assert_msg(put(keys[i], "x")->code == QS_ERROR_INPUT, "%s: %s", keys[i], outcome.error.message);
        ck_assert_int_eq(get(keys[i], 10)->code, QS_ERROR_INPUT);
        ck_assert_int_eq(observed[STORE_PUT], 500);
    }
    ck_assert_int_eq(list("../", NULL)->code, QS_ERROR_INPUT);
    ck_assert_int_eq(list("a/./", NULL)->code, QS_ERROR_INPUT);
    ck_assert_int_eq(list("a//", NULL)->code, QS_ERROR_INPUT);
    put_good(".tmpx", "x");
    put_good("..a/.b", "x");
    ck_assert_int_eq(temporaries(), 0);
}
END_TEST

START_TEST(removes)
{
    put_good("a/b", "x");
    ck_assert_int_eq(finish(store->operations->remove(store, "a/b", on_done, &outcome))->code, QS_OK);
    ck_assert_int_eq(get("a/b", 10)->code, QS_ERROR_NOT_FOUND);
    ck_assert_int_eq(finish(store->operations->remove(store, "a/b", on_done, &outcome))->code, QS_OK);
    ck_assert_int_eq(finish(store->operations->remove(store, "a", on_done, &outcome))->code, QS_OK);
    ck_assert_int_eq(observed[STORE_DELETE], 200);
}
END_TEST

START_TEST(lists_in_key_order)
{
    static const char *const keys[] = {"p/a/z", "p/a-b", "p/a.b", "p/a0", "p/b", "q", "p/aa/1", "p/a/b/c"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        put_good(keys[i], "xy");
    }
    ck_assert_int_eq(list("p/", NULL)->code, QS_OK);
    ck_assert_str_eq(outcome.keys, "p/a-b=2\np/a.b=2\np/a/b/c=2\np/a/z=2\np/a0=2\np/aa/1=2\np/b=2\n");
    ck_assert_str_eq(outcome.next, "");
    ck_assert_int_eq(list("p/a", "p/a.b")->code, QS_OK);
    ck_assert_str_eq(outcome.keys, "p/a/b/c=2\np/a/z=2\np/a0=2\np/aa/1=2\n");
    ck_assert_int_eq(list("p/a", "p/a/b/c")->code, QS_OK);
    ck_assert_str_eq(outcome.keys, "p/a/z=2\np/a0=2\np/aa/1=2\n");
    ck_assert_int_eq(list("", NULL)->code, QS_OK);
    ck_assert_uint_eq(outcome.key_count, 8);
    ck_assert_int_eq(list("nothing/here/", NULL)->code, QS_OK);
    ck_assert_uint_eq(outcome.key_count, 0);
    ck_assert_int_eq(observed[STORE_LIST], 200);
}
END_TEST

static void make_file(const char *name)
{
    int descriptor = open(path_of(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(descriptor, 0);
    close(descriptor);
}

/* More than are kept of one folder at a time, and more empty folders among them than a page has keys. */
START_TEST(lists_by_pages)
{
    char name[64];
    put_good("many/first", "");
    for (int i = 0; i < 5500; i++) {
        snprintf(name, sizeof name, "many/k-%05d", (i * 7919) % 5500);
        if (i % 2 == 0) {
            make_file(name);
        } else {
            ck_assert_int_eq(mkdir(path_of(name), 0700), 0);
        }
    }
    size_t total = 0;
    char token[1100] = "";
    char last[64] = "";
    do {
        ck_assert_int_eq(list("many/k", token[0] != '\0' ? token : NULL)->code, QS_OK);
        ck_assert_uint_le(outcome.key_count, 1000);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(outcome.keys, "="), outcome.keys);
        ck_assert_int_gt(strcmp(name, last), 0);
        strcpy(last, name);
        total += outcome.key_count;
        strcpy(token, outcome.next);
    } while (token[0] != '\0');
    ck_assert_uint_eq(total, 2750);
}
END_TEST

static char upload[64];
static struct object_part parts[3];
static char etags[3][64];

static void create_upload(const char *key)
{
    ck_assert_int_eq(finish(store->operations->multipart_create(store, key, "text/plain", on_text, &outcome))->code,
                     QS_OK);
    strcpy(upload, outcome.text);
}

static const struct error *send_part(const char *key, uint32_t number, uint64_t position, const char *text)
{
    struct object_body body = body_of(text);
    finish(store->operations->multipart_part(store, key, upload, number, position, &body, on_text, &outcome));
    strcpy(etags[number - 1], outcome.text);
    parts[number - 1] = (struct object_part){.number = number, .etag = etags[number - 1]};
    return &outcome.error;
}

static const struct error *complete(const char *key, size_t count)
{
    return finish(store->operations->multipart_complete(store, key, upload, parts, count, on_done, &outcome));
}

START_TEST(puts_parts_together)
{
    create_upload("a/b/c");
    ck_assert_int_eq(send_part("a/b/c", 2, 5, "world")->code, QS_OK);
    ck_assert_int_eq(send_part("a/b/c", 1, 0, "hello")->code, QS_OK);
    ck_assert_int_eq(send_part("a/b/c", 2, 5, "WORLD")->code, QS_OK);
    ck_assert_int_eq(get("a/b/c", 100)->code, QS_ERROR_NOT_FOUND);
    ck_assert_msg(complete("a/b/c", 2)->code == QS_OK, "%s", outcome.error.message);
    expect_object("a/b/c", "helloWORLD");
    ck_assert_int_eq(complete("a/b/c", 2)->code, QS_ERROR_NOT_FOUND);
    ck_assert_int_eq(temporaries(), 0);
}
END_TEST

START_TEST(refuses_parts_with_a_hole)
{
    create_upload("k");
    ck_assert_int_eq(send_part("k", 1, 0, "hello")->code, QS_OK);
    ck_assert_int_eq(send_part("k", 2, 6, "world")->code, QS_OK);
    ck_assert_int_eq(complete("k", 2)->code, QS_ERROR_INPUT);
    ck_assert_int_eq(complete("k", 1)->code, QS_ERROR_INTEGRITY);
    ck_assert_int_eq(get("k", 100)->code, QS_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(aborts)
{
    create_upload("k");
    ck_assert_int_eq(send_part("k", 1, 0, "hello")->code, QS_OK);
    ck_assert_int_eq(temporaries(), 1);
    ck_assert_int_eq(finish(store->operations->multipart_abort(store, "k", upload, on_done, &outcome))->code, QS_OK);
    ck_assert_int_eq(temporaries(), 0);
    ck_assert_int_eq(finish(store->operations->multipart_abort(store, "k", upload, on_done, &outcome))->code, QS_OK);
    ck_assert_int_eq(send_part("k", 1, 0, "hello")->code, QS_ERROR_NOT_FOUND);
    strcpy(etags[0], "0-5");
    ck_assert_int_eq(complete("k", 1)->code, QS_ERROR_NOT_FOUND);
    strcpy(upload, "../x");
    ck_assert_int_eq(send_part("k", 1, 0, "hello")->code, QS_ERROR_NOT_FOUND);
    strcpy(etags[0], "0-5");
    ck_assert_int_eq(complete("k", 1)->code, QS_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(cleans_what_a_crash_left)
{
    struct error error;
    char name[64];
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(dead, NULL, 0), dead);
    create_upload("k");
    snprintf(name, sizeof name, ".tmp/%ld-99", (long)dead);
    make_file(name);
    snprintf(name, sizeof name, ".tmp/%ld-99", (long)getppid());
    make_file(name); /* another pool's, which is writing it */
    pid_t zombie = fork();
    if (zombie == 0)
        _exit(0);
    ck_assert_int_eq(waitid(P_PID, (id_t)zombie, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    snprintf(name, sizeof name, ".tmp/%ld-99", (long)zombie);
    make_file(name);
    put_good("kept", "x");
    ck_assert_int_eq(file_store_clean(root, BUCKET, &error), 0);
    ck_assert_int_eq(temporaries(), 1);
    expect_object("kept", "x");
    ck_assert_int_eq(waitpid(zombie, NULL, 0), zombie);
    ck_assert_int_eq(file_store_clean(root, "no-such-bucket", &error), 0);
}
END_TEST

START_TEST(makes_its_folders_anew)
{
    put_good("a", "x");
    folder_remove(path_of(""));
    put_good("b/c", "y");
    expect_object("b/c", "y");
}
END_TEST

/* The first process of a container: makes a temporary, tells its name and ends. */
static void name_from_a_container(char name[FILE_TEMPORARY_SIZE])
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t outside = fork();
    if (outside == 0) {
        struct file_bucket bucket;
        struct error error;
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
            _exit(0);
        if (fork() == 0) {
            file_bucket_open(&bucket, root, BUCKET);
            if (getpid() == 1 && file_temporary_create(&bucket, name, &error) == 0)
                (void)!write(ends[1], name, FILE_TEMPORARY_SIZE);
            _exit(0);
        }
        _exit(wait(NULL) < 0);
    }
    close(ends[1]);
    memset(name, 0, FILE_TEMPORARY_SIZE);
    (void)!read(ends[0], name, FILE_TEMPORARY_SIZE);
    close(ends[0]);
    ck_assert_int_eq(waitpid(outside, NULL, 0), outside);
}

/* On one volume both have the pid 1, and each removes at its start what the other may be writing. Where no namespaces can
 * be made, nothing is tried. */
START_TEST(two_containers_have_no_name_in_common)
{
    char first[FILE_TEMPORARY_SIZE];
    char second[FILE_TEMPORARY_SIZE];
    struct file_bucket bucket;
    struct error error;
    name_from_a_container(first);
    if (first[0] == '\0')
        return;
    ck_assert_int_eq(strncmp(first, "1-", 2), 0);
    file_bucket_open(&bucket, root, BUCKET);
    ck_assert_int_eq(file_temporary_remove(&bucket, first, &error), 0);
    file_bucket_free(&bucket);
    name_from_a_container(second);
    ck_assert_int_eq(strncmp(second, "1-", 2), 0);
    ck_assert_str_ne(first, second);
}
END_TEST

START_TEST(probes)
{
    struct error error;
    char file[128];
    ck_assert_int_eq(file_store_probe(root, "fresh", &error), 0);
    put_good("file", "x");
    snprintf(file, sizeof file, "%s/" BUCKET "/file", root);
    ck_assert_int_eq(file_store_probe(file, "b", &error), QS_ERROR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(error.message, "every part of the path is a folder"));
    ck_assert_ptr_nonnull(strstr(error.message, file));
    ck_assert_int_eq(file_store_probe("/proc/no", "b", &error), QS_ERROR_SYSTEM);
    ck_assert_ptr_null(file_store_create(reactor, file, "b", NULL, NULL, &error));
    ck_assert_int_eq(error.code, QS_ERROR_SYSTEM);
}
END_TEST

START_TEST(says_what_is_in_the_way)
{
    put_good("a", "x");
    ck_assert_int_eq(put("a/b", "y")->code, QS_ERROR_SYSTEM);
    ck_assert(!outcome.error.retriable);
    ck_assert_int_eq(outcome.error.status, 500);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "put: can't"));
    put_good("c/d", "y");
    ck_assert_int_eq(put("c", "y")->code, QS_ERROR_SYSTEM);
    ck_assert_int_eq(temporaries(), 0);
    expect_object("a", "x");
}
END_TEST

static char *many_bytes(size_t size)
{
    char *text = malloc(size + 1);
    memset(text, 'x', size);
    text[size] = '\0';
    return text;
}

START_TEST(retries_a_full_disk)
{
    char *text = many_bytes(2000000);
    store->operations->destroy(store);
    store = NULL;
    if (mount("none", root, "tmpfs", 0, "size=1m") != 0) {
        fprintf(stderr, "file_store_test: no small tmpfs (%s): no full disk\n", strerror(errno));
        free(text);
        return;
    }
    open_store();
    ck_assert_int_eq(put("big", text)->code, QS_ERROR_SYSTEM);
    ck_assert(outcome.error.retriable);
    ck_assert_ptr_nonnull(strstr(outcome.error.message, "free space"));
    ck_assert_int_eq(temporaries(), 0);
    put_good("small", "x");
    store->operations->destroy(store);
    store = NULL;
    ck_assert_int_eq(umount(root), 0);
    free(text);
}
END_TEST

/* SIGXFSZ ends a process whose thread doesn't block it. */
START_TEST(survives_the_limit_on_a_file)
{
    char *text = many_bytes(2000000);
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 100000, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    const struct error *error = put("big", text);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(error->code, QS_ERROR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(error->message, "limit on the size of a file"));
    ck_assert_int_eq(temporaries(), 0);
    free(text);
}
END_TEST

/* The bytes are freed at once: the sanitizers see whether anyone still reads them. */
START_TEST(cancels_what_is_queued_running_and_done)
{
    for (int round = 0; round < 60; round++) {
        char *text = many_bytes(8u << 20);
        struct object_body body = body_of(text);
        struct store_call *first = store->operations->put(store, "a", "t", &body, on_done, &outcome);
        struct store_call *second = store->operations->put(store, "b", "t", &body, on_done, &outcome);
        struct store_call *third = store->operations->put(store, "c", "t", &body, on_done, &outcome);
        if (round % 3 != 0) {
            usleep((useconds_t)(round * 500));
        }
        store->operations->cancel(store, second);
        store->operations->cancel(store, third);
        store->operations->cancel(store, first);
        free(text);
    }
    reactor_run_once(reactor, 0);
    ck_assert_int_eq(outcome.calls, 0);
    put_good("d", "x");
    ck_assert_int_eq(temporaries(), 0);
    ck_assert_int_eq(observed_count, 1);
}
END_TEST

static struct store_call *victim;

static void cancel_the_next(void *argument, const struct error *error)
{
    on_done(argument, error);
    store->operations->cancel(store, victim);
}

START_TEST(cancels_from_a_callback)
{
    struct object_body body = body_of("text");
    store->operations->put(store, "a", "t", &body, cancel_the_next, &outcome);
    victim = store->operations->put(store, "b", "t", &body, on_done, &outcome);
    usleep(100000);
    wait_for(&outcome, 1);
    struct outcome other = {0};
    store->operations->head(store, "a", on_head, &other);
    wait_for(&other, 1);
    ck_assert_int_eq(outcome.calls, 1);
    outcome.calls = 0;
}
END_TEST

static void destroy_the_store(void *argument, const struct error *error)
{
    on_done(argument, error);
    store->operations->destroy(store);
    store = NULL;
}

START_TEST(ends_from_a_callback)
{
    struct object_body body = body_of("text");
    store->operations->put(store, "a", "t", &body, destroy_the_store, &outcome);
    store->operations->put(store, "b", "t", &body, on_done, &outcome);
    usleep(50000);
    wait_for(&outcome, 1);
}
END_TEST

START_TEST(ends_with_calls_under_way)
{
    char *text = many_bytes(8u << 20);
    struct object_body body = body_of(text);
    for (int i = 0; i < 4; i++) {
        store->operations->put(store, "a", "t", &body, on_done, &outcome);
    }
    usleep(2000);
    store->operations->destroy(store);
    store = NULL;
    free(text);
    ck_assert_int_eq(outcome.calls, 0);
}
END_TEST

START_TEST(keeps_the_order_of_calls)
{
    struct object_body body = body_of("text");
    struct outcome others[3] = {0};
    store->operations->put(store, "a", "t", &body, on_done, &others[0]);
    store->operations->remove(store, "a", on_done, &others[1]);
    store->operations->head(store, "a", on_head, &others[2]);
    ck_assert_int_eq(others[0].calls, 0);
    wait_for(&others[2], 1);
    ck_assert_int_eq(others[0].calls + others[1].calls, 2);
    ck_assert_int_eq(others[2].error.code, QS_ERROR_NOT_FOUND);
}
END_TEST

static void add_cases(TCase *cases)
{
    tcase_add_test(cases, puts_and_gets);
    tcase_add_test(cases, limits_what_it_reads);
    tcase_add_test(cases, reads_ranges);
    tcase_add_test(cases, makes_nothing_for_who_only_reads);
    tcase_add_test(cases, tells_the_missing_from_the_rest);
    tcase_add_test(cases, refuses_keys_that_lead_away);
    tcase_add_test(cases, removes);
    tcase_add_test(cases, lists_in_key_order);
    tcase_add_test(cases, lists_by_pages);
    tcase_add_test(cases, puts_parts_together);
    tcase_add_test(cases, refuses_parts_with_a_hole);
    tcase_add_test(cases, aborts);
    tcase_add_test(cases, cleans_what_a_crash_left);
    tcase_add_test(cases, makes_its_folders_anew);
    tcase_add_test(cases, two_containers_have_no_name_in_common);
    tcase_add_test(cases, probes);
    tcase_add_test(cases, says_what_is_in_the_way);
    tcase_add_test(cases, retries_a_full_disk);
    tcase_add_test(cases, survives_the_limit_on_a_file);
    tcase_add_test(cases, cancels_what_is_queued_running_and_done);
    tcase_add_test(cases, cancels_from_a_callback);
    tcase_add_test(cases, ends_from_a_callback);
    tcase_add_test(cases, ends_with_calls_under_way);
    tcase_add_test(cases, keeps_the_order_of_calls);
}

int main(void)
{
    Suite *suite = suite_create("file_store");
    TCase *cases = tcase_create("file_store");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, setup, teardown);
    add_cases(cases);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
