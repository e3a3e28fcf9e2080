/* The describer on a thread: describe_thread.h. */
#include "worker/describe_thread.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/file_store.h"
#include "common/memory.h"
#include "common/s3_store.h"
#include "worker/services.h"

#define CHUNK_SIZE     8388608u
#define CANCEL_LOOK_MS 200

struct describe_call {
    struct thread_describer *describer;
    char *key;
    struct window_shape shape;
    struct window_bounds bounds;
    describe_done *done;
    void *argument;
    atomic_bool cancelled;
    struct error error;
    struct object_description description;
    struct describe_call *next;
};

struct thread_describer {
    struct describer base;
    struct reactor *reactor;
    const struct settings *settings;
    int wake;
    bool started;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct describe_call *queued; /* in order */
    struct describe_call *current;
    struct describe_call *ended;
    bool stopping;
};

/* ---- reading, on the thread ---- */

/* One object on its way into the file, with a loop of its own. */
struct download {
    struct reactor *reactor;
    struct services services;
    const char *key;
    int file;
    uint64_t size;
    uint64_t got;
    EVP_MD_CTX *sha256;
    bool done;
    const atomic_bool *cancelled;
    struct error error;
};

static void head_done(void *argument, const struct error *error, const struct head_answer *answer)
{
    struct download *download = argument;
    download->done = true;
    download->error = *error;
    if (error->code == QS_OK)
        download->size = answer->size;
}

static void take_bytes(struct download *download, const char *bytes, size_t size)
{
    size_t written = 0;
    while (written < size) {
        ssize_t more = write(download->file, bytes + written, size - written);
        if (more <= 0) {
            error_set_errno(&download->error, "a temporary file in %s", P_tmpdir);
            download->error.retriable = true;
            return;
        }
        written += (size_t)more;
    }
    if (EVP_DigestUpdate(download->sha256, bytes, size) != 1)
        error_set(&download->error, QS_ERROR_NO_MEMORY, "SHA-256");
    download->got += size;
}

static void range_done(void *argument, const struct error *error, char *bytes, size_t size)
{
    struct download *download = argument;
    download->done = true;
    download->error = *error;
    if (error->code == QS_OK)
        take_bytes(download, bytes, size);
    free(bytes);
}

/* A store that hangs must not hold up a stop: what is cancelled isn't waited for. */
static void wait_done(struct download *download)
{
    while (!download->done && !atomic_load(download->cancelled))
        reactor_run_once(download->reactor, CANCEL_LOOK_MS);
    if (!download->done)
        error_set(&download->error, QS_ERROR_TRANSPORT, "given up");
    download->done = false;
}

static int download_all(struct download *download, const struct describe_call *call)
{
    struct object_store *store = download->services.store;
    store->operations->head(store, download->key, head_done, download);
    wait_done(download);
    while (download->error.code == QS_OK && download->got < download->size && !atomic_load(&call->cancelled)) {
        uint64_t left = download->size - download->got;
        size_t size = left < CHUNK_SIZE ? (size_t)left : CHUNK_SIZE;
        if (call->describer->settings->file_root != NULL)
            file_store_get_range(store, download->key, download->got, size, range_done, download);
        else
            s3_store_get_range(store, download->key, download->got, size, range_done, download);
        wait_done(download);
    }
    return download->error.code;
}

static int describe_file(struct describe_call *call, struct download *download)
{
    struct file_object file = {.descriptor = download->file};
    struct object_source source;
    if (object_source_file(&file, &source, &call->error) != 0)
        return call->error.code;
    if (describe_object(&source, &call->shape, &call->bounds, &call->description, &call->error) != 0)
        return call->error.code;
    call->description.bytes = download->size;
    if (EVP_DigestFinal_ex(download->sha256, call->description.sha256, NULL) != 1)
        return error_set(&call->error, QS_ERROR_NO_MEMORY, "SHA-256");
    return 0;
}

static void describe_now(struct describe_call *call)
{
    struct download download = {.key = call->key, .sha256 = EVP_MD_CTX_new(), .cancelled = &call->cancelled};
    error_clear(&call->error);
    download.file = open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    download.reactor = reactor_create(&call->error);
    if (download.file < 0) {
        error_set_errno(&call->error, "a temporary file in %s", P_tmpdir);
        call->error.retriable = true;
    } else if (download.sha256 == NULL || EVP_DigestInit_ex(download.sha256, EVP_sha256(), NULL) != 1) {
        error_set(&call->error, QS_ERROR_NO_MEMORY, "SHA-256");
    } else if (download.reactor != NULL &&
               services_open(&download.services, download.reactor, call->describer->settings, &call->error) == 0) {
        if (download_all(&download, call) != 0)
            call->error = download.error;
        else if (!atomic_load(&call->cancelled))
            describe_file(call, &download);
        services_close(&download.services);
    }
    reactor_destroy(download.reactor);
    EVP_MD_CTX_free(download.sha256);
    if (download.file >= 0)
        close(download.file);
}

static void *thread_main(void *argument)
{
    static const uint64_t one = 1;
    struct thread_describer *describer = argument;
    pthread_mutex_lock(&describer->lock);
    while (!describer->stopping) {
        struct describe_call *call = describer->queued;
        if (call == NULL) {
            pthread_cond_wait(&describer->changed, &describer->lock);
            continue;
        }
        describer->queued = call->next;
        describer->current = call;
        pthread_mutex_unlock(&describer->lock);
        describe_now(call);
        pthread_mutex_lock(&describer->lock);
        describer->current = NULL;
        call->next = describer->ended;
        describer->ended = call;
        ssize_t written = write(describer->wake, &one, sizeof one);
        (void)written;
    }
    pthread_mutex_unlock(&describer->lock);
    return NULL;
}

/* ---- the loop ---- */

static void call_free(struct describe_call *call)
{
    describe_free(&call->description);
    free(call->key);
    free(call);
}

static void tell(void *argument, short events)
{
    struct thread_describer *describer = argument;
    uint64_t count;
    (void)events;
    ssize_t got = read(describer->wake, &count, sizeof count);
    (void)got;
    for (;;) {
        pthread_mutex_lock(&describer->lock);
        struct describe_call *call = describer->ended;
        if (call != NULL)
            describer->ended = call->next;
        pthread_mutex_unlock(&describer->lock);
        if (call == NULL)
            return;
        if (!atomic_load(&call->cancelled))
            call->done(call->argument, &call->error, call->error.code == QS_OK ? &call->description : NULL);
        call_free(call);
    }
}

static bool start_thread(struct thread_describer *describer)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    describer->started = pthread_create(&describer->thread, NULL, thread_main, describer) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return describer->started;
}

static struct describe_call *thread_start(struct describer *base, const char *key, const struct window_shape *shape,
                                          const struct window_bounds *bounds, describe_done *done, void *argument)
{
    struct thread_describer *describer = (struct thread_describer *)base;
    struct describe_call *call = memory_new(1, sizeof *call);
    *call = (struct describe_call){.describer = describer,
                                   .key = memory_copy_text(key),
                                   .shape = *shape,
                                   .bounds = *bounds,
                                   .done = done,
                                   .argument = argument};
    atomic_init(&call->cancelled, false);
    bool running = describer->started || start_thread(describer);
    pthread_mutex_lock(&describer->lock);
    struct describe_call **end = running ? &describer->queued : &describer->ended;
    while (*end != NULL)
        end = &(*end)->next;
    *end = call;
    pthread_cond_signal(&describer->changed);
    pthread_mutex_unlock(&describer->lock);
    if (!running) {
        static const uint64_t one = 1;
        error_set(&call->error, QS_ERROR_NO_MEMORY, "no thread to read an object on");
        call->error.retriable = true;
        ssize_t written = write(describer->wake, &one, sizeof one);
        (void)written;
    }
    return call;
}

static void thread_cancel(struct describer *base, struct describe_call *call)
{
    (void)base;
    atomic_store(&call->cancelled, true);
}

struct describer *describe_thread_create(struct reactor *reactor, const struct settings *settings, struct error *error)
{
    static const struct describer_operations operations = {thread_start, thread_cancel};
    struct thread_describer *describer = memory_new(1, sizeof *describer);
    describer->base.operations = &operations;
    describer->reactor = reactor;
    describer->settings = settings;
    pthread_mutex_init(&describer->lock, NULL);
    pthread_cond_init(&describer->changed, NULL);
    describer->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (describer->wake >= 0 && reactor_watch(reactor, describer->wake, POLLIN, tell, describer) == 0)
        return &describer->base;
    error_set_errno(error, "eventfd");
    describe_thread_destroy(&describer->base);
    return NULL;
}

static void free_list(struct describe_call *call)
{
    while (call != NULL) {
        struct describe_call *next = call->next;
        call_free(call);
        call = next;
    }
}

void describe_thread_destroy(struct describer *base)
{
    struct thread_describer *describer = (struct thread_describer *)base;
    if (describer == NULL)
        return;
    pthread_mutex_lock(&describer->lock);
    describer->stopping = true;
    if (describer->current != NULL)
        atomic_store(&describer->current->cancelled, true);
    pthread_cond_signal(&describer->changed);
    pthread_mutex_unlock(&describer->lock);
    if (describer->started)
        pthread_join(describer->thread, NULL);
    free_list(describer->queued);
    free_list(describer->ended);
    if (describer->wake >= 0) {
        reactor_watch(describer->reactor, describer->wake, 0, NULL, NULL);
        close(describer->wake);
    }
    pthread_cond_destroy(&describer->changed);
    pthread_mutex_destroy(&describer->lock);
    free(describer);
}
