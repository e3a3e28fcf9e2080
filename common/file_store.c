/*
 * The directory store's loop side: a queue of jobs, one thread that does them in order, and a way back.
 *
 * A job goes queued -> running -> done -> delivered. The thread takes the oldest, does it with no lock held, puts it on
 * the list of done ones and counts up an eventfd, which the reactor watches; the callback then runs from the loop. What
 * a job does on the disk is in file_temporary.c and file_objects.c.
 *
 * Cancelling. A body is borrowed, so it must not be read once cancel has returned. Copying each would double the memory
 * of an upload, which no budget counts; so cancel waits, but only for a job that is at this moment writing a body, and
 * that one looks at its stop flag after each mebibyte. What comes after (fsync, rename) needs no borrowed memory and
 * finishes in the background: its object appears, whole, or it doesn't, and neither can harm (spec 2.1: the same key
 * always gets the same bytes).
 */
#include "common/file_store.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/file_objects.h"
#include "common/file_temporary.h"
#include "common/memory.h"

struct file_store;

struct store_call {
    struct store_call *next;
    enum store_operation operation;
    /* What is asked; key is a list's prefix, upload a list's token. */
    char *key;
    char *upload;
    struct object_body body;
    uint64_t position; /* of a part or a range; of a complete: the size of the whole */
    size_t size_limit; /* of a range: its size */
    bool ranged;
    /* How it stands; under the store's lock, but stop. */
    bool running;
    bool borrowing; /* reads the body */
    bool abandoned; /* nobody waits for it */
    atomic_bool stop;
    /* What came of it. */
    struct error error;
    uint64_t object_size;
    char *bytes;
    size_t bytes_size;
    char name[FILE_TEMPORARY_SIZE];
    struct file_page page;
    /* Whom to tell. */
    union store_tell tell;
    void *argument;
};

struct call_list {
    struct store_call *first;
    struct store_call *last;
};

struct file_store {
    struct object_store store; /* first: an object_store * is a file_store * */
    struct reactor *reactor;
    struct file_bucket bucket;
    store_observe *observe;
    void *argument;
    int wake;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct call_list queued;
    struct store_call *current;
    struct call_list done;
    bool stopping;
    bool delivering; /* a callback is running: it may destroy the store, which then goes once it returns */
    bool gone;
};

static void list_append(struct call_list *list, struct store_call *call)
{
    call->next = NULL;
    if (list->last != NULL) {
        list->last->next = call;
    } else {
        list->first = call;
    }
    list->last = call;
}

static struct store_call *list_take(struct call_list *list)
{
    struct store_call *call = list->first;

    if (call != NULL) {
        list->first = call->next;
        list->last = list->first == NULL ? NULL : list->last;
    }
    return call;
}

static bool list_remove(struct call_list *list, const struct store_call *call)
{
    struct store_call *before = NULL;

    for (struct store_call *at = list->first; at != NULL; before = at, at = at->next) {
        if (at != call) {
            continue;
        }
        if (before != NULL) {
            before->next = at->next;
        } else {
            list->first = at->next;
        }
        list->last = list->last == at ? before : list->last;
        return true;
    }
    return false;
}

static void free_call(struct store_call *call)
{
    file_page_free(&call->page);
    free(call->bytes);
    free(call->upload);
    free(call->key);
    free(call);
}

/* ---- the thread ---- */

static void end_borrowing(struct file_store *store, struct store_call *call)
{
    pthread_mutex_lock(&store->lock);
    call->borrowing = false;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

static void do_get(const struct file_bucket *bucket, struct store_call *call)
{
    if (!call->ranged) {
        file_object_read(bucket, call->key, call->size_limit, &call->bytes, &call->bytes_size, &call->error);
    } else if (file_object_read_range(bucket, call->key, call->position, call->size_limit, &call->bytes,
                                      &call->error) == 0) {
        call->bytes_size = call->size_limit;
    }
}

static void do_put(struct file_store *store, struct store_call *call)
{
    struct error *error = &call->error;
    const struct file_bucket *bucket = &store->bucket;
    int code = file_temporary_create(bucket, call->name, error);

    if (code == 0) {
        code = file_temporary_write(bucket, call->name, 0, &call->body, &call->stop, error);
        if (code != 0) {
            struct error ignored;
            file_temporary_remove(bucket, call->name, &ignored);
        }
    }
    end_borrowing(store, call);
    if (code == 0) {
        code = file_temporary_publish(bucket, call->name, call->body.size, call->key, error);
    }
    /* Someone has emptied .tmp under us; the next attempt makes another. */
    if (code == QS_ERROR_NOT_FOUND) {
        error->code = QS_ERROR_SYSTEM;
        error->retriable = true;
    }
}

static void do_part(struct file_store *store, struct store_call *call)
{
    file_temporary_write(&store->bucket, call->upload, call->position, &call->body, &call->stop, &call->error);
    end_borrowing(store, call);
    file_part_etag(call->position, call->body.size, call->name);
}

static void do_call(struct file_store *store, struct store_call *call)
{
    const struct file_bucket *bucket = &store->bucket;
    struct error *error = &call->error;

    if (error->code != QS_OK) {
        return;
    }
    switch (call->operation) {
    case STORE_PUT: do_put(store, call); break;
    case STORE_GET: do_get(bucket, call); break;
    case STORE_HEAD: file_object_size(bucket, call->key, &call->object_size, error); break;
    case STORE_LIST: file_objects_list(bucket, call->key, call->upload, &call->page, error); break;
    case STORE_DELETE: file_object_remove(bucket, call->key, error); break;
    case STORE_MULTIPART_CREATE: file_temporary_create(bucket, call->name, error); break;
    case STORE_MULTIPART_PART: do_part(store, call); break;
    case STORE_MULTIPART_COMPLETE:
        file_temporary_publish(bucket, call->upload, call->position, call->key, error);
        break;
    case STORE_MULTIPART_ABORT: file_temporary_remove(bucket, call->upload, error); break;
    case STORE_OPERATION_COUNT: break;
    }
}

static void finish_call(struct file_store *store, struct store_call *call)
{
    uint64_t one = 1;

    store->current = NULL;
    call->running = false;
    if (call->abandoned) {
        free_call(call);
        return;
    }
    list_append(&store->done, call);
    /* Fails only when the counter is full, and then the loop has been woken already. */
    ssize_t written = write(store->wake, &one, sizeof one);
    (void)written;
}

static void *run_thread(void *argument)
{
    struct file_store *store = argument;

    pthread_mutex_lock(&store->lock);
    while (!store->stopping) {
        struct store_call *call = list_take(&store->queued);
        if (call == NULL) {
            pthread_cond_wait(&store->changed, &store->lock);
            continue;
        }
        store->current = call;
        call->running = true;
        call->borrowing = call->operation == STORE_PUT || call->operation == STORE_MULTIPART_PART;
        pthread_mutex_unlock(&store->lock);
        do_call(store, call);
        pthread_mutex_lock(&store->lock);
        finish_call(store, call);
    }
    pthread_mutex_unlock(&store->lock);
    return NULL;
}

/* ---- the loop ---- */

static void tell_list(struct store_call *call, const struct error *error)
{
    const struct file_page *page = &call->page;
    const char *next = page->more ? page->objects[page->count - 1].key : NULL;

    call->tell.list(call->argument, error, page->objects, page->count, next);
}

static void tell(struct store_call *call)
{
    const struct error *error = &call->error;
    bool good = error->code == QS_OK;
    struct head_answer head = {.size = call->object_size, .etag = ""};

    switch (call->operation) {
    case STORE_HEAD: call->tell.head(call->argument, error, good ? &head : NULL); break;
    case STORE_GET: {
        char *bytes = call->bytes;
        call->bytes = NULL;
        call->tell.get(call->argument, error, bytes, call->bytes_size);
        break;
    }
    case STORE_LIST: tell_list(call, error); break;
    case STORE_MULTIPART_CREATE: call->tell.created(call->argument, error, good ? call->name : NULL); break;
    case STORE_MULTIPART_PART: call->tell.part(call->argument, error, good ? call->name : NULL); break;
    case STORE_PUT:
    case STORE_DELETE:
    case STORE_MULTIPART_COMPLETE:
    case STORE_MULTIPART_ABORT: call->tell.done(call->argument, error); break;
    case STORE_OPERATION_COUNT: break;
    }
}

static int code_of(const struct error *error)
{
    return error->code == QS_OK ? 200 : error->code == QS_ERROR_NOT_FOUND ? 404 : 500;
}

static struct store_call *take_done(struct file_store *store)
{
    pthread_mutex_lock(&store->lock);
    struct store_call *call = list_take(&store->done);
    pthread_mutex_unlock(&store->lock);
    return call;
}

static void free_store(struct file_store *store);

/* One at a time, since a callback may cancel the next. A callback's own new calls come back through the eventfd: those
 * done meanwhile are told too, and never more than the disk has done. */
static void deliver(void *argument, short events)
{
    struct file_store *store = argument;
    uint64_t count;

    (void)events;
    if (read(store->wake, &count, sizeof count) != (ssize_t)sizeof count) {
        return;
    }
    store->delivering = true;
    while (!store->gone && count-- > 0) {
        struct store_call *call = take_done(store);
        if (call == NULL) {
            break;
        }
        if (call->error.code != QS_OK) {
            call->error.status = code_of(&call->error);
            error_prefix(&call->error, "%s", store_operation_name(call->operation));
        }
        if (store->observe != NULL) {
            store->observe(store->argument, call->operation, code_of(&call->error));
        }
        tell(call);
        free_call(call);
    }
    store->delivering = false;
    if (store->gone) {
        free_store(store);
    }
}

static struct store_call *new_call(enum store_operation operation, const char *key, const char *upload, void *argument)
{
    struct store_call *call = memory_new(1, sizeof *call);

    call->operation = operation;
    call->argument = argument;
    call->key = memory_copy_text(key);
    call->upload = memory_copy_text(upload);
    error_clear(&call->error);
    return call;
}

static struct store_call *start(struct object_store *object_store, struct store_call *call)
{
    struct file_store *store = (struct file_store *)object_store;

    pthread_mutex_lock(&store->lock);
    list_append(&store->queued, call);
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
    return call;
}

static struct store_call *start_simple(struct object_store *store, enum store_operation operation, const char *key,
                                       const char *upload, store_done *done, void *argument)
{
    struct store_call *call = new_call(operation, key, upload, argument);

    call->tell.done = done;
    return start(store, call);
}

static struct store_call *file_put(struct object_store *store, const char *key, const char *content_type,
                                   const struct object_body *body, store_done *done, void *argument)
{
    struct store_call *call = new_call(STORE_PUT, key, NULL, argument);

    (void)content_type;
    call->body = *body;
    call->tell.done = done;
    return start(store, call);
}

/* A prefix is asked for with its slash where a bucket is probed. */
static struct store_call *file_head(struct object_store *store, const char *key, store_head_done *done, void *argument)
{
    struct store_call *call = new_call(STORE_HEAD, key, NULL, argument);

    size_t size = strlen(call->key);
    if (size > 1 && call->key[size - 1] == '/') {
        call->key[size - 1] = '\0';
    }
    call->tell.head = done;
    return start(store, call);
}

static struct store_call *file_get(struct object_store *store, const char *key, size_t size_limit, store_get_done *done,
                                   void *argument)
{
    struct store_call *call = new_call(STORE_GET, key, NULL, argument);

    call->size_limit = size_limit;
    call->tell.get = done;
    return start(store, call);
}

struct store_call *file_store_get_range(struct object_store *store, const char *key, uint64_t position, size_t size,
                                        store_get_done *done, void *argument)
{
    struct store_call *call = new_call(STORE_GET, key, NULL, argument);

    call->position = position;
    call->size_limit = size;
    call->ranged = true;
    call->tell.get = done;
    return start(store, call);
}

static struct store_call *file_list(struct object_store *store, const char *prefix, const char *after_token,
                                    store_list_done *done, void *argument)
{
    struct store_call *call = new_call(STORE_LIST, prefix, after_token, argument);

    call->tell.list = done;
    return start(store, call);
}

static struct store_call *file_remove(struct object_store *store, const char *key, store_done *done, void *argument)
{
    return start_simple(store, STORE_DELETE, key, NULL, done, argument);
}

static struct store_call *file_multipart_create(struct object_store *store, const char *key, const char *content_type,
                                                store_created_done *done, void *argument)
{
    struct store_call *call = new_call(STORE_MULTIPART_CREATE, key, NULL, argument);

    (void)content_type;
    call->tell.created = done;
    return start(store, call);
}

static struct store_call *file_multipart_part(struct object_store *store, const char *key, const char *upload_id,
                                              uint32_t number, uint64_t position, const struct object_body *body,
                                              store_part_done *done, void *argument)
{
    struct store_call *call = new_call(STORE_MULTIPART_PART, key, upload_id, argument);

    (void)number;
    call->position = position;
    call->body = *body;
    call->tell.part = done;
    return start(store, call);
}

static struct store_call *file_multipart_complete(struct object_store *store, const char *key, const char *upload_id,
                                                  const struct object_part *parts, size_t count, store_done *done,
                                                  void *argument)
{
    struct store_call *call = new_call(STORE_MULTIPART_COMPLETE, key, upload_id, argument);

    file_parts_size(key, parts, count, &call->position, &call->error);
    call->tell.done = done;
    return start(store, call);
}

static struct store_call *file_multipart_abort(struct object_store *store, const char *key, const char *upload_id,
                                               store_done *done, void *argument)
{
    return start_simple(store, STORE_MULTIPART_ABORT, key, upload_id, done, argument);
}

static void file_cancel(struct object_store *object_store, struct store_call *call)
{
    struct file_store *store = (struct file_store *)object_store;

    pthread_mutex_lock(&store->lock);
    if (store->current == call) {
        call->abandoned = true;
        atomic_store(&call->stop, true);
        /* It may end and be freed while we wait; only `current` may be looked at before it is known to be alive. */
        while (store->current == call && call->borrowing) {
            pthread_cond_wait(&store->changed, &store->lock);
        }
    } else if (list_remove(&store->queued, call) || list_remove(&store->done, call)) {
        free_call(call);
    }
    pthread_mutex_unlock(&store->lock);
}

static void free_list(struct call_list *list)
{
    for (struct store_call *call = list_take(list); call != NULL; call = list_take(list)) {
        free_call(call);
    }
}

static void free_store(struct file_store *store)
{
    free_list(&store->queued);
    free_list(&store->done);
    if (store->wake >= 0) {
        close(store->wake);
    }
    file_bucket_free(&store->bucket);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/* Waits for the job under way, to its end: a descriptor that is being synced can't be taken away. */
static void file_destroy(struct object_store *object_store)
{
    struct file_store *store = (struct file_store *)object_store;

    pthread_mutex_lock(&store->lock);
    store->stopping = true;
    if (store->current != NULL) {
        atomic_store(&store->current->stop, true);
    }
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
    pthread_join(store->thread, NULL);
    reactor_watch(store->reactor, store->wake, 0, NULL, NULL);
    store->gone = true;
    if (!store->delivering) {
        free_store(store);
    }
}

static const struct object_store_operations operations = {.put = file_put,
                                                          .head = file_head,
                                                          .get = file_get,
                                                          .list = file_list,
                                                          .remove = file_remove,
                                                          .multipart_create = file_multipart_create,
                                                          .multipart_part = file_multipart_part,
                                                          .multipart_complete = file_multipart_complete,
                                                          .multipart_abort = file_multipart_abort,
                                                          .cancel = file_cancel,
                                                          .destroy = file_destroy};

/* A signal is the loop's business: none may interrupt a write, or run a handler on this thread. */
static int start_thread(struct file_store *store, struct error *error)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&store->thread, NULL, run_thread, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        errno = failed;
        return error_set_errno(error, "can't start the thread that writes files");
    }
    return 0;
}

static int prepare(struct file_store *store, struct error *error)
{
    int code;

    store->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->wake < 0) {
        return error_set_errno(error, "can't make an eventfd");
    }
    code = reactor_watch(store->reactor, store->wake, POLLIN, deliver, store);
    if (code != 0) {
        return error_set(error, QS_ERROR_SYSTEM, "can't watch the thread that writes files");
    }
    code = start_thread(store, error);
    if (code != 0) {
        reactor_watch(store->reactor, store->wake, 0, NULL, NULL);
    }
    return code;
}

static struct object_store *create(struct reactor *reactor, const char *root, const char *bucket, bool make,
                                   struct error *error)
{
    struct file_store *store = memory_new(1, sizeof *store);

    store->store.operations = &operations;
    store->reactor = reactor;
    store->wake = -1;
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->changed, NULL);
    file_bucket_open(&store->bucket, root, bucket);
    int code = make ? file_bucket_make(&store->bucket, error) : file_bucket_look(&store->bucket, error);
    if (code != 0 || prepare(store, error) != 0) {
        free_store(store);
        return NULL;
    }
    return &store->store;
}

struct object_store *file_store_create(struct reactor *reactor, const char *root, const char *bucket,
                                       store_observe *observe, void *argument, struct error *error)
{
    struct object_store *store = create(reactor, root, bucket, true, error);

    if (store != NULL) {
        ((struct file_store *)store)->observe = observe;
        ((struct file_store *)store)->argument = argument;
    }
    return store;
}

struct object_store *file_store_open(struct reactor *reactor, const char *root, const char *bucket, struct error *error)
{
    return create(reactor, root, bucket, false, error);
}
