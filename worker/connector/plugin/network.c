/* The network's thread: network.h. */
#include "worker/connector/plugin/network.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"

TAILQ_HEAD(network_jobs, network_job);

struct network {
    const struct sink_options *options;
    pico_log_fn log;
    pthread_t thread;
    int wake; /* eventfd */
    sem_t started;
    struct error start_error;
    /* The thread's own. */
    struct reactor *reactor;
    struct sink_bucket *bucket;
    struct network_jobs running;
    /* Under the lock. */
    pthread_mutex_t lock;
    struct network_jobs submitted;
    bool hurry;
    bool cancel;
    bool stop;
};

static void wake_up(struct network *network)
{
    uint64_t one = 1;

    while (write(network->wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

static void job_done(struct network_job *job, const struct error *error)
{
    TAILQ_REMOVE(&job->network->running, job, link);
    job->error = *error;
    job->upload = NULL;
    job->done(job);
}

static void on_done(void *argument, const struct error *error)
{
    struct network_job *job = argument;

    job->cut = job->hurried && error->code != QS_OK && (error->retriable || job->max_attempts == 0);
    job_done(job, error);
}

static void on_again(void *argument, const struct error *error, uint32_t attempt, int64_t delay_ms)
{
    const struct network_job *job = argument;

    log_line(LOG_WARN, NULL, "%s of %s: attempt %u: %s; the next one in %lld ms",
             job->body != NULL ? "upload" : "removal", job->key, attempt, error->message, (long long)delay_ms);
}

static void job_start(struct network *network, struct network_job *job)
{
    TAILQ_INSERT_TAIL(&network->running, job, link);
    struct sink_upload_options options = {.key = job->key,
                                          .content_type = job->content_type,
                                          .body = job->body,
                                          .max_attempts = job->max_attempts,
                                          .second_delay_ms = job->second_delay_ms};
    job->upload = sink_upload_start(network->reactor, network->bucket, &options, on_again, on_done, job);
}

/* done() may submit, but not start: the list only shrinks while it is walked. */
static void hurry_all(struct network *network)
{
    struct network_job *next;

    for (struct network_job *job = TAILQ_FIRST(&network->running); job != NULL; job = next) {
        next = TAILQ_NEXT(job, link);
        if (!job->patient) {
            job->hurried = true;
            sink_upload_last(job->upload);
        }
    }
}

static void cancel_running(struct network *network)
{
    struct network_job *job;
    struct error error;

    error_set(&error, QS_ERROR_TRANSPORT, "the time for it was up");
    while ((job = TAILQ_FIRST(&network->running)) != NULL) {
        sink_upload_cancel(job->upload);
        job->cut = true;
        job_done(job, &error);
    }
}

static void on_wake(void *argument, short events)
{
    struct network *network = argument;
    struct network_jobs submitted = TAILQ_HEAD_INITIALIZER(submitted);
    struct network_job *job;
    uint64_t count;

    (void)events;
    (void)!read(network->wake, &count, sizeof count);
    pthread_mutex_lock(&network->lock);
    TAILQ_CONCAT(&submitted, &network->submitted, link);
    bool hurry = network->hurry;
    bool cancel = network->cancel;
    network->hurry = network->cancel = false;
    pthread_mutex_unlock(&network->lock);
    while ((job = TAILQ_FIRST(&submitted)) != NULL) {
        TAILQ_REMOVE(&submitted, job, link);
        job_start(network, job);
    }
    if (hurry) {
        hurry_all(network);
    }
    if (cancel) {
        cancel_running(network);
    }
}

static const char *environment(void *argument, const char *name)
{
    (void)argument;
    return getenv(name);
}

static void set_up(struct network *network)
{
    network->reactor = reactor_create(&network->start_error);
    if (network->reactor == NULL) {
        return;
    }
    network->bucket = sink_bucket_open(network->reactor, network->options, environment, NULL, &network->start_error);
    if (network->bucket != NULL && reactor_watch(network->reactor, network->wake, POLLIN, on_wake, network) != QS_OK) {
        error_set_errno(&network->start_error, "the event loop can't be set up");
    }
}

static bool should_stop(struct network *network)
{
    pthread_mutex_lock(&network->lock);
    bool stop = network->stop;
    pthread_mutex_unlock(&network->lock);
    return stop;
}

static void *run(void *argument)
{
    struct network *network = argument;

    host_log_enter(network->log);
    set_up(network);
    bool good = network->start_error.code == QS_OK;
    sem_post(&network->started);
    while (good && !should_stop(network)) {
        reactor_run_once(network->reactor, -1);
    }
    sink_bucket_close(network->bucket);
    reactor_destroy(network->reactor);
    host_log_enter(NULL);
    return NULL;
}

int network_start_thread(pthread_t *thread, void *(*work)(void *argument), void *argument)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, work, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void network_free(struct network *network)
{
    if (network->wake >= 0) {
        close(network->wake);
    }
    sem_destroy(&network->started);
    pthread_mutex_destroy(&network->lock);
    free(network);
}

struct network *network_start(const struct sink_options *options, pico_log_fn log, struct error *error)
{
    struct network *network = memory_new(1, sizeof *network);

    network->options = options;
    network->log = log;
    TAILQ_INIT(&network->running);
    TAILQ_INIT(&network->submitted);
    pthread_mutex_init(&network->lock, NULL);
    sem_init(&network->started, 0, 0);
    error_clear(error);
    network->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (network->wake < 0) {
        error_set_errno(error, "the network's thread can't be woken");
        network_free(network);
        return NULL;
    }
    errno = network_start_thread(&network->thread, run, network);
    if (errno != 0) {
        error_set_errno(error, "the network's thread can't be started");
        network_free(network);
        return NULL;
    }
    while (sem_wait(&network->started) != 0) {
    }
    if (network->start_error.code != QS_OK) {
        *error = network->start_error;
        pthread_join(network->thread, NULL);
        network_free(network);
        return NULL;
    }
    return network;
}

void network_submit(struct network *network, struct network_job *job)
{
    job->network = network;
    job->cut = job->hurried = false;
    job->upload = NULL;
    pthread_mutex_lock(&network->lock);
    TAILQ_INSERT_TAIL(&network->submitted, job, link);
    pthread_mutex_unlock(&network->lock);
    wake_up(network);
}

static void set_flag(struct network *network, bool *flag)
{
    pthread_mutex_lock(&network->lock);
    *flag = true;
    pthread_mutex_unlock(&network->lock);
    wake_up(network);
}

void network_hurry(struct network *network)
{
    set_flag(network, &network->hurry);
}

void network_cancel_all(struct network *network)
{
    set_flag(network, &network->cancel);
}

void network_stop(struct network *network)
{
    set_flag(network, &network->stop);
    pthread_join(network->thread, NULL);
    network_free(network);
}
