/*
 * How a worker's process begins: workers_internal.h. What it is given is fixed at the fork; all that comes later is told
 * over its socket.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/hex.h"
#include "common/log.h"
#include "common/memory.h"
#include "supervisor/child.h"
#include "supervisor/shard.h"
#include "supervisor/workers_internal.h"

#define TITLE_SIZE 4096

static void make_incarnation(char incarnation[17])
{
    unsigned char bytes[8];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        fputs("queen-s3: the kernel gives no random bytes\n", stderr);
        exit(EXIT_FAILURE);
    }
    *hex_write(incarnation, bytes, sizeof bytes) = '\0';
}

/* `queen-s3: worker 0 [orders,clicks]` */
static void make_title(const struct workers *workers, size_t number, char title[TITLE_SIZE])
{
    size_t size = (size_t)snprintf(title, TITLE_SIZE, "queen-s3: worker %zu [", number);
    const char *separator = "";

    if (number < workers_connector_count(workers)) {
        (void)snprintf(title, TITLE_SIZE, "queen-s3: connector %s", workers->connectors->list[number].key);
        return;
    }

    for (size_t i = 0; i < workers->collect->queue_count && size < TITLE_SIZE; i++) {
        const struct collected_queue *queue = &workers->collect->queues[i];

        if (queue->worker == number) {
            size += (size_t)snprintf(title + size, TITLE_SIZE - size, "%s%s", separator, queue->name);
            separator = ",";
        }
    }
    if (size < TITLE_SIZE - 1) {
        (void)snprintf(title + size, TITLE_SIZE - size, "]");
    }
}

struct errand {
    struct worker_start start;
    worker_function *run;
};

struct connector_errand {
    struct worker_connector_start start;
    connector_function *run;
};

/* In the child. */
static int run_connector_errand(void *argument)
{
    const struct connector_errand *errand = argument;

    return errand->run(&errand->start);
}

/* In the child. */
static int run_errand(void *argument)
{
    const struct errand *errand = argument;

    return errand->run(&errand->start);
}

static struct worker_queue *list_queues(const struct workers *workers, size_t number)
{
    struct worker_queue *list = memory_new(workers->list[number].queue_count + 1, sizeof *list);
    size_t count = 0;

    for (size_t i = 0; i < workers->collect->queue_count; i++) {
        const struct collected_queue *queue = &workers->collect->queues[i];

        if (queue->worker == number) {
            list[count++] = (struct worker_queue){queue->name, (uint32_t)i, queue->from_log_start};
        }
    }
    return list;
}

/* A connector counts as one queue. */
uint64_t workers_share_of(const struct workers *workers, const struct worker *worker)
{
    return shard_budget((uint64_t)workers->settings->memory_bytes, workers->count,
                        workers_is_connector(workers, worker) ? 1 : worker->queue_count,
                        workers->collect->queue_count + workers_connector_count(workers));
}

/* As fork_worker(). */
static pid_t fork_connector(struct workers *workers, struct worker *worker, int their_end, int output,
                            struct error *error)
{
    size_t number = workers_number_of(workers, worker);
    char title[TITLE_SIZE];
    struct child_options options = {.own_group = true, .keep = their_end, .output = output, .title = title};
    struct connector_errand errand = {.run = workers->run_connector};

    worker->share = workers_share_of(workers, worker);
    errand.start = (struct worker_connector_start){.settings = workers->settings,
                                                   .connectors = workers->loaded,
                                                   .number = number,
                                                   .report_descriptor = their_end,
                                                   .budget_bytes = worker->share};
    make_title(workers, number, title);
    return child_fork(&options, run_connector_errand, &errand, error);
}

/* Forks with the socket pair and pipe given; the pid or a negative enum qs_error. */
static pid_t fork_worker(struct workers *workers, struct worker *worker, int their_end, int output, struct error *error)
{
    size_t number = workers_number_of(workers, worker);
    struct worker_queue *queues = list_queues(workers, number);
    struct errand errand = {.run = workers->run};
    char title[TITLE_SIZE];
    struct child_options options = {.own_group = true, .keep = their_end, .output = output, .title = title};
    pid_t pid;

    worker->share = workers_share_of(workers, worker);
    errand.start = (struct worker_start){
        .settings = workers->settings,
        .queues = queues,
        .queue_count = worker->queue_count,
        .report_descriptor = their_end,
        .budget_bytes = worker->share,
        .supervisor_pid = (int)getpid(),
    };
    memcpy(errand.start.incarnation, worker->incarnation, sizeof worker->incarnation);
    memcpy(errand.start.previous_incarnation, worker->previous, sizeof worker->previous);
    make_title(workers, number, title);
    pid = child_fork(&options, run_errand, &errand, error);
    free(queues);
    return pid;
}

int workers_begin_process(struct workers *workers, struct worker *worker, struct error *error)
{
    int ends[2];
    int output;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        return error_set_errno(error, "socketpair");
    }
    if (log_source_open(&worker->log, &output, error) != 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return QS_ERROR_SYSTEM;
    }
    /* A life that never spoke may not have had its predecessor's lease rows yet: they stay the ones to take over. */
    if (worker->reported) {
        memcpy(worker->previous, worker->incarnation, sizeof worker->previous);
    }
    make_incarnation(worker->incarnation);
    pool_worker_set(&worker->life, workers->settings->lease_ttl_ms, workers->settings->shutdown_grace_ms);
    worker->reported = false;
    worker->drained = false;
    pid = workers_is_connector(workers, worker) ? fork_connector(workers, worker, ends[1], output, error)
                                                : fork_worker(workers, worker, ends[1], output, error);
    (void)close(ends[1]);
    (void)close(output);
    if (pid < 0) {
        (void)close(ends[0]);
        log_source_close(&worker->log, clock_mono());
        return (int)pid;
    }
    worker->pid = pid;
    worker->descriptor = ends[0];
    worker->cpu_seen = 0;
    worker->started = clock_mono();
    if (workers_is_connector(workers, worker)) {
        connectors_began(workers->connectors, workers_number_of(workers, worker));
    }
    log_line(LOG_INFO, NULL, "worker %zu: started, pid %d, %zu queue%s", workers_number_of(workers, worker), (int)pid,
             worker->queue_count, worker->queue_count == 1 ? "" : "s");
    return 0;
}
